//! Real sockets and files.
//!
//! A connection is the step's own and goes with its frame; what cannot go with a frame, a look-up or
//! a call to the file system, is done on a thread, which is an obligation of its own. Nothing that was
//! sent or written is ever called undone: a [`Trace`] says how far it had come.

mod file;
mod http;
mod line;
pub(crate) mod peer;
mod tcp;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::{Closer, Effect, StepId, Traces, Verdict};
use crate::steps::block::{LOOKUP_FAILED, WRITE_FAILED};
use crate::steps::blocking::{Awaited, Job, SPAWN_FAILED, Waiting};
use crate::steps::conclude::conclude;
use crate::steps::{Running, Scene};
use crate::workload::{Pool, Step, Work};
use peer::Speaks;

/// Whether the work reaches further than a timer.
pub(super) fn is_io(work: &Work) -> bool {
    matches!(work, Work::Tcp(_) | Work::Http(_) | Work::Read { .. } | Work::Write(_))
}

/// Who begins to speak on the connection of that step.
fn speaks_first(step: &Step) -> Speaks {
    match &step.work {
        Work::Tcp(tcp) if tcp.send.is_empty() => Speaks::Peer,
        _ => Speaks::Client,
    }
}

/// The step's own work, up to and including its `fail` or `panic`.
pub(super) fn work(scene: &Scene, id: StepId, trace: &Arc<Trace>) -> Running<Verdict> {
    let (scene, trace) = (scene.clone(), Arc::clone(trace));
    Box::pin(async move {
        let workload = Arc::clone(scene.workload());
        let step = workload.step(id);
        let worked = match &step.work {
            Work::Tcp(tcp) => tcp::converse(&scene, id, tcp, &trace).await,
            Work::Http(http) => http::ask(&scene, id, http, &trace).await,
            Work::Read { path } => file::read(&scene, id, path, &trace).await,
            Work::Write(write) => file::write(&scene, id, write, &trace).await,
            _ => unreachable!("only io comes here"),
        };
        let verdict = match worked {
            Ok(()) => Verdict::Success,
            Err(Failed { code, retryable }) => Verdict::Failure { code: code.into(), retryable },
        };
        conclude(&scene, id, step, verdict)
    })
}

/// Why a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed {
    code: &'static str,
    retryable: bool,
}

impl Failed {
    const TIMEOUT_CONNECT: Self = Self::for_now("TIMEOUT_CONNECT");
    const TIMEOUT_READ: Self = Self::for_now("TIMEOUT_READ");
    const TIMEOUT_IDLE: Self = Self::for_now("TIMEOUT_IDLE");
    const REFUSED: Self = Self::for_now("CONNECTION_REFUSED");
    const RESET: Self = Self::for_now("CONNECTION_RESET");
    /// No connection, for a reason that has no code of its own.
    const CONNECT: Self = Self::for_now("CONNECT_FAILED");
    const LOOKUP: Self = Self::for_now(LOOKUP_FAILED);
    const TRUNCATED: Self = Self::for_now("TRUNCATED");
    const NO_ANSWER: Self = Self::for_now("NO_ANSWER");
    const HTTP_STATUS: Self = Self::for_good("HTTP_STATUS");
    /// Something came that is no HTTP.
    const NOT_HTTP: Self = Self::for_good("NOT_HTTP");
    const READ: Self = Self::for_good("READ_FAILED");
    const WRITE: Self = Self::for_good(WRITE_FAILED);
    const SPAWN: Self = Self::for_good(SPAWN_FAILED);

    /// Another attempt could succeed.
    const fn for_now(code: &'static str) -> Self {
        Self { code, retryable: true }
    }

    const fn for_good(code: &'static str) -> Self {
        Self { code, retryable: false }
    }
}

/// What an execution leaves outside of its frame, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Trace(Mutex<Left>);

#[derive(Debug, Default)]
struct Left {
    traces: Traces,
    /// The step is over: its thread is to begin nothing more.
    is_over: bool,
}

impl Trace {
    /// What was left, as of the end of the step. From here on its thread begins nothing more, so this
    /// stays true.
    pub(super) fn seen(&self) -> Traces {
        let mut left = self.lock();
        left.is_over = true;
        left.traces
    }

    fn set_effect(&self, effect: Effect) {
        self.lock().traces.effect = Some(effect);
    }

    fn set_closed_by(&self, closer: Closer) {
        self.lock().traces.closed_by = Some(closer);
    }

    /// Notes the effect that the next call can have, unless the step is over.
    fn begin(&self, effect: Option<Effect>) -> bool {
        let mut left = self.lock();
        if !left.is_over {
            left.traces.effect = effect;
        }
        !left.is_over
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does a part of the step's work on a thread, which is an obligation from its beginning to its end.
/// Dropped before that beginning, it never begins; dropped later, the thread goes on.
async fn on_thread<T: Send + 'static>(
    scene: &Scene,
    id: StepId,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failed> {
    let job = Job::hand_over(scene, id, Pool::Shared, Awaited::ByFrame, work);
    Ok(Waiting(job.ok_or(Failed::SPAWN)?).await)
}
