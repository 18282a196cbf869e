//! Doctored logs: each names the rule that it breaks.

use super::world::*;
use std::time::Duration;

use crate::event::{Decision, Observation, Settlement, StepEnd, StepId, StepOutcome, Verdict};
use crate::obligation::{Evidence, Obligation};
use crate::timeline::Reason;
use crate::workload::{Address, Connection, Stage, Tcp, Work};

/// One delivery with a callback and a scope, cut and cleaned up as the rules want it.
struct Sound {
    world: World,
    work: StepId,
    tx: StepId,
    dispose: StepId,
}

fn sound() -> (Sound, Course) {
    let mut world = World::new();
    let tx = world.callback("tx");
    let work = world.handler("work", sleep());
    let dispose = world.scope();
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .call(1_625_000, tx, 1_906_250)
        .end(1_630_000, tx, Verdict::Success)
        .dispose(1_630_000, dispose, 2_000_000)
        .end(1_640_000, dispose, Verdict::Success)
        .settled(1_640_000, Settlement::DeadLetter);
    (Sound { world, work, tx, dispose }, course)
}

type Doctoring = fn(&mut Decision);
type Continuation = dyn Fn(Course, &Sound) -> Course;

/// The sound log, with `change` made to each decision that it takes an interest in.
fn doctored(change: impl Fn(&mut Decision, &Sound)) -> Vec<String> {
    let (sound, mut course) = sound();
    for entry in &mut course.log.entries {
        if let crate::event::Event::Decided(decision) = &mut entry.event {
            change(decision, &sound);
        }
    }
    sound.world.disagreements(course)
}

/// The sound log up to its first `kept` entries, and what comes then.
fn continued(kept: usize, more: impl FnOnce(Course, &Sound) -> Course) -> Vec<String> {
    let (sound, mut course) = sound();
    course.log.entries.truncate(kept);
    let course = more(course, &sound);
    sound.world.disagreements(course)
}

#[track_caller]
fn finds(found: &[String], words: &[&str]) {
    let is_found = found.iter().any(|text| words.iter().all(|word| text.contains(word)));
    assert!(is_found, "no disagreement with {words:?} in {found:#?}");
}

#[test]
fn a_sound_log_has_none() {
    let (sound, course) = sound();
    assert_eq!(sound.world.disagreements(course), [""; 0]);
}

#[test]
fn a_disagreement_names_the_delivery_the_rule_and_both_values() {
    let found = doctored(|decision, _| {
        if let Decision::Signal { due, .. } = decision {
            *due = at(1_400_000);
        }
    });
    let expected =
        "delivery 1: C1: signal: the rules say 1500000.000us, the log says 1400000.000us";
    assert_eq!(found[0], expected);
}

#[test]
fn wrong_instants_are_found() {
    let cases: [(&str, Doctoring); 5] = [
        ("C1: reason", |decision| {
            if let Decision::Signal { reason, .. } = decision {
                *reason = Reason::ShutdownDeadline;
            }
        }),
        ("W2: end of the window", |decision| {
            if let Decision::Cut { due } = decision {
                *due = at(1_600_000);
            }
        }),
        ("K2: share", |decision| {
            if let Decision::Call { until, .. } = decision {
                *until = at(2_000_000);
            }
        }),
        ("K4: end of the disposal", |decision| {
            if let Decision::Dispose { until, .. } = decision {
                *until = at(1_906_250);
            }
        }),
        ("M2: confirmation", |decision| {
            if let Decision::Settle { until, .. } = decision {
                *until = at(2_000_000);
            }
        }),
    ];
    for (words, change) in cases {
        finds(&doctored(|decision, _| change(decision)), &[words]);
    }
    let wrong_settlement = doctored(|decision, _| {
        if let Decision::Settle { settlement, .. } = decision {
            *settlement = Settlement::Ack;
        }
    });
    finds(&wrong_settlement, &["M1", "the rules say dead_letter, the log says ack"]);
}

