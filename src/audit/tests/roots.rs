//! Roots and stops from outside, in every phase (B4, B5, C1, C2, W1).

use std::time::Duration;

use super::world::*;
use crate::event::{Decision, Observation, RunEvent, Settlement, Verdict};
use crate::obligation::{Obligation, ObligationState};
use crate::report::{DeliveryResult, SettledState, TerminateState};
use crate::timeline::Reason;

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
