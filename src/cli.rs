//! The command line: reads arguments, calls the library, writes what it says.

use std::any::Any;
use std::ffi::OsString;
use std::path::Path;

use deadline_run::drive::signals::Signals;

use self::args::{Asked, Parsed};
use self::output::Outlets;

mod args;
mod check;
mod events;
pub mod exit;
mod input;
pub mod output;
mod progress;
mod run;
mod show;

/// Does what the command line asks for; returns the exit status.
pub fn main(outlets: &Outlets, signals: &Signals) -> u8 {
    let words: Vec<OsString> = std::env::args_os().collect();
    match args::parse(&words, Path::exists, output::wants_color(&outlets.stderr)) {
        Parsed::Run(args) => run::run(&args, outlets, signals),
        Parsed::Check(args) => check::check(&args, outlets, signals),
        Parsed::Show(args) => show::show(&args, outlets, signals),
        Parsed::Asked(Asked { text }) => match outlets.stdout.write(text.as_bytes()) {
            Ok(()) | Err(output::Fault::Closed) => exit::OK,
            Err(fault) => {
                outlets.complain(&format!("stdout: {fault}"));
                exit::OWN_FAILURE
            }
        },
        Parsed::Refused(message) => {
            outlets.say(&message);
            exit::INVALID
        }
    }
}

/// Ends a program that does not even get the threads that write and take signals.
pub fn not_started(error: &std::io::Error) -> ! {
    let why = deadline_run::report::words::reason(error);
    output::say_without_a_thread(&format!(
        "error: {} cannot start: {why}\n",
        env!("CARGO_PKG_NAME")
    ));
    output::leave(exit::OWN_FAILURE)
}

/// Reports a panic of our own; returns the exit status.
pub fn own_panic(outlets: &Outlets, panic: &(dyn Any + Send)) -> u8 {
    let what = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    outlets.complain(&format!(
        "{} {} itself has failed: {what}\nThis is a bug. Please report it, with the workload \
         and the command line that led to it.",
        env!("CARGO_PKG_NAME"),
        env!("CARGO_PKG_VERSION"),
    ));
    exit::OWN_FAILURE
}
