//! Who is inside what, since when, and what the thread is doing there.
//!
//! Every worker has a [`Presence`]: the step whose poll or destructor it is inside of. It is
//! written around each poll and read by anybody. When a delivery is overdue, the
//! watch thread looks at whoever holds it and logs what it saw.
//!
//! The culprit of a gap is not always a step of the delivery that has the gap: a woken task can sit
//! behind a worker that another delivery holds, and no other worker may take it from there. So, in
//! this order (measured; "whoever is longest inside a poll" blamed the wrong step in each of 12
//! trials with two spinning workers):
//!
//! 1. the delivery's own step that is inside a poll or a destructor;
//! 2. the step on the worker that first woke the delivery's task since its last poll, if it was inside
//!    before that and still is;
//! 3. if every worker is inside a step, the one that has been longest;
//! 4. otherwise nobody: what held the task was seen by nobody.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::drive::cell::{Cell, Overdue};
use crate::drive::process::{self, Doing};
use crate::drive::rank;
use crate::event::{DeliveryId, Inside, Observation, Sighting, StepId, Target, ThreadName};
use crate::timeline::Moment;
use crate::workload::Workload;

const PRIORITY: u32 = 5;
/// A thread that was looked at is not looked at again so soon: one that holds a worker can be what
/// a hundred thousand deliveries wait for.
const STILL_TRUE: Duration = Duration::from_millis(1);

/// What a worker is inside of: packed into one word so that a reader never sees half of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub delivery: DeliveryId,
    pub step: StepId,
    pub inside: Inside,
    /// Whether the step is detached from its delivery's pipeline.
    pub detached: bool,
}

impl Place {
    fn pack(self) -> u64 {
        let inside = match self.inside {
            Inside::Poll => 1,
            Inside::Destructor => 2,
            Inside::Closure => 3,
        };
        u64::from(self.delivery.0) << 32
            | u64::from(self.step.0) << 3
            | u64::from(self.detached) << 2
            | inside
    }

    fn unpack(word: u64) -> Option<Self> {
        let inside = match word & 3 {
            0 => return None,
            1 => Inside::Poll,
            2 => Inside::Destructor,
            _ => Inside::Closure,
        };
        Some(Self {
            delivery: DeliveryId((word >> 32) as u32),
            step: StepId((word as u32) >> 3),
            inside,
            detached: word & 4 != 0,
        })
    }
}

/// One worker's mark of what it is inside of.
#[derive(Debug)]
pub(crate) struct Presence {
    number: u32,
    thread: Option<ThreadName>,
    place: AtomicU64,
    since: AtomicU64,
}

thread_local! {
    static PRESENCE: OnceCell<Arc<Presence>> = const { OnceCell::new() };
}

/// Says that the worker is inside; on drop, that it is where it was before.
pub(crate) struct Stay {
    presence: Arc<Presence>,
    place: u64,
    since: u64,
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.presence.mark(self.place, self.since);
    }
}

impl Presence {
    /// The number of the calling thread's presence, if it has one.
    pub(crate) fn here() -> Option<u32> {
        PRESENCE.with(|presence| presence.get().map(|presence| presence.number))
    }

    /// Cleared in between, so that a reader never pairs a place with another one's instant.
    fn mark(&self, place: u64, since: u64) {
        self.place.store(0, Ordering::Release);
        self.since.store(since, Ordering::Release);
        self.place.store(place, Ordering::Release);
    }

    fn read(&self) -> Option<(Place, Moment)> {
        let word = self.place.load(Ordering::Acquire);
        let since = self.since.load(Ordering::Acquire);
        let again = self.place.load(Ordering::Acquire);
        let place = Place::unpack(word).filter(|_| word == again)?;
        Some((place, Moment::from_nanos(since)))
    }
}

/// All presences of a run, and the way to the watch thread.
pub(crate) struct Watch {
    workers: usize,
    presences: Mutex<Vec<Arc<Presence>>>,
    overdue: Mutex<Option<mpsc::Sender<Arc<Cell>>>>,
    /// The thread that was looked at last, when, and what it did.
    last: Mutex<Option<(ThreadName, Moment, Doing)>>,
}

