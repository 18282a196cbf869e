//! Runs workloads, one after the other, and writes their reports.
//!
//! Everything that can be refused is refused before the first one runs.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use deadline_run::audit;
use deadline_run::drive::real::{self, DriveError, Options};
use deadline_run::drive::signals::Signals;
use deadline_run::event::{EventLog, RunEntry, RunEvent};
use deadline_run::events::Source;
use deadline_run::plan::Plan;
use deadline_run::progress::Progress;
use deadline_run::render::page::Color;
use deadline_run::render::text::{self, Amount};
use deadline_run::render::{json, text::last_line};
use deadline_run::report::words::{count, reason};
use deadline_run::report::{
    Clock, Control, Listed, PeerRow, Report, RunFacts, Verdict, VerdictWord,
};
use deadline_run::workload::{Workload, file};

use super::args::{Args, Format, ReportArg, When};
use super::events::Events;
use super::exit;
use super::input;
use super::output::{Fault, Outlet, Outlets, Target, wants_color};
use super::progress::{Style, Watch};

/// The width of a page that no terminal sets.
pub(super) const PAGE: u16 = 100;

/// Runs what the command line names; returns the exit status.
pub fn run(args: &Args, outlets: &Outlets, signals: &Signals) -> u8 {
    let jobs = match prepare(args, outlets, signals) {
        Ok(jobs) => jobs,
        Err(status) => return status,
    };
    let mut status = exit::OK;
    for (place, job) in jobs.iter().enumerate() {
        if place > 0 && stdout_format(&args.reports) == Format::Text && !args.quiet {
            let _ = outlets.stdout.write(b"\n");
        }
        // Whoever stopped one run did not mean the next one to begin.
        let made = match signals.count() {
            0 => run_one(args, outlets, signals, job),
            _ => untested(args, outlets, &job.workload.name),
        };
        status = exit::worse(status, made);
    }
    status
}

/// Says that a workload was not run because of a signal; returns the exit status.
fn untested(args: &Args, outlets: &Outlets, name: &str) -> u8 {
    let why = format!("{name} was not run: stopped by a signal");
    let verdict = Verdict { word: VerdictWord::Untested, why };
    end_without_report(args, outlets, &verdict, exit::UNTESTED)
}

/// One workload, and where its reports go.
struct Job {
    workload: Arc<Workload>,
    files: Vec<(Format, Target)>,
    /// Where its events go, and what its workload is read from again.
    events: Option<(Arc<Target>, Source)>,
}

/// Loads every workload and looks at every file to write; complains of all that is wrong. An error is
/// the exit status of a run that there will not be.
fn prepare(args: &Args, outlets: &Outlets, signals: &Signals) -> Result<Vec<Job>, u8> {
    let color = is_colored(args.color, &outlets.stderr);
    let settings = args.settings();
    let mut workloads = Vec::new();
    let mut first = None;
    let mut faults_in_all = 0;
    for path in &args.workloads {
        let (named, words) = (path.clone(), settings.clone());
        let Some(text) = input::read(path, signals, move || file::read(&named, &words)) else {
            return Err(untested(args, outlets, &path.display().to_string()));
        };
        match text.and_then(|text| Ok((file::parse(path, &text, &settings)?, text))) {
            Ok(read) => workloads.push(read),
            Err(faults) => {
                let mut message = faults.render(color);
                if !message.ends_with('\n') {
                    message.push('\n');
                }
                outlets.say(&message);
                faults_in_all += faults.len();
                first.get_or_insert_with(|| {
                    faults.render(false).lines().next().unwrap_or_default().to_owned()
                });
            }
        }
    }
    if let Some(first) = first {
        let more = match faults_in_all - 1 {
            0 => String::new(),
            more => format!(", and {}", count(more as u64, "fault more", "faults more")),
        };
        return Err(refuse(args, outlets, &format!("{first}{more}; nothing was run")));
    }

    let mut taken = HashSet::new();
    let mut jobs = Vec::new();
    for (workload, text) in workloads {
        let files =
            files(&args.reports, &args.workloads, &workload, &mut taken).and_then(|files| {
                let target = events_file(args, &workload, &mut taken)?;
                let source = || Source::new(&workload, &text, &settings);
                Ok((files, target.map(|target| (Arc::new(target), source()))))
            });
        match files {
            Ok((files, events)) => jobs.push(Job { workload: Arc::new(workload), files, events }),
            Err(message) => {
                outlets.complain(&message);
                return Err(refuse(args, outlets, &format!("{message}; nothing was run")));
            }
        }
    }
    Ok(jobs)
}

fn refuse(args: &Args, outlets: &Outlets, why: &str) -> u8 {
    let verdict = Verdict { word: VerdictWord::Invalid, why: why.into() };
    end_without_report(args, outlets, &verdict, exit::INVALID)
}

