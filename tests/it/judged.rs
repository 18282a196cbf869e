//! Reports on runs and on logs, as the program makes them.

use deadline_run::audit::Audit;
use deadline_run::drive::real::Run;
use deadline_run::report::{Clock, Control, Listed, Report, RunFacts};
use deadline_run::workload::Workload;

/// The report on a judged run.
pub fn report_of_run(workload: &Workload, run: &Run, audit: Audit) -> Report {
    let facts = RunFacts {
        control: run.control,
        workload_nice: run.workload_nice,
        elapsed_us: u64::try_from(run.elapsed.as_micros()).expect("a run is not that long"),
        peers: run.peers.clone(),
        ..facts(&audit)
    };
    Report::assemble(workload, facts, audit.deliveries, Listed::All)
}

/// The report on a judged log of which nothing else is known.
pub fn report_of_log(workload: &Workload, audit: Audit) -> Report {
    let facts = facts(&audit);
    Report::assemble(workload, facts, audit.deliveries, Listed::All)
}

fn facts(audit: &Audit) -> RunFacts {
    RunFacts {
        clock: Clock::Real,
        control: Control::Ordinary,
        workload_nice: 0,
        lateness: audit.lateness,
        started: String::new(),
        elapsed_us: 0,
        shutdown: audit.shutdown.clone(),
        peers: Vec::new(),
    }
}
