//! The frame of one execution of a step: its poll budget, its timeout, its work, its destructor.
//!
//! The frame owns the work and the destructor apart from each other. A panic in the work is caught
//! around its poll, so the destructor runs after the unwinding and never during it; a panic in the
//! destructor is caught around the destructor alone. Seen to hold for destructors that panic alone,
//! in pairs, and behind a panic in the work; a frame that left them to the language aborted the
//! process in each of the last two.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::drive::{Place, Stay};
use crate::event::{Code, Inside, Observation, StepEnd, StepId, StepOutcome, Verdict};
use crate::panics::{Panicked, contain};
use crate::steps::blocking::{self, Awaited, Waiting};
use crate::steps::conclude::{conclude, outcome_of};
use crate::steps::destructor::destroy;
use crate::steps::io::{self, Trace};
use crate::steps::limit::{self, Limit};
use crate::steps::polls::Pauses;
use crate::steps::{Race, Running, Scene, work};
use crate::timeline::Moment;
use crate::workload::{Step, Work};

const TIMEOUT_TOTAL: &str = "TIMEOUT_TOTAL";
const POLL_BUDGET_EXHAUSTED: &str = "POLL_BUDGET_EXHAUSTED";
const LOST_RACE: &str = "LOST_RACE";

/// The step's own work, as far as it has come.
enum Doing {
    /// Its pauses can be counted, also when it is dropped.
    Polls(Pauses),
    /// A thread does it.
    Thread(Waiting<Verdict>),
    /// Sockets or files; what it leaves is seen when it is gone.
    Io(Running<Verdict>, Arc<Trace>),
    /// Anything else.
    Other(Running<Verdict>),
    /// Gone.
    Nothing,
}

/// One execution of a step.
pub(crate) struct Frame {
    scene: Scene,
    id: StepId,
    doing: Doing,
    timer: Option<Limit>,
    race: Option<Race>,
    polls: u64,
    /// When it began; the start of its first poll.
    began: Moment,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not polled yet, and not noted as begun.
    New,
    /// Noted as begun, not polled yet.
    Begun,
    Working,
    Ended,
}

impl Frame {
    /// The frame of a step that begins when it is first polled, if it still may.
    pub(super) fn new(scene: Scene, id: StepId, race: Option<Race>) -> Self {
        Self::in_state(scene, id, race, State::New)
    }

    /// The frame of a detached step that was let begin already.
    pub(super) fn begun(scene: Scene, id: StepId, began: Moment) -> Self {
        let mut frame = Self::in_state(scene, id, None, State::Begun);
        frame.began = began;
        frame
    }

    fn in_state(scene: Scene, id: StepId, race: Option<Race>, state: State) -> Self {
        let (doing, timer, began) = (Doing::Nothing, None, Moment::START);
        Self { scene, id, doing, timer, race, polls: 0, began, state }
    }

    fn step(&self) -> &Step {
        self.scene.workload().step(self.id)
    }

    fn begin(&mut self) {
        self.timer =
            self.step().timeout.and_then(|timeout| Limit::new(&self.scene, self.began, timeout));
        self.doing = match &self.step().work {
            Work::Polls { count } => Doing::Polls(Pauses::new(*count)),
            other if blocking::is_threaded(other) => {
                Doing::Thread(Waiting(blocking::start(&self.scene, self.id, Awaited::ByFrame)))
            }
            other if io::is_io(other) => {
                let trace = Arc::new(Trace::default());
                Doing::Io(io::work(&self.scene, self.id, &trace), trace)
            }
            _ => Doing::Other(work(&self.scene, self.id)),
        };
        self.state = State::Working;
    }

    fn over(&self) -> Option<Duration> {
        let due = self.timer.as_ref()?.due();
        let now = self.now();
        (now > due).then(|| now.since(due))
    }

    fn now(&self) -> Moment {
        self.scene.cell.shared().control.now()
    }

    fn enter(&self, inside: Inside, now: Moment) -> Stay {
        let place = Place {
            delivery: self.scene.cell.ticket().id,
            step: self.id,
            inside,
            detached: self.scene.detached,
        };
        self.scene.cell.shared().watch.enter(place, now)
    }

    fn poll_work(&mut self, context: &mut Context<'_>) -> Result<Poll<Verdict>, Panicked> {
        let now = if self.polls == 1 { self.began } else { self.now() };
        let _stay = self.enter(Inside::Poll, now);
        let (scene, id) = (&self.scene, self.id);
        let step = scene.workload().step(id);
        match &mut self.doing {
            Doing::Polls(pauses) => contain(|| {
                Pin::new(pauses).poll(context).map(|()| conclude(scene, id, step, Verdict::Success))
            }),
            Doing::Thread(waiting) => Ok(Pin::new(waiting).poll(context)),
            Doing::Other(future) | Doing::Io(future, _) => {
                contain(|| future.as_mut().poll(context))
            }
            Doing::Nothing => Ok(Poll::Pending),
        }
    }

