//! Feeds a recorded log to a fresh engine and names the first entry that comes out different.
//!
//! Promises that a log which replays was decided by these rules and by its observations alone: no
//! clock, no race and no order of threads had a part in it that is not in the log. Does not judge
//! what the log says; that is the audit's business.

use std::fmt;
use std::sync::Arc;

use crate::engine::{Delivery, record};
use crate::event::{DeliveryId, DeliveryLog, Entry, Event, EventLog};
use crate::plan::Plan;

/// Where a replay first differs from its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In the log of which delivery.
    pub delivery: DeliveryId,
    /// At which place of that log, from 0.
    pub place: usize,
    /// What the record has there.
    pub recorded: Option<Entry>,
    /// What the engine has there now.
    pub replayed: Option<Entry>,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delivery, place, recorded, replayed } = self;
        write!(out, "delivery {}, entry {place}: recorded ", delivery.0)?;
        show(recorded.as_ref(), out)?;
        out.write_str(", replayed ")?;
        show(replayed.as_ref(), out)
    }
}

fn show(entry: Option<&Entry>, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    match entry {
        None => out.write_str("nothing"),
        Some(Entry { at, event: Event::Observed(seen) }) => write!(out, "{seen:?} at {at:?}"),
        Some(Entry { at, event: Event::Decided(decision) }) => {
            write!(out, "{decision:?} at {at:?}")
        }
    }
}

/// Replays every delivery of a log.
///
/// # Errors
/// The first difference, in the order of the deliveries.
pub fn replay(plan: &Arc<Plan>, log: &EventLog) -> Result<(), Box<Difference>> {
    log.deliveries.iter().try_for_each(|delivery| replay_delivery(plan, delivery))
}

fn replay_delivery(plan: &Arc<Plan>, log: &DeliveryLog) -> Result<(), Box<Difference>> {
    let mut machine = Delivery::new(Arc::clone(plan), log.attempt);
    let mut replayed = Vec::with_capacity(log.entries.len());
    for entry in &log.entries {
        if let Event::Observed(seen) = &entry.event {
            record(&mut machine, entry.at, seen.clone(), &mut replayed);
        }
    }
    let longest = log.entries.len().max(replayed.len());
    let place = (0..longest).find(|place| log.entries.get(*place) != replayed.get(*place));
    match place {
        None => Ok(()),
        Some(place) => Err(Box::new(Difference {
            delivery: log.id,
            place,
            recorded: log.entries.get(place).cloned(),
            replayed: replayed.get(place).cloned(),
        })),
    }
}