#[test]
fn what_happens_twice_is_found() {
    let (_, course) = sound();
    let whole = course.log.entries.len();
    let twice: [(&str, &Continuation, usize); 9] = [
        ("C2: signal", &|course, _| course.signal(1_500_000, Reason::DeliveryTimeout), 4),
        ("X1: cuts", &|course, _| course.cut(1_625_000), 6),
        ("ends of the pipeline", &|course, _| course.drop_pipeline(1_625_000), 7),
        ("K3: calls", &|course, it| course.call(1_640_000, it.tx, 2_000_000), whole),
        ("K4: disposals", &|course, it| course.dispose(1_640_000, it.dispose, 2_000_000), whole),
        ("M1: settlements", &|course, _| course.settle(1_650_000, Settlement::Ack, 0), whole),
        ("M4: settlements", &|course, _| course.revoke(1_650_000), whole),
        ("X7: times", &|course, _| course.decide(1_650_000, Decision::FreeSlot), whole),
        ("X4: freezes", &|course, _| course.freeze(2_000_000).freeze(2_000_000), whole),
    ];
    for (words, more, kept) in twice {
        finds(&continued(kept, more), &[words]);
    }
}

#[test]
fn what_comes_too_early_or_out_of_turn_is_found() {
    let early = continued(2, |course, _| {
        let due = at(1_500_000);
        course
            .tick(900_000)
            .decide(900_000, Decision::Signal { reason: Reason::DeliveryTimeout, due })
    });
    finds(&early, &["C1", "not before 1500000.000us", "900000.000us"]);
    finds(&continued(4, |course, it| course.tick(1_600_000).cut_early(it)), &["X1", "not before"]);
    finds(&continued(6, |course, it| course.start(1_625_000, it.work)), &["X5", "starts after"]);
    let called = |course: Course, it: &Sound| course.call(1_625_000, it.tx, 1_906_250);
    finds(&continued(6, called), &["X3", "callback"]);
    let disposed = |course: Course, it: &Sound| course.dispose(1_625_000, it.dispose, 2_000_000);
    finds(&continued(6, disposed), &["X3", "disposal"]);
    finds(&continued(7, disposed), &["K4", "last of cleanup"]);
    let settled =
        |course: Course, _: &Sound| course.settle(1_625_000, Settlement::DeadLetter, 6_625_000);
    finds(&continued(7, settled), &["M1", "after callbacks and scope"]);
    finds(&continued(6, settled), &["M4", "unreleased"]);
    let revoked = continued(6, |course, _| course.tick(1_700_000).revoke(1_700_000));
    finds(&revoked, &["M4", "not before 2000000.000us"]);
    let froze = continued(6, |course, _| {
        course.tick(1_900_000).decide(1_900_000, Decision::Freeze { due: at(1_900_000) })
    });
    finds(&froze, &["W1", "the rules say 2000000.000us, the log says 1900000.000us"]);
    finds(&continued(6, |course, _| course.decide(1_625_000, Decision::FreeSlot)), &["X7"]);
    let redelivered = continued(6, |course, _| course.decide(1_625_000, Decision::Redeliver));
    finds(&redelivered, &["M1", "redelivery"]);
    let expired = |course: Course, _: &Sound| {
        course.decide(1_640_000, Decision::Expire { due: at(1_640_000) })
    };
    finds(&continued(6, expired), &["M3", "expiry"]);
    finds(&continued(4, |course, _| course.drop_pipeline(1_550_000)), &["X1", "was not cut"]);
    let confirmed = continued(6, |course, _| course.confirm(1_625_000));
    finds(&confirmed, &["M3", "confirmation"]);
}

impl Course {
    fn cut_early(self, _: &Sound) -> Self {
        self.decide(1_600_000, Decision::Cut { due: at(1_625_000) })
    }
}

