//! How messages come, and how the run is stopped: `[load]` and `[shutdown]`.

use std::time::Duration;

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
    pub admission: AdmissionPolicy,
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
pub enum AdmissionPolicy {
    /// Those that wait are released, and none arrives any more (C4).
    Close,
    /// They go on arriving and starting, under the root (B5), until its graceful cutoff or a force.
    Keep,
}
