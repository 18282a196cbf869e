//! Runs one scripted delivery on the pure engine, in simulated nanoseconds.
//!
//! A [`World`] is data: how long everything takes, what it says, and what the run does to the
//! delivery meanwhile. Promises one order at one instant: ends of work, then cutoffs, then starts,
//! roots and stops; and that the engine is fed by [`record`] alone, as the real driver feeds it.
//! Does not judge the log; see [`crate::invariants`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use deadline_run::engine::record;
use deadline_run::engine::{Assignment, Delivery};
use deadline_run::event::{
    Code, Decision, Entry, Event, Observation, Opening, Settlement, StepEnd, StepId, StepOutcome,
    Verdict,
};
use deadline_run::obligation::{Evidence, Obligation};
use deadline_run::plan::{MiddlewareShape, Plan, SettlementShape};
use deadline_run::timeline::{Budget, Moment, Reason, Root};
use deadline_run::workload::Stage;

/// What never ends takes so long.
pub const FOREVER: Duration = Duration::MAX;

/// The step of the disposer.
pub const DISPOSE: StepId = StepId(400);

/// The steps of a middleware and of the course have numbers that tell what they are.
pub fn before(middleware: u32) -> StepId {
    StepId(100 + middleware)
}

pub fn after(middleware: u32) -> StepId {
    StepId(200 + middleware)
}

pub fn terminate(middleware: u32) -> StepId {
    StepId(300 + middleware)
}

/// How a step's name reads in a trace.
pub fn name(step: StepId) -> String {
    match step {
        DISPOSE => "dispose".into(),
        StepId(number @ 0..100) => format!("step {number}"),
        StepId(number @ 100..200) => format!("before {}", number - 100),
        StepId(number @ 200..300) => format!("after {}", number - 200),
        StepId(number) => format!("terminate {}", number - 300),
    }
}

/// Something that a step starts and does not await.
#[derive(Clone, Debug)]
pub struct Detached {
    pub kind: Obligation,
    /// [`FOREVER`] for one that never ends.
    pub lasts: Duration,
}

/// How one element behaves.
#[derive(Clone, Debug)]
pub struct Work {
    /// [`FOREVER`] for one that never ends.
    pub takes: Duration,
    /// What it says at its end.
    pub says: Verdict,
    /// One that does not yield keeps its poll busy: a drop waits for its end.
    pub yields: bool,
    /// How long its destructor runs, inline, whichever way the element ends.
    pub drop_takes: Duration,
    pub destructor_panics: bool,
    /// What it opens as soon as it has started.
    pub opens: Vec<Detached>,
}

impl Work {
    /// Yields, and succeeds after so long.
    pub fn takes(takes: Duration) -> Self {
        Self {
            takes,
            says: Verdict::Success,
            yields: true,
            drop_takes: Duration::ZERO,
            destructor_panics: false,
            opens: Vec::new(),
        }
    }

    pub fn fails(self, retryable: bool) -> Self {
        self.says(Verdict::Failure { code: "BROKEN".into(), retryable })
    }

    pub fn panics(self) -> Self {
        self.says(Verdict::Panic)
    }

    pub fn says(self, says: Verdict) -> Self {
        Self { says, ..self }
    }

    pub fn without_yielding(self) -> Self {
        Self { yields: false, ..self }
    }

    pub fn drop_takes(self, drop_takes: Duration) -> Self {
        Self { drop_takes, ..self }
    }

    pub fn destructor_panics(self) -> Self {
        Self { destructor_panics: true, ..self }
    }

    pub fn opens(mut self, kind: Obligation, lasts: Duration) -> Self {
        self.opens.push(Detached { kind, lasts });
        self
    }
}

/// The three parts of a middleware.
#[derive(Clone, Debug, Default)]
pub struct Middleware {
    pub before: Option<Work>,
    pub after: Option<Work>,
    pub terminate: Option<Work>,
}

/// The broker, and what the workload grants it.
#[derive(Clone, Debug)]
pub struct Broker {
    pub timeout: Duration,
    pub redeliveries: u32,
    /// [`FOREVER`] for one that never confirms.
    pub confirms_in: Duration,
}

/// All there is to know of one delivery in advance.
#[derive(Clone, Debug)]
pub struct World {
    pub budget: Budget,
    pub observe: Duration,
    pub attempt: u32,
    pub admitted: Moment,
    pub middleware: Vec<Middleware>,
    pub forward: Vec<Work>,
    pub dispose: Option<Work>,
    /// How long the pipeline's frame takes to go, once it has returned or is dropped.
    pub frame_takes: Duration,
    pub broker: Option<Broker>,
    /// Each is published at its own initiation; the delivery is admitted under earlier ones.
    pub roots: Vec<Root>,
    pub stops: Vec<(Moment, Reason)>,
    /// How late whoever decides the cutoffs wakes up.
    pub lateness: Duration,
}

