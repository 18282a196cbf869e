//! Counters that a running driver moves and anybody may read.
//!
//! Good for showing how far a run is; no verdict is made from them.

use std::sync::atomic::AtomicU64;

/// How far a run is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Deliveries that there will be, redeliveries included as they come.
    pub total: AtomicU64,
    /// Deliveries that have given their slot back or were released.
    pub over: AtomicU64,
    /// Deliveries that hold a slot.
    pub in_flight: AtomicU64,
    /// Deliveries that were cut.
    pub interrupted: AtomicU64,
    /// Deliveries with something open past their end.
    pub overdue: AtomicU64,
}
