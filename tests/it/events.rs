//! `--events`: what happened is in the file as it happens, and `show` makes a true report of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use deadline_run::plan::Plan;
use deadline_run::report::Termination;
use deadline_run::{audit, events, workload};
use serde_json::Value;

use crate::place::Place;

/// Something of everything: callbacks, threads that outlive the deadline, detached work, redeliveries.
const WORKLOAD: &str = "\
name = \"orders\"
observe = \"60ms\"
profile = \"custom\"
[budget]
total = \"60ms\"
[load]
deliveries = 24
concurrency = 4
[settlement]
redeliveries = 1
[[middleware]]
name = \"tx\"
before = { kind = \"io\", op = \"sleep\", for = \"1ms\" }
after = { kind = \"io\", op = \"sleep\", for = \"1ms\" }
terminate = { kind = \"io\", op = \"sleep\", for = \"1ms\" }
[[handler]]
name = \"fetch\"
kind = \"io\"
op = \"sleep\"
for = { min = \"1ms\", max = \"8ms\" }
fail = { code = \"BUSY\", retryable = true, share = 0.2 }
[[handler]]
name = \"copy\"
kind = \"blocking\"
for = \"90ms\"
share = 0.3
[[handler]]
name = \"audit\"
kind = \"blocking\"
for = \"20ms\"
detach = true
share = 0.3
[scope]
dispose = { kind = \"io\", op = \"sleep\", for = \"1ms\" }
[expect]
success = 24
";

/// A handler that would take an hour.
const STUCK: &str = "\
[budget]
total = \"100s\"
[[handler]]
name = \"copy\"
kind = \"blocking\"
for = \"1h\"
pool = \"own\"
";

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// The deliveries that may be called proven by these lines: their slot is free again, and all that they
/// opened beside it is closed. Read from the bare JSON, by nothing that the program shares.
fn over(lines: &[Value]) -> BTreeSet<u64> {
    let mut freed = BTreeSet::new();
    let mut open: BTreeMap<u64, i64> = BTreeMap::new();
    for line in lines.iter().filter(|line| line["delivery"].is_u64()) {
        let delivery = number(&line["delivery"]);
        if line["decided"] == "free_slot" {
            freed.insert(delivery);
        }
        let opened = i64::from(line["observed"]["opened"].is_object());
        let closed = i64::from(line["observed"]["closed"].is_object());
        *open.entry(delivery).or_default() += opened - closed;
    }
    freed.retain(|delivery| open[delivery] == 0);
    freed
}

/// All whole lines, each of which has to be JSON.
fn lines(text: &str) -> Vec<Value> {
    let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    whole.map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_events_of_a_whole_run_make_the_report_that_it_wrote() {
    for (options, unstarted) in [
        ("--seed 9", false),
        ("--set handler.copy.share=1.0 --set load.deliveries=3", false),
        ("--set shutdown.at=20ms --set load.concurrency=1", true),
    ] {
        let place = Place::new(&[("a.toml", WORKLOAD)]);
        place.run(&format!("a.toml --events e.jsonl --report json=r.json -q {options}"));
        // The record needs no other file.
        fs::remove_file(place.path().join("a.toml")).unwrap();
        let shown = place.run("show e.jsonl --report json=s.json -q");
        assert_eq!((shown.status.code(), text(&shown.stderr)), (Some(0), ""), "{options}");
        assert_eq!(place.read("s.json"), place.read("r.json"), "{options}");
        let report = place.json("r.json");
        assert_eq!(report.get("cut_short_us"), None);
        assert_eq!(number(&report["totals"]["not_started"]) > 0, unstarted, "{options}");
    }
}

#[test]
fn a_record_is_judged_without_disagreement_wherever_it_is_cut() {
    let place = Place::new(&[("a.toml", WORKLOAD)]);
    place.run("a.toml --max-time 600ms --events e.jsonl -q");
    let whole = place.read("e.jsonl");
    let all = lines(&whole);
    let mut end = 0;
    for (count, line) in whole.split_inclusive('\n').enumerate() {
        end += line.len();
        let record = events::parse(&whole.as_bytes()[..end]).unwrap();
        let source = &record.head.workload;
        let workload =
            workload::file::parse(Path::new(&source.file), &source.text, &source.set).unwrap();
        let audit = audit::judge(&workload, &Plan::new(&workload), &record.log);
        assert!(audit.disagreements.is_empty(), "line {}: {:?}", count + 1, audit.disagreements);
        let over = over(&all[..=count]);
        for delivery in &audit.deliveries {
            let is_proven = delivery.termination == Termination::Proven;
            assert!(!is_proven || over.contains(&delivery.id.into()), "line {}", count + 1);
        }
    }
}

#[test]
fn a_kill_leaves_whole_lines_and_a_true_report() {
    let place = Place::new(&[("a.toml", WORKLOAD)]);
    let mut cut = 0;
    // Real time, since the kill has to come at whatever the program is doing.
    for attempt in 0..25_u64 {
        let mut command = place.command("a.toml --events e.jsonl -q");
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(7_000 + 13_337 * attempt));
        child.kill().unwrap();
        child.wait().unwrap();
        let Ok(written) = fs::read_to_string(place.path().join("e.jsonl")) else { continue };
        let all = lines(&written);
        if all.is_empty() {
            continue;
        }
        let torn = written.rsplit('\n').next().unwrap_or_default();
        assert_eq!(torn.trim(), "", "kill {attempt}");
        let report = place.shown("e.jsonl");
        fs::remove_file(place.path().join("e.jsonl")).unwrap();
        let is_whole = all.last().unwrap()["run"] == "observation_ended";
        assert_eq!(report["cut_short_us"].is_null(), is_whole, "kill {attempt}");
        let over = over(&all);
        for delivery in report["deliveries"].as_array().unwrap() {
            let is_proven = delivery["termination"] == "proven";
            assert!(!is_proven || over.contains(&number(&delivery["id"])), "{delivery}");
        }
        if !is_whole {
            cut += 1;
            assert_eq!(
                (&report["exit_status"], &report["ending"]),
                (&3.into(), &"incomplete".into())
            );
            assert_eq!(report["expectations"], Value::Array(Vec::new()));
            let last = all.iter().filter_map(|line| line["at_ns"].as_u64()).max();
            assert_eq!(number(&report["cut_short_us"]), last.unwrap_or(0) / 1_000);
        }
    }
    assert!(cut > 0, "no kill came before the end");
}

#[test]
fn what_was_open_is_named_after_a_kill() {
    let place = Place::new(&[("a.toml", STUCK)]);
    let mut child = place.command("a.toml --events e.jsonl").spawn().unwrap();
    // The file says when, while the run goes on.
    let since = Instant::now();
    let has = |word: &str| {
        fs::read_to_string(place.path().join("e.jsonl")).is_ok_and(|it| it.contains(word))
    };
    while !has("\"opened\"") {
        assert!(since.elapsed() < Duration::from_secs(30), "the thread is never in the file");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let report = place.shown("e.jsonl");
    let gaps: Vec<_> = report["gaps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gap| (&gap["kind"], &gap["state"]))
        .collect();
    assert!(gaps.contains(&(&"thread".into(), &"unproven".into())), "{gaps:?}");
    assert!(gaps.iter().all(|(_, state)| **state == "unproven"), "{gaps:?}");
    assert_eq!(report["deliveries"][0]["ended_us"], Value::Null);
    let shown = place.run("show e.jsonl");
    let shown = text(&shown.stdout);
    assert!(shown.contains("the run was cut short: its record ends"), "{shown}");
    let last = shown.lines().last().unwrap();
    assert!(last.starts_with("unproven: the run was cut short after"), "{last}");
    assert!(last.contains("copy (a.toml:"), "{last}");
}

#[test]
fn events_that_cannot_be_written_fail_the_program_and_not_the_run() {
    let place = Place::new(&[("a.toml", WORKLOAD)]);
    let made = Command::new("mkfifo").arg(place.path().join("pipe")).status().unwrap();
    assert!(made.success());
    for (file, why) in [("/dev/full", "No space left on device"), ("pipe", "cannot be written")] {
        let output = place.run(&format!("a.toml --events {file} --report json=r.json"));
        assert_eq!(output.status.code(), Some(70), "{file}");
        let report = place.json("r.json");
        assert_eq!(report["exit_status"], 70);
        assert!(number(&report["totals"]["deliveries"]) >= 24, "{file}");
        // The run took its own time; only the end waits for the file.
        assert!(number(&report["elapsed_us"]) < 4_000_000, "{file}");
        let last = text(&output.stdout).lines().last().unwrap().to_owned();
        assert!(last.starts_with("error: events ") && last.contains(why), "{last}");
    }
}

#[test]
fn a_file_has_one_use() {
    let place = Place::new(&[("a.toml", STUCK), ("old", "older evidence")]);
    std::os::unix::fs::symlink("old", place.path().join("link")).unwrap();
    for line in [
        "a.toml --events old --report json=old",
        "a.toml --events link --report json=old",
        "a.toml --events a.toml",
        "a.toml --events no/such",
        "a.toml --events -",
    ] {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
    }
    assert_eq!(
        (place.read("old").as_str(), place.read("a.toml").as_str()),
        ("older evidence", STUCK)
    );
}

#[test]
fn an_existing_file_is_begun_anew() {
    let place = Place::new(&[("a.toml", WORKLOAD), ("e.jsonl", "older evidence")]);
    place.run("a.toml --events e.jsonl -q");
    assert!(place.read("e.jsonl").starts_with("{\"format\":\"deadline-run.events/1\""));
}

#[test]
fn several_workloads_have_events_each() {
    let other = WORKLOAD.replace("orders", "returns");
    let place = Place::new(&[("a.toml", WORKLOAD), ("b.toml", &other)]);
    place.run("a.toml b.toml --events {name}.jsonl -q");
    for name in ["orders", "returns"] {
        assert_eq!(place.shown(&format!("{name}.jsonl"))["workload"]["name"], name);
    }
}

#[test]
fn what_is_shown_is_not_run() {
    let place = Place::new(&[("a.toml", WORKLOAD), ("other.json", "{\"a\": [1, 2]}\n")]);
    place.run("a.toml --events e.jsonl --report json=r.json -q");
    for (file, words) in [
        ("e.jsonl", "holds the events of a run and is no workload; `deadline-run show"),
        ("r.json", "is a report and no workload; `deadline-run show"),
        ("other.json", "is JSON and no workload"),
    ] {
        for command in ["", "check "] {
            let output = place.run(&format!("{command}{file}"));
            assert_eq!(output.status.code(), Some(2));
            let message = text(&output.stderr);
            assert!(message.contains(words), "{message}");
            assert_eq!(message.matches(":1:1: ").count(), 1, "one fault and no more: {message}");
        }
    }
}

#[test]
fn a_record_that_is_none_is_refused_by_name() {
    let place = Place::new(&[("a.toml", WORKLOAD)]);
    place.run("a.toml --events e.jsonl -q");
    let whole = place.read("e.jsonl");
    let cases = [
        (whole[..200].to_owned(), "its first line is torn"),
        (whole.replacen("observe = ", "observe=  ", 1), "not the one that was run"),
        (whole.replacen("profile = ", "prophile = ", 1), "not valid for this version"),
        (whole.replacen("\"place\":1,", "\"place\":7,", 1), "is missing"),
    ];
    for (text_of_it, expected) in cases {
        fs::write(place.path().join("x.jsonl"), text_of_it).unwrap();
        let output = place.run("show x.jsonl");
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr);
        assert!(message.contains("x.jsonl: ") && message.contains(expected), "{message}");
    }
}
