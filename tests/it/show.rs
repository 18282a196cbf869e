//! A saved report is shown again as the run showed it.

use std::process::{Command, Output};

use crate::place::Place;

/// A step that is cut off, and a thread that outlives it.
const WORKLOAD: &str = "\
observe = \"50ms\"
profile = \"custom\"
[budget]
total = \"40ms\"
[load]
deliveries = 2
[[handler]]
name = \"copy\"
kind = \"blocking\"
for = \"1h\"
";

/// A run of [`WORKLOAD`]: what it printed, and its report in `r.json`.
fn ran(options: &str) -> (Place, Output) {
    let place = Place::new(&[("a.toml", WORKLOAD)]);
    let output = place.run(&format!("a.toml --progress never --report json=r.json {options}"));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    (place, output)
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn text_is_that_of_the_run() {
    for options in ["--color never", "--color always", "-v", "-q", "--report text"] {
        let (place, output) = ran(options);
        let shown = place.run(&format!("show r.json {options}"));
        assert_eq!(text(&shown.stdout), text(&output.stdout), "{options}");
        // It was shown: that is all the exit status says.
        assert_eq!((shown.status.code(), text(&shown.stderr)), (Some(0), ""), "{options}");
    }
}

#[test]
fn json_is_that_of_the_run_to_the_byte() {
    let (place, _) = ran("-q");
    let shown = place.run("show r.json --report json");
    assert_eq!(text(&shown.stdout), place.read("r.json"));
    let shown = place.run("show r.json --report json={name}-2.json --report text=r.txt -q");
    assert_eq!(shown.status.code(), Some(0));
    assert_eq!(place.read("a-2.json"), place.read("r.json"));
    assert_eq!(place.read("r.txt"), text(&place.run("show r.json").stdout));
}

#[test]
fn additions_of_a_newer_version_are_accepted() {
    let (place, output) = ran("-v");
    place.write("newer.json", &place.read("r.json").replace("\"polls\"", "\"hue\": {}, \"polls\""));
    assert_eq!(place.run("show newer.json -v").stdout, output.stdout);
}

#[test]
fn what_is_no_report_is_refused_by_what_it_is() {
    let (place, _) = ran("-q");
    let report = place.read("r.json");
    place.write("newer.json", &report.replace("report/1", "report/2"));
    place.write("half.json", &report[..report.len() / 2]);
    place.write("other.json", "{\"name\": \"orders\"}");
    let cases = [
        ("none.json", "error: none.json cannot be read: No such file or directory\n"),
        (".", "error: . cannot be read: Is a directory\n"),
        (
            "a.toml",
            "error: a.toml:1:1: expected value; use a file that `--report json=FILE` or \
             `--events FILE` wrote\n",
        ),
        (
            "newer.json",
            "error: newer.json is no report to show: its format is `deadline-run.report/2` of \
             deadline-run 0.1.0; this version reads `deadline-run.report/1`\n",
        ),
        (
            "other.json",
            "error: other.json is no report to show: it is JSON without a `format`; use a file \
             that `--report json=FILE` wrote\n",
        ),
        ("half.json", "EOF while parsing"),
    ];
    for (file, expected) in cases {
        let shown = place.run(&format!("show {file}"));
        assert_eq!((shown.status.code(), text(&shown.stdout)), (Some(2), ""), "{file}");
        assert!(text(&shown.stderr).contains(expected), "{file}: {}", text(&shown.stderr));
    }
}

#[test]
fn the_report_that_is_shown_is_never_overwritten() {
    let (place, _) = ran("-q");
    let report = place.read("r.json");
    let shown = place.run("show r.json --report text=./r.json");
    assert_eq!(shown.status.code(), Some(2));
    assert!(text(&shown.stderr).contains("would overwrite the one to show"), "{shown:?}");
    assert_eq!(place.read("r.json"), report);
}

#[test]
fn a_report_that_cannot_be_written_is_a_failure_of_ours() {
    let (place, _) = ran("-q");
    let shown = place.run("show r.json --report json=no/r.json");
    assert_eq!(shown.status.code(), Some(2), "it is seen before anything is written");
    // The end of a pipe that is for reading takes nothing.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    let shown = Command::new(env!("CARGO_BIN_EXE_deadline-run"))
        .args(["show", "r.json"])
        .current_dir(place.path())
        .stdout(reader)
        .output()
        .unwrap();
    assert_eq!(shown.status.code(), Some(70));
    assert!(text(&shown.stderr).contains("cannot be written to stdout"), "{shown:?}");
}

#[test]
fn a_file_named_like_the_command_is_a_workload() {
    let (place, _) = ran("-q");
    place.write("show", WORKLOAD);
    let output = place.run("show -q");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
}
