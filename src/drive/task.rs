//! The task of one delivery: holds one frame at a time, polls it, and drops it when told to.
//!
//! A frame is owned here and nowhere else, taken out, dropped, and only then reported as gone. What
//! the task is to hold it asks of the machine whenever the cell's turn has moved on, before and after
//! every poll, so a decision made while it was inside one is never missed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::drive::cell::{Cell, Next};
use crate::engine::Assignment;
use crate::event::{Observation, StepId, Verdict};
use crate::panics::contain;
use crate::steps::{self, Element, Running, Scene};

enum Held {
    Pipeline(Pipeline),
    Cleanup(StepId, Running<Verdict>),
    Nothing,
}

/// The task of one delivery.
pub(crate) struct DeliveryTask {
    cell: Arc<Cell>,
    /// Wakes the task and remembers which worker did.
    waker: Waker,
    held: Held,
}

impl DeliveryTask {
    /// The task of an admitted delivery whose course begins with `first`.
    pub(crate) fn new(cell: Arc<Cell>, first: Next) -> Self {
        let pipeline = Pipeline { scene: Scene::course(Arc::clone(&cell)), next: first, at: None };
        Self { waker: Waker::from(Arc::clone(&cell)), cell, held: Held::Pipeline(pipeline) }
    }

    fn drop_frame(&mut self) {
        let frame = std::mem::replace(&mut self.held, Held::Nothing);
        // Each destructor of a step contains its own panic; this is for whatever else may.
        let _ = contain(|| drop(frame));
    }

    /// Drops the frame, and then says that it is gone.
    fn let_go(&mut self, seen: Observation) {
        self.drop_frame();
        self.cell.shared().watch.let_go(&self.cell);
        self.cell.observe(seen);
    }
}

impl Future for DeliveryTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        task.cell.register(context.waker());
        loop {
            let turn = task.cell.turn();
            let assignment = task.cell.assignment();
            match (&mut task.held, assignment) {
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
            // Pending. A signal or cut that came during the poll may have found no waker to use.
            if task.cell.turn() == turn {
                return Poll::Pending;
            }
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
