//! The one value that is shown and stored (SPEC section 9).
//!
//! Built once from the audit's verdicts; every renderer reads it and computes nothing that another
//! one would need. Its serialised form *is* the JSON report, `deadline-run.report/1`: integers are
//! microseconds since the run began where the name ends in `_us`, and what is unknown is `null`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{Closer, Effect, Initiator, Settlement};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::timeline::Reason;

mod assemble;
mod cut_short;
pub mod read;
mod records;
#[cfg(test)]
pub(crate) mod sample;
pub mod tracks;
mod verdict;
pub mod words;

pub use assemble::RunFacts;
pub use records::{Record, RecordWord};
pub use verdict::{Verdict, VerdictWord};
pub(crate) use verdict::{complaint, ranked, subject};

/// The name of the stored form.
pub const FORMAT: &str = "deadline-run.report/1";

/// The whole report of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub format: String,
    pub program: Program,
    pub workload: WorkloadName,
    pub clock: Clock,
    /// The wall clock's word for the run's start, RFC 3339 in UTC.
    pub started: String,
    pub engine: Engine,
    pub ending: Ending,
    pub exit_status: u8,
    /// What the last line of the text report says.
    pub verdict: Verdict,
    pub elapsed_us: u64,
    /// Where the record ends of a run that did not end by itself; only such a report has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short_us: Option<u64>,
    pub totals: Totals,
    pub delivery_time_us: Percentiles,
    /// How deliveries came and what they waited.
    #[serde(default)]
    pub load: LoadShown,
    /// Failure codes of results, with their counts.
    pub codes: BTreeMap<String, u64>,
    /// Which deliveries are listed.
    pub deliveries_listed: Listed,
    pub deliveries: Vec<Delivery>,
    /// What became of each step over all deliveries, listed or not, in the order of the file.
    pub steps: Vec<StepTotals>,
    /// What failed in deliveries with `cleanup = "failed"`.
    pub cleanup_failures: Vec<CleanupFailure>,
    /// What the peers of the file saw, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerRow>,
    pub services: Vec<serde_json::Value>,
    pub shutdown: Option<Shutdown>,
    /// Every late or unproven obligation once more, flat.
    pub gaps: Vec<Gap>,
    pub checks: Vec<serde_json::Value>,
    pub expectations: Vec<Expectation>,
}

/// Who made the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub name: String,
    pub version: String,
}

impl Program {
    /// The program that this is.
    pub fn this() -> Self {
        Self { name: env!("CARGO_PKG_NAME").into(), version: env!("CARGO_PKG_VERSION").into() }
    }
}

/// What was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadName {
    pub name: String,
    pub file: String,
    pub sha256: String,
}

/// Which clock the run lived on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    Real,
    Simulated,
}

/// How well the engine kept its own time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// The scheduling class of the control thread.
    pub control: Control,
    /// The niceness of the workload's threads: below 0 where the system let them go before others.
    #[serde(default)]
    pub workload_nice: i32,
    /// The decisions at signals and window ends against their due instants.
    pub cutoff_lateness_us: Lateness,
}

/// The scheduling class of the control thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// Real-time, first in first out.
    Fifo,
    /// The ordinary class, with a short slice.
    Slice,
    /// The ordinary class as it is.
    Ordinary,
    /// No thread: simulated time.
    Simulated,
}

/// Percentiles of how late cutoffs were decided; `None` when there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

/// Nearest-rank percentiles over admitted deliveries; `None` when nothing was admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Percentiles {
    pub p50: Option<u64>,
    pub p95: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

/// How deliveries came, and how long they waited for their slots (SPEC section 3: not charged).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadShown {
    /// How many messages a second the workload asked for; `None` when all came at once.
    pub rate_per_s: Option<f64>,
    /// How many a second were admitted, from the start to one gap after the last of them; `None`
    /// without a rate, or when none was admitted.
    pub reached_per_s: Option<f64>,
    /// From arrival to admission, over all that were admitted.
    pub waited_us: Percentiles,
}

impl LoadShown {
    /// A rate is short when less than so much of it was reached.
    const ENOUGH: f64 = 0.95;

    /// Whether messages were admitted clearly more slowly than they were to come.
    pub fn is_short(&self) -> bool {
        let pair = self.rate_per_s.zip(self.reached_per_s);
        pair.is_some_and(|(asked, reached)| reached < asked * Self::ENOUGH)
    }
}

/// How a run ended (D3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// At least one gap or late receipt.
    Incomplete,
    /// All ended with evidence, but a callback, disposal or settlement failed.
    Failed,
    /// A delivery was signalled by the root graceful cutoff or by force.
    Forced,
    Graceful,
}