/// Prints the last line of a report that there is not, where the text would go.
fn end_without_report(args: &Args, outlets: &Outlets, verdict: &Verdict, status: u8) -> u8 {
    if stdout_format(&args.reports) == Format::Text {
        let line = last_line(verdict, status, color(args, outlets));
        // It says nothing that stderr and the exit status do not say too.
        let _ = outlets.stdout.write(line.as_bytes());
    }
    status
}

/// The report files of one workload, `{name}` filled in.
pub(super) fn files(
    reports: &[ReportArg],
    workloads: &[PathBuf],
    workload: &Workload,
    taken: &mut HashSet<PathBuf>,
) -> Result<Vec<(Format, Target)>, String> {
    let mut files = Vec::new();
    for report in reports {
        let Some(pattern) = &report.file else { continue };
        let path = PathBuf::from(pattern.replace("{name}", &file_name(&workload.name)));
        let target = Target::find(&path).map_err(|fault| fault.to_string())?;
        if !taken.insert(target.place()) {
            return Err(format!(
                "two reports cannot both go to {}; give the files or the workloads different names",
                path.display()
            ));
        }
        if workloads.iter().any(|workload| target.is(workload)) {
            return Err(format!("report {} would overwrite a workload", path.display()));
        }
        files.push((report.format, target));
    }
    Ok(files)
}

/// The events file of one workload, `{name}` filled in.
fn events_file(
    args: &Args,
    workload: &Workload,
    taken: &mut HashSet<PathBuf>,
) -> Result<Option<Target>, String> {
    let Some(pattern) = &args.events else { return Ok(None) };
    let path = PathBuf::from(pattern.replace("{name}", &file_name(&workload.name)));
    let target = Target::find_as("events", &path).map_err(|fault| fault.to_string())?;
    if !taken.insert(target.place()) {
        return Err(format!(
            "events cannot go to {}, where something else goes; give the files or the workloads \
             different names",
            path.display()
        ));
    }
    match args.workloads.iter().any(|workload| target.is(workload)) {
        true => Err(format!("events {} would overwrite a workload", path.display())),
        false => Ok(Some(target)),
    }
}

/// A workload's name as one part of a path.
pub(super) fn file_name(name: &str) -> String {
    let safe: String = name
        .chars()
        .map(|letter| if letter == '/' || letter.is_control() { '-' } else { letter })
        .collect();
    match safe.strip_prefix('.') {
        Some(rest) => format!("-{rest}"),
        None => safe,
    }
}

fn run_one(args: &Args, outlets: &Outlets, signals: &Signals, job: &Job) -> u8 {
    let workload = &job.workload;
    let plan = Arc::new(Plan::new(workload));
    let progress = Arc::new(Progress::default());
    let watch = progress_style(args, outlets)
        .and_then(|style| Watch::start(Arc::clone(&progress), style, Arc::clone(&outlets.stderr)));
    let started = job.events.clone().map(|(target, source)| {
        let events = Events::start(target, Arc::clone(workload), source);
        events.map_err(|error| format!("the thread that writes events: {}", reason(&error)))
    });
    let (events, feed) = match started.transpose() {
        Ok(started) => started.unzip(),
        Err(message) => {
            return not_run(args, outlets, job, &message, VerdictWord::Error, exit::OWN_FAILURE);
        }
    };
    let options = Options { max_time: args.max_time, signals: Some(signals.clone()), feed };
    let run = real::run(workload, &plan, &options, &progress);
    if let Some(watch) = watch {
        watch.stop();
    }
    let run = match run {
        Ok(run) => run,
        Err(error) => {
            let (word, status) = match error {
                DriveError::Threads(_) => (VerdictWord::Error, exit::OWN_FAILURE),
                DriveError::Peers(_) => (VerdictWord::Untested, exit::UNTESTED),
            };
            return not_run(args, outlets, job, &error.to_string(), word, status);
        }
    };

    let known = Known {
        control: run.control,
        workload_nice: run.workload_nice,
        started: rfc3339(run.started),
        elapsed: run.elapsed,
        peers: run.peers.clone(),
    };
    let mut report = judge(workload, &plan, &run.log, known, args.detail.into(), outlets);
    if let Some(Err(fault)) = events.map(Events::finish) {
        let message = fault.to_string();
        outlets.complain(&message);
        own_failure(&mut report, &message);
    }
    write(args, outlets, job, &mut report)
}

/// Says why a workload could not be run; returns the exit status.
fn not_run(
    args: &Args,
    outlets: &Outlets,
    job: &Job,
    why: &str,
    word: VerdictWord,
    status: u8,
) -> u8 {
    let message = format!("{} could not be run: {why}", job.workload.file.display());
    outlets.complain(&message);
    let verdict = Verdict { word, why: message };
    end_without_report(args, outlets, &verdict, status)
}

/// What is known of a run beside its log.
pub(super) struct Known {
    pub control: Control,
    pub workload_nice: i32,
    pub started: String,
    pub elapsed: Duration,
    /// What the peers saw; of a run that only its events tell of, nothing is known.
    pub peers: Vec<PeerRow>,
}

