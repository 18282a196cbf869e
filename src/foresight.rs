//! What a workload's plan tells before anything is run.
//!
//! [`foresee`] answers three questions: at which instants of a delivery what is decided, what cannot
//! be proven to end in time by construction, and what in the file is likely not meant. It promises
//! to say only what follows from the file: a finding is true of every run, or of every run in which
//! work takes as long as the file lets it. What a machine adds, and who stops the run, it cannot know,
//! so that silence is no promise that everything will be proven.
//!
//! Does not share code with the engine beyond [`Timeline`], whose instants are those of the run.

mod doubts;
mod gaps;
mod reach;
mod shutdown;
mod wanted;

use std::time::Duration;

use serde::Serialize;

use self::reach::Reaches;
pub use self::shutdown::ShutdownInstants;
use crate::event::StepId;
use crate::obligation::Obligation;
use crate::plan::Plan;
use crate::report::words::exact;
use crate::timeline::{Moment, Signal, Timeline};
use crate::workload::{ExpectGap, Pace, Pool, Spread, Step, Work, Workload};

/// The longest share of the cleanup that disposal keeps (K2).
const DISPOSAL_SHARE: Duration = Duration::from_millis(250);

/// All that is known of a workload before it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foresight {
    /// When what is decided.
    pub instants: Instants,
    /// What a shutdown leaves, by whomever it is begun.
    pub shutdown: ShutdownInstants,
    /// What cannot be proven to end in time, in the order of the file.
    pub unprovable: Vec<Finding>,
    /// What is likely not meant, in the order of the file.
    pub warnings: Vec<Finding>,
}

/// The instants of a delivery that reaches its own timeout, counted from its admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instants {
    /// `P`, which is when the signal comes.
    pub normal_cutoff: Duration,
    /// When the cooperative window ends and the pipeline is cut.
    pub window_end: Duration,
    /// `E`, which is `H` after the delivery's own timeout.
    pub end: Duration,
    /// When the callbacks must be over, if cleanup begins at the window's end (K2).
    pub chain_end: Duration,
    /// How many termination callbacks there are.
    pub callbacks: u32,
    /// What each of them has, if all are due and each takes all of it.
    pub share: Duration,
    /// When the settlement expires at the latest; `None` when nothing is settled.
    pub settled: Option<Duration>,
    /// How long late receipts are looked for after the last of these.
    pub observe: Duration,
    /// When the whole run is over at the latest, counted from its start, if nobody stops it; `None` when
    /// only the draws know how many messages arrive, and when.
    pub run: Option<Duration>,
}

impl Instants {
    fn new(workload: &Workload, plan: &Plan) -> Self {
        let timeline = Timeline::new(&plan.budget, Moment::START, None);
        let (reason, at) = timeline.signal_due(None);
        let signal = Signal { reason, at };
        let [window_end, end] =
            [timeline.window_end(signal, None), timeline.end(Some(signal), None)]
                .map(|moment| moment.since(timeline.admitted));
        let chain_end = end - ((end - window_end) / 4).min(DISPOSAL_SHARE);
        let callbacks = plan.middleware.iter().filter(|one| one.terminate.is_some()).count() as u32;
        let settled = plan.settlement.map(|policy| end.saturating_add(policy.timeout));
        Self {
            normal_cutoff: at.since(timeline.admitted),
            window_end,
            end,
            chain_end,
            callbacks,
            share: (chain_end - window_end) / callbacks.max(1),
            settled,
            observe: plan.observe,
            run: longest_run(workload, plan, end, settled),
        }
    }

    /// How long the cooperative window is.
    pub fn window(&self) -> Duration {
        self.window_end - self.normal_cutoff
    }

    /// What disposal has, after callbacks that took all they could.
    pub fn disposal(&self) -> Duration {
        match self.callbacks {
            0 => self.end - self.window_end,
            _ => self.end - self.chain_end,
        }
    }
}

/// Deliveries take turns on the slots; each holds its own until it is settled, or is given up (X7).
fn longest_run(
    workload: &Workload,
    plan: &Plan,
    end: Duration,
    settled: Option<Duration>,
) -> Option<Duration> {
    let last_arrival = match &workload.load.pace {
        None => Duration::ZERO,
        Some(Pace { spread: Spread::Even, rate, .. }) => {
            let gaps = f64::from(workload.load.deliveries - 1);
            Duration::from_nanos((gaps * rate.gap_nanos()) as u64)
        }
        Some(Pace { spread: Spread::Poisson, .. }) => return None,
    };
    let attempts = 1 + plan.settlement.map_or(0, |policy| policy.redeliveries);
    let turns = u64::from(workload.load.deliveries.div_ceil(workload.load.concurrency))
        * u64::from(attempts);
    let last_due = settled.unwrap_or(end);
    let held = last_due.max(end.saturating_add(plan.observe));
    let earlier_turns =
        Moment::START + held.saturating_mul(u32::try_from(turns - 1).unwrap_or(u32::MAX));
    Some((earlier_turns + last_arrival + last_due + plan.observe).since(Moment::START))
}

/// One thing that the plan tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which.
    pub kind: FindingKind,
    /// The step by name, or the key.
    pub about: String,
    /// The line it stands on; `None` when no line says it.
    pub line: Option<u32>,
    /// What was found, in one sentence.
    pub what: String,
    /// What follows from that.
    pub why: String,
    /// What would be right.
    pub mend: String,
    /// Whether `[expect]` says so too.
    pub expected: bool,
}

