//! How many deliveries the pure engine decides in a second, on one core.
//!
//! Each goes through the calling rule with its log kept: admission, an `after`, settlement; every tenth
//! is signalled, cut, and cleaned up. No clock is read and nothing is started.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadline_run::engine::{Delivery, record};
use deadline_run::event::{Entry, Observation, StepId, Verdict};
use deadline_run::plan::Plan;
use deadline_run::timeline::Moment;
use deadline_run::workload;

const DELIVERIES: u64 = 1_000_000;
const ROUNDS: usize = 7;
const WORKLOAD: &str = "
[budget]
total = \"2s\"
[[middleware]]
after = { kind = \"cpu\", iterations = 1 }
terminate = { kind = \"cpu\", iterations = 1 }
[[handler]]
kind = \"cpu\"
iterations = 1
";

fn deliver(plan: &Arc<Plan>, number: u64, log: &mut Vec<Entry>) {
    let [handler, after, terminate] = {
        let middleware = plan.middleware[0];
        let parts = [middleware.after, middleware.terminate];
        [Some(plan.forward[0].1), parts[0], parts[1]].map(|step| step.expect("it is there"))
    };
    let mut machine = Delivery::new(Arc::clone(plan), 1);
    let mut at = Moment::START + Duration::from_micros(number);
    let mut see = |after_micros, seen| {
        at = at + Duration::from_micros(after_micros);
        record(&mut machine, at, seen, log);
    };
    let returned = |step: StepId| Observation::ElementReturned { step, verdict: Verdict::Success };
    see(0, Observation::Admitted { root: None });
    if number.is_multiple_of(10) {
        see(1_500_000, Observation::Tick);
        see(125_000, Observation::Tick);
        see(10, Observation::PipelineDropped);
        see(10, returned(terminate));
    } else {
        see(10, returned(handler));
        see(10, returned(after));
        see(0, Observation::PipelineReturned);
    }
    see(2_000, Observation::Confirmed);
    assert!(machine.is_closed(), "it was seen to its end");
}

fn main() {
    let workload =
        workload::file::parse(Path::new("engine.toml"), WORKLOAD, &[]).expect("it is valid");
    let plan = Arc::new(Plan::new(&workload));
    let mut log = Vec::new();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let began = Instant::now();
            for number in 0..DELIVERIES {
                log.clear();
                deliver(&plan, number, &mut log);
            }
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    let second = DELIVERIES as f64 / times[ROUNDS / 2].as_secs_f64();
    println!("{:.2} million deliveries a second, median of {ROUNDS} rounds", second / 1e6);
}
