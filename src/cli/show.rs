//! Shows a saved report again, or makes the report of a saved record of events.
//!
//! What a report says was judged when it was made. A record is judged now, as the run would have been.

use std::path::{Path, PathBuf};
use std::{fs, io};

use deadline_run::drive::signals::Signals;
use deadline_run::events::{self, Source};
use deadline_run::plan::Plan;
use deadline_run::render::json;
use deadline_run::render::page::{Color, printable};
use deadline_run::render::text::{self, Amount, last_line};
use deadline_run::report::words::reason;
use deadline_run::report::{Listed, Report, read};
use deadline_run::timeline::Moment;
use deadline_run::workload::file;

use super::args::{Format, ShowArgs};
use super::exit;
use super::input;
use super::output::{Fault, Outlets, Target};
use super::run::{Known, PAGE, file_name, is_colored, judge, stdout_format};

/// Shows what the command line names; returns the exit status, which is not that of the report.
pub fn show(args: &ShowArgs, outlets: &Outlets, signals: &Signals) -> u8 {
    let named = args.saved.clone();
    let Some(read) = input::read(&args.saved, signals, move || fs::read(named)) else {
        let name = printable(&args.saved.display().to_string());
        outlets.complain(&format!("{name} was not read: stopped by a signal"));
        return exit::UNTESTED;
    };
    let prepared =
        load(&args.saved, read, outlets).and_then(|report| Ok((files(args, &report)?, report)));
    let (files, report) = match prepared {
        Ok(prepared) => prepared,
        Err(message) => {
            outlets.complain(&message);
            return exit::INVALID;
        }
    };
    match write(args, outlets, &files, &report) {
        Ok(()) => exit::OK,
        Err(message) => {
            outlets.complain(&message);
            exit::OWN_FAILURE
        }
    }
}

fn load(file: &Path, read: io::Result<Vec<u8>>, outlets: &Outlets) -> Result<Report, String> {
    let name = printable(&file.display().to_string());
    let bytes = read.map_err(|error| format!("{name} cannot be read: {}", reason(&error)))?;
    if events::is_record(&bytes) {
        return judged(&bytes, outlets).map_err(|why| format!("{name}: {}", printable(&why)));
    }
    read::parse(&bytes).map_err(|fault| match fault {
        // A place joins on to the name of the file.
        read::ReportError::Malformed { .. } => {
            format!(
                "{name}:{}; use a file that `--report json=FILE` or `--events FILE` wrote",
                printable(&fault.to_string())
            )
        }
        fault => format!("{name} is no report to show: {}", printable(&fault.to_string())),
    })
}

/// The report of a record: of the whole run, or of as much as there is.
fn judged(bytes: &[u8], outlets: &Outlets) -> Result<Report, String> {
    let record = events::parse(bytes).map_err(|error| error.to_string())?;
    let Source { file: path, text, set, sha256, .. } = &record.head.workload;
    let workload = file::parse(Path::new(path), text, set).map_err(|faults| {
        let first = faults.render(false).lines().next().unwrap_or_default().to_owned();
        format!("the workload in its first line is not valid for this version: {first}")
    })?;
    if workload.sha256 != *sha256 {
        return Err("the workload in its first line is not the one that was run".into());
    }
    let known = Known {
        control: record.head.control,
        workload_nice: record.head.workload_nice,
        started: record.head.started.clone(),
        elapsed: record.end().since(Moment::START),
        peers: Vec::new(),
    };
    let plan = Plan::new(&workload);
    Ok(judge(&workload, &plan, &record.log, known, Listed::All, outlets))
}

/// The files to write, `{name}` filled in.
fn files(args: &ShowArgs, report: &Report) -> Result<Vec<(Format, Target)>, String> {
    let mut files = Vec::new();
    for wanted in &args.reports {
        let Some(pattern) = &wanted.file else { continue };
        let path = PathBuf::from(pattern.replace("{name}", &file_name(&report.workload.name)));
        let target = Target::find(&path).map_err(|fault| fault.to_string())?;
        if target.is(&args.saved) {
            return Err(format!("report {} would overwrite the one to show", path.display()));
        }
        files.push((wanted.format, target));
    }
    Ok(files)
}

/// Files first, then the terminal.
fn write(
    args: &ShowArgs,
    outlets: &Outlets,
    files: &[(Format, Target)],
    report: &Report,
) -> Result<(), String> {
    let amount = if args.verbose { Amount::Full } else { Amount::Brief };
    let plain = text::Options { width: PAGE, color: Color::Plain, amount };
    for (format, target) in files {
        let bytes = match format {
            Format::Text => text::render(report, plain),
            Format::Json => json::render(report),
        };
        target.write(bytes.as_bytes()).map_err(|fault| fault.to_string())?;
    }
    let color = match is_colored(args.color, &outlets.stdout) {
        true => Color::Ansi,
        false => Color::Plain,
    };
    let width = outlets.stdout.width().unwrap_or(PAGE);
    let shown = match stdout_format(&args.reports) {
        Format::Json => json::render(report),
        Format::Text if args.quiet => last_line(&report.verdict, report.exit_status, color),
        Format::Text => text::render(report, text::Options { width, color, ..plain }),
    };
    match outlets.stdout.write(shown.as_bytes()) {
        // Nobody wants to read it.
        Ok(()) | Err(Fault::Closed) => Ok(()),
        Err(fault) => Err(format!("the report cannot be written to stdout: {fault}")),
    }
}
