//! Compares what the engine decided with what the rules say, entry by entry.
//!
//! Every difference is one sentence that names the delivery, the rule and both values. Reads a
//! course as it stood just before the entry; keeps nothing of its own but what it has said already.

use super::course::{Course, Next, Release, Until};
use super::io;
use super::rules;
use crate::event::{
    Decision, DeliveryId, Entry, Event, EventLog, Observation, Settlement, StepId, Verdict,
};
use crate::plan::Plan;
use crate::timeline::{Moment, Reason, Root};
use crate::workload::Workload;

/// What is found in the log of one delivery.
pub(super) struct Referee<'a> {
    workload: &'a Workload,
    plan: &'a Plan,
    delivery: DeliveryId,
    previous: Moment,
    /// What has been missed already: said once, not at every later entry.
    missed: Vec<&'static str>,
    has_frozen: bool,
    found: &'a mut Vec<String>,
}

impl<'a> Referee<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        plan: &'a Plan,
        delivery: DeliveryId,
        found: &'a mut Vec<String>,
    ) -> Self {
        let previous = Moment::START;
        Self { workload, plan, delivery, previous, missed: Vec::new(), has_frozen: false, found }
    }

    /// Compares one entry with the course that led to it.
    pub(super) fn compare(&mut self, course: &Course<'_>, entry: &Entry) {
        if entry.at < self.previous {
            let (worked_out, logged) = (shown(self.previous), shown(entry.at));
            self.differ("order", "moments never go back", format!("at least {worked_out}"), logged);
        }
        self.previous = self.previous.max(entry.at);
        match &entry.event {
            Event::Observed(observation) => self.observed(course, entry.at, observation),
            Event::Decided(decision) => self.decided(course, entry.at, decision),
        }
    }

    fn observed(&mut self, course: &Course<'_>, at: Moment, observation: &Observation) {
        // A tick is what brings the decisions that are due; they follow it.
        if !matches!(observation, Observation::Tick) {
            self.missing(course, at);
        }
        match observation {
            Observation::Admitted { root } => {
                self.root(root.as_deref().copied());
                if course.cutoffs.is_some() {
                    self.differ("S", "admissions", "one", "another");
                }
                if course.not_started.is_some() {
                    self.differ("C4", "admission of what was released", "none", "one");
                }
            }
            Observation::Released if course.cutoffs.is_some() => {
                self.differ("C4", "release of what was admitted", "none", "one");
            }
            Observation::RootPublished { root } => self.root(Some(**root)),
            Observation::Opened { opening, .. } if course.opened.contains_key(opening) => {
                self.differ("section 4", "openings of one number", "one", "another");
            }
            Observation::StepEnded(end) => {
                for found in io::ended(self.workload, course, at, end) {
                    let io::Found { rule, what, worked_out, logged } = found;
                    self.differ(rule, what, worked_out, logged);
                }
            }
            Observation::Closed { opening, evidence, .. } => match course.opened.get(opening) {
                None => {
                    self.differ("section 4", "obligation of a receipt", "opened before", "none");
                }
                Some(opened) if opened.closed.is_some() => {
                    self.differ("section 4", "receipts of an obligation", "one", "another");
                }
                Some(opened) if !opened.kind.accepts(*evidence) => {
                    let worked_out = format!("what discharges a {:?}", opened.kind);
                    self.differ("section 4", "receipt", worked_out, format!("{evidence:?}"));
                }
                Some(_) => {}
            },
            Observation::PipelineReturned | Observation::PipelineDropped
                if course.pipeline.is_some() =>
            {
                self.differ("section 4", "ends of the pipeline", "one", "another");
            }
            Observation::PipelineDropped if course.cut.is_none() => {
                self.differ("X1", "drop of a pipeline that was not cut", "none", "one");
            }
            Observation::PipelineReturned if course.return_decided.is_none() => {
                self.differ("N1", "return of the pipeline", "decided before", "not decided");
            }
            Observation::Confirmed if course.settling.is_none() => {
                self.differ("M3", "confirmation", "after a settlement", "without one");
            }
            _ => {}
        }
    }

    /// Whatever was due before this observation had to be decided before it (invariant 1).
    fn missing(&mut self, course: &Course<'_>, at: Moment) {
        let is_running = course.cutoffs.is_some() && !has_concluded(course);
        if let Some(signal) = course.first_signal()
            && is_running
            && course.signal.is_none()
            && !course.is_frozen
        {
            self.miss("C1", "signal", signal.at, at);
        }
        if let Some(window_end) = course.window_end
            && is_running
            && course.cut.is_none()
        {
            self.miss("X1", "cut", window_end, at);
        }
        for (_, step) in course.due_callbacks() {
            let element = course.element(step);
            if let Some(until) = element.until
                && element.is_running()
                && element.cut_due.is_none()
            {
                self.miss("K2", "cut of a callback", until.min(course.end), at);
            }
        }
        if let Some(settling) = course.settling
            && settling.confirmed.is_none()
            && !settling.expired
        {
            let is_sent = settling.settlement != Settlement::Released;
            if is_sent {
                self.miss("M2", "expiry of the settlement", settling.due, at);
            }
        }
        if course.cutoffs.is_some() && !self.has_frozen && self.is_open(course) {
            self.miss("X4", "freeze", course.end, at);
        }
    }

    /// Whether execution or cleanup is still going on, so that `E` has something to freeze.
    fn is_open(&self, course: &Course<'_>) -> bool {
        let runs = |step: StepId| course.element(step).is_running();
        let may_call = !course.callbacks_to_run().is_empty() && course.now < course.chain_end();
        course.pipeline.is_none()
            || may_call
            || course.due_callbacks().into_iter().any(|(_, step)| runs(step))
            || self.plan.dispose.is_some_and(|step| {
                let element = course.element(step);
                element.started.is_none() || element.is_running()
            })
    }

    fn miss(&mut self, rule: &'static str, what: &'static str, due: Moment, at: Moment) {
        if due < at && !self.missed.contains(&what) {
            self.missed.push(what);
            let logged = format!("not decided by {}", shown(at));
            self.differ(rule, what, format!("due at {}", shown(due)), logged);
        }
    }

    fn root(&mut self, root: Option<Root>) {
        if let Some(root) = root {
            let worked_out = rules::graceful_cutoff(root);
            self.same("B4", "graceful cutoff of the root", worked_out, root.graceful_cutoff);
        }
    }

    fn decided(&mut self, course: &Course<'_>, at: Moment, decision: &Decision) {
        match decision {
            Decision::Start { step } => self.start(course, *step),
            Decision::Return { verdict } => self.return_decided(course, verdict),
            Decision::Signal { reason, due } => self.signal(course, at, *reason, *due),
            Decision::SignalDetached { due } => self.signal_detached(course, at, *due),
            Decision::Cut { due } => self.cut(course, at, *due),
            Decision::Call { step, until } => self.call(course, *step, *until),
            Decision::CutCallback { step, due } => {
                let until = course.element(*step).until;
                let worked_out = until.map_or(course.end, |until| until.min(course.end));
                self.cut_element(course, "K2", at, *step, worked_out, *due);
            }
            Decision::Dispose { step, until } => self.dispose(course, *step, *until),
            Decision::CutDisposal { step, due } => {
                self.cut_element(course, "K4", at, *step, course.end, *due);
            }
            Decision::Settle { settlement, until } => {
                self.settle(course, *settlement, *until);
            }
            Decision::Revoke => self.revoke(course, at),
            Decision::Expire { due } => self.expire(course, at, *due),
            Decision::Freeze { due } => self.freeze(course, at, *due),
            Decision::FreeSlot => self.free_slot(course, at),
            Decision::Redeliver => self.redeliver(course),
        }
    }

    fn start(&mut self, course: &Course<'_>, step: StepId) {
        if course.cut.is_some() || course.is_frozen {
            let name = self.name(Some(step));
            self.differ("X5", "starts after the cut", "none", name);
            return;
        }
        let worked_out = match course.read(Until::Now).next {
            Next::Start(next) => Some(next),
            Next::Await(_) | Next::Return(_) => None,
        };
        if worked_out != Some(step) {
            let (worked_out, logged) = (self.name(worked_out), self.name(Some(step)));
            self.differ("N1", "next to start", worked_out, logged);
        }
    }

    fn return_decided(&mut self, course: &Course<'_>, verdict: &Verdict) {
        if course.return_decided.is_some() {
            self.differ("N1", "returns of the pipeline", "one", "another");
        }
        match course.read(Until::Now).next {
            Next::Return(worked_out) if worked_out == *verdict => {}
            Next::Return(worked_out) => {
                self.differ("N2", "result", format!("{worked_out:?}"), format!("{verdict:?}"));
            }
            Next::Start(step) | Next::Await(step) => {
                let worked_out = format!("{} first", self.name(Some(step)));
                self.differ("N1", "return", worked_out, format!("{verdict:?}"));
            }
        }
    }

    fn signal(&mut self, course: &Course<'_>, at: Moment, reason: Reason, due: Moment) {
        if let Some(signal) = course.signal {
            let worked_out = format!("once, {:?} at {}", signal.reason, shown(signal.at));
            self.differ("C2", "signal", worked_out, format!("again, {reason:?}"));
            return;
        }
        if has_concluded(course) {
            self.differ("P10", "signal after the pipeline's end", "none", format!("{reason:?}"));
            return;
        }
        let Some(first) = course.first_signal() else {
            self.differ("C1", "signal before admission", "none", format!("{reason:?}"));
            return;
        };
        if first.reason != reason {
            let (worked_out, logged) = (format!("{:?}", first.reason), format!("{reason:?}"));
            self.differ("C1", "reason of the signal", worked_out, logged);
        }
        self.same("C1", "signal", first.at, due);
        self.not_early("C1", "signal", at, due);
    }

    fn signal_detached(&mut self, course: &Course<'_>, at: Moment, due: Moment) {
        if !has_concluded(course) {
            self.differ("P10", "notice to detached work", "after the pipeline's end", "before it");
        }
        let first = course.first_signal().map(|signal| signal.at);
        let normal = course.cutoffs.map(|cutoffs| cutoffs.normal);
        if first != Some(due) {
            self.same("P10", "notice to detached work", normal.unwrap_or(due), due);
        }
        self.not_early("P10", "notice to detached work", at, due);
    }

    fn cut(&mut self, course: &Course<'_>, at: Moment, due: Moment) {
        if course.cut.is_some() {
            self.differ("X1", "cuts", "one", "another");
            return;
        }
        if has_concluded(course) {
            self.differ("W3", "cut after the pipeline's end", "none", "one");
            return;
        }
        match course.window_end {
            None => self.differ("C1", "cut", "after a signal", "without one"),
            Some(window_end) => self.same("W2", "end of the window", window_end, due),
        }
        self.not_early("X1", "cut", at, due);
    }

    fn call(&mut self, course: &Course<'_>, step: StepId, until: Moment) {
        let name = self.name(Some(step));
        if !course.is_released() {
            self.differ("X3", "callback before the execution's release", "none", name.clone());
        }
        if course.is_frozen {
            self.differ("X4", "callback after the freeze", "none", name.clone());
        }
        if course.element(step).started.is_some() {
            self.differ("K3", "calls of a callback", "one", format!("{name} again"));
            return;
        }
        let next = course.callbacks_to_run().last().copied();
        if next != Some(step) {
            let worked_out = self.name(next);
            self.differ("K1", "next callback, innermost first", worked_out, name.clone());
        }
        self.one_at_a_time(course, &name);
        if course.now >= course.chain_end() {
            let worked_out = format!("none after {}", shown(course.chain_end()));
            self.differ("K2", "callback past the chain's end", worked_out, name);
        }
        self.same("K2", "share of a callback", course.share_end().min(course.end), until);
    }

    fn one_at_a_time(&mut self, course: &Course<'_>, name: &str) {
        for (_, running) in course.due_callbacks() {
            if course.element(running).is_running() {
                let logged = format!("{name} beside {}", self.name(Some(running)));
                self.differ("K1", "cleanup at once", "one", logged);
            }
        }
    }

    fn cut_element(
        &mut self,
        course: &Course<'_>,
        rule: &'static str,
        at: Moment,
        step: StepId,
        worked_out: Moment,
        due: Moment,
    ) {
        let element = course.element(step);
        let name = self.name(Some(step));
        if !element.is_running() {
            self.differ(rule, "cut of what does not run", "none", name);
        } else if element.cut_due.is_some() {
            self.differ(rule, "cuts of cleanup", "one", format!("{name} again"));
        } else {
            self.same(rule, "end of cleanup", worked_out, due);
            self.not_early(rule, "end of cleanup", at, due);
        }
    }

    fn dispose(&mut self, course: &Course<'_>, step: StepId, until: Moment) {
        let name = self.name(Some(step));
        if self.plan.dispose != Some(step) {
            let worked_out = self.name(self.plan.dispose);
            self.differ("K4", "disposer", worked_out, name.clone());
        }
        if !course.is_released() {
            self.differ("X3", "disposal before the execution's release", "none", name.clone());
        }
        if course.is_frozen {
            self.differ("X4", "disposal after the freeze", "none", name.clone());
        }
        if course.element(step).started.is_some() {
            self.differ("K4", "disposals", "one", "another");
        }
        if let Some(waiting) = course.callbacks_to_run().last()
            && course.now < course.chain_end()
        {
            let worked_out = self.name(Some(*waiting));
            self.differ("K4", "last of cleanup", worked_out, name.clone());
        }
        self.one_at_a_time(course, &name);
        self.same("K4", "end of the disposal", course.end, until);
    }

    fn settle(&mut self, course: &Course<'_>, settlement: Settlement, until: Moment) {
        if course.settling.is_some() || course.revoked.is_some() {
            self.differ("M1", "settlements", "one", format!("another, {settlement:?}"));
            return;
        }
        if self.plan.settlement.is_none() {
            self.differ("M1", "settlement without a broker", "none", format!("{settlement:?}"));
            return;
        }
        if course.not_started.is_some() && course.cutoffs.is_none() {
            self.settlement(Settlement::Released, settlement);
            self.same("M2", "confirmation", course.confirmation_due(settlement), until);
            return;
        }
        let has_ended = course.now >= course.end || course.is_frozen;
        if !course.is_released() {
            self.differ("M4", "settlement of an unreleased execution", "none", word(settlement));
        } else if self.is_open(course) && !has_ended {
            self.differ("M1", "settlement", "after callbacks and scope", word(settlement));
        }
        self.settlement(course.settlement(), settlement);
        self.same("M2", "confirmation", course.confirmation_due(settlement), until);
    }

    fn settlement(&mut self, worked_out: Settlement, logged: Settlement) {
        if worked_out != logged {
            self.differ("M1", "settlement", word(worked_out), word(logged));
        }
    }

    fn revoke(&mut self, course: &Course<'_>, at: Moment) {
        if course.settling.is_some() || course.revoked.is_some() {
            self.differ("M4", "settlements", "one", "another, revoked");
        } else if course.is_released() {
            self.differ("M4", "right to settle of a released execution", "kept", "revoked");
        } else {
            self.not_early("M4", "loss of the right to settle", at, course.end);
        }
    }

    fn expire(&mut self, course: &Course<'_>, at: Moment, due: Moment) {
        let Some(settling) = course.settling else {
            self.differ("M3", "expiry", "after a settlement", "without one");
            return;
        };
        if settling.confirmed.is_some() || settling.expired {
            self.differ("M3", "expiry of a settlement that is over", "none", "one");
        }
        self.same("M2", "expiry of the settlement", settling.due, due);
        self.not_early("M2", "expiry of the settlement", at, due);
    }

    fn freeze(&mut self, course: &Course<'_>, at: Moment, due: Moment) {
        if self.has_frozen {
            self.differ("X4", "freezes", "one", "another");
            return;
        }
        self.has_frozen = true;
        self.same("W1", "end", course.end, due);
        self.not_early("X4", "freeze", at, due);
    }

    fn free_slot(&mut self, course: &Course<'_>, at: Moment) {
        if course.slot_freed.is_some() {
            self.differ("X7", "times that the slot is freed", "one", "another");
        }
        let kept_until = course.end + self.plan.observe;
        if course.cutoffs.is_some() && course.pipeline.is_none() && at < kept_until {
            let worked_out = format!("until the release, or {}", shown(kept_until));
            self.differ("X7", "slot of an unreleased execution", worked_out, shown(at));
        }
        if let Some(settling) = course.settling
            && settling.settlement != Settlement::Released
            && settling.confirmed.is_none()
            && !settling.expired
        {
            self.differ("X7", "slot", "until the settlement is over", shown(at));
        }
    }

    fn redeliver(&mut self, course: &Course<'_>) {
        if course.redelivered {
            self.differ("M1", "redeliveries", "one", "another");
        }
        match course.settling {
            Some(settling)
                if settling.settlement == Settlement::Retry && settling.confirmed.is_some() => {}
            _ => self.differ("M1", "redelivery", "after a confirmed retry", "without one"),
        }
    }

    /// What a whole log must have, when observation went on until `observed_until`.
    pub(super) fn close(&mut self, course: &Course<'_>, observed_until: Moment) {
        if course.cutoffs.is_none() {
            if course.not_started.is_none() {
                self.differ("C4", "delivery", "admitted or released", "neither");
            }
            return;
        }
        self.missing(course, observed_until);
        self.left_undone(course, observed_until);
        let is_settled = course.settling.is_some() || course.revoked.is_some();
        if self.plan.settlement.is_some() && !is_settled && course.end < observed_until {
            let worked_out = match course.pipeline.as_ref().filter(|it| !it.is_late) {
                Some(_) => word(course.settlement()),
                None => "revoked".to_owned(),
            };
            self.differ("M1", "settlement", worked_out, "none");
        }
        let returned = course.pipeline.as_ref().filter(|it| it.what == Release::Returned);
        if returned.is_some() && matches!(course.read(Until::Now).next, Next::Await(_)) {
            self.differ("N1", "return", "after its last element returned", "before");
        }
    }

    /// Cleanup that had its time and was never started.
    fn left_undone(&mut self, course: &Course<'_>, observed_until: Moment) {
        let Some(idle_since) = course.cleanup_idle_since() else { return };
        let chain_end = course.chain_end();
        if idle_since < chain_end && chain_end <= observed_until {
            for step in course.callbacks_to_run() {
                let worked_out = format!("called at {}", shown(idle_since));
                let what = format!("callback {}", self.name(Some(step)));
                self.differ("K1", &what, worked_out, "never called");
            }
        }
        if let Some(step) = self.plan.dispose
            && course.element(step).started.is_none()
            && idle_since < course.end
            && course.end <= observed_until
        {
            let worked_out = format!("started by {}", shown(course.end));
            self.differ("K4", "disposal", worked_out, "never started");
        }
    }

    fn same(&mut self, rule: &str, what: &str, worked_out: Moment, logged: Moment) {
        if worked_out != logged {
            self.differ(rule, what, shown(worked_out), shown(logged));
        }
    }

    fn not_early(&mut self, rule: &str, what: &str, at: Moment, due: Moment) {
        if at < due {
            self.differ(rule, what, format!("not before {}", shown(due)), shown(at));
        }
    }

    fn differ(
        &mut self,
        rule: &str,
        what: &str,
        worked_out: impl AsRef<str>,
        logged: impl AsRef<str>,
    ) {
        let DeliveryId(delivery) = self.delivery;
        let (worked_out, logged) = (worked_out.as_ref(), logged.as_ref());
        self.found.push(format!(
            "delivery {delivery}: {rule}: {what}: the rules say {worked_out}, the log says {logged}"
        ));
    }

    fn name(&self, step: Option<StepId>) -> String {
        let Some(StepId(id)) = step else { return "nothing".to_owned() };
        let step = self.workload.steps.get(id as usize);
        step.map_or_else(|| format!("step {id}, which does not exist"), |step| step.name.clone())
    }
}

/// Whether the course has its result: it is signalled and cut no more, though its frame may still be
/// on its way out, for as long as a busy system keeps its worker from it.
fn has_concluded(course: &Course<'_>) -> bool {
    course.pipeline.is_some() || course.return_decided.is_some()
}

/// What is wrong with the run's own log.
pub(super) fn run(log: &EventLog, found: &mut Vec<String>) {
    for pair in log.run.windows(2) {
        if pair[1].at < pair[0].at {
            let (worked_out, logged) = (shown(pair[0].at), shown(pair[1].at));
            found.push(format!(
                "the run: order: moments never go back: the rules say at least {worked_out}, the log says {logged}"
            ));
        }
    }
}

/// A moment to the nanosecond: two readings may differ by less than reports show.
pub(super) fn shown(moment: Moment) -> String {
    format!("{}.{:03}us", moment.micros(), moment.nanos() % 1_000)
}

fn word(settlement: Settlement) -> String {
    match settlement {
        Settlement::Ack => "ack",
        Settlement::Retry => "retry",
        Settlement::DeadLetter => "dead_letter",
        Settlement::Released => "released",
    }
    .to_owned()
}
