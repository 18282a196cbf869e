//! The driver on the real clock.
//!
//! The workload gets a runtime of its own. Its workers advance the normal course; the control
//! thread decides cutoffs; the watch thread looks at what is overdue. Whatever the workload does to
//! its workers, the run ends, and its log is complete up to then.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::drive::control::Control;
use crate::drive::feed::{Began, Feed, Happening};
use crate::drive::floor::Shared;
use crate::drive::rank;
use crate::drive::signals::Signals;
use crate::event::{EventLog, Initiator};
use crate::panics;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::report;
use crate::steps::io::peer::Peers;
use crate::timeline::Moment;
use crate::workload::Workload;

/// The longest part of a bounded run that its shutdown may take.
const LONGEST_BOUNDED_SHUTDOWN: Duration = Duration::from_secs(2);
/// How long threads that have nothing left to do may take to end.
const LONGEST_FAREWELL: Duration = Duration::from_secs(1);

/// The control thread and the watch thread.
const OWN_THREADS: usize = 2;
/// The thread of all peers, if there are any.
const PEERS_THREAD: usize = 1;

/// More than the program itself, its blocking threads and what it was started with have open.
const ORDINARY_FILES: u64 = 1_024;

/// How to run.
#[derive(Clone, Default)]
pub struct Options {
    /// Bounds the whole run, observation included: near its end a shutdown is forced that fits
    /// into what is left.
    pub max_time: Option<Duration>,
    /// The signals that begin and force a shutdown.
    pub signals: Option<Signals>,
    /// Who is told of every entry as it comes.
    pub feed: Option<Feed>,
}

/// What a run left.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its record.
    pub log: EventLog,
    /// When it began, by the wall clock.
    pub started: SystemTime,
    /// How long it took, observation included.
    pub elapsed: Duration,
    /// The class in which cutoffs were decided.
    pub control: report::Control,
    /// The niceness of the workload's threads.
    pub workload_nice: i32,
    /// What the peers of the file saw, in its order.
    pub peers: Vec<report::PeerRow>,
}

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The system gave no threads.
    #[error("the threads of the run cannot be started: {0}")]
    Threads(#[from] std::io::Error),
    /// The system gave no sockets on loopback, or no thread for who is behind them.
    #[error("the peers of the workload cannot be started: {0}")]
    Peers(std::io::Error),
}

/// Runs a workload to its end.
///
/// # Errors
/// When its threads cannot be started; nothing was run then.
pub fn run(
    workload: &Arc<Workload>,
    plan: &Arc<Plan>,
    options: &Options,
    progress: &Arc<Progress>,
) -> Result<Run, DriveError> {
    panics::hush();
    try_threads(workload.runtime.workers + OWN_THREADS + PEERS_THREAD)?;
    let nice = Arc::new(AtomicI32::new(0));
    let niced = Arc::clone(&nice);
    make_room_for_sockets(workload);
    let peers = Peers::start(&workload.peers).map_err(DriveError::Peers)?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if workload.steps.iter().any(|step| step.work.connection().is_some()) {
        builder.enable_io();
    }
    let runtime = builder
        .worker_threads(workload.runtime.workers)
        .max_blocking_threads(workload.runtime.blocking_threads)
        .thread_name("worker")
        .on_thread_start(move || niced.store(rank::favour(), Ordering::Relaxed))
        .enable_time()
        .build()?;
    let foreseen_nice = options.feed.as_ref().map(|_| foreseen_nice()).transpose()?;
    let origin = Instant::now();
    let started = SystemTime::now();
    let control = Control::new(origin);
    let shared = Shared::new(
        Arc::clone(workload),
        Arc::clone(plan),
        Arc::clone(&control),
        runtime.handle().clone(),
        Arc::clone(progress),
        peers.doors(),
        options.feed.clone(),
    );
    let (control_thread, class) = control.start()?;
    let watch_thread = shared.watch.start()?;
    if let Some((feed, workload_nice)) = options.feed.as_ref().zip(foreseen_nice) {
        // A reader that is gone is no reason not to run.
        let _ = feed.send(Happening::Began(Began { started, control: class, workload_nice }));
    }
    listen(&shared, options.signals.as_ref());
    let bound = bound(&shared, options.max_time);
    schedule(&shared);
    shared.admit();
    let log = shared.wait(bound);
    let elapsed = log.run.last().map_or(origin.elapsed(), |end| end.at.since(Moment::START));
    if let Some(signals) = &options.signals {
        signals.listen(None);
    }
    control.end();
    shared.watch.end();
    // Neither runs the workload's code, so neither can be stuck; a panic of theirs is a bug of ours.
    control_thread.join().expect("the control thread ends by itself");
    watch_thread.join().expect("the watch thread ends by itself");
    let peers = peers.end();
    // Returns although threads are stuck; they end with the process.
    runtime.shutdown_timeout(if progress_is_clean(progress) {
        LONGEST_FAREWELL
    } else {
        Duration::ZERO
    });
    shared.remove_written();
    drop(shared);
    let workload_nice = nice.load(Ordering::Relaxed);
    Ok(Run { log, started, elapsed, control: class, workload_nice, peers })
}

