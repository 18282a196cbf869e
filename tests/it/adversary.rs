//! Work that does not end when it is told to, and reports that must not say that it did.
//!
//! On the real clock and with real threads. When a run has returned, the kernel is asked: each thread
//! that the report calls unproven is alive then, and each that it calls proven or late goes away by
//! itself. A thread of the pool that has nothing to do ends with its runtime, so one that stays is
//! inside a closure.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadline_run::event::{DeliveryLog, Event, EventLog, Observation, Opening, ThreadName};
use deadline_run::obligation::{Obligation, ObligationState};
use deadline_run::plan::Plan;
use deadline_run::replay::replay;
use deadline_run::report::{
    Delivery, DeliveryResult, LateReturn, ObligationRow, Report, Termination,
};
use deadline_run::workload::Workload;
use deadline_run::workload::sample::{Draw, NameHash, Occasion, Purpose};
use deadline_run::{audit, drive, workload};

use crate::judged::report_of_run;

/// Nobody waits longer than this for a thread that has nothing left to do.
const LONGEST_EXIT: Duration = Duration::from_secs(60);

/// Runs and judges a workload, and holds its report against the kernel.
fn run(text: &str) -> Report {
    let workload = load(text);
    let plan = Arc::new(Plan::new(&workload));
    let run = drive::real::run(&workload, &plan, &Default::default(), &Default::default())
        .expect("the system gives threads");
    let alive_at_return: HashSet<_> = threads(&run.log).filter(|name| is_alive(*name)).collect();
    let audit = audit::judge(&workload, &plan, &run.log);
    assert!(audit.disagreements.is_empty(), "{:?}", audit.disagreements);
    if let Err(difference) = replay(&plan, &run.log) {
        panic!("{difference}");
    }
    let report = report_of_run(&workload, &run, audit);
    assert_eq!(report.deliveries.len(), run.log.deliveries.len());
    let mut unproven = HashSet::new();
    for (delivery, log) in report.deliveries.iter().zip(&run.log.deliveries) {
        check_states(delivery);
        for (thread, row) in opened(&workload, log, delivery) {
            if row.state == ObligationState::Unproven {
                assert!(alive_at_return.contains(&thread), "{thread:?} has ended, and {row:?}");
                let who = row.who.as_ref().expect("a thread that is still there was seen");
                let named = (who.tid, who.start_ticks);
                assert_eq!(named, (Some(thread.tid), Some(thread.start_ticks)));
                unproven.insert(thread);
            }
        }
    }
    let gaps = report.deliveries.iter().flat_map(|delivery| &delivery.obligations);
    let gaps = gaps.filter(|row| row.state != ObligationState::Proven).count();
    assert_eq!(report.gaps.len(), gaps);
    let ended = threads(&run.log).filter(|thread| !unproven.contains(thread));
    check_gone(ended.collect());
    assert!(unproven.iter().all(|thread| is_alive(*thread)), "an unproven thread works on");
    report
}

fn load(text: &str) -> Arc<Workload> {
    match workload::file::parse(Path::new("adversary.toml"), text, &[]) {
        Ok(workload) => Arc::new(workload),
        Err(faults) => panic!("{faults}"),
    }
}

/// The threads that the log names.
fn threads(log: &EventLog) -> impl Iterator<Item = ThreadName> {
    log.deliveries.iter().flat_map(|log| &log.entries).filter_map(|entry| match &entry.event {
        Event::Observed(Observation::Opened { thread, .. }) => thread.as_deref().copied(),
        Event::Observed(Observation::Named { thread, .. }) => Some(**thread),
        _ => None,
    })
}

/// Each thread of the delivery, and what the report says of it: both are in the order of opening.
fn opened<'a>(
    workload: &Workload,
    log: &DeliveryLog,
    delivery: &'a Delivery,
) -> Vec<(ThreadName, &'a ObligationRow)> {
    let named = |wanted: Opening| {
        log.entries.iter().find_map(|entry| match &entry.event {
            Event::Observed(Observation::Named { opening, thread }) if *opening == wanted => {
                Some(&**thread)
            }
            _ => None,
        })
    };
    let opened = log.entries.iter().filter_map(|entry| match &entry.event {
        Event::Observed(Observation::Opened { step, thread, opening, .. }) => {
            let thread = thread.as_deref().or_else(|| named(*opening));
            Some((entry.at.micros(), &workload.step(*step).name, thread))
        }
        _ => None,
    });
    let is_opened =
        |row: &&ObligationRow| matches!(row.kind, Obligation::Task | Obligation::Thread);
    let rows = delivery.obligations.iter().filter(is_opened);
    assert_eq!(opened.clone().count(), rows.clone().count(), "each that was opened has a row");
    let matched = opened.zip(rows).filter_map(|((at, step, thread), row)| {
        assert_eq!((row.opened_us, row.step.as_ref()), (at, Some(step)));
        assert_eq!(thread.is_some(), row.kind == Obligation::Thread);
        Some((*thread?, row))
    });
    matched.collect()
}

