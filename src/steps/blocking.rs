//! Work on a thread off the async workers, and the future that waits for it.
//!
//! The two are different facts: dropping the future ends the waiting and nothing else. The thread
//! opens its own obligation as the first thing it does and closes it as the last, its destructor
//! included. Work that is still waiting for a thread when its step is dropped never begins (P9).

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::drive::{this_thread, this_thread_cpu};
use crate::event::{Observation, StepEnd, StepId, StepOutcome, Verdict};
use crate::obligation::{Evidence, Obligation};
use crate::panics::contain;
use crate::steps::block::block;
use crate::steps::conclude::{conclude, outcome_of};
use crate::steps::destructor::destroy;
use crate::steps::{Scene, cpu};
use crate::workload::sample::Purpose;
use crate::workload::{CpuPlace, Pool, Step, Work};

/// What a step says whose thread the system would not start.
const SPAWN_FAILED: &str = "SPAWN_FAILED";

/// Whether the work runs on a thread and not in the frame of its delivery.
pub(super) fn is_threaded(work: &Work) -> bool {
    matches!(work, Work::Blocking { .. } | Work::Cpu { on: CpuPlace::Thread, .. })
}

/// Who learns how the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    /// The future of the step.
    ByFrame,
    /// Only the log: the step is detached.
    ByNobody,
}

enum Stage {
    Queued,
    Running,
    Ended(Verdict),
    /// Given up before it began; it never will.
    Abandoned,
}

struct State {
    stage: Stage,
    waker: Option<Waker>,
}

/// A piece of blocking work, from the queue to its end.
pub(super) struct Job {
    state: Mutex<State>,
}

impl Job {
    /// Hands the work to a thread.
    pub(super) fn start(scene: &Scene, id: StepId, awaited: Awaited) -> Arc<Self> {
        let job = Arc::new(Self { state: Mutex::new(State { stage: Stage::Queued, waker: None }) });
        let pool = match &scene.workload().step(id).work {
            Work::Blocking { pool, .. } => *pool,
            _ => Pool::Own,
        };
        let closure = {
            let (job, scene) = (Arc::clone(&job), scene.clone());
            move || job.run(&scene, id, awaited)
        };
        match pool {
            Pool::Shared => drop(scene.cell.shared().runtime.spawn_blocking(closure)),
            Pool::Own => {
                let thread = std::thread::Builder::new().name("step".into()).spawn(closure);
                if thread.is_err() {
                    let verdict = failure(SPAWN_FAILED);
                    if awaited == Awaited::ByNobody {
                        end_step(scene, id, &verdict);
                    }
                    job.end(verdict);
                }
            }
        }
        job
    }

    /// Gives the work up if it has not begun; answers whether it never will.
    pub(super) fn abandon(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(state.stage, Stage::Queued) {
            state.stage = Stage::Abandoned;
        }
        matches!(state.stage, Stage::Abandoned)
    }

    fn begin(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = matches!(state.stage, Stage::Queued);
        if is_wanted {
            state.stage = Stage::Running;
        }
        is_wanted
    }

    fn end(&self, verdict: Verdict) {
        let waker = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.stage = Stage::Ended(verdict);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// All that the thread does for the step.
    fn run(&self, scene: &Scene, id: StepId, awaited: Awaited) {
        if !self.begin() {
            return;
        }
        let opening = scene.cell.open(Obligation::Thread, id, this_thread());
        let workload = Arc::clone(scene.workload());
        let step = workload.step(id);
        let worked = contain(|| conclude(scene, id, step, work(scene, id, step)));
        let mut verdict = worked.unwrap_or(Verdict::Panic);
        if destroy(scene, step).is_err() {
            verdict = Verdict::Panic;
        }
        if awaited == Awaited::ByNobody {
            end_step(scene, id, &verdict);
        }
        scene.cell.close(opening, Evidence::ThreadFinished, Some(this_thread_cpu()));
        self.end(verdict);
    }
}

/// Waits for a job.
pub(super) struct Waiting(pub(super) Arc<Job>);

impl Future for Waiting {
    type Output = Verdict;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Stage::Ended(verdict) = &state.stage {
            return Poll::Ready(verdict.clone());
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn end_step(scene: &Scene, step: StepId, verdict: &Verdict) {
    let (outcome, code) = outcome_of(verdict);
    let end = StepEnd { step, outcome, code, polls: 0, left: None, over: None };
    scene.cell.observe(Observation::StepEnded(Arc::new(end)));
}

/// The work itself. What ends early on seeing the signal succeeds, and its `fail` does not apply.
fn work(scene: &Scene, id: StepId, step: &Step) -> Verdict {
    match &step.work {
        Work::Blocking { op, duration, looks_every, .. } => {
            let span = scene.draw(step, Purpose::Duration).duration(duration);
            let Some(looks_every) = looks_every else { return block(*op, span) };
            let until = Instant::now() + span;
            loop {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() || scene.look(id) {
                    return Verdict::Success;
                }
                let verdict = block(*op, left.min(*looks_every));
                if verdict != Verdict::Success {
                    return verdict;
                }
            }
        }
        Work::Cpu { amount, .. } => {
            cpu::compute_here(scene, step, amount, Purpose::Duration);
            Verdict::Success
        }
        _ => unreachable!("only threaded work comes here"),
    }
}

fn failure(code: &str) -> Verdict {
    Verdict::Failure { code: code.into(), retryable: false }
}

/// The outcome of waiting that was given up.
pub(super) fn outcome_when_dropped(job: &Job) -> StepOutcome {
    if job.abandon() { StepOutcome::Skipped } else { StepOutcome::Dropped }
}
