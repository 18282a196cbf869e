//! The shell around the engine: what makes a run happen.
//!
//! Every driver obeys one calling rule, [`record`](crate::engine::record). [`real`] is the driver on
//! the real clock: the workload on its own runtime, the cutoffs on a thread that it cannot starve.

pub mod real;

mod cell;
mod control;
pub mod feed;
mod floor;
mod process;
mod rank;
pub mod signals;
mod task;
mod watch;

pub(crate) use cell::Cell;
pub(crate) use control::Join;
pub(crate) use process::{this_thread, this_thread_cpu};
pub(crate) use watch::{Place, Presence, Stay};
