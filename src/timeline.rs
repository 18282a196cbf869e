//! Instants of a run, and the ones that a budget fixes in advance.
//!
//! A [`Moment`] is a point on the run's own monotonic line; a span is a [`Duration`]. A [`Budget`]
//! is checked once and becomes a [`Timeline`] at admission (rules B1, B2, B5); nobody checks again.
//! Nothing here reads a clock: whoever has one passes the moment.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The longest reserve that the formula of B1 keeps: one second.
const LONGEST_RESERVE: Duration = Duration::from_secs(1);
/// The longest reserve that a root keeps (B4): two seconds.
const LONGEST_ROOT_RESERVE: Duration = Duration::from_secs(2);
/// What a reason other than the delivery's own timeout leaves at most (W1): one second.
const LONGEST_CLEANUP: Duration = Duration::from_secs(1);

/// A point in time: nanoseconds since the run began, on the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(u64);

impl Moment {
    /// The instant at which the run began.
    pub const START: Self = Self(0);
    /// Later than anything that happens.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment so many nanoseconds after the run began.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the run began.
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the run began, truncated as reports show them (SPEC section 3).
    pub const fn micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The time from `earlier` to this moment; zero if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This moment less a span, but not before the start.
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    /// Saturates at [`Moment::NEVER`]: a span too long to end within the run never ends.
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}us", self.micros())
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// What the workload grants to each delivery: execution and cleanup together (B1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    /// From admission to the hard cutoff.
    pub total: Duration,
    /// The tail kept for stopping and cleanup; `None` takes the formula of B1.
    pub reserve: Option<Duration>,
    /// The longest cooperative window (W2).
    pub window_cap: Duration,
}

impl Budget {
    /// The reserve out of `available`: the given one, cut to a quarter only where a root left less
    /// than it was given for (B5), else the formula of B1.
    fn reserve_of(&self, available: Duration) -> Duration {
        match self.reserve {
            None => (available / 4).min(LONGEST_RESERVE),
            Some(reserve) if available == self.total => reserve,
            Some(reserve) => reserve.min(available / 4),
        }
    }
}

/// The shutdown deadline of the whole run (B4): it can shorten every other deadline, and lengthen none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// When the shutdown began.
    pub initiated: Moment,
    /// When deliveries still running are signalled.
    pub graceful_cutoff: Moment,
    /// When nothing of a delivery may be left to run.
    pub hard_cutoff: Moment,
}

impl Root {
    /// The root of a shutdown that began at `initiated` with so much time.
    pub fn new(initiated: Moment, deadline: Duration) -> Self {
        let hard_cutoff = initiated + deadline;
        let reserve = (deadline / 4).min(LONGEST_ROOT_RESERVE);
        Self { initiated, graceful_cutoff: hard_cutoff.before(reserve), hard_cutoff }
    }
}

/// The instants of one delivery that are fixed when it is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// `S`: when the delivery took its slot.
    pub admitted: Moment,
    /// `P`: when the normal course ends.
    pub normal_cutoff: Moment,
    /// `H`: when the budget is used up.
    pub hard_cutoff: Moment,
    window_cap: Duration,
}

impl Timeline {
    /// The timeline of a delivery admitted at `admitted`, under `root` if one is in force (B1, B5).
    pub fn new(budget: &Budget, admitted: Moment, root: Option<Root>) -> Self {
        let latest = root.map_or(Moment::NEVER, |root| root.hard_cutoff);
        let hard_cutoff = (admitted + budget.total).min(latest).max(admitted);
        let reserve = budget.reserve_of(hard_cutoff.since(admitted));
        Self {
            admitted,
            normal_cutoff: hard_cutoff.before(reserve),
            hard_cutoff,
            window_cap: budget.window_cap,
        }
    }

    /// When the signal is due: at `P`, or at the root's graceful cutoff if that is not later (C1).
    pub fn signal_due(&self, root: Option<Root>) -> (Reason, Moment) {
        match root {
            Some(root) if root.graceful_cutoff <= self.normal_cutoff => {
                (Reason::ShutdownDeadline, root.graceful_cutoff)
            }
            _ => (Reason::DeliveryTimeout, self.normal_cutoff),
        }
    }

