//! Computing in slices, with a yield and a look at the signal between them.

use std::time::{Duration, Instant};

use crate::event::{StepId, Verdict};
use crate::steps::conclude::conclude;
use crate::steps::{Scene, cpu};
use crate::workload::sample::Purpose;
use crate::workload::{OnSignal, Step, Work};

/// Works for its duration by the wall clock, or until it has seen the signal and wound down.
pub(super) async fn work(scene: &Scene, id: StepId, step: &Step) -> Verdict {
    let Work::Cooperative { duration, slice, on_signal, wind_down } = &step.work else {
        unreachable!("only cooperative steps come here");
    };
    let mut until = Instant::now() + scene.draw(step, Purpose::Duration).duration(duration);
    let mut looks = *on_signal != OnSignal::Ignore;
    let mut early = None;
    loop {
        if looks && scene.look(id) {
            looks = false;
            match on_signal {
                OnSignal::Return => early = Some(Verdict::Success),
                OnSignal::Fail { code } => {
                    early = Some(Verdict::Failure { code: code.clone(), retryable: true });
                }
                OnSignal::Finish | OnSignal::Ignore => {}
            }
            if early.is_some() {
                until = Instant::now() + *wind_down;
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            break;
        }
        cpu::spin_until(Instant::now() + left.min(*slice));
        tokio::task::yield_now().await;
    }
    match early {
        Some(verdict) => verdict,
        None => conclude(scene, id, step, Verdict::Success),
    }
}