#[test]
fn what_was_due_and_not_decided_is_found_once() {
    let seen = |step| Observation::SignalSeen { step };
    let unsignalled = continued(2, |course, it| {
        course.see(1_500_001, seen(it.work)).see(1_500_002, seen(it.work))
    });
    finds(&unsignalled, &["C1: signal", "due at 1500000.000us", "not decided by 1500001.000us"]);
    assert_eq!(unsignalled.iter().filter(|text| text.contains("C1: signal")).count(), 1);
    let uncut = continued(4, |course, it| course.see(1_625_001, seen(it.work)));
    finds(&uncut, &["X1: cut", "not decided"]);
    let unfrozen = continued(6, |course, it| course.see(2_000_001, seen(it.work)));
    finds(&unfrozen, &["X4: freeze", "not decided"]);
    let overrun = continued(8, |course, it| course.see(1_906_251, seen(it.work)));
    finds(&overrun, &["K2: cut of a callback", "not decided"]);
    let (mut sound, mut course) = sound();
    course.log.entries.truncate(7);
    sound.world.run(9_000_000, crate::event::RunEvent::ObservationEnded);
    let undone = sound.world.disagreements(course);
    finds(&undone, &["K1: callback tx-terminate", "never called"]);
    finds(&undone, &["K4: disposal", "never started"]);
    finds(&undone, &["M1: settlement", "the rules say dead_letter, the log says none"]);
}

#[test]
fn a_wrong_order_of_elements_is_found() {
    let mut world = World::new();
    let [before, after, _] = world.middleware("m", &[Stage::Before, Stage::After]);
    let (before, after) = (before.expect("asked for"), after.expect("asked for"));
    let work = world.handler("work", sleep());
    let no = failure("NO", PERMANENT);
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .start(0, before)
        .end(10, before, no.clone())
        .start(10, after)
        .decide(10, Decision::Return { verdict: Verdict::Success });
    let found = world.disagreements(course);
    finds(&found, &["N1: next to start", "the rules say m-before, the log says work"]);
    finds(&found, &["N1: next to start", "the rules say nothing, the log says m-after"]);
    finds(&found, &["N2: result", "NO", "the log says Success"]);
}

#[test]
fn callbacks_out_of_turn_are_found() {
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
        .call(1_625_000, outer, 1_765_625)
        .call(1_625_000, inner, 1_906_250)
        .freeze(2_000_000);
    let found = world.disagreements(course);
    finds(&found, &["K1: next callback", "inner-terminate, the log says outer-terminate"]);
    finds(&found, &["K1: cleanup at once"]);
}

/// A delivery whose only step has succeeded, and whose pipeline has not returned.
fn worked() -> (World, Course) {
    let mut world = World::new();
    let work = world.handler("work", sleep());
    let course = Course::new().admit(0).start(0, work).end(10, work, Verdict::Success);
    (world, course)
}

#[test]
fn a_signal_or_cut_after_the_return_is_found() {
    let (world, course) = worked();
    let course = course.come_back(10, Verdict::Success).time_out(1_500_000).cut(1_625_000);
    let found = world.disagreements(course);
    finds(&found, &["P10: signal after the pipeline's end"]);
    finds(&found, &["W3: cut after the pipeline's end"]);
}

#[test]
fn a_frame_still_on_its_way_out_at_the_cutoff_is_neither_signalled_nor_cut() {
    let (world, course) = worked();
    let course = course
        .decide(10, Decision::Return { verdict: Verdict::Success })
        .see(1_700_000, Observation::PipelineReturned)
        .settled(1_700_000, Settlement::Ack);
    assert_eq!(world.disagreements(course), [""; 0]);
}

#[test]
fn a_root_with_a_wrong_cutoff_is_found_in_both_logs() {
    let (mut sound, course) = sound();
    let wrong = root(1_700_000, 5_000_000, 9_700_000);
    sound.world.shutdown(wrong);
    let found = sound.world.disagreements(course.publish(1_700_000, wrong));
    finds(&found, &["the run: B4", "7700000.000us"]);
    finds(&found, &["delivery 1: B4", "7700000.000us", "5000000.000us"]);
}

