//! Builds a [`Report`] from a run's judged deliveries.
//!
//! Totals, percentiles, gaps and the verdict are taken over every delivery; only then are those
//! left out that the report need not list. Judges nothing that the audit has judged.

use std::collections::{BTreeMap, HashMap};

use super::verdict;
use super::words::stored;
use super::{
    Cleanup, CleanupFailure, Clock, Control, Delivery, DeliveryResult, Ending, Engine, FORMAT, Gap,
    Lateness, Listed, LoadShown, Outcome, PeerRow, Percentiles, Program, Report, ReturnedIn,
    ScopeState, SettledState, Shutdown, StepTotals, TerminateState, Termination, Totals, Verdict,
    WorkloadName,
};
use crate::event::Effect;
use crate::expect;
use crate::obligation::{Obligation, ObligationState};
use crate::timeline::Reason;
use crate::workload::{Stage, Workload};

/// Above so many deliveries only those with something to say are listed.
const MOST_LISTED: usize = 10_000;

/// What is known of a run beside its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFacts {
    pub clock: Clock,
    pub control: Control,
    pub workload_nice: i32,
    pub lateness: Lateness,
    /// The wall clock's word for the run's start, RFC 3339 in UTC.
    pub started: String,
    pub elapsed_us: u64,
    pub shutdown: Option<Shutdown>,
    /// What the peers of the file saw.
    pub peers: Vec<PeerRow>,
}

impl Report {
    /// The report of one run of `workload`, with as much of `deliveries` as `detail` asks for.
    pub fn assemble(
        workload: &Workload,
        facts: RunFacts,
        deliveries: Vec<Delivery>,
        detail: Listed,
    ) -> Self {
        let gaps = gaps(workload, &deliveries);
        let mut report = Self {
            format: FORMAT.into(),
            program: Program::this(),
            workload: WorkloadName {
                name: workload.name.clone(),
                file: workload.file.display().to_string(),
                sha256: workload.sha256.clone(),
            },
            clock: facts.clock,
            started: facts.started,
            engine: Engine {
                control: facts.control,
                cutoff_lateness_us: facts.lateness,
                workload_nice: facts.workload_nice,
            },
            ending: ending(&deliveries),
            exit_status: 0,
            verdict: Verdict::default(),
            elapsed_us: facts.elapsed_us,
            cut_short_us: None,
            totals: totals(&deliveries),
            delivery_time_us: delivery_time(&deliveries),
            load: load(workload, &deliveries),
            codes: codes(&deliveries),
            deliveries_listed: detail,
            steps: step_totals(workload, &deliveries),
            cleanup_failures: cleanup_failures(&deliveries),
            deliveries,
            peers: facts.peers,
            services: Vec::new(),
            shutdown: facts.shutdown,
            gaps,
            checks: Vec::new(),
            expectations: Vec::new(),
        };
        let judgement = expect::judge(workload.expect.as_ref(), &report);
        report.exit_status = judgement.exit_status();
        for (gap, expected) in report.gaps.iter_mut().zip(&judgement.expected_gaps) {
            gap.expected = *expected;
        }
        report.expectations.clone_from(&judgement.expectations);
        report.verdict = verdict::of(&report, &judgement);

        report.list(detail);
        report
    }

    /// Leaves out the deliveries that are not to be listed, and says which are.
    fn list(&mut self, detail: Listed) {
        self.deliveries_listed = match detail {
            Listed::All if self.deliveries.len() > MOST_LISTED => Listed::Problems,
            detail => detail,
        };
        match self.deliveries_listed {
            Listed::All => {}
            Listed::Problems => self.deliveries.retain(Delivery::has_something_to_say),
            Listed::None => self.deliveries.clear(),
        }
    }
}

impl Delivery {
    /// `E`: when its outcome froze. Every admitted delivery owes the end of its execution by then.
    pub fn end_us(&self) -> Option<u64> {
        let execution = self.obligations.iter().find(|row| row.kind == Obligation::Execution);
        execution.map(|row| row.due_us)
    }

