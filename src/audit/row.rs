//! Turns what is known of a delivery into its row of the report (SPEC section 9).
//!
//! Adds no judgement beyond the worst of the obligations; all instants are truncated here and
//! nowhere before.

use super::course::{Course, Recorded, Release, Seen, Until};
use super::owed::{self, Owed};
use super::rules::Outcome;
use super::shape::Shape;
use crate::advice::{self, Case, Overdue};
use crate::event::{Settlement, StepId, StepOutcome, Verdict};
use crate::obligation::{Obligation, ObligationState};
use crate::report::{
    Callback, Cleanup, CourseState, Delivery, DeliveryResult, Execution, ExecutionState,
    LateReturn, ObligationRow, Outcome as StepWord, Progress, ReturnedIn, Scope, ScopeState,
    Settled, SettledState, SignalSeen, Step, TerminateState, Termination,
};
use crate::timeline::Moment;
use crate::workload::{CpuPlace, Work};

/// The row of one delivery; `observed_until` is when observation ended.
pub(super) fn row(
    shape: &Shape<'_>,
    course: &Course<'_>,
    owed: &[Owed],
    observed_until: Moment,
) -> Delivery {
    let (result, code) = result(course);
    let reading = course.read(Until::Freeze);
    let released = course.pipeline.as_ref().filter(|pipeline| !pipeline.is_late);
    let is_admitted = course.cutoffs.is_some();
    Delivery {
        id: course.log.id.0,
        message: course.log.message,
        attempt: course.log.attempt,
        arrived_us: course.log.arrived.micros(),
        admitted_us: course.cutoffs.map(|cutoffs| cutoffs.admitted.micros()),
        normal_cutoff_us: course.cutoffs.map(|cutoffs| cutoffs.normal.micros()),
        hard_cutoff_us: course.cutoffs.map(|cutoffs| cutoffs.hard.micros()),
        ended_us: match released {
            Some(released) => Some(released.at.micros()),
            None => is_admitted
                .then_some(course.end)
                .filter(|end| course.cut_short_at.is_none_or(|cut| *end <= cut))
                .map(Moment::micros),
        },
        result,
        code,
        termination: if course.is_left_open() { Termination::Unproven } else { termination(owed) },
        returned_in: released.filter(|it| it.what == Release::Returned).map(|_| {
            if course.signal.is_some() { ReturnedIn::Cooperative } else { ReturnedIn::Normal }
        }),
        signal: course.signal.map(|signal| SignalSeen {
            reason: signal.reason,
            at_us: signal.at.micros(),
            observed_us: course.signal_seen.map(Moment::micros),
        }),
        window_end_us: course.window_end.map(Moment::micros),
        reached: reading.reached.map(|stage| stage.word().to_owned()),
        degraded: course.degraded,
        cleanup: cleanup(course),
        execution: execution(course, released),
        callbacks: callbacks(shape, course, &reading.before, &reading.after),
        scope: scope(shape, course, observed_until),
        settlement: settled(shape, course, observed_until),
        steps: in_order(shape.listed().filter_map(|step| step_row(shape, course, step)).collect()),
        obligations: owed.iter().map(|owed| obligation(shape, course, owed)).collect(),
        overlaps: Vec::new(),
    }
}

fn result(course: &Course<'_>) -> (DeliveryResult, Option<String>) {
    if course.cutoffs.is_none() {
        return (DeliveryResult::NotStarted, None);
    }
    match course.outcome() {
        Outcome::Returned(Verdict::Success) => (DeliveryResult::Success, None),
        Outcome::Returned(Verdict::Failure { code, .. }) => {
            (DeliveryResult::Failure, Some(code.to_string()))
        }
        Outcome::Returned(Verdict::Panic) => (DeliveryResult::Panic, None),
        Outcome::Interrupted(_) => (DeliveryResult::Interrupted, None),
    }
}

