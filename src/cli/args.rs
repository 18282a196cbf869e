//! The arguments, as the user writes them.
//!
//! The only place that knows clap. Reads no file: whether a word is one is asked of the caller.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgAction, Parser, ValueEnum};
use deadline_run::duration;
use deadline_run::report::Listed;

mod check;
mod show;

pub use self::check::CheckArgs;
pub use self::show::ShowArgs;

/// The commands that are planned and not there yet.
const PLANNED_COMMANDS: [&str; 8] =
    ["audit", "compare", "sweep", "diff", "init", "schema", "completions", "man"];
/// The commands that are there.
const COMMANDS: [&str; 2] = ["check", "show"];
/// The report formats that are planned and not there yet.
const PLANNED_FORMATS: [&str; 4] = ["junit", "markdown", "html", "trace"];

const EXAMPLES: &str = "\
Commands:
  check  Checks workloads and prints their plans; runs nothing
  show   Prints a saved report again, or makes one of the events of a run
         Each has a --help of its own

Examples:
  deadline-run orders.toml
      run it and say what completed and what has really ended
  deadline-run orders.toml --report json=orders.json -q
      keep the whole report, print the verdict alone
  deadline-run orders.toml --set budget.total=2s --set handler.compress.for=500ms
      try other settings without touching the file
  deadline-run orders.toml --events orders.jsonl
      write what happens as it happens, so that a crash leaves the evidence so far
  deadline-run *.toml --report json=reports/{name}.json
      run each, one after the other
  deadline-run check orders.toml
      run nothing: show its deadlines, what cannot be proven, and what is likely not meant
  deadline-run show orders.json -v
      print a saved report again

Exit status:
  0  everything succeeded with evidence, or every expectation in [expect] holds
  1  something failed, panicked, was interrupted or not started, a cleanup failed, or an expectation
     does not hold
  2  the command line or a workload is invalid; nothing was run
  3  something was not shown to end in time, and no expectation allows it
  5  the test could not be made
  70 deadline-run itself failed, or could not write a report or the events";

/// Runs work under a deadline and says, with evidence, what completed and what has really ended.
#[derive(Debug, Parser)]
#[command(name = "deadline-run", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Args {
    /// The workloads to run, one after the other
    #[arg(value_name = "WORKLOAD.toml", required = true)]
    pub workloads: Vec<PathBuf>,

    /// Write a report: text or json, to FILE or else to stdout (`-`); {name} in FILE is the
    /// workload's name
    #[arg(long = "report", value_name = "FORMAT[=FILE]", value_parser = report)]
    pub reports: Vec<ReportArg>,

    /// Write one JSON line per event to FILE as it happens: `show` makes a report of it, also when
    /// this program was killed; {name} in FILE is the workload's name
    #[arg(long, value_name = "FILE", value_parser = events)]
    pub events: Option<String>,

    /// Which deliveries the JSON report lists
    #[arg(long, value_enum, default_value = "all")]
    pub detail: Detail,

    /// Replace a setting of the workloads, such as budget.total=2s or handler.compress.for=2s
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub set: Vec<String>,

    /// Where all draws begin; short for --set load.seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,

    /// Shut a run down so that it is over by then, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = max_time)]
    pub max_time: Option<Duration>,

    /// Show progress on stderr: a bar on a terminal, else a line now and then
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub progress: When,

    /// Colour the text report
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,

    /// Print the last line of the text report alone
    #[arg(short, long, action = ArgAction::SetTrue, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Add the tables of steps and deliveries to the text report, and more timelines
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub verbose: bool,
}

impl Args {
    /// All settings to replace, in the order in which they count.
    pub fn settings(&self) -> Vec<String> {
        settings(&self.set, self.seed)
    }
}

fn settings(set: &[String], seed: Option<u64>) -> Vec<String> {
    let seed = seed.map(|seed| format!("load.seed={seed}"));
    set.iter().cloned().chain(seed).collect()
}

/// One `--report`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportArg {
    pub format: Format,
    /// As written, `{name}` and all; `None` is stdout.
    pub file: Option<String>,
}

/// A report format that this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Text,
    Json,
}

/// `--detail`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Detail {
    /// Every delivery; above 10,000 only those with something to say
    All,
    /// Only those that did not simply succeed with evidence
    Problems,
    /// None: totals and gaps only
    None,
}

impl From<Detail> for Listed {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::All => Self::All,
            Detail::Problems => Self::Problems,
            Detail::None => Self::None,
        }
    }
}

/// `auto`, `always` or `never`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    Auto,
    Always,
    Never,
}

/// What the command line turned out to be.
#[derive(Debug)]
pub enum Parsed {
    Run(Args),
    Check(CheckArgs),
    Show(ShowArgs),
    /// Help or the version, for stdout.
    Asked(Asked),
    /// Why not, for stderr; exit status 2.
    Refused(String),
}

