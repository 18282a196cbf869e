//! A delivery laid open for drawing against time: a track for each thing in it that took some.
//!
//! Every drawing starts from these, so that all show the same. Reads the report alone, judges
//! nothing and knows no scale; instants are those of the report. A part of the course without an
//! instant in the report (one that was skipped, or a report of an earlier version) has no track.

use std::collections::{HashMap, HashSet};

use super::words::{span, spoken};
use super::{
    CourseState, Delivery, ObligationRow, Outcome, Report, ScopeState, SettledState, Step,
    StepTotals, TerminateState, Termination,
};
use crate::obligation::{Obligation, ObligationState};

/// The stages of the forward course between the middleware's two ways.
const STAGES: [&str; 4] = ["guard", "resolve", "extract", "handler"];

/// One delivery, from its admission on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracks {
    pub admitted_us: u64,
    /// `P`, unless it was never to be reached.
    pub normal_cutoff_us: Option<u64>,
    /// `E`
    pub end_us: u64,
    pub tracks: Vec<Track>,
}

/// One thing that took time, or that should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    pub name: String,
    pub role: Role,
    /// Inside how many others it stands.
    pub depth: usize,
    /// `None`: not known, or it never began and is owed all the same.
    pub began_us: Option<u64>,
    pub end: End,
    /// What goes on after this is overdue.
    pub due_us: u64,
    /// The outcome, and how long it took or how late it was.
    pub note: String,
    /// Whether there is no more to say than that it went well.
    pub is_plain: bool,
}

/// What a track stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Time that was granted: the reserve, the window.
    Grant,
    /// The signal, from its instant until somebody saw it.
    Signal,
    /// A stage of the course, a step, or cleanup.
    Work,
    /// Work that nobody awaits.
    Detached,
    /// Something that must be shown to have ended and is not drawn as work already.
    Owed,
}

/// How a track ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It ended by its own word, or as it was to.
    Ended(u64),
    /// It was dropped.
    Cut(u64),
    /// Its end was observed.
    Proven(u64),
    /// No end was seen.
    Open,
}

impl End {
    /// When, if it was seen.
    pub fn at_us(self) -> Option<u64> {
        match self {
            Self::Ended(at) | Self::Cut(at) | Self::Proven(at) => Some(at),
            Self::Open => None,
        }
    }

    fn is_by(self, due_us: u64) -> bool {
        self.at_us().is_some_and(|at| at <= due_us)
    }
}

impl Tracks {
    /// The tracks of a delivery of `report`; `None` when it never began, or when the record was cut short
    /// before what it left open was due: nobody knows how it would go on.
    pub fn of(report: &Report, delivery: &Delivery) -> Option<Self> {
        if !is_known(report, delivery) {
            return None;
        }
        let (admitted_us, end_us) = (delivery.admitted_us?, delivery.end_us()?);
        let mut tracks = Self {
            admitted_us,
            // A shutdown may end a delivery before its own normal cutoff would have come.
            normal_cutoff_us: delivery.normal_cutoff_us.filter(|normal| *normal <= end_us),
            end_us,
            tracks: Vec::new(),
        };
        tracks.grants(delivery);
        tracks.course(report, delivery);
        tracks.cleanup(delivery);
        tracks.settlement(delivery);
        Some(tracks)
    }

    fn push(&mut self, track: Track) {
        self.tracks.push(track);
    }

    fn grants(&mut self, delivery: &Delivery) {
        if let Some(signal) = delivery.signal {
            let seen = match signal.observed_us {
                Some(seen) => format!("seen {} later", span(seen.saturating_sub(signal.at_us))),
                None => String::from("not seen"),
            };
            self.push(Track {
                name: "signal".into(),
                role: Role::Signal,
                depth: 0,
                began_us: Some(signal.at_us),
                end: End::Ended(signal.observed_us.unwrap_or(signal.at_us)),
                due_us: u64::MAX,
                note: seen,
                is_plain: true,
            });
            if let Some(end) = delivery.window_end_us {
                self.push(grant("window", signal.at_us, end));
            }
        }
        if let Some(normal) = self.normal_cutoff_us.filter(|normal| *normal < self.end_us) {
            self.push(grant("reserve", normal, self.end_us));
        }
    }

