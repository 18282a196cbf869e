//! Every example under `workloads` does what its opening comment says, and what its kept report shows.
//!
//! On the real clock, because the examples are about real threads and destructors. Times, threads and
//! polls that depend on scheduling are left out; all other facts of a report are compared, so that a
//! fact that is added to the report is compared too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use deadline_run::foresight::foresee;
use deadline_run::plan::Plan;
use deadline_run::report::{RecordWord, Report};
use deadline_run::workload;
use serde_json::Value;

/// So many examples run beside each other: more would starve the shortest budgets of a small machine.
const AT_ONCE: usize = 4;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The stems of the files of that ending in a folder.
fn stems(folder: &str, ending: &str) -> BTreeSet<String> {
    fs::read_dir(root().join(folder))
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .map(|path| path.file_stem().expect("a name").to_str().expect("text").to_owned())
        .collect()
}

fn read(file: impl AsRef<Path>) -> String {
    let file = root().join(file);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn kept(name: &str) -> String {
    read(format!("reports/{name}.json"))
}

/// The comment that an example opens with, as one line.
fn opening(name: &str) -> String {
    read(format!("workloads/{name}.toml"))
        .lines()
        .map_while(|line| line.strip_prefix('#'))
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The numbers behind the words, wherever they stand in the opening comment.
fn told(name: &str, words: &str) -> Vec<u64> {
    let opening = opening(name).to_lowercase();
    opening
        .split(words)
        .skip(1)
        .map(|rest| {
            let digits = rest.trim_start().split(|letter: char| !letter.is_ascii_digit()).next();
            digits.and_then(|digits| digits.parse().ok()).expect("a number")
        })
        .collect()
}

/// Runs an example as a user does; its exit status and its report.
fn run(name: &str, folder: &Path) -> (i32, String) {
    let file = folder.join(format!("{name}.json"));
    let output = Command::new(env!("CARGO_BIN_EXE_deadline-run"))
        .args(["-q", "--progress", "never", &format!("workloads/{name}.toml"), "--report"])
        .arg(format!("json={}", file.display()))
        .current_dir(root())
        .output()
        .expect("the program runs");
    let report = fs::read_to_string(&file).expect("the report is written");
    (output.status.code().expect("it exits"), report)
}

/// A report without what differs from run to run.
fn facts(report: &str) -> Value {
    let mut report = serde_json::from_str(report).expect("a report is JSON");
    strip(&mut report);
    report
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // Of these alone the polls are told by the file; the others' wakers are the machine's.
            let keeps_polls = fields.get("kind").is_some_and(|kind| kind == "polls");
            fields.retain(|key, _| match key.as_str() {
                "polls" => keeps_polls,
                "who" | "advice" | "started" | "engine" | "found" | "why" => false,
                key => !key.ends_with("_us"),
            });
            fields.values_mut().for_each(strip);
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Where two reports differ, each with both values.
fn differences(kept: &Value, found: &Value) -> Vec<String> {
    match (kept, found) {
        (Value::Object(kept), Value::Object(found)) => {
            let keys: BTreeSet<_> = kept.keys().chain(found.keys()).collect();
            keys.into_iter()
                .flat_map(|key| {
                    let of = |fields: &serde_json::Map<String, Value>| {
                        fields.get(key).cloned().unwrap_or_default()
                    };
                    let inside = differences(&of(kept), &of(found));
                    inside.into_iter().map(move |line| format!(".{key}{line}"))
                })
                .collect()
        }
        (Value::Array(kept), Value::Array(found)) if kept.len() == found.len() => {
            let pairs = kept.iter().zip(found).enumerate();
            pairs
                .flat_map(|(place, (kept, found))| {
                    let inside = differences(kept, found);
                    inside.into_iter().map(move |line| format!("[{place}]{line}"))
                })
                .collect()
        }
        (kept, found) if kept == found => Vec::new(),
        (kept, found) => vec![format!(": kept {kept}, found {found}")],
    }
}

#[test]
fn each_example_does_what_its_comment_and_its_report_say() {
    let names = stems("workloads", "toml");
    assert!(names.len() >= 10, "the examples are there");
    let folder = tempfile::tempdir().expect("a folder");
    let waiting = Mutex::new(names.iter());
    let broken = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(name) = next else { break };
            let (status, report) = run(name, folder.path());
            let mut found: Vec<String> = differences(&facts(&kept(name)), &facts(&report))
                .into_iter()
                .map(|line| format!("{name}{line}"))
                .collect();
            let told = told(name, "exit status");
            if told != [u64::try_from(status).expect("no negative status")] {
                found.push(format!("{name}: exits with {status}, its comment says {told:?}"));
            }
            broken.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(work);
        }
    });
    let broken = broken.into_inner().expect("no example panicked");
    assert!(broken.is_empty(), "{}\n(reports/make makes the reports again)", broken.join("\n"));
}

