//! How far a run has got, for those who watch it.
//!
//! Numbers that a driver keeps and a progress display reads, each by itself: together they are no
//! snapshot, and no verdict may rest on them.

use std::sync::atomic::AtomicU64;

/// The counters of one run.
#[derive(Debug, Default)]
pub struct Progress {
    /// Deliveries that are planned; redeliveries add to it.
    pub total: AtomicU64,
    /// Deliveries that are over: settled, frozen or released.
    pub over: AtomicU64,
    /// Deliveries that hold a slot now.
    pub in_flight: AtomicU64,
    /// Deliveries that were cut off so far.
    pub interrupted: AtomicU64,
    /// Obligations that are past their due instant and open.
    pub overdue: AtomicU64,
}
