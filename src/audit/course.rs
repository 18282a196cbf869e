//! Walks a delivery's log, entry by entry, and keeps what is known so far.
//!
//! Promises that what comes after the outcome froze is marked late and never mixed with what came
//! before (X4), and that no order of entries makes it panic: the first word counts, a doubled one is
//! ignored. Judges nothing: `reading` and `cleanup` say what the facts come to, `disagree` compares
//! and `row` shows.

mod cleanup;
mod reading;

pub(super) use reading::{Next, Until};

use std::collections::BTreeMap;
use std::time::Duration;

use super::rules::{self, Cutoffs};
use super::shape::Shape;
use crate::event::{
    Decision, DeliveryLog, Entry, Event, Observation, Opening, Settlement, Sighting, StepEnd,
    StepId, StepOutcome, ThreadName, Verdict,
};
use crate::obligation::{Evidence, Obligation};
use crate::timeline::{Moment, Root, Signal};

/// Something that was seen, and whether the outcome was frozen by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen<T> {
    pub what: T,
    pub at: Moment,
    pub is_late: bool,
}

/// How the pipeline's frame went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// It returned before anybody cut it.
    Returned,
    /// It returned although it had been written off (X5).
    ReturnedAfterCut,
    /// It was dropped, and the drop finished.
    Dropped,
}

/// A part of the course, a callback or a disposer: what the engine starts as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Element {
    pub started: Option<Moment>,
    /// For a callback: the end of its share as worked out when it started.
    pub until: Option<Moment>,
    /// The instant as of which it was cut.
    pub cut_due: Option<Moment>,
    pub returned: Option<Seen<Verdict>>,
    pub dropped: Option<Seen<()>>,
}

impl Element {
    /// Its verdict, unless it came too late to count.
    fn verdict(&self, until: Until) -> Option<&Verdict> {
        let counts = |seen: &&Seen<Verdict>| until == Until::Now || !seen.is_late;
        self.returned.as_ref().filter(counts).map(|seen| &seen.what)
    }

    /// When its frame was seen to be gone, if that was before the outcome froze.
    pub fn ended_in_time(&self) -> Option<Moment> {
        let returned = self.returned.as_ref().filter(|seen| !seen.is_late).map(|seen| seen.at);
        let dropped = self.dropped.as_ref().filter(|seen| !seen.is_late).map(|seen| seen.at);
        returned.or(dropped)
    }

    /// Whether its frame is still there.
    pub fn is_running(&self) -> bool {
        self.started.is_some() && self.returned.is_none() && self.dropped.is_none()
    }
}

/// The executions of one step.
#[derive(Clone, Debug, Default)]
pub(super) struct Executions {
    pub begun: u32,
    pub last_started: Option<Recorded>,
    /// Whether its frame was seen to be polled, and not only told to start.
    pub was_polled: bool,
    pub last_ended: Option<(Recorded, StepEnd)>,
}

/// Where an entry stands: when, and in which place of its delivery's log. Moments tie, places do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Recorded {
    pub at: Moment,
    pub place: usize,
}

/// A task, thread or connection.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub kind: Obligation,
    pub step: StepId,
    pub thread: Option<ThreadName>,
    pub at: Moment,
    pub closed: Option<Closed>,
}

/// The end of a task, thread or connection, as first seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub at: Moment,
    pub evidence: Evidence,
    pub cpu: Option<Duration>,
}

/// The word to the broker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling {
    pub settlement: Settlement,
    pub at: Moment,
    /// When the confirmation is due, as worked out here.
    pub due: Moment,
    pub expired: bool,
    pub confirmed: Option<Moment>,
}

