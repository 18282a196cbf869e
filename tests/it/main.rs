//! The tests that span modules, as one binary.

mod cases;
mod cli;
mod engine;
mod invariants;
mod layers;
mod readme;
mod show;
mod simulated;
mod small_worlds;
mod trace;
