//! Decides, without a clock: what starts, when the signal fires, when work is cut, and what follows.
//!
//! One [`Delivery`] is one pure machine. It takes an [`Observation`](crate::event::Observation) and
//! a [`Moment`](crate::timeline::Moment) and answers with decisions; drivers act on them and log
//! both. It promises that the same inputs give the same decisions, and that what is due is decided
//! before what is seen later. It does not know whether anything it asked for was obeyed: only an
//! observation tells.

mod admission;
mod course;
mod delivery;
mod record;

pub use admission::{Admission, Ticket, Waiting};
pub use delivery::{Assignment, Delivery};
pub use record::record;
