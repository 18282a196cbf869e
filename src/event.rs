//! What was observed and what was decided: the run's only record.
//!
//! Every delivery has one order. An [`Entry`]'s place in its [`DeliveryLog`] is its sequence
//! number: moments tie, order does not. Observations come from drivers, decisions from the engine;
//! feeding the observations of a log to a fresh engine gives the same decisions again.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::obligation::{Evidence, Obligation};
use crate::timeline::{Moment, Reason, Root};

/// Numbers the deliveries of a run, from 1, in the order of their arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub u32);

/// Numbers the steps of a workload, from 0, in the order of the file, nested ones included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepId(pub u32);

/// Numbers what a delivery has opened beside its own frames (tasks, threads, connections), from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Opening(pub u32);

/// A step's own failure code: whatever it says, it is the step's word and never the engine's (W5).
///
/// One word wide, so that an entry of the log stays small.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Code(Arc<Box<str>>);

impl From<&str> for Code {
    fn from(word: &str) -> Self {
        Self(Arc::new(word.into()))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self)
    }
}

impl Deref for Code {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// What a piece of work says of itself to whoever called it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did what it was for.
    Success,
    /// It failed, with a code, and may or may not work when tried again.
    Failure {
        /// The step's word for it.
        code: Code,
        /// Whether another attempt could succeed.
        retryable: bool,
    },
    /// It panicked; the panic was contained at its step.
    Panic,
}

/// How one execution of a step ended, as `steps[].outcome` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// Returned with success.
    Success,
    /// Returned with a failure.
    Failure,
    /// Panicked, or its destructor did when the step alone was dropped (P8).
    Panic,
    /// Dropped before it returned: with the pipeline, by its timeout or poll budget, or as the loser of a race.
    Dropped,
    /// Never began: not drawn by its share or choice, or still waiting for a thread when dropped (P9).
    Skipped,
}

/// How far work had come that changes something outside of this process. Never says that anything
/// was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing was sent or written.
    None,
    /// A part was sent or written.
    Partial,
    /// All was sent or written, and the work itself found nothing wanting.
    Complete,
    /// All may have been sent or written; what came of it nobody said.
    Unknown,
}

/// Who closed a connection first, as far as its step saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closer {
    /// The other side: its end of the stream, or a reset.
    Peer,
    /// The step.
    Us,
}

/// What one execution of a step left outside of its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Traces {
    /// `None`: it changes nothing outside.
    pub effect: Option<Effect>,
    /// `None`: there was no connection.
    pub closed_by: Option<Closer>,
}

/// The end of one execution of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// Which step.
    pub step: StepId,
    /// How it ended.
    pub outcome: StepOutcome,
    /// Its failure code, or why it was dropped alone.
    pub code: Option<Code>,
    /// How often its future was polled.
    pub polls: u64,
    /// What a dropped `polls` step still had to pause for.
    pub left: Option<u64>,
    /// How far it ran past its own timeout before that was noticed (P2).
    pub over: Option<Duration>,
    /// What it left outside of its frame: of steps of kind `io` that reach further than a timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
}

/// A thread of this process. Ids are reused, so the kernel's start time belongs to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThreadName {
    /// The kernel's thread id.
    pub tid: u32,
    /// When the kernel started it, in clock ticks since boot.
    pub start_ticks: u64,
}

/// Which obligation of a delivery something is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// The pipeline's frame.
    Execution,
    /// A task or thread.
    Opened(Opening),
    /// The termination callback that is this step.
    Callback(StepId),
    /// The disposal.
    Scope,
}

/// What a worker was inside of when it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inside {
    /// A poll of the step's future.
    Poll,
    /// The destructor of the step's frame.
    Destructor,
    /// The closure of blocking work.
    Closure,
}

/// The state of a thread as the kernel shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadState {
    /// On a processor or waiting for one.
    Running,
    /// Waiting for something, and can be woken by a signal.
    Sleeping,
    /// Waiting uninterruptibly.
    DiskSleep,
    /// Stopped by a signal or a debugger.
    Stopped,
    /// Gone, or going.
    Dead,
    /// A state that we have no word for.
    Other,
}

