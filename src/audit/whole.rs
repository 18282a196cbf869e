//! Whether the log is whole: what is missing from a record must never read as "proven".
//!
//! A log that was cut short (it does not say that observation ended) is not expected to be.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::{Decision, DeliveryLog, Event, EventLog, RunEvent};
use crate::report::{Delivery, Outcome, Termination};
use crate::timeline::Moment;
use crate::workload::{Pace, Spread, Workload};

/// Two ways to work out an instant of the schedule may differ by so much.
const ROUNDING: Duration = Duration::from_micros(1);

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
    messages(workload, log, missing);
    for delivery in deliveries.iter().filter(|it| it.termination == Termination::Proven) {
        for step in delivery.steps.iter().filter(|step| step.outcome == Outcome::Running) {
            missing.push(format!(
                "delivery {}: `{}` began and has no end, and nothing is owed for it",
                delivery.id, step.name
            ));
        }
    }
}

/// Every message is delivered until it is settled for good, and each of its deliveries is here once
/// (M1, P15).
fn messages(workload: &Workload, log: &EventLog, missing: &mut Vec<String>) {
    let mut attempts: BTreeMap<u32, Vec<&DeliveryLog>> = BTreeMap::new();
    for delivery in &log.deliveries {
        attempts.entry(delivery.message).or_default().push(delivery);
    }
    let was_stopped = log
        .run
        .iter()
        .any(|entry| matches!(entry.event, RunEvent::ShutdownBegan { .. } | RunEvent::Forced));
    let found = attempts.len();
    if let Some(expected) = expected(workload)
        && (found > expected
            || (found < expected && !(was_stopped && workload.load.pace.is_some())))
    {
        missing.push(format!("the log holds {found} of {expected} messages"));
    }
    for ((message, attempts), number) in attempts.iter().zip(1..) {
        if *message != number {
            missing.push(format!("message {number} is missing from the log"));
            return;
        }
        let again = attempts.iter().map(|delivery| {
            let is_retry = |event: &Event| *event == Event::Decided(Decision::Redeliver);
            delivery.entries.iter().filter(|entry| is_retry(&entry.event)).count()
        });
        let expected = 1 + again.sum::<usize>();
        if attempts.len() != expected {
            let found = attempts.len();
            missing.push(format!(
                "the log holds {found} of {expected} deliveries of message {number}"
            ));
        }
        for (delivery, attempt) in attempts.iter().zip(1..) {
            if delivery.attempt != attempt {
                missing.push(format!(
                    "message {number} has no delivery that is its attempt {attempt}"
                ));
            }
        }
        if let (Some(pace), Some(first)) = (&workload.load.pace, attempts.first()) {
            arrival(pace, number, first.arrived, missing);
        }
    }
}

/// How many messages there are, if nothing stops the run; `None` where only the draws know.
fn expected(workload: &Workload) -> Option<usize> {
    let load = &workload.load;
    match &load.pace {
        Some(Pace { spread: Spread::Poisson, during: Some(_), .. }) => None,
        _ => Some(load.deliveries as usize),
    }
}

/// An even load keeps its distance (P15).
fn arrival(pace: &Pace, message: u32, arrived: Moment, missing: &mut Vec<String>) {
    if pace.spread != Spread::Even {
        return;
    }
    let worked_out = Duration::from_secs_f64(
        f64::from(message - 1) * pace.rate.per.as_secs_f64() / pace.rate.amount,
    );
    if arrived.since(Moment::START).abs_diff(worked_out) > ROUNDING {
        missing.push(format!(
            "message {message}: P15: the rules say it arrives at {}us, the log says {}us",
            worked_out.as_micros(),
            arrived.micros()
        ));
    }
}
