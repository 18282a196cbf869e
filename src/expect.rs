//! Holds a report against the workload's expectations.
//!
//! Expectations only excuse what they name (SPEC section 5): what would be exit status 3 or 1
//! without the table stays so unless a row *that holds* covers it.
//!
//! - A result that is no success is covered by its own count (`interrupted`) or by `success`.
//!   `codes.X` compares and excuses nothing: it is not the result's own count.
//! - A gap is covered by the count of its delivery's termination (`late`, `unproven`), by `proven`,
//!   which says of all others that they are not, or by an `[[expect.gap]]` that it matches. A
//!   delivery that is `unproven` may have late gaps too; they go with `unproven`.
//! - A cleanup that failed with evidence is no result and no gap. `ending` covers it, when it says
//!   `failed`, or `incomplete` where a gap comes first (D3). What failed by being a gap itself is
//!   covered as one.

use std::collections::HashMap;
use std::time::Duration;

use crate::obligation::{Obligation, ObligationState};
use crate::report::words::{exact, stored};
use crate::report::{
    Cleanup, Delivery, DeliveryResult, Ending, Expectation, Gap, Report, ScopeState,
    TerminateState, Termination,
};
use crate::workload::{Bound, Expect, ExpectGap, ExpectRow};

/// What the expectations make of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The rows in the order of the file, then the gaps.
    pub expectations: Vec<Expectation>,
    /// For each gap of the report, whether a row covers it.
    pub expected_gaps: Vec<bool>,
    /// What no row covers.
    pub uncovered: Uncovered,
}

/// Deliveries that no expectation covers, by what is wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncovered {
    /// Results.
    pub failure: u64,
    /// Results.
    pub panic: u64,
    /// Results.
    pub interrupted: u64,
    /// Results.
    pub not_started: u64,
    /// Callbacks or disposers that ended with evidence and failed.
    pub cleanup: u64,
    /// Terminations that are not proven and show no gap: an audit's mistake that must not pass.
    pub termination: u64,
}

impl Judgement {
    /// The first row of SPEC section 5 that applies to a run that was made.
    pub fn exit_status(&self) -> u8 {
        let uncovered = &self.uncovered;
        if uncovered.termination > 0 || self.expected_gaps.contains(&false) {
            3
        } else if uncovered.failure > 0
            || uncovered.panic > 0
            || uncovered.interrupted > 0
            || uncovered.not_started > 0
            || uncovered.cleanup > 0
            || self.expectations.iter().any(|row| !row.holds)
        {
            1
        } else {
            0
        }
    }
}

/// Judges `report`, which lists all its deliveries and gaps, by `expect`.
pub fn judge(expect: Option<&Expect>, report: &Report) -> Judgement {
    let (rows, expected): (&[ExpectRow], &[ExpectGap]) =
        expect.map_or((&[], &[]), |expect| (&expect.rows, &expect.gaps));
    let rows: Vec<Expectation> = rows.iter().map(|row| judge_row(row, report)).collect();
    let gap_rows: Vec<Expectation> =
        expected.iter().map(|wanted| judge_gap(wanted, report)).collect();

    let cover = Cover {
        holding: rows.iter().filter(|row| row.holds).map(|row| row.what.as_str()).collect(),
        gaps: expected
            .iter()
            .zip(&gap_rows)
            .filter(|(_, row)| row.holds)
            .map(|pair| pair.0)
            .collect(),
        ending: report.ending,
    };
    let terminations: HashMap<u32, Termination> =
        report.deliveries.iter().map(|delivery| (delivery.id, delivery.termination)).collect();
    let expected_gaps = report
        .gaps
        .iter()
        .map(|gap| {
            let termination = gap.delivery.and_then(|delivery| terminations.get(&delivery));
            cover.gap(gap, termination.copied())
        })
        .collect();

    let mut uncovered = Uncovered::default();
    for delivery in &report.deliveries {
        if !cover.result(delivery.result) {
            match delivery.result {
                DeliveryResult::Success => {}
                DeliveryResult::Failure => uncovered.failure += 1,
                DeliveryResult::Panic => uncovered.panic += 1,
                DeliveryResult::Interrupted => uncovered.interrupted += 1,
                DeliveryResult::NotStarted => uncovered.not_started += 1,
            }
        }
        uncovered.cleanup +=
            u64::from(failed_cleanup_with_evidence(delivery) && !cover.failed_cleanup());
        uncovered.termination += u64::from(
            is_open(delivery.termination)
                && delivery.obligations.iter().all(|row| row.state == ObligationState::Proven)
                && !cover.termination(delivery.termination),
        );
    }
    let expectations = rows.iter().chain(&gap_rows).cloned().collect();
    Judgement { expectations, expected_gaps, uncovered }
}

