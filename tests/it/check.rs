//! What is foreseen of a workload, and how `check` says it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use deadline_run::event::{Decision, Event};
use deadline_run::foresight::FindingKind::{self, *};
use deadline_run::foresight::{Foresight, foresee};
use deadline_run::plan::Plan;
use deadline_run::workload::{Workload, file};
use proptest::prelude::*;

use crate::simulated::{Work, World, run};

fn load(text: &str) -> Workload {
    file::parse(Path::new("w.toml"), text, &[]).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

fn foresight(text: &str) -> Foresight {
    let workload = load(text);
    foresee(&workload, &Plan::new(&workload))
}

/// Kind, subject and line of each finding: what cannot be proven first, then warnings.
fn found(foresight: &Foresight) -> Vec<(FindingKind, &str, Option<u32>)> {
    let findings = foresight.unprovable.iter().chain(&foresight.warnings);
    findings.map(|finding| (finding.kind, finding.about.as_str(), finding.line)).collect()
}

/// A handler of that work, in one line.
macro_rules! handler {
    ($name:literal, $keys:literal) => {
        concat!("[[handler]]\nname = '", $name, "'\n", $keys, "\n")
    };
}

/// One second: `P` at 750 ms, the cut at 812.5 ms, `E` at 1 s. The text, and all that is found in it.
const SECOND: &str = "[budget]\ntotal = '1s'\n";
type Findings = &'static [(FindingKind, &'static str, u32)];
const CASES: &[(&str, Findings)] = &[
    // Nothing to find.
    (handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '1ms'"), &[]),
    (handler!("a", "kind = 'blocking'\nfor = '1000ms'\nshare = 0.0"), &[(NeverDrawn, "a", 3)]),
    // What cannot be cut.
    (handler!("a", "kind = 'cpu'\nfor = '812500us'"), &[]),
    (handler!("a", "kind = 'cpu'\nfor = '1s'"), &[(AlwaysInterrupted, "a", 3)]),
    (
        handler!("a", "kind = 'cpu'\nfor = '1001ms'"),
        &[(CannotBeCut, "a", 3), (AlwaysInterrupted, "a", 3)],
    ),
    (handler!("a", "kind = 'cpu'\nfor = { mean = '1ms' }"), &[(CannotBeCut, "a", 3)]),
    (handler!("a", "kind = 'cpu'\nfor = { mean = '1ms' }\nyield_every = '1ms'"), &[]),
    (
        handler!("a", "kind = 'cpu'\nfor = { mean = '1ms' }\nyield_every = '188ms'"),
        &[(CannotBeCut, "a", 3)],
    ),
    // Threads.
    (handler!("a", "kind = 'blocking'\nfor = { min = '1ms', max = '1s' }"), &[]),
    (
        handler!("a", "kind = 'blocking'\nfor = { min = '1ms', max = '1001ms' }"),
        &[(ThreadOutlasts, "a", 3)],
    ),
    (
        handler!("a", "kind = 'blocking'\nfor = { min = '1ms', max = '5s' }\nlooks_every = '10ms'"),
        &[],
    ),
    (
        handler!(
            "a",
            "kind = 'blocking'\nfor = { min = '1ms', max = '5s' }\nlooks_every = '200ms'"
        ),
        &[(LooksTooRarely, "a", 3)],
    ),
    (
        handler!("a", "kind = 'cpu'\non = 'thread'\nfor = { mean = '1ms' }\nyield_every = '1ms'"),
        &[(ThreadOutlasts, "a", 3), (NoEffect, "a", 3)],
    ),
    // Tasks.
    (
        handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '1001ms'\ndetach = true"),
        &[(TaskOutlasts, "a", 3)],
    ),
    (
        handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '1001ms'\ndetach = true\ntimeout = '1s'"),
        &[],
    ),
    (handler!("a", "kind = 'cooperative'\nfor = '1001ms'\ndetach = true"), &[]),
    // Sockets and files.
    (handler!("a", "kind = 'io'\nop = 'http'\nurl = 'peer:p'\n[peers.p]\nbody = 1"), &[]),
    (
        handler!("a", "kind = 'io'\nop = 'http'\nurl = 'http://127.0.0.1:1'\ndetach = true"),
        &[(TaskOutlasts, "a", 3)],
    ),
    (
        handler!("a", "kind = 'io'\nop = 'http'\nurl = 'http://api.example'"),
        &[(ThreadOutlasts, "a", 3)],
    ),
    (handler!("a", "kind = 'io'\nop = 'read'\npath = 'x'"), &[(ThreadOutlasts, "a", 3)]),
    (handler!("a", "kind = 'io'\nop = 'write'\npath = 'x'"), &[(ThreadOutlasts, "a", 3)]),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'http'\nurl = 'http://127.0.0.1:1'\nread_timeout = '749ms'\nidle_timeout = '750ms'"
        ),
        &[(TimeoutNeverFires, "a", 3)],
    ),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'tcp'\nurl = 'tcp://127.0.0.1:1'\nread_timeout = '99ms'\nconnect_timeout = '100ms'\ntimeout = '100ms'"
        ),
        &[(TimeoutNeverFires, "a", 3)],
    ),
    (handler!("a", "kind = 'polls'\ncount = 1\n[peers.p]\nbody = 1"), &[(NoEffect, "peers.p", 7)]),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'http'\nurl = 'peer:p'\nread_timeout = '9ms'\n[peers.p]\n[expect]\ncodes.TIMEOUT_READ = 1\ncodes.TIMEOUT_IDLE = 1"
        ),
        &[(UnknownCode, "expect.codes.TIMEOUT_IDLE", 12)],
    ),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'http'\nurl = 'peer:p'\n[peers.p]\n[[expect.gap]]\nkind = 'connection'\n[[expect.gap]]\nkind = 'thread'"
        ),
        &[(NeverHolds, "expect.gap.2", 11)],
    ),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'http'\nurl = 'peer:p'\n[peers.p]\nanswer_after = '813ms'"
        ),
        &[(AlwaysInterrupted, "a", 3)],
    ),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'http'\nurl = 'peer:p'\nread_timeout = '99ms'\n[peers.p]\nanswer_after = '60s'"
        ),
        &[],
    ),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'http'\nurl = 'peer:p'\nconnect_timeout = '99ms'\n[peers.p]\naccept_after = '60s'"
        ),
        &[],
    ),
    // Destructors.
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'sleep'\nfor = { mean = '1ms' }\non_drop = { kind = 'blocking', for = '187ms' }"
        ),
        &[],
    ),
    (
        handler!(
            "a",
            "kind = 'io'\nop = 'sleep'\nfor = { mean = '1ms' }\non_drop = { kind = 'blocking', for = '188ms' }"
        ),
        &[(DestructorOutlasts, "a", 3)],
    ),
    (
        handler!(
            "a",
            "kind = 'polls'\ncount = 1\non_drop = { kind = 'cpu', for = '1ms', panic = true }"
        ),
        &[(DestructorPanics, "a", 3)],
    ),
    // Cleanup: 46.875 ms for disposal after callbacks, which share 140.625 ms.
    (
        "scope.dispose = { kind = 'io', op = 'sleep', for = '188ms' }\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(DisposerOutlasts, "dispose-1", 3)],
    ),
    (
        "[[middleware]]\nterminate = { kind = 'io', op = 'sleep', for = '140ms' }\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[],
    ),
    (
        "[[middleware]]\nterminate = { kind = 'io', op = 'sleep', for = '141ms' }\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(CallbackOverShare, "terminate-1", 4)],
    ),
    (
        "[[middleware]]\nterminate = { kind = 'cpu', for = '188ms' }\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(CannotBeCut, "terminate-1", 4), (CallbackOverShare, "terminate-1", 4)],
    ),
    // The broker.
    (
        "settlement.confirm = false\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NotConfirmed, "settlement.confirm", 3)],
    ),
    ("settlement.confirm_in = '5s'\n[[handler]]\nkind = 'polls'\ncount = 1", &[]),
    (
        "settlement.confirm_in = '6s'\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NotConfirmed, "settlement.confirm_in", 3)],
    ),
    // In time or not.
    (handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '812500us'"), &[]),
    (
        handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '813ms'\nshare = 0.5"),
        &[(AlwaysInterrupted, "a", 3)],
    ),
    (
        concat!(
            handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '500ms'"),
            handler!("b", "kind = 'io'\nop = 'sleep'\nfor = '313ms'")
        ),
        &[(AlwaysInterrupted, "b", 8)],
    ),
    (
        concat!(
            handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '500ms'\noptional = true"),
            handler!("b", "kind = 'cooperative'\nfor = '5s'")
        ),
        &[],
    ),
    (handler!("a", "kind = 'cooperative'\nfor = '5s'\nwind_down = '62ms'"), &[]),
    (
        handler!("a", "kind = 'cooperative'\nfor = '5s'\nwind_down = '63ms'"),
        &[(WindDownTooLong, "a", 3)],
    ),
    (
        concat!(
            handler!("a", "kind = 'polls'\ncount = 1\nfail = 'BUSY'"),
            handler!("b", "kind = 'polls'\ncount = 1")
        ),
        &[(NeverStarts, "b", 8)],
    ),
    (
        concat!(
            handler!("a", "kind = 'polls'\ncount = 1\nfail = { code = 'BUSY', share = 0.5 }"),
            handler!("b", "kind = 'polls'\ncount = 1")
        ),
        &[],
    ),
    // Behind a step that may fail or end at the signal, nothing is sure.
    (
        "[[handler]]\nkind = 'sequence'\n[[handler.steps]]\nkind = 'polls'\ncount = 1\nfail = { code = 'BUSY', share = 0.5 }\n[[handler.steps]]\nkind = 'io'\nop = 'sleep'\nfor = '813ms'",
        &[],
    ),
    (
        concat!(
            handler!("a", "kind = 'cooperative'\nfor = '5s'"),
            handler!("b", "kind = 'blocking'\nfor = '251ms'")
        ),
        &[(ThreadOutlasts, "b", 7), (AlwaysInterrupted, "b", 7)],
    ),
    // Policies that change nothing.
    (
        handler!("a", "kind = 'io'\nop = 'sleep'\nfor = { mean = '1ms' }\ntimeout = '750ms'"),
        &[(TimeoutNeverFires, "a", 3)],
    ),
    (handler!("a", "kind = 'io'\nop = 'sleep'\nfor = { mean = '1ms' }\ntimeout = '749ms'"), &[]),
    (
        handler!("a", "kind = 'io'\nop = 'sleep'\nfor = '10ms'\ntimeout = '11ms'"),
        &[(TimeoutNeverFires, "a", 3)],
    ),
    (handler!("a", "kind = 'cpu'\nfor = '10ms'\ntimeout = '5ms'"), &[(TimeoutNeverFires, "a", 3)]),
    (handler!("a", "kind = 'polls'\ncount = 3\npoll_budget = 3"), &[]),
    (handler!("a", "kind = 'polls'\ncount = 3\npoll_budget = 4"), &[(PollBudgetNeverUsed, "a", 3)]),
    (
        handler!("a", "kind = 'polls'\ncount = 3\nfail = 'BUSY'\noptional = true"),
        &[(AllOptional, "a", 3)],
    ),
    (handler!("a", "kind = 'polls'\ncount = 3\noptional = true"), &[]),
    (
        "[[handler]]\nkind = 'choice'\nweights = [1, 0]\n[[handler.steps]]\nkind = 'polls'\ncount = 1\n[[handler.steps]]\nkind = 'polls'\ncount = 1",
        &[(NeverDrawn, "handler-1-2", 9)],
    ),
    // The load and the threads.
    (
        "load = { deliveries = 2, concurrency = 3 }\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(IdleSlots, "load.concurrency", 3)],
    ),
    (
        "load = { deliveries = 3, concurrency = 3 }\nruntime.blocking_threads = 2\n[[handler]]\nkind = 'blocking'\nfor = '1ms'",
        &[(TooFewThreads, "runtime.blocking_threads", 4)],
    ),
    (
        "cooperative_window = '0s'\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NoWindow, "budget.cooperative_window", 3)],
    ),
    ("reserve = '3ms'\n[[handler]]\nkind = 'polls'\ncount = 1", &[(NoWindow, "budget.reserve", 3)]),
    // The shutdown.
    (
        "shutdown.at = '1h'\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverShutDown, "shutdown.at", 3)],
    ),
    ("shutdown.at = '1s'\n[[handler]]\nkind = 'polls'\ncount = 1", &[]),
    (
        "shutdown.after_deliveries = 2\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverShutDown, "shutdown.after_deliveries", 3)],
    ),
    (
        "shutdown.deadline = '10ms'\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NoWindow, "shutdown.deadline", 3)],
    ),
    // A load with a rate.
    ("load = { deliveries = 9, rate = '9/s' }\n[[handler]]\nkind = 'polls'\ncount = 1", &[]),
    (
        "load = { deliveries = 9, rate = '9/s' }\nexpect.deliveries = 8\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.deliveries", 4)],
    ),
    (
        "load = { deliveries = 9, rate = '9/s' }\nshutdown.at = '500ms'\nexpect.deliveries = 8\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[],
    ),
    // Expectations.
    (
        "expect.success = 2\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.success", 3)],
    ),
    ("expect.success = '<= 2'\n[[handler]]\nkind = 'polls'\ncount = 1", &[]),
    (
        "expect.success = 1\nexpect.interrupted = 1\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.interrupted", 4)],
    ),
    (
        "expect.success = 1\n[[handler]]\nkind = 'io'\nop = 'sleep'\nfor = '813ms'",
        &[(NeverHolds, "expect.success", 3)],
    ),
    ("expect.interrupted = 1\n[[handler]]\nkind = 'io'\nop = 'sleep'\nfor = '813ms'", &[]),
    (
        "expect.panic = '>= 1'\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.panic", 3)],
    ),
    (
        "expect.degraded = 1\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.degraded", 3)],
    ),
    (
        "expect.p99 = '> 1s'\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.p99", 3)],
    ),
    (
        "expect.codes.BUSSY = 0\n[[handler]]\nkind = 'polls'\ncount = 1\nfail = 'BUSY'",
        &[(UnknownCode, "expect.codes.BUSSY", 3)],
    ),
    (
        "expect.gap = [{ kind = 'thread' }]\n[[handler]]\nkind = 'polls'\ncount = 1",
        &[(NeverHolds, "expect.gap.1", 3)],
    ),
    (
        "expect.interrupted = 1\n[[handler]]\nname = 'a'\nkind = 'blocking'\nfor = '2s'",
        &[(ThreadOutlasts, "a", 4), (Uncovered, "a", 4)],
    ),
    (
        "expect = { interrupted = 1, late = 1 }\n[[handler]]\nname = 'a'\nkind = 'blocking'\nfor = '2s'",
        &[(ThreadOutlasts, "a", 4)],
    ),
];