/// Whether the system gives so many threads at once. Asked before the runtime is built, which panics
/// when it gets too few, and then waits for ever for those that it got.
fn try_threads(count: usize) -> std::io::Result<()> {
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let _closed = gate.write();
        let wait = || drop(gate.read());
        (0..count)
            .try_for_each(|_| std::thread::Builder::new().spawn_scoped(scope, wait).map(|_| ()))
    })
}

/// Raises the limit of open files, as far as the system lets, to what the connections of the workload
/// can want: a lack of descriptors here would read as a failure of the other side.
fn make_room_for_sockets(workload: &Workload) {
    let connecting = workload.steps.iter().filter(|step| step.work.connection().is_some()).count();
    let slots = workload.load.concurrency.min(workload.load.deliveries);
    // Both ends of a connection to a peer are ours.
    let wanted = ORDINARY_FILES.saturating_add(u64::from(slots) * 2 * connecting as u64);
    let limits = getrlimit(Resource::Nofile);
    if connecting > 0 && limits.current.is_some_and(|current| current < wanted) {
        let current = Some(limits.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
        // Refused, it stays as it is.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limits });
    }
}

/// The niceness that the workload's threads will have, asked of one that does no work: theirs is not
/// known before each has begun.
fn foreseen_nice() -> std::io::Result<i32> {
    let asked = std::thread::Builder::new().spawn(rank::favour)?;
    Ok(asked.join().expect("it asks the system and nothing else"))
}

fn progress_is_clean(progress: &Progress) -> bool {
    progress.overdue.load(Ordering::Relaxed) == 0
}

fn listen(shared: &Arc<Shared>, signals: Option<&Signals>) {
    let Some(signals) = signals else { return };
    let shared = Arc::downgrade(shared);
    signals.listen(Some(Arc::new(move |by, count| {
        let Some(shared) = shared.upgrade() else { return };
        shared.shut_down(by, shared.control.now());
        if count > 1 {
            shared.force();
        }
    })));
}

/// Sets the alarm of the shutdown that the workload schedules. It is initiated at that very instant,
/// whoever notices it how late.
fn schedule(shared: &Arc<Shared>) {
    let Some(at) = shared.workload.shutdown.at else { return };
    let at = Moment::START + at;
    shared.call_at(at, move |shared| shared.shut_down(Initiator::Schedule, at));
}

/// Sets the alarm of a bounded run, and answers when it is over at the latest.
fn bound(shared: &Arc<Shared>, max_time: Option<Duration>) -> Moment {
    let Some(max_time) = max_time else { return Moment::NEVER };
    let shutdown = (max_time / 4).min(LONGEST_BOUNDED_SHUTDOWN);
    shared.call_at(Moment::START + (max_time - shutdown), move |shared| {
        shared.shut_down_within(Initiator::MaxTime, shutdown);
        shared.force();
    });
    Moment::START + max_time
}