/// All that is known of one delivery so far.
#[derive(Clone, Debug)]
pub(super) struct Course<'a> {
    shape: &'a Shape<'a>,
    pub log: &'a DeliveryLog,
    /// How many entries have been taken in.
    taken: usize,
    /// The moment of the latest observation: what the engine goes by when it decides.
    pub now: Moment,
    pub cutoffs: Option<Cutoffs>,
    pub not_started: Option<Moment>,
    pub root: Option<Root>,
    pub stopped: Option<Signal>,
    pub signal: Option<Signal>,
    pub signal_seen: Option<Moment>,
    pub window_end: Option<Moment>,
    /// Since when the due instant of the next cutoff is known: it may lie in the past by then.
    pub cutoff_known: Moment,
    pub cut: Option<Moment>,
    pub return_decided: Option<Verdict>,
    pub pipeline: Option<Seen<Release>>,
    pub destructor_panicked: Option<StepId>,
    /// `E`, as far as it is known; it does not move once the outcome is frozen.
    pub end: Moment,
    pub is_frozen: bool,
    /// The step that held the pipeline when the outcome froze.
    held_by: Option<StepId>,
    chain_end: Option<Moment>,
    elements: Vec<Element>,
    pub executions: Vec<Executions>,
    pub opened: BTreeMap<Opening, Opened>,
    pub settling: Option<Settling>,
    pub revoked: Option<Moment>,
    pub degraded: bool,
    pub slot_freed: Option<Moment>,
    pub redelivered: bool,
    pub sightings: Vec<(Moment, &'a Sighting)>,
    /// Where the record ends of a run that did not: known when the log was walked to its end.
    pub cut_short_at: Option<Moment>,
}

impl<'a> Course<'a> {
    pub(super) fn new(shape: &'a Shape<'a>, log: &'a DeliveryLog) -> Self {
        let steps = shape.workload.steps.len();
        Self {
            shape,
            log,
            taken: 0,
            now: log.arrived,
            cutoffs: None,
            not_started: None,
            root: None,
            stopped: None,
            signal: None,
            signal_seen: None,
            window_end: None,
            cutoff_known: Moment::START,
            cut: None,
            return_decided: None,
            pipeline: None,
            destructor_panicked: None,
            end: Moment::NEVER,
            is_frozen: false,
            held_by: None,
            chain_end: None,
            elements: vec![Element::default(); steps],
            executions: vec![Executions::default(); steps],
            opened: BTreeMap::new(),
            settling: None,
            revoked: None,
            degraded: false,
            slot_freed: None,
            redelivered: false,
            sightings: Vec::new(),
            cut_short_at: None,
        }
    }

    /// Whether the frame of that step is the pipeline's.
    pub(super) fn is_in_pipeline(&self, step: StepId) -> bool {
        self.shape.in_pipeline().any(|id| id == step)
    }

    /// Takes the next entry in.
    pub(super) fn take(&mut self, entry: &'a Entry) {
        match &entry.event {
            Event::Observed(observation) => {
                self.now = entry.at;
                // A log without the decision to freeze is frozen all the same: time passed.
                if entry.at > self.end && !matches!(observation, Observation::Tick) {
                    self.freeze();
                }
                self.observe(entry.at, observation);
            }
            Event::Decided(decision) => self.decide(entry.at, decision),
        }
        self.taken += 1;
    }

    fn observe(&mut self, at: Moment, observation: &'a Observation) {
        let is_late = self.is_frozen;
        match observation {
            Observation::Admitted { root } => {
                if self.cutoffs.is_none() {
                    self.root = root.as_deref().copied().or(self.root);
                    self.cutoffs = Some(rules::cutoffs(&self.shape.plan.budget, at, self.root));
                    self.cutoff_known = at;
                    self.reckon();
                }
            }
            Observation::Released => {
                self.not_started.get_or_insert(at);
            }
            Observation::StepStarted { step } => {
                if !self.shape.begins_by_decision(*step) {
                    self.begin(*step, at);
                }
                if let Some(executions) = self.executions.get_mut(index(*step)) {
                    executions.last_started = Some(Recorded { at, place: self.taken });
                    executions.was_polled = true;
                }
            }
            Observation::StepEnded(end) => {
                let recorded = Recorded { at, place: self.taken };
                if let Some(executions) = self.executions.get_mut(index(end.step)) {
                    executions.last_ended = Some((recorded, (**end).clone()));
                }
            }
            Observation::ElementReturned { step, verdict } => {
                if let Some(element) = self.elements.get_mut(index(*step)) {
                    element.returned.get_or_insert(Seen { what: verdict.clone(), at, is_late });
                }
            }
            Observation::ElementDropped { step } => {
                if let Some(element) = self.elements.get_mut(index(*step)) {
                    element.dropped.get_or_insert(Seen { what: (), at, is_late });
                }
            }
            Observation::Degraded { .. } => self.degraded |= !is_late,
            Observation::SignalSeen { .. } => {
                if self.signal.is_some() && !is_late {
                    self.signal_seen.get_or_insert(at);
                }
            }
            Observation::DestructorPanicked { step } => {
                self.destructor_panicked.get_or_insert(*step);
            }
            Observation::PipelineReturned if self.cut.is_some() => {
                self.release(Release::ReturnedAfterCut, at);
            }
            Observation::PipelineReturned => self.release(Release::Returned, at),
            Observation::PipelineDropped => self.release(Release::Dropped, at),
            Observation::Opened { opening, kind, step, thread } => {
                let opened = Opened {
                    kind: *kind,
                    step: *step,
                    thread: thread.as_deref().copied(),
                    at,
                    closed: None,
                };
                self.opened.entry(*opening).or_insert(opened);
            }
            Observation::Named { opening, thread } => {
                if let Some(opened) = self.opened.get_mut(opening) {
                    opened.thread.get_or_insert(**thread);
                }
            }
            Observation::Closed { opening, evidence, cpu } => {
                if let Some(opened) = self.opened.get_mut(opening) {
                    opened.closed.get_or_insert(Closed { at, evidence: *evidence, cpu: *cpu });
                }
            }
            Observation::Confirmed => {
                if let Some(settling) = &mut self.settling {
                    settling.confirmed.get_or_insert(at);
                }
            }
            Observation::RootPublished { root } => self.publish(**root, at),
            Observation::Stopped { reason } => {
                if self.stopped.is_none() {
                    self.stopped = Some(Signal { reason: *reason, at });
                    self.cutoff_known = at;
                }
            }
            Observation::Sighted(sighting) => self.sightings.push((at, sighting)),
            Observation::Tick => {}
        }
    }