/// What each row says of itself, and the delivery of its rows.
fn check_states(delivery: &Delivery) {
    let mut worst = Termination::NothingStarted;
    for row in &delivery.obligations {
        let (closed, due) = (row.closed_us, row.due_us);
        match row.state {
            ObligationState::Proven => {
                assert!(closed.is_some_and(|closed| closed <= due), "{row:?}");
                if worst == Termination::NothingStarted {
                    worst = Termination::Proven;
                }
            }
            ObligationState::Late => {
                // A receipt can be late by less than the microseconds show.
                assert!(closed.is_some_and(|closed| closed >= due), "{row:?}");
                if worst != Termination::Unproven {
                    worst = Termination::Late;
                }
            }
            ObligationState::Unproven => {
                assert_eq!(closed, None, "{row:?}");
                worst = Termination::Unproven;
            }
        }
    }
    assert_eq!(delivery.termination, worst);
}

fn is_alive(thread: ThreadName) -> bool {
    start_ticks(&format!("/proc/self/task/{}", thread.tid)) == Some(thread.start_ticks)
}

/// When the kernel started the thread, unless it is gone or going.
fn start_ticks(task: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("{task}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_going = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !is_going)
}

fn check_gone(threads: Vec<ThreadName>) {
    let since = Instant::now();
    for thread in threads {
        while is_alive(thread) {
            assert!(since.elapsed() < LONGEST_EXIT, "{thread:?} works on, and is called ended");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The only delivery of a report.
fn only(report: &Report) -> &Delivery {
    assert_eq!(report.deliveries.len(), 1);
    &report.deliveries[0]
}

/// What the report says of the work that the step has opened, in order.
fn states(report: &Report, kind: Obligation, step: &str) -> Vec<ObligationState> {
    let rows = report.deliveries.iter().flat_map(|delivery| &delivery.obligations);
    rows.filter(|row| row.kind == kind && row.step.as_deref() == Some(step))
        .map(|row| row.state)
        .collect()
}

#[test]
fn a_thread_detached_inside_a_detached_task_owes_its_own_end() {
    for (lasts, state) in [("1h", ObligationState::Unproven), ("20ms", ObligationState::Proven)] {
        let report = run(&format!(
            "observe = '50ms'\n[budget]\ntotal = '400ms'\n\
             [[handler]]\nkind = 'io'\nop = 'sleep'\nfor = '1ms'\n\
             [[handler]]\nname = 'outer'\nkind = 'sequence'\ndetach = true\nsteps = [\n\
             {{ kind = 'io', op = 'sleep', for = '1ms' }},\n\
             {{ name = 'inner', kind = 'blocking', for = '{lasts}', detach = true }}]\n"
        ));
        assert_eq!(only(&report).result, DeliveryResult::Success);
        assert_eq!(states(&report, Obligation::Task, "outer"), [ObligationState::Proven]);
        assert_eq!(states(&report, Obligation::Thread, "inner"), [state]);
    }
}

#[test]
fn the_loser_of_a_race_works_on_and_is_a_gap_of_a_success() {
    for pool in ["shared", "own"] {
        let report = run(&format!(
            "observe = '50ms'\n[budget]\ntotal = '400ms'\n\
             [[handler]]\nkind = 'parallel'\nwait = 'first'\nsteps = [\n\
             {{ name = 'quick', kind = 'io', op = 'sleep', for = '50ms' }},\n\
             {{ name = 'slow', kind = 'blocking', for = '1h', pool = '{pool}' }}]\n"
        ));
        assert_eq!(only(&report).result, DeliveryResult::Success);
        assert_eq!(only(&report).termination, Termination::Unproven);
        assert_eq!(states(&report, Obligation::Thread, "slow"), [ObligationState::Unproven]);
    }
}

#[test]
fn an_attempt_overlaps_the_one_before_whose_thread_still_works() {
    for (lasts, state) in [("1h", ObligationState::Unproven), ("500ms", ObligationState::Proven)] {
        let report = run(&format!(
            "observe = '50ms'\n[budget]\ntotal = '4s'\n[settlement]\nredeliveries = 1\n\
             [[handler]]\nname = 'copy'\nkind = 'blocking'\nfor = '{lasts}'\ntimeout = '20ms'\n\
             pool = 'own'\n"
        ));
        let attempts: Vec<_> =
            report.deliveries.iter().map(|it| (it.message, it.attempt, &it.overlaps)).collect();
        assert_eq!(attempts, [(1, 1, &vec![]), (1, 2, &vec![1])]);
        assert_eq!(states(&report, Obligation::Thread, "copy"), [state, state]);
    }
}

/// What holds a frame past `E` is its own step, inside the destructor; what the step says then
/// comes too late to be the result.
fn check_held_by_destructor(step: &str, late_return: LateReturn) {
    let report = run(&format!(
        "observe = '60s'\n[budget]\ntotal = '400ms'\n[[handler]]\nname = 'holder'\n{step}\n\
         on_drop = {{ kind = 'blocking', for = '700ms' }}\n"
    ));
    let delivery = only(&report);
    assert_eq!(delivery.result, DeliveryResult::Interrupted);
    assert_eq!(delivery.execution.late_return, Some(late_return));
    assert_eq!(states(&report, Obligation::Execution, "holder"), [ObligationState::Late]);
    let who = report.gaps[0].who.as_ref().expect("the destructor was seen");
    assert_eq!(who.inside.as_deref(), Some("destructor"));
}

#[test]
fn a_step_out_of_polls_is_not_gone_before_its_destructor_is() {
    check_held_by_destructor("kind = 'polls'\ncount = 5\npoll_budget = 2", LateReturn::Failure);
}

#[test]
fn a_step_that_panics_is_not_gone_before_its_destructor_is() {
    check_held_by_destructor("kind = 'cpu'\niterations = 1\npanic = true", LateReturn::Panic);
}

#[test]
fn a_thread_that_panics_is_not_over_before_its_destructor_is() {
    for (lasts, state) in [("1h", ObligationState::Unproven), ("20ms", ObligationState::Proven)] {
        let report = run(&format!(
            "observe = '50ms'\n[budget]\ntotal = '400ms'\n\
             [[handler]]\nname = 'holder'\nkind = 'blocking'\nfor = '1ms'\npanic = true\n\
             on_drop = {{ kind = 'blocking', for = '{lasts}' }}\n"
        ));
        assert_eq!(states(&report, Obligation::Thread, "holder"), [state]);
    }
}

#[test]
fn a_thread_that_ends_at_the_very_end_is_proven_or_late() {
    let report = run(
        "observe = '60s'\n[budget]\ntotal = '400ms'\n[load]\ndeliveries = 300\nconcurrency = 8\n\
         [[handler]]\nkind = 'io'\nop = 'sleep'\nfor = '5ms'\n\
         [[handler]]\nname = 'close'\nkind = 'blocking'\npool = 'own'\ndetach = true\n\
         for = { min = '394.6ms', max = '395.2ms' }\n",
    );
    let states = states(&report, Obligation::Thread, "close");
    // A machine that is busy can keep one from beginning.
    assert_eq!(states.len() as u64, report.totals.success);
    assert!(!states.contains(&ObligationState::Unproven), "{states:?}");
}

/// A seed with which one of so many messages draws a step of that name and share, and only one,
/// among the first so many; and which message that is.
fn seed_of_one(name: &str, share: f64, messages: u32, among: u32) -> (u64, u32) {
    let drawn = |seed| {
        (1..=messages).filter(move |message| {
            let step = NameHash::new(name);
            let occasion = Occasion { seed, message: *message, attempt: 1, retry: 1, step };
            Draw::new(occasion, Purpose::Share).happens(share)
        })
    };
    let one = (1..).find_map(|seed| {
        let mut drawn = drawn(seed);
        let first = drawn.next().filter(|first| *first <= among)?;
        drawn.next().is_none().then_some((seed, first))
    });
    one.expect("some seed is like that")
}

/// One delivery of many leaves a thread behind, while all leave `others`.
fn check_one_liar(messages: u32, among: u32, others: &str) {
    let (seed, liar) = seed_of_one("liar", 0.001, messages, among);
    let text = format!(
        "observe = '50ms'\n[budget]\ntotal = '4s'\n\
         [load]\ndeliveries = {messages}\nconcurrency = 8\nseed = {seed}\n\
         [[handler]]\n{others}\n\
         [[handler]]\nname = 'liar'\nkind = 'blocking'\npool = 'own'\nfor = '1h'\n\
         detach = true\nshare = 0.001\n"
    );
    let report = run(&text);
    // The line before its name: that of its header.
    let line = text.lines().position(|line| line.contains("liar")).expect("it is there");
    let gaps: Vec<_> = report
        .gaps
        .iter()
        .map(|gap| (gap.delivery, gap.step.as_deref(), gap.line, gap.kind, gap.state))
        .collect();
    let line = u32::try_from(line).ok();
    let unproven = ObligationState::Unproven;
    assert_eq!(gaps, [(Some(liar), Some("liar"), line, Obligation::Thread, unproven)]);
    assert_eq!(report.totals.proven, u64::from(messages) - 1);
}

#[test]
fn one_of_a_thousand_that_lies_is_found() {
    check_one_liar(1_000, 1_000, "kind = 'polls'\ncount = 1");
}

/// Thousands of threads come and go while the one is open; ids are used again where there are few.
#[test]
fn the_thread_of_a_gap_is_the_right_one_after_thousands_of_others() {
    check_one_liar(3_000, 40, "name = 'brief'\nkind = 'blocking'\npool = 'own'\nfor = '0s'");
}

/// The same from outside: the threads of steps that are left when the run is over are those that the
/// report names.
#[test]
fn the_threads_left_in_the_process_are_those_in_the_report() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let text = "observe = '1s'\n[budget]\ntotal = '400ms'\n[load]\ndeliveries = 20\nconcurrency = 4\n\
                [[handler]]\nkind = 'blocking'\npool = 'own'\nfor = '1ms'\n\
                [[handler]]\nname = 'left'\nkind = 'blocking'\npool = 'own'\nfor = '1h'\n\
                detach = true\nshare = 0.2\n";
    fs::write(folder.path().join("left.toml"), text).expect("the folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_deadline-run"));
    command.args(["left.toml", "--report", "json"]).current_dir(folder.path());
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it starts");
    let tasks = format!("/proc/{}/task", child.id());
    let output = std::thread::spawn(move || child.wait_with_output().expect("it ends"));
    // The thread that watches ends with the run: what is seen beside it is seen during the run.
    let mut left = HashSet::new();
    while !output.is_finished() {
        left = steps_beside_the_watch(&tasks).unwrap_or(left);
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = output.join().expect("nobody panics there");
    let report: Report = serde_json::from_slice(&output.stdout).expect("it is a report");
    assert_eq!(report.exit_status, 3);
    let named = report.gaps.iter().map(|gap| {
        assert_eq!(gap.state, ObligationState::Unproven, "{gap:?}");
        let who = gap.who.as_ref().expect("a thread that is still there was seen");
        (who.tid.expect("a thread has an id"), who.start_ticks.expect("and a start"))
    });
    let named: HashSet<_> = named.collect();
    assert!(!named.is_empty(), "some are drawn with this seed");
    assert_eq!(named, left);
}

/// The threads of steps, if the thread that watches is there both before and after they are read.
fn steps_beside_the_watch(tasks: &str) -> Option<HashSet<(u32, u64)>> {
    let named = |name: &str| -> Vec<u32> {
        let tids = fs::read_dir(tasks).into_iter().flatten().flatten();
        tids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|tid| {
                fs::read_to_string(format!("{tasks}/{tid}/comm"))
                    .is_ok_and(|comm| comm.trim_end() == name)
            })
            .collect()
    };
    let before = named("watch");
    let steps = named("step");
    let steps =
        steps.into_iter().filter_map(|tid| Some((tid, start_ticks(&format!("{tasks}/{tid}"))?)));
    let steps = steps.collect();
    (!before.is_empty() && before == named("watch")).then_some(steps)
}