fn termination(owed: &[Owed]) -> Termination {
    match owed.iter().map(Owed::state).max() {
        None => Termination::NothingStarted,
        Some(ObligationState::Proven) => Termination::Proven,
        Some(ObligationState::Late) => Termination::Late,
        Some(ObligationState::Unproven) => Termination::Unproven,
    }
}

fn cleanup(course: &Course<'_>) -> Cleanup {
    let is_none_due = course.due_callbacks().is_empty() && course.scope_state() == ScopeState::None;
    if course.cutoffs.is_none() || is_none_due {
        Cleanup::NoneDue
    } else if course.is_clean() {
        Cleanup::Complete
    } else if course.is_left_unfrozen() && !course.has_unclean() {
        // What would have been due is not known.
        Cleanup::NoneDue
    } else {
        Cleanup::Failed
    }
}

fn execution(course: &Course<'_>, released: Option<&Seen<Release>>) -> Execution {
    let state = match released.map(|released| released.what) {
        Some(Release::Returned | Release::ReturnedAfterCut) => ExecutionState::Returned,
        Some(Release::Dropped) => ExecutionState::Dropped,
        None if course.cutoffs.is_none() => ExecutionState::NotStarted,
        None => ExecutionState::Unreleased,
    };
    Execution {
        state,
        at_us: released.map(|released| released.at.micros()),
        late_return: course.late_verdict().map(|verdict| match verdict {
            Verdict::Success => LateReturn::Success,
            Verdict::Failure { .. } => LateReturn::Failure,
            Verdict::Panic => LateReturn::Panic,
        }),
    }
}

fn callbacks(
    shape: &Shape<'_>,
    course: &Course<'_>,
    before: &[CourseState],
    after: &[CourseState],
) -> Vec<Callback> {
    let due = course.due_callbacks();
    let middleware = shape.plan.middleware.iter().zip(&shape.workload.middleware);
    let rows = middleware.zip(before.iter().zip(after)).enumerate();
    rows.map(|(position, ((shape, written), (before, after)))| {
        let due = due.iter().find(|(due, _)| *due == position).map(|(_, step)| *step);
        // What was interrupted of the course went with the pipeline's frame.
        let released = course.pipeline.as_ref().filter(|pipeline| !pipeline.is_late);
        let span_of = |step: Option<StepId>, with_the_frame: Option<Moment>| {
            let element = step.map(|step| course.element(step)).unwrap_or_default();
            let ended = element.started.and(element.ended_in_time().or(with_the_frame));
            (element.started.map(Moment::micros), ended.map(Moment::micros))
        };
        let with_the_frame = released.map(|released| released.at);
        let (before_started_us, before_ended_us) = span_of(shape.before, with_the_frame);
        let (after_started_us, after_ended_us) = span_of(shape.after, with_the_frame);
        let (started_us, ended_us) = match due {
            Some(terminate) => span_of(Some(terminate), None),
            None => (after_started_us, after_ended_us),
        };
        Callback {
            middleware: written.name.clone(),
            before: *before,
            after: *after,
            terminate: due.map_or(TerminateState::NotDue, |step| course.terminate_state(step)),
            started_us,
            ended_us,
            before_started_us,
            before_ended_us,
            after_started_us,
            after_ended_us,
        }
    })
    .collect()
}

fn scope(shape: &Shape<'_>, course: &Course<'_>, observed_until: Moment) -> Scope {
    let state = course.scope_state();
    let element = shape.plan.dispose.map(|step| course.element(step));
    let started = element.as_ref().and_then(|element| element.started);
    let at = match state {
        ScopeState::None | ScopeState::NotRun => None,
        ScopeState::Disposed | ScopeState::Failed => {
            element.and_then(|element| element.returned).map(|returned| returned.at)
        }
        ScopeState::TimedOut => Some(course.end.min(observed_until)),
    };
    Scope { state, started_us: started.map(Moment::micros), at_us: at.map(Moment::micros) }
}