    /// Drops the work and runs the destructor; what is still to be noted is how the execution ended.
    fn end(
        &mut self,
        outcome: StepOutcome,
        code: Option<Code>,
        verdict: Verdict,
    ) -> (StepEnd, Verdict) {
        self.state = State::Ended;
        let over = self.over();
        let (step, polls) = (self.id, self.polls);
        let mut end = StepEnd { step, outcome, code, polls, left: None, over, traces: None };
        let doing = std::mem::replace(&mut self.doing, Doing::Nothing);
        let mut is_on_thread = false;
        match &doing {
            Doing::Polls(pauses) if outcome == StepOutcome::Dropped => {
                end.left = Some(pauses.left());
            }
            Doing::Thread(waiting) => {
                is_on_thread = true;
                if outcome == StepOutcome::Dropped {
                    end.outcome = blocking::outcome_when_dropped(&waiting.0);
                }
            }
            Doing::Polls(_) | Doing::Other(_) | Doing::Io(..) | Doing::Nothing => {}
        }
        let trace = match &doing {
            Doing::Io(_, trace) => Some(Arc::clone(trace)),
            _ => None,
        };
        // On a thread, the destructor is the thread's (P8).
        let has_destructor = self.step().on_drop.is_some() && !is_on_thread;
        if !has_destructor && matches!(doing, Doing::Polls(_) | Doing::Thread(_) | Doing::Nothing) {
            return (end, verdict);
        }
        let stay = self.enter(Inside::Destructor, self.now());
        let dropped = contain(|| drop(doing));
        let destroyed = if has_destructor { destroy(&self.scene, self.step()) } else { Ok(()) };
        drop(stay);
        end.traces = trace.map(|trace| trace.seen());
        if dropped.is_ok() && destroyed.is_ok() {
            return (end, verdict);
        }
        if self.scene.in_execution() {
            self.scene.cell.observe(Observation::DestructorPanicked { step: self.id });
        }
        // Dropped with the frame around it, it stays dropped; alone, it panicked (P8).
        if end.outcome == StepOutcome::Dropped && end.code.is_none() {
            return (end, verdict);
        }
        (StepEnd { outcome: StepOutcome::Panic, code: None, ..end }, Verdict::Panic)
    }

    /// Polls the work; the end of the step is for the caller to note.
    pub(crate) fn advance(&mut self, context: &mut Context<'_>) -> Poll<(StepEnd, Verdict)> {
        if self.state == State::New {
            let Some(began) = self.scene.begin(self.id) else {
                // Nothing starts any more; whoever holds this frame is about to drop it.
                return Poll::Pending;
            };
            self.began = began;
            self.state = State::Begun;
        }
        if self.state == State::Begun {
            self.begin();
        }
        if self.step().poll_budget == Some(self.polls) {
            return Poll::Ready(self.end_dropped(POLL_BUDGET_EXHAUSTED, false));
        }
        self.polls += 1;
        match self.poll_work(context) {
            Ok(Poll::Ready(verdict)) => {
                let (outcome, code) = outcome_of(&verdict);
                Poll::Ready(self.end(outcome, code, verdict))
            }
            Ok(Poll::Pending) if limit::is_over(&mut self.timer, &self.scene, context) => {
                Poll::Ready(self.end_dropped(TIMEOUT_TOTAL, true))
            }
            Ok(Poll::Pending) => Poll::Pending,
            Err(Panicked) => Poll::Ready(self.end(StepOutcome::Panic, None, Verdict::Panic)),
        }
    }

    /// The end as the log takes it; the most common one is there already.
    pub(crate) fn share(&self, end: StepEnd) -> Arc<StepEnd> {
        let plain = &self.scene.cell.shared().plain_ends[self.id.0 as usize];
        if end == **plain { Arc::clone(plain) } else { Arc::new(end) }
    }

    fn note(&self, end: StepEnd) {
        self.scene.cell.observe(Observation::StepEnded(self.share(end)));
    }

    fn end_dropped(&mut self, code: &str, retryable: bool) -> (StepEnd, Verdict) {
        let code: Code = code.into();
        let verdict = Verdict::Failure { code: Code::clone(&code), retryable };
        self.end(StepOutcome::Dropped, Some(code), verdict)
    }
}

impl Future for Frame {
    type Output = Verdict;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        let frame = self.get_mut();
        frame.advance(context).map(|(end, verdict)| {
            frame.note(end);
            verdict
        })
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if matches!(self.state, State::Begun | State::Working) {
            let lost = self.race.as_ref().is_some_and(|race| race.load(Ordering::Relaxed));
            let code = lost.then(|| LOST_RACE.into());
            // Nobody waits for this verdict.
            let (end, _) = self.end(StepOutcome::Dropped, code, Verdict::Success);
            self.note(end);
        }
    }
}