    /// `E`: when the outcome freezes and every obligation is due (W1).
    pub fn end(&self, signal: Option<Signal>, root: Option<Root>) -> Moment {
        let root_hard = root.map(|root| root.hard_cutoff);
        let mut end = self.hard_cutoff;
        if let Some(signal) = signal.filter(|signal| signal.reason != Reason::DeliveryTimeout) {
            end = end.min(signal.at + LONGEST_CLEANUP);
            if let Some(root_hard) = root_hard {
                end = end.min(signal.at + root_hard.since(signal.at) * 3 / 4);
            }
        }
        root_hard.map_or(end, |root_hard| end.min(root_hard))
    }

    /// When the cooperative window ends that `signal` opened (W2).
    pub fn window_end(&self, signal: Signal, root: Option<Root>) -> Moment {
        let end = self.end(Some(signal), root);
        let window = self.window_cap.min(end.since(signal.at) / 4);
        (signal.at + window).min(end)
    }
}

/// Why a delivery was signalled (C1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// `P` came first.
    DeliveryTimeout,
    /// The root's graceful cutoff came first, or with `P`.
    ShutdownDeadline,
    /// The run was told to stop at once.
    ForcedShutdown,
    /// The run itself failed.
    RuntimeFailure,
    /// The broker's transport is gone.
    RuntimeCancellation,
}

/// The observe-only notice to stop: its first reason and instant stay for good (C2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// The first reason.
    pub reason: Reason,
    /// The cutoff itself, not the instant at which somebody noticed it.
    pub at: Moment,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Moment {
        Moment::START + Duration::from_millis(millis)
    }

    fn timeline(total: u64, reserve: Option<u64>, root: Option<Root>) -> Timeline {
        let budget = Budget {
            total: Duration::from_millis(total),
            reserve: reserve.map(Duration::from_millis),
            window_cap: Duration::from_millis(250),
        };
        Timeline::new(&budget, Moment::START, root)
    }

    #[test]
    fn reserve_is_a_quarter_and_at_most_a_second() {
        assert_eq!(timeline(2_000, None, None).normal_cutoff, millis(1_500));
        assert_eq!(timeline(30_000, None, None).normal_cutoff, millis(29_000));
        assert_eq!(timeline(2_000, Some(800), None).normal_cutoff, millis(1_200));
    }

    #[test]
    fn window_is_a_sixteenth_of_a_total_below_four_seconds() {
        let timeline = timeline(2_000, None, None);
        let (reason, at) = timeline.signal_due(None);
        assert_eq!(timeline.window_end(Signal { reason, at }, None), millis(1_625));
    }

    #[test]
    fn admission_under_a_root_shortens_and_cuts_a_given_reserve() {
        let root = Root::new(Moment::START, Duration::from_millis(400));
        let timeline = timeline(2_000, Some(800), Some(root));
        assert_eq!(timeline.hard_cutoff, millis(400));
        assert_eq!(timeline.normal_cutoff, millis(300));
    }

    #[test]
    fn root_graceful_cutoff_wins_a_tie() {
        let root = Root::new(millis(0), Duration::from_millis(2_000));
        assert_eq!(timeline(2_000, None, None).signal_due(Some(root)).0, Reason::ShutdownDeadline);
    }

    #[test]
    fn shutdown_leaves_three_quarters_of_what_the_root_has() {
        let root = Root::new(millis(500), Duration::from_millis(2_000));
        let signal = Signal { reason: Reason::ShutdownDeadline, at: root.graceful_cutoff };
        let timeline = timeline(30_000, None, None);
        assert_eq!(timeline.end(Some(signal), Some(root)), millis(2_375));
        assert_eq!(
            timeline.window_end(signal, Some(root)),
            millis(2_000) + Duration::from_micros(93_750)
        );
    }
}
