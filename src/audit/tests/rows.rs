//! Rows of the report, as SPEC section 9 wants them.

use std::sync::Arc;
use std::time::Duration;

use super::world::*;
use crate::event::{
    Decision, DeliveryId, Inside, Observation, Opening, RunEvent, Settlement, Sighting, StepEnd,
    StepOutcome, Target, ThreadName, ThreadState, Verdict,
};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::report::{
    Callback, Cleanup, CourseState, DeliveryResult, ExecutionState, LateReturn, Outcome, Progress,
    RecordWord, ReturnedIn, ScopeState, SettledState, TerminateState, Termination,
};
use crate::timeline::Reason;
use crate::workload::{CpuPlace, Stage, Wait, Work};

#[test]
fn a_success_is_returned_proven_and_acknowledged() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(40)
        .start(40, work)
        .end(100_000, work, Verdict::Success)
        .come_back(100_000, Verdict::Success)
        .settled(100_000, Settlement::Ack);
    let row = world.row(course);
    assert_eq!(row.normal_cutoff_us, Some(1_500_040));
    assert_eq!(row.hard_cutoff_us, Some(2_000_040));
    assert_eq!(row.ended_us, Some(100_000));
    assert_eq!(row.result, DeliveryResult::Success);
    assert_eq!(row.termination, Termination::Proven);
    assert_eq!(row.returned_in, Some(ReturnedIn::Normal));
    assert_eq!(row.signal, None);
    assert_eq!(row.window_end_us, None);
    assert_eq!(row.reached.as_deref(), Some("handler"));
    assert_eq!(row.cleanup, Cleanup::NoneDue);
    assert_eq!(row.execution.state, ExecutionState::Returned);
    assert_eq!(row.scope.state, ScopeState::None);
    assert_eq!(row.settlement.decision, Some(Settlement::Ack));
    assert_eq!(row.settlement.state, SettledState::Confirmed);
    assert_eq!(row.settlement.at_us, Some(102_000));
    assert_eq!(row.steps[0].started_us, Some(40));
    assert_eq!(row.steps[0].ended_us, Some(100_000));
    assert_eq!(row.steps[0].outcome, Outcome::Success);
    let execution = obligation(&row, Obligation::Execution);
    assert_eq!(execution.evidence, Some(Evidence::FutureReturned));
    assert_eq!((execution.opened_us, execution.due_us), (40, 2_000_040));
    assert_eq!(execution.step, None);
    let settlement = obligation(&row, Obligation::Settlement);
    assert_eq!((settlement.opened_us, settlement.due_us), (100_000, 5_100_000));
    assert_eq!(settlement.evidence, Some(Evidence::BrokerConfirmed));
}

#[test]
fn a_permanent_failure_is_a_dead_letter_and_a_retryable_one_is_retried_while_it_may() {
    for (retryable, attempt, decision) in [
        (PERMANENT, 1, Settlement::DeadLetter),
        (RETRYABLE, 1, Settlement::Retry),
        (RETRYABLE, 2, Settlement::DeadLetter),
    ] {
        let mut world = World::new();
        world.workload.settlement.as_mut().expect("a broker").redeliveries = 1;
        let work = world.handler("work", sleep());
        let busy = failure("delivery_timeout", retryable);
        let course = Course::of(1, 1, attempt)
            .admit(0)
            .start(0, work)
            .end(10, work, busy.clone())
            .come_back(10, busy)
            .settled(10, decision);
        let row = world.row(course);
        assert_eq!(row.result, DeliveryResult::Failure);
        // W5: a code that looks like one of ours is still the step's.
        assert_eq!(row.code.as_deref(), Some("delivery_timeout"));
        assert_eq!(row.signal, None);
        assert_eq!(row.settlement.decision, Some(decision));
    }
}

#[test]
fn a_panic_is_unwound_by_the_afters_and_reached_stays_at_the_handler() {
    let mut world = World::new();
    let [_, outer, _] = world.middleware("outer", &[Stage::After, Stage::Terminate]);
    let outer = outer.expect("it was asked for");
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(10, work, Verdict::Panic)
        .start(10, outer)
        .end(20, outer, Verdict::Success)
        .come_back(20, Verdict::Panic)
        .settled(20, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Panic);
    assert_eq!(row.code, None);
    assert_eq!(row.reached.as_deref(), Some("handler"));
    let outer = callback(&row, "outer");
    assert_eq!(outer.before, CourseState::Completed);
    assert_eq!(outer.after, CourseState::Completed);
    assert_eq!(outer.terminate, TerminateState::NotDue);
    assert_eq!((outer.started_us, outer.ended_us), (Some(10), Some(20)));
}

