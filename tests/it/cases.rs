//! Every file of `tests/cases` keeps the promise of its own `[expect]`, on the real clock.
//!
//! On the real clock because what is promised is about real threads, tasks and destructors; nothing
//! here depends on how long anything took, only on what came before what.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use deadline_run::plan::Plan;
use deadline_run::report::{Clock, Listed, Report, RunFacts};
use deadline_run::{audit, drive, workload};

/// Runs a workload and judges it, as the program does.
pub fn run(path: &std::path::Path) -> (Report, Vec<String>) {
    let workload = match workload::file::load(path, &[]) {
        Ok(workload) => Arc::new(workload),
        Err(faults) => panic!("{faults}"),
    };
    let plan = Arc::new(Plan::new(&workload));
    let run = drive::real::run(&workload, &plan, &Default::default(), &Default::default())
        .expect("the system gives threads");
    let audit = audit::judge(&workload, &plan, &run.log);
    let facts = RunFacts {
        clock: Clock::Real,
        control: run.control,
        workload_nice: run.workload_nice,
        lateness: audit.lateness,
        started: String::new(),
        elapsed_us: 0,
        shutdown: audit.shutdown,
    };
    let report = Report::assemble(&workload, facts, audit.deliveries, Listed::All);
    (report, audit.disagreements)
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

#[test]
fn each_case_keeps_its_promise_and_the_two_readings_of_the_rules_agree() {
    let files = files("tests/cases");
    assert!(files.len() >= 20, "the cases are there");
    let broken: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = files.iter().map(|file| (file, scope.spawn(|| run(file)))).collect();
        runs.into_iter()
            .filter_map(|(file, running)| {
                let (report, disagreements) = running.join().expect("the run ends");
                let kept = report.exit_status == 0 && disagreements.is_empty();
                (!kept).then(|| {
                    let facts = serde_json::to_string_pretty(&report).expect("a report is JSON");
                    format!("{}: {disagreements:?}\n{facts}", file.display())
                })
            })
            .collect()
    });
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
