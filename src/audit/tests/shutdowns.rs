//! Runs that were shut down as `[shutdown]` does not say: each names the rule.

use std::time::Duration;

use super::world::*;
use crate::event::{Initiator, RunEvent, Settlement, Verdict};
use crate::timeline::{Moment, Root};
use crate::workload::AdmissionPolicy;

/// Two deliveries that succeed, the second admitted at `admitted`.
fn two(admitted: u64) -> (World, [Course; 2]) {
    let mut world = World::new();
    world.workload.load.deliveries = 2;
    let work = world.handler("work", sleep());
    let course = |id, admitted| {
        Course::of(id, id, 1)
            .admit(admitted)
            .start(admitted, work)
            .end(admitted + 10, work, Verdict::Success)
            .come_back(admitted + 10, Verdict::Success)
            .settled(admitted + 10, Settlement::Ack)
    };
    (world, [course(1, 0), course(2, admitted)])
}

fn root(initiated: u64, deadline: Duration) -> Root {
    Root::new(Moment::START + Duration::from_micros(initiated), deadline)
}

fn found((mut world, courses): (World, [Course; 2])) -> Vec<String> {
    world.log.deliveries.extend(courses.into_iter().map(|course| course.log));
    world.judge().disagreements
}

const DEFAULT: Duration = Duration::from_secs(30);
const BEGAN: u64 = 500_000;

/// The run with a shutdown that began at half a second.
fn begun(by: Initiator, deadline: Duration, change: impl FnOnce(&mut World)) -> Vec<String> {
    let (mut world, courses) = two(100_000);
    world.run(BEGAN, RunEvent::ShutdownBegan { by, root: root(BEGAN, deadline) });
    change(&mut world);
    found((world, courses))
}

#[track_caller]
fn check(found: &[String], expected: &str) {
    match expected {
        "" => assert_eq!(found, [""; 0]),
        _ => assert!(found.iter().any(|it| it.contains(expected)), "{expected}: {found:?}"),
    }
}

#[test]
fn a_root_ends_as_long_after_its_initiation_as_the_workload_says() {
    let second = Duration::from_secs(1);
    check(&begun(Initiator::Terminate, DEFAULT, |_| {}), "");
    check(&begun(Initiator::Terminate, second, |_| {}), "B4: end of the root");
    check(&begun(Initiator::MaxTime, second, |_| {}), "");
}

#[test]
fn a_schedule_begins_at_its_very_instant() {
    let at = |at| begun(Initiator::Schedule, DEFAULT, |world| world.workload.shutdown.at = at);
    check(&at(Some(Duration::from_micros(BEGAN))), "");
    check(&at(Some(Duration::from_micros(BEGAN + 1))), "D1: scheduled initiation");
    check(&at(None), "D1: scheduled initiation");
}

#[test]
fn so_many_deliveries_have_left_when_that_begins_it() {
    let after = |after| {
        begun(Initiator::AfterDeliveries, DEFAULT, |world| {
            world.workload.shutdown.after_deliveries = after;
        })
    };
    check(&after(Some(2)), "");
    check(&after(Some(3)), "D1: initiation by deliveries: the rules say after 3");
    check(&after(None), "D1: initiation by deliveries: the rules say never");
}

#[test]
fn a_load_that_ends_after_so_many_deliveries_was_shut_down() {
    let ended = |after| {
        let (mut world, courses) = two(100_000);
        world.workload.shutdown.after_deliveries = Some(after);
        world.run(BEGAN, RunEvent::LoadEnded);
        found((world, courses))
    };
    check(&ended(3), "");
    check(&ended(2), "D1: initiation by deliveries: the rules say after 2, the log says never");
}

#[test]
fn nobody_is_admitted_when_admission_is_closed() {
    let late = |admission, event| {
        let (mut world, mut courses) = two(600_000);
        let under = root(BEGAN, DEFAULT);
        if let RunEvent::ShutdownBegan { .. } = event {
            let admitted = &mut courses[1].log.entries[0].event;
            *admitted = crate::event::Event::Observed(crate::event::Observation::Admitted {
                root: Some(Box::new(under)),
            });
        }
        world.workload.shutdown.admission = admission;
        world.run(BEGAN, event);
        found((world, courses))
    };
    let began = RunEvent::ShutdownBegan { by: Initiator::Terminate, root: root(BEGAN, DEFAULT) };
    check(&late(AdmissionPolicy::Keep, began), "");
    check(
        &late(AdmissionPolicy::Close, began),
        "C4: admission of delivery 2: the rules say none after",
    );
    check(&late(AdmissionPolicy::Keep, RunEvent::Forced), "C4: admission of delivery 2");
}