#[test]
fn an_after_that_fails_turns_a_success_and_never_replaces_a_failure() {
    for (handler, code) in [(Verdict::Success, "FLUSH"), (failure("NO", PERMANENT), "NO")] {
        let mut world = World::new();
        let [_, after, _] = world.middleware("flush", &[Stage::After]);
        let after = after.expect("it was asked for");
        let work = world.handler("work", sleep());
        let course = Course::new()
            .admit(0)
            .start(0, work)
            .end(10, work, handler)
            .start(10, after)
            .end(20, after, failure("FLUSH", PERMANENT))
            .come_back(20, failure(code, PERMANENT))
            .settled(20, Settlement::DeadLetter);
        let row = world.row(course);
        assert_eq!(row.code.as_deref(), Some(code));
        assert_eq!(callback(&row, "flush").after, CourseState::Failed);
        assert_eq!(callback(&row, "flush").terminate, TerminateState::NotDue);
    }
}

#[test]
fn an_after_that_panics_makes_its_own_and_the_outer_callbacks_due() {
    let mut world = World::new();
    let outer = world.callback("outer");
    let [_, after, inner] = world.middleware("inner", &[Stage::After, Stage::Terminate]);
    let (after, inner) = (after.expect("asked for"), inner.expect("asked for"));
    let work = world.handler("work", sleep());
    // E is 2 s, so the chain ends 250 ms before it: 869.98 ms for each of the two.
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(10, work, Verdict::Success)
        .start(10, after)
        .end(40, after, Verdict::Panic)
        .come_back(40, Verdict::Panic)
        .call(40, inner, 875_020)
        .end(5_040, inner, Verdict::Success)
        .call(5_040, outer, 1_750_000)
        .end(9_040, outer, failure("NO", PERMANENT))
        .settled(9_040, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Panic);
    assert_eq!(row.reached.as_deref(), Some("after"));
    assert_eq!(callback(&row, "inner").after, CourseState::Panicked);
    assert_eq!(callback(&row, "inner").terminate, TerminateState::Completed);
    assert_eq!(callback(&row, "inner").started_us, Some(40));
    // Its way out has instants of its own, for `started_us` is that of the callback here.
    let way_out = |row: &Callback| (row.after_started_us, row.after_ended_us);
    assert_eq!(way_out(callback(&row, "inner")), (Some(10), Some(40)));
    assert_eq!(way_out(callback(&row, "outer")), (None, None));
    assert_eq!(callback(&row, "outer").after, CourseState::NotStarted);
    assert_eq!(callback(&row, "outer").terminate, TerminateState::Failed);
    assert_eq!(row.cleanup, Cleanup::Failed);
    assert_eq!(row.termination, Termination::Proven);
    let due = obligation(&row, Obligation::Callback);
    assert_eq!((due.opened_us, due.due_us), (40, 2_000_000));
}

#[test]
fn a_before_that_fails_is_not_entered_and_the_outer_after_runs() {
    let mut world = World::new();
    let [_, outer, _] = world.middleware("outer", &[Stage::After]);
    let [before, _, _] =
        world.middleware("inner", &[Stage::Before, Stage::After, Stage::Terminate]);
    let (outer, before) = (outer.expect("asked for"), before.expect("asked for"));
    world.handler("never", sleep());
    let no_tenant = failure("NO_TENANT", PERMANENT);
    let course = Course::new()
        .admit(0)
        .start(0, before)
        .end(10, before, no_tenant.clone())
        .start(10, outer)
        .end(20, outer, Verdict::Success)
        .come_back(20, no_tenant)
        .settled(20, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.reached.as_deref(), Some("before"));
    let inner = callback(&row, "inner");
    assert_eq!(inner.before, CourseState::Failed);
    assert_eq!((inner.before_started_us, inner.before_ended_us), (Some(0), Some(10)));
    assert_eq!(inner.after, CourseState::NotStarted);
    assert_eq!(inner.terminate, TerminateState::NotDue);
    assert_eq!(callback(&row, "outer").after, CourseState::Completed);
    assert_eq!(row.steps[0].outcome, Outcome::Skipped);
    assert_eq!((row.steps[0].started_us, row.steps[0].attempts), (None, 0));
}

#[test]
fn what_a_pipeline_returns_in_the_window_is_its_true_result() {
    for (verdict, settlement) in [
        (Verdict::Success, Settlement::Ack),
        (failure("INTERRUPTED", RETRYABLE), Settlement::DeadLetter),
    ] {
        let mut world = World::new();
        let work = world.handler("work", sleep());
        let course = Course::new()
            .admit(0)
            .start(0, work)
            .time_out(1_500_000)
            .see(1_501_000, Observation::SignalSeen { step: work })
            .end(1_550_000, work, verdict.clone())
            .come_back(1_550_000, verdict)
            .settled(1_550_000, settlement);
        let row = world.row(course);
        assert_eq!(row.returned_in, Some(ReturnedIn::Cooperative));
        let signal = row.signal.expect("it fired");
        assert_eq!(signal.reason, Reason::DeliveryTimeout);
        assert_eq!((signal.at_us, signal.observed_us), (1_500_000, Some(1_501_000)));
        assert_eq!(row.window_end_us, Some(1_625_000));
        assert_eq!(row.termination, Termination::Proven);
        assert_ne!(row.result, DeliveryResult::Interrupted);
    }
}