    fn decide(&mut self, at: Moment, decision: &Decision) {
        match decision {
            Decision::Start { step } => {
                self.start(*step, at);
                if self.shape.begins_by_decision(*step) {
                    self.begin(*step, at);
                }
            }
            Decision::Return { verdict } => {
                self.return_decided.get_or_insert_with(|| verdict.clone());
            }
            Decision::Signal { reason, due } => {
                if self.signal.is_none() && self.pipeline.is_none() && !self.is_frozen {
                    self.signal = Some(Signal { reason: *reason, at: *due });
                    self.reckon();
                    let budget = &self.shape.plan.budget;
                    self.window_end = Some(rules::window_end(budget, *due, self.end));
                }
            }
            Decision::SignalDetached { .. } => {}
            Decision::Cut { .. } => {
                if self.pipeline.is_none() {
                    self.cut.get_or_insert(at);
                }
            }
            Decision::Call { step, .. } => {
                let until = self.share_end();
                self.start(*step, at);
                if let Some(element) = self.elements.get_mut(index(*step)) {
                    element.until.get_or_insert(until);
                }
            }
            Decision::Dispose { step, .. } => self.start(*step, at),
            Decision::CutCallback { step, due } | Decision::CutDisposal { step, due } => {
                if let Some(element) = self.elements.get_mut(index(*step))
                    && element.is_running()
                {
                    element.cut_due.get_or_insert(*due);
                }
            }
            Decision::Settle { settlement, .. } => {
                let due = self.confirmation_due(*settlement);
                self.settling.get_or_insert(Settling {
                    settlement: *settlement,
                    at,
                    due,
                    expired: false,
                    confirmed: None,
                });
            }
            Decision::Revoke => {
                self.revoked.get_or_insert(at);
            }
            Decision::Expire { .. } => {
                if let Some(settling) = &mut self.settling
                    && settling.confirmed.is_none()
                {
                    settling.expired = true;
                }
            }
            Decision::Freeze { .. } => self.freeze(),
            Decision::FreeSlot => {
                self.slot_freed.get_or_insert(at);
            }
            Decision::Redeliver => self.redelivered = true,
        }
    }

    /// Works `E` out again from what is known by now.
    fn reckon(&mut self) {
        if let Some(cutoffs) = self.cutoffs
            && !self.is_frozen
        {
            self.end = rules::end(cutoffs, self.signal, self.root);
        }
    }

