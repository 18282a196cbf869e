//! Writes a log the way a hand writes what it expects: one line for each fact, with its exact instant.

use std::time::Duration;

use deadline_run::event::{Decision, Entry, Event, Observation, Verdict};
use deadline_run::timeline::Moment;

use crate::simulated::name;

/// Only what the engine decided.
pub fn decisions(log: &[Entry]) -> Vec<String> {
    log.iter()
        .filter_map(|entry| match &entry.event {
            Event::Decided(decision) => Some(line(entry.at, &decided(entry.at, decision))),
            Event::Observed(_) => None,
        })
        .collect()
}

/// What was seen, too, as far as the engine listens to it.
pub fn trace(log: &[Entry]) -> Vec<String> {
    log.iter()
        .filter_map(|entry| {
            match &entry.event {
                Event::Decided(decision) => Some(decided(entry.at, decision)),
                Event::Observed(observation) => observed(observation),
            }
            .map(|words| line(entry.at, &words))
        })
        .collect()
}

fn line(at: Moment, words: &str) -> String {
    format!("{:?} {words}", instant(at))
}

fn instant(moment: Moment) -> Duration {
    moment.since(Moment::START)
}

fn decided(at: Moment, decision: &Decision) -> String {
    // The instant at which something was due is said only where it was decided later.
    let late = |due: Moment| match due == at {
        true => String::new(),
        false => format!(", due {:?}", instant(due)),
    };
    match decision {
        Decision::Start { step } => format!("start {}", name(*step)),
        Decision::Return { verdict } => format!("return {}", said(verdict)),
        Decision::Signal { reason, due } => format!("signal {reason:?}{}", late(*due)),
        Decision::SignalDetached { due } => format!("signal detached{}", late(*due)),
        Decision::Cut { due } => format!("cut{}", late(*due)),
        Decision::Call { step, until } => {
            format!("call {} until {:?}", name(*step), instant(*until))
        }
        Decision::CutCallback { step, due } => format!("cut {}{}", name(*step), late(*due)),
        Decision::Dispose { until, .. } => format!("dispose until {:?}", instant(*until)),
        Decision::CutDisposal { due, .. } => format!("cut dispose{}", late(*due)),
        Decision::Settle { settlement, until } => {
            format!(
                "settle {settlement:?}{}",
                match until == &at {
                    true => String::new(),
                    false => format!(" until {:?}", instant(*until)),
                }
            )
        }
        Decision::Revoke => "revoke".into(),
        Decision::Expire { due } => format!("expire{}", late(*due)),
        Decision::Freeze { due } => format!("freeze{}", late(*due)),
        Decision::FreeSlot => "free slot".into(),
        Decision::Redeliver => "redeliver".into(),
    }
}

fn observed(observation: &Observation) -> Option<String> {
    let words = match observation {
        Observation::Admitted { .. } => "admitted".into(),
        Observation::Released => "released".into(),
        Observation::ElementReturned { step, verdict } => {
            format!("{} says {}", name(*step), said(verdict))
        }
        Observation::DestructorPanicked { step } => format!("destructor of {} panics", name(*step)),
        Observation::PipelineReturned => "pipeline returned".into(),
        Observation::PipelineDropped => "pipeline dropped".into(),
        Observation::ElementDropped { step } => format!("{} dropped", name(*step)),
        Observation::Opened { opening, .. } => format!("opened {}", opening.0),
        Observation::Named { opening, .. } => format!("named {}", opening.0),
        Observation::Closed { opening, .. } => format!("closed {}", opening.0),
        Observation::Confirmed => "confirmed".into(),
        Observation::RootPublished { .. } => "root".into(),
        Observation::Stopped { reason } => format!("stopped {reason:?}"),
        Observation::StepStarted { .. }
        | Observation::StepEnded(_)
        | Observation::Degraded { .. }
        | Observation::SignalSeen { .. }
        | Observation::Sighted(_)
        | Observation::Tick => return None,
    };
    Some(words)
}

fn said(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Success => "success",
        Verdict::Failure { retryable: true, .. } => "retryable failure",
        Verdict::Failure { retryable: false, .. } => "failure",
        Verdict::Panic => "panic",
    }
}