/// What can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// One poll of it can last past `E`.
    CannotBeCut,
    /// Its thread can outlast `E`.
    ThreadOutlasts,
    /// Its task can outlast `E`.
    TaskOutlasts,
    /// Its destructor can run past `E`.
    DestructorOutlasts,
    /// Its destructor can panic, after which no release is evident.
    DestructorPanics,
    /// The disposer can take longer than disposal has.
    DisposerOutlasts,
    /// The broker's word cannot come in time.
    NotConfirmed,

    /// The cooperative window is nothing, or less than a poll's worth.
    NoWindow,
    /// Every delivery that runs the step is interrupted.
    AlwaysInterrupted,
    /// Nothing can come to the step.
    NeverStarts,
    /// The timeout never fires.
    TimeoutNeverFires,
    /// The poll budget is never exhausted.
    PollBudgetNeverUsed,
    /// What it does on seeing the signal takes longer than the window.
    WindDownTooLong,
    /// It can look at the signal for the first time when the window is over.
    LooksTooRarely,
    /// A callback can take longer than its share.
    CallbackOverShare,
    /// No step of the handler can fail the delivery.
    AllOptional,
    /// A share or weight of 0.
    NeverDrawn,
    /// A key that changes nothing where it stands.
    NoEffect,
    /// More slots than deliveries.
    IdleSlots,
    /// A shutdown that comes when the run is over.
    NeverShutDown,
    /// More blocking work at once than threads for it.
    TooFewThreads,
    /// An expectation that no run can meet.
    NeverHolds,
    /// An expectation about a code that no step gives.
    UnknownCode,
    /// A gap that can be foreseen and that no expectation covers.
    Uncovered,
}

/// What the plan of a workload tells.
pub fn foresee(workload: &Workload, plan: &Plan) -> Foresight {
    let instants = Instants::new(workload, plan);
    let shutdown = ShutdownInstants::new(workload, plan);
    let page = Page {
        workload,
        instants: &instants,
        shutdown,
        reaches: Reaches::new(workload, &instants),
        threads: doubts::most_threads(workload),
    };
    let mut unprovable = gaps::find(&page);
    let mut warnings = doubts::find(&page);
    warnings.extend(shutdown::doubts(&page, instants.run));
    warnings.extend(wanted::find(&page, &unprovable));
    let in_file = |finding: &Finding| finding.line.unwrap_or(0);
    unprovable.sort_by_key(in_file);
    warnings.sort_by_key(in_file);
    Foresight { instants, shutdown, unprovable, warnings }
}

/// What every part of the search reads.
struct Page<'a> {
    workload: &'a Workload,
    instants: &'a Instants,
    shutdown: ShutdownInstants,
    reaches: Reaches<'a>,
    /// How many threads of the shared pool are wanted at once, at most.
    threads: u64,
}

impl Page<'_> {
    fn ids(&self) -> impl Iterator<Item = StepId> {
        (0..self.workload.steps.len() as u32).map(StepId)
    }

    /// Whether it is blocking work that can have to wait for a thread.
    fn may_queue(&self, step: &Step) -> bool {
        matches!(step.work, Work::Blocking { pool: Pool::Shared, .. })
            && self.threads > self.workload.runtime.blocking_threads as u64
    }

    fn of_step(&self, kind: FindingKind, id: StepId, words: [String; 3]) -> Finding {
        let step = self.workload.step(id);
        let [what, why, mend] = words;
        let line = Some(step.line).filter(|line| *line > 0);
        Finding { kind, about: step.name.clone(), line, what, why, mend, expected: false }
    }

    fn of_key(&self, kind: FindingKind, key: &str, words: [String; 3]) -> Finding {
        let [what, why, mend] = words;
        let line = self.workload.lines.get(key).copied().filter(|line| *line > 0);
        Finding { kind, about: key.to_owned(), line, what, why, mend, expected: false }
    }

    /// Whether `[expect]` covers a gap of that kind which names that step.
    fn expects_gap(&self, step: Option<StepId>, kind: Obligation) -> bool {
        let Some(expect) = &self.workload.expect else { return false };
        let step = step.map(|id| self.workload.step(id).name.as_str());
        let matches = |gap: &ExpectGap| {
            gap.step.as_deref().is_none_or(|name| step == Some(name))
                && gap.kind.is_none_or(|wanted| wanted == kind)
                && gap.count != Some(0)
        };
        self.expects_row(&["late", "unproven", "proven"]) || expect.gaps.iter().any(matches)
    }

    fn expects_row(&self, names: &[&str]) -> bool {
        let rows = self.workload.expect.iter().flat_map(|expect| &expect.rows);
        rows.into_iter().any(|row| names.contains(&row.what.as_str()))
    }
}

/// A bound in words: `takes 1s`, `can take up to 1s`, `can take any time`.
fn takes(extent: reach::Extent) -> String {
    match (extent.least, extent.most) {
        (least, most) if least == most => format!("takes {}", exact(most)),
        (_, Duration::MAX) => String::from("can take any time"),
        (_, most) => format!("can take up to {}", exact(most)),
    }
}