/// Who was seen to hold an overdue obligation, and what that thread was doing.
///
/// Every `None` is something that could not be read or does not apply; it never means zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The overdue obligation.
    pub target: Target,
    /// The delivery whose step held it: not always the one that the obligation belongs to.
    pub holder: Option<DeliveryId>,
    /// The step that held it.
    pub step: Option<StepId>,
    /// What the thread was inside of.
    pub inside: Option<Inside>,
    /// Since when it was inside.
    pub since: Option<Moment>,
    /// The thread.
    pub thread: Option<ThreadName>,
    /// The state of the thread.
    pub state: Option<ThreadState>,
    /// The CPU time that the thread had used by then.
    pub cpu: Option<Duration>,
    /// The kernel function or system call that it waits in.
    pub waiting_in: Option<Arc<str>>,
}

/// Something that happened, as a driver saw it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observation {
    /// The delivery took its slot, under `root` if one was in force. Opens `execution`, and `scope` if there is one.
    Admitted {
        /// The shutdown deadline in force at that instant.
        root: Option<Box<Root>>,
    },
    /// Admission closed while the delivery was still waiting; it never started (C4).
    Released,
    /// A step began: its frame was polled for the first time. A top-level one was started before that,
    /// by [`Decision::Start`].
    StepStarted {
        /// Which step.
        step: StepId,
    },
    /// One execution of a step is over. Shared: most ends of a step are alike.
    StepEnded(Arc<StepEnd>),
    /// The top-level element that the engine started has come back with its verdict. For a
    /// termination callback or disposer it also says that its frame is gone.
    ElementReturned {
        /// Which element of the course, callback or disposer.
        step: StepId,
        /// What it says of itself, after its policies.
        verdict: Verdict,
    },
    /// A failure was turned into success by `optional` (P4).
    Degraded {
        /// Which step.
        step: StepId,
    },
    /// A step looked and saw the signal.
    SignalSeen {
        /// Which step.
        step: StepId,
    },
    /// User code in a destructor of the execution panicked: its release is not evident any more (X1, P8).
    DestructorPanicked {
        /// Whose destructor.
        step: StepId,
    },
    /// The pipeline returned by itself, and its frame is gone.
    PipelineReturned,
    /// The pipeline's frame was dropped, and that drop finished.
    PipelineDropped,
    /// The frame of a callback or disposer was dropped, and that drop finished.
    ElementDropped {
        /// Which callback or disposer.
        step: StepId,
    },
    /// A task or thread began, or was handed over with nobody to await it, or a connection is about
    /// to be made; written before anything that it does.
    Opened {
        /// Its number.
        opening: Opening,
        /// [`Obligation::Task`], [`Obligation::Thread`] or [`Obligation::Connection`].
        kind: Obligation,
        /// The step whose work it is.
        step: StepId,
        /// The thread, if it is one and has begun.
        thread: Option<Box<ThreadName>>,
    },
    /// What was handed over has begun, on this thread.
    Named {
        /// Its number.
        opening: Opening,
        /// The thread.
        thread: Box<ThreadName>,
    },
    /// A task, thread or connection ended.
    Closed {
        /// Its number.
        opening: Opening,
        /// What was seen of its end.
        evidence: Evidence,
        /// The CPU time that its thread had used by then.
        cpu: Option<Duration>,
    },
    /// The broker confirmed the settlement.
    Confirmed,
    /// A root deadline was published or shortened (B4).
    RootPublished {
        /// The new root.
        root: Box<Root>,
    },
    /// The delivery is told to stop now, for a reason that is not its deadline.
    Stopped {
        /// Forced shutdown, or a failure of the run.
        reason: Reason,
    },
    /// Something overdue was looked at.
    Sighted(Box<Sighting>),
    /// Time passed; whatever was due has been decided. Written only before decisions that time alone brought.
    Tick,
}

/// What the settlement tells the broker (M1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// Processed.
    Ack,
    /// Deliver it again.
    Retry,
    /// Give it up.
    DeadLetter,
    /// Nothing is sent; the message goes back by itself.
    Released,
}

