//! One delivery's phases, from admission to its last receipt.
//!
//! The calling rule: one observation, then all of its decisions, then the next. What was due
//! before `now` is decided first (invariant 1). At the very instant, ends of work count before
//! cutoffs, and cutoffs before everything else: that is the one answer to a tie (W3).

use std::sync::Arc;
use std::time::Duration;

use crate::engine::course::Course;
use crate::event::{Decision, Observation, Settlement, StepId, Verdict};
use crate::plan::Plan;
use crate::timeline::{Moment, Reason, Root, Signal, Timeline};

/// The part of the time before `E` that disposal keeps, at most (K2).
const DISPOSAL_SHARE: Duration = Duration::from_millis(250);

/// What the delivery's task is to hold; whatever else it holds is to be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// The pipeline's frame: poll it on.
    Pipeline,
    /// The frame of this callback or disposer.
    Cleanup(StepId),
    /// Nothing for now. A task that holds nothing either is over.
    Nothing,
}

/// What the task was last seen to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    None,
    Pipeline,
    Cleanup(StepId),
}

/// Where a delivery stands. `E` is apart from it: a frozen delivery keeps its phase.
#[derive(Clone, Debug)]
enum Phase {
    /// Not admitted; may never be.
    Waiting,
    /// The pipeline is polled: before the signal, or inside its window.
    Course,
    /// The course is over; its frame is not seen gone.
    Returning,
    /// The window is over; the frame may be inside a poll, parked, or being dropped.
    Cut,
    /// A termination callback runs, or was cut and is being dropped.
    Callback { step: StepId, until: Moment, cut: bool },
    /// The disposer runs, or was cut and is being dropped.
    Disposal { step: StepId, until: Moment, cut: bool },
    /// The broker was told; it may or may not have heard.
    Settling { settlement: Settlement, until: Moment },
    /// Settled, released, revoked or never started.
    Over { unconfirmed: Option<Settlement> },
}

/// What time alone brings, in the order in which it is decided at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Signal,
    Cut,
    CutCleanup,
    Freeze,
    Expire,
    FreeSlot,
}

/// The machine of one delivery.
#[derive(Clone, Debug)]
pub struct Delivery {
    plan: Arc<Plan>,
    attempt: u32,
    timeline: Option<Timeline>,
    root: Option<Root>,
    /// The pipeline's signal, and the first of its kind.
    signal: Option<Signal>,
    /// Whether what is detached may see a signal although the pipeline never had one (P10).
    detached_signalled: bool,
    /// A stop that came when nobody was there to hear it: what is opened later hears it at once.
    stopped: Option<Signal>,
    course: Course,
    phase: Phase,
    frame: Frame,
    /// Callbacks that are due and not started, the next one last.
    callbacks: Vec<StepId>,
    chain_end: Moment,
    cleanup_failed: bool,
    /// Whether the course was over before the window was: its verdict stands.
    returned_in_time: bool,
    /// When the confirmation that has not come was or is due.
    settlement_due: Moment,
    /// Tasks and threads without a receipt.
    open: u32,
    /// `E` as it stood when it came: no root moves it any more (X4).
    frozen: Option<Moment>,
    holds_slot: bool,
    /// What time alone brings next; worked out anew after whatever can move it.
    next: Option<(Moment, Due)>,
}

impl Delivery {
    /// A delivery that waits; `attempt` counts the deliveries of its message, this one included.
    pub fn new(plan: Arc<Plan>, attempt: u32) -> Self {
        Self {
            plan,
            attempt,
            timeline: None,
            root: None,
            signal: None,
            detached_signalled: false,
            stopped: None,
            course: Course::new(),
            phase: Phase::Waiting,
            frame: Frame::None,
            callbacks: Vec::new(),
            chain_end: Moment::NEVER,
            cleanup_failed: false,
            returned_in_time: false,
            settlement_due: Moment::START,
            open: 0,
            frozen: None,
            holds_slot: false,
            next: None,
        }
    }

    /// Takes one observation and appends what follows from it, in order. `now` never goes back.
    pub fn observe(&mut self, now: Moment, seen: &Observation, decisions: &mut Vec<Decision>) {
        let tie = Tie::of(seen);
        self.decide_due(now, tie, decisions);
        self.take(now, seen, decisions);
        if tie == Tie::Cutoff {
            self.decide_due(now, tie, decisions);
        }
    }

