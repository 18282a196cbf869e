//! What the broker is told, and what it says (M1 to M4, P17).

use std::time::Duration;

use super::world::*;
use crate::event::{Decision, Observation, Settlement, Verdict};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::report::{
    Cleanup, DeliveryResult, ExecutionState, SettledState, TerminateState, Termination,
};

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
