//! What the program does with its arguments, its descriptors and its report files.

use std::fs::{self, File};
use std::io;
use std::process::{Command, Output, Stdio};

use crate::place::Place;

const WORKLOAD: &str = "[[handler]]\nkind = \"io\"\nop = \"sleep\"\nfor = \"1ms\"\n";

/// A directory with `a.toml` and `b.toml` in it.
fn place() -> Place {
    Place::new(&[("a.toml", WORKLOAD), ("b.toml", WORKLOAD)])
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn quiet_prints_the_last_line_alone() {
    let place = place();
    let quiet = stdout(&place.run("a.toml -q"));
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
    assert!(quiet.starts_with("ok: ") && quiet.ends_with(" \u{b7} exit 0\n"), "{quiet}");
    let whole = stdout(&place.run("a.toml"));
    assert_eq!(whole.lines().last(), quiet.lines().last());
}

#[test]
fn several_workloads_have_a_report_each_and_a_named_line_each() {
    let place = place();
    let output = place.run("a.toml b.toml -q --report json={name}.json");
    assert_eq!(output.status.code(), Some(0));
    let lines = stdout(&output);
    let names: Vec<_> = lines.lines().filter_map(|line| line.split(": ").nth(1)).collect();
    assert_eq!(names, ["a", "b"]);
    for name in ["a", "b"] {
        let report: serde_json::Value =
            serde_json::from_str(&place.read(&format!("{name}.json"))).unwrap();
        assert_eq!(report["workload"]["name"], name);
    }
}

#[test]
fn json_on_stdout_takes_the_place_of_text() {
    let place = place();
    let report: serde_json::Value =
        serde_json::from_slice(&place.run("a.toml --report json").stdout).unwrap();
    assert_eq!(report["format"], "deadline-run.report/1");
}

#[test]
fn a_closed_stdout_changes_no_verdict() {
    let place = place();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = place.command("a.toml --report json=r.json").stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert!(place.read("r.json").ends_with("}\n"));
}

#[test]
fn a_full_stdout_is_an_error_after_the_files_are_written() {
    let place = place();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = place.command("a.toml --report json=r.json").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(70));
    let message = "error: the report cannot be written to stdout: No space left on device\n";
    assert_eq!(stderr(&output), message);
    assert!(place.read("r.json").ends_with("}\n"));
}

#[test]
fn a_file_too_large_leaves_the_old_report() {
    let place = place();
    place.write("report.json", "old");
    // A limit on the file size stands in for a full disk.
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_deadline-run"))
        .args(["a.toml", "--report", "json=report.json"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(70), "{output:?}");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.contains("report.json cannot be written: File too large"), "{complaint}");
    assert_eq!(place.read("report.json"), "old");
    let mut names: Vec<_> =
        fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.toml", "b.toml", "report.json"]);
}

#[test]
fn a_report_that_cannot_be_written_is_named() {
    let place = place();
    let output = place.run("a.toml -q --report json=/dev/full");
    assert_eq!(output.status.code(), Some(70));
    let last = stdout(&output);
    assert_eq!(
        last,
        "error: report /dev/full cannot be written: No space left on device \u{b7} exit 70\n"
    );
}

#[test]
fn what_is_refused_is_refused_before_anything_runs() {
    let place = place();
    let cases = [
        ("a.toml --report json=no/r.json", "there is no directory no"),
        ("a.toml --report json=a.toml", "would overwrite a workload"),
        ("a.toml --report json=./a.toml", "would overwrite a workload"),
        ("a.toml --report json=r --report text=./r", "cannot both go to ./r"),
        ("a.toml nothing.toml", "nothing.toml"),
        ("sweep a.toml", "`sweep` is not supported by this version yet"),
    ];
    for (line, expected) in cases {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(stderr(&output).contains(expected), "{line}: {}", stderr(&output));
        assert!(!stdout(&output).contains("Did it complete?"), "{line}");
    }
    assert_eq!(place.read("a.toml"), WORKLOAD);
}

