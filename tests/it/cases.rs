//! Every file of `tests/cases` keeps the promise of its own `[expect]`, on the real clock.
//!
//! On the real clock because what is promised is about real threads, tasks and destructors. The spans in
//! the cases are far apart, so that a loaded machine does not change what comes before what.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::{env, fs};

use deadline_run::obligation::Obligation;
use deadline_run::plan::Plan;
use deadline_run::replay::replay;
use deadline_run::report::{Outcome, Report};
use deadline_run::{audit, drive, workload};

use crate::judged::report_of_run;
use crate::replay::record_of;

/// Runs a workload and judges it, as the program does; its log replays.
pub fn run(path: &std::path::Path) -> (Report, Vec<String>) {
    let workload = match workload::file::load(path, &[]) {
        Ok(workload) => Arc::new(workload),
        Err(faults) => panic!("{faults}"),
    };
    let plan = Arc::new(Plan::new(&workload));
    let run = drive::real::run(&workload, &plan, &Default::default(), &Default::default())
        .expect("the system gives threads");
    if let Err(difference) = replay(&plan, &run.log) {
        panic!("{}: {difference}", path.display());
    }
    let record = record_of(path);
    if env::var_os("RECORD_LOGS").is_some() && !record.exists() {
        let text = serde_json::to_string(&run.log).expect("a log is JSON");
        fs::write(record, text + "\n").expect("the log is written");
    }
    let audit = audit::judge(&workload, &plan, &run.log);
    let disagreements = audit.disagreements.clone();
    (report_of_run(&workload, &run, audit), disagreements)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    files
}

/// Held by whoever runs workloads: what one does to the machine is not to be seen in the other.
pub static MACHINE: Mutex<()> = Mutex::new(());

/// So many cases are run at once.
const AT_ONCE: usize = 4;

fn next<'a>(left: &Mutex<std::slice::Iter<'a, PathBuf>>) -> Option<&'a PathBuf> {
    left.lock().expect("no run panics").next()
}

#[test]
fn each_case_keeps_its_promise_and_the_two_readings_of_the_rules_agree() {
    let _alone = MACHINE.lock();
    let files = files("tests/cases");
    assert!(files.len() >= 20, "the cases are there");
    // A few at a time: what all of them together do to a small machine is no case's business.
    let left = Mutex::new(files.iter());
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(file) = next(&left) {
                    let (report, disagreements) = run(file);
                    if report.exit_status != 0 || !disagreements.is_empty() {
                        let facts =
                            serde_json::to_string_pretty(&report).expect("a report is JSON");
                        let fault = format!("{}: {disagreements:?}\n{facts}", file.display());
                        broken.lock().expect("no run panics").push(fault);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().expect("no run panics");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_step_is_given_up_in_the_queue_or_owes_its_thread() {
    let _alone = MACHINE.lock();
    // Timeouts that come while threads begin: about one in 700 hit the moment between beginning and
    // opening when the two were apart.
    let text = r#"
        profile = "custom"
        observe = "10s"
        [budget]
        total = "500ms"
        [load]
        deliveries = 3000
        concurrency = 150
        [[handler]]
        name = "store"
        kind = "blocking"
        for = "500us"
        pool = "own"
        timeout = "1ms"
    "#;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("race.toml");
    fs::write(&file, text).expect("it can be written");
    let (report, disagreements) = run(&file);
    assert!(disagreements.is_empty(), "{disagreements:?}");
    for delivery in &report.deliveries {
        let threads =
            delivery.obligations.iter().filter(|row| row.kind == Obligation::Thread).count();
        let begun = delivery.steps.iter().filter(|step| {
            matches!(step.outcome, Outcome::Success | Outcome::Failure | Outcome::Dropped)
        });
        assert_eq!(threads, begun.count(), "{delivery:?}");
    }
}
