//! Small workloads and logs, put together by hand.

use std::sync::Arc;
use std::time::Duration;

use crate::audit::{Audit, judge};
use crate::event::{
    Decision, DeliveryId, DeliveryLog, Entry, Event, EventLog, Initiator, Observation, Opening,
    RunEntry, RunEvent, Settlement, StepEnd, StepId, StepOutcome, Verdict,
};
use crate::obligation::{Evidence, Obligation};
use crate::plan::Plan;
use crate::report::{Callback, Delivery, ObligationRow};
use crate::timeline::{Budget, Moment, Reason, Root};
use crate::workload::{
    BlockingOp, CpuAmount, CpuPlace, Load, Middleware, Pool, Profile, Runtime, SettlementPolicy,
    ShutdownPlan, Span, Stage, Step, Work, Workload,
};

pub const PERMANENT: bool = false;
pub const RETRYABLE: bool = true;

pub fn at(micros: u64) -> Moment {
    Moment::from_nanos(micros * 1_000)
}

pub fn failure(code: &str, retryable: bool) -> Verdict {
    Verdict::Failure { code: code.into(), retryable }
}

/// The root of a shutdown, by its three instants.
pub fn root(initiated: u64, graceful: u64, hard: u64) -> Root {
    Root { initiated: at(initiated), graceful_cutoff: at(graceful), hard_cutoff: at(hard) }
}

pub fn sleep() -> Work {
    Work::Sleep { duration: Span::Fixed(Duration::from_secs(10)) }
}

pub fn blocking() -> Work {
    Work::Blocking {
        op: BlockingOp::Sleep,
        duration: Span::Fixed(Duration::from_secs(60)),
        looks_every: None,
        pool: Pool::Shared,
    }
}

pub fn cpu() -> Work {
    let amount = CpuAmount::Time(Span::Fixed(Duration::from_secs(3)));
    Work::Cpu { amount, yield_every: None, on: CpuPlace::Worker }
}

pub fn step(name: &str, stage: Stage, work: Work) -> Step {
    Step {
        name: name.to_owned(),
        stage,
        line: 1,
        work,
        timeout: None,
        poll_budget: None,
        fail: None,
        panic: 0.0,
        share: 1.0,
        optional: false,
        on_drop: None,
        detach: false,
    }
}

/// A workload, the run's own log, and the logs of its deliveries.
pub struct World {
    pub workload: Workload,
    pub log: EventLog,
}

impl World {
    /// Two seconds for each delivery, and a broker that has 5 s to confirm.
    pub fn new() -> Self {
        let workload = Workload {
            name: "orders".to_owned(),
            description: None,
            file: "orders.toml".into(),
            sha256: String::new(),
            profile: Profile::Queue,
            observe: Duration::from_secs(2),
            budget: Budget {
                total: Duration::from_secs(2),
                reserve: None,
                window_cap: Duration::from_millis(250),
            },
            runtime: Runtime { workers: 2, blocking_threads: 64 },
            load: Load { deliveries: 1, concurrency: 1, pace: None, seed: 0 },
            shutdown: ShutdownPlan::default(),
            peers: Vec::new(),
            settlement: Some(SettlementPolicy {
                timeout: Duration::from_secs(5),
                redeliveries: 0,
                confirm_in: Some(Duration::from_millis(2)),
            }),
            steps: Vec::new(),
            middleware: Vec::new(),
            guard: Vec::new(),
            resolve: Vec::new(),
            extract: Vec::new(),
            handler: Vec::new(),
            dispose: None,
            expect: None,
            lines: Default::default(),
        };
        Self { workload, log: EventLog::default() }
    }

    pub fn add(&mut self, step: Step) -> StepId {
        self.workload.steps.push(step);
        StepId(u32::try_from(self.workload.steps.len() - 1).expect("few steps"))
    }