impl Watch {
    /// A watch over so many workers.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers,
            presences: Mutex::default(),
            overdue: Mutex::new(None),
            last: Mutex::new(None),
        }
    }

    /// Starts the thread that looks at what is overdue as soon as it is.
    pub(crate) fn start(&self) -> std::io::Result<JoinHandle<()>> {
        let (sender, receiver) = mpsc::channel::<Arc<Cell>>();
        *self.overdue.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        std::thread::Builder::new().name("watch".into()).spawn(move || {
            rank::raise(PRIORITY);
            for cell in receiver {
                cell.shared().watch.look(&cell);
            }
        })
    }

    /// Lets the thread end when it has looked at all that it was told of.
    pub(crate) fn end(&self) {
        *self.overdue.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Has the overdue delivery looked at.
    pub(crate) fn notice(&self, cell: &Arc<Cell>) {
        if let Some(sender) = &*self.overdue.lock().unwrap_or_else(PoisonError::into_inner) {
            // Only fails when the thread is gone, and then nobody looks any more.
            let _ = sender.send(Arc::clone(cell));
        }
    }

    /// Marks the calling worker as being there until the answer is dropped.
    pub(crate) fn enter(&self, place: Place, now: Moment) -> Stay {
        let presence = PRESENCE.with(|own| {
            let presence = own.get_or_init(|| {
                let mut presences = self.presences.lock().unwrap_or_else(PoisonError::into_inner);
                let presence = Arc::new(Presence {
                    number: presences.len() as u32,
                    thread: process::this_thread(),
                    place: AtomicU64::new(0),
                    since: AtomicU64::new(0),
                });
                presences.push(Arc::clone(&presence));
                presence
            });
            Arc::clone(presence)
        });
        let stay = Stay {
            place: presence.place.load(Ordering::Relaxed),
            since: presence.since.load(Ordering::Relaxed),
            presence,
        };
        stay.presence.mark(place.pack(), now.nanos());
        stay
    }

    /// Looks at whatever of this delivery is overdue and logs what is seen.
    pub(crate) fn look(&self, cell: &Arc<Cell>) {
        for overdue in cell.overdue() {
            let sighting = self.sight(cell, &overdue);
            cell.observe(Observation::Sighted(Box::new(sighting)));
        }
    }

    /// Notes the CPU time of the calling worker, which is about to say that it lets go of an overdue
    /// frame: what it used since the cutoff tells spinning from sleeping.
    pub(crate) fn let_go(&self, cell: &Arc<Cell>) {
        let held =
            cell.overdue().into_iter().find(|open| !matches!(open.target, Target::Opened(_)));
        if let Some(overdue) = held {
            let thread = process::this_thread();
            let cpu = thread.map(|_| process::this_thread_cpu());
            let sighting = Sighting { thread, cpu, ..nothing_of(overdue.target) };
            cell.observe(Observation::Sighted(Box::new(sighting)));
        }
    }

    fn sight(&self, cell: &Cell, overdue: &Overdue) -> Sighting {
        let mut sighting = nothing_of(overdue.target);
        let holder = match overdue.target {
            Target::Execution | Target::Callback(_) | Target::Scope => self.holder(cell),
            Target::Opened(_) if overdue.thread.is_some() => None,
            Target::Opened(_) => {
                self.detached_holder(cell.ticket().id, overdue.step, &cell.shared().workload)
            }
        };
        if let Some((presence, place, since)) = holder {
            sighting.holder = Some(place.delivery);
            sighting.step = Some(place.step);
            sighting.inside = Some(place.inside);
            sighting.since = Some(since);
            sighting.thread = presence.thread;
        } else if overdue.thread.is_some() {
            sighting.holder = Some(cell.ticket().id);
            sighting.step = Some(overdue.step);
            sighting.inside = Some(Inside::Closure);
            sighting.since = Some(overdue.since);
            sighting.thread = overdue.thread;
        }
        if let Some(thread) = sighting.thread {
            let doing = self.look_at(thread, cell.shared().control.now());
            sighting.state = doing.state;
            sighting.cpu = doing.cpu;
            sighting.waiting_in = doing.waiting_in;
        }
        sighting
    }

    fn look_at(&self, thread: ThreadName, now: Moment) -> Doing {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((looked_at, at, doing)) if *looked_at == thread && now.since(*at) < STILL_TRUE => {
                doing.clone()
            }
            _ => {
                let doing = process::look(thread);
                *last = Some((thread, now, doing.clone()));
                doing
            }
        }
    }

    fn inside(&self) -> Vec<(Arc<Presence>, Place, Moment)> {
        let presences = self.presences.lock().unwrap_or_else(PoisonError::into_inner);
        presences
            .iter()
            .filter_map(|presence| {
                presence.read().map(|(place, since)| (Arc::clone(presence), place, since))
            })
            .collect()
    }

    /// Who holds up the delivery's own frame: the four rules of the module.
    fn holder(&self, cell: &Cell) -> Option<(Arc<Presence>, Place, Moment)> {
        let inside = self.inside();
        let own = inside
            .iter()
            .find(|(_, place, _)| place.delivery == cell.ticket().id && !place.detached);
        let waker = || {
            let (number, at) = cell.woken()?;
            inside.iter().find(|(presence, _, since)| presence.number == number && *since <= at)
        };
        let longest = || {
            (inside.len() >= self.workers)
                .then(|| inside.iter().min_by_key(|(_, _, since)| *since))
                .flatten()
        };
        own.or_else(waker).or_else(longest).cloned()
    }

    fn detached_holder(
        &self,
        delivery: DeliveryId,
        root: StepId,
        workload: &Workload,
    ) -> Option<(Arc<Presence>, Place, Moment)> {
        self.inside().into_iter().find(|(_, place, _)| {
            place.delivery == delivery && place.detached && is_within(workload, root, place.step)
        })
    }
}

fn nothing_of(target: Target) -> Sighting {
    Sighting {
        target,
        holder: None,
        step: None,
        inside: None,
        since: None,
        thread: None,
        state: None,
        cpu: None,
        waiting_in: None,
    }
}

fn is_within(workload: &Workload, root: StepId, step: StepId) -> bool {
    root == step
        || workload.step(root).work.children().iter().any(|child| is_within(workload, *child, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_packing() {
        let place = Place {
            delivery: DeliveryId(u32::MAX),
            step: StepId(70_000),
            inside: Inside::Destructor,
            detached: true,
        };
        assert_eq!(Place::unpack(place.pack()), Some(place));
        assert_eq!(Place::unpack(0), None);
    }

    #[test]
    fn a_thread_is_looked_at_once_for_all_that_wait_for_it() {
        let watch = Watch::new(1);
        let Some(thread) = process::this_thread() else { return };
        let first = watch.look_at(thread, Moment::START).cpu;
        let spun = process::this_thread_cpu() + Duration::from_millis(20);
        while process::this_thread_cpu() < spun {}
        let soon = Moment::START + STILL_TRUE / 2;
        assert_eq!(watch.look_at(thread, soon).cpu, first);
        assert!(watch.look_at(thread, Moment::START + STILL_TRUE).cpu > first);
    }
}
