//! Tasks, threads and workers that are not over in time, and who is named.

use std::time::Duration;

use super::world::*;
use crate::event::{
    Decision, DeliveryId, Inside, Observation, Opening, RunEvent, Settlement, Sighting,
    StepOutcome, Target, ThreadName, ThreadState, Verdict,
};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::report::{DeliveryResult, ExecutionState, Termination};
use crate::workload::Stage;

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

impl Course {
    fn time_out_unstarted(self) -> Self {
        self.time_out(1_500_000).cut(1_625_000)
    }
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
