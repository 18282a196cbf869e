//! The program: arguments in, a run, a report out.
//!
//! It only calls: what is judged, and how, is the library's. It always ends, and by
//! [`cli::output::leave`], so that no stuck thread can hold it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use deadline_run::drive::signals::Signals;

mod cli;

fn main() {
    // Signals first: the threads that the outlets start must inherit that they are blocked.
    let (Ok(signals), Ok(outlets)) = (Signals::take(), cli::output::Outlets::open()) else {
        cli::output::leave(cli::exit::OWN_FAILURE)
    };
    let status = catch_unwind(AssertUnwindSafe(|| cli::main(&outlets, &signals)))
        .unwrap_or_else(|panic| cli::own_panic(&outlets, panic.as_ref()));
    cli::output::leave(status)
}
