//! What holds whatever the input is. Tests try these briefly, and `fuzz/` for as long as one likes.
//!
//! Each takes bytes and panics when its property does not hold. None of them runs a workload.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{fs, iter};

use deadline_run::audit::judge;
use deadline_run::duration::LONGEST;
use deadline_run::event::{Event, EventLog, Observation, RunEvent, StepId};
use deadline_run::foresight::foresee;
use deadline_run::plan::Plan;
use deadline_run::render::{self, json, page, text};
use deadline_run::replay::replay;
use deadline_run::report::Termination;
use deadline_run::timeline::Moment;
use deadline_run::workload::fault::Faults;
use deadline_run::workload::keys::{self, Key, Kinds, Section, Shape};
use deadline_run::workload::tree::mark;
use deadline_run::workload::{
    CpuAmount, DestructorWork, Profile, Span, Stage, Step, Work, Workload, file,
};
use serde_json::Value;

use super::mutate::{self, Choices};

use crate::judged::report_of_log;

/// What was changed more often is like noise.
const MOST_CHANGES: usize = 16;

/// Any bytes are a workload whose values are all possible, or have faults that can be shown.
pub fn workload_bytes(bytes: &[u8]) {
    parse(&String::from_utf8_lossy(bytes), &[]).map_or_else(check_shown, |found| check(&found));
}

/// A sound file with a few changes is treated like any other; and where it is still sound, a key
/// that nobody knows is refused by name in each of its tables.
pub fn workload_mutated(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let keys: Vec<&str> = known_keys().iter().copied().collect();
    let mut tree = choices.one_of(seeds()).tree.clone();
    let (stranger, table) = (choices.word(), choices.below(1 << 16));
    for _ in 0..choices.below(MOST_CHANGES) {
        mutate::change(&mut tree, &keys, &mut choices);
    }
    let text = mutate::toml(&tree);
    match parse(&text, &[]) {
        Ok(workload) => check(&workload),
        Err(faults) => return check_shown(faults),
    }
    if known_keys().contains(stranger.as_str()) {
        return;
    }
    let is_own = |place: &String| ["/expect/codes", "/peers"].contains(&place.as_str());
    // Of these tables of a sound file the keys are the user's own.
    let tables = mutate::tables(&tree).into_iter().filter(|place| !is_own(place));
    let tables: Vec<_> = tables.collect();
    let place = &tables[table % tables.len()];
    let entries = tree.pointer_mut(place).and_then(Value::as_object_mut).expect("it is a table");
    entries.insert(stranger.clone(), Value::from("1s"));
    let text = mutate::toml(&tree);
    let faults = parse(&text, &[]).expect_err("a key that nobody knows is refused");
    let is_named = faults.iter().any(|fault| fault.message.contains(&mark(&stranger)));
    assert!(is_named, "{stranger:?} in {place}:\n{faults}\n{text}");
    check_shown(faults);
}

/// Any words after `--set` leave a sound file sound, or have faults that can be shown.
pub fn set_words(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let seed = choices.one_of(seeds());
    let mut words = Vec::new();
    while choices.are_left() {
        let keys: Vec<&str> = known_keys().iter().copied().collect();
        let parts = iter::repeat_with(|| match choices.below(4) {
            0 => choices.word(),
            1 => format!("handler-{}", 1 + choices.below(3)),
            _ => (*choices.one_of(&keys)).to_owned(),
        });
        let count = 1 + bytes.len() % 4;
        let path = parts.take(count).collect::<Vec<_>>().join(".");
        words.push(match choices.below(4) {
            0 => path,
            1 => format!("{path}={}", choices.word()),
            2 => {
                format!("{path}={}", choices.one_of(&["1s", "1", "0.5", "true", "[]", "{}", "''"]))
            }
            _ => choices.word() + &choices.word(),
        });
    }
    parse(&seed.text, &words).map_or_else(check_shown, |found| check(&found));
}

