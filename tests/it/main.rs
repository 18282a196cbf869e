//! The tests that span modules, as one binary.

mod adversary;
mod bad_input;
mod cases;
mod check;
mod cli;
mod cli_snapshots;
mod engine;
mod events;
mod examples;
mod fault_injection;
mod invariants;
mod io;
mod judged;
mod layers;
mod place;
mod readme;
mod replay;
mod show;
mod simulated;
mod small_worlds;
mod snapshot;
mod trace;
