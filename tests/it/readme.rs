//! What README shows is what the program does.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use deadline_run::workload;

const README: &str = include_str!("../../README.md");
const PROGRAM: &str = "cargo run --release -- ";

/// The fenced blocks of that language.
fn blocks(language: &str) -> Vec<&'static str> {
    README
        .split("\n```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

/// What a timeline is drawn with.
const DRAWN: [char; 13] = ['[', ']', '=', '.', 'x', '*', '#', '>', ':', '|', '!', '-', '~'];

/// A report without its drawings: of a timeline, the names and what is said of them.
fn without_drawings(report: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut is_drawing = false;
    for line in report.lines() {
        is_drawing = line.starts_with("Timeline of") || is_drawing && !line.is_empty();
        // The scale has no name in front of it.
        let is_scale = is_drawing && line.starts_with("         ");
        if !is_scale {
            let is_kept = |word: &&str| !(is_drawing && word.trim_matches(DRAWN).is_empty());
            words.extend(line.split_whitespace().filter(is_kept));
        }
    }
    words
}

/// A report without what differs from run to run: drawings, numbers, their units, and where lines
/// break.
fn shape(report: &str) -> String {
    let mut shape = String::new();
    let words = without_drawings(report).into_iter().map(|word| {
        let has_digit = word.contains(|letter: char| letter.is_ascii_digit());
        // A place in a file is the same in every run.
        if has_digit && !word.contains(".toml:") { "#" } else { word }
    });
    for word in words {
        let is_unit = matches!(word.trim_end_matches([',', ';']), "us" | "ms" | "s");
        if !(is_unit && shape.ends_with("# ")) {
            shape.push_str(word);
            shape.push(' ');
        }
    }
    shape
}

#[test]
fn commands_print_what_readme_shows() {
    let mut shown = HashSet::new();
    for block in blocks("console") {
        let (command, output) = block.split_once('\n').unwrap_or((block, ""));
        let Some(arguments) = command.trim_start_matches("$ ").strip_prefix(PROGRAM) else {
            assert_eq!(command, "$ cargo test", "an example that nothing runs");
            continue;
        };
        let printed = Command::new(env!("CARGO_BIN_EXE_deadline-run"))
            .args(arguments.split(' '))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("the program runs");
        let printed = String::from_utf8(printed.stdout).expect("text");
        // A check runs nothing, so that nothing of it differs.
        match arguments.starts_with("check ") {
            true => assert_eq!(printed.trim_end(), output.trim_end(), "{arguments}"),
            false => assert_eq!(shape(&printed), shape(output), "{arguments} printed:\n{printed}"),
        }
        shown.insert(arguments.starts_with("check "));
    }
    assert_eq!(shown.len(), 2, "README shows a run and a check");
}

#[test]
fn workloads_of_readme_are_valid() {
    let workloads = blocks("toml");
    assert!(!workloads.is_empty(), "README shows a workload");
    for text in workloads {
        if let Err(faults) = workload::file::parse(Path::new("README.md"), text, &[]) {
            panic!("{faults}\n{text}");
        }
    }
}
