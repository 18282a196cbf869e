//! Whether the log is whole: what is missing from a record must never read as "proven".
//!
//! A log that was cut short (it does not say that observation ended) is not expected to be.

use crate::event::{Decision, Event, EventLog, RunEvent};
use crate::report::{Delivery, Outcome, Termination};
use crate::workload::Workload;

/// Names what the log ought to hold and does not.
pub(super) fn check(
    workload: &Workload,
    log: &EventLog,
    deliveries: &[Delivery],
    missing: &mut Vec<String>,
) {
    if !log.run.iter().any(|entry| entry.event == RunEvent::ObservationEnded) {
        return;
    }
    let entries = log.deliveries.iter().flat_map(|delivery| &delivery.entries);
    let again = entries.filter(|entry| entry.event == Event::Decided(Decision::Redeliver)).count();
    let expected = workload.load.deliveries as usize + again;
    if deliveries.len() != expected {
        missing.push(format!("the log holds {} of {expected} deliveries", deliveries.len()));
    }
    for delivery in deliveries.iter().filter(|it| it.termination == Termination::Proven) {
        for step in delivery.steps.iter().filter(|step| step.outcome == Outcome::Running) {
            missing.push(format!(
                "delivery {}: `{}` began and has no end, and nothing is owed for it",
                delivery.id, step.name
            ));
        }
    }
}