    /// When time alone will bring the next decision.
    pub fn due(&self) -> Option<Moment> {
        self.next.map(|(at, _)| at)
    }

    /// What the task is to hold now.
    pub fn assignment(&self) -> Assignment {
        match self.phase {
            Phase::Course | Phase::Returning => Assignment::Pipeline,
            Phase::Callback { step, cut: false, .. } | Phase::Disposal { step, cut: false, .. } => {
                Assignment::Cleanup(step)
            }
            Phase::Waiting
            | Phase::Cut
            | Phase::Callback { .. }
            | Phase::Disposal { .. }
            | Phase::Settling { .. }
            | Phase::Over { .. } => Assignment::Nothing,
        }
    }

    /// Whether a nested or detached step of the execution may begin: nothing of the normal course
    /// starts after the cut (invariant 4).
    pub fn may_start_in_course(&self) -> bool {
        matches!(self.phase, Phase::Course)
    }

    /// Whether a nested or detached step of a callback or disposer may begin.
    pub fn may_start_in_cleanup(&self) -> bool {
        matches!(self.assignment(), Assignment::Cleanup(_))
    }

    /// Whether every obligation has its receipt and nothing is left to decide.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Over { unconfirmed: None })
            && self.frame == Frame::None
            && self.open == 0
            && !self.holds_slot
    }

    /// Whether `E` has come while something was still open.
    pub fn is_overdue(&self) -> bool {
        self.frozen.is_some() && !self.is_closed()
    }

    /// `E` as it stands; `None` before admission.
    pub fn end(&self) -> Option<Moment> {
        self.frozen.or_else(|| self.timeline.map(|timeline| timeline.end(self.signal, self.root)))
    }

    /// The latest instant at which something of this delivery is due.
    pub fn last_due(&self) -> Moment {
        self.end().unwrap_or(Moment::START).max(self.settlement_due)
    }

    /// The frame that the task was last seen to hold, as an assignment; `Nothing` when it holds none.
    pub fn holds(&self) -> Assignment {
        match self.frame {
            Frame::None => Assignment::Nothing,
            Frame::Pipeline => Assignment::Pipeline,
            Frame::Cleanup(step) => Assignment::Cleanup(step),
        }
    }

    /// The cutoff that a step of the course may not set a timer at or past (P2).
    pub fn normal_cutoff(&self) -> Option<Moment> {
        self.timeline.map(|timeline| timeline.signal_due(self.root).1)
    }

    /// Whether time alone has something to decide before `seen` counts.
    pub fn has_due(&self, now: Moment, seen: &Observation) -> bool {
        let tie = Tie::of(seen);
        self.due().is_some_and(|at| at < now || (at == now && tie == Tie::Cutoff))
    }

    fn next_due(&self) -> Option<(Moment, Due)> {
        let timeline = self.timeline?;
        let end = self.end()?;
        let mut earliest: Option<(Moment, Due)> = None;
        let mut consider = |at, due| {
            if earliest.is_none_or(|other| (at, due) < other) {
                earliest = Some((at, due));
            }
        };
        match (&self.phase, self.signal) {
            (Phase::Course, None) => consider(timeline.signal_due(self.root).1, Due::Signal),
            (Phase::Course, Some(signal)) => {
                consider(timeline.window_end(signal, self.root), Due::Cut);
            }
            (_, None) if self.open > 0 && !self.detached_signalled => {
                consider(self.signal_due().at, Due::Signal);
            }
            _ => {}
        }
        match self.phase {
            Phase::Callback { until, cut: false, .. }
            | Phase::Disposal { until, cut: false, .. } => {
                consider(until.min(end), Due::CutCleanup);
            }
            Phase::Settling { until, .. } => consider(until, Due::Expire),
            _ => {}
        }
        if self.frozen.is_none() && !self.is_closed() {
            consider(end, Due::Freeze);
        }
        // What is not released keeps the slot so long at most; a settlement has an end of its own.
        let is_settled = matches!(self.phase, Phase::Over { .. });
        if self.frozen.is_some() && is_settled && self.holds_slot && self.frame != Frame::None {
            consider(end + self.plan.observe, Due::FreeSlot);
        }
        earliest
    }

    fn decide_due(&mut self, now: Moment, tie: Tie, decisions: &mut Vec<Decision>) {
        while let Some((at, due)) = self.next {
            if at > now || (at == now && tie == Tie::EndOfWork) {
                return;
            }
            self.decide(now, at, due, decisions);
            self.next = self.next_due();
        }
    }

    /// Decides what fell due at `at`. The clock decides: `now` may be later, and what follows in
    /// sequence begins now.
    fn decide(&mut self, now: Moment, at: Moment, due: Due, decisions: &mut Vec<Decision>) {
        match due {
            Due::Signal => self.signal(self.signal_due(), decisions),
            Due::Cut => {
                self.phase = Phase::Cut;
                decisions.push(Decision::Cut { due: at });
            }
            Due::CutCleanup => self.cut_cleanup(at, decisions),
            Due::Freeze => self.freeze(now, at, decisions),
            Due::Expire => {
                let Phase::Settling { settlement, .. } = self.phase else {
                    unreachable!("only a settlement expires");
                };
                self.phase = Phase::Over { unconfirmed: Some(settlement) };
                decisions.push(Decision::Expire { due: at });
                self.free_slot_if_over(now, decisions);
            }
            Due::FreeSlot => self.free_slot(decisions),
        }
    }

    fn take(&mut self, now: Moment, seen: &Observation, decisions: &mut Vec<Decision>) {
        match seen {
            Observation::Admitted { root } => {
                // A log that is replayed can say so twice; only the first time is an admission.
                if !matches!(self.phase, Phase::Waiting) {
                    return;
                }
                let root = root.as_deref().copied();
                self.root = root;
                self.timeline = Some(Timeline::new(&self.plan.budget, now, root));
                self.phase = Phase::Course;
                self.frame = Frame::Pipeline;
                self.holds_slot = true;
                self.start_next(decisions);
            }
            Observation::Released => self.phase = Phase::Over { unconfirmed: None },
            Observation::ElementReturned { step, verdict } => {
                self.take_verdict(now, *step, verdict, decisions);
            }
            Observation::PipelineReturned | Observation::PipelineDropped => {
                self.frame = Frame::None;
                if matches!(self.phase, Phase::Returning | Phase::Cut) {
                    self.begin_cleanup(now, decisions);
                }
                self.free_slot_if_over(now, decisions);
            }
            Observation::ElementDropped { step } => {
                self.end_cleanup_element(now, *step, false, decisions);
            }
            Observation::Opened { .. } => self.open += 1,
            Observation::Closed { .. } => self.open = self.open.saturating_sub(1),
            Observation::Confirmed => self.confirm(now, decisions),
            Observation::RootPublished { root } => self.publish(**root),
            Observation::Stopped { reason } => {
                let may_signal = match self.phase {
                    Phase::Waiting => false,
                    Phase::Course => self.signal.is_none(),
                    _ => self.open > 0 && self.signal.is_none() && !self.detached_signalled,
                };
                let signal = Signal { reason: *reason, at: now };
                if may_signal {
                    self.signal(signal, decisions);
                } else if !matches!(self.phase, Phase::Waiting) {
                    self.stopped.get_or_insert(signal);
                }
            }
            // These move no phase, and so nothing that is due.
            Observation::StepStarted { .. }
            | Observation::StepEnded(_)
            | Observation::Degraded { .. }
            | Observation::SignalSeen { .. }
            | Observation::DestructorPanicked { .. }
            | Observation::Named { .. }
            | Observation::Sighted(_)
            | Observation::Tick => return,
        }
        self.next = self.next_due();
    }

    fn take_verdict(
        &mut self,
        now: Moment,
        step: StepId,
        verdict: &Verdict,
        decisions: &mut Vec<Decision>,
    ) {
        if self.frame == Frame::Cleanup(step) {
            self.end_cleanup_element(now, step, *verdict == Verdict::Success, decisions);
            return;
        }
        if !self.course.note(step, verdict.clone()) {
            return;
        }
        match self.phase {
            Phase::Course => self.start_next(decisions),
            // Written off inside a poll (X5): it may still return as a whole, and starts nothing.
            _ if self.course.pass_absent(&self.plan).is_none() => {
                decisions.push(Decision::Return { verdict: self.course.verdict().clone() });
            }
            _ => {}
        }
    }

    fn start_next(&mut self, decisions: &mut Vec<Decision>) {
        match self.course.start_next(&self.plan) {
            Some(step) => decisions.push(Decision::Start { step }),
            None => {
                self.phase = Phase::Returning;
                self.returned_in_time = true;
                decisions.push(Decision::Return { verdict: self.course.verdict().clone() });
            }
        }
    }

    /// The signal that is due first (C1).
    fn signal_due(&self) -> Signal {
        let (reason, at) = self.timeline().signal_due(self.root);
        let stopped = self.stopped.filter(|stopped| stopped.at < at);
        stopped.unwrap_or(Signal { reason, at })
    }

    fn signal(&mut self, signal: Signal, decisions: &mut Vec<Decision>) {
        if matches!(self.phase, Phase::Course) {
            self.signal = Some(signal);
            decisions.push(Decision::Signal { reason: signal.reason, due: signal.at });
        } else {
            self.detached_signalled = true;
            decisions.push(Decision::SignalDetached { due: signal.at });
        }
    }

    /// Keeps the earlier root: a later one changes nothing (B4).
    fn publish(&mut self, root: Root) {
        if self.root.is_some_and(|known| known.hard_cutoff <= root.hard_cutoff) {
            return;
        }
        self.root = Some(root);
        if let Phase::Settling { until, .. } = &mut self.phase {
            *until = (*until).min(root.hard_cutoff);
            self.settlement_due = *until;
        }
    }

    fn begin_cleanup(&mut self, now: Moment, decisions: &mut Vec<Decision>) {
        if self.frozen.is_some() {
            return;
        }
        let end = self.timeline().end(self.signal, self.root);
        self.chain_end = end.before((end.since(now) / 4).min(DISPOSAL_SHARE));
        self.callbacks = self.course.callbacks_due(&self.plan);
        self.callbacks.reverse();
        self.next_callback(now, decisions);
    }

    fn next_callback(&mut self, now: Moment, decisions: &mut Vec<Decision>) {
        let end = self.timeline().end(self.signal, self.root);
        let chain_left = self.chain_end.min(end).since(now);
        let among = self.callbacks.len() as u32;
        match self.callbacks.last() {
            Some(&step) if !chain_left.is_zero() => {
                self.callbacks.pop();
                let until = now + chain_left / among;
                self.frame = Frame::Cleanup(step);
                self.phase = Phase::Callback { step, until, cut: false };
                decisions.push(Decision::Call { step, until });
            }
            _ => self.begin_disposal(now, decisions),
        }
    }

    fn begin_disposal(&mut self, now: Moment, decisions: &mut Vec<Decision>) {
        // What is left of the chain could not start in time (K3).
        self.cleanup_failed |= !self.callbacks.is_empty();
        match self.plan.dispose {
            Some(step) => {
                let until = self.timeline().end(self.signal, self.root);
                self.frame = Frame::Cleanup(step);
                self.phase = Phase::Disposal { step, until, cut: false };
                decisions.push(Decision::Dispose { step, until });
            }
            None => self.settle(now, decisions),
        }
    }

    /// The frame of a callback or disposer is gone: it returned, or its drop finished.
    fn end_cleanup_element(
        &mut self,
        now: Moment,
        step: StepId,
        succeeded: bool,
        decisions: &mut Vec<Decision>,
    ) {
        if self.frame != Frame::Cleanup(step) {
            return;
        }
        self.frame = Frame::None;
        self.cleanup_failed |= !succeeded;
        match self.phase {
            Phase::Callback { .. } => self.next_callback(now, decisions),
            Phase::Disposal { .. } => self.settle(now, decisions),
            _ => self.free_slot_if_over(now, decisions),
        }
    }

    fn cut_cleanup(&mut self, at: Moment, decisions: &mut Vec<Decision>) {
        self.cleanup_failed = true;
        match &mut self.phase {
            Phase::Callback { step, cut, .. } => {
                *cut = true;
                decisions.push(Decision::CutCallback { step: *step, due: at });
            }
            Phase::Disposal { step, cut, .. } => {
                *cut = true;
                decisions.push(Decision::CutDisposal { step: *step, due: at });
            }
            _ => unreachable!("only a callback or disposer is cut in cleanup"),
        }
    }

    /// `E`: whatever has not come by now comes late, and nothing more is started (X4).
    fn freeze(&mut self, now: Moment, at: Moment, decisions: &mut Vec<Decision>) {
        self.frozen = Some(at);
        decisions.push(Decision::Freeze { due: at });
        match self.phase {
            Phase::Course | Phase::Returning | Phase::Cut => {
                self.phase = Phase::Over { unconfirmed: None };
                if self.plan.settlement.is_some() {
                    decisions.push(Decision::Revoke);
                }
            }
            Phase::Callback { .. } | Phase::Disposal { .. } => {
                self.cleanup_failed = true;
                self.settle(now, decisions);
            }
            Phase::Waiting | Phase::Settling { .. } | Phase::Over { .. } => {}
        }
    }

    fn settle(&mut self, now: Moment, decisions: &mut Vec<Decision>) {
        let Some(policy) = self.plan.settlement else {
            self.phase = Phase::Over { unconfirmed: None };
            self.free_slot_if_over(now, decisions);
            return;
        };
        let settlement = self.settlement(policy.redeliveries);
        let latest = self.root.map_or(Moment::NEVER, |root| root.hard_cutoff);
        if settlement == Settlement::Released {
            self.phase = Phase::Over { unconfirmed: None };
            decisions.push(Decision::Settle { settlement, until: now });
            self.free_slot_if_over(now, decisions);
        } else {
            let until = (now + policy.timeout).min(latest);
            self.phase = Phase::Settling { settlement, until };
            self.settlement_due = until;
            decisions.push(Decision::Settle { settlement, until });
        }
    }

    /// M1, from the result and from how cleanup went.
    fn settlement(&self, redeliveries: u32) -> Settlement {
        let again =
            if self.attempt <= redeliveries { Settlement::Retry } else { Settlement::DeadLetter };
        match (self.is_interrupted(), self.course.verdict()) {
            (Some(Reason::DeliveryTimeout), _) => again,
            (Some(_), _) => Settlement::Released,
            (None, Verdict::Success) if !self.cleanup_failed => Settlement::Ack,
            (None, Verdict::Success | Verdict::Panic) => again,
            (None, Verdict::Failure { retryable: true, .. }) => again,
            (None, Verdict::Failure { retryable: false, .. }) => Settlement::DeadLetter,
        }
    }

    /// The reason of the signal whose window the pipeline did not make.
    fn is_interrupted(&self) -> Option<Reason> {
        if self.returned_in_time { None } else { self.signal.map(|signal| signal.reason) }
    }

    fn confirm(&mut self, now: Moment, decisions: &mut Vec<Decision>) {
        let settlement = match self.phase {
            Phase::Settling { settlement, .. } => settlement,
            // The broker's word came late; it still holds for the message.
            Phase::Over { unconfirmed: Some(settlement) } => settlement,
            _ => return,
        };
        self.phase = Phase::Over { unconfirmed: None };
        self.settlement_due = Moment::START;
        if settlement == Settlement::Retry {
            decisions.push(Decision::Redeliver);
        }
        self.free_slot_if_over(now, decisions);
    }

    fn free_slot_if_over(&mut self, now: Moment, decisions: &mut Vec<Decision>) {
        let is_released = self.frame == Frame::None || self.is_observed(now);
        if matches!(self.phase, Phase::Over { .. }) && is_released {
            self.free_slot(decisions);
        }
    }

    /// Whether what is not released has been observed as long as it may keep the slot (X7).
    fn is_observed(&self, now: Moment) -> bool {
        self.frozen.is_some_and(|end| end + self.plan.observe <= now)
    }

    fn free_slot(&mut self, decisions: &mut Vec<Decision>) {
        if self.holds_slot {
            self.holds_slot = false;
            decisions.push(Decision::FreeSlot);
        }
    }

    fn timeline(&self) -> Timeline {
        self.timeline.expect("an admitted delivery has a timeline")
    }
}

/// What counts first when an observation comes at the very instant at which something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tie {
    /// The observation: what is ready at a cutoff is in time.
    EndOfWork,
    /// The cutoff.
    Cutoff,
}

impl Tie {
    fn of(seen: &Observation) -> Self {
        match seen {
            Observation::StepEnded(_)
            | Observation::Degraded { .. }
            | Observation::DestructorPanicked { .. }
            | Observation::ElementReturned { .. }
            | Observation::PipelineReturned
            | Observation::PipelineDropped
            | Observation::ElementDropped { .. }
            | Observation::Closed { .. }
            | Observation::Confirmed => Self::EndOfWork,
            Observation::Admitted { .. }
            | Observation::Released
            | Observation::StepStarted { .. }
            | Observation::SignalSeen { .. }
            | Observation::Opened { .. }
            | Observation::Named { .. }
            | Observation::RootPublished { .. }
            | Observation::Stopped { .. }
            | Observation::Sighted(_)
            | Observation::Tick => Self::Cutoff,
        }
    }
}
