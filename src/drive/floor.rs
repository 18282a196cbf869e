//! Where the deliveries of a run are: waiting, at work, or over.
//!
//! One lock holds admission, the live cells and the finished logs. It may be held while a cell is
//! locked, never the other way round.

mod shutdown;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::drive::cell::Cell;
use crate::drive::control::{Alarm, Bell, Control};
use crate::drive::feed::{self, Feed};
use crate::drive::task::{self, Started};
use crate::drive::watch::Watch;
use crate::engine::{Admission, Delivery, Ticket, Waiting, record};
use crate::event::{
    Decision, DeliveryId, DeliveryLog, Entry, Event, EventLog, Initiator, Observation, RunEntry,
    RunEvent, StepEnd, StepId, StepOutcome,
};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::settle::memory::Broker;
use crate::steps::io::peer::Door;
use crate::timeline::{Moment, Root};
use crate::workload::Workload;

/// The shortest pause between two looks at who is still open.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// All that the parts of a running load share.
pub(crate) struct Shared {
    pub workload: Arc<Workload>,
    pub plan: Arc<Plan>,
    pub control: Arc<Control>,
    pub watch: Watch,
    pub broker: Broker,
    pub runtime: tokio::runtime::Handle,
    pub progress: Arc<Progress>,
    /// Who reads every entry as it comes.
    pub feed: Option<Feed>,
    /// How often each step was executed for each message, for those that count (`fail.first`).
    pub executions: Mutex<HashMap<(u32, StepId), u32>>,
    /// Where the peers of the file are, in its order.
    pub peers: Vec<Door>,
    /// Files that steps have made, to be removed when the run is over.
    pub written: Mutex<Vec<PathBuf>>,
    /// For each step, its end when it succeeded at its first poll.
    pub plain_ends: Vec<Arc<StepEnd>>,
    floor: Mutex<Floor>,
    changed: Condvar,
}

struct Floor {
    admission: Admission,
    slots: Vec<Slot>,
    /// Slots that nobody has.
    free: Vec<u32>,
    /// Those that gave their slot back with something still open.
    lingering: HashMap<DeliveryId, Arc<Cell>>,
    root: Option<Root>,
    forced: bool,
    /// How many gave their slots back.
    left: u32,
    /// The arrival for which an alarm is set.
    expected: Moment,
    /// Who was released unstarted, and when.
    released: Vec<(Waiting, Moment)>,
    /// Observation is over: nobody is admitted, and nothing is logged any more.
    ended: bool,
    log: EventLog,
}

/// Messages that were to be delivered again in the very instant in which observation ended.
fn unanswered(log: &EventLog) -> Vec<(u32, u32)> {
    let came: HashSet<_> = log.deliveries.iter().map(|log| (log.message, log.attempt)).collect();
    let is_retry = |entry: &Entry| matches!(entry.event, Event::Decided(Decision::Redeliver));
    log.deliveries
        .iter()
        .filter(|log| log.entries.iter().any(is_retry))
        .map(|log| (log.message, log.attempt))
        .filter(|(message, attempt)| !came.contains(&(*message, attempt + 1)))
        .collect()
}

fn plain_end(step: StepId) -> Arc<StepEnd> {
    let outcome = StepOutcome::Success;
    Arc::new(StepEnd { step, outcome, code: None, polls: 1, left: None, over: None, traces: None })
}

/// A place for one delivery at a time.
struct Slot {
    cell: Option<Arc<Cell>>,
    /// The cell before: its memory is used again when its task has let go of it.
    spare: Option<Arc<Cell>>,
    bell: Arc<Bell>,
}

impl Floor {
    /// All that have something open.
    fn live(&self) -> impl Iterator<Item = &Arc<Cell>> {
        self.slots.iter().filter_map(|slot| slot.cell.as_ref()).chain(self.lingering.values())
    }
}

