//! The one line that says how it went, and the word it begins with (SPEC section 5).
//!
//! Names what did not end or did not hold, the worst first. It decides nothing: the exit status
//! comes from [`crate::expect`].

use std::cmp::Reverse;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::words::{count, span, spoken};
use super::{CleanupFailure, Gap, Report};
use crate::expect::Judgement;
use crate::obligation::{Obligation, ObligationState};

/// What the last line of the text report says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub word: VerdictWord,
    /// Why, in one line.
    pub why: String,
}

/// The first word of the last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    Ok,
    Failed,
    Unproven,
    Regressed,
    Invalid,
    Untested,
    /// The program itself failed.
    Error,
}

impl Default for Verdict {
    /// What there is to say before anything was judged.
    fn default() -> Self {
        Self { word: VerdictWord::Error, why: String::from("nothing was judged") }
    }
}

/// The verdict on a report whose gaps know already whether they were expected.
pub(super) fn of(report: &Report, judgement: &Judgement) -> Verdict {
    let (word, mut reasons) = match report.exit_status {
        3 => (VerdictWord::Unproven, vec![unexpected_gaps(report)]),
        1 => (VerdictWord::Failed, Vec::new()),
        _ => (VerdictWord::Ok, vec![all_well(report)]),
    };
    if word != VerdictWord::Ok {
        reasons.extend(broken(report));
    }
    if word == VerdictWord::Failed {
        reasons.extend(uncovered(report, judgement));
    }
    if word == VerdictWord::Failed && report.gaps.is_empty() {
        reasons.push(format!("{}, all ended with evidence", succeeded(report)));
    } else if word != VerdictWord::Ok || !report.expectations.is_empty() {
        reasons.push(succeeded(report));
    }
    Verdict { word, why: reasons.join("; ") }
}

pub(super) fn succeeded(report: &Report) -> String {
    format!("{} of {} succeeded", report.totals.success, report.totals.deliveries)
}

fn all_well(report: &Report) -> String {
    if report.expectations.is_empty() {
        return format!("{}, and all that was started has ended with evidence", succeeded(report));
    }
    let expectations = match report.expectations.len() {
        1 => String::from("the one expectation holds"),
        rows => format!("all {rows} expectations hold"),
    };
    match report.gaps.len() as u64 {
        0 => format!("{expectations}, and all that was started has ended with evidence"),
        gaps => format!("{expectations}, with {} as expected", count(gaps, "gap", "gaps")),
    }
}

/// The gaps in the order in which a reader needs them: what nobody expected first, then what is a
/// cause, then what never ended before what ended late, the latest first; else as they stand.
pub(crate) fn ranked(gaps: &[Gap]) -> Vec<&Gap> {
    // Cleanup that could not run because its execution was held is a consequence of that.
    let held: HashSet<Option<u32>> = gaps
        .iter()
        .filter(|gap| gap.kind == Obligation::Execution)
        .map(|gap| gap.delivery)
        .collect();
    let is_consequence = |gap: &Gap| {
        matches!(gap.kind, Obligation::Callback | Obligation::Scope) && held.contains(&gap.delivery)
    };
    let mut ranked: Vec<&Gap> = gaps.iter().collect();
    ranked.sort_by_key(|gap| {
        let is_late = gap.state != ObligationState::Unproven;
        (gap.expected, is_consequence(gap), is_late, Reverse(gap.late_by_us))
    });
    ranked
}

/// The first gap that nobody expected, and how many more there are.
fn unexpected_gaps(report: &Report) -> String {
    let ranked = ranked(&report.gaps);
    let unexpected = ranked.iter().filter(|gap| !gap.expected).count() as u64;
    if unexpected == 0 {
        return String::from("a delivery has not been shown to end");
    }
    let named = name(ranked[0], &report.workload.file);
    match unexpected - 1 {
        0 => named,
        more => format!("{named}, and {}", count(more, "gap more", "gaps more")),
    }
}

/// The gap by name and place, with what is wrong with it.
fn name(gap: &Gap, file: &str) -> String {
    format!("{} {}", subject(gap, file), complaint(gap))
}

/// `thread of compress (orders.toml:12)`
pub(crate) fn subject(gap: &Gap, file: &str) -> String {
    let kind = spoken(gap.kind);
    match (&gap.step, gap.line) {
        (Some(step), Some(line)) => format!("{kind} of {step} ({file}:{line})"),
        (Some(step), None) => format!("{kind} of {step}"),
        (None, _) => match gap.delivery {
            Some(delivery) => format!("{kind} of delivery {delivery}"),
            None => kind,
        },
    }
}

