//! What the user wrote, as types whose values are all possible.
//!
//! A [`Workload`] is only ever built by [`file::load`], after every fault of its text has been
//! collected; whoever has one need not check it again. Steps stand in one list, in the order of the
//! file, and name each other by [`StepId`].

pub mod arrivals;
mod check;
pub mod fault;
pub mod file;
pub mod keys;
pub mod sample;
mod settings;
pub mod tree;
mod url;
mod walk;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::{Code, StepId};
use crate::timeline::Budget;

/// One workload file (SPEC section 6).
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its name; the file's stem unless given.
    pub name: String,
    /// What it shows.
    pub description: Option<String>,
    /// The file it was read from, as the user named it.
    pub file: PathBuf,
    /// SHA-256 of the file's bytes, in lower-case hex.
    pub sha256: String,
    /// Whose rules and ranges apply.
    pub profile: Profile,
    /// How long to look for late receipts after the last due instant.
    pub observe: Duration,
    /// What each delivery may use.
    pub budget: Budget,
    /// The threads that the workload gets.
    pub runtime: Runtime,
    /// How many deliveries, and how many at once.
    pub load: Load,
    /// How the run is shut down.
    pub shutdown: ShutdownPlan,
    /// Peers on loopback, in the order of the file.
    pub peers: Vec<Peer>,
    /// The broker; `None` when nothing is settled (profile `custom` without the table).
    pub settlement: Option<SettlementPolicy>,
    /// Every step, by [`StepId`].
    pub steps: Vec<Step>,
    /// Outermost first.
    pub middleware: Vec<Middleware>,
    /// `[[guard]]`, in order.
    pub guard: Vec<StepId>,
    /// `[[resolve]]`, in order.
    pub resolve: Vec<StepId>,
    /// `[[extract]]`, in order.
    pub extract: Vec<StepId>,
    /// `[[handler]]`, in order.
    pub handler: Vec<StepId>,
    /// `[scope] dispose`; `None` when there is no scope to dispose of.
    pub dispose: Option<StepId>,
    /// `[expect]`; `None` when the workload is no test.
    pub expect: Option<Expect>,
    /// The lines of the keys outside steps that were written, by dotted name (`budget.total`,
    /// `expect.codes.BUSY`, `expect.gap.1`); 0 if `--set` brought one.
    pub lines: BTreeMap<String, u32>,
}

impl Workload {
    /// The step of that number.
    pub fn step(&self, id: StepId) -> &Step {
        &self.steps[id.0 as usize]
    }
}

/// Whose ranges apply to the budget (B3), and who settles by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A message from a queue: 100ms to 900s, settled with the broker.
    Queue,
    /// Anything else: 1ms to 24h, settled with nobody unless a broker is named.
    Custom,
}

/// `[runtime]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Async worker threads.
    pub workers: usize,
    /// The most threads that shared blocking work may use at once.
    pub blocking_threads: usize,
}

/// `[load]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// How many messages there are; with [`Pace::during`], how many are to be expected.
    pub deliveries: u32,
    /// How many execute at once; the rest wait, and waiting is not charged.
    pub concurrency: u32,
    /// When messages arrive; `None`: all at the start.
    pub pace: Option<Pace>,
    /// Where all draws begin.
    pub seed: u64,
}

/// How messages arrive (P15).
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// How many in which time.
    pub rate: Rate,
    /// How they are spread.
    pub spread: Spread,
    /// How long they arrive; `None`: until there were [`Load::deliveries`].
    pub during: Option<Duration>,
}

/// So many in so long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Above 0.
    pub amount: f64,
    /// A second or a minute.
    pub per: Duration,
}

impl Rate {
    /// How many in a second.
    pub fn per_second(self) -> f64 {
        self.amount / self.per.as_secs_f64()
    }

    /// The mean distance of two, in nanoseconds.
    pub fn gap_nanos(self) -> f64 {
        self.per.as_secs_f64() * 1e9 / self.amount
    }
}

/// How arrivals are spread (P15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// At equal distances, the first at the start.
    Even,
    /// At random: exponential distances, drawn.
    Poisson,
}

/// `[shutdown]`: how the run is stopped in its midst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShutdownPlan {
    /// When it begins by itself; `None`: only on a signal.
    pub at: Option<Duration>,
    /// Begins when so many deliveries have given their slots back.
    pub after_deliveries: Option<u32>,
    /// The root budget, from the initiation (B4).
    pub deadline: Duration,
    /// What becomes of the started.
    pub mode: ShutdownMode,
    /// What becomes of those that have not started.
    pub admission: ClosedOrKept,
}

impl Default for ShutdownPlan {
    /// That of a file without the table: only on a signal, within 30 seconds.
    fn default() -> Self {
        Self {
            at: None,
            after_deliveries: None,
            deadline: Duration::from_secs(30),
            mode: ShutdownMode::Graceful,
            admission: ClosedOrKept::Close,
        }
    }
}

/// What a shutdown does to deliveries that have started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownMode {
    /// They go on until the root's graceful cutoff.
    Graceful,
    /// All are signalled at once (D2).
    Forced,
}

