//! The workload as the engine and the audit see it: what there is to run, in which order.
//!
//! Holds no instant and decides nothing. `elements` of the course are top-level steps; what is
//! nested inside them is the step's own business.

use std::time::Duration;

use crate::event::StepId;
use crate::timeline::Budget;
use crate::workload::{Stage, Workload};

/// The shape of every delivery of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What each delivery may use.
    pub budget: Budget,
    /// How long to look for late receipts after the last due instant.
    pub observe: Duration,
    /// Outermost first.
    pub middleware: Vec<MiddlewareShape>,
    /// The steps of guard, resolve, extract and handler, in the order of the course.
    pub forward: Vec<(Stage, StepId)>,
    /// The disposer, when there is a scope.
    pub dispose: Option<StepId>,
    /// How a delivery is settled; `None` when with nobody.
    pub settlement: Option<SettlementShape>,
}

/// Which of its three parts a middleware has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MiddlewareShape {
    /// Its way in.
    pub before: Option<StepId>,
    /// Its way out.
    pub after: Option<StepId>,
    /// Its termination callback.
    pub terminate: Option<StepId>,
}

/// What the engine needs to know of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettlementShape {
    /// How long a confirmation may take (M2).
    pub timeout: Duration,
    /// How often a message may be delivered again.
    pub redeliveries: u32,
}

impl Plan {
    /// The plan of a workload.
    pub fn new(workload: &Workload) -> Self {
        let stages = [
            (Stage::Guard, &workload.guard),
            (Stage::Resolve, &workload.resolve),
            (Stage::Extract, &workload.extract),
            (Stage::Handler, &workload.handler),
        ];
        Self {
            budget: workload.budget.clone(),
            observe: workload.observe,
            middleware: workload
                .middleware
                .iter()
                .map(|middleware| MiddlewareShape {
                    before: middleware.before,
                    after: middleware.after,
                    terminate: middleware.terminate,
                })
                .collect(),
            forward: stages
                .iter()
                .flat_map(|(stage, steps)| steps.iter().map(|step| (*stage, *step)))
                .collect(),
            dispose: workload.dispose,
            settlement: workload.settlement.as_ref().map(|policy| SettlementShape {
                timeout: policy.timeout,
                redeliveries: policy.redeliveries,
            }),
        }
    }
}
