//! The shutdown of a run: a root in force, admission closed or kept, and everybody told (D1, D2).
//!
//! A root is put in force under the floor's lock, so that whoever is admitted either is under it or is
//! told of it. It is told with the floor unlocked: that takes as long as there are many at work.

use std::sync::Arc;
use std::time::Duration;

use super::{Floor, Shared};
use crate::drive::cell::Cell;
use crate::event::{Initiator, Observation, RunEntry, RunEvent};
use crate::timeline::{Moment, Reason, Root};
use crate::workload::{AdmissionPolicy, ShutdownMode};

/// A root, and those at work when it was put in force.
pub(super) struct Told {
    cells: Vec<Arc<Cell>>,
    root: Root,
}

impl Shared {
    /// Begins the shutdown of the run as its workload says, initiated at `at` (D1); a second one changes
    /// nothing.
    pub(crate) fn shut_down(self: &Arc<Self>, by: Initiator, at: Moment) {
        let told = self.begin_shutdown(&mut self.lock(), by, at);
        if let Some(told) = told {
            self.tell(&told);
        }
    }

    /// Begins a shutdown with a root of its own, which stands where an earlier one leaves more (B4).
    pub(crate) fn shut_down_within(self: &Arc<Self>, by: Initiator, deadline: Duration) {
        let mut floor = self.lock();
        // Read inside the lock, as every moment of the run's own entries: they never go back.
        let now = self.control.now();
        let told = self.publish(&mut floor, by, Root::new(now, deadline), now);
        drop(floor);
        if let Some(told) = told {
            self.tell(&told);
        }
    }

    /// The caller tells those at work, once the floor is unlocked.
    pub(super) fn begin_shutdown(
        self: &Arc<Self>,
        floor: &mut Floor,
        by: Initiator,
        at: Moment,
    ) -> Option<Told> {
        if floor.root.is_some() {
            return None;
        }
        let root = Root::new(at, self.workload.shutdown.deadline);
        self.publish(floor, by, root, self.control.now())
    }

    /// Puts a root in force, and closes admission unless clients go on knocking. `None` when an earlier
    /// root ends no later.
    fn publish(
        self: &Arc<Self>,
        floor: &mut Floor,
        by: Initiator,
        root: Root,
        now: Moment,
    ) -> Option<Told> {
        if floor.ended || floor.root.is_some_and(|known| known.hard_cutoff <= root.hard_cutoff) {
            return None;
        }
        floor.root = Some(root);
        self.log_run(
            &mut floor.log,
            RunEntry { at: now, event: RunEvent::ShutdownBegan { by, root } },
        );
        let policy = &self.workload.shutdown;
        match policy.admission {
            AdmissionPolicy::Close => self.close_admission(floor, now),
            // Who came later would be signalled at once, and one after the other cut unheard.
            AdmissionPolicy::Keep => self.call_at(root.graceful_cutoff, |shared| {
                let mut floor = shared.lock();
                let now = shared.control.now();
                shared.close_admission(&mut floor, now);
                drop(floor);
                shared.changed.notify_all();
            }),
        }
        Some(Told { cells: floor.live().cloned().collect(), root })
    }

    /// Tells those at work of the root; with mode forced also to stop.
    pub(super) fn tell(&self, told: &Told) {
        for cell in &told.cells {
            cell.observe(Observation::RootPublished { root: Box::new(told.root) });
        }
        if self.workload.shutdown.mode == ShutdownMode::Forced {
            self.force();
        }
        self.changed.notify_all();
    }

    /// Tells everything to stop at once.
    pub(crate) fn force(&self) {
        let mut floor = self.lock();
        if std::mem::replace(&mut floor.forced, true) {
            return;
        }
        let now = self.control.now();
        self.log_run(&mut floor.log, RunEntry { at: now, event: RunEvent::Forced });
        self.close_admission(&mut floor, now);
        let cells: Vec<_> = floor.live().cloned().collect();
        drop(floor);
        for cell in cells {
            cell.observe(Observation::Stopped { reason: Reason::ForcedShutdown });
        }
        self.changed.notify_all();
    }
}