/// A text that was asked for instead of a run.
#[derive(Debug)]
pub struct Asked {
    pub text: String,
}

/// Reads the command line; `exists` says whether a word names a file.
pub fn parse(words: &[OsString], exists: fn(&Path) -> bool, color: bool) -> Parsed {
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    if !exists(Path::new(first)) {
        if first == "check" {
            return check::parse(words, exists, color);
        }
        if first == "show" {
            return show::parse(&words[1..], color);
        }
        if PLANNED_COMMANDS.contains(&first) {
            return refuse(&format!("the command `{first}` is not supported by this version yet"));
        }
        if first == "help" {
            return parse(&[words[0].clone(), "--help".into()], exists, color);
        }
    }
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => return answer(&error, color),
    };
    match fault(&args.workloads, &args.reports, args.events.as_deref(), exists) {
        Some(fault) => refuse(&fault),
        None => Parsed::Run(args),
    }
}

/// What clap says instead of arguments: a refusal, or the help that was asked for.
fn answer(error: &clap::Error, color: bool) -> Parsed {
    let text = match color && error.use_stderr() {
        true => error.render().ansi().to_string(),
        false => error.render().to_string(),
    };
    match error.use_stderr() {
        true => Parsed::Refused(text),
        false => Parsed::Asked(Asked { text }),
    }
}

fn refuse(message: &str) -> Parsed {
    Parsed::Refused(format!("error: {message}\n\nFor more information, try '--help'.\n"))
}

/// What clap cannot see: how the arguments go together.
fn fault(
    workloads: &[PathBuf],
    reports: &[ReportArg],
    events: Option<&str>,
    exists: fn(&Path) -> bool,
) -> Option<String> {
    for workload in workloads {
        let word = workload.to_string_lossy();
        if exists(workload) || word.contains(['.', '/', '\\']) {
            continue;
        }
        if let Some(command) = near(&word) {
            let planned = match COMMANDS.contains(&command) {
                true => "",
                false => ", and is not supported by this version yet",
            };
            return Some(format!(
                "there is no file `{word}`; the command `{command}` is near to it{planned}"
            ));
        }
    }
    let alone = |file: &&str| workloads.len() > 1 && !file.contains("{name}");
    let mut files = reports.iter().filter_map(|report| report.file.as_deref());
    if events.is_some_and(|events| files.any(|file| file == events)) {
        return Some("the events and a report need a file each".into());
    }
    if let Some(events) = events.filter(alone) {
        return Some(format!(
            "with several workloads the events of each need a file of their own: `{events}` has \
             no {{name}} in it"
        ));
    }
    clashing(reports).or_else(|| {
        let file = reports.iter().filter_map(|report| report.file.as_deref()).find(alone)?;
        Some(format!(
            "with several workloads each report needs a file of its own: `{file}` has no \
             {{name}} in it"
        ))
    })
}

/// Two reports that would go to the same place.
fn clashing(reports: &[ReportArg]) -> Option<String> {
    if reports.iter().filter(|report| report.file.is_none()).count() > 1 {
        return Some("two reports cannot both go to stdout; give one of them a FILE".into());
    }
    let files: Vec<&str> = reports.iter().filter_map(|report| report.file.as_deref()).collect();
    let (_, file) =
        files.iter().enumerate().find(|(place, file)| files[..*place].contains(file))?;
    Some(format!("two reports cannot both go to `{file}`"))
}

/// The command that `word` was probably meant to be.
fn near(word: &str) -> Option<&'static str> {
    let (command, distance) = COMMANDS
        .iter()
        .chain(&PLANNED_COMMANDS)
        .map(|command| (*command, strsim::damerau_levenshtein(word, command)))
        .min_by_key(|(_, distance)| *distance)?;
    (distance <= if command.len() > 4 { 2 } else { 1 }).then_some(command)
}

fn report(text: &str) -> Result<ReportArg, String> {
    let (format, file) = match text.split_once('=') {
        Some((format, file)) => (format, Some(file)),
        None => (text, None),
    };
    let format = match format {
        "text" => Format::Text,
        "json" => Format::Json,
        _ if PLANNED_FORMATS.contains(&format) => {
            return Err(format!(
                "the format {format} is not supported by this version yet; text and json are"
            ));
        }
        _ => return Err(format!("there is no format `{format}`; use text or json")),
    };
    match file {
        Some("") => Err("FILE is empty; use - for stdout".into()),
        Some("-" | "/dev/stdout") | None => Ok(ReportArg { format, file: None }),
        Some(file) => Ok(ReportArg { format, file: Some(file.into()) }),
    }
}

fn events(text: &str) -> Result<String, String> {
    match text {
        "" => Err("FILE is empty".into()),
        "-" | "/dev/stdout" => Err("stdout carries the report; name a file".into()),
        file => Ok(file.into()),
    }
}

fn setting(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((key, _)) if !key.trim().is_empty() => Ok(text.into()),
        _ => Err("use KEY=VALUE, such as budget.total=2s".into()),
    }
}

