//! The report of a run that was cut short, by the record that it left.
//!
//! What the record shows counts as in any report. That the run did not end is a gap that nothing
//! excuses: expectations are about whole runs, so that none is judged, and the exit status is 3.

use super::verdict::succeeded;
use super::words::{count, span};
use super::{Ending, Report, Verdict, VerdictWord, ranked, subject};

/// As SPEC section 5 has it for what was not shown to end.
const UNPROVEN: u8 = 3;

impl Report {
    /// Says that the run was cut short at `at_us`, the end of its record.
    #[must_use]
    pub fn cut_short(mut self, at_us: u64) -> Self {
        for gap in &mut self.gaps {
            gap.expected = false;
        }
        self.cut_short_us = Some(at_us);
        self.expectations.clear();
        self.ending = Ending::Incomplete;
        self.exit_status = UNPROVEN;
        self.verdict = Verdict { word: VerdictWord::Unproven, why: why(&self, at_us) };
        self
    }
}

fn why(report: &Report, at_us: u64) -> String {
    let ranked = ranked(&report.gaps);
    let open = match ranked.first() {
        None => String::from("nothing that it shows was open"),
        Some(first) => {
            let first = subject(first, &report.workload.file);
            match ranked.len() as u64 - 1 {
                0 => format!("{first} not shown to have ended in time"),
                more => format!(
                    "{first} and {} not shown to have ended in time",
                    count(more, "more", "more")
                ),
            }
        }
    };
    format!("the run was cut short after {}; {open}; {}", span(at_us), succeeded(report))
}
