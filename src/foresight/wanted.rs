//! Expectations that no run can meet, and gaps that none of them covers.

use std::collections::BTreeSet;

use super::doubts::always_interrupted;
use super::reach::{in_order, is_threaded, looks_up};
use super::{Finding, FindingKind, Page};
use crate::obligation::Obligation;
use crate::report::words::{exact, stored};
use crate::workload::fault::nearest;
use crate::workload::{
    BlockingOp, Bound, Comparison, Expect, ExpectGap, ExpectRow, OnSignal, Pace, Pool, Spread,
    Work, Workload,
};

/// The counts that add up to all deliveries.
const RESULTS: [&str; 5] = ["success", "failure", "panic", "interrupted", "not_started"];
/// So do these.
const TERMINATIONS: [&str; 4] = ["proven", "late", "unproven", "nothing_started"];

/// What is doubtful of `[expect]`; `unprovable` is what is known to leave gaps.
pub(super) fn find(page: &Page<'_>, unprovable: &[Finding]) -> Vec<Finding> {
    let Some(expect) = &page.workload.expect else { return Vec::new() };
    let mut findings: Vec<Finding> =
        expect.rows.iter().filter_map(|row| row_finding(page, row)).collect();
    for results in [RESULTS.as_slice(), &TERMINATIONS] {
        findings.extend(too_many_together(page, expect, results));
    }
    findings.extend(
        (1..).zip(&expect.gaps).filter_map(|(number, gap)| impossible_gap(page, number, gap)),
    );
    findings.extend(unprovable.iter().filter(|gap| !gap.expected).map(|gap| Finding {
        kind: FindingKind::Uncovered,
        what: String::from("can leave a gap that no expectation covers"),
        why: String::from("if it does, the exit status is 3 whatever else holds"),
        mend: String::from("add an [[expect.gap]] for it, or mend the step"),
        ..gap.clone()
    }));
    findings
}

fn row_finding(page: &Page<'_>, row: &ExpectRow) -> Option<Finding> {
    let key = format!("expect.{}", row.what);
    let never = |why: String, mend: &str| {
        let what = format!("`{} {}` can never hold", row.what, row.written);
        Some(page.of_key(FindingKind::NeverHolds, &key, [what, why, mend.into()]))
    };
    if let Some(code) = row.what.strip_prefix("codes.") {
        return unknown_code(page, &key, code);
    }
    match &row.bound {
        Bound::Count(comparison, wanted) => {
            let (least, most, why) = range(page, &row.what);
            match can_hold(*comparison, *wanted, least, most) {
                true => None,
                false => never(why, "compare with what can be"),
            }
        }
        Bound::Span(comparison, wanted) => {
            let total = page.workload.budget.total;
            let is_of_delivery = matches!(row.what.as_str(), "p50" | "p95" | "p99" | "max");
            let is_out = match comparison {
                Comparison::Greater => *wanted >= total,
                Comparison::AtLeast | Comparison::Equal => *wanted > total,
                Comparison::Less => wanted.is_zero(),
                Comparison::AtMost | Comparison::Unequal => false,
            };
            match is_of_delivery && is_out {
                true => never(
                    format!("a delivery takes {} at most", exact(total)),
                    "use a time within the budget",
                ),
                false => None,
            }
        }
        Bound::Word(_) => None,
    }
}

/// The fewest and the most that a count can be, and why no more.
fn range(page: &Page<'_>, what: &str) -> (u64, u64, String) {
    let workload = page.workload;
    let redeliveries = workload.settlement.as_ref().map_or(0, |policy| policy.redeliveries);
    let (fewest, messages) = messages(workload);
    let deliveries = messages.saturating_mul(1 + u64::from(redeliveries));
    let none = |why: &str| (0, 0, why.to_owned());
    let is_interrupted = || always_interrupted(page).any(|(_, is_for_all)| is_for_all);
    match what {
        "deliveries" if fewest == deliveries => {
            (fewest, deliveries, format!("there are {deliveries} deliveries"))
        }
        "deliveries" => {
            (fewest, deliveries, format!("there are {fewest} to {deliveries} deliveries"))
        }
        "success" | "failure" | "panic" if is_interrupted() => {
            none("every delivery is interrupted")
        }
        "panic" if !can_panic(page) => none("no step of the course can panic"),
        "degraded" if !workload.steps.iter().any(|step| step.optional) => {
            none("no step is optional")
        }
        _ => (0, deliveries, format!("there are {deliveries} deliveries at most")),
    }
}

