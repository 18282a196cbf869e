//! Checks workloads and prints their plans. Nothing is run.

use std::collections::HashSet;

use deadline_run::drive::signals::Signals;
use deadline_run::foresight::{Foresight, foresee};
use deadline_run::plan::Plan;
use deadline_run::render::page::Color;
use deadline_run::render::plan;
use deadline_run::render::text::last_line;
use deadline_run::report::words::count;
use deadline_run::report::{Verdict, VerdictWord};
use deadline_run::workload::fault::Faults;
use deadline_run::workload::{Workload, file};

use super::args::{CheckArgs, Format};
use super::exit;
use super::input;
use super::output::{Fault, Outlets, Target};
use super::run::{PAGE, files, is_colored};

/// Checks what the command line names, each file on its own; returns the exit status.
pub fn check(args: &CheckArgs, outlets: &Outlets, signals: &Signals) -> u8 {
    let settings = args.settings();
    let mut taken = HashSet::new();
    let mut status = exit::OK;
    for (place, path) in args.workloads.iter().enumerate() {
        if place > 0 && is_text(args) && !args.quiet {
            let _ = outlets.stdout.write(b"\n");
        }
        let (named, words) = (path.clone(), settings.clone());
        let Some(loaded) = input::read(path, signals, move || file::load(&named, &words)) else {
            let why = format!("{} was not checked: stopped by a signal", path.display());
            return end(args, outlets, VerdictWord::Untested, why, exit::UNTESTED);
        };
        let checked = match loaded {
            Err(faults) => invalid(args, outlets, &faults),
            Ok(workload) => match files(&args.reports, &args.workloads, &workload, &mut taken) {
                Ok(targets) => show(args, outlets, &workload, &targets),
                Err(message) => {
                    outlets.complain(&message);
                    end(args, outlets, VerdictWord::Invalid, message, exit::INVALID)
                }
            },
        };
        status = exit::worse(status, checked);
    }
    status
}

fn invalid(args: &CheckArgs, outlets: &Outlets, faults: &Faults) -> u8 {
    let mut message = faults.render(is_colored(args.color, &outlets.stderr));
    if !message.ends_with('\n') {
        message.push('\n');
    }
    outlets.say(&message);
    let first = faults.render(false).lines().next().unwrap_or_default().to_owned();
    let why = match faults.len() - 1 {
        0 => first,
        more => format!("{first}, and {}", count(more as u64, "fault more", "faults more")),
    };
    end(args, outlets, VerdictWord::Invalid, why, exit::INVALID)
}

/// Writes the plan of a valid workload: files first, then the terminal.
fn show(
    args: &CheckArgs,
    outlets: &Outlets,
    workload: &Workload,
    targets: &[(Format, Target)],
) -> u8 {
    let foresight = foresee(workload, &Plan::new(workload));
    let mut failed = None;
    for (format, target) in targets {
        let bytes = match format {
            Format::Json => plan::json::render(workload, &foresight),
            Format::Text => {
                let body = plan::body(workload, &foresight, PAGE, Color::Plain);
                let verdict = plan::verdict(workload, &foresight);
                body + &last_line(&verdict, exit::OK, Color::Plain)
            }
        };
        if let Err(fault) = target.write(bytes.as_bytes()) {
            outlets.complain(&fault.to_string());
            failed.get_or_insert(fault.to_string());
        }
    }
    if let Some(message) = failed {
        return end(args, outlets, VerdictWord::Error, message, exit::OWN_FAILURE);
    }
    print(args, outlets, workload, &foresight)
}

fn print(args: &CheckArgs, outlets: &Outlets, workload: &Workload, foresight: &Foresight) -> u8 {
    if !is_text(args) {
        return write(outlets, &plan::json::render(workload, foresight), exit::OK);
    }
    let color = color(args, outlets);
    let width = outlets.stdout.width().unwrap_or(PAGE);
    let body = match args.quiet {
        true => String::new(),
        false => plan::body(workload, foresight, width, color),
    };
    let line = last_line(&plan::verdict(workload, foresight), exit::OK, color);
    write(outlets, &(body + &line), exit::OK)
}

/// Prints the last line of a plan that there is not, where the text would go.
fn end(args: &CheckArgs, outlets: &Outlets, word: VerdictWord, why: String, status: u8) -> u8 {
    match is_text(args) {
        true => {
            write(outlets, &last_line(&Verdict { word, why }, status, color(args, outlets)), status)
        }
        false => status,
    }
}

fn write(outlets: &Outlets, text: &str, status: u8) -> u8 {
    match outlets.stdout.write(text.as_bytes()) {
        // Nobody wants to read it: that changes nothing of the verdict.
        Ok(()) | Err(Fault::Closed) => status,
        Err(fault) => {
            outlets.complain(&format!("the plan cannot be written to stdout: {fault}"));
            exit::worse(status, exit::OWN_FAILURE)
        }
    }
}

/// Whether stdout carries the text, and no other report has taken it.
fn is_text(args: &CheckArgs) -> bool {
    args.reports.iter().all(|report| report.file.is_some() || report.format == Format::Text)
}

fn color(args: &CheckArgs, outlets: &Outlets) -> Color {
    if is_colored(args.color, &outlets.stdout) { Color::Ansi } else { Color::Plain }
}