/// What the rows that hold have named.
struct Cover<'a> {
    holding: Vec<&'a str>,
    gaps: Vec<&'a ExpectGap>,
    ending: Ending,
}

impl Cover<'_> {
    fn names(&self, what: &str) -> bool {
        self.holding.contains(&what)
    }

    fn result(&self, result: DeliveryResult) -> bool {
        result == DeliveryResult::Success || self.names("success") || self.names(&stored(result))
    }

    fn termination(&self, termination: Termination) -> bool {
        self.names("proven") || self.names(&stored(termination))
    }

    fn gap(&self, gap: &Gap, termination: Option<Termination>) -> bool {
        termination.is_some_and(|termination| self.termination(termination))
            || self.gaps.iter().any(|wanted| matches(wanted, gap))
    }

    fn failed_cleanup(&self) -> bool {
        self.names("ending") && matches!(self.ending, Ending::Failed | Ending::Incomplete)
    }
}

fn is_open(termination: Termination) -> bool {
    matches!(termination, Termination::Late | Termination::Unproven)
}

/// Whether a callback or the disposer has ended, with evidence, and failed (K6).
fn failed_cleanup_with_evidence(delivery: &Delivery) -> bool {
    if delivery.cleanup != Cleanup::Failed {
        return false;
    }
    let gaps_of = |kind: Obligation| {
        delivery
            .obligations
            .iter()
            .filter(|row| row.kind == kind && row.state != ObligationState::Proven)
            .count()
    };
    let callback_gaps = gaps_of(Obligation::Callback);
    let failed_callbacks = delivery
        .callbacks
        .iter()
        .filter(|callback| {
            !matches!(callback.terminate, TerminateState::NotDue | TerminateState::Completed)
        })
        .count();
    let has_gap = callback_gaps > 0 || gaps_of(Obligation::Scope) > 0;
    // Each gap accounts for one callback that did not complete; what is left has ended and failed.
    !has_gap || failed_callbacks > callback_gaps || delivery.scope.state == ScopeState::Failed
}

/// What a row is compared with.
enum Found {
    Count(u64),
    Span(Duration),
    Word(String),
    /// There is no such value in this run.
    Nothing,
}

fn judge_row(row: &ExpectRow, report: &Report) -> Expectation {
    let found = find(&row.what, report);
    let holds = match (&row.bound, &found) {
        (Bound::Count(comparison, wanted), Found::Count(found)) => comparison.holds(found, wanted),
        (Bound::Span(comparison, wanted), Found::Span(found)) => comparison.holds(found, wanted),
        (Bound::Word(wanted), Found::Word(found)) => found == wanted,
        // What is not there, or cannot be compared, does not hold.
        _ => false,
    };
    let found = match found {
        Found::Count(count) => count.to_string(),
        Found::Span(span) => exact(span),
        Found::Word(word) => word,
        Found::Nothing => String::from("none"),
    };
    Expectation { what: row.what.clone(), expected: row.written.clone(), found, holds }
}