fn max_time(text: &str) -> Result<Duration, String> {
    let max_time = duration::parse(text).map_err(|fault| fault.to_string())?;
    match max_time.is_zero() {
        true => Err("a run needs some time; use more than 0s".into()),
        false => Ok(max_time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Parsed {
        let words: Vec<OsString> =
            std::iter::once("deadline-run").chain(line.split(' ')).map(OsString::from).collect();
        parse(&words, |file| file == Path::new("sweep") || file.extension().is_some(), false)
    }

    fn args(line: &str) -> Args {
        match parsed(line) {
            Parsed::Run(args) => args,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refusal(line: &str) -> String {
        match parsed(line) {
            Parsed::Refused(message) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn clap_finds_no_fault_in_the_definitions() {
        use clap::CommandFactory;
        Args::command().debug_assert();
        CheckArgs::command().debug_assert();
        ShowArgs::command().debug_assert();
    }

    #[test]
    fn reports_go_to_stdout_unless_a_file_is_named() {
        let json = |file: Option<&str>| {
            vec![ReportArg { format: Format::Json, file: file.map(Into::into) }]
        };
        assert_eq!(args("a.toml --report json").reports, json(None));
        assert_eq!(args("a.toml --report json=-").reports, json(None));
        assert_eq!(args("a.toml --report json=x=y.json").reports, json(Some("x=y.json")));
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        let cases = [
            ("check", "required arguments were not provided"),
            ("check a.toml --verbose", "unexpected argument '--verbose'"),
            ("check a.toml b.toml --report json=x.json", "no {name} in it"),
            ("audit --after 5s -- sh", "`audit` is not supported by this version yet"),
            ("chekc a.toml", "no file `chekc`; the command `check` is near"),
            ("shwo r.json", "no file `shwo`; the command `show` is near to it\n"),
            ("show", "REPORT.json"),
            ("show r.json s.json", "s.json"),
            ("show r.json --report json --report text", "both go to stdout"),
            ("show r.json --report json=x --report text=x", "both go to `x`"),
            ("show r.json -q -v", "cannot be used with"),
            ("show r.json --seed 7", "--seed"),
            ("a.toml --report html=x.html", "html is not supported by this version yet"),
            ("a.toml --report yaml", "no format `yaml`; use text or json"),
            ("a.toml --report json=", "FILE is empty"),
            ("a.toml --report json --report text", "both go to stdout"),
            ("a.toml --report json=x --report text=x", "both go to `x`"),
            ("a.toml b.toml --report json=x.json", "no {name} in it"),
            ("a.toml --events -", "stdout carries the report"),
            ("a.toml --events=", "FILE is empty"),
            ("a.toml --events x --report json=x", "need a file each"),
            ("a.toml b.toml --events x", "`x` has no {name} in it"),
            ("a.toml --set total", "use KEY=VALUE"),
            ("a.toml --max-time 0s", "more than 0s"),
            ("a.toml --max-time soon", "--max-time"),
            ("a.toml -q -v", "cannot be used with"),
            ("a.toml --nonsense", "--nonsense"),
        ];
        for (line, expected) in cases {
            let message = refusal(line);
            assert!(message.contains(expected), "{line}: {message}");
        }
    }

    #[test]
    fn checks_take_settings_like_runs() {
        let Parsed::Check(args) = parsed("check a.toml --seed 9 --set budget.total=2s") else {
            panic!("it is a check");
        };
        assert_eq!(args.settings(), ["budget.total=2s", "load.seed=9"]);
    }

    #[test]
    fn a_file_may_be_named_like_a_command() {
        assert_eq!(args("sweep").workloads, [PathBuf::from("sweep")]);
    }

    #[test]
    fn several_workloads_share_a_file_pattern() {
        assert_eq!(args("a.toml b.toml --report json=r/{name}.json").reports.len(), 1);
    }

    #[test]
    fn the_seed_is_the_last_setting() {
        let args = args("a.toml --seed 9 --set load.seed=1 --set budget.total=2s");
        assert_eq!(args.settings(), ["load.seed=1", "budget.total=2s", "load.seed=9"]);
    }

    #[test]
    fn help_lists_the_commands_that_are_there() {
        let Parsed::Asked(Asked { text }) = parsed("--help") else { panic!("it is asked for") };
        let (_, commands) = text.split_once("\nCommands:\n").expect("they have a heading");
        let (commands, _) = commands.split_once("\n\n").expect("and an end");
        let listed = commands.lines().filter(|line| line[2..].starts_with(char::is_alphabetic));
        let listed: Vec<_> = listed.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(listed, COMMANDS);
    }

    #[test]
    fn help_is_asked_for_and_not_a_fault() {
        for line in ["--help", "-h", "help", "--version", "check --help", "show --help"] {
            assert!(matches!(parsed(line), Parsed::Asked(_)), "{line}");
        }
    }
}
