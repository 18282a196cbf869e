//! A limit of time inside a delivery: a timer that the cutoff can only take away.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use crate::steps::Scene;
use crate::timeline::Moment;

/// A limit that may still run out.
pub(super) struct Limit {
    sleep: Pin<Box<tokio::time::Sleep>>,
    due: Moment,
}

impl Limit {
    /// A limit that began at `now`; `None` if it can never run out, because it would be due at or after
    /// the cutoff, or begins inside the window (P2).
    pub(super) fn new(scene: &Scene, now: Moment, span: Duration) -> Option<Self> {
        let due = now + span;
        let may_fire =
            !scene.in_execution() || (!scene.is_signalled() && due < scene.cell.normal_cutoff());
        may_fire.then(|| Self { sleep: Box::pin(tokio::time::sleep(span)), due })
    }

    /// When it runs out.
    pub(super) fn due(&self) -> Moment {
        self.due
    }
}

/// Whether the limit has run out, before the signal if there was one; after that it never does.
pub(super) fn is_over(limit: &mut Option<Limit>, scene: &Scene, context: &mut Context<'_>) -> bool {
    let Some(running) = limit else { return false };
    if running.sleep.as_mut().poll(context).is_pending() {
        return false;
    }
    let signalled_first = scene.in_execution()
        && scene.cell.signal_at().is_some_and(|signal_at| signal_at <= running.due);
    if signalled_first {
        *limit = None;
    }
    !signalled_first
}