/// The bytes as they are, one word for each line.
pub fn set_lines(bytes: &[u8]) {
    let lines = String::from_utf8_lossy(bytes);
    let words: Vec<String> = lines.split('\n').map(str::to_owned).collect();
    for seed in seeds() {
        parse(&seed.text, &words).map_or_else(check_shown, |found| check(&found));
    }
}

/// Any log is judged and replayed to its end, and nothing in it is proven that has no receipt. The
/// first byte says of which case; the rest is a log, or how a recorded one is changed.
pub fn replay_log(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let seed = choices.one_of(recorded());
    let read = serde_json::from_slice::<EventLog>(bytes.get(1..).unwrap_or_default());
    let log = read.ok().or_else(|| {
        let mut tree = serde_json::to_value(&seed.log).expect("a log is JSON");
        for _ in 0..choices.below(MOST_CHANGES) {
            mutate::shuffle(&mut tree, &mut choices);
        }
        serde_json::from_value(tree).ok()
    });
    let Some(log) = log else { return };
    let _ = replay(&seed.plan, &log).map_err(|difference| difference.to_string());
    let audit = judge(&seed.workload, &seed.plan, &log);
    let ended = log.run.iter().find(|entry| entry.event == RunEvent::ObservationEnded);
    let observed_until = ended.map_or(Moment::NEVER, |entry| entry.at);
    assert_eq!(audit.deliveries.len(), log.deliveries.len());
    for (row, log) in audit.deliveries.iter().zip(&log.deliveries) {
        let seen = || log.entries.iter().filter(|entry| entry.at <= observed_until);
        let has_receipt = |wanted| {
            seen().any(|entry| matches!(&entry.event, Event::Observed(Observation::Closed { opening, .. }) if *opening == wanted))
        };
        let is_owing = seen().any(|entry| match &entry.event {
            Event::Observed(Observation::Opened { opening, .. }) => !has_receipt(*opening),
            _ => false,
        });
        assert!(!is_owing || row.termination != Termination::Proven, "{log:?}");
    }
    let report = report_of_log(&seed.workload, audit);
    let options =
        text::Options { width: 80, color: page::Color::Plain, amount: text::Amount::Full };
    assert!(!text::render(&report, options).is_empty());
    assert!(!json::render(&report).is_empty());
}

/// A sound file of the repository.
struct Seed {
    text: String,
    tree: Value,
}

/// A case and the log that it left once.
struct Recorded {
    workload: Workload,
    plan: Arc<Plan>,
    log: EventLog,
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(super::REPOSITORY).join(folder);
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("the file can be read")
}

fn seeds() -> &'static [Seed] {
    static SEEDS: OnceLock<Vec<Seed>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let files = files("workloads", "toml").into_iter().chain(files("tests/cases", "toml"));
        let seed = |path: PathBuf| {
            let text = read(&path);
            let tree = toml::from_str(&text).expect("a seed is TOML");
            Seed { text, tree }
        };
        files.map(seed).collect()
    })
}

fn recorded() -> &'static [Recorded] {
    static RECORDED: OnceLock<Vec<Recorded>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let recorded = |path: PathBuf| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let case = path.with_file_name("../cases").join(name).with_extension("toml");
            let workload = file::load(&case, &[]).expect("a case is sound");
            let log = serde_json::from_str(&read(&path)).expect("it is a log");
            Recorded { plan: Arc::new(Plan::new(&workload)), workload, log }
        };
        let logs = files("tests/logs", "json").into_iter();
        // Long ones have nothing that short ones lack, and take long to change.
        let is_short = |path: &PathBuf| read(path).len() < 5_000;
        logs.filter(is_short).map(recorded).collect()
    })
}

fn parse(text: &str, settings: &[String]) -> Result<Workload, Faults> {
    file::parse(Path::new("w.toml"), text, settings)
}

fn check_shown(faults: Faults) {
    for color in [false, true] {
        assert!(!faults.render(color).is_empty(), "there is a fault to be shown");
    }
}

