//! One binary for all tests that need the whole library or the program.

mod cases;
mod cli;
mod readme;
