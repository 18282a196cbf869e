//! What must hold of every log, whatever the world.
//!
//! Reads the rules by itself, in whole nanoseconds, and shares no arithmetic with the engine.
//! Expects nothing of what a world does: an element may end whenever it likes.

use std::collections::HashMap;
use std::sync::Arc;

use deadline_run::engine::Delivery;
use deadline_run::engine::record;
use deadline_run::event::{Decision, Entry, Event, Observation, Settlement, StepId, Verdict};
use deadline_run::timeline::{Moment, Reason, Root, Signal};

use crate::simulated::{Outcome, World};
use crate::trace::trace;

const QUARTER_SECOND: u64 = 250_000_000;
const SECOND: u64 = 1_000_000_000;

/// Fails, with the world and its log, when the log breaks a rule.
pub fn check_invariants(world: &World, outcome: &Outcome) {
    if let Err(fault) = Reading::new(world).read(outcome) {
        panic!("{fault}\n{}\n{world:#?}", trace(&outcome.log).join("\n"));
    }
    if replay(world, &outcome.log) != outcome.log {
        panic!("the log replays to another\n{}\n{world:#?}", trace(&outcome.log).join("\n"));
    }
}

/// Feeds the log's observations to a fresh engine.
pub fn replay(world: &World, log: &[Entry]) -> Vec<Entry> {
    let mut machine = Delivery::new(Arc::new(world.plan()), world.attempt);
    let mut again = Vec::with_capacity(log.len());
    for entry in log {
        if let Event::Observed(seen) = &entry.event {
            // A tick ahead of an observation is written again by the calling rule itself.
            if *seen == Observation::Tick && again.last() == Some(entry) {
                continue;
            }
            record(&mut machine, entry.at, seen.clone(), &mut again);
        }
    }
    again
}

/// The instants that the rules give, by this file's own reading.
struct Instants {
    admitted: u64,
    normal: u64,
    hard: u64,
    window_cap: u64,
}

impl Instants {
    fn new(world: &World, root: Option<Root>) -> Self {
        let total = world.budget.total.as_nanos() as u64;
        let admitted = world.admitted.nanos();
        let root_hard = root.map_or(u64::MAX, |root| root.hard_cutoff.nanos());
        let hard = admitted.max(root_hard.min(admitted + total));
        let left = hard - admitted;
        let reserve = match world.budget.reserve.map(|reserve| reserve.as_nanos() as u64) {
            None => SECOND.min(left / 4),
            Some(reserve) if left < total => reserve.min(left / 4),
            Some(reserve) => reserve,
        };
        let window_cap = world.budget.window_cap.as_nanos() as u64;
        Self { admitted, normal: hard - reserve, hard, window_cap }
    }

    fn signal(&self, root: Option<Root>) -> Signal {
        let graceful = root.map_or(u64::MAX, |root| root.graceful_cutoff.nanos());
        if graceful > self.normal {
            Signal { reason: Reason::DeliveryTimeout, at: Moment::from_nanos(self.normal) }
        } else {
            Signal { reason: Reason::ShutdownDeadline, at: Moment::from_nanos(graceful) }
        }
    }

    fn end(&self, signal: Option<Signal>, root: Option<Root>) -> u64 {
        let mut bounds = vec![self.hard];
        bounds.extend(root.map(|root| root.hard_cutoff.nanos()));
        if let Some(signal) = signal.filter(|signal| signal.reason != Reason::DeliveryTimeout) {
            let at = signal.at.nanos();
            bounds.push(at + SECOND);
            bounds
                .extend(root.map(|root| at + root.hard_cutoff.nanos().saturating_sub(at) * 3 / 4));
        }
        bounds.into_iter().min().expect("the hard cutoff is one of them")
    }

    fn window_end(&self, signal: Signal, root: Option<Root>) -> u64 {
        let at = signal.at.nanos();
        let left = self.end(Some(signal), root).saturating_sub(at);
        at + self.window_cap.min(left / 4)
    }
}

/// How far one delivery has come, as the log tells.
struct Reading<'a> {
    world: &'a World,
    instants: Instants,
    root: Option<Root>,
    cause: Observation,
    last: u64,
    /// What the elements of the pipeline said, while it was not released.
    said: HashMap<StepId, Verdict>,
    started: Vec<StepId>,
    signal: Option<Signal>,
    /// Where the window ended when the signal opened it.
    window_end: u64,
    signal_detached: bool,
    /// A root was published while the window was open.
    shortened: bool,
    cut: bool,
    returned: Option<Verdict>,
    returned_late: bool,
    released: bool,
    frozen: Option<u64>,
    /// `E` as it was frozen.
    frozen_end: Option<u64>,
    /// The chain's end and the callbacks due, once the release was seen in time.
    chain: Option<(u64, Vec<StepId>)>,
    called: usize,
    running: Option<StepId>,
    disposed: bool,
    cleanup_failed: bool,
    settled: Option<(Settlement, u64)>,
    revoked: bool,
    confirmed: bool,
    expired: bool,
    redelivered: bool,
    open: usize,
    slot_freed: bool,
}