    /// Whether there is more to tell than that it succeeded with evidence.
    pub fn has_something_to_say(&self) -> bool {
        self.result != DeliveryResult::Success
            || self.termination != Termination::Proven
            || self.cleanup == Cleanup::Failed
            || self.degraded
            || self
                .steps
                .iter()
                .any(|step| matches!(step.outcome, Outcome::Failure | Outcome::Panic))
    }
}

fn ending(deliveries: &[Delivery]) -> Ending {
    let any = |matches: fn(&Delivery) -> bool| deliveries.iter().any(matches);
    if any(has_gap) {
        Ending::Incomplete
    } else if any(|delivery| {
        delivery.cleanup == Cleanup::Failed
            || matches!(
                delivery.settlement.state,
                SettledState::Unresolved | SettledState::Unconfirmed
            )
    }) {
        Ending::Failed
    } else if any(|delivery| {
        delivery.signal.is_some_and(|signal| {
            matches!(signal.reason, Reason::ShutdownDeadline | Reason::ForcedShutdown)
        })
    }) {
        Ending::Forced
    } else {
        Ending::Graceful
    }
}

/// By its obligations or by its termination: should they disagree, the worse one counts.
fn has_gap(delivery: &Delivery) -> bool {
    matches!(delivery.termination, Termination::Late | Termination::Unproven)
        || delivery.obligations.iter().any(|row| row.state != ObligationState::Proven)
}

fn totals(deliveries: &[Delivery]) -> Totals {
    let mut totals = Totals { deliveries: deliveries.len() as u64, ..Totals::default() };
    for delivery in deliveries {
        *match delivery.result {
            DeliveryResult::Success => &mut totals.success,
            DeliveryResult::Failure => &mut totals.failure,
            DeliveryResult::Panic => &mut totals.panic,
            DeliveryResult::Interrupted => &mut totals.interrupted,
            DeliveryResult::NotStarted => &mut totals.not_started,
        } += 1;
        *match delivery.termination {
            Termination::Proven => &mut totals.proven,
            Termination::Late => &mut totals.late,
            Termination::Unproven => &mut totals.unproven,
            Termination::NothingStarted => &mut totals.nothing_started,
        } += 1;
        totals.success_after_signal += u64::from(
            delivery.result == DeliveryResult::Success
                && delivery.returned_in == Some(ReturnedIn::Cooperative),
        );
        totals.degraded += u64::from(delivery.degraded);
        let left = |effect| delivery.steps.iter().any(|step| step.effect == Some(effect));
        totals.partial_effects += u64::from(left(Effect::Partial));
        totals.unknown_effects += u64::from(left(Effect::Unknown));
        totals.cleanup_failed += u64::from(delivery.cleanup == Cleanup::Failed);
    }
    totals
}

fn codes(deliveries: &[Delivery]) -> BTreeMap<String, u64> {
    let mut codes = BTreeMap::new();
    for delivery in deliveries {
        if let (DeliveryResult::Failure, Some(code)) = (delivery.result, &delivery.code) {
            *codes.entry(code.clone()).or_default() += 1;
        }
    }
    codes
}

fn cleanup_failures(deliveries: &[Delivery]) -> Vec<CleanupFailure> {
    let mut failures: BTreeMap<(Option<&str>, String), u64> = BTreeMap::new();
    for delivery in deliveries.iter().filter(|delivery| delivery.cleanup == Cleanup::Failed) {
        for callback in &delivery.callbacks {
            if !matches!(callback.terminate, TerminateState::NotDue | TerminateState::Completed) {
                let key = (Some(callback.middleware.as_str()), stored(callback.terminate));
                *failures.entry(key).or_default() += 1;
            }
        }
        if !matches!(delivery.scope.state, ScopeState::None | ScopeState::Disposed) {
            *failures.entry((None, stored(delivery.scope.state))).or_default() += 1;
        }
    }
    failures
        .into_iter()
        .map(|((middleware, state), deliveries)| CleanupFailure {
            middleware: middleware.map(str::to_owned),
            state,
            deliveries,
        })
        .collect()
}

fn delivery_time(deliveries: &[Delivery]) -> Percentiles {
    let times = deliveries
        .iter()
        .filter_map(|delivery| Some(delivery.ended_us?.saturating_sub(delivery.admitted_us?)));
    percentiles(times.collect())
}