#[test]
fn moments_that_go_back_are_found() {
    let (sound, course) = sound();
    finds(&sound.world.disagreements(course.tick(1_000)), &["order", "1000.000us"]);
}

#[test]
fn odd_receipts_are_found_and_never_believed() {
    let (mut sound, course) = sound();
    let course = course
        .open(1_640_000, 0, Obligation::Thread, sound.work)
        .open(1_640_000, 0, Obligation::Task, sound.tx)
        .close(1_650_000, 0, Evidence::TaskJoined)
        .close(1_650_000, 0, Evidence::ThreadFinished)
        .close(1_650_000, 7, Evidence::ThreadFinished)
        .see(1_650_000, Observation::Admitted { root: None })
        .see(1_650_000, Observation::Released);
    sound.world.log.deliveries.push(course.log);
    let audit = sound.world.judge();
    finds(&audit.disagreements, &["section 4: receipt:", "TaskJoined"]);
    finds(&audit.disagreements, &["section 4: receipts", "another"]);
    finds(&audit.disagreements, &["section 4: obligation", "none"]);
    finds(&audit.disagreements, &["section 4: openings"]);
    finds(&audit.disagreements, &["S: admissions"]);
    finds(&audit.disagreements, &["C4: release"]);
    let thread = obligation(&audit.deliveries[0], Obligation::Thread);
    assert_eq!(thread.evidence, None);
}

/// A handler that connects, and waits 1 s at most for the first byte.
fn asking() -> (World, StepId) {
    let mut world = World::new();
    let connection = Connection {
        to: Address::Host { host: "127.0.0.1".into(), port: 80 },
        connect_timeout: None,
        read_timeout: Some(Duration::from_secs(1)),
        idle_timeout: None,
    };
    let (send, read, hold) = (String::new(), None, None);
    let ask = world.handler("ask", Work::Tcp(Box::new(Tcp { connection, send, read, hold })));
    (world, ask)
}

#[test]
fn a_connection_that_is_missing_or_outlives_its_step_is_found() {
    let (world, ask) = asking();
    let (other, _) = asking();
    let begun = || Course::new().admit(0).start(0, ask);
    let open = begun()
        .open(1, 0, Obligation::Connection, ask)
        .step_ended(9, ask, StepOutcome::Dropped)
        .close(10, 0, Evidence::ConnectionClosed);
    finds(&world.disagreements(open), &["section 4", "ask still had one"]);
    let none = begun().step_ended(9, ask, StepOutcome::Success);
    finds(&other.disagreements(none), &["section 4", "ask had none"]);
}

#[test]
fn a_limit_that_runs_out_too_early_or_where_only_the_signal_counts_is_found() {
    let ended = |start: u64, at: u64| {
        let (world, ask) = asking();
        let code = Some("TIMEOUT_READ".into());
        let (outcome, polls) = (StepOutcome::Failure, 2);
        let end = StepEnd { step: ask, outcome, code, polls, left: None, over: None, traces: None };
        let course = Course::new()
            .admit(0)
            .start(0, ask)
            .see(start, Observation::StepStarted { step: ask })
            .open(start, 0, Obligation::Connection, ask)
            .close(at, 0, Evidence::ConnectionClosed)
            .see(at, Observation::StepEnded(end.into()));
        world.disagreements(course)
    };
    finds(&ended(0, 999_999), &["P12", "not before 1000000.000us", "999999.000us"]);
    // Begun at 500 ms it is due at `P`, and never fires.
    finds(&ended(500_000, 1_500_000), &["P2", "from 1500000.000us on"]);
    let is_about_limits = |text: &String| text.contains("limit");
    assert!(!ended(400_000, 1_400_000).iter().any(is_about_limits));
}

#[test]
fn a_delivery_of_which_nothing_is_known_is_found() {
    let mut world = World::new();
    world.handler("work", sleep());
    finds(&world.disagreements(Course::new()), &["C4: delivery", "neither"]);
}

