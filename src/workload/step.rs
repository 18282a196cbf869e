//! One step: its work, and the policies around it.

use std::path::PathBuf;
use std::time::Duration;

use crate::event::{Code, StepId};
use crate::workload::{Connection, Http, Tcp, Write};

/// Where a step belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// A middleware's way in.
    Before,
    /// `[[guard]]`.
    Guard,
    /// `[[resolve]]`.
    Resolve,
    /// `[[extract]]`.
    Extract,
    /// `[[handler]]`.
    Handler,
    /// A middleware's way out.
    After,
    /// A middleware's termination callback.
    Terminate,
    /// The disposal of the scope.
    Dispose,
}

impl Stage {
    /// Its word in files and reports.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Guard => "guard",
            Self::Resolve => "resolve",
            Self::Extract => "extract",
            Self::Handler => "handler",
            Self::After => "after",
            Self::Terminate => "terminate",
            Self::Dispose => "dispose",
        }
    }

    /// Whether its steps run as cleanup, after the execution's release.
    pub const fn is_cleanup(self) -> bool {
        matches!(self, Self::Terminate | Self::Dispose)
    }
}

/// One step: its work, and the policies around it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Unique in the file.
    pub name: String,
    /// The stage it belongs to, also when nested.
    pub stage: Stage,
    /// The line of the file it begins on, from 1; 0 if `--set` brought it.
    pub line: u32,
    /// What it does.
    pub work: Work,
    /// Narrows what the budget leaves (P2).
    pub timeout: Option<Duration>,
    /// Polls granted before it is dropped (P11).
    pub poll_budget: Option<u64>,
    /// The failure it ends with.
    pub fail: Option<Fail>,
    /// The share of its executions that panic at their end; 0 for never.
    pub panic: f64,
    /// The share of deliveries that run it; 1 for all.
    pub share: f64,
    /// Whether a failure only degrades the result (P4).
    pub optional: bool,
    /// What its destructor does (P8).
    pub on_drop: Option<Destructor>,
    /// Whether it is started and not awaited (P10, X6).
    pub detach: bool,
}

/// The failure that a step ends its own work with.
#[derive(Clone, Debug, PartialEq)]
pub struct Fail {
    /// The step's word for it.
    pub code: Code,
    /// Whether another attempt could succeed.
    pub retryable: bool,
    /// The share of its executions that fail; 1 for all.
    pub share: f64,
    /// Only the first so many executions of this step for the same message may fail; `None` for all.
    pub first: Option<u32>,
}

/// What a step's destructor does, inline on the thread that drops it (P8).
#[derive(Clone, Debug, PartialEq)]
pub struct Destructor {
    /// Computes or blocks; never anything else.
    pub work: DestructorWork,
    /// The share of its runs that panic at their end; 0 for never.
    pub panic: f64,
}

/// The two things that a destructor can do.
#[derive(Clone, Debug, PartialEq)]
pub enum DestructorWork {
    /// Computes.
    Cpu(CpuAmount),
    /// Blocks its thread.
    Blocking {
        /// In which way.
        op: BlockingOp,
        /// For how long.
        duration: Span,
    },
}

/// How much a `cpu` step computes.
#[derive(Clone, Debug, PartialEq)]
pub enum CpuAmount {
    /// CPU time of its thread.
    Time(Span),
    /// Rounds of the computation.
    Iterations(u64),
}

/// A duration, fixed or drawn (P14).
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// Always the same.
    Fixed(Duration),
    /// Uniform between the two.
    Uniform {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: Duration,
        /// Cuts it off.
        max: Option<Duration>,
    },
    /// Log-normal, by two of its percentiles.
    LogNormal {
        /// The median.
        p50: Duration,
        /// Longer than `p50`.
        p99: Duration,
        /// Cuts it off.
        max: Option<Duration>,
    },
}