fn find(what: &str, report: &Report) -> Found {
    let totals = &report.totals;
    let time = &report.delivery_time_us;
    let span = |micros: Option<u64>| match micros {
        Some(micros) => Found::Span(Duration::from_micros(micros)),
        None => Found::Nothing,
    };
    match what {
        "deliveries" => Found::Count(totals.deliveries),
        "success" => Found::Count(totals.success),
        "failure" => Found::Count(totals.failure),
        "panic" => Found::Count(totals.panic),
        "interrupted" => Found::Count(totals.interrupted),
        "not_started" => Found::Count(totals.not_started),
        "proven" => Found::Count(totals.proven),
        "late" => Found::Count(totals.late),
        "unproven" => Found::Count(totals.unproven),
        "nothing_started" => Found::Count(totals.nothing_started),
        "degraded" => Found::Count(totals.degraded),
        "partial_effects" => Found::Count(totals.partial_effects),
        "unknown_effects" => Found::Count(totals.unknown_effects),
        "cleanup_failed" => Found::Count(totals.cleanup_failed),
        "elapsed" => span(Some(report.elapsed_us)),
        "p50" => span(time.p50),
        "p95" => span(time.p95),
        "p99" => span(time.p99),
        "max" => span(time.max),
        "shutdown_time" => span(report.shutdown.as_ref().map(|shutdown| shutdown.elapsed_us)),
        "ending" => Found::Word(stored(report.ending)),
        _ => match what.strip_prefix("codes.") {
            Some(code) => Found::Count(report.codes.get(code).copied().unwrap_or(0)),
            None => Found::Nothing,
        },
    }
}

fn judge_gap(wanted: &ExpectGap, report: &Report) -> Expectation {
    let found = report.gaps.iter().filter(|gap| matches(wanted, gap)).count() as u64;
    let mut what = String::from("gap");
    if let Some(step) = &wanted.step {
        what += &format!(" step={step}");
    }
    if let Some(kind) = wanted.kind {
        what += &format!(" kind={}", stored(kind));
    }
    if let Some(state) = wanted.state {
        what += &format!(" state={}", stored(state));
    }
    Expectation {
        what,
        expected: wanted.count.map_or_else(|| String::from(">= 1"), |count| count.to_string()),
        found: found.to_string(),
        holds: wanted.count.map_or(found > 0, |count| found == count),
    }
}

