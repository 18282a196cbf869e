//! The calling rule: one observation, all that is decided on account of it, then the next.

use std::cell::RefCell;

use crate::engine::Delivery;
use crate::event::{Decision, Entry, Event, Observation};
use crate::timeline::Moment;

/// Feeds one observation to the machine and logs it, its decisions behind it. What time alone had
/// due before stands ahead of it, behind a [`Observation::Tick`] of its own.
///
/// Answers where in the log the new entries begin.
pub fn record(
    machine: &mut Delivery,
    now: Moment,
    seen: Observation,
    log: &mut Vec<Entry>,
) -> usize {
    let first = log.len();
    if seen != Observation::Tick && machine.has_due(now, &seen) {
        feed(machine, now, Observation::Tick, log);
    }
    feed(machine, now, seen, log);
    first
}

fn feed(machine: &mut Delivery, now: Moment, seen: Observation, log: &mut Vec<Entry>) {
    thread_local! {
        static DECISIONS: RefCell<Vec<Decision>> = const { RefCell::new(Vec::new()) };
    }
    DECISIONS.with_borrow_mut(|decisions| {
        machine.observe(now, &seen, decisions);
        if seen == Observation::Tick && decisions.is_empty() {
            return;
        }
        log.push(Entry { at: now, event: Event::Observed(seen) });
        let decided = decisions.drain(..).map(Event::Decided);
        log.extend(decided.map(|event| Entry { at: now, event }));
    });
}
