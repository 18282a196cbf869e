//! The shell around the engine: what makes a run happen.
//!
//! [`record`] is the calling rule that every driver obeys: what is due is decided first, then one
//! observation is taken, and both are logged with all that follows. [`real`] is the driver on the
//! real clock: the workload on its own runtime, the cutoffs on a thread that it cannot starve.

pub mod real;

mod cell;
mod control;
mod floor;
mod process;
mod rank;
pub mod signals;
mod task;
mod watch;

use std::cell::RefCell;

use crate::engine::Delivery;
use crate::event::{Decision, Entry, Event, Observation};
use crate::timeline::Moment;

pub(crate) use cell::Cell;
pub(crate) use control::Join;
pub(crate) use process::{this_thread, this_thread_cpu};
pub(crate) use watch::{Place, Presence, Stay};

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
