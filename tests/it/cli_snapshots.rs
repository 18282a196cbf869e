//! What the program prints, whole, where it is the same each time.

use std::fs;
use std::process::{Command, Output, Stdio};

use crate::snapshot;

/// Runs the program in a folder with these files, without a terminal or an environment.
fn run(files: &[(&str, &str)], line: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder for the test");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("the folder can be written");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_deadline-run"));
    command.args(line.split(' ')).current_dir(folder.path()).env_clear().stdin(Stdio::null());
    command.output().expect("the program is there")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("it prints text")
}

/// Both streams and the status, each under its name.
fn told(output: Output) -> String {
    let status = output.status.code().expect("it exits");
    let (out, err) = (text(output.stdout), text(output.stderr));
    format!("-- stdout\n{out}-- stderr\n{err}-- exit status {status}\n")
}

#[test]
fn help_is_told_in_full() {
    for (name, line) in [("help.txt", "--help"), ("help-check.txt", "check --help")] {
        snapshot::check(name, &told(run(&[], line)));
    }
}

#[test]
fn all_faults_of_a_file_are_shown_at_once() {
    let faulty = "\
name = \"orders\"
observ = \"2s\"

[budget]
total = \"10s\"
reserve = \"12s\"

[load]
deliveries = 0
rate = \"50/s\"

[[handler]]
name = \"copy\"
kind = \"blokcing\"
for = \"3s\"

[[handler]]
name = \"copy\"
kind = \"io\"
op = \"sleep\"
for = 3
retries = 3

[[expect.gap]]
step = \"cpoy\"
";
    snapshot::check("faults.txt", &told(run(&[("orders.toml", faulty)], "orders.toml")));
    let word = "orders.toml --set handler.copy.fro=1s --set budget=1 --set load.=3";
    let sound = "[[handler]]\nname = 'copy'\nkind = 'io'\nop = 'sleep'\nfor = '1ms'\n";
    snapshot::check("faults-of-set.txt", &told(run(&[("orders.toml", sound)], word)));
}

#[test]
fn the_last_line_alone_says_what_happened() {
    let sleep = "[[handler]]\nname = 'copy'\nkind = 'io'\nop = 'sleep'\nfor = '1ms'\n";
    let fails = format!("[load]\ndeliveries = 3\n{sleep}fail = 'BUSY'\n");
    let stuck = "observe = '20ms'\n[budget]\ntotal = '400ms'\n\
                 [[handler]]\nname = 'copy'\nkind = 'blocking'\nfor = '1h'\npool = 'own'\n";
    let promised = format!("{sleep}[expect]\nsuccess = 1\n");
    let broken = format!("{sleep}[expect]\nfailure = 1\n");
    let files = [
        ("a-sound.toml", sleep),
        ("b-fails.toml", &fails),
        ("c-stuck.toml", stuck),
        ("d-promised.toml", &promised),
        ("e-broken.toml", &broken),
    ];
    let line = files.map(|(name, _)| name).join(" ") + " -q";
    snapshot::check("quiet.txt", &told(run(&files, &line)));
}

#[test]
fn a_plan_is_told_in_full() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads/held-worker.toml");
    let workload = fs::read_to_string(path).expect("the example is there");
    let files = [("held-worker.toml", workload.as_str())];
    snapshot::check("check.txt", &told(run(&files, "check held-worker.toml")));
}