/// What a shutdown does to deliveries that have not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedOrKept {
    /// Those that wait are released, and none arrives any more (C4).
    Close,
    /// They go on arriving and starting, under the root (B5), until its graceful cutoff or a force.
    Keep,
}

/// `[settlement]`, with the in-memory broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementPolicy {
    /// How long a confirmation may take (M2).
    pub timeout: Duration,
    /// How often a message may be delivered again.
    pub redeliveries: u32,
    /// How long the broker takes to confirm; `None`: it never does.
    pub confirm_in: Option<Duration>,
}

/// One `[[middleware]]`: each of the three may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Middleware {
    /// Its name; `middleware-N` unless given.
    pub name: String,
    /// Runs on the way in.
    pub before: Option<StepId>,
    /// Runs on the way out, after a course that was not cut.
    pub after: Option<StepId>,
    /// Runs instead of `after` when the course was cut (K1).
    pub terminate: Option<StepId>,
}

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

/// A connection that a step makes for one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// To whom.
    pub to: Address,
    /// Until it is connected, a look-up of the name included; `None`: no limit.
    pub connect_timeout: Option<Duration>,
    /// From the end of the request to the first byte; `None`: no limit.
    pub read_timeout: Option<Duration>,
    /// Between bytes; `None`: no limit.
    pub idle_timeout: Option<Duration>,
}

/// Whom a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The peer of that place in [`Workload::peers`].
    Peer(usize),
    /// Somebody else.
    Host {
        /// A name, which is looked up, or an address.
        host: String,
        /// The port.
        port: u16,
    },
}

/// An `io` step with `op = "tcp"` (Q11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Whom it connects to, and how long it waits.
    pub connection: Connection,
    /// What it sends; empty for nothing.
    pub send: String,
    /// Until when it reads; `None`: not at all.
    pub read: Option<ReadUntil>,
    /// How long it keeps the connection open after that; `None`: not at all.
    pub hold: Option<Duration>,
}

/// Until when a `tcp` step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadUntil {
    /// The first bytes.
    First,
    /// The end of the stream.
    End,
}

/// An `io` step with `op = "http"` (P12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Whom it connects to, and how long it waits.
    pub connection: Connection,
    /// Host and port as the request names them.
    pub authority: String,
    /// Path and query.
    pub target: String,
    /// The method.
    pub method: String,
    /// The body of the request; empty for none.
    pub body: String,
    /// The status that is a success; `None`: any 2xx.
    pub expect_status: Option<u16>,
}

/// An `io` step with `op = "write"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which file.
    pub path: PathBuf,
    /// How many bytes.
    pub size: u64,
    /// Whether it is synced.
    pub sync: bool,
    /// Whether it stays when the run is over.
    pub keep: bool,
}

/// `[peers.NAME]`: somebody on loopback who misbehaves as told (P13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// From the end of the request to the answer.
    pub answer_after: Duration,
    /// The status of its answer.
    pub status: u16,
    /// Bytes of its answer's body.
    pub body: u64,
    /// Sends the body in pieces; `None`: as fast as it goes.
    pub drip: Option<Drip>,
    /// Resets after so many bytes of body; after 0 before anything of the answer.
    pub reset_after: Option<u64>,
    /// Closes after so many bytes of body; after 0 before anything of the answer.
    pub close_after: Option<u64>,
    /// Refuses connections.
    pub refuse: bool,
    /// How long it takes to accept a connection.
    pub accept_after: Duration,
}

/// A body in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// Of each piece.
    pub bytes: u64,
    /// Between two pieces; the first comes at once.
    pub every: Duration,
    /// Bytes after which nothing comes.
    pub stop_after: Option<u64>,
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

/// `[expect]`: what the workload promises of its own run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// In the order of the file.
    pub rows: Vec<ExpectRow>,
    /// `[[expect.gap]]`.
    pub gaps: Vec<ExpectGap>,
}

/// One line of `[expect]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectRow {
    /// What is compared, as written (`late`, `p99`, `codes.BUSY`).
    pub what: String,
    /// How it must compare.
    pub bound: Bound,
    /// The right-hand side as written (`>= 1`), for the report.
    pub written: String,
}

/// A comparison with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// Of counts.
    Count(Comparison, u64),
    /// Of spans.
    Span(Comparison, Duration),
    /// Of a word, exactly.
    Word(String),
}

/// How two values must compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`, or a bare number.
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether `found` compares so with `wanted`.
    pub fn holds<T: PartialOrd>(self, found: T, wanted: T) -> bool {
        match self {
            Self::Equal => found == wanted,
            Self::Unequal => found != wanted,
            Self::Less => found < wanted,
            Self::AtMost => found <= wanted,
            Self::Greater => found > wanted,
            Self::AtLeast => found >= wanted,
        }
    }
}

/// One `[[expect.gap]]`: whatever is absent matches all.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectGap {
    /// The name of the step that the gap names.
    pub step: Option<String>,
    /// The kind of the obligation.
    pub kind: Option<crate::obligation::Obligation>,
    /// `late` or `unproven`.
    pub state: Option<crate::obligation::ObligationState>,
    /// Exactly so many; `None`: at least one.
    pub count: Option<u64>,
}
