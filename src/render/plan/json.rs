//! The plan of a workload as JSON, `deadline-run.plan/1`: the instants and the findings. The steps stand
//! in the file itself.

use std::time::Duration;

use serde::Serialize;

use crate::foresight::{Finding, Foresight};
use crate::workload::Workload;

/// The name of the stored form.
const FORMAT: &str = "deadline-run.plan/1";

/// The plan as JSON text that ends with a newline.
pub fn render(workload: &Workload, foresight: &Foresight) -> String {
    let (instants, shutdown) = (&foresight.instants, &foresight.shutdown);
    let stored = Stored {
        format: FORMAT,
        workload: StoredWorkload {
            name: &workload.name,
            file: workload.file.display().to_string(),
            sha256: &workload.sha256,
        },
        instants: StoredInstants {
            normal_cutoff_us: micros(instants.normal_cutoff),
            window_us: micros(instants.window()),
            window_end_us: micros(instants.window_end),
            chain_end_us: micros(instants.chain_end),
            callbacks: instants.callbacks,
            callback_share_us: (instants.callbacks > 0).then(|| micros(instants.share)),
            disposal_us: micros(instants.disposal()),
            hard_cutoff_us: micros(instants.end),
            settled_us: instants.settled.map(micros),
            observe_us: micros(instants.observe),
            run_us: instants.run.map(micros),
        },
        shutdown: StoredShutdown {
            signal_us: micros(shutdown.signal),
            window_end_us: micros(shutdown.window_end),
            end_us: micros(shutdown.end),
            root_hard_us: micros(shutdown.hard_cutoff),
        },
        unprovable: &foresight.unprovable,
        warnings: &foresight.warnings,
    };
    let mut text = serde_json::to_string_pretty(&stored).expect("a plan has only string keys");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Stored<'a> {
    format: &'static str,
    workload: StoredWorkload<'a>,
    instants: StoredInstants,
    shutdown: StoredShutdown,
    unprovable: &'a [Finding],
    warnings: &'a [Finding],
}

#[derive(Serialize)]
struct StoredWorkload<'a> {
    name: &'a str,
    file: String,
    sha256: &'a str,
}

/// From the beginning of a shutdown, for a delivery that has time enough of its own.
#[derive(Serialize)]
struct StoredShutdown {
    signal_us: u64,
    window_end_us: u64,
    end_us: u64,
    root_hard_us: u64,
}

/// From the admission of a delivery, `run_us` from the start of the run.
#[derive(Serialize)]
struct StoredInstants {
    normal_cutoff_us: u64,
    window_us: u64,
    window_end_us: u64,
    chain_end_us: u64,
    callbacks: u32,
    callback_share_us: Option<u64>,
    disposal_us: u64,
    hard_cutoff_us: u64,
    settled_us: Option<u64>,
    observe_us: u64,
    run_us: Option<u64>,
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