    /// The execution, and inside it the stages and steps with what they started.
    fn course(&mut self, report: &Report, delivery: &Delivery) {
        for owed in delivery.obligations.iter().filter(|row| row.kind == Obligation::Execution) {
            self.push(owed_track("execution".into(), 0, owed));
        }
        for callback in &delivery.callbacks {
            let ways = (callback.before_started_us, callback.before_ended_us);
            self.way(&callback.middleware, "before", callback.before, ways);
        }
        let totals: HashMap<&str, &StepTotals> =
            report.steps.iter().map(|step| (step.name.as_str(), step)).collect();
        for stage in STAGES {
            self.stage(stage, &totals, delivery);
        }
        for callback in delivery.callbacks.iter().rev() {
            let ways = (callback.after_started_us, callback.after_ended_us);
            self.way(&callback.middleware, "after", callback.after, ways);
        }
    }

    /// A middleware's way in or out.
    fn way(
        &mut self,
        middleware: &str,
        way: &str,
        state: CourseState,
        (began, ended): (Option<u64>, Option<u64>),
    ) {
        let Some(began) = began else { return };
        let end = match (state, ended) {
            (_, None) => End::Open,
            (CourseState::Interrupted, Some(at)) => End::Cut(at),
            (_, Some(at)) => End::Ended(at),
        };
        let word = match state {
            CourseState::Completed => String::from("success"),
            state => spoken(state),
        };
        self.push(Track {
            name: format!("{middleware} {way}"),
            role: Role::Work,
            depth: 1,
            began_us: Some(began),
            end,
            due_us: self.end_us,
            note: lasting(word, Some(began), end),
            is_plain: state == CourseState::Completed,
        });
    }

    fn stage(&mut self, stage: &str, totals: &HashMap<&str, &StepTotals>, delivery: &Delivery) {
        let inside = |name: &str| totals.get(name).and_then(|step| step.inside.as_deref());
        let is_detached = |name: &str| totals.get(name).is_some_and(|step| step.detached);
        let steps: Vec<&Step> = delivery
            .steps
            .iter()
            .filter(|step| step.stage == stage && step.started_us.is_some())
            .collect();
        let awaited: Vec<&Step> = steps
            .iter()
            .copied()
            .filter(|step| inside(&step.name).is_none() && !is_detached(&step.name))
            .collect();
        // A stage of one step is that step; of several it has a track of its own.
        let is_grouped = awaited.len() > 1;
        if is_grouped {
            let began = awaited.iter().filter_map(|step| step.started_us).min();
            let ends: Option<Vec<u64>> = awaited.iter().map(|step| step.ended_us).collect();
            let was_cut = awaited.iter().any(|step| step.outcome == Outcome::Dropped);
            let end = match ends.and_then(|ends| ends.into_iter().max()) {
                None => End::Open,
                Some(at) if was_cut => End::Cut(at),
                Some(at) => End::Ended(at),
            };
            self.push(Track {
                name: stage.into(),
                role: Role::Work,
                depth: 1,
                began_us: began,
                end,
                due_us: self.end_us,
                note: format!("{} steps", awaited.len()),
                is_plain: false,
            });
        }
        for step in steps {
            let mut depth = 1 + usize::from(is_grouped);
            let mut parent = inside(&step.name);
            while let Some(name) = parent.filter(|_| depth <= totals.len() + 2) {
                depth += 1;
                parent = inside(name);
            }
            let is_marked = is_detached(&step.name) && !inside(&step.name).is_some_and(is_detached);
            let is_alone = depth == 1 && !step.name.starts_with(stage);
            let end = match (step.outcome, step.ended_us) {
                (_, None) | (Outcome::Running, _) => End::Open,
                (Outcome::Dropped, Some(at)) => End::Cut(at),
                (_, Some(at)) => End::Ended(at),
            };
            let word = match &step.code {
                Some(code) => format!("{} {code}", spoken(step.outcome)),
                None => spoken(step.outcome),
            };
            self.push(Track {
                name: if is_alone { format!("{stage} {}", step.name) } else { step.name.clone() },
                role: if is_marked { Role::Detached } else { Role::Work },
                depth,
                began_us: step.started_us,
                end,
                due_us: self.end_us,
                note: lasting(word, step.started_us, end),
                is_plain: step.outcome == Outcome::Success && end.is_by(self.end_us),
            });
            for owed in started_by(delivery, &step.name) {
                self.push(owed_track(spoken(owed.kind), depth + 1, owed));
            }
        }
    }

