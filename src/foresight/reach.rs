//! When each step can run and how long it can take, by what the file says alone.
//!
//! Every bound is one that holds for the work as written: what the machine adds comes on top, so
//! `least` is never too long, and `most` is what the file promises and no more. A span that nothing
//! limits is [`Duration::MAX`].

use std::time::Duration;

use super::Instants;
use crate::event::StepId;
use crate::workload::{
    Address, BlockingOp, Connection, CpuAmount, CpuPlace, Destructor, DestructorWork, OnSignal,
    Span, Step, Wait, Work, Workload,
};

/// Generous for one round of a computation, which takes a nanosecond or two.
const ROUND: Duration = Duration::from_nanos(100);
/// Generous for one poll that wakes itself.
const POLL: Duration = Duration::from_micros(10);

/// The shortest and the longest that something can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) least: Duration,
    pub(super) most: Duration,
}

impl Extent {
    fn then(self, next: Self) -> Self {
        Self {
            least: self.least.saturating_add(next.least),
            most: self.most.saturating_add(next.most),
        }
    }
}

/// What can be known of one step in advance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    /// When it can start, counted from the beginning of its course or of its callback.
    pub(super) start: Extent,
    /// What its own work takes, whether or not anybody still waits for it.
    pub(super) work: Extent,
    /// How long whoever awaits it waits: its timeout and its destructor counted in.
    pub(super) awaited: Extent,
    /// Whether it, or something that it is inside of, is started and not awaited.
    pub(super) is_detached: bool,
    /// Whether any delivery can come to run it: no share or weight of 0 keeps it from that.
    pub(super) can_run: bool,
    /// How many callbacks run before the one that it belongs to.
    pub(super) callbacks_before: u32,
}

/// The reach of every step.
pub(super) struct Reaches<'a> {
    workload: &'a Workload,
    instants: &'a Instants,
    reaches: Vec<Reach>,
    /// What the normal course takes, when nothing interrupts it.
    pub(super) course: Extent,
}

impl<'a> Reaches<'a> {
    pub(super) fn new(workload: &'a Workload, instants: &'a Instants) -> Self {
        let reaches = vec![Reach::default(); workload.steps.len()];
        let mut all = Self { workload, instants, reaches, course: Extent::default() };
        all.course = all.in_sequence(&in_order(workload), Extent::default(), Place::COURSE);
        let callbacks = workload.middleware.iter().rev().filter_map(|one| one.terminate);
        for (before, id) in (0..).zip(callbacks) {
            all.place(id, Extent::default(), Place { before, ..Place::CLEANUP });
        }
        if let Some(id) = workload.dispose {
            all.place(id, Extent::default(), Place::CLEANUP);
        }
        all
    }

    pub(super) fn of(&self, id: StepId) -> Reach {
        self.reaches[id.0 as usize]
    }

    /// Steps one after the other: where each starts, and what they take together.
    fn in_sequence(&mut self, steps: &[StepId], start: Extent, place: Place) -> Extent {
        let mut taken = Extent::default();
        let mut may_be_over = false;
        for id in steps {
            let begun = start.then(taken);
            let mut next = self.place(*id, begun, place);
            // What looks at the signal can end then.
            if place.is_course && heeds_the_signal(self.workload, *id) {
                let until_signal = self.instants.normal_cutoff.saturating_sub(begun.least);
                next.least = next.least.min(until_signal);
            }
            // Behind a step that may fail, nothing is sure to take any time at all.
            if may_be_over {
                next.least = Duration::ZERO;
            }
            may_be_over |= may_fail(self.workload, *id);
            taken = taken.then(next);
        }
        taken
    }

    /// Notes the reach of a step and of those inside it; answers how long it holds up what follows.
    fn place(&mut self, id: StepId, mut start: Extent, mut place: Place) -> Extent {
        let workload = self.workload;
        let step = workload.step(id);
        if step.detach {
            // Nothing is started any more when the window has ended.
            start.most = start.most.min(self.instants.window_end);
            place.is_detached = true;
        }
        place.can_run &= step.share > 0.0;
        let work = self.work(step, start, place);
        let awaited = self.awaited(step, work, start, place);
        self.reaches[id.0 as usize] = Reach {
            start,
            work,
            awaited,
            is_detached: place.is_detached,
            can_run: place.can_run,
            callbacks_before: place.before,
        };
        match (step.detach, step.share < 1.0) {
            (true, _) => Extent::default(),
            (false, true) => Extent { least: Duration::ZERO, ..awaited },
            (false, false) => awaited,
        }
    }