type Check = Result<(), String>;

fn check(holds: bool, rule: &str) -> Check {
    if holds { Ok(()) } else { Err(rule.into()) }
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Check {
    check(found == expected, &format!("{what}: found {found:?}, by the rules {expected:?}"))
}

impl<'a> Reading<'a> {
    fn new(world: &'a World) -> Self {
        let root = world.root_at_admission();
        Self {
            world,
            instants: Instants::new(world, root),
            root,
            cause: Observation::Tick,
            last: 0,
            said: HashMap::new(),
            started: Vec::new(),
            signal: None,
            window_end: 0,
            signal_detached: false,
            shortened: false,
            cut: false,
            returned: None,
            returned_late: false,
            released: false,
            frozen: None,
            frozen_end: None,
            chain: None,
            called: 0,
            running: None,
            disposed: false,
            cleanup_failed: false,
            settled: None,
            revoked: false,
            confirmed: false,
            expired: false,
            redelivered: false,
            open: 0,
            slot_freed: false,
        }
    }

    fn read(mut self, outcome: &Outcome) -> Check {
        for entry in &outcome.log {
            let now = entry.at.nanos();
            check(now >= self.last, "moments never go back")?;
            self.last = now;
            match &entry.event {
                Event::Observed(seen) => self.see(now, seen)?,
                Event::Decided(decision) => self.decide(now, decision)?,
            }
        }
        self.conclude(outcome)
    }

    /// `E`: no root moves it once it has come (X4).
    fn end(&self) -> u64 {
        self.frozen_end.unwrap_or_else(|| self.instants.end(self.signal, self.root))
    }

    fn is_earlier(&self, root: Root) -> bool {
        self.root.is_none_or(|known| root.hard_cutoff < known.hard_cutoff)
    }

    fn see(&mut self, now: u64, seen: &Observation) -> Check {
        self.cause = seen.clone();
        match seen {
            Observation::Admitted { .. } => equal(now, self.instants.admitted, "admission")?,
            Observation::RootPublished { root } if self.is_earlier(**root) => {
                self.root = Some(**root);
                self.shortened |= self.signal.is_some() && !self.cut;
            }
            Observation::ElementReturned { step, verdict } if self.running == Some(*step) => {
                self.running = None;
                self.cleanup_failed |= *verdict != Verdict::Success;
            }
            Observation::ElementReturned { step, verdict } => {
                check(!self.released, "what is released returns nothing")?;
                self.said.insert(*step, verdict.clone());
            }
            Observation::ElementDropped { .. } => {
                self.running = None;
                self.cleanup_failed = true;
            }
            Observation::PipelineReturned | Observation::PipelineDropped => {
                self.released = true;
                if self.frozen.is_none() {
                    let end = self.end();
                    let share = QUARTER_SECOND.min(end.saturating_sub(now) / 4);
                    self.chain = Some((end - share, self.callbacks_due()));
                }
            }
            Observation::Opened { .. } => self.open += 1,
            Observation::Closed { .. } => self.open -= 1,
            Observation::Confirmed => self.confirmed = true,
            _ => {}
        }
        Ok(())
    }

    fn decide(&mut self, now: u64, decision: &Decision) -> Check {
        match decision {
            Decision::Start { step } => {
                check(!self.cut, "nothing of the normal course starts after the cut")?;
                check(self.returned.is_none(), "nothing starts after the return")?;
                check(!self.started.contains(step), "an element starts once")?;
                self.started.push(*step);
            }
            Decision::Return { verdict } => {
                check(self.returned.is_none() && !self.returned_late, "a pipeline returns once")?;
                equal(verdict.clone(), self.verdict(), "the result")?;
                if self.cut {
                    self.returned_late = true;
                } else {
                    self.returned = Some(verdict.clone());
                }
            }
            Decision::Signal { reason, due } => {
                let signal = Signal { reason: *reason, at: *due };
                check(self.signal.is_none(), "the first signal stays for good")?;
                check(self.returned.is_none(), "what has returned is not signalled")?;
                match self.cause {
                    Observation::Stopped { reason: stop } if stop == *reason => {
                        equal(due.nanos(), now, "a stop takes effect at once")?;
                    }
                    _ => equal(signal, self.instants.signal(self.root), "the signal")?,
                }
                self.window_end = self.instants.window_end(signal, self.root);
                self.signal = Some(signal);
                self.on_time(now, *due)?;
            }
            Decision::SignalDetached { due } => {
                check(!self.signal_detached, "what is detached is signalled once")?;
                check(self.signal.is_none(), "one signal")?;
                check(self.returned.is_some() || self.released, "the pipeline has returned")?;
                self.signal_detached = true;
                check(now >= due.nanos(), "no signal before it is due")?;
            }
            Decision::Cut { due } => {
                check(!self.cut, "one cut")?;
                check(self.returned.is_none(), "what has returned is not cut")?;
                let signal = self.signal.ok_or("asked before cut")?;
                let window_end = self.instants.window_end(signal, self.root);
                equal(due.nanos(), window_end, "the window's end")?;
                let is_full = due.nanos() == self.window_end;
                check(is_full || self.shortened, "a full window between the signal and the cut")?;
                self.cut = true;
                self.on_time(now, *due)?;
            }
            Decision::Call { step, until } => self.call(now, *step, until.nanos())?,
            Decision::CutCallback { step, due } | Decision::CutDisposal { step, due } => {
                equal(self.running, Some(*step), "only what runs is cut")?;
                check(self.frozen.is_none(), "the freeze cuts everything")?;
                self.cleanup_failed = true;
                self.on_time(now, *due)?;
            }
            Decision::Dispose { step, until } => {
                self.may_clean_up()?;
                check(!self.disposed, "a scope is disposed of once")?;
                equal(Some(*step), self.world.plan().dispose, "the disposer")?;
                equal(until.nanos(), self.end(), "disposal has until E")?;
                self.no_callback_is_left(now)?;
                self.disposed = true;
                self.running = Some(*step);
            }
            Decision::Settle { settlement, until } => {
                self.settle(now, *settlement, until.nanos())?
            }
            Decision::Revoke => {
                check(self.settled.is_none() && !self.revoked, "one settlement")?;
                check(!self.released, "only what is not released loses the right to settle")?;
                check(self.frozen.is_some(), "E has come")?;
                self.revoked = true;
            }
            Decision::Expire { due } => {
                let (_, until) = self.settled.ok_or("only what was settled expires")?;
                check(!self.confirmed && !self.expired, "a settlement ends once")?;
                let root_hard = self.root.map_or(u64::MAX, |root| root.hard_cutoff.nanos());
                equal(due.nanos(), until.min(root_hard), "when a settlement expires")?;
                self.expired = true;
                self.on_time(now, *due)?;
            }
            Decision::Freeze { due } => {
                check(self.frozen.is_none(), "one freeze")?;
                equal(due.nanos(), self.end(), "the freeze comes at E")?;
                self.frozen = Some(now);
                self.frozen_end = Some(due.nanos());
                self.on_time(now, *due)?;
            }
            Decision::FreeSlot => {
                check(!self.slot_freed, "a slot is freed once")?;
                self.slot_freed = true;
                let is_over = self.released && self.running.is_none() && self.settlement_is_over();
                let observed = self.end() + self.world.observe.as_nanos() as u64;
                check(is_over || now >= observed, "the slot is held until the release")?;
                let is_settled = !self.released || self.settlement_is_over();
                check(is_settled, "the slot is held until the settlement is over")?;
            }
            Decision::Redeliver => {
                let settlement = self.settled.map(|(settlement, _)| settlement);
                equal(settlement, Some(Settlement::Retry), "only a retry comes again")?;
                equal(&self.cause, &Observation::Confirmed, "after its confirmation")?;
                check(!self.redelivered, "a message comes again once")?;
                self.redelivered = true;
            }
        }
        Ok(())
    }

    /// Never before it is due; later only when whoever decides was late, or when what made it due
    /// came later still.
    fn on_time(&self, now: u64, due: Moment) -> Check {
        check(now >= due.nanos(), "nothing is decided before it is due")?;
        let was_published =
            matches!(self.cause, Observation::RootPublished { .. } | Observation::Admitted { .. });
        let latest = due + self.world.lateness;
        check(was_published || now <= latest.nanos(), "what is due is decided at once")
    }

    fn may_clean_up(&self) -> Check {
        check(self.released, "no cleanup before the release is evident")?;
        check(self.frozen.is_none(), "nothing is called or disposed of after the freeze")?;
        check(self.running.is_none(), "one at a time")?;
        check(!self.disposed, "disposal comes last")?;
        check(self.settled.is_none() && !self.revoked, "cleanup comes before the settlement")
    }

    fn call(&mut self, now: u64, step: StepId, until: u64) -> Check {
        self.may_clean_up()?;
        let (chain_end, due) = self.chain.as_ref().ok_or("the release is seen")?;
        equal(Some(&step), due.get(self.called), "the callback whose turn it is")?;
        let left = (*chain_end).min(self.end()).saturating_sub(now);
        check(left > 0, "no callback starts past its chain")?;
        equal(until, now + left / (due.len() - self.called) as u64, "an equal share")?;
        self.called += 1;
        self.running = Some(step);
        Ok(())
    }

    fn no_callback_is_left(&mut self, now: u64) -> Check {
        let (chain_end, due) = self.chain.as_ref().ok_or("the release is seen")?;
        if self.called < due.len() {
            check(now >= (*chain_end).min(self.end()), "the chain's time is used up")?;
            self.cleanup_failed = true;
        }
        Ok(())
    }

    fn settle(&mut self, now: u64, settlement: Settlement, until: u64) -> Check {
        check(self.settled.is_none() && !self.revoked, "one settlement")?;
        check(self.released, "what is not released does not settle")?;
        match self.frozen {
            Some(frozen) => {
                equal(now, frozen, "it is decided at E at the latest")?;
                self.cleanup_failed = true;
            }
            None => {
                check(self.running.is_none(), "cleanup is over")?;
                self.no_callback_is_left(now)?;
                check(self.disposed || self.world.dispose.is_none(), "the scope comes first")?;
            }
        }
        let broker = self.world.broker.as_ref().ok_or("somebody is settled with")?;
        let again = if self.world.attempt <= broker.redeliveries {
            Settlement::Retry
        } else {
            Settlement::DeadLetter
        };
        let expected = match (&self.returned, self.signal.map(|signal| signal.reason)) {
            (Some(Verdict::Success), _) if !self.cleanup_failed => Settlement::Ack,
            (Some(Verdict::Failure { retryable: false, .. }), _) => Settlement::DeadLetter,
            (Some(_), _) | (None, Some(Reason::DeliveryTimeout)) => again,
            (None, _) => Settlement::Released,
        };
        equal(settlement, expected, "the settlement")?;
        let timeout = broker.timeout.as_nanos() as u64;
        let root_hard = self.root.map_or(u64::MAX, |root| root.hard_cutoff.nanos());
        let expected_until = match settlement {
            Settlement::Released => now,
            _ => (now + timeout).min(root_hard),
        };
        equal(until, expected_until, "how long the broker has")?;
        self.settled = Some((settlement, until));
        Ok(())
    }

    fn settlement_is_over(&self) -> bool {
        match self.settled {
            Some((Settlement::Released, _)) => true,
            Some(_) => self.confirmed || self.expired,
            None => self.revoked || self.world.broker.is_none(),
        }
    }

    fn conclude(&self, outcome: &Outcome) -> Check {
        check(self.returned.is_some() || self.cut, "a course returns or is cut")?;
        check(self.slot_freed, "a slot is freed in the end")?;
        if self.world.broker.is_some() {
            check(self.settled.is_some() || self.revoked, "it is settled or revoked")?;
        }
        let confirmed = match self.settled {
            Some((Settlement::Released, _)) | None => true,
            Some(_) => self.confirmed,
        };
        let is_closed = self.released && self.running.is_none() && self.open == 0 && confirmed;
        equal(outcome.closed, is_closed, "whether every obligation has its receipt")?;
        check(self.frozen.is_some() || is_closed, "what is open is frozen at E")?;
        check(self.frozen.is_some() || self.last <= self.end() + self.lateness(), "E is kept")?;
        check(
            !self.confirmed
                || self.redelivered
                    == self.settled.is_some_and(|(settled, _)| settled == Settlement::Retry),
            "a confirmed retry comes again",
        )
    }

    fn lateness(&self) -> u64 {
        self.world.lateness.as_nanos() as u64
    }

    /// What the pipeline says: the first failure in the order of the course.
    fn verdict(&self) -> Verdict {
        let failed = |step: &&StepId| self.said.get(step).is_some_and(|v| *v != Verdict::Success);
        let first = self.started.iter().find(failed);
        first.map_or(Verdict::Success, |step| self.said[step].clone())
    }

    /// The callbacks of what was entered and has not left, innermost first.
    fn callbacks_due(&self) -> Vec<StepId> {
        let plan = self.world.plan();
        let succeeded = |step: StepId| self.said.get(&step) == Some(&Verdict::Success);
        let entered =
            plan.middleware.iter().take_while(|shape| shape.before.is_none_or(succeeded)).count();
        let all_ran = entered == plan.middleware.len()
            && plan.forward.iter().all(|(_, step)| succeeded(*step));
        let turns_back = all_ran || self.verdict() != Verdict::Success;
        let has_left = |after: StepId| {
            matches!(self.said.get(&after), Some(Verdict::Success | Verdict::Failure { .. }))
        };
        plan.middleware[..entered]
            .iter()
            .rev()
            .skip_while(|shape| turns_back && shape.after.is_none_or(has_left))
            .filter_map(|shape| shape.terminate)
            .collect()
    }
}
