//! Shows a saved report again. Judges nothing: what it says was judged when it was made.

use std::fs;
use std::path::{Path, PathBuf};

use deadline_run::render::json;
use deadline_run::render::text::{self, Amount, Color, last_line, printable};
use deadline_run::report::words::reason;
use deadline_run::report::{Report, read};

use super::args::{Format, ShowArgs};
use super::exit;
use super::output::{Fault, Outlets, Target};
use super::run::{PAGE, file_name, is_colored, stdout_format};

/// Shows what the command line names; returns the exit status, which is not that of the report.
pub fn show(args: &ShowArgs, outlets: &Outlets) -> u8 {
    let prepared = load(&args.saved).and_then(|report| Ok((files(args, &report)?, report)));
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

fn load(file: &Path) -> Result<Report, String> {
    let name = printable(&file.display().to_string());
    let bytes =
        fs::read(file).map_err(|error| format!("{name} cannot be read: {}", reason(&error)))?;
    read::parse(&bytes).map_err(|fault| match fault {
        // A place joins on to the name of the file.
        read::ReportError::Malformed { .. } => {
            format!(
                "{name}:{}; use a file that `--report json=FILE` wrote",
                printable(&fault.to_string())
            )
        }
        fault => format!("{name} is no report to show: {}", printable(&fault.to_string())),
    })
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
