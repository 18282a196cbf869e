//! Puts the words of `--set` into the tree before anything is checked.
//!
//! A patched value goes through the same checks as a written one, and remembers that its place is
//! the word and not the file. Tables of an array are found by name, or by the name they have by
//! default.

use crate::workload::fault::{Fault, nearest};
use crate::workload::tree::{Bytes, Entry, Node, Place, Value, cut, mark, quote};

/// The most dots of a path; nothing in a workload is nested as deep.
const DEEPEST: usize = 64;

/// Reads the value of a `--set` word; its places are those of that word, from the given byte on.
pub type ReadValue<'r> = &'r dyn for<'a> Fn(&'a str, &dyn Fn(Bytes) -> Place) -> Option<Node<'a>>;

/// Patches the tree with one word after the other; later words win.
pub fn apply<'a>(
    root: &mut Vec<Entry<'a>>,
    settings: &'a [String],
    read: ReadValue<'_>,
    faults: &mut Vec<Fault>,
) {
    for (number, setting) in (0..).zip(settings) {
        if let Err(fault) = apply_one(root, number, setting, read) {
            faults.push(fault);
        }
    }
}

fn apply_one<'a>(
    root: &mut Vec<Entry<'a>>,
    number: u32,
    setting: &'a str,
    read: ReadValue<'_>,
) -> Result<(), Fault> {
    let whole = Place::Set(number, Bytes { start: 0, end: setting.len() });
    let Some((path, text)) = setting.split_once('=') else {
        return Err(Fault::new(&whole, "no value; write KEY=VALUE"));
    };
    let segments = split_path(path, number);
    if let Some((_, place)) = segments.iter().find(|(name, _)| name.is_empty()) {
        return Err(Fault::new(place, "a part of the key is empty; write KEY=VALUE"));
    }
    if segments.len() > DEEPEST {
        return Err(Fault::new(&whole, format!("more than {DEEPEST} parts in the key")));
    }
    let begin = path.len() + 1;
    let shift = |bytes: Bytes| {
        Place::Set(number, Bytes { start: bytes.start + begin, end: bytes.end + begin })
    };
    let text_place = Place::Set(number, Bytes { start: begin, end: setting.len() });
    let node = read(text, &shift)
        .unwrap_or_else(|| Node { value: Value::Text(text.into()), place: text_place });
    put(root, &segments, node)
}

/// The parts of a dotted path and where each stands; a part in quotes may have dots in it.
fn split_path(path: &str, number: u32) -> Vec<(&str, Place)> {
    let mut segments = Vec::new();
    let mut start = 0;
    loop {
        let rest = &path[start..];
        let quoted = rest.chars().next().filter(|letter| matches!(letter, '"' | '\''));
        let inner = quoted.and_then(|quote| {
            let close = rest[1..].find(quote)?;
            let after = &rest[close + 2..];
            (after.is_empty() || after.starts_with('.')).then(|| (&rest[1..=close], close + 2))
        });
        let (name, length) = inner.unwrap_or_else(|| {
            let length = rest.find('.').unwrap_or(rest.len());
            (rest[..length].trim(), length)
        });
        let bytes = Bytes { start, end: start + length };
        segments.push((name, Place::Set(number, bytes)));
        start += length + 1;
        if start > path.len() {
            return segments;
        }
    }
}

/// Puts `node` where the path leads, making the tables that are missing on the way.
fn put<'a>(
    root: &mut Vec<Entry<'a>>,
    segments: &[(&'a str, Place)],
    node: Node<'a>,
) -> Result<(), Fault> {
    let mut entries = root;
    // What tables of an array are called when they have no name: `handler`, then `handler-1`.
    let mut stem = String::new();
    let mut rest = segments;
    loop {
        let [(name, place), tail @ ..] = rest else {
            unreachable!("a path has at least one part, and the last one returns");
        };
        let at = entries.iter().position(|entry| entry.key == *name);
        if tail.is_empty() {
            let entry = Entry { key: (*name).into(), place: *place, node };
            match at {
                Some(at) => entries[at] = entry,
                None => entries.push(entry),
            }
            return Ok(());
        }
        let at = at.unwrap_or_else(|| {
            let node = Node { value: Value::Table(Vec::new()), place: *place };
            entries.push(Entry { key: (*name).into(), place: *place, node });
            entries.len() - 1
        });
        stem = next_stem(&stem, name);
        rest = tail;
        match &mut entries[at].node.value {
            Value::Table(inner) => entries = inner,
            Value::List(nodes) => {
                let [(wanted, place), tail @ ..] = rest else {
                    unreachable!("the last part returned above");
                };
                let index = find_table(nodes, &stem, wanted)
                    .ok_or_else(|| no_such_table(nodes, &stem, name, wanted, place))?;
                if tail.is_empty() {
                    return Err(Fault::new(
                        place,
                        format!("{} is a table; add one of its keys", mark(wanted)),
                    ));
                }
                stem = format!("{stem}-{}", index + 1);
                rest = tail;
                match &mut nodes[index].value {
                    Value::Table(inner) => entries = inner,
                    _ => unreachable!("only tables are found by name"),
                }
            }
            value => {
                let message = format!("{} is {}, and no table", mark(name), value.describe());
                return Err(Fault::new(place, message));
            }
        }
    }
}

/// The beginning of the default names inside `key`.
///
/// Parts of a middleware are numbered like their middleware, and nested steps like the step around
/// them; every other key begins a name of its own.
fn next_stem(stem: &str, key: &str) -> String {
    match key {
        "steps" => stem.to_owned(),
        "dispose" => "dispose-1".to_owned(),
        "before" | "after" | "terminate" => stem
            .strip_prefix("middleware")
            .map_or(key.to_owned(), |number| format!("{key}{number}")),
        "fallback" => format!("{stem}-fallback"),
        key => key.to_owned(),
    }
}

fn find_table(nodes: &[Node<'_>], stem: &str, wanted: &str) -> Option<usize> {
    nodes.iter().enumerate().position(|(index, node)| match name_of(node) {
        Some(name) => name == wanted,
        None => is_table(node) && format!("{stem}-{}", index + 1) == wanted,
    })
}

fn no_such_table(nodes: &[Node<'_>], stem: &str, key: &str, wanted: &str, place: &Place) -> Fault {
    let names: Vec<_> = nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| is_table(node))
        .map(|(index, node)| name_of(node).map_or_else(|| format!("{stem}-{}", index + 1), cut))
        .collect();
    let near = nearest(wanted, names.iter().map(String::as_str));
    let help = match near {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if names.is_empty() => None,
        None => Some(format!("there is {}", names[..names.len().min(20)].join(", "))),
    };
    Fault::new(place, format!("{} has no table of the name {}", mark(key), quote(wanted)))
        .help(help)
}

fn is_table(node: &Node<'_>) -> bool {
    matches!(node.value, Value::Table(_))
}

/// The name that a table was given.
fn name_of<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    let Value::Table(entries) = &node.value else { return None };
    let name = entries.iter().find(|entry| entry.key == "name")?;
    match &name.node.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
