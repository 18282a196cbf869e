//! The task of one delivery: holds one frame at a time, polls it, and drops it when told to.
//!
//! A frame is owned here and nowhere else, taken out, dropped, and only then reported as gone. What
//! the task is to hold it asks of the machine whenever the cell's turn has moved on, before and after
//! every poll, so a decision made while it was inside one is never missed.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::drive::cell::{Cell, Next};
use crate::engine::Assignment;
use crate::event::{DeliveryId, Observation, StepId, Verdict};
use crate::panics::{Panicked, contain};
use crate::steps::{self, Element, Running, Scene};

enum Held {
    Pipeline(Pipeline),
    Cleanup(StepId, Running<Verdict>),
    Nothing,
}

/// A delivery that was admitted, and the first thing that its pipeline is to do.
pub(crate) struct Started {
    pub cell: Arc<Cell>,
    pub first: Next,
}

thread_local! {
    /// The delivery whose task this worker polls.
    static POLLED: std::cell::Cell<Option<DeliveryId>> = const { std::cell::Cell::new(None) };
    /// The delivery that took the slot of the one that is polled.
    static SUCCESSOR: RefCell<Option<Started>> = const { RefCell::new(None) };
}

/// Whether the calling worker is polling the task of that delivery.
pub(crate) fn is_polled_here(delivery: DeliveryId) -> bool {
    POLLED.get() == Some(delivery)
}

/// Gives an admitted delivery its task. When the one that left the slot is being polled here, its
/// task is over with this poll and goes on with the new one: a spawn costs as much as all the rest.
pub(crate) fn start(started: Started, left: Option<DeliveryId>) {
    if left.is_some_and(is_polled_here) && SUCCESSOR.with_borrow(Option::is_none) {
        SUCCESSOR.set(Some(started));
    } else {
        let runtime = started.cell.shared().runtime.clone();
        drop(runtime.spawn(DeliveryTask::new(started)));
    }
}

/// The task of one delivery, and then of the next in its slot.
pub(crate) struct DeliveryTask {
    cell: Arc<Cell>,
    /// Wakes the task and remembers which worker did.
    waker: Waker,
    held: Held,
    /// The cell's turn when it was last asked what to hold, and its answer.
    told: (u32, Assignment),
}

impl DeliveryTask {
    fn new(Started { cell, first }: Started) -> Self {
        let pipeline = Pipeline { scene: Scene::course(Arc::clone(&cell)), next: first, at: None };
        let waker = Waker::from(Arc::clone(&cell));
        // No turn has this number: the first poll asks.
        let told = (u32::MAX, Assignment::Nothing);
        Self { waker, cell, held: Held::Pipeline(pipeline), told }
    }

    /// Drops the frame, and then says that it is gone.
    fn let_go(&mut self, seen: Observation) {
        let frame = std::mem::replace(&mut self.held, Held::Nothing);
        let step = match &frame {
            Held::Pipeline(pipeline) => pipeline.at.as_ref().map(|(step, _)| *step),
            Held::Cleanup(step, _) => Some(*step),
            Held::Nothing => None,
        };
        // Each destructor of a step contains its own panic. Whatever else panics here leaves the release
        // without evidence (X1).
        if let (Err(Panicked), Some(step)) = (contain(|| drop(frame)), step) {
            self.cell.observe(Observation::DestructorPanicked { step });
        }
        self.cell.shared().watch.let_go(&self.cell);
        self.cell.observe(seen);
    }
}

impl Future for DeliveryTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        POLLED.set(Some(task.cell.ticket().id));
        let polled = task.poll_delivery(context);
        POLLED.set(None);
        let Some(successor) = SUCCESSOR.take() else { return polled };
        if polled.is_pending() {
            start(successor, None);
            return Poll::Pending;
        }
        // Its turn comes as that of any new task: behind those that wait for the worker.
        *task = Self::new(successor);
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl DeliveryTask {
    /// Goes on with its delivery; ready when that needs no task any more.
    fn poll_delivery(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let task = self;
        task.cell.register(context.waker());
        loop {
            let turn = task.cell.turn();
            if task.told.0 != turn {
                task.told = (turn, task.cell.assignment());
            }
            match (&mut task.held, task.told.1) {
                (Held::Pipeline(pipeline), Assignment::Pipeline) => {
                    match pipeline.poll(&mut Context::from_waker(&task.waker)) {
                        Poll::Ready(Course::Over) => {
                            task.held = Held::Nothing;
                            continue;
                        }
                        Poll::Ready(Course::Returned) => {
                            task.let_go(Observation::PipelineReturned);
                            continue;
                        }
                        Poll::Pending => {}
                    }
                }
                (Held::Cleanup(step, frame), Assignment::Cleanup(called)) if *step == called => {
                    let step = *step;
                    let polled = frame.as_mut().poll(&mut Context::from_waker(&task.waker));
                    if let Poll::Ready(verdict) = polled {
                        task.let_go(Observation::ElementReturned { step, verdict });
                        continue;
                    }
                }
                (Held::Pipeline(_), _) => {
                    task.let_go(Observation::PipelineDropped);
                    continue;
                }
                (Held::Cleanup(step, _), _) => {
                    let step = *step;
                    task.let_go(Observation::ElementDropped { step });
                    continue;
                }
                (Held::Nothing, Assignment::Cleanup(step)) => {
                    let scene = Scene::cleanup(Arc::clone(&task.cell));
                    task.held = Held::Cleanup(step, steps::run(scene, step));
                    continue;
                }
                (Held::Nothing, Assignment::Pipeline | Assignment::Nothing) => {
                    return Poll::Ready(());
                }
            }
            // Whatever is decided from here on finds the waker that was registered above.
            return Poll::Pending;
        }
    }
}

/// How a course came to its end.
enum Course {
    /// Its frame is gone, and that is noted already.
    Over,
    /// Its frame is still to be let go.
    Returned,
}

/// The pipeline: one element of the course after the other, as the engine says.
struct Pipeline {
    scene: Scene,
    next: Next,
    at: Option<(StepId, Element)>,
}

impl Pipeline {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Course> {
        loop {
            if let Some((step, element)) = &mut self.at {
                let step = *step;
                let Poll::Ready(ended) = element.poll(context) else { return Poll::Pending };
                self.at = None;
                self.next = self.scene.cell().element_returned(step, ended.verdict, ended.end);
            }
            match self.next {
                Next::Start(step) => {
                    self.at = Some((step, Element::new(&self.scene, step)));
                }
                Next::Return => return Poll::Ready(Course::Returned),
                Next::Returned => return Poll::Ready(Course::Over),
                // It will be dropped.
                Next::Stop => return Poll::Pending,
            }
        }
    }
}
