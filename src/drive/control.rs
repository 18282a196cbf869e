//! The control thread: decides what time brings, whatever the workload does to its own workers.
//!
//! Alarms are instants at which something is looked at again; the clock decides and an alarm only
//! wakes, so one that comes too early or twice does no harm. Workers set alarms and never wait for
//! this thread. Measured: cutoffs decided on the workload's own runtime were late by the whole
//! length of a step that does not yield; here p99 is near 0.1 ms in the real-time class.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Wake, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::drive::cell::Cell;
use crate::drive::rank;
use crate::event::Opening;
use crate::obligation::Evidence;
use crate::report::Control as Class;
use crate::timeline::Moment;

/// The control thread sleeps at least so long between two alarms, unless an earlier one is set: a
/// real-time thread that wakes without pause is throttled by the kernel for up to 50 ms.
const BETWEEN_WAKES: Duration = Duration::from_micros(100);
const PRIORITY: u32 = 10;

/// What an alarm is for.
pub(crate) enum Alarm {
    /// Something of the delivery behind this bell may be due.
    Due(Arc<Bell>),
    /// The broker's confirmation of this delivery arrives.
    Confirm(Weak<Cell>),
    /// A spawned task may have been joined.
    Join(Arc<Join>),
    /// Anything else of the run.
    Call(Box<dyn FnOnce() + Send>),
}

struct Entry {
    at: Moment,
    /// Keeps alarms of one instant in their order.
    number: u64,
    alarm: Alarm,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Default)]
struct Alarms {
    heap: BinaryHeap<Reverse<Entry>>,
    count: u64,
    ended: bool,
}

/// The alarms of a run, and the thread that answers them.
pub(crate) struct Control {
    origin: Instant,
    alarms: Mutex<Alarms>,
    bell: Condvar,
}

impl Control {
    /// Alarms on the clock that began at `origin`.
    pub(crate) fn new(origin: Instant) -> Arc<Self> {
        Arc::new(Self { origin, alarms: Mutex::default(), bell: Condvar::new() })
    }

    /// The clock of the run.
    pub(crate) fn now(&self) -> Moment {
        Moment::START + self.origin.elapsed()
    }

    /// Starts the thread, and answers in which class it runs.
    pub(crate) fn start(self: &Arc<Self>) -> std::io::Result<(JoinHandle<()>, Class)> {
        let (class_out, class_in) = std::sync::mpsc::sync_channel(1);
        let control = Arc::clone(self);
        let thread = std::thread::Builder::new().name("control".into()).spawn(move || {
            // The receiver waits below; it cannot be gone.
            let _ = class_out.send(rank::raise(PRIORITY));
            control.answer_alarms();
        })?;
        Ok((thread, class_in.recv().unwrap_or(Class::Ordinary)))
    }

    /// Sets an alarm.
    pub(crate) fn set(&self, at: Moment, alarm: Alarm) {
        let mut alarms = self.lock();
        if alarms.ended {
            return;
        }
        let is_first = alarms.heap.peek().is_none_or(|Reverse(first)| at < first.at);
        let number = alarms.count;
        alarms.count += 1;
        alarms.heap.push(Reverse(Entry { at, number, alarm }));
        drop(alarms);
        if is_first {
            self.bell.notify_one();
        }
    }

    /// Ends the thread; alarms not answered by now never are.
    pub(crate) fn end(&self) {
        let unanswered = {
            let mut alarms = self.lock();
            alarms.ended = true;
            std::mem::take(&mut alarms.heap)
        };
        drop(unanswered);
        self.bell.notify_one();
    }

    fn answer_alarms(&self) {
        let mut last_wake = Moment::START;
        let mut alarms = self.lock();
        while !alarms.ended {
            let now = self.now();
            let next = alarms.heap.peek().map(|Reverse(entry)| entry.at);
            match next {
                Some(at) if at <= now => {
                    if let Some(Reverse(entry)) = alarms.heap.pop() {
                        drop(alarms);
                        self.answer(entry.alarm);
                        alarms = self.lock();
                    }
                    last_wake = now;
                }
                Some(at) => {
                    let span = at.max(last_wake + BETWEEN_WAKES).since(now);
                    alarms = self
                        .bell
                        .wait_timeout(alarms, span)
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
                None => {
                    alarms = self.bell.wait(alarms).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn answer(&self, alarm: Alarm) {
        match alarm {
            Alarm::Due(bell) => bell.ring(),
            Alarm::Confirm(cell) => {
                if let Some(cell) = cell.upgrade() {
                    cell.confirm();
                }
            }
            Alarm::Join(join) => join.poll(),
            Alarm::Call(call) => call(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The alarm of whoever is behind it: one delivery after the other in a slot, or one that lingers.
///
/// A slot keeps its bell, and a bell that rings too early is set again. So a delivery that is over
/// long before its cutoff leaves no alarm behind, and the next one in its slot sets none.
pub(crate) struct Bell {
    /// The earliest alarm that is set.
    armed: AtomicU64,
    behind: Mutex<Weak<Cell>>,
}

impl Bell {
    /// A bell with nobody behind it.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            armed: AtomicU64::new(Moment::NEVER.nanos()),
            behind: Mutex::new(Weak::new()),
        })
    }

    /// Puts a delivery behind it.
    pub(crate) fn give_to(&self, cell: Weak<Cell>) {
        *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = cell;
    }

    /// Whether an alarm has to be set for `due`; notes that it is.
    pub(crate) fn arm(&self, due: Moment) -> bool {
        due.nanos() < self.armed.load(Ordering::Acquire)
            && due.nanos() < self.armed.fetch_min(due.nanos(), Ordering::AcqRel)
    }

    fn ring(&self) {
        // Disarmed before the delivery is read: one that comes now either is read here or finds it disarmed.
        self.armed.store(Moment::NEVER.nanos(), Ordering::Release);
        let cell = self.behind.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        if let Some(cell) = cell {
            cell.tick();
        }
    }
}

/// Waits for a spawned task, off the workload's workers. Its join resolves only after the task's
/// future was dropped, destructor included, also when that destructor panicked.
pub(crate) struct Join {
    handle: Mutex<Option<tokio::task::JoinHandle<()>>>,
    cell: Arc<Cell>,
    opening: Opening,
}

impl Join {
    /// Watches a task of that delivery.
    pub(crate) fn watch(handle: tokio::task::JoinHandle<()>, cell: Arc<Cell>, opening: Opening) {
        Arc::new(Self { handle: Mutex::new(Some(handle)), cell, opening }).wake();
    }

    fn poll(self: Arc<Self>) {
        let waker = Waker::from(Arc::clone(&self));
        let mut slot = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = slot.as_mut() else { return };
        if std::pin::Pin::new(handle).poll(&mut Context::from_waker(&waker)).is_ready() {
            *slot = None;
            drop(slot);
            self.cell.close(self.opening, Evidence::TaskJoined, None);
        }
    }
}

impl Wake for Join {
    fn wake(self: Arc<Self>) {
        let cell = Arc::clone(&self.cell);
        cell.shared().control.set(Moment::START, Alarm::Join(self));
    }
}