/// The keys of a case stand where they belong: `budget`'s own directly, the rest above any table.
fn text(case: &str) -> String {
    let (first, rest) = case.split_once('\n').unwrap_or((case, ""));
    let is_of_budget = first.starts_with("cooperative_window") || first.starts_with("reserve");
    match (first.starts_with('['), is_of_budget) {
        (true, _) | (_, true) => format!("{SECOND}{case}"),
        (false, false) => format!("\nbudget.total = '1s'\n{first}\n{rest}"),
    }
}

#[test]
fn each_finding_is_made_where_it_is_true_and_nowhere_else() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (case, expected) in CASES {
        let foresight = foresight(&text(case));
        let found = found(&foresight);
        seen.extend(found.iter().map(|(kind, ..)| *kind));
        let expected: Vec<_> =
            expected.iter().map(|(kind, about, line)| (*kind, *about, Some(*line))).collect();
        if found != expected {
            wrong.push(format!("{case}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert_eq!(seen.len(), 24, "every kind of finding has a case: {seen:?}");
}

#[test]
fn instants_are_those_of_the_rules() {
    let text = "[[middleware]]\nterminate = { kind = 'polls', count = 1 }\n\
                [[middleware]]\nterminate = { kind = 'polls', count = 1 }\n\
                [[handler]]\nkind = 'polls'\ncount = 1\n[load]\ndeliveries = 5\nconcurrency = 2\n";
    let instants = foresight(&format!("{SECOND}{text}")).instants;
    let micros = |span: Duration| span.as_micros();
    assert_eq!(micros(instants.normal_cutoff), 750_000);
    assert_eq!(micros(instants.window_end), 812_500);
    assert_eq!(micros(instants.window()), 62_500);
    assert_eq!(micros(instants.end), 1_000_000);
    assert_eq!(micros(instants.chain_end), 953_125);
    assert_eq!(micros(instants.share), 70_312);
    assert_eq!(micros(instants.disposal()), 46_875);
    assert_eq!(instants.settled.map(micros), Some(6_000_000));
    // Three turns; the first two hold their slots until the settlement expires.
    assert_eq!(instants.run.map(micros), Some(6_000_000 * 3 + 2_000_000));
}

#[test]
fn examples_have_the_findings_that_they_are_about() {
    for (name, expected) in [
        (
            "first",
            vec![(ThreadOutlasts, "compress", Some(32)), (AlwaysInterrupted, "compress", Some(32))],
        ),
        ("held-worker", vec![(CannotBeCut, "hash", Some(23))]),
        ("window", vec![]),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("workloads/{name}.toml"));
        let foresight = foresight(&fs::read_to_string(path).unwrap());
        assert_eq!(found(&foresight), expected, "{name}");
        assert!(foresight.unprovable.iter().all(|gap| gap.expected == (name == "held-worker")));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// A handler of two steps of fixed length, on the engine itself: what is called always
    /// interrupted is cut, what cannot be cut is a gap, and nothing else is either.
    #[test]
    fn what_is_foreseen_comes_true_on_the_engine(
        first in 0_u64..1_300, second in 0_u64..1_300, yields in any::<bool>(),
    ) {
        let keys = |millis| match yields {
            true => format!("[[handler]]\nkind = 'io'\nop = 'sleep'\nfor = '{millis}ms'\n"),
            false => format!("[[handler]]\nkind = 'cpu'\nfor = '{millis}ms'\n"),
        };
        let foresight = foresight(&format!("{SECOND}{}{}", keys(first), keys(second)));
        let has = |kind| found(&foresight).iter().any(|(found, ..)| *found == kind);
        let work = |millis| {
            let work = Work::takes(Duration::from_millis(millis));
            if yields { work } else { work.without_yielding() }
        };
        let world = World::new(Duration::from_secs(1), vec![work(first), work(second)]);
        let log = run(&world).log;
        let decided = |test: fn(&Decision) -> bool| {
            log.iter().find(|entry| matches!(&entry.event, Event::Decided(made) if test(made)))
        };
        let is_cut = decided(|made| matches!(made, Decision::Cut { .. })).is_some();
        prop_assert_eq!(has(AlwaysInterrupted), is_cut);
        let released = log.iter().find(|entry| matches!(
            &entry.event,
            Event::Observed(seen) if is_release(seen)
        ));
        let is_late = released.is_none_or(|entry| entry.at > world_end());
        prop_assert_eq!(has(CannotBeCut), is_late);
    }
}

fn is_release(seen: &deadline_run::event::Observation) -> bool {
    use deadline_run::event::Observation::{PipelineDropped, PipelineReturned};
    matches!(seen, PipelineReturned | PipelineDropped)
}

fn world_end() -> deadline_run::timeline::Moment {
    deadline_run::timeline::Moment::START + Duration::from_secs(1)
}

fn check(folder: &Path, line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deadline-run"));
    command.arg("check").args(line.split(' ')).current_dir(folder).env_clear();
    command.stdin(Stdio::null()).output().unwrap()
}

/// A folder with a valid `a.toml` and an invalid `b.toml`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = handler!("a", "kind = 'blocking'\nfor = '1h'");
    fs::write(folder.path().join("a.toml"), text).unwrap();
    fs::write(folder.path().join("b.toml"), "[[handler]]\nknid = 'cpu'\n").unwrap();
    folder
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_file_is_checked_and_the_worst_decides() {
    let folder = folder();
    let output = check(folder.path(), "b.toml none.toml a.toml -q");
    assert_eq!(output.status.code(), Some(2));
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("invalid: b.toml:") && lines[0].ends_with(" · exit 2"), "{text}");
    assert_eq!(
        lines[2],
        "ok: a is valid; 1 that cannot be proven by construction; 1 warning · exit 0"
    );
    assert!(lines[1].starts_with("invalid: none.toml: the file cannot be read"), "{text}");
    let faults = String::from_utf8(output.stderr).unwrap();
    assert!(faults.contains("b.toml:2:1: `knid`") && faults.contains("none.toml"), "{faults}");
}

/// The workload takes an hour, and the check does not.
#[test]
fn nothing_is_run_and_settings_count() {
    let folder = folder();
    let output =
        check(folder.path(), "a.toml --set budget.total=2s --set load.seed=3 --color never");
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    for part in [
        "a (a.toml): the plan, nothing was run\n",
        "1 delivery, 1 at a time, seed 3\n",
        "  1s 500ms  P: the signal asks it to end\n",
        "  1s 625ms  the window of 125ms ends: what still runs is cut\n",
        "  handler  a:1   blocking sleep 1h, never looks at the signal\n",
        "Cannot be proven by construction: 1\n  a.toml:1: a: takes 1h on a thread",
        "    help: give it a short `looks_every`, or split the work\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn the_plan_is_json_too() {
    let folder = folder();
    let output = check(folder.path(), "a.toml --report json --report text=a.txt");
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["format"], "deadline-run.plan/1");
    assert_eq!(plan["instants"]["normal_cutoff_us"], 29_000_000);
    assert_eq!(plan["instants"]["callback_share_us"], serde_json::Value::Null);
    assert_eq!(plan["unprovable"][0]["kind"], "thread_outlasts");
    assert_eq!(plan["unprovable"][0]["line"], 1);
    assert_eq!(plan["warnings"][0]["about"], "a");
    assert!(fs::read_to_string(folder.path().join("a.txt")).unwrap().ends_with(" · exit 0\n"));
    let output = check(folder.path(), "a.toml --report json=a.toml -q");
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).starts_with("invalid: report a.toml would overwrite"));
}

#[test]
fn a_timeout_that_comes_too_late_anyway_is_not_told_to_be_less_than_nothing() {
    let text = "[budget]\ntotal = '2s'\n[[handler]]\nkind = 'io'\nop = 'sleep'\nfor = '20s'\n\
                [[handler]]\nname = 'store'\nkind = 'io'\nop = 'sleep'\nfor = '1s'\ntimeout = '5ms'\n";
    let foresight = foresight(text);
    let finding = foresight.warnings.iter().find(|finding| finding.kind == TimeoutNeverFires);
    let mend = finding.map(|finding| finding.mend.as_str());
    assert_eq!(mend, Some("shorten what runs before it, or raise budget.total"));
}
