//! Pipelines that were cut, and what is known of their release (W4, X1 to X5).

use super::world::*;
use crate::event::{Decision, Observation, Settlement, StepOutcome, Verdict};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::report::{
    Cleanup, CourseState, DeliveryResult, ExecutionState, LateReturn, Outcome, ScopeState,
    SettledState, TerminateState, Termination,
};
use crate::timeline::Reason;
use crate::workload::Stage;

/// Cut at 1.625 s and dropped there: callbacks, then the scope.
fn cut_and_cleaned_up(world: World, [work, tx, dispose]: [crate::event::StepId; 3]) -> World {
    let mut world = world;
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .step_ended(1_625_000, work, StepOutcome::Dropped)
        .drop_pipeline(1_625_000)
        .call(1_625_000, tx, 1_906_250)
        .end(1_630_000, tx, Verdict::Success)
        .dispose(1_630_000, dispose, 2_000_000)
        .end(1_640_000, dispose, Verdict::Success)
        .settled(1_640_000, Settlement::DeadLetter);
    world.log.deliveries.push(course.log);
    world
}

#[test]
fn a_cut_is_cleaned_up_and_settled_after_the_drop() {
    let mut world = World::new();
    let tx = world.callback("tx");
    let work = world.handler("work", sleep());
    let dispose = world.scope();
    let row = cut_and_cleaned_up(world, [work, tx, dispose]).rows([]).remove(0);
    assert_eq!(row.result, DeliveryResult::Interrupted);
    assert_eq!(row.termination, Termination::Proven);
    assert_eq!(row.returned_in, None);
    assert_eq!(row.cleanup, Cleanup::Complete);
    assert_eq!(row.execution.state, ExecutionState::Dropped);
    assert_eq!(row.execution.at_us, Some(1_625_000));
    assert_eq!(row.ended_us, Some(1_625_000));
    assert_eq!(callback(&row, "tx").terminate, TerminateState::Completed);
    assert_eq!(callback(&row, "tx").started_us, Some(1_625_000));
    assert_eq!(callback(&row, "tx").ended_us, Some(1_630_000));
    assert_eq!((row.scope.state, row.scope.at_us), (ScopeState::Disposed, Some(1_640_000)));
    assert_eq!(row.scope.started_us, Some(1_630_000));
    let kinds: Vec<_> = row.obligations.iter().map(|row| (row.kind, row.opened_us)).collect();
    let expected = [
        (Obligation::Execution, 0),
        (Obligation::Callback, 1_625_000),
        (Obligation::Scope, 0),
        (Obligation::Settlement, 1_640_000),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(obligation(&row, Obligation::Callback).step.as_deref(), Some("tx-terminate"));
}

#[test]
fn an_unreleased_pipeline_runs_no_cleanup_and_its_late_return_is_told() {
    let mut world = World::new();
    world.callback("tx");
    let hash = world.handler("hash", cpu());
    world.scope();
    let course = Course::new()
        .admit(0)
        .start(0, hash)
        .time_out(1_500_000)
        .cut(1_625_000)
        .freeze(2_000_000)
        .revoke(2_000_000)
        .end(3_000_000, hash, Verdict::Success)
        .come_back(3_000_000, Verdict::Success)
        .decide(3_000_000, Decision::FreeSlot);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Interrupted);
    assert_eq!(row.termination, Termination::Unproven);
    assert_eq!(row.execution.state, ExecutionState::Unreleased);
    assert_eq!(row.execution.at_us, None);
    assert_eq!(row.execution.late_return, Some(LateReturn::Success));
    assert_eq!(row.ended_us, Some(2_000_000));
    let execution = obligation(&row, Obligation::Execution);
    assert_eq!(execution.state, ObligationState::Late);
    assert_eq!(execution.evidence, Some(Evidence::FutureReturned));
    assert_eq!(execution.late_by_us, Some(1_000_000));
    assert_eq!(execution.step.as_deref(), Some("hash"));
    let advice = execution.advice.as_deref().expect("a gap has advice");
    assert!(advice.contains("`yield_every`"), "{advice}");
    assert_eq!(callback(&row, "tx").terminate, TerminateState::NotRun);
    assert_eq!(obligation(&row, Obligation::Callback).state, ObligationState::Unproven);
    assert_eq!(row.scope.state, ScopeState::NotRun);
    assert_eq!(row.cleanup, Cleanup::Failed);
    assert_eq!(row.settlement.decision, None);
    assert_eq!(row.settlement.state, SettledState::Revoked);
    // Steps show their real end.
    assert_eq!(row.steps[0].outcome, Outcome::Success);
    assert_eq!(row.steps[0].ended_us, Some(3_000_000));
}

#[test]
fn a_written_off_poll_that_returns_before_the_end_is_returned_and_stays_interrupted() {
    let mut world = World::new();
    let hash = world.handler("hash", cpu());
    let course = Course::new()
        .admit(0)
        .start(0, hash)
        .time_out(1_500_000)
        .cut(1_625_000)
        .end(1_700_000, hash, Verdict::Panic)
        .come_back(1_700_000, Verdict::Panic)
        .settled(1_700_000, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Interrupted);
    assert_eq!(row.returned_in, None);
    assert_eq!(row.execution.state, ExecutionState::Returned);
    assert_eq!(row.execution.late_return, Some(LateReturn::Panic));
    assert_eq!(row.termination, Termination::Proven);
}

