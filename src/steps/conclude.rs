//! The end of a step's own work: its `panic`, else its `fail`, else what the work said.

use std::sync::PoisonError;

use crate::event::{Code, StepId, StepOutcome, Verdict};
use crate::steps::Scene;
use crate::workload::Step;
use crate::workload::sample::Purpose;

/// What the step says of itself. Panics, for real, when that was drawn.
pub(super) fn conclude(scene: &Scene, id: StepId, step: &Step, verdict: Verdict) -> Verdict {
    if step.panic > 0.0 && scene.draw(step, Purpose::Panic).happens(step.panic) {
        panic!("the step `{}` panics, as its workload says", step.name);
    }
    match &step.fail {
        Some(fail) if verdict == Verdict::Success && fails(scene, id, step) => {
            Verdict::Failure { code: fail.code.clone(), retryable: fail.retryable }
        }
        _ => verdict,
    }
}

/// How a verdict shows as the outcome of its step.
pub(super) fn outcome_of(verdict: &Verdict) -> (StepOutcome, Option<Code>) {
    match verdict {
        Verdict::Success => (StepOutcome::Success, None),
        Verdict::Failure { code, .. } => (StepOutcome::Failure, Some(Code::clone(code))),
        Verdict::Panic => (StepOutcome::Panic, None),
    }
}

fn fails(scene: &Scene, id: StepId, step: &Step) -> bool {
    let Some(fail) = &step.fail else { return false };
    let is_among_first = fail.first.is_none_or(|first| {
        let shared = scene.cell.shared();
        let mut executions = shared.executions.lock().unwrap_or_else(PoisonError::into_inner);
        let count = executions.entry((scene.cell.ticket().message, id)).or_default();
        *count += 1;
        *count <= first
    });
    is_among_first && scene.draw(step, Purpose::Fail).happens(fail.share)
}
