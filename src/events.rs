//! The record of a run as lines of JSON, `deadline-run.events/1`.
//!
//! 1. The first line is the [`Head`]: all that judging takes beside the entries, so that a record needs
//!    no other file.
//! 2. Each other line is one entry, of a delivery or of the run, with its place in that order. Lines may
//!    come in any mixture; the places give each order back.
//! 3. A run that ended by itself has `observation_ended` in its last line. A record without it was cut
//!    short, and reads as one: it gets [`RunEvent::CutShort`] at its last entry.
//! 4. What is torn at the very end is left out: of a program that was killed, spaces that lead to the
//!    next line, or half of a line longer than a page. A fault anywhere else, or an entry missing between
//!    two others, is refused: a record with holes proves nothing.
//!
//! Instants are nanoseconds since the run began, as the audit needs them; steps are numbers, and the
//! head names them. Writes no file and judges nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::{
    Decision, DeliveryId, DeliveryLog, Entry, Event, EventLog, Observation, RunEntry, RunEvent,
};
use crate::report::{Clock, Control, Program};
use crate::timeline::Moment;
use crate::workload::Workload;

/// The name of the stored form.
pub const FORMAT: &str = "deadline-run.events/1";
/// What the names of all its versions begin with.
const ANY_VERSION: &str = "deadline-run.events/";

/// The first line: what was run, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub format: String,
    pub program: Program,
    pub workload: Source,
    pub clock: Clock,
    /// The wall clock's word for the run's start, RFC 3339 in UTC.
    pub started: String,
    /// The scheduling class of the control thread.
    pub control: Control,
    /// The niceness of the workload's threads.
    pub workload_nice: i32,
    /// The names of the steps, by their numbers.
    pub steps: Vec<String>,
}

/// A workload as it was written, from which it can be read again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub name: String,
    pub file: String,
    /// Of the file's text.
    pub sha256: String,
    /// The file's text.
    pub text: String,
    /// The `KEY=VALUE` words that replaced settings, the seed among them.
    pub set: Vec<String>,
}

impl Source {
    /// What was written of `workload`.
    pub fn new(workload: &Workload, text: &str, set: &[String]) -> Self {
        Self {
            name: workload.name.clone(),
            file: workload.file.display().to_string(),
            sha256: workload.sha256.clone(),
            text: text.into(),
            set: set.to_vec(),
        }
    }
}

impl Head {
    /// The head of a run of `workload`, which `source` says.
    pub fn new(
        workload: &Workload,
        source: Source,
        started: String,
        control: Control,
        workload_nice: i32,
    ) -> Self {
        Self {
            format: FORMAT.into(),
            program: Program::this(),
            workload: source,
            clock: Clock::Real,
            started,
            control,
            workload_nice,
            steps: workload.steps.iter().map(|step| step.name.clone()).collect(),
        }
    }
}

/// One line of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Line {
    /// The first one.
    Head(Box<Head>),
    /// An entry of a delivery.
    Delivery(DeliveryLine),
    /// An entry of the run.
    Run(RunLine),
}

/// An entry of a delivery, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DeliveryLine {
    pub delivery: DeliveryId,
    pub message: u32,
    pub attempt: u32,
    #[serde(rename = "arrived_ns")]
    pub arrived: Moment,
    /// Its place in the order of its delivery, from 0.
    pub place: u32,
    #[serde(rename = "at_ns")]
    pub at: Moment,
    /// `observed` or `decided`.
    #[serde(flatten)]
    pub event: Event,
}

/// An entry of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RunLine {
    /// Its place in the run's own order, from 0.
    pub place: u32,
    #[serde(rename = "at_ns")]
    pub at: Moment,
    pub run: RunEvent,
}

impl Line {
    /// Appends it to `text`, with its newline.
    ///
    /// # Panics
    /// Never: none of its parts can fail to be JSON.
    pub fn append_to(&self, text: &mut Vec<u8>) {
        serde_json::to_writer(&mut *text, self).expect("a line is plain data");
        text.push(b'\n');
    }

    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Run(RunLine { run: RunEvent::ObservationEnded, .. }))
    }
}

/// A record that was read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub head: Head,
    /// Ends with `ObservationEnded`, or with `CutShort`.
    pub log: EventLog,
}

impl Record {
    /// When it ends.
    pub fn end(&self) -> Moment {
        self.log.run.last().map_or(Moment::START, |end| end.at)
    }
}

/// Why a text is no record that this version can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventsError {
    /// Another version.
    #[error("its format is `{found}`; this version reads `{FORMAT}`")]
    Foreign { found: String },
    /// Not even the head is whole.
    #[error("its first line is torn: the run was cut short before anything was recorded")]
    NoHead,
    /// A line before the last is not what it should be.
    #[error("line {line}: {what}")]
    Malformed { line: usize, what: String },
    /// An entry between two others is missing, or there twice.
    #[error("the entry at place {place} of {whose} is {fault}, so that its order is not known")]
    Broken { whose: String, place: usize, fault: &'static str },
}

