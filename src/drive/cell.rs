//! The one order of a delivery, shared by the worker that advances it and the control thread that
//! decides its cutoffs.
//!
//! Whoever sees something locks the cell, reads the clock inside the lock, feeds the machine, logs,
//! unlocks, and only then acts. Raced a million times at `P` plus or minus a tick, with both sides
//! deciding: one order each time, the log's moments never go back, and its observations replay to
//! the same decisions. Reading the clock outside the lock broke that order in 3 to 28 of 100.
//! No code of the workload ever runs inside the lock.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::time::Duration;

use futures_util::task::AtomicWaker;

use crate::drive::control::{Alarm, Bell};
use crate::drive::feed;
use crate::drive::floor::Shared;
use crate::drive::{Presence, task};
use crate::engine::{Assignment, Delivery, Ticket, record};
use crate::event::{
    Decision, DeliveryLog, Entry, Event, Observation, Opening, Settlement, StepEnd, StepId, Target,
    ThreadName, Verdict,
};
use crate::obligation::{Evidence, Obligation};
use crate::timeline::Moment;

/// How many entries the log of an ordinary delivery has: growing it costs more than its memory.
const ORDINARY_LOG: usize = 16;

/// A number that no clean-up frame has: all of them are cut.
const ALL: u32 = u32::MAX;

/// Room for logs: that of a finished delivery goes to the next one that this thread admits.
struct Room;

impl Room {
    const MOST_KEPT: usize = 64;

    fn with<R>(work: impl FnOnce(&mut Vec<Vec<Entry>>) -> R) -> R {
        thread_local! {
            static SPARE: RefCell<Vec<Vec<Entry>>> = const { RefCell::new(Vec::new()) };
        }
        SPARE.with_borrow_mut(work)
    }

    fn take() -> Vec<Entry> {
        Self::with(Vec::pop).unwrap_or_else(|| Vec::with_capacity(ORDINARY_LOG))
    }

    fn keep(empty: Vec<Entry>) {
        Self::with(|spare| {
            if spare.len() < Self::MOST_KEPT {
                spare.push(empty);
            }
        });
    }
}

/// What the pipeline is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Run this element.
    Start(StepId),
    /// Return, and say so.
    Return,
    /// It has returned, and that is noted.
    Returned,
    /// Nothing more: it will be dropped.
    Stop,
}

/// An obligation of a frozen delivery that has no receipt.
pub(crate) struct Overdue {
    pub target: Target,
    pub step: StepId,
    pub thread: Option<ThreadName>,
    pub since: Moment,
}

struct Order {
    machine: Delivery,
    log: Vec<Entry>,
    last: Moment,
    bell: Arc<Bell>,
    openings: u32,
    open: Vec<(Opening, Overdue)>,
    /// How many callbacks and disposers were called.
    calls: u32,
    retired: bool,
}

/// One delivery of a running load.
pub(crate) struct Cell {
    ticket: Ticket,
    slot: u32,
    shared: Arc<Shared>,
    order: Mutex<Order>,
    signal_at: AtomicU64,
    signal_noted: AtomicBool,
    /// Clean-up frames up to this number were cut.
    cleanup_cut: AtomicU32,
    waker: AtomicWaker,
    woken_at: AtomicU64,
    woken_by: AtomicU32,
    turn: AtomicU32,
}

impl Cell {
    /// The cell of a delivery that takes a slot with that bell, in the memory of one that is over if
    /// nobody holds on to that any more.
    pub(crate) fn new(
        ticket: Ticket,
        shared: Arc<Shared>,
        slot: u32,
        bell: &Arc<Bell>,
        spare: Option<Arc<Self>>,
    ) -> Arc<Self> {
        let fresh = Self::fresh(ticket, shared, slot, bell);
        let mut spare = spare;
        let cell = match spare.as_mut().and_then(Arc::get_mut) {
            Some(over) => {
                *over = fresh;
                spare.expect("it was just written to")
            }
            None => Arc::new(fresh),
        };
        bell.give_to(Arc::downgrade(&cell));
        cell
    }

    fn fresh(ticket: Ticket, shared: Arc<Shared>, slot: u32, bell: &Arc<Bell>) -> Self {
        let machine = Delivery::new(Arc::clone(&shared.plan), ticket.attempt);
        Self {
            ticket,
            slot,
            shared,
            order: Mutex::new(Order {
                machine,
                log: Room::take(),
                last: Moment::START,
                bell: Arc::clone(bell),
                openings: 0,
                open: Vec::new(),
                calls: 0,
                retired: false,
            }),
            signal_at: AtomicU64::new(Moment::NEVER.nanos()),
            signal_noted: AtomicBool::new(false),
            cleanup_cut: AtomicU32::new(0),
            waker: AtomicWaker::new(),
            woken_at: AtomicU64::new(0),
            woken_by: AtomicU32::new(0),
            turn: AtomicU32::new(0),
        }
    }

