//! The obligations of one delivery: when each was opened and due, and the receipt, if one was seen.
//!
//! Also says who held an overdue one, from what was sighted and from nothing else.

use std::time::Duration;

use super::course::{Course, Release};
use super::shape::Shape;
use crate::event::{
    Inside, Settlement, Sighting, StepId, Target, ThreadName, ThreadState, Verdict,
};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::report::Who;
use crate::timeline::Moment;

/// One obligation, in moments.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    pub kind: Obligation,
    /// Whose work it is; for an execution, whoever held it.
    pub step: Option<StepId>,
    pub opened: Moment,
    pub due: Moment,
    pub receipt: Option<(Moment, Evidence)>,
    target: Option<Target>,
}

impl Owed {
    pub(super) fn state(&self) -> ObligationState {
        match self.receipt {
            Some((at, _)) if at <= self.due => ObligationState::Proven,
            Some(_) => ObligationState::Late,
            None => ObligationState::Unproven,
        }
    }

    /// Whether it had been opened by `moment` and had no receipt then.
    pub(super) fn is_open_at(&self, moment: Moment) -> bool {
        self.opened <= moment && self.receipt.is_none_or(|(at, _)| at > moment)
    }
}

/// All obligations of a delivery: none unless it was admitted.
pub(super) fn all(shape: &Shape<'_>, course: &Course<'_>) -> Vec<Owed> {
    let Some(cutoffs) = course.cutoffs else { return Vec::new() };
    let mut all = vec![execution(course, cutoffs.admitted)];
    all.extend(course.opened.iter().map(|(opening, opened)| {
        Owed {
            kind: opened.kind,
            step: Some(opened.step),
            opened: opened.at,
            due: course.end,
            receipt: opened
                .closed
                .filter(|closed| opened.kind.accepts(closed.evidence))
                .map(|closed| (closed.at, closed.evidence)),
            target: Some(Target::Opened(*opening)),
        }
    }));
    if let Some(opened) = course.callbacks_due_at() {
        all.extend(course.due_callbacks().into_iter().map(|(_, step)| Owed {
            kind: Obligation::Callback,
            step: Some(step),
            opened,
            due: course.end,
            receipt: element_receipt(course, Obligation::Callback, step),
            target: Some(Target::Callback(step)),
        }));
    }
    all.extend(shape.plan.dispose.map(|step| Owed {
        kind: Obligation::Scope,
        step: Some(step),
        opened: cutoffs.admitted,
        due: course.end,
        receipt: element_receipt(course, Obligation::Scope, step),
        target: Some(Target::Scope),
    }));
    all.extend(settlement(shape, course));
    all
}

fn execution(course: &Course<'_>, admitted: Moment) -> Owed {
    // A destructor that panicked leaves the release in doubt for good (X1, P8).
    let pipeline = course.pipeline.as_ref().filter(|_| course.destructor_panicked.is_none());
    let receipt = pipeline.map(|pipeline| match pipeline.what {
        Release::Returned | Release::ReturnedAfterCut => (pipeline.at, Evidence::FutureReturned),
        Release::Dropped => (pipeline.at, Evidence::FutureDropped),
    });
    let mut owed = Owed {
        kind: Obligation::Execution,
        step: None,
        opened: admitted,
        due: course.end,
        receipt,
        target: Some(Target::Execution),
    };
    if owed.state() != ObligationState::Proven {
        let sighted = telling(course, Target::Execution).and_then(|seen| seen.step);
        owed.step = course.destructor_panicked.or(sighted).or(course.held_by());
    }
    owed
}

fn element_receipt(
    course: &Course<'_>,
    kind: Obligation,
    step: StepId,
) -> Option<(Moment, Evidence)> {
    let element = course.element(step);
    element.started?;
    let returned = element.returned.map(|returned| match returned.what {
        Verdict::Success | Verdict::Failure { .. } => (returned.at, Evidence::Returned),
        Verdict::Panic => (returned.at, Evidence::Panicked),
    });
    let dropped = element.dropped.map(|dropped| (dropped.at, Evidence::Dropped));
    returned.or(dropped).filter(|(_, evidence)| kind.accepts(*evidence))
}