#[test]
fn what_is_ready_at_the_cutoff_itself_counts_without_a_signal() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(1_500_000, work, Verdict::Success)
        .come_back(1_500_000, Verdict::Success)
        .settled(1_500_000, Settlement::Ack);
    let row = world.row(course);
    assert_eq!(row.returned_in, Some(ReturnedIn::Normal));
    assert_eq!(row.signal, None);
}

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
fn a_callback_that_overruns_its_share_is_timed_out_with_evidence() {
    let mut world = World::new();
    let outer = world.callback("outer");
    let inner = world.callback("inner");
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .call(1_625_000, inner, 1_765_625)
        .cut_callback(1_765_625, inner)
        .drop_element(1_766_000, inner)
        .call(1_766_000, outer, 1_906_250)
        .end(1_770_000, outer, Verdict::Panic)
        .settled(1_770_000, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(callback(&row, "inner").terminate, TerminateState::TimedOut);
    assert_eq!(callback(&row, "inner").ended_us, Some(1_766_000));
    assert_eq!(callback(&row, "outer").terminate, TerminateState::Panicked);
    assert_eq!(row.cleanup, Cleanup::Failed);
    assert_eq!(row.termination, Termination::Proven);
    let evidence: Vec<_> = row
        .obligations
        .iter()
        .filter(|row| row.kind == Obligation::Callback)
        .map(|row| row.evidence)
        .collect();
    assert_eq!(evidence, [Some(Evidence::Panicked), Some(Evidence::Dropped)]);
}

#[test]
fn a_callback_stuck_in_a_poll_exhausts_the_others_and_is_late() {
    let mut world = World::new();
    world.callback("outer");
    let inner = world.callback("inner");
    let work = world.handler("work", sleep());
    world.scope();
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .call(1_625_000, inner, 1_765_625)
        .cut_callback(1_765_625, inner)
        .freeze(2_000_000)
        .settled(2_000_000, Settlement::DeadLetter)
        .end(2_400_000, inner, Verdict::Success);
    let row = world.row(course);
    assert_eq!(callback(&row, "inner").terminate, TerminateState::TimedOut);
    assert_eq!(callback(&row, "inner").ended_us, None);
    assert_eq!(callback(&row, "outer").terminate, TerminateState::BudgetExhausted);
    assert_eq!(callback(&row, "outer").started_us, None);
    let states: Vec<_> = row
        .obligations
        .iter()
        .filter(|row| row.kind == Obligation::Callback)
        .map(|row| (row.step.as_deref(), row.state, row.late_by_us))
        .collect();
    let expected = [
        (Some("outer-terminate"), ObligationState::Unproven, None),
        (Some("inner-terminate"), ObligationState::Late, Some(400_000)),
    ];
    assert_eq!(states, expected);
    assert_eq!(row.scope.state, ScopeState::NotRun);
    assert_eq!(obligation(&row, Obligation::Scope).step.as_deref(), Some("dispose"));
}

#[test]
fn a_disposer_dropped_at_the_end_is_timed_out_and_unproven() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let dispose = world.scope();
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(50_000, work, Verdict::Success)
        .come_back(50_000, Verdict::Success)
        .dispose(50_000, dispose, 2_000_000)
        .tick(2_000_000)
        .decide(2_000_000, Decision::CutDisposal { step: dispose, due: at(2_000_000) })
        .decide(2_000_000, Decision::Freeze { due: at(2_000_000) })
        .settle(2_000_000, Settlement::DeadLetter, 7_000_000)
        .drop_element(2_000_100, dispose)
        .confirm(2_002_000);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Success);
    assert_eq!((row.scope.state, row.scope.at_us), (ScopeState::TimedOut, Some(2_000_000)));
    assert_eq!(obligation(&row, Obligation::Scope).state, ObligationState::Unproven);
    assert_eq!(obligation(&row, Obligation::Scope).evidence, None);
    assert_eq!(row.cleanup, Cleanup::Failed);
    assert_eq!(row.termination, Termination::Unproven);
}

#[test]
fn a_disposer_that_fails_or_panics_has_ended_and_makes_a_success_retryable() {
    for (verdict, evidence) in [
        (failure("POOL_GONE", PERMANENT), Evidence::Returned),
        (Verdict::Panic, Evidence::Panicked),
    ] {
        let mut world = World::new();
        world.workload.settlement.as_mut().expect("a broker").redeliveries = 1;
        let work = world.handler("work", sleep());
        let dispose = world.scope();
        let course = Course::new()
            .admit(0)
            .start(0, work)
            .end(50, work, Verdict::Success)
            .come_back(50, Verdict::Success)
            .dispose(50, dispose, 2_000_000)
            .end(60, dispose, verdict)
            .settled(60, Settlement::Retry);
        let row = world.row(course);
        assert_eq!(row.result, DeliveryResult::Success);
        assert_eq!((row.scope.state, row.scope.at_us), (ScopeState::Failed, Some(60)));
        assert_eq!(obligation(&row, Obligation::Scope).evidence, Some(evidence));
        assert_eq!(row.termination, Termination::Proven);
    }
}