    pub fn handler(&mut self, name: &str, work: Work) -> StepId {
        let id = self.add(step(name, Stage::Handler, work));
        self.workload.handler.push(id);
        id
    }

    /// A middleware with those of its three parts that are named.
    pub fn middleware(&mut self, name: &str, stages: &[Stage]) -> [Option<StepId>; 3] {
        let parts = [Stage::Before, Stage::After, Stage::Terminate].map(|stage| {
            let name = format!("{name}-{}", stage.word());
            stages.contains(&stage).then(|| self.add(step(&name, stage, sleep())))
        });
        let [before, after, terminate] = parts;
        self.workload.middleware.push(Middleware {
            name: name.to_owned(),
            before,
            after,
            terminate,
        });
        parts
    }

    /// A middleware that only has a termination callback.
    pub fn callback(&mut self, name: &str) -> StepId {
        self.middleware(name, &[Stage::Terminate])[2].expect("it was asked for")
    }

    pub fn scope(&mut self) -> StepId {
        let id = self.add(step("dispose", Stage::Dispose, sleep()));
        self.workload.dispose = Some(id);
        id
    }

    pub fn without_broker(mut self) -> Self {
        self.workload.settlement = None;
        self
    }

    /// The run's own log gets a line.
    pub fn run(&mut self, micros: u64, event: RunEvent) {
        self.log.run.push(RunEntry { at: at(micros), event });
    }

    pub fn shutdown(&mut self, root: Root) {
        self.workload.shutdown.deadline = root.hard_cutoff.since(root.initiated);
        let event = RunEvent::ShutdownBegan { by: Initiator::Terminate, root };
        self.log.run.push(RunEntry { at: root.initiated, event });
    }

    pub fn judge(&self) -> Audit {
        judge(&self.workload, &Plan::new(&self.workload), &self.log)
    }

    /// The rows, when the log and the rules must agree.
    pub fn rows(mut self, logs: impl IntoIterator<Item = Course>) -> Vec<Delivery> {
        self.log.deliveries.extend(logs.into_iter().map(|course| course.log));
        let audit = self.judge();
        assert_eq!(audit.disagreements, [""; 0], "the log is as the rules want it");
        audit.deliveries
    }

    pub fn row(self, course: Course) -> Delivery {
        self.rows([course]).remove(0)
    }

    /// What the rules have against a log.
    pub fn disagreements(mut self, course: Course) -> Vec<String> {
        self.log.deliveries.push(course.log);
        self.judge().disagreements
    }
}

/// The log of one delivery, as it is written.
#[derive(Clone)]
pub struct Course {
    pub log: DeliveryLog,
}

impl Course {
    pub fn new() -> Self {
        Self::of(1, 1, 1)
    }

    pub fn of(id: u32, message: u32, attempt: u32) -> Self {
        let log = DeliveryLog {
            id: DeliveryId(id),
            message,
            attempt,
            arrived: Moment::START,
            entries: Vec::new(),
        };
        Self { log }
    }

    pub fn see(mut self, micros: u64, observation: Observation) -> Self {
        let event = Event::Observed(observation);
        self.log.entries.push(Entry { at: at(micros), event });
        self
    }

    pub fn decide(mut self, micros: u64, decision: Decision) -> Self {
        let event = Event::Decided(decision);
        self.log.entries.push(Entry { at: at(micros), event });
        self
    }

    pub fn admit(self, micros: u64) -> Self {
        self.see(micros, Observation::Admitted { root: None })
    }

    pub fn tick(self, micros: u64) -> Self {
        self.see(micros, Observation::Tick)
    }

    pub fn start(self, micros: u64, step: StepId) -> Self {
        self.decide(micros, Decision::Start { step })
    }

    /// A top-level step ends and its element comes back.
    pub fn end(self, micros: u64, step: StepId, verdict: Verdict) -> Self {
        let outcome = match &verdict {
            Verdict::Success => StepOutcome::Success,
            Verdict::Failure { .. } => StepOutcome::Failure,
            Verdict::Panic => StepOutcome::Panic,
        };
        self.step_ended(micros, step, outcome)
            .see(micros, Observation::ElementReturned { step, verdict })
    }

