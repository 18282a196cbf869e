//! The records of a delivery's steps, one on each line, in their order.

use super::page::printable;
use crate::report::words::count;
use crate::report::{Delivery, Record, RecordWord};

/// Each a place, a word and a step, with what is known of that end beside it.
pub(super) fn lines(delivery: &Delivery) -> Vec<String> {
    let records = delivery.records();
    let names = records.iter().map(|record| printable(&record.step.name));
    let widest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    records
        .iter()
        .map(|record| {
            format!(
                "  {:>3}  {:<9}  {:<widest$}  {}",
                record.order,
                word(record.word),
                printable(&record.step.name),
                beside(record)
            )
        })
        .collect()
}

fn word(word: RecordWord) -> &'static str {
    match word {
        RecordWord::Started => "started",
        RecordWord::Completed => "completed",
        RecordWord::Failed => "failed",
        RecordWord::Panicked => "panicked",
        RecordWord::Dropped => "dropped",
        RecordWord::TimedOut => "timed out",
    }
}

/// The polls until that end, the code, and what a dropped one had left.
fn beside(record: &Record<'_>) -> String {
    let step = record.step;
    let mut parts = Vec::new();
    match record.word {
        RecordWord::Started => {}
        RecordWord::TimedOut => parts.extend(step.code.as_deref().map(printable)),
        RecordWord::Completed | RecordWord::Failed | RecordWord::Panicked | RecordWord::Dropped => {
            parts.push(count(step.polls, "poll", "polls"));
            parts.extend(step.left.map(|left| format!("{left} left")));
            if !step.has_timed_out() {
                parts.extend(step.code.as_deref().map(printable));
            }
        }
    }
    parts.join(", ")
}
