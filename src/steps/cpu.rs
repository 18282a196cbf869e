//! Computing, measured in CPU time of the thread that does it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::drive::this_thread_cpu;
use crate::steps::Scene;
use crate::workload::sample::Purpose;
use crate::workload::{CpuAmount, Step};

/// Rounds between two looks at a clock: a few microseconds.
const ROUNDS: u64 = 2_000;

/// What is still to be computed.
enum Left {
    Time(Duration),
    Rounds(u64),
}

/// Computes on the worker that polls it. Without `yield_every` it comes back in one poll.
pub(super) async fn compute(
    scene: &Scene,
    step: &Step,
    amount: &CpuAmount,
    yield_every: Option<Duration>,
) {
    let mut left = drawn(scene, step, amount, Purpose::Duration);
    loop {
        // A yield may bring the step to another thread, whose clock stands elsewhere.
        left = compute_part(left, yield_every);
        match left {
            Left::Time(Duration::ZERO) | Left::Rounds(0) => return,
            Left::Time(_) | Left::Rounds(_) => tokio::task::yield_now().await,
        }
    }
}

/// Computes to the end on the calling thread.
pub(super) fn compute_here(scene: &Scene, step: &Step, amount: &CpuAmount, purpose: Purpose) {
    compute_part(drawn(scene, step, amount, purpose), None);
}

/// Computes until that instant of the wall clock.
pub(super) fn spin_until(until: Instant) {
    while Instant::now() < until {
        rounds(ROUNDS);
    }
}

fn drawn(scene: &Scene, step: &Step, amount: &CpuAmount, purpose: Purpose) -> Left {
    match amount {
        CpuAmount::Time(span) => Left::Time(scene.draw(step, purpose).duration(span)),
        CpuAmount::Iterations(count) => Left::Rounds(*count),
    }
}

/// Computes what is left, or as much of it as fits before the next yield.
fn compute_part(left: Left, yield_every: Option<Duration>) -> Left {
    let began = this_thread_cpu();
    let slice = yield_every.unwrap_or(Duration::MAX);
    let mut rounds_left = match left {
        Left::Time(_) => u64::MAX,
        Left::Rounds(count) => count,
    };
    let time_left = match left {
        Left::Time(time) => time,
        Left::Rounds(_) => Duration::MAX,
    };
    loop {
        let used = this_thread_cpu().saturating_sub(began);
        if rounds_left == 0 || used >= time_left || used >= slice {
            return match left {
                Left::Time(time) => Left::Time(time.saturating_sub(used)),
                Left::Rounds(_) => Left::Rounds(rounds_left),
            };
        }
        let now = rounds_left.min(ROUNDS);
        rounds(now);
        rounds_left -= now;
    }
}

fn rounds(count: u64) {
    let mut word = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for round in 0..count {
        word = (word ^ round).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(27);
    }
    black_box(word);
}