#[test]
fn a_root_published_in_the_course_signals_at_its_graceful_cutoff() {
    let mut world = World::new();
    world.workload.budget.total = Duration::from_secs(30);
    let work = world.handler("work", sleep());
    // 2 s from 0.5 s: graceful at 2 s, E = 2 s + 3/4 of 500 ms, window a quarter of that.
    let root = root(500_000, 2_000_000, 2_500_000);
    world.shutdown(root);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .publish(500_000, root)
        .tick(2_000_000)
        .signal(2_000_000, Reason::ShutdownDeadline)
        .cut(2_093_750)
        .drop_pipeline(2_093_800)
        .settle(2_093_800, Settlement::Released, 2_093_800)
        .decide(2_093_800, Decision::FreeSlot);
    world.log.deliveries.push(course.log);
    let audit = world.judge();
    assert_eq!(audit.disagreements, [""; 0]);
    let row = &audit.deliveries[0];
    assert_eq!(row.hard_cutoff_us, Some(30_000_000));
    assert_eq!(row.window_end_us, Some(2_093_750));
    assert_eq!(row.settlement.decision, Some(Settlement::Released));
    assert_eq!(row.settlement.state, SettledState::Released);
    assert_eq!(row.settlement.at_us, Some(2_093_800));
    assert_eq!(row.obligations.len(), 1);
    assert_eq!(row.obligations[0].due_us, 2_375_000);
    let shutdown = audit.shutdown.expect("it began");
    assert_eq!(shutdown.root_graceful_us, 2_000_000);
    assert_eq!(shutdown.root_hard_us, 2_500_000);
    assert_eq!(shutdown.elapsed_us, 1_593_800);
    assert!(!shutdown.forced);
}

#[test]
fn a_root_published_in_the_window_only_shortens_it() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    // The shutdown has 300 ms from 1.51 s: E is 1.81 s, the window 77.5 ms from P.
    let root = root(1_510_000, 1_735_000, 1_810_000);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .publish(1_510_000, root)
        .cut(1_577_500)
        .drop_pipeline(1_577_500)
        .settle(1_577_500, Settlement::DeadLetter, 1_810_000)
        .confirm(1_579_500);
    let row = world.row(course);
    assert_eq!(row.signal.expect("it fired").reason, Reason::DeliveryTimeout);
    assert_eq!(row.window_end_us, Some(1_577_500));
    assert_eq!(obligation(&row, Obligation::Execution).due_us, 1_810_000);
    assert_eq!(obligation(&row, Obligation::Settlement).due_us, 1_810_000);
}

#[test]
fn a_root_that_leaves_a_window_in_the_past_cuts_at_once_and_is_not_lateness() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    // E becomes 1.64 s: the window would have ended at 1.535 s.
    let root = root(1_600_000, 1_630_000, 1_640_000);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .publish(1_600_000, root)
        .decide(1_600_000, Decision::Cut { due: at(1_535_000) })
        .drop_pipeline(1_600_000)
        .settle(1_600_000, Settlement::DeadLetter, 1_640_000)
        .confirm(1_602_000);
    world.log.deliveries.push(course.log);
    let audit = world.judge();
    assert_eq!(audit.disagreements, [""; 0]);
    assert_eq!(audit.deliveries[0].window_end_us, Some(1_535_000));
    assert_eq!(audit.lateness.max, Some(0));
}

#[test]
fn a_root_published_in_cleanup_interrupts_a_callback_before_its_share_is_used() {
    let mut world = World::new();
    let tx = world.callback("tx");
    let work = world.handler("work", sleep());
    // 90 ms from 1.66 s: E is 1.75 s now.
    let root = root(1_660_000, 1_727_500, 1_750_000);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .call(1_625_000, tx, 1_906_250)
        .publish(1_660_000, root)
        .cut_callback(1_750_000, tx)
        .decide(1_750_000, Decision::Freeze { due: at(1_750_000) })
        .settle(1_750_000, Settlement::DeadLetter, 1_750_000)
        .decide(1_750_000, Decision::Expire { due: at(1_750_000) })
        .drop_element(1_750_100, tx);
    let row = world.row(course);
    assert_eq!(callback(&row, "tx").terminate, TerminateState::Interrupted);
    assert_eq!(obligation(&row, Obligation::Callback).state, ObligationState::Late);
    assert_eq!(row.settlement.state, SettledState::Unresolved);
    assert_eq!(row.settlement.at_us, Some(1_750_000));
}

#[test]
fn a_root_published_while_settling_brings_the_expiry_forward() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let root = root(200_000, 950_000, 1_200_000);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(20_000, work, Verdict::Success)
        .come_back(20_000, Verdict::Success)
        .settle(20_000, Settlement::Ack, 5_020_000)
        .publish(200_000, root)
        .tick(1_200_000)
        .decide(1_200_000, Decision::Expire { due: at(1_200_000) })
        .confirm(1_300_000);
    let row = world.row(course);
    assert_eq!(row.settlement.state, SettledState::Unresolved);
    assert_eq!(row.settlement.at_us, Some(1_200_000));
    let settlement = obligation(&row, Obligation::Settlement);
    assert_eq!(settlement.state, ObligationState::Late);
    assert_eq!(settlement.late_by_us, Some(100_000));
}

