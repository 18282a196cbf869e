//! Hands every entry of a running load to whoever reads along.
//!
//! A send never waits, whatever the reader does: entries queue up until it takes them, which is no
//! more than the run's own record holds anyway. An entry is sent under the lock that gave it its
//! place, so that those of one delivery, and those of the run, come in their order.

use std::sync::mpsc::Sender;
use std::time::SystemTime;

use crate::engine::Ticket;
use crate::event::{Entry, RunEntry};
use crate::events::{DeliveryLine, Line, RunLine};
use crate::report;

/// The way to a reader.
pub type Feed = Sender<Happening>;

/// What a reader is told.
#[derive(Debug)]
pub enum Happening {
    /// The run begins; told once, before anything else.
    Began(Began),
    /// An entry of the record. The last one is that observation ended.
    Entry(Line),
}

/// What is known of a run when it begins.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    /// When, by the wall clock.
    pub started: SystemTime,
    /// The class in which cutoffs are decided.
    pub control: report::Control,
    /// The niceness of the workload's threads.
    pub workload_nice: i32,
}

/// Tells of entries of a delivery, whose log they continue at place `first`.
pub(crate) fn tell(feed: &Feed, whose: Ticket, first: usize, entries: &[Entry]) {
    for (place, entry) in (first..).zip(entries) {
        let line = DeliveryLine {
            delivery: whose.id,
            message: whose.message,
            attempt: whose.attempt,
            arrived: whose.arrived,
            place: place as u32,
            at: entry.at,
            event: entry.event.clone(),
        };
        // A reader that is gone has said why to whoever set it up.
        let _ = feed.send(Happening::Entry(Line::Delivery(line)));
    }
}

/// Tells of an entry of the run's own log.
pub(crate) fn tell_run(feed: &Feed, place: usize, entry: RunEntry) {
    let line = RunLine { place: place as u32, at: entry.at, run: entry.event };
    let _ = feed.send(Happening::Entry(Line::Run(line)));
}