/// How many entries of the sound log come before the decision or receipt of that name.
const UNTIL_SIGNAL: usize = 2;
const UNTIL_CALL: usize = 7;
const UNTIL_CALLBACK_ENDED: usize = 8;
const UNTIL_DISPOSAL: usize = 10;
const UNTIL_DISPOSED: usize = 11;
const UNTIL_SETTLEMENT: usize = 13;
const UNTIL_CONFIRMATION: usize = 14;
const WHOLE: usize = 16;

#[test]
fn cleanup_out_of_time_is_found() {
    let cases: [(&[&str], &Continuation, usize); 8] = [
        (
            &["K2: callback past the chain's end"],
            &|course, it| course.tick(1_910_000).call(1_910_000, it.tx, 1_910_000),
            UNTIL_CALL,
        ),
        (
            &["X4: callback after the freeze"],
            &|course, it| course.freeze(2_000_000).call(2_000_000, it.tx, 2_000_000),
            UNTIL_CALL,
        ),
        (
            &["X4: disposal after the freeze"],
            &|course, it| course.freeze(2_000_000).dispose(2_000_000, it.dispose, 2_000_000),
            UNTIL_DISPOSAL,
        ),
        (
            &["K4: disposer", "the rules say dispose, the log says work"],
            &|course, it| course.dispose(1_630_000, it.work, 2_000_000),
            UNTIL_DISPOSAL,
        ),
        (
            &["K2: cut of what does not run"],
            &|course, it| course.cut_callback(1_906_250, it.tx),
            UNTIL_DISPOSAL,
        ),
        (
            &["K2: cuts of cleanup"],
            &|course, it| course.cut_callback(1_906_250, it.tx).cut_callback(1_906_250, it.tx),
            UNTIL_CALLBACK_ENDED,
        ),
        (
            &["K2: end of cleanup", "1906250.000us", "1800000.000us"],
            &|course, it| course.cut_callback(1_800_000, it.tx),
            UNTIL_CALLBACK_ENDED,
        ),
        (
            &["K4: end of cleanup", "2000000.000us", "1800000.000us"],
            &|course, it| {
                let (step, due) = (it.dispose, at(1_800_000));
                course.tick(1_800_000).decide(1_800_000, Decision::CutDisposal { step, due })
            },
            UNTIL_DISPOSED,
        ),
    ];
    for (words, more, kept) in cases {
        finds(&continued(kept, more), words);
    }
}

#[test]
fn a_disposal_need_not_wait_for_callbacks_that_have_no_time_left() {
    let found = continued(UNTIL_CALL, |course, it| {
        course.tick(1_906_250).dispose(1_906_250, it.dispose, 2_000_000)
    });
    assert!(!found.iter().any(|text| text.contains("last of cleanup")), "{found:#?}");
}

#[test]
fn settlements_out_of_turn_are_found() {
    fn expire(course: Course, micros: u64, due: u64) -> Course {
        course.tick(micros).decide(micros, Decision::Expire { due: at(due) })
    }
    fn redeliver(course: Course) -> Course {
        course.decide(1_650_000, Decision::Redeliver)
    }
    let cases: [(&[&str], &Continuation, usize); 6] = [
        (
            &["M4: right to settle of a released execution"],
            &|course, _| course.tick(2_000_000).revoke(2_000_000),
            UNTIL_SETTLEMENT,
        ),
        (
            &["X7: slot: the rules say until the settlement is over"],
            &|course, _| course.decide(1_641_000, Decision::FreeSlot),
            UNTIL_CONFIRMATION,
        ),
        (
            &["M2: expiry of the settlement", "6640000.000us", "6000000.000us"],
            &|course, _| expire(course, 6_640_000, 6_000_000),
            UNTIL_CONFIRMATION,
        ),
        (
            &["M2: expiry of the settlement", "not decided by 6640001.000us"],
            &|course, it| course.see(6_640_001, Observation::SignalSeen { step: it.work }),
            UNTIL_CONFIRMATION,
        ),
        (
            &["M3: expiry of a settlement that is over"],
            &|course, _| expire(course, 6_640_000, 6_640_000),
            WHOLE,
        ),
        (&["M1: redeliveries"], &|course, _| redeliver(redeliver(course)), WHOLE),
    ];
    for (words, more, kept) in cases {
        finds(&continued(kept, more), words);
    }
}