fn settled(shape: &Shape<'_>, course: &Course<'_>, observed_until: Moment) -> Settled {
    if shape.plan.settlement.is_none() {
        return Settled { decision: None, state: SettledState::None, at_us: None };
    }
    if course.cutoffs.is_none() {
        let at_us = course.not_started.map(Moment::micros);
        let decision = Some(Settlement::Released);
        return Settled { decision, state: SettledState::Released, at_us };
    }
    let Some(settling) = course.settling else {
        let at_us = course.revoked.map(Moment::micros);
        let state = match course.revoked {
            Some(_) => SettledState::Revoked,
            None if !course.is_released() && !course.is_left_open() => SettledState::Revoked,
            // The log ends before anything was decided: nothing is known to have been sent.
            None => SettledState::Unresolved,
        };
        return Settled { decision: None, state, at_us };
    };
    let (state, at) = match settling.confirmed {
        _ if settling.settlement == Settlement::Released => {
            (SettledState::Released, Some(settling.at))
        }
        Some(at) if !settling.expired => (SettledState::Confirmed, Some(at)),
        _ => (SettledState::Unresolved, Some(settling.due).filter(|due| *due <= observed_until)),
    };
    Settled { decision: Some(settling.settlement), state, at_us: at.map(Moment::micros) }
}

/// A row whose records have no number yet, and where they stand in the log.
struct StepRow {
    row: Step,
    started: Option<Recorded>,
    ended: Option<Recorded>,
}

fn step_row(shape: &Shape<'_>, course: &Course<'_>, id: StepId) -> Option<StepRow> {
    let step = shape.step(id)?;
    let executions = course.executions.get(id.0 as usize)?;
    let was_skipped = executions.was_skipped();
    let ended = executions.last_ended.as_ref();
    // Told to start, and its frame was gone before its turn at a worker came.
    let was_never_polled = !executions.was_polled && ended.is_none() && course.pipeline.is_some();
    let started = executions.last_started.filter(|_| !was_skipped && !was_never_polled);
    let outcome = match ended.map(|(_, end)| end.outcome) {
        Some(StepOutcome::Success) => StepWord::Success,
        Some(StepOutcome::Failure) => StepWord::Failure,
        Some(StepOutcome::Panic) => StepWord::Panic,
        Some(StepOutcome::Dropped) => StepWord::Dropped,
        Some(StepOutcome::Skipped) => StepWord::Skipped,
        None if started.is_some() => StepWord::Running,
        None => StepWord::Skipped,
    };
    let traces = ended.and_then(|(_, end)| end.traces).unwrap_or_default();
    let ended_record = ended.filter(|_| !was_skipped).map(|(recorded, _)| *recorded);
    let row = Step {
        name: step.name.clone(),
        stage: step.stage.word().to_owned(),
        kind: step.work.kind().to_owned(),
        progress: progress(&step.work, outcome),
        started_us: started.map(|recorded| recorded.at.micros()),
        started_order: None,
        ended_us: ended_record.map(|recorded| recorded.at.micros()),
        ended_order: None,
        outcome,
        code: ended.and_then(|(_, end)| end.code.as_deref()).map(str::to_owned),
        polls: ended.map_or(0, |(_, end)| end.polls),
        attempts: executions.begun
            - u32::from((was_skipped || was_never_polled) && executions.begun > 0),
        left: ended.and_then(|(_, end)| end.left),
        over_us: ended
            .and_then(|(_, end)| end.over)
            .map(|over| u64::try_from(over.as_micros()).unwrap_or(u64::MAX)),
        effect: traces.effect,
        closed_by: traces.closed_by,
    };
    Some(StepRow { row, started, ended: ended_record })
}