/// What every workload promises of itself, by the words of its types; and that its plan can be told.
fn check(workload: &Workload) {
    let secs = Duration::from_secs;
    let total = workload.budget.total;
    let range = match workload.profile {
        Profile::Queue => Duration::from_millis(100)..=secs(900),
        Profile::Custom => Duration::from_millis(1)..=secs(24 * 3_600),
    };
    assert!(range.contains(&total), "{total:?}");
    assert!(workload.budget.reserve.is_none_or(|reserve| !reserve.is_zero() && reserve < total));
    assert!(workload.runtime.workers >= 1 && workload.runtime.blocking_threads >= 1);
    assert!(workload.load.deliveries >= 1 && workload.load.concurrency >= 1);
    assert!(workload.observe <= LONGEST);
    assert!(!workload.name.trim().is_empty());
    check_tree(workload);
    let names = workload.steps.iter().map(|step| &step.name);
    let names: BTreeSet<_> = names.collect();
    assert_eq!(names.len(), workload.steps.len(), "each step has a name of its own");
    workload.steps.iter().for_each(check_step);
    for gap in workload.expect.iter().flat_map(|expect| &expect.gaps) {
        assert!(gap.step.as_ref().is_none_or(|step| names.contains(step)));
    }
    let plan = Plan::new(workload);
    let foresight = foresee(workload, &plan);
    assert!(!render::plan::body(workload, &foresight, 80, page::Color::Plain).is_empty());
    assert!(!render::plan::json::render(workload, &foresight).is_empty());
    assert!(!render::plan::verdict(workload, &foresight).why.is_empty());
}

/// Each step stands in one place, below the steps around it, and in their stage.
fn check_tree(workload: &Workload) {
    assert!(!workload.handler.is_empty(), "there is work to do");
    let middleware = workload.middleware.iter().flat_map(|one| {
        let parts = [
            (Stage::Before, one.before),
            (Stage::After, one.after),
            (Stage::Terminate, one.terminate),
        ];
        parts.into_iter().filter_map(|(stage, id)| Some((stage, id?)))
    });
    let stages = [
        (Stage::Guard, &workload.guard),
        (Stage::Resolve, &workload.resolve),
        (Stage::Extract, &workload.extract),
        (Stage::Handler, &workload.handler),
    ];
    let course = stages.into_iter().flat_map(|(stage, ids)| ids.iter().map(move |id| (stage, *id)));
    let dispose = workload.dispose.map(|id| (Stage::Dispose, id));
    let mut found: Vec<_> = middleware.chain(course).chain(dispose).collect();
    let mut next = 0;
    while let Some((stage, id)) = found.get(next).copied() {
        next += 1;
        let step = workload.step(id);
        assert_eq!(step.stage, stage, "{}", step.name);
        assert!(step.work.children().iter().all(|child| *child > id), "{}", step.name);
        found.extend(step.work.children().iter().map(|child| (stage, *child)));
    }
    let mut ids: Vec<_> = found.into_iter().map(|(_, id)| id).collect();
    ids.sort();
    assert!(ids.into_iter().eq((0..workload.steps.len() as u32).map(StepId)));
}