    /// The slot that it took.
    pub(crate) fn slot(&self) -> u32 {
        self.slot
    }

    /// Moves on whenever a decision concerns the task: what it is to hold, or a signal.
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Ordering::Acquire)
    }

    pub(crate) fn ticket(&self) -> Ticket {
        self.ticket
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes an observation into the delivery's order and does what was decided on account of it.
    pub(crate) fn observe(self: &Arc<Self>, seen: Observation) -> Next {
        let order = self.lock();
        self.observe_locked(order, seen)
    }

    /// Decides what is due by now.
    pub(crate) fn tick(self: &Arc<Self>) {
        let order = self.lock();
        self.observe_locked(order, Observation::Tick);
    }

    /// The broker's word has come.
    pub(crate) fn confirm(self: &Arc<Self>) {
        self.observe(Observation::Confirmed);
    }

    /// Lets a step begin, unless nothing may start any more; answers when it began.
    pub(crate) fn begin(self: &Arc<Self>, step: StepId, in_cleanup: bool) -> Option<Moment> {
        let order = self.lock();
        let may_start = if in_cleanup {
            order.machine.may_start_in_cleanup()
        } else {
            order.machine.may_start_in_course()
        };
        may_start.then(|| self.observe_all(order, [Observation::StepStarted { step }]).1)
    }

    /// Notes that a step inside detached work begins: nobody cuts that, so nothing holds it back (X6).
    pub(crate) fn begin_detached(self: &Arc<Self>, step: StepId) -> Moment {
        let order = self.lock();
        self.observe_all(order, [Observation::StepStarted { step }]).1
    }

    /// An element of the course has come back, its frame gone. When the course is over with it, so is
    /// the pipeline: it held nothing else.
    pub(crate) fn element_returned(
        self: &Arc<Self>,
        step: StepId,
        verdict: Verdict,
        end: Option<Arc<StepEnd>>,
    ) -> Next {
        let order = self.lock();
        let returned = Observation::ElementReturned { step, verdict };
        match end {
            Some(end) => self.observe_all(order, [Observation::StepEnded(end), returned]).0,
            None => self.observe_all(order, [returned]).0,
        }
    }

    /// Opens an obligation beside the frames: before the work that it stands for.
    pub(crate) fn open(
        self: &Arc<Self>,
        kind: Obligation,
        step: StepId,
        thread: Option<ThreadName>,
    ) -> Opening {
        let mut order = self.lock();
        let opening = Opening(order.openings);
        order.openings += 1;
        let since = self.shared.control.now();
        let target = Target::Opened(opening);
        order.open.push((opening, Overdue { target, step, thread, since }));
        self.observe_locked(
            order,
            Observation::Opened { opening, kind, step, thread: thread.map(Box::new) },
        );
        opening
    }

    /// Says which thread an obligation beside the frames turned out to be; one that is overdue by then
    /// is looked at.
    pub(crate) fn name_thread(self: &Arc<Self>, opening: Opening, thread: Option<ThreadName>) {
        let Some(thread) = thread else { return };
        let mut order = self.lock();
        let since = self.shared.control.now();
        if let Some((_, open)) = order.open.iter_mut().find(|(open, _)| *open == opening) {
            (open.thread, open.since) = (Some(thread), since);
        }
        let is_overdue = order.machine.is_overdue();
        self.observe_locked(order, Observation::Named { opening, thread: Box::new(thread) });
        if is_overdue {
            self.shared.watch.notice(self);
        }
    }

    /// Closes an obligation beside the frames, with what was seen of its end.
    pub(crate) fn close(
        self: &Arc<Self>,
        opening: Opening,
        evidence: Evidence,
        cpu: Option<Duration>,
    ) {
        let mut order = self.lock();
        order.open.retain(|(open, _)| *open != opening);
        self.observe_locked(order, Observation::Closed { opening, evidence, cpu });
    }

    /// What the task is to hold.
    pub(crate) fn assignment(&self) -> Assignment {
        self.lock().machine.assignment()
    }

    /// When the signal fired for the pipeline and what is detached from it; `None`: not yet.
    pub(crate) fn signal_at(&self) -> Option<Moment> {
        let at = Moment::from_nanos(self.signal_at.load(Ordering::Acquire));
        (at != Moment::NEVER).then_some(at)
    }

    /// The number that the clean-up frame running now has.
    pub(crate) fn cleanup_number(&self) -> u32 {
        self.lock().calls
    }

    /// Whether the clean-up frame of that number was cut.
    pub(crate) fn is_cleanup_cut(&self, number: u32) -> bool {
        number <= self.cleanup_cut.load(Ordering::Acquire)
    }

    /// Notes that a step looked and saw the signal; only the first of a delivery is an entry.
    pub(crate) fn note_signal_seen(self: &Arc<Self>, step: StepId) {
        if !self.signal_noted.swap(true, Ordering::AcqRel) {
            self.observe(Observation::SignalSeen { step });
        }
    }

    /// The instant at or past which a step of the course may set no timer (P2).
    pub(crate) fn normal_cutoff(&self) -> Moment {
        self.lock().machine.normal_cutoff().unwrap_or(Moment::NEVER)
    }

    /// The latest instant at which something of this delivery is due.
    pub(crate) fn last_due(&self) -> Moment {
        self.lock().machine.last_due()
    }

    /// Has the task polled again when `waker` is its own; forgets who woke it before.
    pub(crate) fn register(&self, waker: &std::task::Waker) {
        self.waker.register(waker);
        self.woken_at.store(0, Ordering::Release);
    }

    /// On which worker, and when, the task was first woken since it was last polled.
    pub(crate) fn woken(&self) -> Option<(u32, Moment)> {
        let at = self.woken_at.load(Ordering::Acquire);
        let by = self.woken_by.load(Ordering::Acquire);
        (at != 0).then(|| by.checked_sub(1)).flatten().map(|by| (by, Moment::from_nanos(at)))
    }

    /// What is overdue: nothing before `E`.
    pub(crate) fn overdue(&self) -> Vec<Overdue> {
        let order = self.lock();
        if !order.machine.is_overdue() {
            return Vec::new();
        }
        let frame = match order.machine.holds() {
            Assignment::Pipeline => Some((Target::Execution, StepId(0))),
            Assignment::Cleanup(step) if self.shared.plan.dispose == Some(step) => {
                Some((Target::Scope, step))
            }
            Assignment::Cleanup(step) => Some((Target::Callback(step), step)),
            Assignment::Nothing => None,
        };
        let frame =
            frame.map(|(target, step)| Overdue { target, step, thread: None, since: order.last });
        let open = order.open.iter().map(|(_, open)| Overdue {
            target: open.target,
            step: open.step,
            thread: open.thread,
            since: open.since,
        });
        frame.into_iter().chain(open).collect()
    }

    /// Whether its log was taken.
    pub(crate) fn is_retired(&self) -> bool {
        self.lock().retired
    }

    /// Takes the log as it stands, once; whatever is seen later is seen by nobody.
    pub(crate) fn retire(&self) -> Option<DeliveryLog> {
        let mut order = self.lock();
        let is_first = !std::mem::replace(&mut order.retired, true);
        is_first.then(|| self.take_log(&mut order))
    }

    /// Sees nothing any more; answers whether its log is still to be taken.
    pub(crate) fn stop(&self) -> bool {
        !std::mem::replace(&mut self.lock().retired, true)
    }

    /// The log of a stopped delivery. What was due by `now` is decided first, also when the control
    /// thread has not come to it.
    pub(crate) fn take_stopped(&self, now: Moment) -> DeliveryLog {
        let mut order = self.lock();
        let Order { machine, log, .. } = &mut *order;
        let first = record(machine, now, Observation::Tick, log);
        self.tell(&order, first);
        self.take_log(&mut order)
    }

    /// Copied out to its exact size: a run keeps every log, and the room of this one goes to another
    /// delivery.
    fn take_log(&self, order: &mut Order) -> DeliveryLog {
        let mut entries = Vec::with_capacity(order.log.len());
        entries.append(&mut order.log);
        Room::keep(std::mem::take(&mut order.log));
        DeliveryLog {
            id: self.ticket.id,
            message: self.ticket.message,
            attempt: self.ticket.attempt,
            arrived: self.ticket.arrived,
            entries,
        }
    }

    /// Tells whoever reads along of the entries from `first` on: inside the lock, which gave them their
    /// places.
    fn tell(&self, order: &Order, first: usize) {
        if let Some(feed) = &self.shared.feed {
            feed::tell(feed, self.ticket, first, &order.log[first..]);
        }
    }

    fn observe_locked(self: &Arc<Self>, order: MutexGuard<'_, Order>, seen: Observation) -> Next {
        self.observe_all(order, [seen]).0
    }

    /// Takes observations of one instant, in order. A course that returns with the last of them is
    /// a pipeline that has returned, unless it is overdue: then its worker is looked at first.
    fn observe_all<const N: usize>(
        self: &Arc<Self>,
        mut order: MutexGuard<'_, Order>,
        seen: [Observation; N],
    ) -> (Next, Moment) {
        let now = self.shared.control.now().max(order.last);
        if order.retired {
            return (Next::Stop, now);
        }
        order.last = now;
        let mut orders = Orders::default();
        let first = order.log.len();
        let assignment = order.machine.assignment();
        for seen in seen {
            self.take(&mut order, now, seen, &mut orders);
        }
        if orders.next == Next::Return && !order.machine.is_overdue() {
            self.take(&mut order, now, Observation::PipelineReturned, &mut orders);
            orders.next = Next::Returned;
        }
        self.tell(&order, first);
        if orders.wake || order.machine.assignment() != assignment {
            self.turn.fetch_add(1, Ordering::AcqRel);
        }
        let is_closed = order.machine.is_closed();
        if orders.free_slot && !is_closed {
            // The slot's bell goes to the next delivery; what lingers has one of its own.
            order.bell = Bell::new();
            order.bell.give_to(Arc::downgrade(self));
        }
        let due = order.machine.due().unwrap_or(Moment::NEVER);
        let alarm = order.bell.arm(due).then(|| (due, Arc::clone(&order.bell)));
        drop(order);
        if let Some((due, bell)) = alarm {
            self.shared.control.set(due, Alarm::Due(bell));
        }
        self.act(&orders, now);
        if orders.free_slot || is_closed {
            self.shared.leave(self, orders.free_slot, is_closed);
        }
        (orders.next, now)
    }

    fn take(&self, order: &mut Order, now: Moment, seen: Observation, orders: &mut Orders) {
        let Order { machine, log, calls, .. } = order;
        let first = record(machine, now, seen, log);
        for entry in &log[first..] {
            if let Event::Decided(decision) = &entry.event {
                self.prepare(decision, orders, calls);
            }
        }
    }

    /// Notes what a decision asks of the driver; flags that work looks at are set inside the order.
    fn prepare(&self, decision: &Decision, orders: &mut Orders, calls: &mut u32) {
        match decision {
            Decision::Start { step } => orders.next = Next::Start(*step),
            Decision::Return { .. } => orders.next = Next::Return,
            Decision::Signal { due, .. } | Decision::SignalDetached { due } => {
                self.signal_at.store(due.nanos(), Ordering::Release);
                orders.wake = true;
            }
            Decision::Cut { .. } => {
                orders.cut = true;
                orders.wake = true;
            }
            Decision::CutCallback { .. } | Decision::CutDisposal { .. } => {
                self.cleanup_cut.fetch_max(*calls, Ordering::AcqRel);
                orders.wake = true;
            }
            Decision::Call { .. } | Decision::Dispose { .. } => *calls += 1,
            Decision::Settle { settlement, .. } => {
                orders.settle = *settlement != Settlement::Released;
            }
            Decision::Freeze { .. } => {
                self.cleanup_cut.store(ALL, Ordering::Release);
                orders.overdue = true;
                orders.wake = true;
            }
            Decision::FreeSlot => orders.free_slot = true,
            Decision::Redeliver => orders.redeliver = true,
            Decision::Revoke | Decision::Expire { .. } => {}
        }
    }

    fn act(self: &Arc<Self>, orders: &Orders, now: Moment) {
        let control = &self.shared.control;
        if orders.wake {
            self.waker.wake();
        }
        if orders.cut {
            self.shared.progress.interrupted.fetch_add(1, Ordering::Relaxed);
        }
        if orders.settle
            && let Some(at) = self.shared.broker.confirms_at(now)
        {
            control.set(at, Alarm::Confirm(Arc::downgrade(self)));
        }
        if orders.overdue {
            self.shared.progress.overdue.fetch_add(1, Ordering::Relaxed);
            self.shared.watch.notice(self);
        }
        if orders.redeliver {
            self.shared.redeliver(self.ticket, now);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Cell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // The first to wake is the one whose worker the task now waits at. A task that wakes itself
        // waits for nobody who was there before.
        let is_first = self.woken_at.load(Ordering::Acquire) == 0;
        if is_first && !task::is_polled_here(self.ticket.id) {
            let by = Presence::here().map_or(0, |number| number + 1);
            self.woken_by.store(by, Ordering::Release);
            self.woken_at.store(self.shared.control.now().nanos().max(1), Ordering::Release);
        }
        self.waker.wake();
    }
}

/// What is to be done once the cell is unlocked.
#[derive(Clone, Copy, Debug)]
struct Orders {
    next: Next,
    wake: bool,
    cut: bool,
    settle: bool,
    overdue: bool,
    free_slot: bool,
    redeliver: bool,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            next: Next::Stop,
            wake: false,
            cut: false,
            settle: false,
            overdue: false,
            free_slot: false,
            redeliver: false,
        }
    }
}
