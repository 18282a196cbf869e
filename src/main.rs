//! The program: arguments in, a run, a report out.
//!
//! It only calls: what is judged, and how, is the library's. It always ends, and by
//! [`cli::output::leave`], so that no stuck thread can hold it.

use std::panic::{AssertUnwindSafe, catch_unwind};

mod cli;

fn main() {
    let outlets = match cli::output::Outlets::open() {
        Ok(outlets) => outlets,
        Err(_) => cli::output::leave(cli::exit::OWN_FAILURE),
    };
    let status = catch_unwind(AssertUnwindSafe(|| cli::main(&outlets)))
        .unwrap_or_else(|panic| cli::own_panic(&outlets, panic.as_ref()));
    cli::output::leave(status)
}