/// What became of the load's pace. Redeliveries come when they come: the rate is that of messages.
fn load(workload: &Workload, deliveries: &[Delivery]) -> LoadShown {
    let waited = deliveries
        .iter()
        .filter_map(|delivery| Some(delivery.admitted_us?.saturating_sub(delivery.arrived_us)));
    let rate = workload.load.pace.as_ref().map(|pace| pace.rate);
    let first = deliveries.iter().filter(|delivery| delivery.attempt == 1);
    let admitted: Vec<u64> = first.filter_map(|delivery| delivery.admitted_us).collect();
    let reached = rate.zip(admitted.iter().max()).map(|(rate, last)| {
        let took = *last as f64 / 1e6 + 1.0 / rate.per_second();
        to_thousandths(admitted.len() as f64 / took)
    });
    LoadShown {
        rate_per_s: rate.map(|rate| to_thousandths(rate.per_second())),
        reached_per_s: reached,
        waited_us: percentiles(waited.collect()),
    }
}

fn to_thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

fn percentiles(mut values: Vec<u64>) -> Percentiles {
    Percentiles {
        p50: nearest_rank(&mut values, 50),
        p95: nearest_rank(&mut values, 95),
        p99: nearest_rank(&mut values, 99),
        max: nearest_rank(&mut values, 100),
    }
}

/// The smallest value that at least `percent` of all values do not exceed.
fn nearest_rank(values: &mut [u64], percent: usize) -> Option<u64> {
    let rank = (values.len() * percent).div_ceil(100);
    let index = rank.checked_sub(1)?;
    Some(*values.select_nth_unstable(index).1)
}

/// Every late or unproven obligation, in the order of deliveries.
fn gaps(workload: &Workload, deliveries: &[Delivery]) -> Vec<Gap> {
    let lines: HashMap<&str, u32> =
        workload.steps.iter().map(|step| (step.name.as_str(), step.line)).collect();
    let mut gaps = Vec::new();
    for delivery in deliveries {
        for row in &delivery.obligations {
            if row.state == ObligationState::Proven {
                continue;
            }
            gaps.push(Gap {
                run: 1,
                delivery: Some(delivery.id),
                service: None,
                step: row.step.clone(),
                line: row.step.as_deref().and_then(|step| lines.get(step).copied()),
                kind: row.kind,
                state: row.state,
                late_by_us: row.late_by_us,
                who: row.who.clone(),
                advice: row.advice.clone(),
                expected: false,
            });
        }
    }
    gaps
}

/// Callbacks and disposers are left out: deliveries have no rows of their steps.
fn step_totals(workload: &Workload, deliveries: &[Delivery]) -> Vec<StepTotals> {
    let inside: HashMap<&String, &String> = workload
        .steps
        .iter()
        .flat_map(|step| step.work.children().iter().map(move |child| (child, &step.name)))
        .map(|(child, name)| (&workload.steps[child.0 as usize].name, name))
        .collect();
    let mut steps: Vec<StepTotals> = workload
        .steps
        .iter()
        .zip(detached(workload))
        .filter(|(step, _)| {
            matches!(step.stage, Stage::Guard | Stage::Resolve | Stage::Extract | Stage::Handler)
        })
        .map(|(step, detached)| StepTotals {
            name: step.name.clone(),
            line: step.line,
            stage: step.stage.word().into(),
            kind: step.work.kind().into(),
            detached,
            inside: inside.get(&step.name).map(|name| (*name).clone()),
            success: 0,
            failure: 0,
            panic: 0,
            dropped: 0,
            skipped: 0,
            running: 0,
            progress: BTreeMap::new(),
            codes: BTreeMap::new(),
            effects: BTreeMap::new(),
        })
        .collect();
    let places: HashMap<String, usize> =
        steps.iter().enumerate().map(|(place, step)| (step.name.clone(), place)).collect();
    for row in deliveries.iter().flat_map(|delivery| &delivery.steps) {
        let Some(place) = places.get(&row.name) else { continue };
        let step = &mut steps[*place];
        *match row.outcome {
            Outcome::Success => &mut step.success,
            Outcome::Failure => &mut step.failure,
            Outcome::Panic => &mut step.panic,
            Outcome::Dropped => &mut step.dropped,
            Outcome::Skipped => &mut step.skipped,
            Outcome::Running => &mut step.running,
        } += 1;
        *step.progress.entry(row.progress).or_default() += 1;
        if let Some(effect) = row.effect {
            *step.effects.entry(effect).or_default() += 1;
        }
        if let Some(code) = &row.code {
            *step.codes.entry(code.clone()).or_default() += 1;
        }
    }
    steps
}

