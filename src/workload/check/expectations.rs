//! What a workload promises of its own run.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::Check;
use crate::obligation::{Obligation, ObligationState};
use crate::workload::fault::{Fault, nearest};
use crate::workload::tree::quote;
use crate::workload::walk::{Given, Value};
use crate::workload::{Expect, ExpectGap, ExpectRow};

impl<'a> Check<'a> {
    pub(super) fn expect(&mut self, given: &Given) -> Expect {
        let mut rows = Vec::new();
        for (name, item) in given.all() {
            match &item.value {
                Value::Bound(bound, written) => rows.push(ExpectRow {
                    what: name.to_owned(),
                    bound: (**bound).clone(),
                    written: (*written).to_owned(),
                }),
                Value::Map(items) => rows.extend(items.iter().filter_map(|item| {
                    let Value::Bound(bound, written) = &item.value else { return None };
                    Some(ExpectRow {
                        what: format!("{name}.{}", item.entry.key),
                        bound: (**bound).clone(),
                        written: (*written).to_owned(),
                    })
                })),
                _ => {}
            }
        }
        // The last to need the names. In their order, so that one file always gets the same advice.
        let names: BTreeSet<_> = std::mem::take(&mut self.names).into_keys().collect();
        let gaps = given.tables("gap").iter().map(|gap| self.gap(gap, &names)).collect();
        Expect { rows, gaps }
    }

    fn gap(&mut self, given: &Given, names: &BTreeSet<Cow<'a, str>>) -> ExpectGap {
        let step = given.text("step");
        if let (Some(step), Some(item)) = (step, given.get("step"))
            && !names.contains(step)
        {
            let near = nearest(step, names.iter().map(|name| &**name));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            let message = format!("no step has the name {}", quote(step));
            self.faults.push(Fault::new(item.place(), message).help(help));
        }
        ExpectGap {
            step: step.map(str::to_owned),
            kind: given.word("kind").and_then(obligation),
            state: given.word("state").map(|word| match word {
                "late" => ObligationState::Late,
                _ => ObligationState::Unproven,
            }),
            count: given.whole("count"),
        }
    }
}

fn obligation(word: &str) -> Option<Obligation> {
    match word {
        "execution" => Some(Obligation::Execution),
        "task" => Some(Obligation::Task),
        "thread" => Some(Obligation::Thread),
        "connection" => Some(Obligation::Connection),
        "callback" => Some(Obligation::Callback),
        "scope" => Some(Obligation::Scope),
        "settlement" => Some(Obligation::Settlement),
        _ => None,
    }
}
