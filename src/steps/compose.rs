//! Steps made of steps. Nested ones share the frame of the delivery; one that does not yield holds
//! up the others (P7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::event::{StepId, Verdict};
use crate::steps::{Scene, run, run_branch};
use crate::workload::sample::Purpose;
use crate::workload::{Step, Wait};

/// One after the other; the first that does not succeed ends it (N1).
pub(super) async fn sequence(scene: &Scene, steps: &[StepId]) -> Verdict {
    for step in steps {
        let verdict = run(scene.clone(), *step).await;
        if verdict != Verdict::Success {
            return verdict;
        }
    }
    Verdict::Success
}

/// Side by side in one frame; a branch is polled only when it was woken.
pub(super) async fn parallel(scene: &Scene, steps: &[StepId], wait: Wait) -> Verdict {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut branches: FuturesUnordered<_> = steps
        .iter()
        .map(|step| run_branch(scene.clone(), *step, Some(Arc::clone(&is_over))))
        .collect();
    let mut first_bad = None;
    while let Some(verdict) = branches.next().await {
        if wait == Wait::First {
            is_over.store(true, Ordering::Relaxed);
            // The losers' destructors run here, before the winner's verdict counts.
            drop(branches);
            return verdict;
        }
        if verdict != Verdict::Success {
            first_bad.get_or_insert(verdict);
        }
    }
    first_bad.unwrap_or(Verdict::Success)
}

/// One of them, drawn; the others are skipped.
pub(super) async fn choice(
    scene: &Scene,
    step: &Step,
    steps: &[StepId],
    weights: &[f64],
) -> Verdict {
    let chosen = scene.draw(step, Purpose::Choice).choice(weights);
    run(scene.clone(), steps[chosen]).await
}
