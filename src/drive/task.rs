//! The task of one delivery: holds one frame at a time, polls it, and drops it when told to.
//!
//! A frame is owned here and nowhere else, taken out, dropped, and only then reported as gone. What
//! the task is to hold it asks of the machine before and after every poll, so a decision made while
//! it was inside one is never missed.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::drive::cell::{Cell, Next};
use crate::engine::Assignment;
use crate::event::{Observation, StepId, Verdict};
use crate::panics::contain;
use crate::steps::{self, Scene};

type Frame<T> = Pin<Box<dyn Future<Output = T> + Send>>;

enum Held {
    Pipeline(Frame<()>),
    Cleanup(StepId, Frame<Verdict>),
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
        let held = Held::Pipeline(Box::pin(run_course(Arc::clone(&cell), first)));
        Self { waker: Waker::from(Arc::clone(&cell)), cell, held }
    }

    fn drop_frame(&mut self) {
        let frame = std::mem::replace(&mut self.held, Held::Nothing);
        // Each destructor of a step contains its own panic; this is for whatever else may.
        let _ = contain(|| drop(frame));
    }

    /// Says that the frame is gone.
    fn report(&self, seen: Observation) {
        self.cell.shared().watch.let_go(&self.cell);
        self.cell.observe(seen);
    }
}

impl Future for DeliveryTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = self.get_mut();
        task.cell.register(context.waker());
        let mut seen_signal = task.cell.signal_at().is_some();
        let waker = task.waker.clone();
        let mut context = Context::from_waker(&waker);
        loop {
            let assignment = task.cell.assignment();
            match (&mut task.held, assignment) {
                (Held::Pipeline(frame), Assignment::Pipeline) => {
                    if frame.as_mut().poll(&mut context).is_ready() {
                        task.drop_frame();
                        task.report(Observation::PipelineReturned);
                        continue;
                    }
                }
                (Held::Cleanup(step, frame), Assignment::Cleanup(called)) if *step == called => {
                    let step = *step;
                    if let Poll::Ready(verdict) = frame.as_mut().poll(&mut context) {
                        task.drop_frame();
                        task.report(Observation::ElementReturned { step, verdict });
                        continue;
                    }
                }
                (Held::Pipeline(_), _) => {
                    task.drop_frame();
                    task.report(Observation::PipelineDropped);
                    continue;
                }
                (Held::Cleanup(step, _), _) => {
                    let step = *step;
                    task.drop_frame();
                    task.report(Observation::ElementDropped { step });
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
            let signalled = task.cell.signal_at().is_some();
            let missed_signal = signalled && !std::mem::replace(&mut seen_signal, signalled);
            if !missed_signal && task.cell.assignment() == assignment {
                return Poll::Pending;
            }
        }
    }
}

async fn run_course(cell: Arc<Cell>, first: Next) {
    let mut next = first;
    loop {
        match next {
            Next::Start(step) => {
                let scene = Scene::course(Arc::clone(&cell));
                let verdict = steps::run(scene, step).await;
                next = cell.observe(Observation::ElementReturned { step, verdict });
            }
            Next::Return => return,
            Next::Stop => std::future::pending().await,
        }
    }
}