/// The report on a log; complains where the engine and the audit disagree.
pub(super) fn judge(
    workload: &Workload,
    plan: &Plan,
    log: &EventLog,
    known: Known,
    detail: Listed,
    outlets: &Outlets,
) -> Report {
    let audit = audit::judge(workload, plan, log);
    let facts = RunFacts {
        clock: Clock::Real,
        control: known.control,
        workload_nice: known.workload_nice,
        lateness: audit.lateness,
        started: known.started,
        elapsed_us: u64::try_from(known.elapsed.as_micros()).unwrap_or(u64::MAX),
        shutdown: audit.shutdown,
        peers: known.peers,
    };
    let mut report = Report::assemble(workload, facts, audit.deliveries, detail);
    if let Some(RunEntry { at, event: RunEvent::CutShort }) = log.run.last() {
        report = report.cut_short(at.micros());
    }
    for disagreement in &audit.disagreements {
        outlets.complain(&format!("the engine and the audit disagree: {disagreement}"));
    }
    if !audit.disagreements.is_empty() {
        own_failure(&mut report, "the engine and the audit disagree; please report it");
    }
    report
}

/// Makes the report say that the program itself failed.
fn own_failure(report: &mut Report, why: &str) {
    report.exit_status = exit::OWN_FAILURE;
    report.verdict = Verdict { word: VerdictWord::Error, why: why.into() };
}

/// Writes the report: files first, then the terminal. Returns the exit status.
fn write(args: &Args, outlets: &Outlets, job: &Job, report: &mut Report) -> u8 {
    let plain = text::Options { width: PAGE, color: Color::Plain, amount: amount(args) };
    let mut failed = Vec::new();
    for (format, target) in &job.files {
        let bytes = match format {
            Format::Text => text::render(report, plain),
            Format::Json => json::render(report),
        };
        if let Err(fault) = target.write(bytes.as_bytes()) {
            let message = fault.to_string();
            outlets.complain(&message);
            failed.push(message);
        }
    }
    if let Some(message) = failed.first() {
        own_failure(report, message);
    }

    let written = match stdout_format(&args.reports) {
        Format::Json => outlets.stdout.write(json::render(report).as_bytes()),
        Format::Text => {
            let color = color(args, outlets);
            let width = outlets.stdout.width().unwrap_or(PAGE);
            let body = match args.quiet {
                true => String::new(),
                false => text::body(report, text::Options { width, color, ..plain }),
            };
            let line = last_line(&named(args, &report.verdict, job), report.exit_status, color);
            outlets.stdout.write((body + &line).as_bytes())
        }
    };
    match written {
        // Nobody wants to read it: that changes nothing of the verdict.
        Ok(()) | Err(Fault::Closed) => report.exit_status,
        Err(fault) => {
            outlets.complain(&format!("the report cannot be written to stdout: {fault}"));
            exit::OWN_FAILURE
        }
    }
}

/// The verdict, with the workload's name in it when there are several.
fn named(args: &Args, verdict: &Verdict, job: &Job) -> Verdict {
    match args.workloads.len() {
        1 => verdict.clone(),
        _ => Verdict { why: format!("{}: {}", job.workload.name, verdict.why), ..verdict.clone() },
    }
}

/// What stdout carries: the text, unless another report has taken it.
pub(super) fn stdout_format(reports: &[ReportArg]) -> Format {
    let taken = reports.iter().find(|report| report.file.is_none());
    taken.map_or(Format::Text, |report| report.format)
}

fn amount(args: &Args) -> Amount {
    if args.verbose { Amount::Full } else { Amount::Brief }
}

fn color(args: &Args, outlets: &Outlets) -> Color {
    if is_colored(args.color, &outlets.stdout) { Color::Ansi } else { Color::Plain }
}

pub(super) fn is_colored(when: When, outlet: &Outlet) -> bool {
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => wants_color(outlet),
    }
}

fn progress_style(args: &Args, outlets: &Outlets) -> Option<Style> {
    let style = if outlets.stderr.is_terminal() { Style::Bar } else { Style::Lines };
    match args.progress {
        When::Always => Some(style),
        When::Never => None,
        When::Auto => (!args.quiet).then_some(style),
    }
}

/// RFC 3339 in UTC, to the second.
pub(super) fn rfc3339(time: SystemTime) -> String {
    // A clock set before 1970 is shown as 1970: there is no better word for it here.
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of year 0, so that the leap day is the last of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_796_040_000, "2026-11-30T12:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, date) in dates {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(seconds)), date);
        }
    }

    #[test]
    fn a_name_stays_in_its_directory() {
        assert_eq!(file_name("orders"), "orders");
        assert_eq!(file_name("../../etc/x"), "-.-..-etc-x");
        assert_eq!(file_name(".."), "-.");
        assert_eq!(file_name("a\nb"), "a-b");
    }
}
