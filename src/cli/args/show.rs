//! The arguments of `show`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Parser};

use super::{Parsed, ReportArg, When, answer, clashing, refuse, report};

/// Prints a saved report again, as the run printed it, or the report of a file of events.
#[derive(Debug, Parser)]
#[command(
    name = "deadline-run show",
    max_term_width = 100,
    after_help = "\
The events of a run that was cut short, by SIGKILL for instance, make a report that says so: what was
open then is unproven, no expectation is judged, and its exit_status is 3.

Exit status: 0 when it was shown, whatever it says; 2 when it is no report and no events of this
format; 70 when it could not be written"
)]
pub struct ShowArgs {
    /// A report that --report json=FILE wrote, or the events that --events FILE wrote
    #[arg(value_name = "REPORT.json|EVENTS")]
    pub saved: PathBuf,

    /// Write the report: text or json, to FILE or else to stdout (`-`); {name} in FILE is the
    /// workload's name
    #[arg(long = "report", value_name = "FORMAT[=FILE]", value_parser = report)]
    pub reports: Vec<ReportArg>,

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

/// Reads what stands after the name of the program.
pub(super) fn parse(words: &[OsString], color: bool) -> Parsed {
    match ShowArgs::try_parse_from(words) {
        Ok(args) => match clashing(&args.reports) {
            Some(fault) => refuse(&fault),
            None => Parsed::Show(args),
        },
        Err(error) => answer(&error, color),
    }
}