#[test]
fn a_before_that_returned_in_an_overrunning_poll_counts_as_entered() {
    let mut world = World::new();
    let [before, _, terminate] = world.middleware("slow", &[Stage::Before, Stage::Terminate]);
    let (before, terminate) = (before.expect("asked for"), terminate.expect("asked for"));
    world.handler("never", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, before)
        .time_out(1_500_000)
        .cut(1_625_000)
        .end(1_700_000, before, Verdict::Success)
        .drop_pipeline(1_700_000)
        .call(1_700_000, terminate, 1_925_000)
        .end(1_710_000, terminate, Verdict::Success)
        .settled(1_710_000, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(callback(&row, "slow").before, CourseState::Completed);
    assert_eq!(callback(&row, "slow").terminate, TerminateState::Completed);
    assert_eq!(row.execution.state, ExecutionState::Dropped);
    assert_eq!(row.execution.late_return, None);
}

#[test]
fn a_handler_that_returned_while_its_after_is_pending_is_interrupted() {
    let mut world = World::new();
    let [_, outer, terminate] = world.middleware("audit", &[Stage::After, Stage::Terminate]);
    let (outer, terminate) = (outer.expect("asked for"), terminate.expect("asked for"));
    world.middleware("absent", &[]);
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(10, work, Verdict::Success)
        .start(10, outer)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_626_000)
        .call(1_626_000, terminate, 1_906_500)
        .end(1_630_000, terminate, Verdict::Success)
        .settled(1_630_000, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Interrupted);
    assert_eq!(row.reached.as_deref(), Some("after"));
    assert_eq!(row.steps[0].outcome, Outcome::Success);
    assert_eq!(callback(&row, "audit").after, CourseState::Interrupted);
    assert_eq!(callback(&row, "audit").terminate, TerminateState::Completed);
    // N3: an absent `after` is completed once reached, and an absent `terminate` is never due.
    assert_eq!(callback(&row, "absent").after, CourseState::Completed);
    assert_eq!(callback(&row, "absent").terminate, TerminateState::NotDue);
}

#[test]
fn a_panicked_destructor_leaves_the_execution_unproven_and_cleanup_goes_on() {
    let mut world = World::new();
    let tx = world.callback("tx");
    let work = world.handler("conn", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .see(1_625_000, Observation::DestructorPanicked { step: work })
        .drop_pipeline(1_625_000)
        .call(1_625_000, tx, 1_906_250)
        .end(1_630_000, tx, Verdict::Success)
        .settled(1_630_000, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.execution.state, ExecutionState::Dropped);
    let execution = obligation(&row, Obligation::Execution);
    assert_eq!(execution.state, ObligationState::Unproven);
    assert_eq!((execution.evidence, execution.closed_us), (None, None));
    assert_eq!(execution.step.as_deref(), Some("conn"));
    assert!(execution.advice.as_deref().expect("a gap").contains("destructor of `conn` panicked"));
    assert_eq!(callback(&row, "tx").terminate, TerminateState::Completed);
    assert_eq!(row.termination, Termination::Unproven);
    assert_eq!(row.settlement.state, SettledState::Confirmed);
}

#[test]
fn a_receipt_counts_as_in_time_up_to_the_due_instant_itself() {
    for (closed, state, late_by) in [
        (1_999_999, ObligationState::Proven, None),
        (2_000_000, ObligationState::Proven, None),
        (2_000_001, ObligationState::Late, Some(1)),
    ] {
        let mut world = World::new();
        let work = world.handler("work", blocking());
        let course = Course::new()
            .admit(0)
            .start(0, work)
            .open(1, 0, Obligation::Thread, work)
            .end(10, work, Verdict::Success)
            .come_back(10, Verdict::Success)
            .settled(10, Settlement::Ack)
            .close(closed, 0, Evidence::ThreadFinished);
        let row = world.row(course);
        let thread = obligation(&row, Obligation::Thread);
        assert_eq!((thread.state, thread.late_by_us), (state, late_by));
        assert_eq!(thread.advice.is_some(), state == ObligationState::Late);
    }
}

#[test]
fn lateness_is_by_nearest_rank_and_truncated() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .tick(1_500_060)
        .decide(1_500_060, Decision::Signal { reason: Reason::DeliveryTimeout, due: at(1_500_000) })
        .tick(1_625_330)
        .decide(1_625_330, Decision::Cut { due: at(1_625_000) })
        .drop_pipeline(1_625_400)
        .settled(1_625_400, Settlement::DeadLetter);
    world.log.deliveries.push(course.log);
    let lateness = world.judge().lateness;
    assert_eq!(lateness.p50, Some(60));
    assert_eq!((lateness.p99, lateness.max), (Some(330), Some(330)));
}
