//! What the audit asks of a workload, worked out once for all its deliveries.

use crate::event::StepId;
use crate::plan::Plan;
use crate::workload::{Stage, Step, Workload};

/// A workload, its plan, and who is nested in whom.
#[derive(Debug)]
pub(super) struct Shape<'a> {
    pub workload: &'a Workload,
    pub plan: &'a Plan,
    is_nested: Vec<bool>,
    /// Whether a step, or one that it is nested in, is started and not awaited.
    is_detached: Vec<bool>,
}

impl<'a> Shape<'a> {
    pub(super) fn new(workload: &'a Workload, plan: &'a Plan) -> Self {
        let steps = &workload.steps;
        let mut is_nested = vec![false; steps.len()];
        let mut is_detached: Vec<bool> = steps.iter().map(|step| step.detach).collect();
        // Children stand behind their parents in the order of the file, so one pass is enough.
        for (parent, step) in steps.iter().enumerate() {
            for child in step.work.children() {
                let child = child.0 as usize;
                if child < steps.len() {
                    is_nested[child] = true;
                    is_detached[child] |= is_detached[parent];
                }
            }
        }
        Self { workload, plan, is_nested, is_detached }
    }

    pub(super) fn step(&self, step: StepId) -> Option<&'a Step> {
        self.workload.steps.get(step.0 as usize)
    }

    pub(super) fn name(&self, step: StepId) -> Option<String> {
        self.step(step).map(|step| step.name.clone())
    }

    /// Whether the engine's decision to start the step is its beginning: not so for what is nested
    /// or detached, whose beginning is an observation of its own.
    pub(super) fn begins_by_decision(&self, step: StepId) -> bool {
        self.step(step).is_some_and(|it| !it.detach && !self.is_nested[step.0 as usize])
    }

    /// The steps whose frames are the pipeline's.
    pub(super) fn in_pipeline(&self) -> impl Iterator<Item = StepId> {
        self.ids()
            .filter(|(id, step)| !step.stage.is_cleanup() && !self.is_detached[*id])
            .map(step_id)
    }

    /// The steps that a report lists, in the order of the file.
    pub(super) fn listed(&self) -> impl Iterator<Item = StepId> {
        self.ids().filter(|(_, step)| is_listed(step.stage)).map(step_id)
    }

    fn ids(&self) -> impl Iterator<Item = (usize, &'a Step)> {
        self.workload.steps.iter().enumerate()
    }
}

fn is_listed(stage: Stage) -> bool {
    match stage {
        Stage::Guard | Stage::Resolve | Stage::Extract | Stage::Handler => true,
        Stage::Before | Stage::After | Stage::Terminate | Stage::Dispose => false,
    }
}

fn step_id((id, _): (usize, &Step)) -> StepId {
    StepId(u32::try_from(id).unwrap_or(u32::MAX))
}