/// What a step does, for real.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Computes; without `yield_every` it cannot be cut.
    Cpu {
        /// How much.
        amount: CpuAmount,
        /// Yields to the runtime after each so much CPU time.
        yield_every: Option<Duration>,
        /// Where.
        on: CpuPlace,
    },
    /// Computes in slices, yields between them, and looks at the signal.
    Cooperative {
        /// How long it works, by the wall clock.
        duration: Span,
        /// The length of a slice.
        slice: Duration,
        /// What it does when it has seen the signal.
        on_signal: OnSignal,
        /// How long it goes on working after that.
        wind_down: Duration,
    },
    /// Blocks a thread off the async workers.
    Blocking {
        /// In which way.
        op: BlockingOp,
        /// For how long, by the wall clock.
        duration: Span,
        /// Looks at the signal so often; `None`: never.
        looks_every: Option<Duration>,
        /// On whose thread.
        pool: Pool,
    },
    /// Sleeps on the runtime's timer.
    Sleep {
        /// For how long.
        duration: Span,
    },
    /// A TCP connection.
    Tcp(Box<Tcp>),
    /// One HTTP request on a connection of its own.
    Http(Box<Http>),
    /// Reads a file to its end.
    Read {
        /// Which.
        path: PathBuf,
    },
    /// Writes a file.
    Write(Box<Write>),
    /// Pending so many times, waking itself each time, then success.
    Polls {
        /// How many times.
        count: u64,
    },
    /// Its steps, one after the other.
    Sequence {
        /// In order.
        steps: Vec<StepId>,
    },
    /// Its steps, side by side in one frame (P7).
    Parallel {
        /// The branches.
        steps: Vec<StepId>,
        /// When it returns.
        wait: Wait,
    },
    /// One of its steps, drawn.
    Choice {
        /// What there is to choose from.
        steps: Vec<StepId>,
        /// As many as steps; not negative and not all 0.
        weights: Vec<f64>,
    },
}

impl Work {
    /// Its `kind` in files and reports.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            Self::Cooperative { .. } => "cooperative",
            Self::Blocking { .. } => "blocking",
            Self::Sleep { .. }
            | Self::Tcp(_)
            | Self::Http(_)
            | Self::Read { .. }
            | Self::Write(_) => "io",
            Self::Polls { .. } => "polls",
            Self::Sequence { .. } => "sequence",
            Self::Parallel { .. } => "parallel",
            Self::Choice { .. } => "choice",
        }
    }

    /// Where it connects to, if it does.
    pub fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Tcp(tcp) => Some(&tcp.connection),
            Self::Http(http) => Some(&http.connection),
            _ => None,
        }
    }

    /// The steps inside it.
    pub fn children(&self) -> &[StepId] {
        match self {
            Self::Sequence { steps }
            | Self::Parallel { steps, .. }
            | Self::Choice { steps, .. } => steps,
            _ => &[],
        }
    }
}

/// Where a `cpu` step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuPlace {
    /// On the async worker that polls it.
    Worker,
    /// On a thread of its own, which is an obligation.
    Thread,
}

/// What a `cooperative` step does when it has seen the signal.
#[derive(Clone, Debug, PartialEq)]
pub enum OnSignal {
    /// Ends early, with success.
    Return,
    /// Ends early, with a failure: a retryable one whatever its code, for only the signal caused it.
    Fail {
        /// `INTERRUPTED` unless the step has a `code`.
        code: Code,
    },
    /// Notes it and works on to its own end.
    Finish,
    /// Never looks.
    Ignore,
}

/// The ways to block a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockingOp {
    /// Sleeps in the kernel.
    Sleep,
    /// Computes.
    Spin,
    /// Waits for a lock that is not given to it.
    Lock,
    /// Writes and syncs a temporary file, again and again.
    Fsync,
    /// Looks a name up, and waits for an answer that takes its time.
    Dns,
}

/// On whose thread blocking work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The runtime's blocking threads; may have to wait for one.
    Shared,
    /// A thread of its own; never waits.
    Own,
}

/// When a `parallel` step returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// When each branch has.
    All,
    /// When the first branch has; the others are dropped.
    First,
}
