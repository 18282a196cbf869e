//! The ways to block the calling thread.

use std::io::Write;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::event::Verdict;
use crate::steps::cpu;
use crate::workload::BlockingOp;

/// What an `fsync` says when its temporary file cannot be written.
const WRITE_FAILED: &str = "WRITE_FAILED";
/// What an `fsync` writes between two syncs.
const PAGE: [u8; 4096] = [b'x'; 4096];

/// Blocks for `span`, in that way.
pub(super) fn block(op: BlockingOp, span: Duration) -> Verdict {
    match op {
        BlockingOp::Sleep => std::thread::sleep(span),
        BlockingOp::Spin => cpu::spin_until(Instant::now() + span),
        BlockingOp::Lock => wait_for_lock(span),
        BlockingOp::Fsync => return write_and_sync(Instant::now() + span),
    }
    Verdict::Success
}

/// Waits in the kernel for a lock that nobody gives it.
fn wait_for_lock(span: Duration) {
    let until = Instant::now() + span;
    let lock = Mutex::new(());
    let never = Condvar::new();
    let mut held = lock.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        held = never.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn write_and_sync(until: Instant) -> Verdict {
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        while Instant::now() < until {
            file.write_all(&PAGE)?;
            file.sync_all()?;
        }
        Ok(())
    };
    match write() {
        Ok(()) => Verdict::Success,
        Err(_) => Verdict::Failure { code: WRITE_FAILED.into(), retryable: false },
    }
}
