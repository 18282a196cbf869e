//! The tests that look at the program from outside.

mod cli;
