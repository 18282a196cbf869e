//! The normal course of one delivery: which element is next, and what the pipeline will say (N1 to N3).
//!
//! In order: each middleware's `before`, outermost first; the forward steps; each entered
//! middleware's `after`, innermost first. Knows nothing of time.

use crate::event::{StepId, Verdict};
use crate::plan::Plan;

/// Where the course stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At this middleware's `before`.
    Before(usize),
    /// At this forward step.
    Forward(usize),
    /// On the way out; the innermost middleware that still owes its exit is next.
    Unwinding,
    /// Nothing is left to start.
    Finished,
}

/// The course of one delivery.
#[derive(Clone, Debug)]
pub(super) struct Course {
    place: Place,
    /// The element that was started and has not returned.
    current: Option<StepId>,
    /// How many middlewares, from the outermost, were entered and owe an exit: `after`, or else
    /// `terminate`.
    owing: usize,
    verdict: Verdict,
}

impl Course {
    pub(super) fn new() -> Self {
        Self { place: Place::Before(0), current: None, owing: 0, verdict: Verdict::Success }
    }

    /// What the pipeline says as far as it has come.
    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Takes the next element that exists; absent ones count as completed on the way (N3). `None`
    /// when the course is finished.
    pub(super) fn start_next(&mut self, plan: &Plan) -> Option<StepId> {
        let next = self.pass_absent(plan);
        self.current = next;
        next
    }

    /// Notes the verdict of the current element; answers whether `step` was that element.
    pub(super) fn note(&mut self, step: StepId, verdict: Verdict) -> bool {
        if self.current != Some(step) {
            return false;
        }
        self.current = None;
        let success = verdict == Verdict::Success;
        let panicked = verdict == Verdict::Panic;
        // A failure of an `after` never replaces an earlier one (N2).
        if self.verdict == Verdict::Success {
            self.verdict = verdict;
        }
        self.place = match self.place {
            Place::Before(index) if success => {
                self.owing += 1;
                Place::Before(index + 1)
            }
            Place::Forward(index) if success => Place::Forward(index + 1),
            Place::Before(_) | Place::Forward(_) => Place::Unwinding,
            Place::Unwinding if panicked => Place::Finished,
            Place::Unwinding => {
                self.owing -= 1;
                Place::Unwinding
            }
            Place::Finished => unreachable!("an element was current"),
        };
        true
    }

    /// The termination callbacks that are due, innermost first (K1), when the course goes no further.
    pub(super) fn callbacks_due(&self, plan: &Plan) -> Vec<StepId> {
        plan.middleware[..self.owing].iter().rev().filter_map(|shape| shape.terminate).collect()
    }

    /// Moves past what is absent to the next element there is.
    pub(super) fn pass_absent(&mut self, plan: &Plan) -> Option<StepId> {
        loop {
            match self.place {
                Place::Before(index) => match plan.middleware.get(index) {
                    Some(shape) => {
                        if shape.before.is_some() {
                            return shape.before;
                        }
                        self.owing += 1;
                        self.place = Place::Before(index + 1);
                    }
                    None => self.place = Place::Forward(0),
                },
                Place::Forward(index) => match plan.forward.get(index) {
                    Some((_, step)) => return Some(*step),
                    None => self.place = Place::Unwinding,
                },
                Place::Unwinding => match self.owing.checked_sub(1) {
                    Some(innermost) => {
                        let after = plan.middleware[innermost].after;
                        if after.is_some() {
                            return after;
                        }
                        self.owing = innermost;
                    }
                    None => self.place = Place::Finished,
                },
                Place::Finished => return None,
            }
        }
    }
}