/// Whether `bytes` are those of a record, of whatever version and however short it was cut.
pub fn is_record(bytes: &[u8]) -> bool {
    let start = bytes.strip_prefix(br#"{"format":""#);
    start.is_some_and(|rest| rest.starts_with(ANY_VERSION.as_bytes()))
}

/// A line as it may come: which of its fields are there says what it is.
#[derive(Deserialize)]
struct Found {
    delivery: Option<DeliveryId>,
    message: Option<u32>,
    attempt: Option<u32>,
    arrived_ns: Option<Moment>,
    place: u32,
    at_ns: Moment,
    observed: Option<Observation>,
    decided: Option<Decision>,
    run: Option<RunEvent>,
}

/// Reads a record back.
///
/// # Errors
/// When it is none, or has a hole.
pub fn parse(bytes: &[u8]) -> Result<Record, EventsError> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1..);
    let head = match lines.next() {
        Some((line, _)) if line.ends_with(b"\n") => head(line)?,
        _ => return Err(EventsError::NoHead),
    };
    let mut deliveries: BTreeMap<DeliveryId, (DeliveryLog, Vec<u32>)> = BTreeMap::new();
    let mut run = Vec::new();
    for (text, line) in lines {
        if !text.ends_with(b"\n") {
            break;
        }
        let malformed = |what: String| EventsError::Malformed { line, what };
        let found: Found =
            serde_json::from_slice(text).map_err(|error| malformed(error.to_string()))?;
        match sorted_out(found) {
            Some(Line::Delivery(line)) => take(&mut deliveries, line),
            Some(Line::Run(line)) => run.push(line),
            _ => return Err(malformed("it is no entry of a delivery or of the run".into())),
        }
    }
    let deliveries = deliveries.into_values().map(|(log, places)| in_order(log, &places));
    let deliveries = deliveries.collect::<Result<Vec<_>, _>>()?;
    run.sort_by_key(|line| line.place);
    check_places("the run", run.iter().map(|line| line.place))?;
    let run = run.iter().map(|line| RunEntry { at: line.at, event: line.run }).collect();
    let mut log = EventLog { run, deliveries };
    if !log.run.iter().any(|entry| entry.event == RunEvent::ObservationEnded) {
        let at = last_moment(&log);
        log.run.push(RunEntry { at, event: RunEvent::CutShort });
    }
    Ok(Record { head, log })
}

fn head(line: &[u8]) -> Result<Head, EventsError> {
    #[derive(Deserialize)]
    struct Named {
        format: String,
    }
    let malformed =
        |error: serde_json::Error| EventsError::Malformed { line: 1, what: error.to_string() };
    let named: Named = serde_json::from_slice(line).map_err(malformed)?;
    if named.format != FORMAT {
        return Err(EventsError::Foreign { found: named.format.chars().take(60).collect() });
    }
    serde_json::from_slice(line).map_err(malformed)
}

fn sorted_out(found: Found) -> Option<Line> {
    let Found { place, at_ns: at, .. } = found;
    if let Some(run) = found.run {
        // A run never says so of itself.
        return (run != RunEvent::CutShort).then_some(Line::Run(RunLine { place, at, run }));
    }
    let event = match (found.observed, found.decided) {
        (Some(seen), None) => Event::Observed(seen),
        (None, Some(decision)) => Event::Decided(decision),
        _ => return None,
    };
    Some(Line::Delivery(DeliveryLine {
        delivery: found.delivery?,
        message: found.message?,
        attempt: found.attempt?,
        arrived: found.arrived_ns?,
        place,
        at,
        event,
    }))
}

fn take(deliveries: &mut BTreeMap<DeliveryId, (DeliveryLog, Vec<u32>)>, line: DeliveryLine) {
    let (log, places) = deliveries.entry(line.delivery).or_insert_with(|| {
        let log = DeliveryLog {
            id: line.delivery,
            message: line.message,
            attempt: line.attempt,
            arrived: line.arrived,
            entries: Vec::new(),
        };
        (log, Vec::new())
    });
    log.entries.push(Entry { at: line.at, event: line.event });
    places.push(line.place);
}

/// The log with its entries where they belong.
fn in_order(mut log: DeliveryLog, places: &[u32]) -> Result<DeliveryLog, EventsError> {
    if !places.is_sorted() {
        let mut placed: Vec<_> = places.iter().zip(log.entries).collect();
        placed.sort_by_key(|(place, _)| **place);
        log.entries = placed.into_iter().map(|(_, entry)| entry).collect();
    }
    let mut places = places.to_vec();
    places.sort_unstable();
    check_places(&format!("delivery {}", log.id.0), places.into_iter())?;
    Ok(log)
}

fn check_places(whose: &str, places: impl Iterator<Item = u32>) -> Result<(), EventsError> {
    for (expected, place) in places.enumerate() {
        let fault = match (place as usize).cmp(&expected) {
            std::cmp::Ordering::Equal => continue,
            std::cmp::Ordering::Less => (place as usize, "there twice"),
            std::cmp::Ordering::Greater => (expected, "missing"),
        };
        let (place, fault) = fault;
        return Err(EventsError::Broken { whose: whose.into(), place, fault });
    }
    Ok(())
}

