//! The records of a delivery's steps in their one order: started, completed, dropped, timed out.
//!
//! Read from the rows of the steps, which keep the last execution of each; an earlier attempt of the
//! same step has no records here, and callbacks and middleware have none at all.

use super::{Delivery, Outcome, Step};

/// One record of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place among the delivery's step records, from 1.
    pub order: u32,
    pub word: RecordWord,
    pub step: &'a Step,
}

/// What was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordWord {
    Started,
    /// Returned with success.
    Completed,
    Failed,
    Panicked,
    /// Dropped before its end.
    Dropped,
    /// Its timeout or its poll budget ended it; it was dropped just before.
    TimedOut,
}

impl Delivery {
    /// What its steps went through, in order.
    pub fn records(&self) -> Vec<Record<'_>> {
        let mut records: Vec<Record<'_>> = self.steps.iter().flat_map(of_step).collect();
        records.sort_by_key(|record| record.order);
        records
    }
}

impl Step {
    /// Whether its own timeout or poll budget ended it: a drop with a failure to follow.
    pub fn has_timed_out(&self) -> bool {
        self.outcome == Outcome::Dropped
            && matches!(self.code.as_deref(), Some("TIMEOUT_TOTAL" | "POLL_BUDGET_EXHAUSTED"))
    }
}

fn of_step(step: &Step) -> impl Iterator<Item = Record<'_>> {
    let record = |order: Option<u32>, word| order.map(|order| Record { order, word, step });
    let end = match step.outcome {
        Outcome::Success => Some(RecordWord::Completed),
        Outcome::Failure => Some(RecordWord::Failed),
        Outcome::Panic => Some(RecordWord::Panicked),
        Outcome::Dropped => Some(RecordWord::Dropped),
        Outcome::Skipped | Outcome::Running => None,
    };
    let timed_out = step.ended_order.filter(|_| step.has_timed_out()).map(|order| order + 1);
    [
        record(step.started_order, RecordWord::Started),
        end.and_then(|word| record(step.ended_order, word)),
        record(timed_out, RecordWord::TimedOut),
    ]
    .into_iter()
    .flatten()
}
