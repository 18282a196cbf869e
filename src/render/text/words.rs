//! What single values of a report are in words.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::event::Effect;
use crate::render::page::printable;
use crate::report::words::{count, span, spoken, stored};
use crate::report::{
    Cleanup, Control, Delivery, DeliveryResult, Gap, Lateness, LoadShown, PeerRow, Percentiles,
    Progress, Report, Shutdown, StepTotals, Who,
};

/// What a table says where there is nothing to say.
pub(super) const NO_VALUE: &str = "-";

/// `when polled`, or with amounts where executions differ: `when polled 3, never 1`
pub(super) fn progress(progress: &BTreeMap<Progress, u64>) -> String {
    match progress.len() {
        0 => String::from(NO_VALUE),
        1 => progress.keys().map(|class| spoken(*class)).collect(),
        _ => {
            let parts: Vec<String> = progress
                .iter()
                .map(|(class, amount)| format!("{} {amount}", spoken(*class)))
                .collect();
            parts.join(", ")
        }
    }
}

/// Which delivery, and who was seen to hold it.
pub(super) fn describe(gap: &Gap) -> String {
    let mut parts = Vec::new();
    if let Some(delivery) = gap.delivery {
        parts.push(format!("delivery {delivery}"));
    }
    if let Some(who) = &gap.who {
        parts.extend(describe_thread(who));
        if let Some(delivery) = who.delivery.filter(|holder| Some(*holder) != gap.delivery) {
            parts.push(format!("held by a step of delivery {delivery}"));
        }
        match (&who.inside, who.since_us) {
            (Some(inside), Some(since)) => {
                parts.push(format!(
                    "inside one {} since {} into the run",
                    printable(inside),
                    span(since)
                ));
            }
            (Some(inside), None) => parts.push(format!("inside one {}", printable(inside))),
            (None, Some(since)) => parts.push(format!("since {} into the run", span(since))),
            (None, None) => {}
        }
    }
    parts.join("; ")
}

/// `thread 4242 sleeping in hrtimer_nanosleep, 120 us of CPU time since it was due`
pub(super) fn describe_thread(who: &Who) -> Option<String> {
    let mut text = match who.tid {
        Some(tid) => format!("thread {tid}"),
        None if who.state.is_some() => String::from("its thread"),
        None => return None,
    };
    if let Some(state) = &who.state {
        let _ = write!(text, " {}", printable(&state.replace('_', " ")));
    }
    if let Some(place) = &who.waiting_in {
        let _ = write!(text, " in {}", printable(place));
    }
    if let Some(cpu) = who.cpu_us {
        let _ = write!(text, ", {} of CPU time since it was due", span(cpu));
    }
    Some(text)
}

pub(super) fn delivery_time(time: Percentiles) -> Option<String> {
    let (p50, max) = (time.p50?, time.max?);
    if p50 == max {
        return Some(span(max));
    }
    Some(format!(
        "p50 {}, p95 {}, p99 {}, max {}",
        span(p50),
        span(time.p95?),
        span(time.p99?),
        span(max)
    ))
}

/// How messages came at a rate, and what they waited.
pub(super) fn arrivals(load: &LoadShown) -> Option<String> {
    let (asked, reached) = load.rate_per_s.zip(load.reached_per_s)?;
    let mut text = match load.is_short() {
        true => format!("only {reached}/s admitted of {asked}/s asked; raise load.concurrency"),
        false => format!("{asked}/s"),
    };
    if let Some(waited) = delivery_time(load.waited_us) {
        text += &format!("; waited for a slot: {waited}");
    }
    Some(text)
}

pub(super) fn cutoffs(control: Control, lateness: Lateness) -> String {
    let control = match control {
        Control::Fifo => "real-time control thread",
        Control::Slice => "control thread with a short slice",
        Control::Ordinary => "ordinary control thread",
        Control::Simulated => "simulated time",
    };
    match (lateness.p50, lateness.p99, lateness.max) {
        (Some(p50), Some(p99), Some(max)) => format!(
            "decided {} late at p50, {} at p99, {} at most; {control}",
            span(p50),
            span(p99),
            span(max)
        ),
        _ => format!("none came due; {control}"),
    }
}

