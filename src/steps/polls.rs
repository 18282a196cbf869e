//! Pauses: pending so many times, waking itself each time, then ready.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that pauses. It shows how many pauses are left, which is how a drop tells how far it had come.
pub(super) struct Pauses {
    left: u64,
}

impl Pauses {
    pub(super) fn new(count: u64) -> Self {
        Self { left: count }
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }
}

impl Future for Pauses {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.left == 0 {
            return Poll::Ready(());
        }
        self.left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