#[test]
fn every_example_has_its_reports_and_every_report_its_example() {
    let examples = stems("workloads", "toml");
    assert_eq!(stems("reports", "txt"), examples);
    assert_eq!(stems("reports", "json"), examples);
}

#[test]
fn readme_lists_every_example() {
    let readme = read("README.md");
    for name in stems("workloads", "toml") {
        let link = format!("[`workloads/{name}.toml`](workloads/{name}.toml)");
        assert_eq!(readme.matches(&link).count(), 1, "{link}");
    }
}

#[test]
fn both_reports_of_an_example_are_of_one_run() {
    for name in stems("reports", "json") {
        let report: Report = serde_json::from_str(&kept(&name)).expect("a report");
        let text = read(format!("reports/{name}.txt"));
        let last = format!(": {} \u{b7} exit {}\n", report.verdict.why, report.exit_status);
        assert!(text.ends_with(&last), "{name}: the text does not end with {last}");
        assert_eq!(report.workload.file, PathBuf::from(format!("workloads/{name}.toml")));
    }
}

#[test]
fn check_finds_what_the_comment_says() {
    for name in stems("workloads", "toml") {
        let file = root().join(format!("workloads/{name}.toml"));
        let workload = workload::file::load(&file, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        let foresight = foresee(&workload, &Plan::new(&workload));
        let warnings = foresight.warnings.len();
        let told = format!(
            "Check: {} that cannot be proven, {warnings} {}",
            foresight.unprovable.len(),
            if warnings == 1 { "warning" } else { "warnings" },
        );
        assert!(opening(&name).contains(&told), "{name}: its comment does not say {told}");
    }
}

/// The seven records of the lesson, among those of the example, in order.
#[test]
fn progress_shows_the_seven_records_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, report) = run("progress", folder.path());
    let report: Report = serde_json::from_str(&report).expect("a report");
    let tasks = ["first", "second", "third", "fourth"];
    // The two tasks with a budget say nothing of their start.
    let records: Vec<_> = report.deliveries[0]
        .records()
        .into_iter()
        .map(|record| (record.step.name.clone(), record.word))
        .filter(|(name, word)| {
            let is_budgeted = matches!(name.as_str(), "third" | "fourth");
            tasks.contains(&name.as_str()) && !(is_budgeted && *word == RecordWord::Started)
        })
        .collect();
    let seven = [
        ("first", RecordWord::Started),
        ("first", RecordWord::Completed),
        ("second", RecordWord::Started),
        ("second", RecordWord::Dropped),
        ("third", RecordWord::Completed),
        ("fourth", RecordWord::Dropped),
        ("fourth", RecordWord::TimedOut),
    ];
    assert_eq!(records, seven.map(|(name, word)| (name.to_owned(), word)));
    let polls = |name: &str| {
        let step = report.deliveries[0].steps.iter().find(|step| step.name == name);
        step.map(|step| (step.polls, step.left))
    };
    assert_eq!(polls("first"), Some((2, None)));
    assert_eq!(polls("second"), Some((1, Some(0))));
    assert_eq!(polls("third"), Some((2, None)));
    assert_eq!(polls("fourth"), Some((2, Some(3))));
}