pub(super) fn describe_shutdown(shutdown: &Shutdown) -> String {
    let mut text = format!(
        "by {} at {}, over in {} of {}",
        stored(shutdown.initiated_by).replace('_', " "),
        span(shutdown.initiated_us),
        span(shutdown.elapsed_us),
        span(shutdown.root_hard_us.saturating_sub(shutdown.initiated_us)),
    );
    if shutdown.forced {
        text += ", forced";
    }
    if shutdown.released > 0 {
        let _ = write!(text, "; {} released unstarted", shutdown.released);
    }
    text
}

/// The steps of which more or less than all may have been done.
pub(super) fn effects(report: &Report) -> Option<String> {
    let mut parts = Vec::new();
    for step in &report.steps {
        for (effect, word) in [(Effect::Partial, "partial"), (Effect::Unknown, "unknown")] {
            if let Some(amount) = step.effects.get(&effect) {
                parts.push(format!("{} {word} {amount}", step.name));
            }
        }
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

pub(super) fn describe_peer(peer: &PeerRow) -> String {
    let connections = count(peer.connections, "connection", "connections");
    let mut text = format!("{}: {connections}, {} answered", peer.name, peer.answered);
    for (amount, what) in [
        (peer.reset, "reset"),
        (peer.closed, "closed early"),
        (peer.abandoned, "left by the other side"),
        (peer.open, "still open"),
    ] {
        if amount > 0 {
            text.push_str(&format!(", {amount} {what}"));
        }
    }
    text
}

pub(super) fn detached_failures(step: &StepTotals, file: &str) -> Option<String> {
    let failures = step.failure + step.panic;
    if failures == 0 {
        return None;
    }
    let codes: Vec<_> = step.codes.iter().map(|(code, amount)| (code.as_str(), *amount)).collect();
    let codes = match codes.is_empty() {
        true => String::new(),
        false => format!(" ({})", most_frequent(codes)),
    };
    Some(format!(
        "{} ({file}:{}): {} in work that nobody awaits{codes}",
        step.name,
        step.line,
        count(failures, "failure", "failures"),
    ))
}

/// `CARD_DECLINED 3, BUSY 2`
pub(super) fn most_frequent(mut codes: Vec<(&str, u64)>) -> String {
    codes.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
    let named: Vec<String> =
        codes.iter().map(|(code, amount)| format!("{code} {amount}")).take(10).collect();
    let more = match codes.len().saturating_sub(10) {
        0 => String::new(),
        more => format!(", and {more} codes more"),
    };
    named.join(", ") + &more
}

pub(super) fn delivery_row(delivery: &Delivery) -> [String; 7] {
    let result = match (&delivery.code, delivery.result) {
        (Some(code), DeliveryResult::Failure) => format!("failure {}", printable(code)),
        (_, result) => spoken(result),
    };
    let id = match delivery.attempt {
        1 => delivery.id.to_string(),
        attempt => format!("{} (attempt {attempt} of message {})", delivery.id, delivery.message),
    };
    let time = match (delivery.admitted_us, delivery.ended_us) {
        (Some(admitted), Some(ended)) => span(ended.saturating_sub(admitted)),
        _ => String::from(NO_VALUE),
    };
    let cleanup = match delivery.cleanup {
        Cleanup::NoneDue => String::from(NO_VALUE),
        cleanup => spoken(cleanup),
    };
    [
        id,
        result,
        spoken(delivery.termination),
        cleanup,
        delivery.reached.clone().unwrap_or_else(|| String::from(NO_VALUE)),
        delivery.signal.map_or_else(|| String::from(NO_VALUE), |signal| spoken(signal.reason)),
        time,
    ]
}
