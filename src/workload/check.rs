//! Builds a [`Workload`] from a tree, and refuses what its keys say together and cannot mean.
//!
//! Every fault is collected before the answer is given, and each points to the text that causes
//! it. What a single key may be is the business of `keys` and is not repeated here.

mod course;
mod expectations;
mod io;
mod lines;
mod steps;
mod tables;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Display;
use std::path::Path;

use crate::workload::fault::Fault;
use crate::workload::tree::{Entry, Place};
use crate::workload::walk::{Given, Item, Walk};
use crate::workload::{Profile, Step, Workload, keys};
use lines::Lines;
use tables::{runtime, shutdown};

/// Where a tree came from.
pub struct Origin<'a> {
    /// The file, as the user named it.
    pub path: &'a Path,
    /// Its text.
    pub text: &'a str,
    /// The digest of its bytes.
    pub sha256: String,
}

/// The workload that a tree says, or all its faults; `faults` are those already known.
pub fn workload<'a>(
    root: &'a [Entry<'a>],
    origin: Origin<'a>,
    faults: Vec<Fault>,
) -> Result<Workload, Vec<Fault>> {
    let mut walk = Walk::new();
    walk.faults = faults;
    let given = walk.file(&keys::ROOT, root);
    let mut check = Check::new(walk.faults, &origin, &given);
    let workload = check.workload(&given, origin);
    if check.faults.is_empty() { Ok(workload) } else { Err(check.faults) }
}

/// The faults found so far, and the steps built so far.
///
/// What is built beside a fault is made of placeholders, and never leaves this module.
struct Check<'a> {
    faults: Vec<Fault>,
    lines: Lines,
    steps: Vec<Step>,
    /// Where each name was first given, or the step of a default name stands.
    names: HashMap<Cow<'a, str>, &'a Place>,
    declared: Declared<'a>,
    /// The folder of the file: where relative paths start.
    folder: &'a Path,
}

/// What steps may refer to by name.
struct Declared<'a> {
    breakers: BTreeSet<&'a str>,
    bulkheads: BTreeSet<&'a str>,
    /// In the order of the file.
    peers: Vec<&'a str>,
}

impl<'a> Declared<'a> {
    fn new(root: &Given<'a>) -> Self {
        let names = |key| root.map(key).iter().map(|item| &*item.entry.key);
        Self {
            breakers: names("breakers").collect(),
            bulkheads: names("bulkheads").collect(),
            peers: names("peers").collect(),
        }
    }
}

impl<'a> Check<'a> {
    fn new(faults: Vec<Fault>, origin: &Origin<'a>, root: &Given<'a>) -> Self {
        Self {
            faults,
            lines: Lines::new(origin.text),
            folder: origin.path.parent().unwrap_or(Path::new("")),
            steps: Vec::new(),
            names: HashMap::new(),
            declared: Declared::new(root),
        }
    }

    fn fault(&mut self, place: &Place, message: impl Into<String>) {
        self.faults.push(Fault::new(place, message));
    }

    fn workload(&mut self, root: &Given<'a>, origin: Origin<'_>) -> Workload {
        let profile = root.word("profile");
        self.repeat(root);
        let budget = self.budget(root, profile);
        let runtime = runtime(&section(root, "runtime", &keys::RUNTIME));
        let load = self.load(root);
        let shutdown = shutdown(&section(root, "shutdown", &keys::SHUTDOWN));
        let settlement = self.settlement(root, profile);
        let peers = self.peers(root);
        let course = self.course(root);
        let expect = root.table("expect").map(|given| self.expect(given));
        let lines = self.lines.of_keys(root);
        let stem = origin.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Workload {
            name: root.text("name").map(str::to_owned).or(stem).unwrap_or_default(),
            description: root.text("description").map(str::to_owned),
            file: origin.path.to_owned(),
            sha256: origin.sha256,
            profile: if profile == Some("custom") { Profile::Custom } else { Profile::Queue },
            observe: root.time("observe").unwrap_or_default(),
            budget,
            runtime,
            load,
            shutdown,
            peers,
            settlement,
            steps: std::mem::take(&mut self.steps),
            middleware: course.middleware,
            guard: course.guard,
            resolve: course.resolve,
            extract: course.extract,
            handler: course.handler,
            dispose: course.dispose,
            expect,
            lines,
        }
    }
}

/// A table of the file; if it is absent, or cannot be read, its defaults.
fn section<'a>(root: &Given<'a>, name: &str, section: &'static keys::Section) -> Given<'a> {
    root.table(name).cloned().unwrap_or_else(|| Given::defaults(section))
}

/// The name of a table, and where it was written; a default one stands where its table does.
fn name_of<'a>(given: &Given<'a>, default: &dyn Display) -> (Cow<'a, str>, &'a Place) {
    match (given.text("name"), given.get("name")) {
        (Some(name), Some(item)) => (name.into(), item.place()),
        _ => (default.to_string().into(), given.place),
    }
}

/// Where the value of a key stands, or its table if it was not written.
fn place_of<'a>(given: &Given<'a>, name: &str) -> &'a Place {
    given.get(name).map_or(given.place, Item::place)
}

/// A number whose range the table of keys has bounded.
fn small(number: Option<u64>) -> u32 {
    number.map_or(0, |number| u32::try_from(number).expect("the table of keys bounds it"))
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}
