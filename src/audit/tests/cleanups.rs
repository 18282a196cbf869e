//! Termination callbacks and the disposal (K1 to K6).

use super::world::*;
use crate::event::{Decision, Settlement, Verdict};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::report::{Cleanup, DeliveryResult, ScopeState, TerminateState, Termination};

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
