//! The ways to block the calling thread.

use std::io::Write;
use std::net::{Ipv4Addr, ToSocketAddrs, UdpSocket};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::event::Verdict;
use crate::steps::cpu;
use crate::workload::BlockingOp;

/// What a step says whose file cannot be written.
pub(super) const WRITE_FAILED: &str = "WRITE_FAILED";
/// What a look-up says that finds no address.
pub(super) const LOOKUP_FAILED: &str = "LOOKUP_FAILED";
/// What `dns` looks up: a name that every machine knows.
const NAME: &str = "localhost";
/// What an `fsync` writes between two syncs.
const PAGE: [u8; 4096] = [b'x'; 4096];

/// Blocks for `span`, in that way.
pub(super) fn block(op: BlockingOp, span: Duration) -> Verdict {
    match op {
        BlockingOp::Sleep => std::thread::sleep(span),
        BlockingOp::Spin => cpu::spin_until(Instant::now() + span),
        BlockingOp::Lock => wait_for_lock(span),
        BlockingOp::Fsync => return write_and_sync(Instant::now() + span),
        BlockingOp::Dns => return look_up(Instant::now() + span),
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

/// Looks a name up as most programs do, and then waits as a resolver waits for a name server that
/// takes its time.
fn look_up(until: Instant) -> Verdict {
    let looked_up = (NAME, 0).to_socket_addrs();
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)) else {
        return Verdict::Failure { code: LOOKUP_FAILED.into(), retryable: true };
    };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        // Nobody sends to it; whatever came all the same would be no answer.
        let _ = socket.set_read_timeout(Some(left)).and_then(|()| socket.recv(&mut [0]));
    }
    match looked_up {
        Ok(_) => Verdict::Success,
        Err(_) => Verdict::Failure { code: LOOKUP_FAILED.into(), retryable: true },
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
