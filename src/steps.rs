//! What the steps of a workload do, for real.
//!
//! [`run`] is the way into every step: it draws whether the step runs, starts it detached or polls
//! it in a [`frame`], and gives its verdict. One file per kind of work. A step says what it did by
//! observations to its delivery's cell; it decides nothing about deadlines.

mod block;
mod blocking;
mod compose;
mod conclude;
mod cooperative;
mod cpu;
mod destructor;
mod frame;
pub(crate) mod io;
mod limit;
mod polls;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use crate::drive::{Cell, Join};
use crate::event::{Observation, StepEnd, StepId, StepOutcome, Verdict};
use crate::obligation::Obligation;
use crate::steps::frame::Frame;
use crate::timeline::Moment;
use crate::workload::sample::{Draw, NameHash, Occasion, Purpose};
use crate::workload::{Step, Work, Workload};

pub(crate) type Running<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Set when a race is over; a branch that is dropped then has lost it.
type Race = Arc<AtomicBool>;

/// Which signal a step can see (C3).
#[derive(Clone, Copy, Debug)]
enum Part {
    /// The delivery's own.
    Course,
    /// That of the clean-up frame of this number.
    Cleanup(u32),
}

/// Where a step runs: whose delivery, in which part of it, and whether detached from its frame.
#[derive(Clone)]
pub(crate) struct Scene {
    cell: Arc<Cell>,
    part: Part,
    detached: bool,
}

impl Scene {
    /// In the delivery's normal course.
    pub(crate) fn course(cell: Arc<Cell>) -> Self {
        Self { cell, part: Part::Course, detached: false }
    }

    /// In the callback or disposer that was called last.
    pub(crate) fn cleanup(cell: Arc<Cell>) -> Self {
        let number = cell.cleanup_number();
        Self { cell, part: Part::Cleanup(number), detached: false }
    }

    /// The delivery's cell.
    pub(crate) fn cell(&self) -> &Arc<Cell> {
        &self.cell
    }

    fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    fn workload(&self) -> &Arc<Workload> {
        &self.cell.shared().workload
    }

    fn in_cleanup(&self) -> bool {
        matches!(self.part, Part::Cleanup(_))
    }

    /// Whether this is the pipeline's own frame: what happens here is the execution's.
    fn in_execution(&self) -> bool {
        !self.in_cleanup() && !self.detached
    }

    /// Lets a step begin, unless nothing may start any more; answers when it began.
    fn begin(&self, step: StepId) -> Option<Moment> {
        if self.detached {
            Some(self.cell.begin_detached(step))
        } else {
            self.cell.begin(step, self.in_cleanup())
        }
    }

    fn now(&self) -> Moment {
        self.cell.shared().control.now()
    }

    fn is_signalled(&self) -> bool {
        match self.part {
            Part::Course => self.cell.signal_at().is_some(),
            Part::Cleanup(number) => self.cell.is_cleanup_cut(number),
        }
    }

    /// Looks at the signal; the first step of a delivery that sees it is noted.
    fn look(&self, step: StepId) -> bool {
        let signalled = self.is_signalled();
        if signalled && !self.in_cleanup() {
            self.cell.note_signal_seen(step);
        }
        signalled
    }

    fn draw(&self, step: &Step, purpose: Purpose) -> Draw {
        let ticket = self.cell.ticket();
        let occasion = Occasion {
            seed: self.workload().load.seed,
            message: ticket.message,
            attempt: ticket.attempt,
            retry: 1,
            step: NameHash::new(&step.name),
        };
        Draw::new(occasion, purpose)
    }
}

/// How an element of the course ended.
pub(crate) struct Ended {
    pub verdict: Verdict,
    /// The end of its step, if that is still to be noted.
    pub end: Option<Arc<StepEnd>>,
}

/// An element of the course: a plain step is its own frame and costs no more than that.
pub(crate) enum Element {
    Plain(Frame),
    Policed(Running<Verdict>),
}