    fn cleanup(&mut self, delivery: &Delivery) {
        // Both stand in the order of entry.
        let mut owed = delivery.obligations.iter().filter(|row| row.kind == Obligation::Callback);
        let mut callbacks = Vec::new();
        for callback in &delivery.callbacks {
            if callback.terminate == TerminateState::NotDue {
                continue;
            }
            callbacks.push(self.cleanup_track(
                format!("{} terminate", callback.middleware),
                callback.started_us,
                callback.ended_us,
                (&spoken(callback.terminate), callback.terminate == TerminateState::Completed),
                owed.next(),
            ));
        }
        // They run innermost first.
        self.tracks.extend(callbacks.into_iter().rev());
        if delivery.scope.state != ScopeState::None {
            let owed = delivery.obligations.iter().find(|row| row.kind == Obligation::Scope);
            let track = self.cleanup_track(
                "scope".into(),
                delivery.scope.started_us,
                delivery.scope.at_us,
                (&spoken(delivery.scope.state), delivery.scope.state == ScopeState::Disposed),
                owed,
            );
            self.push(track);
        }
        let steps: HashSet<&str> = delivery
            .steps
            .iter()
            .filter(|step| step.started_us.is_some())
            .map(|step| step.name.as_str())
            .collect();
        for owed in &delivery.obligations {
            let Some(step) = owed.step.as_deref().filter(|step| !steps.contains(step)) else {
                continue;
            };
            if is_started_by_step(owed) {
                self.push(owed_track(format!("{} of {step}", spoken(owed.kind)), 0, owed));
            }
        }
    }

    fn cleanup_track(
        &self,
        name: String,
        began: Option<u64>,
        ended: Option<u64>,
        (word, went_well): (&str, bool),
        owed: Option<&ObligationRow>,
    ) -> Track {
        let (end, note) = match owed {
            Some(owed) => {
                let word = String::from(word);
                let note = match owed.state {
                    ObligationState::Proven => lasting(word, began, proof(owed)),
                    // Its word says already that nothing began.
                    ObligationState::Unproven if began.is_none() => word,
                    ObligationState::Late | ObligationState::Unproven => {
                        format!("{word}, {}", owed_note(owed))
                    }
                };
                (proof(owed), note)
            }
            None => (ended.map_or(End::Open, End::Ended), word.into()),
        };
        let due_us = owed.map_or(self.end_us, |owed| owed.due_us);
        let is_plain = went_well && end.is_by(due_us);
        Track { name, role: Role::Work, depth: 0, began_us: began, end, due_us, note, is_plain }
    }

    fn settlement(&mut self, delivery: &Delivery) {
        let settlement = &delivery.settlement;
        let word = match settlement.decision {
            Some(decision) => format!("{}, {}", spoken(decision), spoken(settlement.state)),
            None => spoken(settlement.state),
        };
        let owed = delivery.obligations.iter().find(|row| row.kind == Obligation::Settlement);
        let (began, end, due_us) = match (owed, settlement.state, settlement.at_us) {
            (Some(owed), ..) => (Some(owed.opened_us), proof(owed), owed.due_us),
            (None, SettledState::None, _) | (None, _, None) => return,
            (None, _, Some(at)) => (Some(at), End::Ended(at), u64::MAX),
        };
        let note = match owed.filter(|owed| owed.state == ObligationState::Late) {
            Some(owed) => format!("{word}, {}", owed_note(owed)),
            None => word,
        };
        let name = "settlement".into();
        let is_plain = settlement.state == SettledState::Confirmed && end.is_by(due_us);
        let role = Role::Work;
        self.push(Track { name, role, depth: 0, began_us: began, end, due_us, note, is_plain });
    }
}

fn grant(name: &str, from: u64, until: u64) -> Track {
    Track {
        name: name.into(),
        role: Role::Grant,
        depth: 0,
        began_us: Some(from),
        end: End::Ended(until),
        due_us: u64::MAX,
        note: span(until.saturating_sub(from)),
        is_plain: true,
    }
}