    pub fn step_ended(self, micros: u64, step: StepId, outcome: StepOutcome) -> Self {
        let end =
            StepEnd { step, outcome, code: None, polls: 1, left: None, over: None, traces: None };
        self.see(micros, Observation::StepEnded(Arc::new(end)))
    }

    /// The pipeline returns with this result.
    pub fn come_back(self, micros: u64, verdict: Verdict) -> Self {
        self.decide(micros, Decision::Return { verdict }).see(micros, Observation::PipelineReturned)
    }

    pub fn signal(self, micros: u64, reason: Reason) -> Self {
        self.decide(micros, Decision::Signal { reason, due: at(micros) })
    }

    /// `P` comes.
    pub fn time_out(self, micros: u64) -> Self {
        self.tick(micros).signal(micros, Reason::DeliveryTimeout)
    }

    /// The window ends.
    pub fn cut(self, micros: u64) -> Self {
        self.tick(micros).decide(micros, Decision::Cut { due: at(micros) })
    }

    pub fn drop_pipeline(self, micros: u64) -> Self {
        self.see(micros, Observation::PipelineDropped)
    }

    pub fn call(self, micros: u64, step: StepId, until: u64) -> Self {
        self.decide(micros, Decision::Call { step, until: at(until) })
    }

    pub fn cut_callback(self, micros: u64, step: StepId) -> Self {
        self.tick(micros).decide(micros, Decision::CutCallback { step, due: at(micros) })
    }

    pub fn drop_element(self, micros: u64, step: StepId) -> Self {
        self.see(micros, Observation::ElementDropped { step })
    }

    pub fn dispose(self, micros: u64, step: StepId, until: u64) -> Self {
        self.decide(micros, Decision::Dispose { step, until: at(until) })
    }

    pub fn settle(self, micros: u64, settlement: Settlement, until: u64) -> Self {
        self.decide(micros, Decision::Settle { settlement, until: at(until) })
    }

    pub fn confirm(self, micros: u64) -> Self {
        self.see(micros, Observation::Confirmed)
    }

    /// Settled in 2 ms under the broker's own limit of 5 s, and gone.
    pub fn settled(self, micros: u64, settlement: Settlement) -> Self {
        self.settle(micros, settlement, micros + 5_000_000)
            .confirm(micros + 2_000)
            .decide(micros + 2_000, Decision::FreeSlot)
    }

    pub fn freeze(self, micros: u64) -> Self {
        self.tick(micros).decide(micros, Decision::Freeze { due: at(micros) })
    }

    pub fn revoke(self, micros: u64) -> Self {
        self.decide(micros, Decision::Revoke)
    }

    pub fn open(self, micros: u64, opening: u32, kind: Obligation, step: StepId) -> Self {
        let opening = Opening(opening);
        self.see(micros, Observation::Opened { opening, kind, step, thread: None })
    }

    pub fn close(self, micros: u64, opening: u32, evidence: Evidence) -> Self {
        let opening = Opening(opening);
        self.see(micros, Observation::Closed { opening, evidence, cpu: None })
    }

    pub fn publish(self, micros: u64, root: Root) -> Self {
        self.see(micros, Observation::RootPublished { root: Box::new(root) })
    }
}

pub fn obligation(delivery: &Delivery, kind: Obligation) -> &ObligationRow {
    let mut of_kind = delivery.obligations.iter().filter(|row| row.kind == kind);
    of_kind.next().expect("the delivery has such an obligation")
}

pub fn callback<'d>(delivery: &'d Delivery, middleware: &str) -> &'d Callback {
    let mut named = delivery.callbacks.iter().filter(|row| row.middleware == middleware);
    named.next().expect("the delivery has such a middleware")
}
