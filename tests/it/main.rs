//! The tests that span modules, as one binary.

mod engine;
mod invariants;
mod layers;
mod simulated;
mod small_worlds;
mod trace;