fn owed_track(name: String, depth: usize, owed: &ObligationRow) -> Track {
    Track {
        name,
        role: Role::Owed,
        depth,
        began_us: Some(owed.opened_us),
        end: proof(owed),
        due_us: owed.due_us,
        note: owed_note(owed),
        is_plain: owed.state == ObligationState::Proven,
    }
}

fn proof(owed: &ObligationRow) -> End {
    owed.closed_us.map_or(End::Open, End::Proven)
}

/// How the end was observed, or what is wrong with it.
fn owed_note(owed: &ObligationRow) -> String {
    match (owed.state, owed.late_by_us, owed.evidence) {
        (ObligationState::Late, Some(late_by), _) => format!("{} late", span(late_by)),
        (ObligationState::Proven, _, Some(evidence)) => spoken(evidence),
        (state, _, _) => spoken(state),
    }
}

/// `success, 7.3 ms`
fn lasting(word: String, began: Option<u64>, end: End) -> String {
    match (began, end.at_us()) {
        (Some(began), Some(at)) => format!("{word}, {}", span(at.saturating_sub(began))),
        _ => word,
    }
}

/// The tasks and threads of that step.
fn started_by<'a>(
    delivery: &'a Delivery,
    step: &'a str,
) -> impl Iterator<Item = &'a ObligationRow> {
    let of_step = move |row: &&ObligationRow| row.step.as_deref() == Some(step);
    delivery.obligations.iter().filter(|row| is_started_by_step(row)).filter(of_step)
}

fn is_started_by_step(owed: &ObligationRow) -> bool {
    match owed.kind {
        Obligation::Task | Obligation::Thread => true,
        // A connection is gone with the frame of its step.
        Obligation::Execution
        | Obligation::Connection
        | Obligation::Callback
        | Obligation::Scope
        | Obligation::Settlement => false,
    }
}

/// The listed deliveries that began and have something to say.
#[derive(Clone, Debug, Default)]
pub struct Telling<'a> {
    /// One of each kind: those with gaps before others, and of one kind the latest.
    pub examples: Vec<&'a Delivery>,
    /// All others, as they are listed.
    pub others: Vec<&'a Delivery>,
}

/// Whether the record goes as far as the delivery does.
fn is_known(report: &Report, delivery: &Delivery) -> bool {
    delivery.termination != Termination::Unproven
        || report.cut_short_us.is_none_or(|cut| delivery.end_us().is_some_and(|end| end <= cut))
}

/// Sorts out which deliveries are worth drawing first.
pub fn telling(report: &Report) -> Telling<'_> {
    let telling: Vec<&Delivery> = report
        .deliveries
        .iter()
        .filter(|delivery| delivery.admitted_us.is_some() && delivery.has_something_to_say())
        .filter(|delivery| is_known(report, delivery))
        .collect();
    let mut places = HashMap::new();
    let mut examples: Vec<&Delivery> = Vec::new();
    for delivery in &telling {
        let gaps: Vec<_> = delivery
            .obligations
            .iter()
            .filter(|row| row.state != ObligationState::Proven)
            .map(|row| (row.kind, &row.step, row.state))
            .collect();
        let kind = (delivery.result, delivery.termination, &delivery.code, gaps);
        let place = *places.entry(kind).or_insert(examples.len());
        match examples.get_mut(place) {
            None => examples.push(delivery),
            Some(example) if latest(delivery) > latest(example) => *example = delivery,
            Some(_) => {}
        }
    }
    examples.sort_by_key(|delivery| match delivery.termination {
        Termination::Unproven => 0,
        Termination::Late => 1,
        Termination::Proven | Termination::NothingStarted => 2,
    });
    let are_examples: HashSet<u32> = examples.iter().map(|delivery| delivery.id).collect();
    let others = telling.into_iter().filter(|delivery| !are_examples.contains(&delivery.id));
    Telling { examples, others: others.collect() }
}

/// How late the latest receipt came.
fn latest(delivery: &Delivery) -> Option<u64> {
    delivery.obligations.iter().filter_map(|row| row.late_by_us).max()
}