impl World {
    /// A delivery admitted at the start, with the defaults of a workload, no middleware and nobody to settle with.
    pub fn new(total: Duration, forward: Vec<Work>) -> Self {
        Self {
            budget: Budget { total, reserve: None, window_cap: Duration::from_millis(250) },
            observe: Duration::from_secs(2),
            attempt: 1,
            admitted: Moment::START,
            middleware: Vec::new(),
            forward,
            dispose: None,
            frame_takes: Duration::ZERO,
            broker: None,
            roots: Vec::new(),
            stops: Vec::new(),
            lateness: Duration::ZERO,
        }
    }

    pub fn middleware(mut self, middleware: Middleware) -> Self {
        self.middleware.push(middleware);
        self
    }

    pub fn dispose(self, work: Work) -> Self {
        Self { dispose: Some(work), ..self }
    }

    /// With a broker that takes 10 ms to confirm and may take 5 s.
    pub fn broker(self, redeliveries: u32) -> Self {
        let timeout = Duration::from_secs(5);
        self.broker_with(Broker { timeout, redeliveries, confirms_in: Duration::from_millis(10) })
    }

    pub fn broker_with(self, broker: Broker) -> Self {
        Self { broker: Some(broker), ..self }
    }

    pub fn root(mut self, root: Root) -> Self {
        self.roots.push(root);
        self
    }

    pub fn stop(mut self, at: Moment, reason: Reason) -> Self {
        self.stops.push((at, reason));
        self
    }

    pub fn plan(&self) -> Plan {
        let shape = |number: usize, parts: &Middleware| {
            let number = number as u32;
            MiddlewareShape {
                before: parts.before.as_ref().map(|_| before(number)),
                after: parts.after.as_ref().map(|_| after(number)),
                terminate: parts.terminate.as_ref().map(|_| terminate(number)),
            }
        };
        Plan {
            budget: self.budget.clone(),
            observe: self.observe,
            middleware: self.middleware.iter().enumerate().map(|(n, m)| shape(n, m)).collect(),
            forward: (0..self.forward.len())
                .map(|number| (Stage::Handler, StepId(number as u32)))
                .collect(),
            dispose: self.dispose.as_ref().map(|_| DISPOSE),
            settlement: self.broker.as_ref().map(|broker| SettlementShape {
                timeout: broker.timeout,
                redeliveries: broker.redeliveries,
            }),
        }
    }

    /// The root under which the delivery is admitted.
    pub fn root_at_admission(&self) -> Option<Root> {
        self.roots
            .iter()
            .filter(|root| root.initiated < self.admitted)
            .min_by_key(|root| root.hard_cutoff)
            .copied()
    }

    fn work(&self, step: StepId) -> &Work {
        let part = |base: u32| &self.middleware[(step.0 - base) as usize];
        let work = match step {
            DISPOSE => self.dispose.as_ref(),
            StepId(number @ 0..100) => self.forward.get(number as usize),
            StepId(100..200) => part(100).before.as_ref(),
            StepId(200..300) => part(200).after.as_ref(),
            StepId(_) => part(300).terminate.as_ref(),
        };
        work.expect("the engine starts only what the plan has")
    }
}

/// What came of a world.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub log: Vec<Entry>,
    /// Whether every obligation has its receipt.
    pub closed: bool,
}

/// Runs the world until the delivery is closed or its observation ends.
pub fn run(world: &World) -> Outcome {
    let mut simulation = Simulation {
        world,
        machine: Delivery::new(Arc::new(world.plan()), world.attempt),
        log: Vec::new(),
        now: Moment::START,
        events: BinaryHeap::new(),
        count: 0,
        frame: None,
        version: 0,
        openings: 0,
    };
    simulation.run();
    Outcome { closed: simulation.machine.is_closed(), log: simulation.log }
}

/// What counts first at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    EndOfWork,
    Cutoff,
    Beginning,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The element that runs in this version of the frame has come to its end.
    WorkEnds(u64),
    /// So has its destructor.
    DestructorEnds(u64),
    /// The frame's own drop has.
    FrameGone(u64),
    Closes(Opening, StepId, usize),
    Confirms,
    Admit,
    Opens(u64, StepId, usize),
    Publish(usize),
    Stop(usize),
}