    fn work(&mut self, step: &Step, start: Extent, place: Place) -> Extent {
        match &step.work {
            Work::Cpu { amount, .. } => cpu(amount),
            Work::Cooperative { duration, .. }
            | Work::Blocking { duration, .. }
            | Work::Sleep { duration } => span(duration),
            // Whoever is at the other end takes as long as they like; a peer no less than it is told to.
            Work::Http(http) => {
                Extent { least: self.until_answered(&http.connection), most: Duration::MAX }
            }
            Work::Tcp(_) | Work::Read { .. } | Work::Write(_) => {
                Extent { least: Duration::ZERO, most: Duration::MAX }
            }
            Work::Polls { count } => Extent { least: Duration::ZERO, most: times(POLL, *count) },
            Work::Sequence { steps } => self.in_sequence(steps, start, place),
            Work::Parallel { steps, wait } => self.in_parallel(steps, *wait, start, place),
            Work::Choice { steps, weights } => {
                let branches: Vec<Extent> = steps
                    .iter()
                    .zip(weights)
                    .map(|(id, weight)| {
                        let can_run = place.can_run && *weight > 0.0;
                        self.place(*id, start, Place { can_run, ..place })
                    })
                    .collect();
                let possible = branches.iter().zip(weights).filter(|(_, weight)| **weight > 0.0);
                let possible: Vec<Extent> = possible.map(|(branch, _)| *branch).collect();
                Extent { least: shortest(&possible).least, most: longest(&possible).most }
            }
        }
    }

    /// The shortest time until a request is answered or has failed.
    fn until_answered(&self, connection: &Connection) -> Duration {
        let Address::Peer(place) = connection.to else { return Duration::ZERO };
        let peer = &self.workload.peers[place];
        if peer.refuse {
            return Duration::ZERO;
        }
        match connection.connect_timeout {
            Some(limit) if limit <= peer.accept_after => limit,
            _ => {
                let limit = connection.read_timeout.unwrap_or(Duration::MAX);
                peer.accept_after.saturating_add(peer.answer_after.min(limit))
            }
        }
    }

    fn in_parallel(&mut self, steps: &[StepId], wait: Wait, start: Extent, place: Place) -> Extent {
        // A branch that does not yield holds up the others (P7).
        let held = steps
            .iter()
            .filter(|id| holds_its_worker(self.workload.step(**id)))
            .map(|id| self.work(self.workload.step(*id), start, place).most)
            .fold(Duration::ZERO, Duration::saturating_add);
        let latest = Extent { most: start.most.saturating_add(held), ..start };
        let branches: Vec<Extent> = steps.iter().map(|id| self.place(*id, latest, place)).collect();
        let (least, most) = match wait {
            Wait::All => (longest(&branches).least, longest(&branches).most),
            Wait::First => (shortest(&branches).least, shortest(&branches).most),
        };
        Extent { least, most: most.saturating_add(held) }
    }

    fn awaited(&self, step: &Step, work: Extent, start: Extent, place: Place) -> Extent {
        let mut awaited = work;
        if !holds_its_worker(step) {
            if let Some(timeout) = step.timeout {
                // One that is due at or after `P` never fires (P2).
                let fires = |start: Duration| {
                    !place.is_course
                        || place.is_detached
                        || start.saturating_add(timeout) < self.instants.normal_cutoff
                };
                if fires(start.least) {
                    awaited.least = awaited.least.min(timeout);
                }
                if fires(start.most) {
                    awaited.most = awaited.most.min(timeout);
                }
            }
            if step.poll_budget.is_some() {
                awaited.least = Duration::ZERO;
            }
        }
        awaited.most = awaited.most.saturating_add(destructor(step.on_drop.as_ref()));
        awaited
    }
}

/// Where a step stands.
#[derive(Clone, Copy)]
struct Place {
    is_course: bool,
    is_detached: bool,
    can_run: bool,
    /// Callbacks that run earlier.
    before: u32,
}

impl Place {
    const COURSE: Self = Self { is_course: true, is_detached: false, can_run: true, before: 0 };
    const CLEANUP: Self = Self { is_course: false, is_detached: false, can_run: true, before: 0 };
}

/// The steps of the normal course, in order: ways in, the stages, ways out.
pub(super) fn in_order(workload: &Workload) -> Vec<StepId> {
    let into = workload.middleware.iter().filter_map(|one| one.before);
    let out = workload.middleware.iter().rev().filter_map(|one| one.after);
    let stages = [&workload.guard, &workload.resolve, &workload.extract, &workload.handler];
    into.chain(stages.into_iter().flatten().copied()).chain(out).collect()
}