/// What a step needed in order to get on.
fn progress(work: &Work, outcome: StepWord) -> Progress {
    match (work, outcome) {
        // Dropping the future that waits for a thread takes nothing from the thread.
        (
            Work::Blocking { .. }
            | Work::Cpu { on: CpuPlace::Thread, .. }
            | Work::Read { .. }
            | Work::Write(_),
            outcome,
        ) if outcome != StepWord::Skipped => Progress::ByItself,
        (_, StepWord::Dropped | StepWord::Skipped) => Progress::Never,
        (Work::Sequence { .. } | Work::Parallel { .. } | Work::Choice { .. }, _) => {
            Progress::WhenAnotherEnds
        }
        (
            Work::Cpu { .. }
            | Work::Cooperative { .. }
            | Work::Blocking { .. }
            | Work::Sleep { .. }
            | Work::Tcp(_)
            | Work::Http(_)
            | Work::Read { .. }
            | Work::Write(_)
            | Work::Polls { .. },
            _,
        ) => Progress::WhenPolled,
    }
}

/// The rows with their records numbered from 1. A step that its own budget or timeout ended has two
/// in a row, of which `ended_order` is the first: it was dropped, and then its failure was recorded
/// (P11).
fn in_order(mut steps: Vec<StepRow>) -> Vec<Step> {
    let mut records: Vec<(Recorded, &mut Option<u32>, u32)> = Vec::with_capacity(steps.len() * 2);
    for step in &mut steps {
        let ends = if step.row.has_timed_out() { 2 } else { 1 };
        records.extend(step.started.map(|it| (it, &mut step.row.started_order, 1)));
        records.extend(step.ended.map(|it| (it, &mut step.row.ended_order, ends)));
    }
    records.sort_by_key(|(recorded, ..)| *recorded);
    let mut next = 1;
    for (_, order, width) in records {
        *order = Some(next);
        next += width;
    }
    steps.into_iter().map(|step| step.row).collect()
}

fn obligation(shape: &Shape<'_>, course: &Course<'_>, owed: &Owed) -> ObligationRow {
    let state = owed.state();
    let is_gap = state != ObligationState::Proven;
    let who = if is_gap { owed::who(course, owed) } else { None };
    let advice = is_gap.then(|| {
        advice::advise(&Case {
            overdue: overdue(course, owed),
            state,
            step: owed.step.and_then(|step| shape.step(step)),
            who: who.as_ref(),
            allowed: owed.due.since(owed.opened),
        })
    });
    let closed = owed.receipt.map(|(at, _)| at.micros());
    ObligationRow {
        kind: owed.kind,
        step: owed.step.and_then(|step| shape.name(step)),
        opened_us: owed.opened.micros(),
        due_us: owed.due.micros(),
        state,
        evidence: owed.receipt.map(|(_, evidence)| evidence),
        closed_us: closed,
        late_by_us: closed
            .filter(|_| state == ObligationState::Late)
            .map(|closed| closed - owed.due.micros()),
        who,
        advice,
    }
}

fn overdue(course: &Course<'_>, owed: &Owed) -> Overdue {
    if course.cut_short_at.is_some_and(|cut| owed.receipt.is_none() && cut <= owed.due) {
        return Overdue::CutShort;
    }
    match (owed.kind, owed.step) {
        (Obligation::Execution, _) if course.destructor_panicked.is_some() => {
            Overdue::PanickedDestructor
        }
        (Obligation::Execution, _) => Overdue::Execution,
        (Obligation::Task, _) => Overdue::Task,
        (Obligation::Thread, _) => Overdue::Thread,
        (Obligation::Connection, _) => Overdue::Connection,
        (Obligation::Callback, Some(step)) => Overdue::Callback(course.terminate_state(step)),
        (Obligation::Callback, None) => Overdue::Callback(TerminateState::NotRun),
        (Obligation::Scope, _) if course.is_released() => Overdue::Scope(course.scope_state()),
        (Obligation::Scope, _) => Overdue::UnreleasedScope,
        (Obligation::Settlement, _) => Overdue::Settlement,
    }
}