impl Shared {
    pub(crate) fn new(
        workload: Arc<Workload>,
        plan: Arc<Plan>,
        control: Arc<Control>,
        runtime: tokio::runtime::Handle,
        progress: Arc<Progress>,
        peers: Vec<Door>,
        feed: Option<Feed>,
    ) -> Arc<Self> {
        let load = &workload.load;
        progress.total.store(u64::from(load.deliveries), Ordering::Relaxed);
        let confirm_in = workload.settlement.as_ref().and_then(|policy| policy.confirm_in);
        Arc::new(Self {
            watch: Watch::new(workload.runtime.workers),
            broker: Broker::new(confirm_in),
            floor: Mutex::new(Floor {
                admission: Admission::new(load),
                slots: Vec::new(),
                free: Vec::new(),
                lingering: HashMap::new(),
                root: None,
                forced: false,
                left: 0,
                expected: Moment::NEVER,
                released: Vec::new(),
                ended: false,
                log: EventLog::default(),
            }),
            changed: Condvar::new(),
            executions: Mutex::default(),
            peers,
            written: Mutex::default(),
            plain_ends: (0..workload.steps.len() as u32).map(StepId).map(plain_end).collect(),
            workload,
            plan,
            control,
            runtime,
            progress,
            feed,
        })
    }