/// Whether the work runs on a thread and not in the frame of its delivery.
pub(super) fn is_threaded(work: &Work) -> bool {
    matches!(work, Work::Blocking { .. } | Work::Cpu { on: CpuPlace::Thread, .. })
}

/// The name that is looked up on a thread before the step connects.
pub(super) fn looks_up(work: &Work) -> Option<&str> {
    match &work.connection()?.to {
        Address::Host { host, .. } if host.parse::<core::net::IpAddr>().is_err() => Some(host),
        Address::Host { .. } | Address::Peer(_) => None,
    }
}

/// Whether it comes back in one poll, however long that takes.
pub(super) fn holds_its_worker(step: &Step) -> bool {
    matches!(step.work, Work::Cpu { yield_every: None, on: CpuPlace::Worker, .. })
}

/// Whether the step, or one inside it, ends early on seeing the signal.
pub(super) fn heeds_the_signal(workload: &Workload, id: StepId) -> bool {
    match &workload.step(id).work {
        Work::Cooperative { on_signal: OnSignal::Return | OnSignal::Fail { .. }, .. }
        | Work::Blocking { looks_every: Some(_), .. } => true,
        work => work.children().iter().any(|child| heeds_the_signal(workload, *child)),
    }
}

/// Whether the step can end the course before its end: with a failure or a panic.
pub(super) fn may_fail(workload: &Workload, id: StepId) -> bool {
    let step = workload.step(id);
    !step.optional && !step.detach && can_fail(workload, id)
}

/// Whether the step can fail or panic, whatever comes of that.
pub(super) fn can_fail(workload: &Workload, id: StepId) -> bool {
    let step = workload.step(id);
    step.fail.as_ref().is_some_and(|fail| fail.share > 0.0)
        || step.panic > 0.0
        || step.timeout.is_some()
        || step.poll_budget.is_some()
        || step.on_drop.as_ref().is_some_and(|destructor| destructor.panic > 0.0)
        || matches!(
            step.work,
            Work::Cooperative { on_signal: OnSignal::Fail { .. }, .. }
                | Work::Tcp(_)
                | Work::Http(_)
                | Work::Read { .. }
                | Work::Write(_)
                | Work::Blocking { op: BlockingOp::Fsync, .. }
        )
        || step.work.children().iter().any(|child| may_fail(workload, *child))
}

/// The longest that one poll of the step's own work takes.
pub(super) fn longest_poll(step: &Step, work: Extent) -> Duration {
    match &step.work {
        Work::Cpu { on: CpuPlace::Worker, yield_every, .. } => {
            work.most.min(yield_every.unwrap_or(Duration::MAX))
        }
        Work::Cooperative { slice, .. } => work.most.min(*slice),
        _ => Duration::ZERO,
    }
}

/// The longest that a destructor takes.
pub(super) fn destructor(destructor: Option<&Destructor>) -> Duration {
    match destructor.map(|destructor| &destructor.work) {
        None => Duration::ZERO,
        Some(DestructorWork::Cpu(amount)) => cpu(amount).most,
        Some(DestructorWork::Blocking { duration, .. }) => span(duration).most,
    }
}

fn cpu(amount: &CpuAmount) -> Extent {
    match amount {
        CpuAmount::Time(time) => span(time),
        CpuAmount::Iterations(rounds) => {
            Extent { least: Duration::ZERO, most: times(ROUND, *rounds) }
        }
    }
}

fn span(span: &Span) -> Extent {
    let (least, most) = match span {
        Span::Fixed(fixed) => (*fixed, *fixed),
        Span::Uniform { min, max } => (*min, *max),
        Span::Exponential { max, .. } | Span::LogNormal { max, .. } => {
            (Duration::ZERO, max.unwrap_or(Duration::MAX))
        }
    };
    Extent { least, most }
}

fn times(one: Duration, count: u64) -> Duration {
    Duration::from_nanos((one.as_nanos() as u64).saturating_mul(count))
}

/// The larger of each bound.
fn longest(branches: &[Extent]) -> Extent {
    branches.iter().fold(Extent::default(), |longest, branch| Extent {
        least: longest.least.max(branch.least),
        most: longest.most.max(branch.most),
    })
}

/// The smaller of each bound.
fn shortest(branches: &[Extent]) -> Extent {
    branches
        .iter()
        .copied()
        .reduce(|shortest, branch| Extent {
            least: shortest.least.min(branch.least),
            most: shortest.most.min(branch.most),
        })
        .unwrap_or_default()
}