fn last_moment(log: &EventLog) -> Moment {
    let deliveries = log.deliveries.iter().flat_map(|log| &log.entries).map(|entry| entry.at);
    deliveries.chain(log.run.iter().map(|entry| entry.at)).max().unwrap_or(Moment::START)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::StepId;
    use crate::report::sample::workload;

    fn head() -> Line {
        let workload = workload();
        let source = Source::new(&workload, "text", &["load.seed=9".into()]);
        let started = "2026-11-30T12:00:00Z".into();
        Line::Head(Box::new(Head::new(&workload, source, started, Control::Fifo, -5)))
    }

    fn entry(delivery: u32, place: u32, at: u64, event: Event) -> Line {
        Line::Delivery(DeliveryLine {
            delivery: DeliveryId(delivery),
            message: delivery,
            attempt: 1,
            arrived: Moment::START,
            place,
            at: Moment::from_nanos(at),
            event,
        })
    }

    fn observed(delivery: u32, place: u32, at: u64) -> Line {
        entry(
            delivery,
            place,
            at,
            Event::Observed(Observation::StepStarted { step: StepId(place) }),
        )
    }

    fn decided(delivery: u32, place: u32, at: u64) -> Line {
        entry(delivery, place, at, Event::Decided(Decision::FreeSlot))
    }

    fn run(place: u32, at: u64, run: RunEvent) -> Line {
        Line::Run(RunLine { place, at: Moment::from_nanos(at), run })
    }

    fn text(lines: &[Line]) -> Vec<u8> {
        let mut text = Vec::new();
        lines.iter().for_each(|line| line.append_to(&mut text));
        text
    }

    fn whole() -> Vec<Line> {
        vec![
            head(),
            observed(1, 0, 5),
            observed(2, 0, 6),
            decided(2, 1, 7),
            run(0, 8, RunEvent::LoadEnded),
            decided(1, 1, 9),
            run(1, 9, RunEvent::ObservationEnded),
        ]
    }

    fn refusal(bytes: &[u8]) -> String {
        parse(bytes).expect_err("it is refused").to_string()
    }

    #[test]
    fn what_was_written_is_read_back_in_any_mixture() {
        let lines = whole();
        let record = parse(&text(&lines)).unwrap();
        let Line::Head(written) = &lines[0] else { panic!("the head is first") };
        assert_eq!(record.head, **written);
        let entries: Vec<_> = record.log.deliveries.iter().map(|log| log.entries.len()).collect();
        assert_eq!((entries, record.log.run.len()), (vec![2, 2], 2));
        let mixed: Vec<_> = lines[..1].iter().chain(lines[1..].iter().rev()).cloned().collect();
        assert_eq!(parse(&text(&mixed)), Ok(record));
    }

    #[test]
    fn a_record_without_its_last_line_was_cut_short_at_its_last_entry() {
        let lines = whole();
        let record = parse(&text(&lines[..4])).unwrap();
        let cut = RunEntry { at: Moment::from_nanos(7), event: RunEvent::CutShort };
        assert_eq!(record.log.run, [cut]);
        assert_eq!(parse(&text(&lines[..1])).unwrap().end(), Moment::START);
    }

    #[test]
    fn what_is_torn_at_the_end_is_left_out() {
        let whole = whole();
        let (bytes, shorter) = (text(&whole[..4]), text(&whole[..3]));
        for end in shorter.len()..bytes.len() {
            assert_eq!(parse(&bytes[..end]), parse(&shorter), "{end}");
        }
        for end in 1..text(&whole[..1]).len() {
            assert_eq!(parse(&bytes[..end]), Err(EventsError::NoHead), "{end}");
        }
    }

    #[test]
    fn a_record_with_holes_is_refused() {
        let lines = whole();
        let without = |place: usize| {
            let mut left = lines.clone();
            left.remove(place);
            text(&left)
        };
        let cases = [
            (without(1), "place 0 of delivery 1 is missing"),
            (without(4), "place 0 of the run is missing"),
            (text(&[&lines[..4], &lines[3..4]].concat()), "place 1 of delivery 2 is there twice"),
            (text(&[head(), run(0, 5, RunEvent::CutShort)]), "line 2: it is no entry"),
            ([text(&lines[..1]), b"nonsense\n".to_vec()].concat(), "line 2: expected"),
            (
                b"{\"format\":\"deadline-run.events/2\"}\n".to_vec(),
                "format is `deadline-run.events/2`",
            ),
        ];
        for (bytes, expected) in cases {
            let message = refusal(&bytes);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_record_is_known_by_its_beginning() {
        assert!(is_record(&text(&whole())));
        assert!(is_record(b"{\"format\":\"deadline-run.events/9\""));
        assert!(!is_record(b"{\n  \"format\": \"deadline-run.report/1\""));
    }
}
