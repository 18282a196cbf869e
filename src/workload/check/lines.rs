//! On which line of the file something stands.

use std::collections::BTreeMap;

use crate::workload::tree::{Bytes, Place};
use crate::workload::walk::{Given, Value};

/// Where lines begin, so that no line is counted twice.
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect() }
    }

    /// The line of a place, from 1; 0 if it is not in the file.
    pub(super) fn of(&self, place: &Place) -> u32 {
        match place {
            Place::File(Bytes { start, .. }) => {
                let line = self.starts.partition_point(|begin| begin <= start);
                u32::try_from(line).unwrap_or(u32::MAX)
            }
            Place::Whole | Place::Set(..) => 0,
        }
    }

    /// The lines of what was written in the tables that hold no steps.
    pub(super) fn of_keys(&self, root: &Given) -> BTreeMap<String, u32> {
        let mut lines = BTreeMap::new();
        for peer in root.map("peers") {
            lines.insert(format!("peers.{}", peer.entry.key), self.of(peer.key_place()));
        }
        for table in ["budget", "runtime", "load", "shutdown", "settlement", "expect"] {
            let Some(given) = root.table(table) else { continue };
            for (name, item) in given.all() {
                let key = format!("{table}.{name}");
                match &item.value {
                    Value::Map(items) => lines.extend(items.iter().map(|item| {
                        (format!("{key}.{}", item.entry.key), self.of(item.key_place()))
                    })),
                    Value::Tables(tables) => {
                        lines.extend((1..).zip(tables).map(|(number, table)| {
                            (format!("{key}.{number}"), self.of(table.place))
                        }))
                    }
                    _ => {
                        lines.insert(key, self.of(item.key_place()));
                    }
                }
            }
        }
        lines
    }

    pub(super) fn describe(&self, place: &Place) -> String {
        match self.of(place) {
            0 => "the command line".to_owned(),
            line => format!("line {line}"),
        }
    }
}
