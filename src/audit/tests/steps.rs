//! The rows of steps: outcomes, records and their order, what was degraded.

use std::sync::Arc;

use super::world::*;
use crate::event::{Observation, Settlement, StepEnd, StepOutcome, Verdict};
use crate::report::{Outcome, Progress, RecordWord};
use crate::workload::{CpuPlace, Stage, Wait, Work};

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
