//! Logs that were recorded once, under `tests/logs`, fed to a fresh engine: they hold the rules of today
//! against the decisions of then. `RECORD_LOGS=1` records those that are missing, when the cases run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use deadline_run::event::{Decision, Event, EventLog, Observation};
use deadline_run::plan::Plan;
use deadline_run::replay::replay;
use deadline_run::timeline::Reason;
use deadline_run::{audit, drive, workload};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(folder("cases"))
        .expect("the cases are there")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    cases.sort();
    cases
}

fn load(case: &Path) -> (Arc<workload::Workload>, Arc<Plan>) {
    let workload = workload::file::load(case, &[]).expect("the case is valid");
    let plan = Plan::new(&workload);
    (Arc::new(workload), Arc::new(plan))
}

/// Where the log of a case is kept.
pub fn record_of(case: &Path) -> PathBuf {
    folder("logs").join(case.file_stem().expect("a name")).with_extension("json")
}

#[test]
fn recorded_runs_replay_and_are_judged_without_disagreement() {
    for case in cases() {
        let record = record_of(&case);
        let text = fs::read_to_string(&record).expect("every case has a recorded log");
        let log: EventLog = serde_json::from_str(&text).expect("it is a log");
        let (workload, plan) = load(&case);
        if let Err(difference) = replay(&plan, &log) {
            panic!("{}: {difference}", record.display());
        }
        let audit = audit::judge(&workload, &plan, &log);
        assert!(audit.disagreements.is_empty(), "{}: {:?}", record.display(), audit.disagreements);
    }
}

#[test]
fn a_decision_that_was_changed_is_named() {
    let case = folder("cases").join("cpu-that-yields-is-cut.toml");
    let (_, plan) = load(&case);
    let text = fs::read_to_string(record_of(&case)).expect("it is recorded");
    let mut log: EventLog = serde_json::from_str(&text).expect("it is a log");
    let entries = &mut log.deliveries[0].entries;
    let place = entries
        .iter()
        .position(|entry| matches!(entry.event, Event::Decided(Decision::Cut { .. })))
        .expect("it was cut");
    entries[place].event = Event::Observed(Observation::Confirmed);
    let difference = replay(&plan, &log).expect_err("the cut is missing");
    assert_eq!(difference.place, place);
    assert!(difference.to_string().contains("replayed Cut"), "{difference}");
}

#[test]
fn a_forced_run_replays() {
    let text = "[budget]\ntotal = \"60s\"\n[load]\ndeliveries = 4\nconcurrency = 2\n\
                [[middleware]]\nterminate = { kind = \"io\", op = \"sleep\", for = \"1ms\" }\n\
                [[handler]]\nkind = \"io\"\nop = \"sleep\"\nfor = \"50s\"\n";
    let workload = workload::file::parse(Path::new("forced.toml"), text, &[]).expect("it is valid");
    let (plan, workload) = (Arc::new(Plan::new(&workload)), Arc::new(workload));
    let options =
        drive::real::Options { max_time: Some(Duration::from_secs(2)), ..Default::default() };
    let run = drive::real::run(&workload, &plan, &options, &Default::default()).expect("it runs");
    if let Err(difference) = replay(&plan, &run.log) {
        panic!("{difference}");
    }
    let audit = audit::judge(&workload, &plan, &run.log);
    assert!(audit.disagreements.is_empty(), "{:?}", audit.disagreements);
    let reasons: Vec<_> =
        audit.deliveries.iter().map(|row| row.signal.map(|it| it.reason)).collect();
    let forced = Some(Reason::ForcedShutdown);
    assert_eq!(reasons, [forced, forced, None, None], "two were running, two were released");
}

/// The recorded log of a case, for a test to damage.
fn recorded(case: &str) -> (Arc<workload::Workload>, Arc<Plan>, EventLog) {
    let case = folder("cases").join(case).with_extension("toml");
    let (workload, plan) = load(&case);
    let text = fs::read_to_string(record_of(&case)).expect("it is recorded");
    (workload, plan, serde_json::from_str(&text).expect("it is a log"))
}

#[test]
fn a_delivery_that_is_missing_from_the_log_is_no_success() {
    let (workload, plan, mut log) = recorded("choice-takes-only-what-has-weight");
    log.deliveries.remove(3);
    let audit = audit::judge(&workload, &plan, &log);
    let missing = ["the log holds 19 of 20 messages", "message 4 is missing from the log"];
    assert_eq!(audit.disagreements, missing);
}

#[test]
fn a_step_without_an_end_is_not_proven() {
    let (workload, plan, mut log) = recorded("custom-profile-settles-with-nobody");
    let is_end = |event: &Event| matches!(event, Event::Observed(Observation::StepEnded(_)));
    log.deliveries[0].entries.retain(|entry| !is_end(&entry.event));
    let audit = audit::judge(&workload, &plan, &log);
    let missing = "delivery 1: `handler-1` began and has no end, and nothing is owed for it";
    assert_eq!(audit.disagreements, [missing]);
}

#[test]
fn bounded_runs_lose_no_delivery() {
    let text = "[budget]\ntotal = \"60s\"\n[load]\ndeliveries = 20000\nconcurrency = 40\n\
                [settlement]\nredeliveries = 3\nconfirm_in = \"1ms\"\n\
                [[handler]]\nkind = \"polls\"\ncount = 1\nfail = { code = \"BUSY\", retryable = true }\n";
    let workload =
        workload::file::parse(Path::new("bounded.toml"), text, &[]).expect("it is valid");
    let (plan, workload) = (Arc::new(Plan::new(&workload)), Arc::new(workload));
    for round in 0..20 {
        let max_time = Some(Duration::from_millis(20 + round));
        let options = drive::real::Options { max_time, ..Default::default() };
        let run =
            drive::real::run(&workload, &plan, &options, &Default::default()).expect("it runs");
        let audit = audit::judge(&workload, &plan, &run.log);
        assert!(audit.disagreements.is_empty(), "{:?}", audit.disagreements);
    }
}