/// Counts over all deliveries, listed or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub deliveries: u64,
    pub success: u64,
    /// Those of them that only came inside the cooperative window.
    #[serde(default)]
    pub success_after_signal: u64,
    pub failure: u64,
    pub panic: u64,
    pub interrupted: u64,
    pub not_started: u64,
    pub proven: u64,
    pub late: u64,
    pub unproven: u64,
    pub nothing_started: u64,
    pub degraded: u64,
    /// Deliveries with `cleanup = "failed"`.
    pub cleanup_failed: u64,
    /// Deliveries with a step that sent or wrote a part and no more.
    #[serde(default)]
    pub partial_effects: u64,
    /// Deliveries with a step of which nobody said what came of what it sent or wrote.
    #[serde(default)]
    pub unknown_effects: u64,
}

/// One way in which cleanup failed, and in how many deliveries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CleanupFailure {
    /// Whose termination callback; `None` is the disposal of the scope.
    pub middleware: Option<String>,
    /// The word for its state, as in `callbacks[].terminate` or `scope.state`.
    pub state: String,
    pub deliveries: u64,
}

/// What became of the executions of one step.
///
/// Of detached steps this is the only place that tells of failures: they are never a result (P10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTotals {
    pub name: String,
    pub line: u32,
    pub stage: String,
    pub kind: String,
    /// Started and not awaited, itself or something that it is inside of.
    pub detached: bool,
    /// The step that it is written inside of.
    #[serde(default)]
    pub inside: Option<String>,
    pub success: u64,
    pub failure: u64,
    pub panic: u64,
    pub dropped: u64,
    pub skipped: u64,
    pub running: u64,
    /// How many executions needed what in order to get on.
    pub progress: BTreeMap<Progress, u64>,
    /// Codes of its failures and drops, with their counts.
    pub codes: BTreeMap<String, u64>,
    /// How far its executions had come that change something outside, with their counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<Effect, u64>,
}

/// Which deliveries the report lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Listed {
    All,
    /// Only those that did not simply succeed with evidence.
    Problems,
    None,
}

/// Did it complete?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryResult {
    Success,
    Failure,
    Panic,
    Interrupted,
    NotStarted,
}

/// Has it ended? The worst of the delivery's obligations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Termination {
    Proven,
    Late,
    Unproven,
    NothingStarted,
}

/// How the callbacks and the disposal went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    NoneDue,
    Complete,
    Failed,
}

/// One delivery.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    pub id: u32,
    pub message: u32,
    pub attempt: u32,
    pub arrived_us: u64,
    pub admitted_us: Option<u64>,
    pub normal_cutoff_us: Option<u64>,
    pub hard_cutoff_us: Option<u64>,
    /// The pipeline returned, or its drop finished, or `E` when unreleased.
    pub ended_us: Option<u64>,
    pub result: DeliveryResult,
    pub code: Option<String>,
    pub termination: Termination,
    pub returned_in: Option<ReturnedIn>,
    pub signal: Option<SignalSeen>,
    pub window_end_us: Option<u64>,
    /// The last stage of the forward course that began; `None` when none did.
    pub reached: Option<String>,
    pub degraded: bool,
    pub cleanup: Cleanup,
    pub execution: Execution,
    pub callbacks: Vec<Callback>,
    pub scope: Scope,
    pub settlement: Settled,
    pub steps: Vec<Step>,
    pub obligations: Vec<ObligationRow>,
    /// Earlier attempts of the same message that still had open obligations at admission (P17).
    pub overlaps: Vec<u32>,
}

/// In which part of its time a pipeline returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReturnedIn {
    Normal,
    Cooperative,
}

/// The signal of one delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalSeen {
    pub reason: Reason,
    pub at_us: u64,
    /// When a step first looked and saw it.
    pub observed_us: Option<u64>,
}

/// The pipeline's frame, as frozen at `E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execution {
    pub state: ExecutionState,
    pub at_us: Option<u64>,
    /// What a pipeline that was written off came back with all the same (X5).
    pub late_return: Option<LateReturn>,
}

/// What became of the pipeline's frame by `E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    Returned,
    Dropped,
    NotStarted,
    Unreleased,
}

/// The result of a pipeline that returned after it was written off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateReturn {
    Success,
    Failure,
    Panic,
}

/// One middleware's three parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    pub middleware: String,
    pub before: CourseState,
    pub after: CourseState,
    pub terminate: TerminateState,
    /// Of `terminate` when it was due, else of `after`.
    pub started_us: Option<u64>,
    pub ended_us: Option<u64>,
    #[serde(default)]
    pub before_started_us: Option<u64>,
    #[serde(default)]
    pub before_ended_us: Option<u64>,
    #[serde(default)]
    pub after_started_us: Option<u64>,
    #[serde(default)]
    pub after_ended_us: Option<u64>,
}

/// The state of a `before` or an `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CourseState {
    NotStarted,
    Completed,
    Failed,
    Panicked,
    Interrupted,
}

/// The state of a termination callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TerminateState {
    NotDue,
    Completed,
    Failed,
    Panicked,
    TimedOut,
    Interrupted,
    BudgetExhausted,
    NotRun,
}

