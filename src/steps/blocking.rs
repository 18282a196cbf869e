//! Work on a thread off the async workers, and the future that waits for it.
//!
//! The two are different facts: dropping the future ends the waiting and nothing else. The thread
//! opens its own obligation as the first thing it does and closes it as the last, its destructor
//! included. Work that is still waiting for a thread when its step is dropped never begins (P9); nobody
//! drops a detached step, so its obligation is open from the moment at which it is handed over.
//!
//! Whether a job begins and whether something is owed for it is one fact, under the job's lock: a
//! thread that had begun and not yet opened would let its delivery end as proven.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::drive::{this_thread, this_thread_cpu};
use crate::event::{Observation, Opening, StepEnd, StepId, StepOutcome, Verdict};
use crate::obligation::{Evidence, Obligation};
use crate::panics::contain;
use crate::steps::block::block;
use crate::steps::conclude::{conclude, outcome_of};
use crate::steps::destructor::destroy;
use crate::steps::{Scene, cpu};
use crate::workload::sample::Purpose;
use crate::workload::{CpuPlace, Pool, Step, Work};

/// What a step says whose thread the system would not start.
pub(super) const SPAWN_FAILED: &str = "SPAWN_FAILED";

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

enum Stage<T> {
    Queued,
    Running,
    /// Its word, until somebody takes it.
    Ended(Option<T>),
    /// Given up before it began; it never will.
    Abandoned,
}

struct State<T> {
    stage: Stage<T>,
    waker: Option<Waker>,
    /// What is owed for work that nobody awaits, from before its thread begins.
    opening: Option<Opening>,
}

/// A piece of blocking work, from the queue to its end.
pub(super) struct Job<T> {
    state: Mutex<State<T>>,
}

/// Hands the step's own work to a thread, its destructor included.
pub(super) fn start(scene: &Scene, id: StepId, awaited: Awaited) -> Arc<Job<Verdict>> {
    let pool = match &scene.workload().step(id).work {
        Work::Blocking { pool, .. } => *pool,
        _ => Pool::Own,
    };
    let whole = {
        let scene = scene.clone();
        move || {
            let workload = Arc::clone(scene.workload());
            let step = workload.step(id);
            let worked = contain(|| conclude(&scene, id, step, work(&scene, id, step)));
            let mut verdict = worked.unwrap_or(Verdict::Panic);
            if destroy(&scene, step).is_err() {
                verdict = Verdict::Panic;
            }
            if awaited == Awaited::ByNobody {
                end_step(&scene, id, &verdict);
            }
            verdict
        }
    };
    Job::hand_over(scene, id, pool, awaited, whole).unwrap_or_else(|| {
        let verdict = failure(SPAWN_FAILED);
        if awaited == Awaited::ByNobody {
            end_step(scene, id, &verdict);
        }
        Job::in_stage(Stage::Ended(Some(verdict)))
    })
}

impl<T: Send + 'static> Job<T> {
    fn in_stage(stage: Stage<T>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(State { stage, waker: None, opening: None }) })
    }

    /// Hands work of that step to a thread; `None` when the system gives none. The work must not panic.
    pub(super) fn hand_over(
        scene: &Scene,
        id: StepId,
        pool: Pool,
        awaited: Awaited,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Arc<Self>> {
        let job = Self::in_stage(Stage::Queued);
        let closure = {
            let (job, scene) = (Arc::clone(&job), scene.clone());
            move || job.run(&scene, id, work)
        };
        // The thread cannot begin before this is let go.
        let mut state = job.lock();
        let is_taken = match pool {
            // The runtime panics when it has no thread and is given none.
            Pool::Shared => {
                let runtime = &scene.cell.shared().runtime;
                contain(|| drop(runtime.spawn_blocking(closure))).is_ok()
            }
            Pool::Own => std::thread::Builder::new().name("step".into()).spawn(closure).is_ok(),
        };
        if is_taken && awaited == Awaited::ByNobody {
            state.opening = Some(scene.cell.open(Obligation::Thread, id, None));
        }
        drop(state);
        is_taken.then_some(job)
    }

    /// Gives the work up if it has not begun; answers whether it never will.
    pub(super) fn abandon(&self) -> bool {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Queued) {
            state.stage = Stage::Abandoned;
        }
        matches!(state.stage, Stage::Abandoned)
    }

    /// Begins the work on the calling thread, unless it was given up; answers what is owed for it.
    fn begin(&self, scene: &Scene, id: StepId) -> Option<Opening> {
        let thread = this_thread();
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Queued) {
            return None;
        }
        state.stage = Stage::Running;
        Some(match state.opening {
            Some(opening) => {
                scene.cell.name_thread(opening, thread);
                opening
            }
            None => scene.cell.open(Obligation::Thread, id, thread),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, value: T) {
        let waker = {
            let mut state = self.lock();
            state.stage = Stage::Ended(Some(value));
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// All that the thread does for the step.
    fn run(&self, scene: &Scene, id: StepId, work: impl FnOnce() -> T) {
        let Some(opening) = self.begin(scene, id) else { return };
        let value = work();
        scene.cell.close(opening, Evidence::ThreadFinished, Some(this_thread_cpu()));
        self.end(value);
    }
}

/// Waits for a job.
pub(super) struct Waiting<T: Send + 'static>(pub(super) Arc<Job<T>>);

impl<T: Send + 'static> Future for Waiting<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock();
        if let Stage::Ended(value) = &mut state.stage
            && let Some(value) = value.take()
        {
            return Poll::Ready(value);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T: Send + 'static> Drop for Waiting<T> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn end_step(scene: &Scene, step: StepId, verdict: &Verdict) {
    let (outcome, code) = outcome_of(verdict);
    let end = StepEnd { step, outcome, code, polls: 0, left: None, over: None, traces: None };
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

pub(super) fn failure(code: &str) -> Verdict {
    Verdict::Failure { code: code.into(), retryable: false }
}

/// The outcome of waiting that was given up.
pub(super) fn outcome_when_dropped(job: &Job<Verdict>) -> StepOutcome {
    if job.abandon() { StepOutcome::Skipped } else { StepOutcome::Dropped }
}
