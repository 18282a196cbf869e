//! The arguments of `check`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Parser};

use super::{Parsed, ReportArg, When, answer, fault, refuse, report, setting, settings};

const EXAMPLES: &str = "\
Examples:
  deadline-run check orders.toml
      show the deadlines, what cannot be proven by construction, and what is likely not meant
  deadline-run check *.toml -q
      one line for each, and exit status 2 when one is invalid

Exit status:
  0  every workload is valid, warnings or not
  2  the command line or a workload is invalid
  70 deadline-run itself failed, or could not write a report";

/// Checks workloads and prints their plans; runs nothing.
#[derive(Debug, Parser)]
#[command(bin_name = "deadline-run check", after_help = EXAMPLES, max_term_width = 100)]
pub struct CheckArgs {
    /// The workloads to check
    #[arg(value_name = "WORKLOAD.toml", required = true)]
    pub workloads: Vec<PathBuf>,

    /// Write the plan: text or json, to FILE or else to stdout (`-`); {name} in FILE is the
    /// workload's name
    #[arg(long = "report", value_name = "FORMAT[=FILE]", value_parser = report)]
    pub reports: Vec<ReportArg>,

    /// Replace a setting of the workloads, such as budget.total=2s or handler.compress.for=2s
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<String>,

    /// Where all draws begin; short for --set load.seed=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Colour the text
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: When,

    /// Print the last line of each plan alone
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub quiet: bool,
}

impl CheckArgs {
    /// All settings to replace, in the order in which they count.
    pub fn settings(&self) -> Vec<String> {
        settings(&self.set, self.seed)
    }
}

/// Reads the words after the program's name, `check` being the first of them.
pub(super) fn parse(words: &[OsString], exists: fn(&Path) -> bool, color: bool) -> Parsed {
    match CheckArgs::try_parse_from(&words[1..]) {
        Err(error) => answer(&error, color),
        Ok(args) => match fault(&args.workloads, &args.reports, None, exists) {
            Some(fault) => refuse(&fault),
            None => Parsed::Check(args),
        },
    }
}