/// The fewest and the most messages that can arrive.
fn messages(workload: &Workload) -> (u64, u64) {
    let load = &workload.load;
    let shutdown = &workload.shutdown;
    let is_stopped = shutdown.at.is_some() || shutdown.after_deliveries.is_some();
    let all = u64::from(load.deliveries);
    match &load.pace {
        Some(Pace { spread: Spread::Poisson, during: Some(_), .. }) => (0, u64::MAX),
        // Who has not arrived when admission closes does not exist (P15).
        Some(_) if is_stopped => (0, all),
        _ => (all, all),
    }
}

fn can_panic(page: &Page<'_>) -> bool {
    page.workload.steps.iter().filter(|step| !step.stage.is_cleanup()).any(|step| {
        step.panic > 0.0 || step.on_drop.as_ref().is_some_and(|destructor| destructor.panic > 0.0)
    })
}

fn can_hold(comparison: Comparison, wanted: u64, least: u64, most: u64) -> bool {
    match comparison {
        Comparison::Equal => (least..=most).contains(&wanted),
        Comparison::Unequal => least != most || wanted != least,
        Comparison::Less => least < wanted,
        Comparison::AtMost => least <= wanted,
        Comparison::Greater => most > wanted,
        Comparison::AtLeast => most >= wanted,
    }
}

/// Counts of which each could hold, but not all of them together.
fn too_many_together(page: &Page<'_>, expect: &Expect, counts: &[&str]) -> Option<Finding> {
    let (_, deliveries, _) = range(page, "not_started");
    let mut sum = 0_u64;
    let mut last = None;
    for row in expect.rows.iter().filter(|row| counts.contains(&row.what.as_str())) {
        let Bound::Count(comparison, wanted) = &row.bound else { continue };
        let least = match comparison {
            Comparison::Equal | Comparison::AtLeast => *wanted,
            Comparison::Greater => wanted.saturating_add(1),
            Comparison::Unequal | Comparison::Less | Comparison::AtMost => 0,
        };
        // One that cannot hold alone is a finding of its own.
        if least > deliveries {
            return None;
        }
        sum = sum.saturating_add(least);
        if least > 0 {
            last = Some(row);
        }
    }
    let row = last.filter(|_| sum > deliveries)?;
    let words = [
        format!("these counts ask for {sum} deliveries together"),
        format!("there are {deliveries} at most, so they cannot all hold"),
        String::from("let them add up"),
    ];
    Some(page.of_key(FindingKind::NeverHolds, &format!("expect.{}", row.what), words))
}

fn unknown_code(page: &Page<'_>, key: &str, code: &str) -> Option<Finding> {
    let codes = codes(page);
    if codes.contains(code) {
        return None;
    }
    let mend = match nearest(code, codes.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => String::from("use a code that a step of the course has"),
    };
    let words = [
        format!("no step of the course gives the code {code}"),
        String::from("it is found 0 times in every run"),
        mend,
    ];
    Some(page.of_key(FindingKind::UnknownCode, key, words))
}