#[test]
fn a_settlement_never_confirmed_is_unproven() {
    let mut world = World::new();
    world.workload.settlement.as_mut().expect("a broker").timeout = Duration::from_secs(1);
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(20_000, work, Verdict::Success)
        .come_back(20_000, Verdict::Success)
        .settle(20_000, Settlement::Ack, 1_020_000)
        .tick(1_020_050)
        .decide(1_020_050, Decision::Expire { due: at(1_020_000) });
    let row = world.row(course);
    assert_eq!(row.settlement.decision, Some(Settlement::Ack));
    assert_eq!(row.settlement.at_us, Some(1_020_000));
    let settlement = obligation(&row, Obligation::Settlement);
    assert_eq!(settlement.state, ObligationState::Unproven);
    assert!(settlement.advice.as_deref().expect("a gap").contains("silent for 1 second"));
}

#[test]
fn a_forced_shutdown_signals_at_once_and_releases_the_message() {
    let mut world = World::new();
    world.workload.budget.total = Duration::from_secs(30);
    let work = world.handler("work", sleep());
    let root = root(500_000, 3_500_000, 4_500_000);
    world.shutdown(root);
    world.run(500_000, RunEvent::Forced);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .publish(500_000, root)
        .see(500_000, Observation::Stopped { reason: Reason::ForcedShutdown })
        .signal(500_000, Reason::ForcedShutdown)
        .cut(750_000)
        .drop_pipeline(750_000)
        .settle(750_000, Settlement::Released, 750_000);
    let waiting = Course::of(2, 2, 1).see(500_000, Observation::Released);
    world.log.deliveries.extend([course.log, waiting.log]);
    let audit = world.judge();
    assert_eq!(audit.disagreements, [""; 0]);
    assert_eq!(audit.deliveries[0].window_end_us, Some(750_000));
    assert_eq!(audit.deliveries[0].obligations[0].due_us, 1_500_000);
    let shutdown = audit.shutdown.expect("it began");
    assert!(shutdown.forced);
    assert_eq!(shutdown.released, 1);
    // No slot was freed in this log: E stands for it.
    assert_eq!(shutdown.elapsed_us, 1_000_000);
}

#[test]
fn a_first_reason_stays_when_force_comes_later() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let root = root(1_510_000, 9_510_000, 11_510_000);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .publish(1_510_000, root)
        .see(1_510_000, Observation::Stopped { reason: Reason::ForcedShutdown })
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .settled(1_625_000, Settlement::DeadLetter);
    let row = world.row(course);
    assert_eq!(row.signal.expect("it fired").reason, Reason::DeliveryTimeout);
    assert_eq!(row.window_end_us, Some(1_625_000));
}

#[test]
fn what_never_started_owes_nothing_and_goes_back() {
    let mut world = World::new();
    world.callback("tx");
    world.handler("work", sleep());
    world.scope();
    let row = world.row(Course::new().see(500, Observation::Released));
    assert_eq!(row.result, DeliveryResult::NotStarted);
    assert_eq!(row.termination, Termination::NothingStarted);
    assert_eq!(row.execution.state, ExecutionState::NotStarted);
    assert_eq!(row.settlement.decision, Some(Settlement::Released));
    assert_eq!(row.settlement.state, SettledState::Released);
    assert_eq!(row.settlement.at_us, Some(500));
    assert_eq!((row.reached, row.signal, row.ended_us), (None, None, None));
    assert_eq!(row.cleanup, Cleanup::NoneDue);
    assert_eq!(row.obligations, []);
    assert_eq!(row.callbacks[0].terminate, TerminateState::NotDue);
}

#[test]
fn nothing_is_settled_without_a_broker() {
    let mut world = World::new().without_broker();
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .end(20, work, Verdict::Success)
        .come_back(20, Verdict::Success)
        .decide(20, Decision::FreeSlot);
    let row = world.row(course);
    assert_eq!((row.settlement.decision, row.settlement.state), (None, SettledState::None));
    assert_eq!(row.obligations.len(), 1);
}

#[test]
fn a_detached_task_that_outlives_its_delivery_is_late_and_changes_no_result() {
    let mut world = World::new();
    let mut forgotten = step("forgotten", Stage::Handler, sleep());
    forgotten.detach = true;
    let forgotten = world.add(forgotten);
    world.workload.handler.push(forgotten);
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, forgotten)
        .see(5, Observation::ElementReturned { step: forgotten, verdict: Verdict::Success })
        .start(5, work)
        .see(7, Observation::StepStarted { step: forgotten })
        .open(7, 0, Obligation::Task, forgotten)
        .end(50_000, work, Verdict::Success)
        .come_back(50_000, Verdict::Success)
        .settled(50_000, Settlement::Ack)
        .tick(1_500_000)
        .decide(1_500_000, Decision::SignalDetached { due: at(1_500_000) })
        .freeze(2_000_000)
        .step_ended(3_000_000, forgotten, StepOutcome::Success)
        .close(3_000_000, 0, Evidence::TaskJoined);
    let row = world.row(course);
    assert_eq!(row.result, DeliveryResult::Success);
    assert_eq!(row.signal, None);
    assert_eq!(row.termination, Termination::Late);
    let task = obligation(&row, Obligation::Task);
    assert_eq!(task.step.as_deref(), Some("forgotten"));
    assert_eq!((task.opened_us, task.late_by_us), (7, Some(1_000_000)));
    assert_eq!(row.steps[0].started_us, Some(7));
    assert_eq!((row.steps[0].ended_us, row.steps[0].attempts), (Some(3_000_000), 1));
}

