//! What the user wrote, as types whose values are all possible.
//!
//! A [`Workload`] is only ever built by [`file::load`], after every fault of its text has been
//! collected; whoever has one need not check it again. Steps stand in one list, in the order of the
//! file, and name each other by [`StepId`].

pub mod arrivals;
mod check;
mod expectation;
pub mod fault;
pub mod file;
pub mod keys;
mod load;
pub mod sample;
mod settings;
mod step;
pub mod tree;
mod url;
mod walk;
mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::event::StepId;
use crate::timeline::Budget;

pub use expectation::{Bound, Comparison, Expect, ExpectGap, ExpectRow};
pub use load::{AdmissionPolicy, Load, Pace, Rate, ShutdownMode, ShutdownPlan, Spread};
pub use step::{
    BlockingOp, CpuAmount, CpuPlace, Destructor, DestructorWork, Fail, OnSignal, Pool, Span, Stage,
    Step, Wait, Work,
};
pub use wire::{Address, Connection, Drip, Http, Peer, ReadUntil, Tcp, Write};

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

impl Default for ShutdownPlan {
    /// That of a file without the table: only on a signal, within 30 seconds.
    fn default() -> Self {
        Self {
            at: None,
            after_deliveries: None,
            deadline: Duration::from_secs(30),
            mode: ShutdownMode::Graceful,
            admission: AdmissionPolicy::Close,
        }
    }
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