    /// A root in force is only ever shortened (B4), and so is an open window (W3).
    fn publish(&mut self, root: Root, at: Moment) {
        if self.root.is_some_and(|in_force| in_force.hard_cutoff <= root.hard_cutoff) {
            return;
        }
        self.root = Some(root);
        self.reckon();
        if self.signal.is_none() {
            self.cutoff_known = at;
        }
        if let (Some(signal), Some(window_end)) = (self.signal, self.window_end)
            && self.cut.is_none()
            && self.pipeline.is_none()
        {
            let shortened = rules::window_end(&self.shape.plan.budget, signal.at, self.end);
            if shortened < window_end {
                self.window_end = Some(shortened);
                self.cutoff_known = at;
            }
        }
        if let Some(settling) = &mut self.settling
            && settling.confirmed.is_none()
            && !settling.expired
        {
            settling.due = settling.due.min(root.hard_cutoff);
        }
    }

    fn release(&mut self, release: Release, at: Moment) {
        if self.pipeline.is_none() {
            self.pipeline = Some(Seen { what: release, at, is_late: self.is_frozen });
            self.chain_end = Some(rules::chain_end(at, self.end));
        }
    }

    fn freeze(&mut self) {
        if !self.is_frozen {
            self.held_by = self.open_step();
            self.is_frozen = true;
        }
    }

    fn start(&mut self, step: StepId, at: Moment) {
        if let Some(element) = self.elements.get_mut(index(step))
            && !self.is_frozen
        {
            element.started.get_or_insert(at);
        }
    }

    fn begin(&mut self, step: StepId, at: Moment) {
        let recorded = Recorded { at, place: self.taken };
        if let Some(executions) = self.executions.get_mut(index(step)) {
            executions.begun += 1;
            executions.last_started = Some(recorded);
            executions.last_ended = None;
        }
    }

    /// The step of the pipeline that began last and has not ended.
    fn open_step(&self) -> Option<StepId> {
        let is_open = |step: &StepId| {
            let executions = &self.executions[index(*step)];
            executions.last_started.is_some() && executions.last_ended.is_none()
        };
        let steps = self.shape.in_pipeline().filter(is_open);
        steps.max_by_key(|step| self.executions[index(*step)].last_started)
    }

    /// The step that held the pipeline when the outcome froze, or that holds it now.
    pub(super) fn held_by(&self) -> Option<StepId> {
        if self.is_frozen { self.held_by } else { self.open_step() }
    }

    pub(super) fn element(&self, step: StepId) -> Element {
        self.elements.get(index(step)).cloned().unwrap_or_default()
    }

    /// Whether the record was cut short while this delivery had its slot: what it was still to do is
    /// not known, nor what it would have owed.
    pub(super) fn is_left_open(&self) -> bool {
        self.cut_short_at.is_some() && self.cutoffs.is_some() && self.slot_freed.is_none()
    }

    /// Whether the record was cut short before the outcome froze: nothing had run out of time yet.
    pub(super) fn is_left_unfrozen(&self) -> bool {
        self.is_left_open() && !self.is_frozen && self.cut_short_at <= Some(self.end)
    }

    /// Whether the pipeline's frame was gone before the outcome froze (X3).
    pub(super) fn is_released(&self) -> bool {
        self.pipeline.as_ref().is_some_and(|pipeline| !pipeline.is_late)
    }

    /// When the confirmation of `settlement` would be due if it were sent now.
    pub(super) fn confirmation_due(&self, settlement: Settlement) -> Moment {
        match (settlement, &self.shape.plan.settlement) {
            (Settlement::Released, _) | (_, None) => self.now,
            (_, Some(broker)) => rules::confirmation_due(self.now, broker.timeout, self.root),
        }
    }

    /// What the broker is to be told, as things stand (M1).
    pub(super) fn settlement(&self) -> Settlement {
        let redeliveries = self.shape.plan.settlement.as_ref().map_or(0, |it| it.redeliveries);
        let may_redeliver = self.log.attempt <= redeliveries;
        rules::settlement(&self.outcome(), self.is_clean(), may_redeliver)
    }

    /// The signal that is due first, as things stand (C1).
    pub(super) fn first_signal(&self) -> Option<Signal> {
        self.cutoffs.map(|cutoffs| rules::first_signal(cutoffs, self.root, self.stopped))
    }
}

impl Executions {
    /// Whether it was begun in name only (P9, or not drawn by its share).
    pub(super) fn was_skipped(&self) -> bool {
        self.last_ended.as_ref().is_some_and(|(_, end)| end.outcome == StepOutcome::Skipped)
    }
}

fn index(step: StepId) -> usize {
    step.0 as usize
}