/// What is wrong with it: no more than was seen.
pub(crate) fn complaint(gap: &Gap) -> String {
    if gap.state == ObligationState::Late {
        let ended = match gap.kind {
            Obligation::Settlement => "confirmed",
            _ => "ended",
        };
        return match gap.late_by_us {
            Some(micros) => format!("{ended} {} late", span(micros)),
            None => format!("{ended} late"),
        };
    }
    String::from(match gap.kind {
        Obligation::Thread if gap.who.as_ref().is_some_and(|who| who.tid.is_none()) => {
            "not seen to begin"
        }
        Obligation::Task | Obligation::Thread => "still running",
        Obligation::Connection => "still open",
        Obligation::Execution => "not shown to be released",
        Obligation::Callback => "not shown to have run to an end",
        Obligation::Scope => "not shown to be disposed",
        Obligation::Settlement => "not confirmed",
    })
}

impl CleanupFailure {
    /// `callback of transaction timed out`
    pub(crate) fn name(&self) -> String {
        let state = self.state.replace('_', " ");
        match &self.middleware {
            Some(middleware) => format!("callback of {middleware} {state}"),
            None => format!("disposal {state}"),
        }
    }
}

/// The first expectation that does not hold, and how many more.
fn broken(report: &Report) -> Option<String> {
    let mut broken = report.expectations.iter().filter(|row| !row.holds);
    let first = broken.next()?;
    let named = format!("{} is {}, expected {}", first.what, first.found, first.expected);
    Some(match broken.count() as u64 {
        0 => named,
        more => format!("{named}, and {more} more do not hold"),
    })
}

/// What would fail the run without expectations, and is covered by none of them.
fn uncovered(report: &Report, judgement: &Judgement) -> Option<String> {
    let uncovered = judgement.uncovered;
    let mut parts = Vec::new();
    if uncovered.failure > 0 {
        parts.push(count(uncovered.failure, "failure", "failures") + &codes(report));
    }
    if uncovered.panic > 0 {
        parts.push(count(uncovered.panic, "panic", "panics"));
    }
    if uncovered.interrupted > 0 {
        parts.push(format!("{} interrupted", uncovered.interrupted));
    }
    if uncovered.not_started > 0 {
        parts.push(format!("{} not started", uncovered.not_started));
    }
    if uncovered.cleanup > 0 {
        let deliveries = count(uncovered.cleanup, "delivery", "deliveries");
        let named = match report.cleanup_failures.as_slice() {
            [] => String::new(),
            [only] => format!(" ({})", only.name()),
            [first, ..] => format!(" ({}, ...)", first.name()),
        };
        parts.push(format!("cleanup failed in {deliveries}{named}"));
    }
    if parts.is_empty() {
        return None;
    }
    let listed = parts.join(", ");
    Some(match report.expectations.is_empty() {
        true => listed,
        false => format!("{listed}: not expected"),
    })
}

/// The most frequent failure codes, in brackets.
fn codes(report: &Report) -> String {
    let mut codes: Vec<_> = report.codes.iter().collect();
    codes.sort_by_key(|(_, amount)| std::cmp::Reverse(**amount));
    let named: Vec<&str> = codes.iter().take(3).map(|(code, _)| code.as_str()).collect();
    match (named.is_empty(), codes.len() > 3) {
        (true, _) => String::new(),
        (false, false) => format!(" ({})", named.join(", ")),
        (false, true) => format!(" ({}, ...)", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_of_what_ended_late_is_named_first() {
        let gap = |delivery, state, late_by_us| Gap {
            run: 1,
            delivery: Some(delivery),
            service: None,
            step: None,
            line: None,
            kind: Obligation::Thread,
            state,
            late_by_us,
            who: None,
            advice: None,
            expected: false,
        };
        let late = ObligationState::Late;
        let gaps =
            [gap(1, late, Some(5)), gap(2, late, Some(9)), gap(3, ObligationState::Unproven, None)];
        let order: Vec<_> = ranked(&gaps).iter().map(|gap| gap.delivery).collect();
        assert_eq!(order, [Some(3), Some(2), Some(1)]);
    }
}