/// A blocking thread that outlives a delivery that was cut and settled.
fn outlived(compress: crate::event::StepId) -> Course {
    let thread = Some(ThreadName { tid: 4242, start_ticks: 99 });
    let opened = Observation::Opened {
        opening: Opening(0),
        kind: Obligation::Thread,
        step: compress,
        thread: thread.map(Box::new),
    };
    let sighted = |cpu, state| {
        Observation::Sighted(Box::new(Sighting {
            target: Target::Opened(Opening(0)),
            holder: Some(DeliveryId(1)),
            step: Some(compress),
            inside: Some(Inside::Closure),
            since: Some(at(70)),
            thread,
            state: Some(state),
            cpu: Some(Duration::from_micros(cpu)),
            waiting_in: Some("hrtimer_nanosleep".into()),
        }))
    };
    Course::new()
        .admit(40)
        .start(60, compress)
        .see(70, opened)
        .time_out(1_500_040)
        .cut(1_625_040)
        .step_ended(1_625_100, compress, StepOutcome::Dropped)
        .drop_pipeline(1_625_110)
        .settled(1_625_110, Settlement::DeadLetter)
        // What it used before the due instant is not charged to it.
        .see(1_700_000, sighted(400, ThreadState::Running))
        .freeze(2_000_040)
        .see(2_000_050, sighted(500, ThreadState::Sleeping))
        .see(3_900_000, sighted(590, ThreadState::Sleeping))
}

#[test]
fn a_thread_that_outlives_is_late_with_who_and_what_it_did() {
    let mut world = World::new();
    let compress = world.handler("compress", blocking());
    let closed = Observation::Closed {
        opening: Opening(0),
        evidence: Evidence::ThreadFinished,
        cpu: Some(Duration::from_micros(620)),
    };
    let row = world.row(outlived(compress).see(4_000_040, closed));
    assert_eq!(row.execution.state, ExecutionState::Dropped);
    assert_eq!(row.termination, Termination::Late);
    let thread = obligation(&row, Obligation::Thread);
    assert_eq!((thread.due_us, thread.closed_us), (2_000_040, Some(4_000_040)));
    assert_eq!(thread.late_by_us, Some(2_000_000));
    let who = thread.who.as_ref().expect("it was sighted");
    assert_eq!((who.tid, who.start_ticks), (Some(4242), Some(99)));
    assert_eq!(who.state.as_deref(), Some("sleeping"));
    assert_eq!(who.cpu_us, Some(120));
    assert_eq!(who.waiting_in.as_deref(), Some("hrtimer_nanosleep"));
    assert_eq!(who.inside.as_deref(), Some("closure"));
    assert_eq!((who.delivery, who.since_us), (None, Some(70)));
    assert_eq!(
        thread.advice.as_deref(),
        Some(
            "`compress` never looks at the signal, and its thread was seen sleeping in the kernel, \
             in hrtimer_nanosleep: give it `looks_every`, split the work, or put it into a process \
             that can be killed"
        )
    );
}

#[test]
fn a_thread_never_seen_to_end_is_unproven_and_nothing_after_observation_counts() {
    let mut world = World::new();
    let compress = world.handler("compress", blocking());
    world.run(4_000_000, RunEvent::ObservationEnded);
    let row = world.row(outlived(compress).close(4_000_040, 0, Evidence::ThreadFinished));
    let thread = obligation(&row, Obligation::Thread);
    assert_eq!(thread.state, ObligationState::Unproven);
    assert_eq!((thread.evidence, thread.closed_us, thread.late_by_us), (None, None, None));
    assert_eq!(thread.who.as_ref().expect("it was sighted").cpu_us, Some(90));
    assert_eq!(row.termination, Termination::Unproven);
}

#[test]
fn a_worker_held_by_another_delivery_is_named() {
    let mut world = World::new();
    let hash = world.handler("hash", cpu());
    let sighting = Sighting {
        target: Target::Execution,
        holder: Some(DeliveryId(7)),
        step: Some(hash),
        inside: Some(Inside::Poll),
        since: Some(at(100)),
        thread: None,
        state: None,
        cpu: None,
        waiting_in: None,
    };
    let course = Course::new()
        .admit(0)
        .time_out_unstarted()
        .freeze(2_000_000)
        .revoke(2_000_000)
        .see(2_000_010, Observation::Sighted(Box::new(sighting)))
        .drop_pipeline(2_500_000);
    let row = world.row(course);
    let execution = obligation(&row, Obligation::Execution);
    assert_eq!(row.reached, None);
    assert_eq!(execution.evidence, Some(Evidence::FutureDropped));
    assert_eq!(execution.step.as_deref(), Some("hash"));
    assert_eq!(execution.who.as_ref().expect("it was sighted").delivery, Some(7));
    let advice = execution.advice.as_deref().expect("a gap");
    assert!(advice.contains("held by `hash` of delivery 7"), "{advice}");
}