fn settlement(shape: &Shape<'_>, course: &Course<'_>) -> Option<Owed> {
    shape.plan.settlement.as_ref()?;
    let settling = course.settling?;
    if settling.settlement == Settlement::Released {
        return None;
    }
    Some(Owed {
        kind: Obligation::Settlement,
        step: None,
        opened: settling.at,
        due: settling.due,
        receipt: settling.confirmed.map(|at| (at, Evidence::BrokerConfirmed)),
        target: None,
    })
}

/// Who held it, as far as that was seen; `None` when nothing was.
pub(super) fn who(course: &Course<'_>, owed: &Owed) -> Option<Who> {
    let target = owed.target?;
    let sightings: Vec<_> = sightings(course, target).collect();
    let opened = match target {
        Target::Opened(opening) => course.opened.get(&opening),
        Target::Execution | Target::Callback(_) | Target::Scope => None,
    };
    let last = telling(course, target);
    let thread = last.and_then(|last| last.thread).or(opened.and_then(|opened| opened.thread));
    if last.is_none() && thread.is_none() {
        return None;
    }
    // Ids are reused and holders change: CPU times are compared within one thread only.
    let same_thread = || {
        sightings.iter().filter(|(at, seen)| {
            *at >= owed.due && thread.is_some() && seen.thread == thread && seen.cpu.is_some()
        })
    };
    let baseline = same_thread().next();
    let at_the_end = opened
        .filter(|opened| opened.thread == thread)
        .and_then(|opened| opened.closed)
        .and_then(|closed| closed.cpu);
    let latest = same_thread()
        .next_back()
        .filter(|(at, _)| baseline.is_some_and(|(first, _)| first < at))
        .and_then(|(_, seen)| seen.cpu);
    let used = match (baseline.and_then(|(_, seen)| seen.cpu), at_the_end.or(latest)) {
        (Some(then), Some(now)) => Some(now.saturating_sub(then)),
        _ => None,
    };
    Some(Who {
        tid: thread.map(|ThreadName { tid, .. }| tid),
        start_ticks: thread.map(|ThreadName { start_ticks, .. }| start_ticks),
        state: last.and_then(|last| last.state).map(|state| state_word(state).to_owned()),
        cpu_us: used.map(micros),
        waiting_in: last.and_then(|last| last.waiting_in.as_deref()).map(str::to_owned),
        delivery: last
            .and_then(|last| last.holder)
            .filter(|holder| *holder != course.log.id)
            .map(|holder| holder.0),
        inside: last.and_then(|last| last.inside).map(|inside| inside_word(inside).to_owned()),
        since_us: last.and_then(|last| last.since).map(Moment::micros),
    })
}

/// The latest sighting that names a step, or else the latest.
fn telling<'c>(course: &'c Course<'_>, target: Target) -> Option<&'c Sighting> {
    let mut latest_first = sightings(course, target).rev().map(|(_, sighting)| sighting);
    let latest = latest_first.next()?;
    if latest.step.is_some() {
        return Some(latest);
    }
    latest_first.find(|sighting| sighting.step.is_some()).or(Some(latest))
}

fn sightings<'c>(
    course: &'c Course<'_>,
    target: Target,
) -> impl DoubleEndedIterator<Item = (Moment, &'c Sighting)> {
    course.sightings.iter().filter(move |(_, seen)| seen.target == target).copied()
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn state_word(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Running => "running",
        ThreadState::Sleeping => "sleeping",
        ThreadState::DiskSleep => "disk_sleep",
        ThreadState::Stopped => "stopped",
        ThreadState::Dead => "dead",
        ThreadState::Other => "other",
    }
}

fn inside_word(inside: Inside) -> &'static str {
    match inside {
        Inside::Poll => "poll",
        Inside::Destructor => "destructor",
        Inside::Closure => "closure",
    }
}
