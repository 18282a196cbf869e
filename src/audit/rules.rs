//! The arithmetic of the rules (SPEC section 3), worked out from the raw settings.
//!
//! A second reading, on purpose: it shares the words of `timeline` and none of its computations,
//! so a slip in one of the two shows as a disagreement. Where both agree, the numbers stand twice.

use std::time::Duration;

use crate::event::{Settlement, Verdict};
use crate::timeline::{Budget, Moment, Reason, Root, Signal};

const SECOND: Duration = Duration::from_secs(1);
const LONGEST_DISPOSAL_SHARE: Duration = Duration::from_millis(250);
const LONGEST_ROOT_RESERVE: Duration = Duration::from_secs(2);

/// What admission fixes for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cutoffs {
    pub admitted: Moment,
    pub normal: Moment,
    pub hard: Moment,
}

/// `P` and `H` of a delivery admitted under `root` (B1, B5).
pub(super) fn cutoffs(budget: &Budget, admitted: Moment, root: Option<Root>) -> Cutoffs {
    let whole = admitted + budget.total;
    let shortened = root.map(|root| root.hard_cutoff).filter(|root_hard| *root_hard < whole);
    let hard = shortened.map_or(whole, |root_hard| root_hard.max(admitted));
    let quarter = hard.since(admitted) / 4;
    let reserve = match budget.reserve {
        None => quarter.min(SECOND),
        Some(given) if shortened.is_some() => given.min(quarter),
        Some(given) => given,
    };
    Cutoffs { admitted, normal: hard.before(reserve), hard }
}

/// The signal that is due first (C1); a tie of `P` and the root's cutoff is the root's.
pub(super) fn first_signal(
    cutoffs: Cutoffs,
    root: Option<Root>,
    stopped: Option<Signal>,
) -> Signal {
    let timeout = Signal { reason: Reason::DeliveryTimeout, at: cutoffs.normal };
    let graceful =
        root.map(|root| Signal { reason: Reason::ShutdownDeadline, at: root.graceful_cutoff });
    let scheduled = match graceful {
        Some(graceful) if graceful.at <= timeout.at => graceful,
        _ => timeout,
    };
    match stopped {
        Some(stopped) if stopped.at < scheduled.at => stopped,
        _ => scheduled,
    }
}

/// `E` (W1).
pub(super) fn end(cutoffs: Cutoffs, signal: Option<Signal>, root: Option<Root>) -> Moment {
    let mut limits = vec![cutoffs.hard];
    limits.extend(root.map(|root| root.hard_cutoff));
    if let Some(Signal { at, .. }) = signal.filter(|it| it.reason != Reason::DeliveryTimeout) {
        limits.push(at + SECOND);
        limits.extend(root.map(|root| at + root.hard_cutoff.since(at) * 3 / 4));
    }
    limits.into_iter().min().unwrap_or(cutoffs.hard)
}

/// Where the cooperative window ends that opened at `at` (W2).
pub(super) fn window_end(budget: &Budget, at: Moment, end: Moment) -> Moment {
    let quarter = end.since(at) / 4;
    let window = if quarter < budget.window_cap { quarter } else { budget.window_cap };
    end.min(at + window)
}

/// Where the chain of callbacks ends, when cleanup begins at `now` (K2).
pub(super) fn chain_end(now: Moment, end: Moment) -> Moment {
    end.before((end.since(now) / 4).min(LONGEST_DISPOSAL_SHARE))
}

/// Where the share of a callback ends that starts at `now` as one of `to_run` (K2).
pub(super) fn share_end(now: Moment, chain_end: Moment, to_run: u32) -> Moment {
    now + chain_end.since(now) / to_run.max(1)
}

/// When the confirmation of a settlement is due (M2).
pub(super) fn confirmation_due(now: Moment, timeout: Duration, root: Option<Root>) -> Moment {
    root.map_or(now + timeout, |root| root.hard_cutoff.min(now + timeout))
}

/// Where the graceful cutoff of a root lies that has this initiation and this end (B4).
pub(super) fn graceful_cutoff(root: Root) -> Moment {
    let deadline = root.hard_cutoff.since(root.initiated);
    root.hard_cutoff.before((deadline / 4).min(LONGEST_ROOT_RESERVE))
}