fn check_step(step: &Step) {
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    assert!(!step.name.trim().is_empty());
    assert!(is_share(step.share) && is_share(step.panic), "{}", step.name);
    assert!(step.fail.as_ref().is_none_or(|fail| is_share(fail.share)), "{}", step.name);
    assert!(step.poll_budget != Some(0), "{}", step.name);
    assert!(step.timeout != Some(Duration::ZERO), "{}", step.name);
    match &step.work {
        Work::Cpu { amount, yield_every, .. } => {
            check_amount(amount);
            assert!(*yield_every != Some(Duration::ZERO), "{}", step.name);
        }
        Work::Cooperative { duration, slice, .. } => {
            check_span(duration);
            assert!(!slice.is_zero(), "{}", step.name);
        }
        Work::Blocking { duration, looks_every, .. } => {
            check_span(duration);
            assert!(*looks_every != Some(Duration::ZERO), "{}", step.name);
        }
        Work::Sleep { duration } => check_span(duration),
        Work::Polls { .. } => {}
        Work::Tcp(_) | Work::Http(_) => {
            let connection = step.work.connection().expect("it connects");
            let limits =
                [connection.connect_timeout, connection.read_timeout, connection.idle_timeout];
            assert!(!limits.contains(&Some(Duration::ZERO)), "{}", step.name);
        }
        Work::Read { path } => assert!(!path.as_os_str().is_empty(), "{}", step.name),
        Work::Write(write) => assert!(!write.path.as_os_str().is_empty(), "{}", step.name),
        Work::Sequence { steps } | Work::Parallel { steps, .. } => assert!(!steps.is_empty()),
        Work::Choice { steps, weights } => {
            assert!(!steps.is_empty() && steps.len() == weights.len(), "{}", step.name);
            assert!(
                weights.iter().all(|weight| *weight >= 0.0) && weights.iter().sum::<f64>() > 0.0
            );
        }
    }
    if let Some(destructor) = &step.on_drop {
        assert!(is_share(destructor.panic), "{}", step.name);
        match &destructor.work {
            DestructorWork::Cpu(amount) => check_amount(amount),
            DestructorWork::Blocking { duration, .. } => check_span(duration),
        }
    }
}

fn check_amount(amount: &CpuAmount) {
    match amount {
        CpuAmount::Time(span) => check_span(span),
        CpuAmount::Iterations(count) => assert!(*count >= 1),
    }
}

fn check_span(span: &Span) {
    match span {
        Span::Fixed(span) => assert!(*span <= LONGEST),
        Span::Uniform { min, max } => assert!(min <= max && *max <= LONGEST),
        Span::Exponential { mean, .. } => assert!(!mean.is_zero()),
        Span::LogNormal { p50, p99, .. } => assert!(!p50.is_zero() && p50 < p99),
    }
}

/// Every key that some table may have.
fn known_keys() -> &'static BTreeSet<&'static str> {
    static KNOWN: OnceLock<BTreeSet<&'static str>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut known = Known { keys: ["kind"].into(), titles: BTreeSet::new() };
        known.section(&keys::ROOT);
        known.keys
    })
}

struct Known {
    keys: BTreeSet<&'static str>,
    /// Tables that were visited: steps can stand inside steps.
    titles: BTreeSet<&'static str>,
}

impl Known {
    fn section(&mut self, section: &'static Section) {
        if self.titles.insert(section.title) {
            section.keys.iter().for_each(|key| self.key(key));
        }
    }

    fn kinds(&mut self, kinds: &'static Kinds) {
        if self.titles.insert(kinds.title) {
            let own = kinds.kinds.iter().flat_map(|kind| kind.keys);
            kinds.common.iter().chain(own).for_each(|key| self.key(key));
        }
    }

    fn key(&mut self, key: &'static Key) {
        self.keys.insert(key.name);
        self.shape(&key.shape);
    }

    fn shape(&mut self, shape: &'static Shape) {
        match shape {
            Shape::Section(section) | Shape::Sections(section) => self.section(section),
            Shape::Step(kinds) | Shape::Steps(kinds) => self.kinds(kinds),
            Shape::List(shape) | Shape::Map(shape) | Shape::Later(shape) => self.shape(shape),
            Shape::OneOf(shapes) => shapes.iter().for_each(|shape| self.shape(shape)),
            Shape::Text
            | Shape::Name
            | Shape::Flag
            | Shape::Whole { .. }
            | Shape::Number { .. }
            | Shape::Time { .. }
            | Shape::Rate
            | Shape::Size
            | Shape::Word(_)
            | Shape::Bound(_)
            | Shape::Anything => {}
        }
    }
}
