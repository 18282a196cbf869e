//! The shutdown of the run: when it may begin, what its root is, and whom it keeps out (B4, C4, D1, D2).

use super::disagree::shown;
use super::rules;
use crate::event::{Decision, Event, EventLog, Initiator, Observation, RunEvent};
use crate::report::{Delivery, Shutdown};
use crate::timeline::Moment;
use crate::workload::{AdmissionPolicy, Workload};

/// What the report says of the shutdown; `last_left` is when the last delivery gave its slot back.
pub(super) fn row(log: &EventLog, last_left: Moment, deliveries: &[Delivery]) -> Option<Shutdown> {
    let began = log.run.iter().filter_map(|entry| match entry.event {
        RunEvent::ShutdownBegan { by, root } => Some((by, root)),
        _ => None,
    });
    let roots: Vec<_> = began.collect();
    let (initiated_by, first) = *roots.first()?;
    // A root is only ever shortened (B4).
    let root = roots.iter().map(|(_, root)| *root).min_by_key(|root| root.hard_cutoff)?;
    let elapsed = last_left.since(first.initiated);
    Some(Shutdown {
        initiated_by,
        initiated_us: first.initiated.micros(),
        root_graceful_us: rules::graceful_cutoff(root).micros(),
        root_hard_us: root.hard_cutoff.micros(),
        elapsed_us: super::micros(elapsed),
        forced: log.run.iter().any(|entry| entry.event == RunEvent::Forced),
        in_flight: None,
        after_stop: None,
        first_refusal_us: None,
        last_success_us: None,
        released: deliveries.iter().filter(|it| it.admitted_us.is_none()).count() as u64,
    })
}

/// Lists where the log does not follow from `[shutdown]`.
pub(super) fn check(workload: &Workload, log: &EventLog, found: &mut Vec<String>) {
    let mut differ = |rule: &str, what: &str, worked_out: String, logged: String| {
        found.push(format!(
            "the run: {rule}: {what}: the rules say {worked_out}, the log says {logged}"
        ));
    };
    let plan = &workload.shutdown;
    for entry in &log.run {
        let RunEvent::ShutdownBegan { by, root } = entry.event else { continue };
        let graceful = rules::graceful_cutoff(root);
        if graceful != root.graceful_cutoff {
            differ(
                "B4",
                "graceful cutoff of the root",
                shown(graceful),
                shown(root.graceful_cutoff),
            );
        }
        // A bounded run has what is left of its bound.
        let hard = root.initiated + plan.deadline;
        if by != Initiator::MaxTime && hard != root.hard_cutoff {
            differ("B4", "end of the root", shown(hard), shown(root.hard_cutoff));
        }
        let scheduled = plan.at.map(|at| Moment::START + at);
        if by == Initiator::Schedule && scheduled != Some(root.initiated) {
            let scheduled = scheduled.map_or("never".into(), shown);
            differ("D1", "scheduled initiation", scheduled, shown(root.initiated));
        }
        if by == Initiator::AfterDeliveries {
            let left = left_by(log, entry.at);
            let after =
                plan.after_deliveries.map_or("never".into(), |after| format!("after {after}"));
            if plan.after_deliveries.is_none_or(|after| left < after as usize) {
                differ("D1", "initiation by deliveries", after, format!("after {left}"));
            }
        }
        if root.initiated > entry.at {
            let logged = format!("published at {}", shown(entry.at));
            differ("D1", "initiation", shown(root.initiated), logged);
        }
    }
    let began = log.run.iter().any(|it| matches!(it.event, RunEvent::ShutdownBegan { .. }));
    let load_ended = log.run.iter().find(|it| it.event == RunEvent::LoadEnded);
    if let (Some(after), Some(ended), false) = (plan.after_deliveries, load_ended, began)
        && left_by(log, ended.at) >= after as usize
    {
        differ("D1", "initiation by deliveries", format!("after {after}"), "never".into());
    }
    if let Some(closed) = closed(workload, log) {
        for (delivery, admitted) in admissions(log).filter(|(_, admitted)| *admitted > closed) {
            let what = format!("admission of delivery {delivery}");
            differ("C4", &what, format!("none after {}", shown(closed)), shown(admitted));
        }
    }
}

/// When admission was closed for good.
fn closed(workload: &Workload, log: &EventLog) -> Option<Moment> {
    let keeps = workload.shutdown.admission == AdmissionPolicy::Keep;
    let closes = |event: &RunEvent| match event {
        RunEvent::ShutdownBegan { .. } => !keeps,
        RunEvent::Forced => true,
        _ => false,
    };
    log.run.iter().find(|entry| closes(&entry.event)).map(|entry| entry.at)
}

/// How many deliveries had given their slots back by then.
fn left_by(log: &EventLog, at: Moment) -> usize {
    let has_left = |event: &Event| *event == Event::Decided(Decision::FreeSlot);
    let leaves = log
        .deliveries
        .iter()
        .filter(|log| log.entries.iter().any(|entry| entry.at <= at && has_left(&entry.event)));
    leaves.count()
}

fn admissions(log: &EventLog) -> impl Iterator<Item = (u32, Moment)> {
    log.deliveries.iter().filter_map(|log| {
        let is_admission =
            |event: &Event| matches!(event, Event::Observed(Observation::Admitted { .. }));
        let admitted = log.entries.iter().find(|entry| is_admission(&entry.event))?;
        Some((log.id.0, admitted.at))
    })
}