/// What the delivery's task holds.
struct Frame {
    is: Assignment,
    element: Option<StepId>,
    state: FrameState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameState {
    /// An element runs, or nothing is left to poll.
    Polled,
    /// The element is over and its destructor runs inside the poll.
    Destroying,
    /// Returned by itself; its drop runs.
    Returned,
    /// Cut; its drop runs.
    Dropped,
}

struct Simulation<'a> {
    world: &'a World,
    machine: Delivery,
    log: Vec<Entry>,
    now: Moment,
    events: BinaryHeap<Reverse<(Moment, Rank, u64, What)>>,
    count: u64,
    frame: Option<Frame>,
    /// Counts what the frame does; an event of an earlier version is of no interest any more.
    version: u64,
    openings: u32,
}

impl Simulation<'_> {
    fn run(&mut self) {
        self.schedule(self.world.admitted, Rank::Beginning, What::Admit);
        for (number, root) in self.world.roots.iter().enumerate() {
            if root.initiated >= self.world.admitted {
                self.schedule(root.initiated, Rank::Beginning, What::Publish(number));
            }
        }
        for (number, (at, _)) in self.world.stops.iter().enumerate() {
            self.schedule((*at).max(self.world.admitted), Rank::Beginning, What::Stop(number));
        }
        while !self.machine.is_closed() && self.advance() {}
    }

    /// Takes the next event or decides the next cutoff; `false` when there is nothing left to see.
    fn advance(&mut self) -> bool {
        let tick = self.machine.due().map(|due| (due + self.world.lateness).max(self.now));
        let event = self.events.peek().map(|Reverse((at, rank, ..))| (*at, *rank));
        let cutoff = tick.map(|at| (at, Rank::Cutoff));
        let Some(next) = event.into_iter().chain(cutoff).min() else { return false };
        let is_admitted = !self.log.is_empty();
        let latest = self.machine.last_due() + self.world.observe + self.world.lateness;
        if is_admitted && next.0 > latest {
            return false;
        }
        self.now = next.0;
        if next.1 == Rank::Cutoff {
            let length = self.log.len();
            self.observe(Observation::Tick);
            assert!(self.log.len() > length, "what is due is decided when time comes to it");
        } else {
            let Reverse((.., what)) = self.events.pop().expect("it was peeked at");
            self.take(what);
        }
        self.obey();
        true
    }

    fn schedule(&mut self, at: Moment, rank: Rank, what: What) {
        if at != Moment::NEVER {
            self.events.push(Reverse((at, rank, self.count, what)));
            self.count += 1;
        }
    }

    fn end_of_work(&mut self, takes: Duration, what: What) {
        self.schedule(self.now + takes, Rank::EndOfWork, what);
    }

    fn take(&mut self, what: What) {
        match what {
            What::Admit => {
                self.frame = Some(Frame {
                    is: Assignment::Pipeline,
                    element: None,
                    state: FrameState::Polled,
                });
                self.observe(Observation::Admitted {
                    root: self.world.root_at_admission().map(Box::new),
                });
            }
            What::Publish(number) => {
                self.observe(Observation::RootPublished {
                    root: Box::new(self.world.roots[number]),
                });
            }
            What::Stop(number) => {
                self.observe(Observation::Stopped { reason: self.world.stops[number].1 });
            }
            What::Confirms => self.observe(Observation::Confirmed),
            What::Opens(version, step, number) if version == self.version => {
                self.open(step, number);
            }
            What::Closes(opening, step, number) => {
                let evidence = match self.world.work(step).opens[number].kind {
                    Obligation::Task => Evidence::TaskJoined,
                    _ => Evidence::ThreadFinished,
                };
                self.observe(Observation::Closed { opening, evidence, cpu: None });
            }
            What::WorkEnds(version) if version == self.version => self.end_work(),
            What::DestructorEnds(version) if version == self.version => self.return_element(),
            What::FrameGone(version) if version == self.version => self.lose_frame(),
            What::Opens(..) | What::WorkEnds(_) | What::DestructorEnds(_) | What::FrameGone(_) => {}
        }
    }

    fn observe(&mut self, seen: Observation) {
        let first = record(&mut self.machine, self.now, seen, &mut self.log);
        let decisions: Vec<Decision> = self.log[first..]
            .iter()
            .filter_map(|entry| match &entry.event {
                Event::Decided(decision) => Some(decision.clone()),
                Event::Observed(_) => None,
            })
            .collect();
        for decision in decisions {
            match decision {
                Decision::Start { step } if self.machine.may_start_in_course() => self.start(step),
                Decision::Return { .. } => self.leave(FrameState::Returned, Duration::ZERO),
                Decision::Settle { settlement, .. } if settlement != Settlement::Released => {
                    let broker = self.world.broker.as_ref();
                    let confirms_in = broker.expect("somebody is settled with").confirms_in;
                    self.end_of_work(confirms_in, What::Confirms);
                }
                _ => {}
            }
        }
    }

    /// Does what the delivery's task does between two polls.
    fn obey(&mut self) {
        let assignment = self.machine.assignment();
        match (&self.frame, assignment) {
            (None, Assignment::Cleanup(step)) => {
                self.frame =
                    Some(Frame { is: assignment, element: None, state: FrameState::Polled });
                self.start(step);
            }
            (Some(frame), _) if frame.is != assignment && frame.state == FrameState::Polled => {
                let element = frame.element.map(|step| self.world.work(step));
                // Work that does not yield keeps its poll busy, and cannot be dropped before its end.
                if element.is_none_or(|work| work.yields) {
                    let drop_takes = element.map_or(Duration::ZERO, |work| work.drop_takes);
                    self.leave(FrameState::Dropped, drop_takes);
                }
            }
            _ => {}
        }
    }

    fn frame(&mut self) -> &mut Frame {
        self.frame.as_mut().expect("only what a frame holds can end")
    }

    fn start(&mut self, step: StepId) {
        self.version += 1;
        self.frame().element = Some(step);
        let work = self.world.work(step);
        self.end_of_work(work.takes, What::WorkEnds(self.version));
        for number in 0..work.opens.len() {
            self.schedule(self.now, Rank::Beginning, What::Opens(self.version, step, number));
        }
    }

    fn open(&mut self, step: StepId, number: usize) {
        let opening = Opening(self.openings);
        self.openings += 1;
        let Detached { kind, lasts } = self.world.work(step).opens[number];
        self.observe(Observation::Opened { opening, kind, step, thread: None });
        self.end_of_work(lasts, What::Closes(opening, step, number));
    }

    fn end_work(&mut self) {
        let step = self.frame().element.expect("an element runs");
        let drop_takes = self.world.work(step).drop_takes;
        if drop_takes.is_zero() {
            self.return_element();
        } else {
            self.frame().state = FrameState::Destroying;
            self.end_of_work(drop_takes, What::DestructorEnds(self.version));
        }
    }

    fn return_element(&mut self) {
        let frame = self.frame();
        frame.state = FrameState::Polled;
        let is = frame.is;
        let step = frame.element.take().expect("an element runs");
        let work = self.world.work(step);
        let mut verdict = work.says.clone();
        if work.destructor_panics {
            verdict = Verdict::Panic;
            self.note_destructor_panic(is, step);
        }
        let (outcome, code) = match &verdict {
            Verdict::Success => (StepOutcome::Success, None),
            Verdict::Failure { code, .. } => (StepOutcome::Failure, Some(code.clone())),
            Verdict::Panic => (StepOutcome::Panic, None),
        };
        self.note_step_end(step, outcome, code);
        if is != Assignment::Pipeline {
            self.frame = None;
        }
        self.observe(Observation::ElementReturned { step, verdict });
    }

    /// The frame begins to go.
    fn leave(&mut self, state: FrameState, drop_takes: Duration) {
        self.version += 1;
        let frame = self.frame();
        frame.state = state;
        let own = match frame.is {
            Assignment::Pipeline => self.world.frame_takes,
            _ => Duration::ZERO,
        };
        self.end_of_work(drop_takes.saturating_add(own), What::FrameGone(self.version));
    }

    fn lose_frame(&mut self) {
        let frame = self.frame.take().expect("only what is held can go");
        if let Some(step) = frame.element {
            if self.world.work(step).destructor_panics {
                self.note_destructor_panic(frame.is, step);
            }
            self.note_step_end(step, StepOutcome::Dropped, None);
        }
        self.observe(match (frame.is, frame.state) {
            (Assignment::Cleanup(step), _) => Observation::ElementDropped { step },
            (_, FrameState::Returned) => Observation::PipelineReturned,
            _ => Observation::PipelineDropped,
        });
    }

    fn note_destructor_panic(&mut self, is: Assignment, step: StepId) {
        if is == Assignment::Pipeline {
            self.observe(Observation::DestructorPanicked { step });
        }
    }

    fn note_step_end(&mut self, step: StepId, outcome: StepOutcome, code: Option<Code>) {
        let end = StepEnd { step, outcome, code, polls: 1, left: None, over: None, traces: None };
        self.observe(Observation::StepEnded(Arc::new(end)));
    }
}