    /// Removes what steps have written and was not to be kept.
    pub(crate) fn remove_written(&self) {
        for path in
            std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner))
        {
            // Somebody else may have removed it.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Has the control thread do something at `at`, if the run is not over by then.
    pub(crate) fn call_at(
        self: &Arc<Self>,
        at: Moment,
        what: impl FnOnce(&Arc<Self>) + Send + 'static,
    ) {
        let shared = Arc::downgrade(self);
        let call = move || {
            if let Some(shared) = shared.upgrade() {
                what(&shared);
            }
        };
        self.control.set(at, Alarm::Call(Box::new(call)));
    }

    /// Admits whoever can be, and wakes when the next message arrives.
    pub(crate) fn admit(self: &Arc<Self>) {
        loop {
            let mut floor = self.lock();
            let Some(started) = self.admit_one(&mut floor) else {
                self.expect_arrival(&mut floor);
                return;
            };
            drop(floor);
            task::start(started, None);
        }
    }

    /// Sets one alarm for the next arrival. With every slot taken it is not looked for: whoever leaves
    /// takes in who has arrived by then.
    fn expect_arrival(self: &Arc<Self>, floor: &mut Floor) {
        let next = floor.admission.next_arrival().unwrap_or(Moment::NEVER);
        if next == floor.expected {
            return;
        }
        floor.expected = next;
        if next != Moment::NEVER {
            self.call_at(next, Self::admit);
        }
    }

    /// A delivery gives its slot back, or has nothing open any more, or both. Whoever waits for the
    /// slot takes it.
    ///
    /// The last receipt may be here before the slot: logs are taken under the floor's lock, so each is
    /// in the record once.
    pub(crate) fn leave(self: &Arc<Self>, cell: &Arc<Cell>, frees_slot: bool, is_closed: bool) {
        let mut floor = self.lock();
        if floor.ended {
            return;
        }
        if is_closed {
            floor.log.deliveries.extend(cell.retire());
        }
        let id = cell.ticket().id;
        let (mut started, mut told) = (None, None);
        let left = if frees_slot {
            let held = floor.slots[cell.slot() as usize].cell.take();
            floor.free.push(cell.slot());
            floor.admission.free_slot();
            floor.left += 1;
            self.progress.over.fetch_add(1, Ordering::Relaxed);
            if !cell.is_retired() {
                floor.lingering.insert(id, Arc::clone(cell));
            }
            if self.workload.shutdown.after_deliveries == Some(floor.left) {
                let now = self.control.now();
                told = self.begin_shutdown(&mut floor, Initiator::AfterDeliveries, now);
            }
            started = self.admit_one(&mut floor);
            self.expect_arrival(&mut floor);
            std::mem::replace(&mut floor.slots[cell.slot() as usize].spare, held)
        } else {
            floor.lingering.remove(&id)
        };
        self.progress.in_flight.store(floor.admission.in_flight().into(), Ordering::Relaxed);
        let is_over = floor.admission.is_over();
        drop(floor);
        // Frees memory, which need not be done inside the lock.
        drop(left);
        if is_over {
            self.changed.notify_all();
        }
        if let Some(started) = started {
            task::start(started, Some(id));
        }
        if let Some(told) = told {
            // On the control thread: to tell everybody takes longer than a worker should be held.
            self.call_at(Moment::START, move |shared| shared.tell(&told));
        }
    }

    fn admit_one(self: &Arc<Self>, floor: &mut Floor) -> Option<Started> {
        let ticket = floor.admission.admit(self.control.now())?;
        let number = floor.free.pop().unwrap_or_else(|| {
            floor.slots.push(Slot { cell: None, spare: None, bell: Bell::new() });
            floor.slots.len() as u32 - 1
        });
        let slot = &mut floor.slots[number as usize];
        let spare = slot.spare.take();
        let cell = Cell::new(ticket, Arc::clone(self), number, &slot.bell, spare);
        slot.cell = Some(Arc::clone(&cell));
        // Under the lock, so that a root is either seen here or published to the cell. It cannot end the
        // delivery, which would need the lock again: there is an element to start.
        let first = cell.observe(Observation::Admitted { root: floor.root.map(Box::new) });
        self.progress.in_flight.store(floor.admission.in_flight().into(), Ordering::Relaxed);
        Some(Started { cell, first })
    }

    /// The message comes again.
    pub(crate) fn redeliver(self: &Arc<Self>, ticket: Ticket, now: Moment) {
        let mut floor = self.lock();
        if floor.ended {
            return;
        }
        self.redeliver_locked(&mut floor, ticket.message, ticket.attempt, now);
        drop(floor);
        self.admit();
    }

    fn redeliver_locked(&self, floor: &mut Floor, message: u32, attempt: u32, now: Moment) {
        self.progress.total.fetch_add(1, Ordering::Relaxed);
        if let Some(ticket) = floor.admission.redeliver(message, attempt + 1, now) {
            let log = self.released(ticket, now);
            floor.log.deliveries.push(log);
            self.progress.over.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until nothing is open, or until it has been observed long enough, at most to `bound`.
    pub(crate) fn wait(&self, bound: Moment) -> EventLog {
        let mut floor = self.lock();
        let mut load_ended = false;
        loop {
            let now = self.control.now();
            let mut until = bound;
            if floor.admission.is_over() {
                if !std::mem::replace(&mut load_ended, true) {
                    self.log_run(&mut floor.log, RunEntry { at: now, event: RunEvent::LoadEnded });
                }
                let last_due = floor.live().map(|cell| cell.last_due()).max();
                let observed = |last_due| last_due + self.plan.observe;
                until = until.min(last_due.map_or(Moment::START, observed));
            } else {
                load_ended = false;
            }
            if until <= now {
                break;
            }
            let span = until.since(now).clamp(BETWEEN_LOOKS, Duration::from_secs(3600));
            floor =
                self.changed.wait_timeout(floor, span).unwrap_or_else(PoisonError::into_inner).0;
        }
        let cells: Vec<_> = floor.live().cloned().collect();
        drop(floor);
        self.end_observation(&cells)
    }

    /// Closes admission; a second time changes nothing. Those that waited get their logs when the run is
    /// over: with ten million of them that takes seconds, in which those at work would be held up by this
    /// lock.
    fn close_admission(&self, floor: &mut Floor, now: Moment) {
        let waiting = floor.admission.close(now);
        self.progress.over.fetch_add(waiting.len() as u64, Ordering::Relaxed);
        self.progress.total.store(floor.admission.arrived().into(), Ordering::Relaxed);
        floor.released.push((waiting, now));
    }

    /// One last look at what is open, and the log as it stands then. Whatever comes later finds the
    /// floor closed.
    fn end_observation(&self, cells: &[Arc<Cell>]) -> EventLog {
        for cell in cells {
            self.watch.look(cell);
        }
        let mut floor = self.lock();
        floor.ended = true;
        let stopped: Vec<_> = floor.live().filter(|cell| cell.stop()).cloned().collect();
        // Read when nothing is seen any more, so that no entry is later.
        let now = self.control.now();
        let open: Vec<_> = stopped.iter().map(|cell| cell.take_stopped(now)).collect();
        floor.log.deliveries.extend(open);
        self.close_admission(&mut floor, now);
        for (waiting, at) in std::mem::take(&mut floor.released) {
            floor.log.deliveries.extend(waiting.map(|ticket| self.released(ticket, at)));
        }
        for (message, attempt) in unanswered(&floor.log) {
            self.redeliver_locked(&mut floor, message, attempt, now);
        }
        let slots = std::mem::take(&mut floor.slots);
        let lingering = std::mem::take(&mut floor.lingering);
        let mut log = std::mem::take(&mut floor.log);
        drop(floor);
        // The cells that are still open hold on to this floor; they are let go of here.
        drop((slots, lingering));
        log.deliveries.sort_by_key(|log| log.id);
        self.log_run(&mut log, RunEntry { at: now, event: RunEvent::ObservationEnded });
        log
    }

    fn log_run(&self, log: &mut EventLog, entry: RunEntry) {
        if let Some(feed) = &self.feed {
            feed::tell_run(feed, log.run.len(), entry);
        }
        log.run.push(entry);
    }

    fn released(&self, ticket: Ticket, now: Moment) -> DeliveryLog {
        let mut machine = Delivery::new(Arc::clone(&self.plan), ticket.attempt);
        let mut entries = Vec::new();
        record(&mut machine, now, Observation::Released, &mut entries);
        if let Some(feed) = &self.feed {
            feed::tell(feed, ticket, 0, &entries);
        }
        DeliveryLog {
            id: ticket.id,
            message: ticket.message,
            attempt: ticket.attempt,
            arrived: ticket.arrived,
            entries,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::*;
    use crate::event::Verdict;
    use crate::workload::file;

    /// A floor whose clock runs and whose alarms nobody answers, with its first delivery admitted.
    fn floor(settlement: &str) -> (tokio::runtime::Runtime, Arc<Shared>, Arc<Cell>) {
        let text = format!("[settlement]\n{settlement}\n[[handler]]\nkind = \"polls\"\ncount = 0");
        let workload = Arc::new(file::parse(Path::new("a.toml"), &text, &[]).expect("it is valid"));
        let plan = Arc::new(Plan::new(&workload));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let control = Control::new(Instant::now());
        let shared = Shared::new(
            workload,
            plan,
            control,
            runtime.handle().clone(),
            Arc::default(),
            Vec::new(),
            None,
        );
        let Started { cell, .. } = shared.admit_one(&mut shared.lock()).expect("it waits");
        (runtime, shared, cell)
    }

    #[test]
    fn what_is_due_as_observation_ends_is_decided() {
        let (_runtime, shared, cell) = floor("timeout = \"1ms\"\nconfirm = false");
        cell.element_returned(StepId(0), Verdict::Success, None);
        let due = shared.control.now() + Duration::from_millis(1);
        while shared.control.now() < due {
            std::thread::yield_now();
        }
        let log = shared.end_observation(&[]);
        let last = log.deliveries[0].entries.last().map(|entry| &entry.event);
        assert_eq!(last, Some(&Event::Decided(Decision::FreeSlot)));
    }

    #[test]
    fn who_comes_or_leaves_after_the_end_of_observation_finds_the_floor_closed() {
        let (_runtime, shared, cell) = floor("redeliveries = 1");
        let verdict = Verdict::Failure { code: "BUSY".into(), retryable: true };
        cell.element_returned(StepId(0), verdict, None);
        let log = shared.end_observation(&[]);
        assert_eq!(log.deliveries.len(), 1);
        cell.confirm();
        shared.leave(&cell, true, true);
        shared.redeliver(cell.ticket(), shared.control.now());
        assert!(shared.lock().log.deliveries.is_empty());
    }

    #[test]
    fn a_message_that_was_to_come_again_as_observation_ended_was_not_started() {
        let (_runtime, shared, cell) = floor("redeliveries = 1");
        let verdict = Verdict::Failure { code: "BUSY".into(), retryable: true };
        cell.element_returned(StepId(0), verdict, None);
        // Decided, and not carried out yet: the floor is taken first.
        shared.lock().ended = true;
        cell.confirm();
        shared.lock().ended = false;
        let log = shared.end_observation(&[]);
        let attempts: Vec<_> =
            log.deliveries.iter().map(|log| (log.id.0, log.message, log.attempt)).collect();
        assert_eq!(attempts, [(1, 1, 1), (2, 1, 2)]);
        assert_eq!(log.deliveries[1].entries[0].event, Event::Observed(Observation::Released));
    }
}