#[test]
fn an_invalid_run_says_so_in_its_last_line() {
    let place = place();
    fs::write(place.path().join("a.toml"), WORKLOAD.replace("kind", "knid")).unwrap();
    let last = stdout(&place.run("a.toml b.toml nothing.toml"));
    assert!(last.starts_with("invalid: a.toml:"), "{last}");
    assert!(last.ends_with(" more; nothing was run \u{b7} exit 2\n"), "{last}");
    assert_eq!(last.lines().count(), 1, "{last}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_stops_the_workloads_that_have_not_begun() {
    let place = place();
    fs::write(place.path().join("a.toml"), WORKLOAD.replace("1ms", "1h")).unwrap();
    let mut command = place.command("a.toml b.toml --max-time 4s -q");
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    // Before its signals are taken one would simply end it; the kernel shows when they are blocked.
    let status = format!("/proc/{}/status", child.id());
    let is_ready = || {
        let status = fs::read_to_string(&status).unwrap();
        status.lines().any(|line| line.starts_with("SigBlk:") && line.ends_with("4002"))
    };
    while !is_ready() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    )
    .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    let text = stdout(&output);
    let last = text.lines().last().unwrap();
    assert_eq!(last, "untested: b was not run: stopped by a signal \u{b7} exit 5");
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_timeout_sends_to_child_and_group_is_one_request() {
    let place = place();
    // In a session of its own: `timeout` signals its whole group, and the tests are no part of it.
    let workload = format!("observe = \"10ms\"\n{}", WORKLOAD.replace("1ms", "3s"));
    fs::write(place.path().join("a.toml"), workload).unwrap();
    let output = Command::new("setsid")
        .args(["-w", "timeout", "-s", "TERM", "1"])
        .arg(env!("CARGO_BIN_EXE_deadline-run"))
        .args(["a.toml", "--report", "json"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = stdout(&output);
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["shutdown"]["initiated_by"], "SIGTERM", "{text}");
    assert_eq!(report["shutdown"]["forced"], false, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn those_that_wait_do_not_hold_up_those_at_work_when_a_shutdown_begins() {
    let place = place();
    let workload = "profile = \"custom\"\n[budget]\ntotal = \"60ms\"\n\
                    [load]\ndeliveries = 400_000\nconcurrency = 4\n\
                    [[handler]]\nkind = \"io\"\nop = \"sleep\"\nfor = \"10ms\"\n";
    fs::write(place.path().join("a.toml"), workload).unwrap();
    let output = place.run("a.toml --max-time 1s -q");
    let line = stdout(&output);
    assert!(line.starts_with("failed: ") && line.contains("all ended with evidence"), "{line}");
}

#[cfg(target_os = "linux")]
#[test]
fn threads_that_the_system_does_not_give_are_an_error_and_no_hang() {
    let place = place();
    let workload = format!("[runtime]\nworkers = 1000\n{WORKLOAD}");
    fs::write(place.path().join("a.toml"), workload).unwrap();
    // Each thread takes 2 MiB of addresses for its stack. The first signals would be taken by the program.
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 400000; exec timeout -s KILL 60 \"$0\" a.toml -q"])
        .arg(env!("CARGO_BIN_EXE_deadline-run"))
        .current_dir(place.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(70), "{output:?}");
    assert!(stdout(&output).contains("threads of the run cannot be started"), "{output:?}");
}

#[test]
fn a_program_that_gets_no_thread_at_all_says_so() {
    // Somewhere between what the program itself takes and what its first stacks take besides.
    let mut said = 0;
    for room in (10_000..40_000).step_by(500) {
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {room}; exec \"$0\" --version")])
            .arg(env!("CARGO_BIN_EXE_deadline-run"))
            .output()
            .unwrap();
        if output.status.code() == Some(70) {
            let line = "error: deadline-run cannot start: Resource temporarily unavailable\n";
            assert_eq!(stderr(&output), line);
            said += 1;
        }
    }
    assert!(said > 0, "it always got its threads, or could not be loaded");
}

fn named_pipe(place: &Place) -> std::path::PathBuf {
    let pipe = place.path().join("pipe");
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    pipe
}

#[test]
fn a_pipe_that_nobody_writes_to_is_given_up_on_a_signal() {
    let place = place();
    named_pipe(&place);
    let told = |line: &str, signal: rustix::process::Signal| {
        let mut command = place.command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The thread that waits for the pipe is named: from then on the program takes signals itself.
        let tasks = format!("/proc/{}/task", child.id());
        let is_reader = |task: io::Result<fs::DirEntry>| {
            let name = task.and_then(|task| fs::read_to_string(task.path().join("comm")));
            name.is_ok_and(|name| name == "deadline-run-in\n")
        };
        while !fs::read_dir(&tasks).unwrap().any(is_reader) {
            assert_eq!(child.try_wait().unwrap(), None, "it does not wait");
            std::thread::yield_now();
        }
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, signal).unwrap();
        child.wait_with_output().unwrap()
    };
    let untested = |what| format!("untested: pipe was not {what}: stopped by a signal");
    let ran = told("pipe -q", rustix::process::Signal::INT);
    assert_eq!(ran.status.code(), Some(5), "{ran:?}");
    assert_eq!(stdout(&ran), untested("run") + " \u{b7} exit 5\n");
    let checked = told("check pipe", rustix::process::Signal::TERM);
    assert_eq!(checked.status.code(), Some(5), "{checked:?}");
    assert_eq!(stdout(&checked), untested("checked") + " \u{b7} exit 5\n");
    let shown = told("show pipe", rustix::process::Signal::TERM);
    assert_eq!(shown.status.code(), Some(5), "{shown:?}");
    assert_eq!(stderr(&shown), "error: pipe was not read: stopped by a signal\n");
}

#[test]
fn a_workload_may_come_through_a_pipe() {
    let place = place();
    let pipe = named_pipe(&place);
    let child = place.command("pipe -q").stdout(Stdio::piped()).spawn().unwrap();
    fs::write(&pipe, WORKLOAD).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
}