impl Element {
    /// The element that is this step; it begins when it is first polled.
    pub(crate) fn new(scene: &Scene, id: StepId) -> Self {
        let step = scene.workload().step(id);
        if step.share < 1.0 || step.detach || step.optional {
            Self::Policed(run(scene.clone(), id))
        } else {
            Self::Plain(Frame::new(scene.clone(), id, None))
        }
    }

    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        match self {
            Self::Plain(frame) => frame
                .advance(context)
                .map(|(end, verdict)| Ended { verdict, end: Some(frame.share(end)) }),
            Self::Policed(running) => {
                running.as_mut().poll(context).map(|verdict| Ended { verdict, end: None })
            }
        }
    }
}

/// Runs a step to its verdict, after its policies.
pub(crate) fn run(scene: Scene, id: StepId) -> Running<Verdict> {
    run_branch(scene, id, None)
}

fn run_branch(scene: Scene, id: StepId, race: Option<Race>) -> Running<Verdict> {
    Box::pin(async move {
        let workload = Arc::clone(scene.workload());
        let step = workload.step(id);
        if step.share < 1.0 && !scene.draw(step, Purpose::Share).happens(step.share) {
            skip(&scene, id);
            return Verdict::Success;
        }
        if step.detach {
            if !start_detached(&scene, id, step) {
                // Nothing starts any more; the frame that this belongs to is about to be dropped.
                std::future::pending::<()>().await;
            }
            return Verdict::Success;
        }
        let verdict = Frame::new(scene.clone(), id, race).await;
        if step.optional && verdict != Verdict::Success {
            scene.cell.observe(Observation::Degraded { step: id });
            return Verdict::Success;
        }
        verdict
    })
}

fn skip(scene: &Scene, step: StepId) {
    let end = StepEnd {
        step,
        outcome: StepOutcome::Skipped,
        code: None,
        polls: 0,
        left: None,
        over: None,
        traces: None,
    };
    scene.cell.observe(Observation::StepEnded(Arc::new(end)));
}

/// Starts a step that nobody awaits; answers whether it may start at all.
fn start_detached(scene: &Scene, id: StepId, step: &Step) -> bool {
    let Some(began) = scene.begin(id) else { return false };
    let scene = scene.clone().detached();
    if blocking::is_threaded(&step.work) {
        // Nobody awaits it, so there is no task: the thread alone is the obligation.
        blocking::start(&scene, id, blocking::Awaited::ByNobody);
        return true;
    }
    let cell = Arc::clone(&scene.cell);
    let opening = cell.open(Obligation::Task, id, None);
    let frame = Frame::begun(scene, id, began);
    let task = async move {
        // What detached work says of itself stands in the log (P10).
        let _ = frame.await;
    };
    Join::watch(cell.shared().runtime.spawn(task), cell, opening);
    true
}

/// The step's own work, up to and including its `fail` or `panic`.
fn work(scene: &Scene, id: StepId) -> Running<Verdict> {
    let scene = scene.clone();
    let workload = Arc::clone(scene.workload());
    Box::pin(async move {
        let step = workload.step(id);
        let verdict = match &step.work {
            Work::Cpu { amount, yield_every, .. } => {
                cpu::compute(&scene, step, amount, *yield_every).await;
                Verdict::Success
            }
            Work::Cooperative { .. } => return cooperative::work(&scene, id, step).await,
            Work::Sleep { duration } => {
                let span = scene.draw(step, Purpose::Duration).duration(duration);
                tokio::time::sleep(span).await;
                Verdict::Success
            }
            Work::Polls { count } => {
                polls::Pauses::new(*count).await;
                Verdict::Success
            }
            Work::Sequence { steps } => compose::sequence(&scene, steps).await,
            Work::Parallel { steps, wait } => compose::parallel(&scene, steps, *wait).await,
            Work::Choice { steps, weights } => compose::choice(&scene, step, steps, weights).await,
            Work::Blocking { .. } => unreachable!("blocking work runs on a thread"),
            Work::Tcp(_) | Work::Http(_) | Work::Read { .. } | Work::Write(_) => {
                unreachable!("io has a trace")
            }
        };
        conclude::conclude(&scene, id, step, verdict)
    })
}
