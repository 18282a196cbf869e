//! The broker in memory: it confirms every settlement after a while, or never.
//!
//! Says when; the driver's own timer carries the confirmation, so a workload that holds every worker
//! cannot delay it.

use std::time::Duration;

use crate::timeline::Moment;

/// The broker.
#[derive(Clone, Copy, Debug)]
pub struct Broker {
    confirm_in: Option<Duration>,
}

impl Broker {
    /// A broker that takes so long to confirm; `None`: it never does.
    pub fn new(confirm_in: Option<Duration>) -> Self {
        Self { confirm_in }
    }

    /// When the confirmation of what was settled at `now` will arrive, if ever.
    pub fn confirms_at(&self, now: Moment) -> Option<Moment> {
        self.confirm_in.map(|after| now + after)
    }
}
