//! What the pipeline returned, and how its middlewares saw it (N1 to N3, W3).

use super::world::*;
use crate::event::{Observation, Settlement, Verdict};
use crate::obligation::{Evidence, Obligation};
use crate::report::{
    Callback, Cleanup, CourseState, DeliveryResult, ExecutionState, Outcome, ReturnedIn,
    ScopeState, SettledState, TerminateState, Termination,
};
use crate::timeline::Reason;
use crate::workload::Stage;

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
