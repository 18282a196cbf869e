//! The program: arguments in, a run, a report out.
//!
//! It only calls: what is judged, and how, is the library's. It always ends, and by
//! [`cli::output::leave`], so that no stuck thread can hold it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use deadline_run::drive::signals::Signals;

use self::cli::output::Outlets;

mod cli;

fn main() {
    // Signals first: the threads that come after it inherit that they are not theirs to take.
    let taken = Signals::take().and_then(|signals| Ok((signals, Outlets::open()?)));
    let (signals, outlets) = taken.unwrap_or_else(|error| cli::not_started(&error));
    let status = catch_unwind(AssertUnwindSafe(|| cli::main(&outlets, &signals)))
        .unwrap_or_else(|panic| cli::own_panic(&outlets, panic.as_ref()));
    cli::output::leave(status)
}