fn matches(wanted: &ExpectGap, gap: &Gap) -> bool {
    wanted.step.as_ref().is_none_or(|step| gap.step.as_ref() == Some(step))
        && wanted.kind.is_none_or(|kind| gap.kind == kind)
        && wanted.state.is_none_or(|state| gap.state == state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::obligation::{Obligation as Kind, ObligationState as State};
    use crate::report::sample::{delivery, expecting, report, row, workload};
    use crate::report::{Delivery, DeliveryResult as Result};
    use crate::workload::Comparison;

    fn count(what: &str, comparison: Comparison, wanted: u64) -> ExpectRow {
        ExpectRow {
            what: what.into(),
            bound: Bound::Count(comparison, wanted),
            written: wanted.to_string(),
        }
    }

    fn exactly(what: &str, wanted: u64) -> ExpectRow {
        count(what, Comparison::Equal, wanted)
    }

    fn under(what: &str, millis: u64) -> ExpectRow {
        ExpectRow {
            what: what.into(),
            bound: Bound::Span(Comparison::Less, Duration::from_millis(millis)),
            written: format!("< {millis}ms"),
        }
    }

    fn ending(word: &str) -> ExpectRow {
        ExpectRow { what: "ending".into(), bound: Bound::Word(word.into()), written: word.into() }
    }

    fn gap(step: Option<&str>, state: Option<State>, count: Option<u64>) -> ExpectGap {
        ExpectGap { step: step.map(Into::into), kind: None, state, count }
    }

    /// The exit status of these deliveries without a table.
    fn bare(deliveries: Vec<Delivery>) -> u8 {
        report(&workload(), deliveries).exit_status
    }

    /// The exit status of these deliveries with these rows.
    fn status(deliveries: &[Delivery], rows: Vec<ExpectRow>, gaps: Vec<ExpectGap>) -> u8 {
        report(&expecting(rows, gaps), deliveries.to_vec()).exit_status
    }

    fn late() -> Delivery {
        delivery(1, Result::Interrupted).with(row(Kind::Thread, State::Late))
    }

    fn unproven() -> Delivery {
        delivery(1, Result::Interrupted).with(row(Kind::Thread, State::Unproven))
    }

    /// Success, with a termination callback that panicked and is gone.
    fn failed_cleanup() -> Delivery {
        delivery(1, Result::Success)
            .with(row(Kind::Callback, State::Proven))
            .with_callback(TerminateState::Panicked)
    }

    /// Interrupted, with a termination callback that never began.
    fn callback_not_run() -> Delivery {
        delivery(1, Result::Interrupted)
            .with(row(Kind::Callback, State::Unproven))
            .with_callback(TerminateState::NotRun)
    }

    #[test]
    fn without_a_table_gaps_are_3_and_failures_are_1() {
        assert_eq!(bare(vec![delivery(1, Result::Success)]), 0);
        for result in [Result::Failure, Result::Panic, Result::Interrupted, Result::NotStarted] {
            assert_eq!(bare(vec![delivery(1, result)]), 1, "{result:?}");
        }
        assert_eq!(bare(vec![failed_cleanup()]), 1);
        assert_eq!(bare(vec![late()]), 3);
        assert_eq!(bare(vec![unproven()]), 3);
        assert_eq!(bare(vec![delivery(1, Result::Failure), unproven()]), 3);
        assert_eq!(bare(Vec::new()), 0);
    }

    #[test]
    fn an_empty_table_excuses_nothing() {
        assert_eq!(status(&[late()], vec![], vec![]), 3);
        assert_eq!(status(&[delivery(1, Result::Panic)], vec![], vec![]), 1);
    }

    #[test]
    fn a_result_is_covered_by_its_own_count_or_by_success() {
        let results = [
            (Result::Failure, "failure"),
            (Result::Panic, "panic"),
            (Result::Interrupted, "interrupted"),
            (Result::NotStarted, "not_started"),
        ];
        for (result, own) in results {
            let deliveries = [delivery(1, result)];
            assert_eq!(status(&deliveries, vec![exactly(own, 1)], vec![]), 0, "{own}");
            assert_eq!(status(&deliveries, vec![exactly("success", 0)], vec![]), 0, "{own}");
            for (_, other) in results.iter().filter(|(_, other)| *other != own) {
                assert_eq!(
                    status(&deliveries, vec![exactly(other, 0)], vec![]),
                    1,
                    "{own} {other}"
                );
            }
        }
    }

    #[test]
    fn a_row_that_does_not_hold_covers_nothing_and_fails() {
        assert_eq!(
            status(&[delivery(1, Result::Success)], vec![exactly("interrupted", 1)], vec![]),
            1
        );
        let two = [delivery(1, Result::Interrupted), delivery(2, Result::Interrupted)];
        assert_eq!(status(&two, vec![exactly("interrupted", 1)], vec![]), 1);
        assert_eq!(
            status(&[unproven()], vec![exactly("success", 0), exactly("unproven", 2)], vec![]),
            3
        );
    }

    #[test]
    fn rows_of_other_things_cover_no_result() {
        let deliveries = [delivery(1, Result::Failure)];
        for row in
            [exactly("codes.CARD_DECLINED", 1), exactly("proven", 1), exactly("deliveries", 1)]
        {
            assert_eq!(status(&deliveries, vec![row.clone()], vec![]), 1, "{}", row.what);
        }
        assert_eq!(status(&deliveries, vec![under("p99", 500)], vec![]), 1);
    }

    #[test]
    fn a_gap_is_covered_by_the_count_of_its_deliverys_termination_or_by_proven() {
        let rows = |what, wanted| vec![exactly("interrupted", 1), exactly(what, wanted)];
        assert_eq!(status(&[late()], rows("late", 1), vec![]), 0);
        assert_eq!(status(&[late()], rows("proven", 0), vec![]), 0);
        assert_eq!(status(&[late()], rows("unproven", 0), vec![]), 3);
        assert_eq!(status(&[unproven()], rows("unproven", 1), vec![]), 0);
        assert_eq!(status(&[unproven()], rows("proven", 0), vec![]), 0);
        assert_eq!(status(&[unproven()], rows("late", 0), vec![]), 3);
        // The results are another matter: covering the gap leaves the interruption.
        assert_eq!(status(&[unproven()], vec![exactly("unproven", 1)], vec![]), 1);
    }

    #[test]
    fn a_late_gap_of_an_unproven_delivery_goes_with_unproven() {
        let both = [unproven().with(row(Kind::Task, State::Late))];
        let rows = |what, wanted| vec![exactly("interrupted", 1), exactly(what, wanted)];
        assert_eq!(status(&both, rows("unproven", 1), vec![]), 0);
        assert_eq!(status(&both, rows("late", 0), vec![]), 3);
    }

    #[test]
    fn a_gap_is_covered_by_an_expected_gap_that_matches_and_holds() {
        let rows = || vec![exactly("interrupted", 1)];
        let unproven = [unproven()];
        let covers = |wanted| status(&unproven, rows(), vec![wanted]);
        assert_eq!(covers(gap(None, None, None)), 0);
        assert_eq!(covers(gap(Some("compress"), Some(State::Unproven), Some(1))), 0);
        assert_eq!(covers(gap(Some("compress"), None, Some(2))), 3);
        assert_eq!(covers(gap(Some("writer"), None, None)), 3);
        assert_eq!(covers(gap(None, Some(State::Late), None)), 3);
        // Only the gap that matches is covered, not its delivery.
        let two = [unproven[0].clone().with(row(Kind::Task, State::Late))];
        assert_eq!(status(&two, rows(), vec![gap(None, Some(State::Late), None)]), 3);
    }

    #[test]
    fn an_expected_gap_that_is_not_there_fails() {
        let success = [delivery(1, Result::Success)];
        assert_eq!(status(&success, vec![], vec![gap(Some("compress"), None, None)]), 1);
        assert_eq!(status(&success, vec![], vec![gap(None, None, Some(0))]), 0);
    }

    #[test]
    fn a_failed_cleanup_is_covered_by_the_ending_alone() {
        let failed = [failed_cleanup()];
        assert_eq!(status(&failed, vec![exactly("success", 1), exactly("proven", 1)], vec![]), 1);
        assert_eq!(status(&failed, vec![ending("failed")], vec![]), 0);
        assert_eq!(status(&failed, vec![ending("graceful")], vec![]), 1);
    }

    #[test]
    fn a_cleanup_that_failed_by_a_gap_is_covered_as_a_gap() {
        let rows = || vec![exactly("interrupted", 1), exactly("unproven", 1)];
        assert_eq!(status(&[callback_not_run()], rows(), vec![]), 0);
        // A disposer that failed beside it has ended with evidence, and is another matter.
        let mut both = callback_not_run();
        both.scope.state = ScopeState::Failed;
        assert_eq!(status(&[both.clone()], rows(), vec![]), 1);
        let mut covered = rows();
        covered.push(ending("incomplete"));
        assert_eq!(status(&[both], covered, vec![]), 0);
    }

    #[test]
    fn a_termination_without_a_gap_is_never_passed_over() {
        let mut odd = delivery(1, Result::Success);
        odd.termination = Termination::Unproven;
        assert_eq!(bare(vec![odd]), 3);
    }

    #[test]
    fn spans_and_words_compare_and_what_is_not_there_does_not_hold() {
        let deliveries = [delivery(1, Result::Success)];
        let holds = |row: ExpectRow| {
            report(&expecting(vec![row], vec![]), deliveries.to_vec()).expectations[0].clone()
        };
        assert_eq!(holds(under("p50", 121)).found, "120ms");
        assert!(holds(under("max", 121)).holds);
        assert!(!holds(under("p99", 120)).holds);
        assert!(holds(ending("graceful")).holds);
        assert!(holds(exactly("codes.NEVER_SEEN", 0)).holds);
        assert_eq!(holds(under("shutdown_time", 1)).found, "none");
        assert!(!holds(under("shutdown_time", 1)).holds);
        assert!(!holds(exactly("services.api.exit", 0)).holds);
    }
}