/// All codes that a delivery can fail with.
fn codes(page: &Page<'_>) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for step in page.workload.steps.iter().filter(|step| !step.stage.is_cleanup()) {
        codes.extend(step.fail.iter().map(|fail| fail.code.to_string()));
        if step.timeout.is_some() {
            codes.insert("TIMEOUT_TOTAL".into());
        }
        if step.poll_budget.is_some() {
            codes.insert("POLL_BUDGET_EXHAUSTED".into());
        }
        match &step.work {
            Work::Cooperative { on_signal: OnSignal::Fail { code }, .. } => {
                codes.insert(code.to_string());
            }
            Work::Blocking { op, pool, .. } => {
                codes.extend((*op == BlockingOp::Fsync).then(|| "WRITE_FAILED".into()));
                codes.extend((*op == BlockingOp::Dns).then(|| "LOOKUP_FAILED".into()));
                codes.extend((*pool == Pool::Own).then(|| "SPAWN_FAILED".into()));
            }
            Work::Tcp(_) | Work::Http(_) => {
                codes.extend(connection_codes(&step.work).into_iter().map(String::from));
            }
            Work::Read { .. } => codes.extend(["READ_FAILED", "SPAWN_FAILED"].map(String::from)),
            Work::Write(_) => codes.extend(["WRITE_FAILED", "SPAWN_FAILED"].map(String::from)),
            work if is_threaded(work) => {
                codes.insert("SPAWN_FAILED".into());
            }
            _ => {}
        }
    }
    codes
}

/// The codes of a step that connects.
fn connection_codes(work: &Work) -> Vec<&'static str> {
    let Some(connection) = work.connection() else { return Vec::new() };
    let mut codes =
        vec!["CONNECTION_REFUSED", "CONNECTION_RESET", "CONNECT_FAILED", "TIMEOUT_CONNECT"];
    codes.extend(connection.read_timeout.map(|_| "TIMEOUT_READ"));
    codes.extend(connection.idle_timeout.map(|_| "TIMEOUT_IDLE"));
    if looks_up(work).is_some() {
        codes.extend(["LOOKUP_FAILED", "SPAWN_FAILED"]);
    }
    match work {
        Work::Http(_) => codes.extend(["NO_ANSWER", "TRUNCATED", "HTTP_STATUS", "NOT_HTTP"]),
        Work::Tcp(tcp) => codes.extend(tcp.read.map(|_| "NO_ANSWER")),
        _ => {}
    }
    codes
}

fn impossible_gap(page: &Page<'_>, number: usize, gap: &ExpectGap) -> Option<Finding> {
    let kind = gap.kind?;
    if gap.count == Some(0) || opens(page, gap.step.as_deref(), kind) {
        return None;
    }
    let who = match &gap.step {
        Some(step) => format!("`{step}` opens no obligation of kind {}", stored(kind)),
        None => format!("nothing opens an obligation of kind {}", stored(kind)),
    };
    let words = [
        String::from("this gap can never be found"),
        who,
        String::from("leave out `kind`, or name the step that has such an obligation"),
    ];
    Some(page.of_key(FindingKind::NeverHolds, &format!("expect.gap.{number}"), words))
}

/// Whether a gap of that kind can name that step, or any.
fn opens(page: &Page<'_>, step: Option<&str>, kind: Obligation) -> bool {
    let workload = page.workload;
    let named = |id: crate::event::StepId| step.is_none_or(|step| workload.step(id).name == step);
    let any = |test: &dyn Fn(&crate::workload::Step) -> bool| {
        page.ids().any(|id| named(id) && test(workload.step(id)))
    };
    match kind {
        Obligation::Thread => any(&|step| {
            is_threaded(&step.work)
                || matches!(step.work, Work::Read { .. } | Work::Write(_))
                || looks_up(&step.work).is_some()
        }),
        Obligation::Connection => any(&|step| step.work.connection().is_some()),
        Obligation::Task => any(&|step| step.detach && !is_threaded(&step.work)),
        // These name the step that held them, which can be one of another delivery.
        Obligation::Execution => !in_order(workload).is_empty(),
        Obligation::Callback => workload.middleware.iter().any(|one| one.terminate.is_some()),
        Obligation::Scope => workload.dispose.is_some(),
        Obligation::Settlement => workload.settlement.is_some(),
    }
}