/// For each step, whether nobody awaits it or something that it is inside of.
fn detached(workload: &Workload) -> Vec<bool> {
    let mut detached: Vec<bool> = workload.steps.iter().map(|step| step.detach).collect();
    let mut open: Vec<usize> = (0..detached.len()).filter(|place| detached[*place]).collect();
    while let Some(place) = open.pop() {
        for child in workload.steps[place].work.children() {
            let child = child.0 as usize;
            if !detached[child] {
                detached[child] = true;
                open.push(child);
            }
        }
    }
    detached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::StepId;
    use crate::report::sample::{delivery, facts, report, row, workload};
    use crate::report::{ExecutionState, SignalSeen, TerminateState};
    use crate::workload::Work;

    fn rank(values: &[u64], percent: usize) -> Option<u64> {
        nearest_rank(&mut values.to_vec(), percent)
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(rank(&values, 50), Some(50));
        assert_eq!(rank(&values, 99), Some(99));
        assert_eq!(rank(&values, 100), Some(100));
        assert_eq!(rank(&[7], 50), Some(7));
        assert_eq!(rank(&[7, 9], 50), Some(7));
        assert_eq!(rank(&[7, 9], 95), Some(9));
        assert_eq!(rank(&[1, 2, 3], 50), Some(2));
        assert_eq!(rank(&[], 50), None);
    }

    #[test]
    fn delivery_time_counts_the_interrupted_and_not_the_unstarted() {
        let report = report(
            &workload(),
            vec![
                delivery(1, DeliveryResult::Success),
                delivery(2, DeliveryResult::Interrupted),
                delivery(3, DeliveryResult::NotStarted),
                delivery(4, DeliveryResult::NotStarted),
            ],
        );
        assert_eq!(report.delivery_time_us.p50, Some(120_000));
        assert_eq!(report.delivery_time_us.max, Some(325_070));
    }

    #[test]
    fn totals_count_each_answer_by_itself() {
        let mut degraded = delivery(1, DeliveryResult::Success);
        degraded.degraded = true;
        let late = delivery(2, DeliveryResult::Success)
            .with(row(Obligation::Thread, ObligationState::Late));
        let mut failed = delivery(4, DeliveryResult::Failure);
        let mut slow = delivery(5, DeliveryResult::Success);
        for in_the_window in [&mut failed, &mut slow] {
            in_the_window.returned_in = Some(ReturnedIn::Cooperative);
        }
        let not_started = delivery(3, DeliveryResult::NotStarted);
        let deliveries = vec![degraded, late, not_started, failed, slow];
        let totals = report(&workload(), deliveries).totals;
        let expected = Totals {
            deliveries: 5,
            success: 3,
            success_after_signal: 1,
            failure: 1,
            not_started: 1,
            proven: 3,
            late: 1,
            nothing_started: 1,
            degraded: 1,
            ..Totals::default()
        };
        assert_eq!(totals, expected);
    }

    #[test]
    fn endings_have_an_order() {
        let success = || delivery(1, DeliveryResult::Success);
        let gap = success().with(row(Obligation::Thread, ObligationState::Late));
        let failed = success().with_callback(TerminateState::TimedOut);
        let mut unsettled = success();
        unsettled.settlement.state = SettledState::Unresolved;
        let stopped = |reason| {
            let mut delivery = success();
            delivery.signal = Some(SignalSeen { reason, at_us: 1, observed_us: None });
            delivery
        };
        let forced = stopped(Reason::ForcedShutdown);
        let ending = |deliveries: &[&Delivery]| {
            ending(&deliveries.iter().map(|delivery| (*delivery).clone()).collect::<Vec<_>>())
        };
        assert_eq!(ending(&[&success()]), Ending::Graceful);
        assert_eq!(ending(&[&stopped(Reason::DeliveryTimeout)]), Ending::Graceful);
        assert_eq!(ending(&[&stopped(Reason::ShutdownDeadline)]), Ending::Forced);
        assert_eq!(ending(&[&forced, &failed]), Ending::Failed);
        assert_eq!(ending(&[&forced, &unsettled]), Ending::Failed);
        assert_eq!(ending(&[&forced, &failed, &gap]), Ending::Incomplete);
    }

    #[test]
    fn gaps_stand_in_order_with_the_line_of_their_step() {
        let report = report(
            &workload(),
            vec![
                delivery(1, DeliveryResult::Success),
                delivery(2, DeliveryResult::Interrupted)
                    .with(row(Obligation::Thread, ObligationState::Late))
                    .with(row(Obligation::Scope, ObligationState::Unproven)),
            ],
        );
        let gaps: Vec<_> =
            report.gaps.iter().map(|gap| (gap.delivery, gap.line, gap.kind)).collect();
        assert_eq!(
            gaps,
            [(Some(2), Some(12), Obligation::Thread), (Some(2), Some(12), Obligation::Scope)]
        );
    }

    #[test]
    fn only_codes_of_failed_results_are_counted() {
        let mut written_off = delivery(2, DeliveryResult::Interrupted);
        written_off.code = Some("LATE".into());
        written_off.execution.state = ExecutionState::Unreleased;
        let report = report(&workload(), vec![delivery(1, DeliveryResult::Failure), written_off]);
        assert_eq!(report.codes, BTreeMap::from([("CARD_DECLINED".into(), 1)]));
    }

    #[test]
    fn what_failed_in_cleanup_is_named() {
        let timed_out =
            || delivery(1, DeliveryResult::Interrupted).with_callback(TerminateState::TimedOut);
        let mut scope = timed_out();
        scope.scope.state = ScopeState::Failed;
        let report = report(&workload(), vec![timed_out(), scope]);
        let named: Vec<String> = report.cleanup_failures.iter().map(CleanupFailure::name).collect();
        assert_eq!(named, ["disposal failed", "callback of transaction timed out"]);
        assert_eq!(report.cleanup_failures[1].deliveries, 2);
    }

    #[test]
    fn detached_failures_change_no_exit_status() {
        let mut delivery = delivery(1, DeliveryResult::Success);
        let mut writer = delivery.steps[0].clone();
        writer.name = "writer".into();
        writer.outcome = Outcome::Failure;
        writer.code = Some("DISK_FULL".into());
        delivery.steps.push(writer);
        let report = report(&workload(), vec![delivery]);
        assert_eq!(report.exit_status, 0);
        let writer = report.steps.iter().find(|step| step.name == "writer").unwrap();
        assert!(writer.detached);
        assert_eq!((writer.failure, writer.codes.get("DISK_FULL")), (1, Some(&1)));
    }

    #[test]
    fn steps_say_what_they_are_inside_of() {
        let mut workload = workload();
        workload.steps[1].work = Work::Sequence { steps: vec![StepId(2)] };
        let report = report(&workload, Vec::new());
        let inside: Vec<_> = report.steps.iter().map(|step| step.inside.as_deref()).collect();
        assert_eq!(inside, [None, Some("compress")]);
    }

    #[test]
    fn many_deliveries_are_listed_only_with_something_to_say() {
        let deliveries = |amount: u32| -> Vec<Delivery> {
            (1..=amount)
                .map(|id| match id {
                    1 => delivery(id, DeliveryResult::Panic),
                    _ => delivery(id, DeliveryResult::Success),
                })
                .collect()
        };
        let listed = |amount, detail| {
            let report = Report::assemble(&workload(), facts(), deliveries(amount), detail);
            assert_eq!(report.totals.deliveries, u64::from(amount));
            (report.deliveries_listed, report.deliveries.len())
        };
        assert_eq!(listed(10_000, Listed::All), (Listed::All, 10_000));
        assert_eq!(listed(10_001, Listed::All), (Listed::Problems, 1));
        assert_eq!(listed(3, Listed::Problems), (Listed::Problems, 1));
        assert_eq!(listed(3, Listed::None), (Listed::None, 0));
    }
}
