//! CPU time of a delivery that does nothing, beside what people use instead of this program.
//!
//! Everything on one async worker, interleaved round by round in one process, medians of CPU time
//! (user and system, all threads): wall time is noise on a shared machine. The delivery goes through
//! the whole pipeline, with its event log and its evidence; the peers only run the work.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadline_run::drive::real;
use deadline_run::plan::Plan;
use deadline_run::workload::{self, Workload};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many deliveries in a round.
const DELIVERIES: usize = 100_000;
const AT_ONCE: usize = 250;
const ROUNDS: usize = 9;
const TIMEOUT: Duration = Duration::from_secs(30);

/// CPU time of the whole process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_time().build().expect("a runtime")
}

/// Spawns from inside the runtime, so many at once, and waits for each batch.
fn spawn_all<F>(runtime: &Runtime, deliveries: usize, work: impl Fn() -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    let driver = runtime.spawn(async move {
        for _ in 0..deliveries / AT_ONCE {
            let mut batch = JoinSet::new();
            for _ in 0..AT_ONCE {
                batch.spawn(work());
            }
            while batch.join_next().await.is_some() {}
        }
    });
    runtime.block_on(driver).expect("the batch driver ends");
}

async fn work(pauses: bool) {
    if pauses {
        tokio::task::yield_now().await;
    }
}

/// A way to run so many deliveries, by name.
type Peer = (&'static str, Box<dyn Fn()>);

fn with_token_and_tracker(runtime: &Runtime, deliveries: usize, pauses: bool) {
    let token = CancellationToken::new();
    let tracker = TaskTracker::new();
    let driver = runtime.spawn(async move {
        for _ in 0..deliveries / AT_ONCE {
            let mut batch = JoinSet::new();
            for _ in 0..AT_ONCE {
                let token = token.child_token();
                let work = async move {
                    token.run_until_cancelled(tokio::time::timeout(TIMEOUT, work(pauses))).await;
                };
                batch.spawn(tracker.track_future(work));
            }
            while batch.join_next().await.is_some() {}
        }
    });
    runtime.block_on(driver).expect("the batch driver ends");
}

fn load(deliveries: usize, pauses: u32) -> (Arc<Workload>, Arc<Plan>) {
    let text = format!(
        "profile = \"custom\"\n[budget]\ntotal = \"30s\"\n[runtime]\nworkers = 1\n[load]\n\
         deliveries = {deliveries}\nconcurrency = {AT_ONCE}\n[[handler]]\nkind = \"polls\"\ncount = {pauses}\n"
    );
    let workload = workload::file::parse(Path::new("no-op.toml"), &text, &[]).expect("it is valid");
    let plan = Plan::new(&workload);
    (Arc::new(workload), Arc::new(plan))
}

/// The ways to run deliveries; the first is what the others are measured against.
fn peers(deliveries: usize, pauses: bool) -> [Peer; 4] {
    let (workload, plan) = load(deliveries, pauses.into());
    let runtime = Arc::new(runtime());
    let [first, second, third] = [0; 3].map(|_| Arc::clone(&runtime));
    [
        (
            "timeout",
            Box::new(move || {
                spawn_all(&first, deliveries, move || async move {
                    let _ = tokio::time::timeout(TIMEOUT, work(pauses)).await;
                });
            }),
        ),
        ("spawn", Box::new(move || spawn_all(&second, deliveries, move || work(pauses)))),
        (
            "timeout-token-tracker",
            Box::new(move || with_token_and_tracker(&third, deliveries, pauses)),
        ),
        (
            "deadline-run",
            Box::new(move || {
                let run = real::run(&workload, &plan, &Default::default(), &Default::default());
                assert_eq!(run.expect("it runs").log.deliveries.len(), deliveries);
            }),
        ),
    ]
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64 / DELIVERIES as f64
}

/// `overhead once PEER DELIVERIES`: one round of one peer, for a tool that counts instructions.
fn run_once(words: &[String]) {
    let deliveries = words[1].parse().expect("a number of deliveries");
    let peers = peers(deliveries, false);
    let (_, run) = peers.iter().find(|(name, _)| *name == words[0]).expect("the name of a peer");
    run();
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(place) = words.iter().position(|word| word == "once") {
        return run_once(&words[place + 1..]);
    }
    for (title, pauses) in
        [("a handler that does nothing", false), ("a handler that pauses once", true)]
    {
        let peers = peers(DELIVERIES, pauses);
        let mut times = vec![Vec::new(); peers.len()];
        for round in 0..=ROUNDS {
            for (peer, times) in peers.iter().zip(&mut times) {
                let before = cpu();
                (peer.1)();
                // The first round warms up.
                if round > 0 {
                    times.push(cpu() - before);
                }
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        println!("{title}: CPU time per delivery, one worker, {ROUNDS} rounds of {DELIVERIES}");
        for ((name, _), median) in peers.iter().zip(&medians) {
            println!("  {name:<24} {median:>7.0} ns  {:>5.2}", median / medians[0]);
        }
    }
}
