//! A directory of its own in which the program is run as a user would run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The directory; gone with its value.
pub struct Place(tempfile::TempDir);

impl Place {
    /// A directory with these files, by name and text.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            place.write(name, text);
        }
        place
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The program, with the words of `line` as its arguments.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deadline-run"));
        command.args(line.split(' ')).current_dir(self.path()).env_clear().stdin(Stdio::null());
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.read(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    /// The report that `show` makes of the events in `name`.
    pub fn shown(&self, name: &str) -> Value {
        let shown = self.run(&format!("show {name} --report json"));
        assert_eq!((shown.status.code(), &*shown.stderr), (Some(0), &b""[..]));
        serde_json::from_slice(&shown.stdout).unwrap()
    }
}
