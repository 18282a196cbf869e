//! What the log may say when a step that connects has ended: its connection is gone before it, and a
//! limit of its own ran out no sooner than the file says, and never where only the signal counts (P2).

use std::time::Duration;

use super::course::Course;
use super::disagree::shown;
use crate::event::{StepEnd, StepOutcome};
use crate::obligation::Obligation;
use crate::timeline::Moment;
use crate::workload::{Connection, Workload};

/// A difference between the rules and the log.
pub(super) struct Found {
    pub rule: &'static str,
    pub what: &'static str,
    pub worked_out: String,
    pub logged: String,
}

/// Every difference that this end of a step shows.
pub(super) fn ended(
    workload: &Workload,
    course: &Course<'_>,
    at: Moment,
    end: &StepEnd,
) -> Vec<Found> {
    let Some(step) = workload.steps.get(end.step.0 as usize) else { return Vec::new() };
    let Some(connection) = step.work.connection() else { return Vec::new() };
    let mut found = Vec::new();
    let started = course.executions.get(end.step.0 as usize).and_then(|it| it.last_started);
    let started = started.map_or(Moment::START, |recorded| recorded.at);
    let its_own = course
        .opened
        .values()
        .filter(|opened| opened.kind == Obligation::Connection && opened.step == end.step);
    if its_own.clone().any(|opened| opened.closed.is_none()) {
        found.push(Found {
            rule: "section 4",
            what: "connection of a step that has ended",
            worked_out: String::from("closed before"),
            logged: format!("{} still had one", step.name),
        });
    }
    if end.outcome == StepOutcome::Success && !its_own.clone().any(|opened| opened.at >= started) {
        found.push(Found {
            rule: "section 4",
            what: "connection of a step that succeeded",
            worked_out: String::from("opened before"),
            logged: format!("{} had none", step.name),
        });
    }
    let is_own_word = step.fail.as_ref().is_some_and(|fail| Some(&fail.code) == end.code.as_ref());
    let limit = end.code.as_deref().and_then(|code| limit(connection, code));
    if let Some(limit) = limit.filter(|_| end.outcome == StepOutcome::Failure && !is_own_word) {
        let earliest = started + limit;
        if at < earliest {
            found.push(Found {
                rule: "P12",
                what: "end of a step by its own limit",
                worked_out: format!("not before {}", shown(earliest)),
                logged: shown(at),
            });
        }
        let cutoff = course.cutoffs.map(|cutoffs| cutoffs.normal);
        let signal = course.signal.map(|signal| signal.at);
        if course.is_in_pipeline(end.step)
            && let Some(last) = cutoff.into_iter().chain(signal).min()
            && earliest >= last
        {
            found.push(Found {
                rule: "P2",
                what: "end of a step by its own limit",
                worked_out: format!("none that is due from {} on", shown(last)),
                logged: format!("one that is due at {} or later", shown(earliest)),
            });
        }
    }
    found
}

fn limit(connection: &Connection, code: &str) -> Option<Duration> {
    match code {
        "TIMEOUT_CONNECT" => connection.connect_timeout,
        "TIMEOUT_READ" => connection.read_timeout,
        "TIMEOUT_IDLE" => connection.idle_timeout,
        _ => None,
    }
}
