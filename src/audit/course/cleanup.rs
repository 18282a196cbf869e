//! What cleanup owes and how it went: callbacks, their shares, and the disposal (K1 to K6, X3).

use super::reading::Until;
use super::{Course, index};
use crate::audit::rules;
use crate::event::{StepId, Verdict};
use crate::report::{CourseState, ScopeState, TerminateState};
use crate::timeline::Moment;

impl Course<'_> {
    /// When callbacks became due: with the cut, or with the return of a pipeline that was not cut.
    pub(in crate::audit) fn callbacks_due_at(&self) -> Option<Moment> {
        let released = self.pipeline.as_ref().map(|pipeline| pipeline.at);
        self.cut.or(released).or(self.is_frozen.then_some(self.end))
    }

    /// The termination callbacks that are due, outermost first (K1).
    pub(in crate::audit) fn due_callbacks(&self) -> Vec<(usize, StepId)> {
        if self.callbacks_due_at().is_none() {
            return Vec::new();
        }
        let reading = self.read(Until::Freeze);
        let is_due = |position: usize| {
            let has_entered = reading.before[position] == CourseState::Completed;
            let has_left =
                matches!(reading.after[position], CourseState::Completed | CourseState::Failed);
            has_entered && !has_left
        };
        let middleware = self.shape.plan.middleware.iter().enumerate();
        middleware
            .filter(|(position, _)| is_due(*position))
            .filter_map(|(position, middleware)| Some((position, middleware.terminate?)))
            .collect()
    }

    /// The due callbacks that have not started, outermost first: the last one is next.
    pub(in crate::audit) fn callbacks_to_run(&self) -> Vec<StepId> {
        let due = self.due_callbacks().into_iter().map(|(_, step)| step);
        due.filter(|step| self.elements[index(*step)].started.is_none()).collect()
    }

    /// Since when cleanup has had nothing to wait for; `None` while something of it runs, or held
    /// it up when the outcome froze.
    pub(in crate::audit) fn cleanup_idle_since(&self) -> Option<Moment> {
        let release = self.pipeline.as_ref().filter(|pipeline| !pipeline.is_late)?;
        let mut idle_since = release.at;
        for (_, step) in self.due_callbacks() {
            let element = &self.elements[index(step)];
            if element.started.is_some() {
                idle_since = idle_since.max(element.ended_in_time()?);
            }
        }
        Some(idle_since)
    }

    /// Where the chain of callbacks ends: worked out once, and shortened with `E`.
    pub(in crate::audit) fn chain_end(&self) -> Moment {
        self.chain_end.map_or(self.end, |chain_end| chain_end.min(self.end))
    }

    /// Where the share of a callback would end that started now.
    pub(in crate::audit) fn share_end(&self) -> Moment {
        let to_run = u32::try_from(self.callbacks_to_run().len()).unwrap_or(u32::MAX);
        rules::share_end(self.now, self.chain_end(), to_run)
    }

    /// How a termination callback that was due went (K2 to K6, X3).
    pub(in crate::audit) fn terminate_state(&self, step: StepId) -> TerminateState {
        let element = self.element(step);
        if element.started.is_none() {
            return if self.is_released() && !self.is_left_unfrozen() {
                TerminateState::BudgetExhausted
            } else {
                TerminateState::NotRun
            };
        }
        match element.verdict(Until::Freeze) {
            Some(verdict) if element.cut_due.is_none() => match verdict {
                Verdict::Success => TerminateState::Completed,
                Verdict::Failure { .. } => TerminateState::Failed,
                Verdict::Panic => TerminateState::Panicked,
            },
            None if element.cut_due.is_none() && self.is_left_unfrozen() => {
                TerminateState::Interrupted
            }
            _ => {
                let cut_due = element.cut_due.unwrap_or(self.end);
                let share_was_used = element.until.is_none_or(|until| until <= cut_due);
                if share_was_used { TerminateState::TimedOut } else { TerminateState::Interrupted }
            }
        }
    }

    /// How the disposal went (K4).
    pub(in crate::audit) fn scope_state(&self) -> ScopeState {
        let Some(step) = self.shape.plan.dispose else { return ScopeState::None };
        let element = self.element(step);
        if element.started.is_none() {
            return ScopeState::NotRun;
        }
        match element.verdict(Until::Freeze) {
            Some(verdict) if element.cut_due.is_none() => match verdict {
                Verdict::Success => ScopeState::Disposed,
                Verdict::Failure { .. } | Verdict::Panic => ScopeState::Failed,
            },
            None if element.cut_due.is_none() && self.is_left_unfrozen() => ScopeState::NotRun,
            _ => ScopeState::TimedOut,
        }
    }

    /// Whether something of cleanup went wrong, and did not only lack the time.
    pub(in crate::audit) fn has_unclean(&self) -> bool {
        let is_bad = |state| {
            matches!(
                state,
                TerminateState::Failed | TerminateState::Panicked | TerminateState::TimedOut
            )
        };
        self.due_callbacks().iter().any(|(_, step)| is_bad(self.terminate_state(*step)))
            || matches!(self.scope_state(), ScopeState::Failed | ScopeState::TimedOut)
    }

    /// Whether everything that was due of cleanup went well.
    pub(in crate::audit) fn is_clean(&self) -> bool {
        let callbacks = self.due_callbacks();
        callbacks.iter().all(|(_, step)| self.terminate_state(*step) == TerminateState::Completed)
            && matches!(self.scope_state(), ScopeState::None | ScopeState::Disposed)
    }
}
