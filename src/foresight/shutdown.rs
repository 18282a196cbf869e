//! What a shutdown of the run will find, and what it leaves to those at work.

use std::time::Duration;

use super::doubts::POLL_WORTH;
use super::{Finding, FindingKind, Page};
use crate::plan::Plan;
use crate::report::words::exact;
use crate::timeline::{Budget, Moment, Reason, Root, Signal, Timeline};
use crate::workload::{ShutdownMode, Workload};

/// The instants of a shutdown, counted from its beginning, for a delivery that has time enough of its
/// own (B4, W1, W2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownInstants {
    /// When whoever is still at work is signalled.
    pub signal: Duration,
    /// When what still runs is cut.
    pub window_end: Duration,
    /// `E`.
    pub end: Duration,
    /// When nothing may be left, settlements included.
    pub hard_cutoff: Duration,
}

impl ShutdownInstants {
    pub(super) fn new(workload: &Workload, plan: &Plan) -> Self {
        let start = Moment::START;
        let root = Root::new(start, workload.shutdown.deadline);
        let ample = Budget {
            total: root.hard_cutoff.since(start) * 2,
            reserve: None,
            ..plan.budget.clone()
        };
        let timeline = Timeline::new(&ample, start, None);
        let signal = match workload.shutdown.mode {
            ShutdownMode::Graceful => {
                let (reason, at) = timeline.signal_due(Some(root));
                Signal { reason, at }
            }
            ShutdownMode::Forced => Signal { reason: Reason::ForcedShutdown, at: start },
        };
        Self {
            signal: signal.at.since(start),
            window_end: timeline.window_end(signal, Some(root)).since(start),
            end: timeline.end(Some(signal), Some(root)).since(start),
            hard_cutoff: root.hard_cutoff.since(start),
        }
    }
}

/// What is likely not meant by `[shutdown]`; `run` is when the run is over without it.
pub(super) fn doubts(page: &Page<'_>, run: Option<Duration>) -> Vec<Finding> {
    let plan = &page.workload.shutdown;
    let load = &page.workload.load;
    let redeliveries = page.workload.settlement.as_ref().map_or(0, |policy| policy.redeliveries);
    let deliveries = u64::from(load.deliveries) * (1 + u64::from(redeliveries));
    let mut findings = Vec::new();
    let mut never = |key: &str, what: String, why: String, mend: &str| {
        findings.push(page.of_key(FindingKind::NeverShutDown, key, [what, why, mend.into()]));
    };
    if let (Some(at), Some(run)) = (plan.at, run)
        && run <= at
    {
        never(
            "shutdown.at",
            format!("the shutdown is to begin at {}", exact(at)),
            format!("the run is over by {}, so it never begins", exact(run)),
            "begin it earlier, or make the load longer",
        );
    }
    if let Some(after) = plan.after_deliveries
        && u64::from(after) > deliveries
    {
        never(
            "shutdown.after_deliveries",
            format!("the shutdown is to begin after {after} deliveries"),
            format!("there are {deliveries} at most, so it never begins"),
            "use fewer, or more deliveries",
        );
    }
    let instants = page.shutdown;
    let window = instants.window_end - instants.signal;
    let is_written = page.workload.lines.contains_key("shutdown.deadline");
    if is_written && window < POLL_WORTH {
        let words = [
            format!("a shutdown leaves a window of {}", exact(window)),
            String::from("hardly anything can return after it has seen the signal"),
            String::from("use a longer shutdown.deadline"),
        ];
        findings.push(page.of_key(FindingKind::NoWindow, "shutdown.deadline", words));
    }
    findings
}