/// What the pipeline came to, as far as its settlement is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Returned(Verdict),
    Interrupted(Option<Reason>),
}

/// What the broker is to be told (M1, K5). `is_clean`: no callback and no disposal failed.
pub(super) fn settlement(outcome: &Outcome, is_clean: bool, may_redeliver: bool) -> Settlement {
    let is_retryable = match outcome {
        Outcome::Returned(Verdict::Success) if is_clean => return Settlement::Ack,
        Outcome::Returned(Verdict::Success | Verdict::Panic) => true,
        Outcome::Returned(Verdict::Failure { retryable, .. }) => *retryable,
        Outcome::Interrupted(Some(Reason::DeliveryTimeout)) => true,
        Outcome::Interrupted(_) => return Settlement::Released,
    };
    if is_retryable && may_redeliver { Settlement::Retry } else { Settlement::DeadLetter }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Moment {
        Moment::START + Duration::from_millis(millis)
    }

    fn budget(total: u64, reserve: Option<u64>) -> Budget {
        Budget {
            total: Duration::from_millis(total),
            reserve: reserve.map(Duration::from_millis),
            window_cap: Duration::from_millis(250),
        }
    }

    fn root(initiated: u64, graceful: u64, hard: u64) -> Root {
        Root {
            initiated: millis(initiated),
            graceful_cutoff: millis(graceful),
            hard_cutoff: millis(hard),
        }
    }

    #[test]
    fn a_given_reserve_is_cut_only_where_the_root_left_less() {
        let given = budget(2_000, Some(800));
        assert_eq!(cutoffs(&given, millis(0), None).normal, millis(1_200));
        assert_eq!(cutoffs(&given, millis(0), Some(root(0, 7_500, 9_500))).normal, millis(1_200));
        assert_eq!(cutoffs(&given, millis(0), Some(root(0, 300, 400))).normal, millis(300));
    }

    #[test]
    fn a_window_is_a_quarter_of_what_is_left_and_never_past_the_end() {
        let budget = budget(2_000, None);
        assert_eq!(window_end(&budget, millis(1_500), millis(2_000)), millis(1_625));
        assert_eq!(window_end(&budget, millis(1_500), millis(9_000)), millis(1_750));
        assert_eq!(window_end(&budget, millis(1_500), millis(1_400)), millis(1_400));
    }

    #[test]
    fn a_forced_end_is_a_second_off_or_three_quarters_of_the_roots_rest() {
        let cutoffs = cutoffs(&budget(30_000, None), millis(0), None);
        let forced = Some(Signal { reason: Reason::ForcedShutdown, at: millis(500) });
        assert_eq!(end(cutoffs, forced, None), millis(1_500));
        assert_eq!(end(cutoffs, forced, Some(root(500, 1_200, 1_500))), millis(1_250));
        let timeout = Some(Signal { reason: Reason::DeliveryTimeout, at: millis(500) });
        assert_eq!(end(cutoffs, timeout, Some(root(500, 1_200, 1_500))), millis(1_500));
    }

    #[test]
    fn a_chain_leaves_a_quarter_to_the_disposal_and_shares_the_rest() {
        let chain_end = chain_end(millis(1_600), millis(2_000));
        assert_eq!(chain_end, millis(1_900));
        assert_eq!(share_end(millis(1_600), chain_end, 3), millis(1_700));
        assert_eq!(share_end(millis(1_700), chain_end, 1), millis(1_900));
    }

    #[test]
    fn a_success_whose_cleanup_failed_is_tried_again_and_a_permanent_failure_is_not() {
        let success = Outcome::Returned(Verdict::Success);
        let permanent = Outcome::Returned(Verdict::Failure { code: "NO".into(), retryable: false });
        assert_eq!(settlement(&success, true, true), Settlement::Ack);
        assert_eq!(settlement(&success, false, true), Settlement::Retry);
        assert_eq!(settlement(&success, false, false), Settlement::DeadLetter);
        assert_eq!(settlement(&permanent, true, true), Settlement::DeadLetter);
        let by_force = Outcome::Interrupted(Some(Reason::ForcedShutdown));
        assert_eq!(settlement(&by_force, true, true), Settlement::Released);
    }
}