impl Course {
    fn time_out_unstarted(self) -> Self {
        self.time_out(1_500_000).cut(1_625_000)
    }
}

#[test]
fn a_redelivery_names_the_earlier_attempt_that_is_still_open() {
    let mut world = World::new();
    world.workload.settlement.as_mut().expect("a broker").redeliveries = 1;
    let work = world.handler("work", blocking());
    let busy = || failure("BUSY", RETRYABLE);
    let first = Course::of(1, 1, 1)
        .admit(0)
        .start(0, work)
        .open(1, 0, Obligation::Thread, work)
        .end(10, work, busy())
        .come_back(10, busy())
        .settle(10, Settlement::Retry, 5_000_010)
        .confirm(20)
        .decide(20, Decision::Redeliver)
        .close(900, 0, Evidence::ThreadFinished);
    let again = |id: u32, message: u32, admitted: u64| {
        Course::of(id, message, 2)
            .admit(admitted)
            .start(admitted, work)
            .end(admitted + 10, work, Verdict::Success)
            .come_back(admitted + 10, Verdict::Success)
            .settled(admitted + 10, Settlement::Ack)
    };
    let rows = world.rows([first, again(2, 1, 30), again(3, 2, 40), again(4, 1, 1_000)]);
    assert_eq!(rows[1].overlaps, [1]);
    assert_eq!(rows[2].overlaps, [0; 0]);
    assert_eq!(rows[3].overlaps, [0; 0]);
}

#[test]
fn nested_steps_are_listed_and_a_skipped_one_never_began() {
    let mut world = World::new();
    let parent = world.handler("both", Work::Sequence { steps: Vec::new() });
    let child = world.add(step("child", Stage::Handler, sleep()));
    let spare = world.add(step("spare", Stage::Handler, blocking()));
    world.workload.steps[0].work = Work::Sequence { steps: vec![child, spare] };
    let course = Course::new()
        .admit(0)
        .start(0, parent)
        .see(1, Observation::StepStarted { step: child })
        .step_ended(5, child, StepOutcome::Success)
        .see(5, Observation::StepStarted { step: spare })
        .time_out(1_500_000)
        .cut(1_625_000)
        .step_ended(1_625_000, spare, StepOutcome::Skipped)
        .step_ended(1_625_000, parent, StepOutcome::Dropped)
        .drop_pipeline(1_625_000)
        .settled(1_625_000, Settlement::DeadLetter);
    let row = world.row(course);
    let steps: Vec<_> =
        row.steps.iter().map(|it| (it.name.as_str(), it.outcome, it.attempts)).collect();
    let expected = [
        ("both", Outcome::Dropped, 1),
        ("child", Outcome::Success, 1),
        ("spare", Outcome::Skipped, 0),
    ];
    assert_eq!(steps, expected);
    assert_eq!(row.steps[2].started_us, None);
}

#[test]
fn a_step_that_was_told_to_start_and_never_polled_was_skipped() {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .settled(1_625_000, Settlement::DeadLetter);
    let step = &world.row(course).steps[0];
    let facts = (step.outcome, step.started_us, step.attempts);
    assert_eq!(facts, (Outcome::Skipped, None, 0));
}

#[test]
fn records_that_tie_in_time_have_an_order() {
    let mut world = World::new();
    let race = world.handler("race", Work::Parallel { steps: Vec::new(), wait: Wait::First });
    let slow = world.add(step("slow", Stage::Handler, Work::Polls { count: 5 }));
    let quick = world.add(step("quick", Stage::Handler, Work::Polls { count: 0 }));
    world.workload.steps[0].work = Work::Parallel { steps: vec![slow, quick], wait: Wait::First };
    let short = world.handler("short", Work::Polls { count: 5 });
    let last = world.handler("last", sleep());
    let drop_alone = |step, code: &str| {
        let (outcome, code) = (StepOutcome::Dropped, Some(code.into()));
        let end =
            StepEnd { step, outcome, code, polls: 1, left: Some(4), over: None, traces: None };
        Observation::StepEnded(Arc::new(end))
    };
    let course = Course::new()
        .admit(40)
        .start(40, race)
        .see(40, Observation::StepStarted { step: race })
        .see(40, Observation::StepStarted { step: slow })
        .see(40, Observation::StepStarted { step: quick })
        .step_ended(40, quick, StepOutcome::Success)
        .see(40, drop_alone(slow, "LOST_RACE"))
        .end(40, race, Verdict::Success)
        .start(40, short)
        .see(40, drop_alone(short, "POLL_BUDGET_EXHAUSTED"))
        .see(40, Observation::ElementReturned { step: short, verdict: Verdict::Success })
        .start(40, last)
        .end(50, last, Verdict::Success)
        .come_back(50, Verdict::Success)
        .settled(50, Settlement::Ack);
    let row = world.row(course);
    let records: Vec<_> = row
        .records()
        .into_iter()
        .map(|record| (record.order, record.word, record.step.name.as_str()))
        .collect();
    let expected = [
        (1, RecordWord::Started, "race"),
        (2, RecordWord::Started, "slow"),
        (3, RecordWord::Started, "quick"),
        (4, RecordWord::Completed, "quick"),
        // Lost, and nothing more to say of it.
        (5, RecordWord::Dropped, "slow"),
        (6, RecordWord::Completed, "race"),
        (7, RecordWord::Started, "short"),
        (8, RecordWord::Dropped, "short"),
        (9, RecordWord::TimedOut, "short"),
        (10, RecordWord::Started, "last"),
        (11, RecordWord::Completed, "last"),
    ];
    assert_eq!(records, expected);
}

