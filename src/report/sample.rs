//! Workloads and deliveries built by hand, for tests.

use std::path::PathBuf;
use std::time::Duration;

use super::*;
use crate::event::StepId;
use crate::timeline::Budget;
use crate::workload::{
    self, BlockingOp, Expect, Load, Middleware, Pool, Profile, Runtime, ShutdownPlan, Span, Stage,
    Work, Workload,
};

/// `orders.toml`: a blocking handler in a transaction, with a detached writer and a scope.
pub(crate) fn workload() -> Workload {
    let step = |name: &str, stage, line, detach| workload::Step {
        name: name.into(),
        stage,
        line,
        work: Work::Blocking {
            op: BlockingOp::Sleep,
            duration: Span::Fixed(Duration::from_secs(3)),
            looks_every: None,
            pool: Pool::Shared,
        },
        timeout: None,
        poll_budget: None,
        fail: None,
        panic: 0.0,
        share: 1.0,
        optional: false,
        on_drop: None,
        detach,
    };
    Workload {
        name: "orders".into(),
        description: None,
        file: PathBuf::from("orders.toml"),
        sha256: "00".repeat(32),
        profile: Profile::Queue,
        observe: Duration::from_secs(2),
        budget: Budget {
            total: Duration::from_millis(400),
            reserve: None,
            window_cap: Duration::from_millis(250),
        },
        runtime: Runtime { workers: 2, blocking_threads: 64 },
        load: Load { deliveries: 1, concurrency: 1, pace: None, seed: 7 },
        shutdown: ShutdownPlan::default(),
        peers: Vec::new(),
        settlement: None,
        steps: vec![
            step("tx-terminate", Stage::Terminate, 8, false),
            step("compress", Stage::Handler, 12, false),
            step("writer", Stage::Handler, 16, true),
            step("scope-dispose", Stage::Dispose, 20, false),
        ],
        middleware: vec![Middleware {
            name: "transaction".into(),
            before: None,
            after: None,
            terminate: Some(StepId(0)),
        }],
        guard: Vec::new(),
        resolve: Vec::new(),
        extract: Vec::new(),
        handler: vec![StepId(1), StepId(2)],
        dispose: Some(StepId(3)),
        expect: None,
        lines: Default::default(),
    }
}

/// The same workload with expectations.
pub(crate) fn expecting(
    rows: Vec<workload::ExpectRow>,
    gaps: Vec<workload::ExpectGap>,
) -> Workload {
    Workload { expect: Some(Expect { rows, gaps }), ..workload() }
}

/// A delivery of that result, with an obligation for its execution that is proven.
pub(crate) fn delivery(id: u32, result: DeliveryResult) -> Delivery {
    let admitted_us = (result != DeliveryResult::NotStarted).then_some(40);
    let started = admitted_us.is_some();
    let interrupted = result == DeliveryResult::Interrupted;
    let ended_us = started.then_some(if interrupted { 325_110 } else { 120_040 });
    Delivery {
        id,
        message: id,
        attempt: 1,
        arrived_us: 10,
        admitted_us,
        normal_cutoff_us: started.then_some(300_040),
        hard_cutoff_us: started.then_some(400_040),
        ended_us,
        result,
        code: (result == DeliveryResult::Failure).then(|| "CARD_DECLINED".into()),
        termination: if started { Termination::Proven } else { Termination::NothingStarted },
        returned_in: (started && !interrupted).then_some(ReturnedIn::Normal),
        signal: interrupted.then_some(SignalSeen {
            reason: Reason::DeliveryTimeout,
            at_us: 300_040,
            observed_us: None,
        }),
        window_end_us: interrupted.then_some(325_040),
        reached: started.then(|| "handler".into()),
        degraded: false,
        cleanup: Cleanup::NoneDue,
        execution: Execution {
            state: match (started, interrupted) {
                (false, _) => ExecutionState::NotStarted,
                (true, true) => ExecutionState::Dropped,
                (true, false) => ExecutionState::Returned,
            },
            at_us: ended_us,
            late_return: None,
        },
        callbacks: vec![Callback {
            middleware: "transaction".into(),
            before: CourseState::Completed,
            after: CourseState::Completed,
            terminate: TerminateState::NotDue,
            started_us: None,
            ended_us: None,
            before_started_us: None,
            before_ended_us: None,
            after_started_us: None,
            after_ended_us: None,
        }],
        scope: Scope {
            state: ScopeState::Disposed,
            started_us: ended_us,
            at_us: ended_us.map(|ended| ended + 6_190),
        },
        settlement: Settled { decision: None, state: SettledState::None, at_us: None },
        steps: vec![Step {
            name: "compress".into(),
            stage: "handler".into(),
            kind: "blocking".into(),
            progress: if started { Progress::ByItself } else { Progress::Never },
            started_us: started.then_some(60),
            started_order: started.then_some(1),
            ended_us,
            ended_order: started.then_some(2),
            outcome: match result {
                DeliveryResult::Success => Outcome::Success,
                DeliveryResult::Failure => Outcome::Failure,
                DeliveryResult::Panic => Outcome::Panic,
                DeliveryResult::Interrupted => Outcome::Dropped,
                DeliveryResult::NotStarted => Outcome::Skipped,
            },
            code: None,
            polls: 2,
            attempts: 1,
            left: None,
            over_us: None,
            effect: None,
            closed_by: None,
        }],
        obligations: match started {
            true => vec![ObligationRow {
                step: None,
                evidence: Some(match interrupted {
                    true => Evidence::FutureDropped,
                    false => Evidence::FutureReturned,
                }),
                closed_us: ended_us,
                ..row(Obligation::Execution, ObligationState::Proven)
            }],
            false => Vec::new(),
        },
        overlaps: Vec::new(),
    }
}

/// An obligation of `compress`.
pub(crate) fn row(kind: Obligation, state: ObligationState) -> ObligationRow {
    ObligationRow {
        kind,
        step: Some("compress".into()),
        opened_us: 70,
        due_us: 400_040,
        state,
        evidence: None,
        closed_us: None,
        late_by_us: (state == ObligationState::Late).then_some(2_600_060),
        who: None,
        advice: None,
    }
}

impl Delivery {
    /// With one obligation more, and its termination the worse for it.
    pub(crate) fn with(mut self, row: ObligationRow) -> Self {
        self.termination = match (self.termination, row.state) {
            (Termination::Unproven, _) | (_, ObligationState::Unproven) => Termination::Unproven,
            (_, ObligationState::Late) => Termination::Late,
            (termination, ObligationState::Proven) => termination,
        };
        self.obligations.push(row);
        self
    }

    /// With its termination callback in this state.
    pub(crate) fn with_callback(mut self, terminate: TerminateState) -> Self {
        self.callbacks[0].terminate = terminate;
        self.cleanup = match terminate {
            TerminateState::NotDue => Cleanup::NoneDue,
            TerminateState::Completed => Cleanup::Complete,
            _ => Cleanup::Failed,
        };
        self
    }
}

/// What is known of a run in which nothing special happened.
pub(crate) fn facts() -> RunFacts {
    RunFacts {
        clock: Clock::Real,
        control: Control::Fifo,
        workload_nice: -5,
        lateness: Lateness { p50: Some(60), p99: Some(180), max: Some(330) },
        started: "2026-11-30T12:00:00Z".into(),
        elapsed_us: 3_100_000,
        shutdown: None,
        peers: Vec::new(),
    }
}

/// The report of those deliveries.
pub(crate) fn report(workload: &Workload, deliveries: Vec<Delivery>) -> Report {
    Report::assemble(workload, facts(), deliveries, Listed::All)
}
