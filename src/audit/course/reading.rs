//! Reads a course through: which parts came back with what, what is next, and what it all comes to.
//!
//! [`Course::read`] is the one place where N1 to N3 are spelt out; everything else asks it.

use super::{Course, Element, Release, Seen, index};
use crate::audit::rules::Outcome;
use crate::event::{StepId, Verdict};
use crate::report::CourseState;
use crate::workload::Stage;

/// How far into the log facts count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::audit) enum Until {
    /// Only what came before the outcome froze.
    Freeze,
    /// All that is known.
    Now,
}

/// Where the course stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::audit) enum Next {
    /// This element may start.
    Start(StepId),
    /// This element has started and not returned.
    Await(StepId),
    /// Nothing is left to run; this is the pipeline's result.
    Return(Verdict),
}

/// The course read through, from the outermost `before` to the outermost `after` (N1 to N3).
#[derive(Clone, Debug)]
pub(in crate::audit) struct Reading {
    /// By middleware, outermost first.
    pub before: Vec<CourseState>,
    /// By middleware, outermost first.
    pub after: Vec<CourseState>,
    pub reached: Option<Stage>,
    pub next: Next,
}

impl Course<'_> {
    /// Reads the course through as it stands: the one place where N1 to N3 are spelt out.
    pub(in crate::audit) fn read(&self, until: Until) -> Reading {
        let middleware = &self.shape.plan.middleware;
        let mut reading = Reading {
            before: vec![CourseState::NotStarted; middleware.len()],
            after: vec![CourseState::NotStarted; middleware.len()],
            reached: None,
            next: Next::Return(Verdict::Success),
        };
        if self.cutoffs.is_none() {
            return reading;
        }
        let mut result = Verdict::Success;
        let mut entered = 0;
        for (position, middleware) in middleware.iter().enumerate() {
            let verdict = match middleware.before {
                None => &Verdict::Success,
                Some(step) => {
                    let element = &self.elements[index(step)];
                    if element.started.is_some() {
                        reading.reached = Some(Stage::Before);
                    }
                    reading.before[position] = course_state(element, until);
                    let Some(verdict) = element.verdict(until) else {
                        reading.next = start_or_await(step, element);
                        return reading;
                    };
                    verdict
                }
            };
            if *verdict != Verdict::Success {
                result = verdict.clone();
                break;
            }
            reading.before[position] = CourseState::Completed;
            entered += 1;
        }
        for (stage, step) in &self.shape.plan.forward {
            if result != Verdict::Success {
                break;
            }
            let element = &self.elements[index(*step)];
            if element.started.is_some() {
                reading.reached = Some(*stage);
            }
            let Some(verdict) = element.verdict(until) else {
                reading.next = start_or_await(*step, element);
                return reading;
            };
            result = verdict.clone();
        }
        let handler_succeeded = result == Verdict::Success;
        for position in (0..entered).rev() {
            let Some(step) = middleware[position].after else {
                reading.after[position] = CourseState::Completed;
                continue;
            };
            let element = &self.elements[index(step)];
            if element.started.is_some() && handler_succeeded {
                reading.reached = Some(Stage::After);
            }
            reading.after[position] = course_state(element, until);
            let Some(verdict) = element.verdict(until) else {
                reading.next = start_or_await(step, element);
                return reading;
            };
            if result == Verdict::Success {
                result = verdict.clone();
            }
            if *verdict == Verdict::Panic {
                break;
            }
        }
        reading.next = Next::Return(result);
        reading
    }

    /// What the pipeline came to, as frozen (W3, X5).
    pub(in crate::audit) fn outcome(&self) -> Outcome {
        let interrupted = Outcome::Interrupted(self.signal.map(|signal| signal.reason));
        match &self.pipeline {
            Some(Seen { what: Release::Returned, is_late: false, .. }) => {
                match (self.read(Until::Freeze).next, &self.return_decided) {
                    (Next::Return(verdict), _) => Outcome::Returned(verdict),
                    (_, Some(verdict)) => Outcome::Returned(verdict.clone()),
                    (_, None) => interrupted,
                }
            }
            _ => interrupted,
        }
    }

    /// What a pipeline came back with after it had been written off (X5).
    pub(in crate::audit) fn late_verdict(&self) -> Option<Verdict> {
        let pipeline = self.pipeline.as_ref()?;
        let is_written_off = match pipeline.what {
            Release::ReturnedAfterCut => true,
            Release::Returned => pipeline.is_late,
            Release::Dropped => false,
        };
        if !is_written_off {
            return None;
        }
        match (self.return_decided.clone(), self.read(Until::Now).next) {
            (Some(verdict), _) | (None, Next::Return(verdict)) => Some(verdict),
            (None, _) => None,
        }
    }
}

fn start_or_await(step: StepId, element: &Element) -> Next {
    if element.started.is_some() { Next::Await(step) } else { Next::Start(step) }
}

fn course_state(element: &Element, until: Until) -> CourseState {
    match (element.started, element.verdict(until)) {
        (_, Some(Verdict::Success)) => CourseState::Completed,
        (_, Some(Verdict::Failure { .. })) => CourseState::Failed,
        (_, Some(Verdict::Panic)) => CourseState::Panicked,
        (Some(_), None) => CourseState::Interrupted,
        (None, None) => CourseState::NotStarted,
    }
}