/// What the engine decided. A decision is never evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Start this element of the forward course or of the normal unwind (`after`).
    Start {
        /// Which element.
        step: StepId,
    },
    /// The pipeline's course is over; it may return with this result.
    Return {
        /// Its result.
        verdict: Verdict,
    },
    /// The signal fires, as of `due`.
    Signal {
        /// Why.
        reason: Reason,
        /// The cutoff itself; the entry's own moment says when it was decided.
        due: Moment,
    },
    /// `P` has come after the pipeline returned: what is detached may see the signal (P10).
    SignalDetached {
        /// The cutoff itself.
        due: Moment,
    },
    /// The window is over: the pipeline's frame is to be dropped.
    Cut {
        /// The window's end.
        due: Moment,
    },
    /// Start this termination callback; it has until then.
    Call {
        /// Its `terminate` step.
        step: StepId,
        /// The end of its share.
        until: Moment,
    },
    /// The callback's time is over: its frame is to be dropped.
    CutCallback {
        /// Its `terminate` step.
        step: StepId,
        /// The end of its time.
        due: Moment,
    },
    /// Dispose of the scope; it has until then.
    Dispose {
        /// The `dispose` step.
        step: StepId,
        /// The end of its time.
        until: Moment,
    },
    /// The disposer's time is over: its frame is to be dropped.
    CutDisposal {
        /// The `dispose` step.
        step: StepId,
        /// The end of its time.
        due: Moment,
    },
    /// Tell the broker; it has until then to confirm.
    Settle {
        /// What to tell it.
        settlement: Settlement,
        /// When the confirmation is due; for `released` the moment itself.
        until: Moment,
    },
    /// The right to settle is lost: the execution is not released by `E` (M4).
    Revoke,
    /// The broker did not confirm in time (M3).
    Expire {
        /// When the confirmation was due.
        due: Moment,
    },
    /// `E` has come: the outcome is frozen as it stands, and what is open is overdue.
    Freeze {
        /// `E`.
        due: Moment,
    },
    /// The slot is free for another delivery (X7).
    FreeSlot,
    /// The message is to be delivered again.
    Redeliver,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When it was observed or decided; never before the entry ahead of it.
    pub at: Moment,
    /// What.
    pub event: Event,
}

/// An observation or a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Seen by a driver.
    Observed(Observation),
    /// Decided by the engine, on account of the observation before it.
    Decided(Decision),
}

/// All that is known of one delivery, in its one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryLog {
    /// Its number.
    pub id: DeliveryId,
    /// Which message it carries, from 1.
    pub message: u32,
    /// How often this message has been delivered, this time included.
    pub attempt: u32,
    /// When it entered the buffer.
    pub arrived: Moment,
    /// What happened, in order.
    pub entries: Vec<Entry>,
}

/// How a shutdown of the whole run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Initiator {
    /// The operator pressed Ctrl-C.
    #[serde(rename = "SIGINT")]
    Interrupt,
    /// The operator, or a supervisor, asked it to end.
    #[serde(rename = "SIGTERM")]
    Terminate,
    /// The run was bounded and the bound came near.
    #[serde(rename = "max_time")]
    MaxTime,
    /// The workload said when.
    #[serde(rename = "schedule")]
    Schedule,
    /// So many deliveries as the workload said had left.
    #[serde(rename = "after_deliveries")]
    AfterDeliveries,
}

/// What happened to the run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEvent {
    /// A shutdown began, and published its root.
    ShutdownBegan {
        /// Who asked for it.
        by: Initiator,
        /// Its deadline.
        root: Root,
    },
    /// Everything was told to stop at once.
    Forced,
    /// The last delivery left; what is overdue is observed from here on.
    LoadEnded,
    /// Observation ended; what is open now stays unproven.
    ObservationEnded,
    /// The record ends here and the run did not: whatever came later is not known. Put there by
    /// whoever reads such a record, never by a run.
    CutShort,
}

/// One line of the run's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    /// When.
    pub at: Moment,
    /// What.
    pub event: RunEvent,
}

/// The record of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLog {
    /// The run's own entries, in order.
    pub run: Vec<RunEntry>,
    /// One log for each delivery, by id.
    pub deliveries: Vec<DeliveryLog>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_small() {
        // Every delivery has some eight of them, and a run keeps them all.
        assert_eq!(size_of::<Entry>(), 40);
    }
}