#[test]
fn a_settlement_ahead_of_a_callback_is_found_without_a_scope_too() {
    let mut world = World::new();
    world.callback("tx");
    let work = world.handler("work", sleep());
    let course = Course::new()
        .admit(0)
        .start(0, work)
        .time_out(1_500_000)
        .cut(1_625_000)
        .drop_pipeline(1_625_000)
        .settled(1_625_000, Settlement::DeadLetter);
    finds(&world.disagreements(course), &["M1: settlement", "after callbacks and scope"]);
}

#[test]
fn a_settlement_that_nobody_or_nothing_asked_for_is_found() {
    let mut world = World::new().without_broker();
    world.handler("work", sleep());
    let course = Course::new().admit(0).settle(0, Settlement::Ack, 0);
    finds(&world.disagreements(course), &["M1: settlement without a broker"]);
    let mut world = World::new();
    world.handler("work", sleep());
    let course = Course::new().see(5, Observation::Released).settle(5, Settlement::Ack, 5_000_005);
    finds(&world.disagreements(course), &["M1", "the rules say released, the log says ack"]);
}

#[test]
fn a_course_that_jumps_is_found() {
    const SUCCESS: Decision = Decision::Return { verdict: Verdict::Success };
    let cases: [(&[&str], &Continuation, usize); 7] = [
        (
            &["P10: notice to detached work", "before it"],
            &|course, _| {
                let due = at(1_500_000);
                course.tick(1_500_000).decide(1_500_000, Decision::SignalDetached { due })
            },
            UNTIL_SIGNAL,
        ),
        (
            &["P10: notice to detached work", "1500000.000us", "900000.000us"],
            &|course, _| {
                let due = at(900_000);
                course.tick(1_500_000).decide(1_500_000, Decision::SignalDetached { due })
            },
            UNTIL_SIGNAL,
        ),
        (
            &["N1: return: the rules say work first"],
            &|course, _| course.decide(10, SUCCESS),
            UNTIL_SIGNAL,
        ),
        (
            &["N1: returns of the pipeline"],
            &|course, it| {
                course.end(10, it.work, Verdict::Success).decide(10, SUCCESS).decide(10, SUCCESS)
            },
            UNTIL_SIGNAL,
        ),
        (
            &["N1: return of the pipeline", "not decided"],
            &|course, _| course.see(10, Observation::PipelineReturned),
            UNTIL_SIGNAL,
        ),
        (
            &["N1: return", "after its last element returned"],
            &|course, _| course.come_back(10, Verdict::Success),
            UNTIL_SIGNAL,
        ),
        (&["C1: cut", "without one"], &|course, _| course.cut(1_625_000), UNTIL_SIGNAL),
    ];
    for (words, more, kept) in cases {
        finds(&continued(kept, more), words);
    }
    let unadmitted = continued(0, |course, _| course.time_out(1_500_000));
    finds(&unadmitted, &["C1: signal before admission"]);
    let revived = continued(0, |course, _| course.see(5, Observation::Released).admit(6));
    finds(&revived, &["C4: admission of what was released"]);
}

#[test]
fn a_run_whose_moments_go_back_is_found() {
    let (mut sound, course) = sound();
    sound.world.run(5_000, crate::event::RunEvent::LoadEnded);
    sound.world.run(9_000_000, crate::event::RunEvent::LoadEnded);
    sound.world.run(8_000_000, crate::event::RunEvent::Forced);
    let found = sound.world.disagreements(course);
    finds(&found, &["the run: order", "say at least 9000000.000us, the log says 8000000.000us"]);
}
