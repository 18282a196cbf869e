//! What a step's destructor does, on the thread that drops the step's frame (P8).

use crate::panics::{Panicked, contain};
use crate::steps::block::block;
use crate::steps::{Scene, cpu};
use crate::workload::sample::Purpose;
use crate::workload::{DestructorWork, Step};

/// Runs what the workload says that the step's destructor does, on the calling thread.
pub(super) fn destroy(scene: &Scene, step: &Step) -> Result<(), Panicked> {
    let Some(destructor) = &step.on_drop else { return Ok(()) };
    contain(|| {
        match &destructor.work {
            DestructorWork::Cpu(amount) => {
                cpu::compute_here(scene, step, amount, Purpose::DestructorDuration);
            }
            DestructorWork::Blocking { op, duration } => {
                let span = scene.draw(step, Purpose::DestructorDuration).duration(duration);
                // A destructor has nobody to tell that its file could not be written.
                let _ = block(*op, span);
            }
        }
        let panics = destructor.panic > 0.0
            && scene.draw(step, Purpose::DestructorPanic).happens(destructor.panic);
        if panics {
            panic!("the destructor of `{}` panics, as its workload says", step.name);
        }
    })
}
