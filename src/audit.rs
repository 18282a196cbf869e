//! Judges a run from its workload, its plan and its log.
//!
//! Reads nothing else, so a stored run can be judged again and must get the same verdict. Works out
//! every instant and decision from the raw settings, and lists each one in which the log differs:
//! two readings of the rules are worth more than one.
//! Shares no arithmetic with the engine, never panics at an odd log, and lets nothing count that
//! came after observation ended.

mod course;
mod disagree;
mod io;
mod owed;
mod row;
mod rules;
mod shape;
mod shutdown;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::{Decision, DeliveryLog, Event, EventLog, RunEvent};
use crate::plan::Plan;
use crate::report::{Delivery, Lateness, Shutdown};
use crate::timeline::Moment;
use crate::workload::Workload;
use course::Course;
use disagree::Referee;
use owed::Owed;
use shape::Shape;

/// What the audit found.
#[derive(Clone, Debug, PartialEq)]
pub struct Audit {
    /// One row for each delivery, in the order of the log.
    pub deliveries: Vec<Delivery>,
    /// The shutdown, if one began.
    pub shutdown: Option<Shutdown>,
    /// How late signals and cuts were decided.
    pub lateness: Lateness,
    /// Where the log and this reading of the rules differ: each a delivery, a rule and both values.
    pub disagreements: Vec<String>,
}

/// Judges the run that `log` records.
pub fn judge(workload: &Workload, plan: &Plan, log: &EventLog) -> Audit {
    let shape = Shape::new(workload, plan);
    let observed_until = observed_until(log);
    let is_cut_short = log.run.iter().any(|entry| entry.event == RunEvent::CutShort);
    let mut deliveries = Vec::with_capacity(log.deliveries.len());
    let mut disagreements = Vec::new();
    let mut lateness = Vec::new();
    let mut last_left = Moment::START;
    // The admissions and obligations of messages that were delivered more than once (P17).
    let mut attempts: BTreeMap<u32, Vec<Attempt>> = BTreeMap::new();
    disagree::run(log, &mut disagreements);
    for log in &log.deliveries {
        let mut referee = Referee::new(workload, plan, log.id, &mut disagreements);
        let mut course = walk(&shape, log, observed_until, &mut referee, &mut lateness);
        if is_cut_short {
            course.cut_short_at = Some(observed_until);
        } else {
            close(&course, observed_until, &mut referee);
        }
        let owed = owed::all(&shape, &course);
        let mut delivery = row::row(&shape, &course, &owed, observed_until);
        if let Some(cutoffs) = course.cutoffs {
            let earlier = attempts.entry(log.message).or_default();
            delivery.overlaps = overlaps(earlier, log.attempt, cutoffs.admitted);
            earlier.push(Attempt { id: log.id.0, attempt: log.attempt, owed });
            let left = course.slot_freed.unwrap_or(course.end).min(observed_until);
            last_left = last_left.max(left);
        }
        deliveries.push(delivery);
    }
    shutdown::check(workload, log, &mut disagreements);
    whole::check(workload, log, &deliveries, &mut disagreements);
    let shutdown = shutdown::row(log, last_left, &deliveries);
    Audit { deliveries, shutdown, lateness: percentiles(lateness), disagreements }
}

/// One delivery of a message, for those that come after it.
struct Attempt {
    id: u32,
    attempt: u32,
    owed: Vec<Owed>,
}

fn observed_until(log: &EventLog) -> Moment {
    let is_end = |event: RunEvent| matches!(event, RunEvent::ObservationEnded | RunEvent::CutShort);
    let ended = log.run.iter().find(|entry| is_end(entry.event));
    ended.map_or(Moment::NEVER, |entry| entry.at)
}

fn walk<'a>(
    shape: &'a Shape<'a>,
    log: &'a DeliveryLog,
    observed_until: Moment,
    referee: &mut Referee<'_>,
    lateness: &mut Vec<Duration>,
) -> Course<'a> {
    let mut course = Course::new(shape, log);
    for entry in log.entries.iter().filter(|entry| entry.at <= observed_until) {
        referee.compare(&course, entry);
        if let Event::Decided(Decision::Signal { due, .. } | Decision::Cut { due }) = entry.event {
            // A cutoff that lay in the past when a root made it known was due when it was known.
            lateness.push(entry.at.since(due.max(course.cutoff_known)));
        }
        course.take(entry);
    }
    course
}

fn close(course: &Course<'_>, observed_until: Moment, referee: &mut Referee<'_>) {
    let last = course.log.entries.last().map_or(course.log.arrived, |entry| entry.at);
    let is_ended = observed_until != Moment::NEVER;
    referee.close(course, if is_ended { observed_until } else { last });
}

/// The earlier attempts that still had open obligations at `admitted` (P17).
fn overlaps(earlier: &[Attempt], attempt: u32, admitted: Moment) -> Vec<u32> {
    let is_open = |earlier: &&Attempt| {
        earlier.attempt < attempt && earlier.owed.iter().any(|owed| owed.is_open_at(admitted))
    };
    earlier.iter().filter(is_open).map(|earlier| earlier.id).collect()
}

fn percentiles(mut lateness: Vec<Duration>) -> Lateness {
    lateness.sort_unstable();
    let nearest_rank = |percent: usize| {
        let rank = (lateness.len() * percent).div_ceil(100);
        lateness.get(rank.saturating_sub(1)).map(|span| micros(*span))
    };
    Lateness { p50: nearest_rank(50), p99: nearest_rank(99), max: nearest_rank(100) }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