/// The disposal of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub state: ScopeState,
    #[serde(default)]
    pub started_us: Option<u64>,
    pub at_us: Option<u64>,
}

/// What became of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeState {
    /// There is no `[scope]`.
    None,
    Disposed,
    Failed,
    TimedOut,
    NotRun,
}

/// The settlement of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    pub decision: Option<Settlement>,
    pub state: SettledState,
    pub at_us: Option<u64>,
}

/// What is known of the settlement (M3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledState {
    /// There is no broker.
    None,
    Confirmed,
    Unresolved,
    Unconfirmed,
    Released,
    Revoked,
}

/// One step of one delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    pub stage: String,
    pub kind: String,
    pub progress: Progress,
    pub started_us: Option<u64>,
    /// The place of its start among the delivery's step records: moments tie, places do not.
    #[serde(default)]
    pub started_order: Option<u32>,
    pub ended_us: Option<u64>,
    /// The place of its end. A step that its timeout or poll budget ended has the next place too: it
    /// was dropped, and then its failure was recorded.
    #[serde(default)]
    pub ended_order: Option<u32>,
    pub outcome: Outcome,
    pub code: Option<String>,
    pub polls: u64,
    pub attempts: u32,
    /// What a dropped `polls` step still had to pause for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<u64>,
    /// How far it overran its own timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_us: Option<u64>,
    /// How far it had come that changes something outside; of `io` steps that send or write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Who closed its connection first; of `io` steps that were connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<Closer>,
}

/// What a step needed in order to get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Nothing: a thread does it, and goes on when the step is dropped.
    ByItself,
    /// A poll: it is a future, and stands still while nobody polls it.
    WhenPolled,
    /// The end of another: it is made of steps, and has no work of its own.
    WhenAnotherEnds,
    /// Nothing would help: it was dropped before its end, or never begun, and is not touched again.
    Never,
}

/// How a step ended, or that it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Success,
    Failure,
    Panic,
    Dropped,
    Skipped,
    Running,
}

/// One obligation of one delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObligationRow {
    pub kind: Obligation,
    pub step: Option<String>,
    pub opened_us: u64,
    pub due_us: u64,
    pub state: ObligationState,
    pub evidence: Option<Evidence>,
    pub closed_us: Option<u64>,
    pub late_by_us: Option<u64>,
    /// Who held it; only for a gap, and only what could be read.
    pub who: Option<Who>,
    /// What would help; only for a gap.
    pub advice: Option<String>,
}

/// Who held an overdue obligation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    pub tid: Option<u32>,
    /// When the kernel started that thread, in clock ticks since boot: thread ids are reused.
    pub start_ticks: Option<u64>,
    /// The kernel's word for its state when it was overdue.
    pub state: Option<String>,
    /// The CPU time it used since the due instant.
    pub cpu_us: Option<u64>,
    /// The kernel function or system call it waited in.
    pub waiting_in: Option<String>,
    /// The delivery whose step held it, when that is another one.
    pub delivery: Option<u32>,
    /// `poll`, `destructor` or `closure`.
    pub inside: Option<String>,
    /// Since when it was inside.
    pub since_us: Option<u64>,
}

/// A late or unproven obligation, with its place in the workload file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub run: u32,
    pub delivery: Option<u32>,
    pub service: Option<String>,
    pub step: Option<String>,
    pub line: Option<u32>,
    pub kind: Obligation,
    pub state: ObligationState,
    pub late_by_us: Option<u64>,
    pub who: Option<Who>,
    pub advice: Option<String>,
    /// Whether an expectation that holds allows it.
    pub expected: bool,
}

/// The shutdown of the whole run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shutdown {
    pub initiated_by: Initiator,
    pub initiated_us: u64,
    pub root_graceful_us: u64,
    pub root_hard_us: u64,
    /// From the initiation until the last started delivery left.
    pub elapsed_us: u64,
    pub forced: bool,
    pub in_flight: Option<serde_json::Value>,
    pub after_stop: Option<serde_json::Value>,
    pub first_refusal_us: Option<u64>,
    pub last_success_us: Option<u64>,
    /// Deliveries that were released unstarted.
    pub released: u64,
}

/// What one peer of `[peers]` did and saw, until the run was over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRow {
    pub name: String,
    /// Connections that it accepted; one that refuses sees none.
    pub connections: u64,
    /// Requests that came whole.
    pub requests: u64,
    /// Answers that it sent whole.
    pub answered: u64,
    /// Connections that it reset, as told.
    pub reset: u64,
    /// Connections that it closed before its answer was whole, as told.
    pub closed: u64,
    /// Connections that the other side left before the answer was whole.
    pub abandoned: u64,
    /// Bytes of body that it sent.
    pub body_bytes: u64,
    /// Connections that were still open when the run was over.
    pub open: u64,
}

/// One row of `[expect]`, judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    pub what: String,
    pub expected: String,
    pub found: String,
    pub holds: bool,
}