#[test]
fn what_a_step_needs_to_get_on_depends_on_its_work_and_on_whether_it_ended() {
    let on_thread = || {
        let Work::Cpu { amount, yield_every, .. } = cpu() else { unreachable!("cpu work") };
        Work::Cpu { amount, yield_every, on: CpuPlace::Thread }
    };
    let of = |work: Work, outcome| {
        let mut world = World::new();
        let id = world.handler("work", work);
        let course = Course::new().admit(0).start(0, id);
        let course = match outcome {
            None => course,
            Some(outcome) => course.step_ended(5, id, outcome),
        };
        world.row(course).steps[0].progress
    };
    let ended = Some(StepOutcome::Success);
    assert_eq!(of(sleep(), ended), Progress::WhenPolled);
    assert_eq!(of(cpu(), ended), Progress::WhenPolled);
    assert_eq!(of(Work::Polls { count: 1 }, Some(StepOutcome::Failure)), Progress::WhenPolled);
    assert_eq!(of(sleep(), None), Progress::WhenPolled);
    assert_eq!(of(Work::Sequence { steps: Vec::new() }, ended), Progress::WhenAnotherEnds);
    assert_eq!(of(blocking(), ended), Progress::ByItself);
    assert_eq!(of(on_thread(), Some(StepOutcome::Panic)), Progress::ByItself);
    // Only the waiting was dropped.
    assert_eq!(of(blocking(), Some(StepOutcome::Dropped)), Progress::ByItself);
    assert_eq!(of(on_thread(), Some(StepOutcome::Dropped)), Progress::ByItself);
    // It never got its thread.
    assert_eq!(of(blocking(), Some(StepOutcome::Skipped)), Progress::Never);
    assert_eq!(of(sleep(), Some(StepOutcome::Dropped)), Progress::Never);
    let sequence = Work::Sequence { steps: Vec::new() };
    assert_eq!(of(sequence, Some(StepOutcome::Dropped)), Progress::Never);
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
fn a_delivery_admitted_under_a_root_has_what_the_root_leaves() {
    let mut world = World::new();
    world.workload.budget.reserve = Some(Duration::from_millis(800));
    let work = world.handler("work", sleep());
    // 400 ms are left, so the reserve is 100 ms; the root's own cutoff is 50 ms ahead of P.
    let root = root(1_000_000, 2_050_000, 2_400_000);
    let course = Course::new()
        .see(2_000_000, Observation::Admitted { root: Some(Box::new(root)) })
        .start(2_000_000, work)
        .tick(2_050_000)
        .signal(2_050_000, Reason::ShutdownDeadline)
        .end(2_060_000, work, Verdict::Success)
        .come_back(2_060_000, Verdict::Success)
        .settle(2_060_000, Settlement::Ack, 2_400_000)
        .confirm(2_062_000);
    let row = world.row(course);
    assert_eq!(row.hard_cutoff_us, Some(2_400_000));
    assert_eq!(row.normal_cutoff_us, Some(2_300_000));
    assert_eq!(row.window_end_us, Some(2_115_625));
    assert_eq!(row.result, DeliveryResult::Success);
    assert_eq!(row.obligations[0].due_us, 2_312_500);
}

#[test]
fn what_was_degraded_is_told_unless_the_outcome_was_frozen() {
    for (frozen, degraded) in [(false, true), (true, false)] {
        let mut world = World::new();
        let work = world.handler("work", cpu());
        let mut course = Course::new().admit(0).start(0, work).time_out(1_500_000).cut(1_625_000);
        if frozen {
            course = course.freeze(2_000_000).revoke(2_000_000);
        }
        let when = if frozen { 2_000_001 } else { 1_700_000 };
        course = course
            .see(when, Observation::Degraded { step: work })
            .end(when, work, Verdict::Success)
            .come_back(when, Verdict::Success);
        if !frozen {
            course = course.settled(when, Settlement::DeadLetter);
        }
        assert_eq!(world.row(course).degraded, degraded);
    }
}
