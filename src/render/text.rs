//! The text report: the verdict, then the gaps by name, then the numbers.
//!
//! Made for people and free to change. The last line alone is fixed: a word, why, and the exit
//! status (SPEC section 5). Names from a workload are shown with their control characters escaped.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use super::records;
use super::table::{Table, Width};
use super::timeline;
use crate::event::Effect;
use crate::obligation::ObligationState;
use crate::report::tracks::{self, Telling, Tracks};
use crate::report::words::{count, span, spoken, stored};
use crate::report::{
    Cleanup, Control, Delivery, DeliveryResult, Gap, Lateness, Listed, LoadShown, PeerRow,
    Percentiles, Progress, Report, Shutdown, StepTotals, Verdict, VerdictWord, Who, complaint,
    ranked, subject,
};

/// So many groups of gaps, and so many deliveries, are shown at most.
const MOST_SHOWN: usize = 50;
/// So many deliveries are drawn at most with the full amount.
const MOST_DRAWN: usize = 10;
/// So many kinds of deliveries are drawn at most otherwise.
const MOST_DRAWN_BRIEFLY: usize = 3;
/// The records of so many deliveries are shown at most.
const MOST_RECORDED: usize = 3;
/// Narrower than this a table is one letter a line.
pub(super) const NARROWEST: u16 = 60;
/// Wider than this a line is hard to follow.
pub(super) const WIDEST: u16 = 160;

/// What a table says where there is nothing to say.
const NO_VALUE: &str = "-";

/// How to show a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width of the page, in columns; kept between 60 and 160.
    pub width: u16,
    pub color: Color,
    pub amount: Amount,
}

/// Whether the text carries colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Plain,
    Ansi,
}

/// How much to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Brief,
    /// With the tables of steps and deliveries, and more timelines.
    Full,
}

/// Everything but the last line.
pub fn body(report: &Report, options: Options) -> String {
    let page = Page { report, options, out: String::new() };
    page.fill()
}

/// The last line, with its newline.
pub fn last_line(verdict: &Verdict, exit_status: u8, color: Color) -> String {
    let word = stored(verdict.word);
    let word = paint(&word, tone(verdict.word), color);
    format!("{word}: {} \u{b7} exit {exit_status}\n", printable(&verdict.why))
}

/// The whole report.
pub fn render(report: &Report, options: Options) -> String {
    body(report, options) + &last_line(&report.verdict, report.exit_status, options.color)
}

/// The text with whatever could move a cursor, or reorder a line, spelled out instead.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        let reorders = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if letter.is_control() || reorders {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Open,
    Faint,
    Strong,
}

fn tone(word: VerdictWord) -> Tone {
    match word {
        VerdictWord::Ok => Tone::Good,
        VerdictWord::Unproven | VerdictWord::Untested => Tone::Open,
        VerdictWord::Failed
        | VerdictWord::Regressed
        | VerdictWord::Invalid
        | VerdictWord::Error => Tone::Bad,
    }
}

pub(super) fn paint(text: &str, tone: Tone, color: Color) -> String {
    let code = match tone {
        Tone::Good => "1;32",
        Tone::Bad => "1;31",
        Tone::Open => "1;33",
        Tone::Faint => "2",
        Tone::Strong => "1",
    };
    match color {
        Color::Plain => text.into(),
        Color::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
    }
}

/// Gaps that differ only in their delivery and their numbers.
struct Group<'a> {
    amount: u64,
    /// The longest late of them, else the first.
    example: &'a Gap,
}

/// A timeline, and the deliveries that all look like that.
struct Drawing {
    deliveries: Vec<String>,
    title: String,
    lines: Vec<String>,
}

struct Page<'a> {
    report: &'a Report,
    options: Options,
    out: String,
}

impl Page<'_> {
    fn fill(mut self) -> String {
        self.opening();
        self.gaps();
        self.two_answers();
        self.numbers();
        self.expectations();
        self.timelines();
        if self.options.amount == Amount::Full {
            self.steps();
            self.deliveries();
            self.records();
        }
        self.out.push('\n');
        self.out
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn paint(&self, text: &str, tone: Tone) -> String {
        paint(text, tone, self.options.color)
    }

    fn width(&self) -> usize {
        usize::from(self.options.width.clamp(NARROWEST, WIDEST))
    }

    fn heading(&mut self, text: &str) {
        let heading = self.paint(text, Tone::Strong);
        self.out.push('\n');
        self.line(&heading);
    }

    /// Wraps `text`, with `first` in front of its first line and its other lines below that.
    fn paragraph(&mut self, indent: usize, first: &str, text: &str) {
        let hang = first.chars().count();
        let lines = wrap(text, self.width().saturating_sub(indent + hang));
        for (place, line) in lines.iter().enumerate() {
            let lead = if place == 0 { first } else { "" };
            self.line(&format!("{:indent$}{lead:hang$}{line}", ""));
        }
    }

    fn opening(&mut self) {
        let report = self.report;
        let word = self.paint(&stored(report.verdict.word), tone(report.verdict.word));
        let name = self.paint(&printable(&report.workload.name), Tone::Strong);
        let line = format!(
            "{name} ({}): {word}, ending {}, {} in {}",
            printable(&report.workload.file),
            spoken(report.ending),
            count(report.totals.deliveries, "delivery", "deliveries"),
            span(report.elapsed_us),
        );
        self.line(&line);
        if let Some(at) = report.cut_short_us {
            let text = format!(
                "the run was cut short: its record ends {} after its start. What was open then is \
                 unproven, what came later is not known, and no expectation was judged.",
                span(at)
            );
            self.out.push('\n');
            self.paragraph(0, "", &text);
        }
    }

    fn gaps(&mut self) {
        let report = self.report;
        if report.gaps.is_empty() {
            return;
        }
        let unproven =
            report.gaps.iter().filter(|gap| gap.state == ObligationState::Unproven).count();
        let late = report.gaps.len() - unproven;
        self.heading(&format!("Not shown to have ended in time: {unproven} unproven, {late} late"));
        let groups = group(&report.gaps);
        for group in groups.iter().take(MOST_SHOWN) {
            self.gap(group);
        }
        if groups.len() > MOST_SHOWN {
            let more = groups.len() - MOST_SHOWN;
            self.line(&format!("  and {more} kinds of gaps more; the JSON report lists every one"));
        }
    }

    fn gap(&mut self, group: &Group<'_>) {
        let gap = group.example;
        let subject = printable(&subject(gap, &self.report.workload.file));
        let complaint = match (group.amount, gap.late_by_us) {
            (1, _) => complaint(gap),
            (times, Some(_)) => format!("{times} times; the latest {}", complaint(gap)),
            (times, None) => format!("{times} times {}", complaint(gap)),
        };
        let expected = if gap.expected { " (expected)" } else { "" };
        let text = format!("{} {subject}: {complaint}{expected}", stored(gap.state));
        for (place, line) in wrap(&text, self.width() - 4).iter().enumerate() {
            let line = match line.split_once(' ') {
                Some((state, rest)) if place == 0 => {
                    format!("  {} {rest}", self.paint(state, Tone::Open))
                }
                _ => format!("    {line}"),
            };
            self.line(&line);
        }
        let who = describe(gap);
        if !who.is_empty() {
            self.paragraph(4, "", &who);
        }
        if let Some(advice) = &gap.advice {
            self.paragraph(4, "help: ", &printable(advice));
        }
    }

    fn two_answers(&mut self) {
        let totals = &self.report.totals;
        let results = [
            ("success", totals.success),
            ("failure", totals.failure),
            ("panic", totals.panic),
            ("interrupted", totals.interrupted),
            ("not started", totals.not_started),
        ];
        let terminations = [
            ("proven", totals.proven),
            ("late", totals.late),
            ("unproven", totals.unproven),
            ("nothing started", totals.nothing_started),
        ];
        let mut table = Table::new(Width::Natural);
        table.header(["Did it complete?", "", "", "Has it ended?", ""]);
        for row in 0..results.len() {
            let cell = |answers: &[(&'static str, u64)]| match answers.get(row) {
                Some((word, amount)) => ((*word).to_owned(), amount.to_string()),
                None => (String::new(), String::new()),
            };
            let (result, results) = cell(&results);
            let (termination, terminations) = cell(&terminations);
            // A success that needed the signal is one no more when the window is shorter.
            let between = match (row, totals.success_after_signal) {
                (0, after @ 1..) => format!("({after} after the signal)     "),
                _ => "     ".into(),
            };
            table.row([result, results, between, termination, terminations]);
        }
        self.out.push('\n');
        for line in table.lines([1, 4]) {
            self.line(&line);
        }
    }

    fn numbers(&mut self) {
        let report = self.report;
        let mut rows: Vec<(&str, String)> = Vec::new();
        if let Some(time) = delivery_time(report.delivery_time_us) {
            rows.push(("Delivery time", time));
        }
        rows.extend(arrivals(&report.load).map(|text| ("Arrivals", text)));
        rows.push(("Cutoffs", cutoffs(report.engine.control, report.engine.cutoff_lateness_us)));
        if let Some(shutdown) = &report.shutdown {
            rows.push(("Shutdown", describe_shutdown(shutdown)));
        }
        if !report.codes.is_empty() {
            let codes: Vec<_> =
                report.codes.iter().map(|(code, amount)| (code.as_str(), *amount)).collect();
            rows.push(("Failures", most_frequent(codes)));
        }
        if report.totals.degraded > 0 {
            let degraded = count(report.totals.degraded, "delivery", "deliveries");
            rows.push(("Degraded", degraded));
        }
        if let Some(effects) = effects(report) {
            rows.push(("Effects", effects));
        }
        for peer in &report.peers {
            rows.push(("Peer", describe_peer(peer)));
        }
        for failure in &report.cleanup_failures {
            let deliveries = count(failure.deliveries, "delivery", "deliveries");
            rows.push(("Cleanup", format!("{} in {deliveries}", failure.name())));
        }
        for step in report.steps.iter().filter(|step| step.detached) {
            if let Some(failures) = detached_failures(step, &report.workload.file) {
                rows.push(("Detached", failures));
            }
        }
        self.out.push('\n');
        for (name, text) in rows {
            self.paragraph(1, &format!("{name:<15}"), &printable(&text));
        }
    }

    fn expectations(&mut self) {
        let rows = &self.report.expectations;
        if rows.is_empty() {
            return;
        }
        let holding = rows.iter().filter(|row| row.holds).count();
        self.heading(&format!("Expectations: {holding} of {} hold", rows.len()));
        for row in rows {
            let mark = match row.holds {
                true => self.paint("holds ", Tone::Faint),
                false => self.paint("broken", Tone::Bad),
            };
            let line = format!(
                "  {mark} {}: expected {}, found {}",
                printable(&row.what),
                printable(&row.expected),
                printable(&row.found)
            );
            self.line(&line);
        }
    }

    /// The deliveries worth drawing: of each kind one, or more of all with the full amount.
    fn timelines(&mut self) {
        let report = self.report;
        let Telling { examples, others } = tracks::telling(report);
        let telling = examples.len() + others.len();
        let drawn: Vec<&Delivery> = match self.options.amount {
            Amount::Brief => examples.into_iter().take(MOST_DRAWN_BRIEFLY).collect(),
            Amount::Full => {
                let plain = report.deliveries.iter().filter(|it| !it.has_something_to_say());
                // All if there are few; else one to compare the others with.
                let plain =
                    plain.take(if report.deliveries.len() > MOST_DRAWN { 1 } else { MOST_DRAWN });
                let telling = examples.into_iter().chain(others);
                telling.take(MOST_DRAWN).chain(plain).collect()
            }
        };
        if drawn.is_empty() {
            return;
        }
        // Each drawing once, with all whose it is.
        let mut drawings: Vec<Drawing> = Vec::new();
        for delivery in &drawn {
            let Some(tracks) = Tracks::of(report, delivery) else { continue };
            let signal = match delivery.signal {
                Some(signal) => format!(" after {}", spoken(signal.reason)),
                None => String::new(),
            };
            let (result, termination) = (spoken(delivery.result), spoken(delivery.termination));
            let title = format!("{result}{signal}, {termination}");
            let lines = timeline::draw(&tracks, self.width());
            match drawings.iter_mut().find(|it| (&it.title, &it.lines) == (&title, &lines)) {
                Some(equal) => equal.deliveries.push(delivery.id.to_string()),
                None => {
                    drawings.push(Drawing {
                        deliveries: vec![delivery.id.to_string()],
                        title,
                        lines,
                    });
                }
            }
        }
        let mut lines = Vec::new();
        for drawing in drawings {
            let deliveries = match drawing.deliveries.as_slice() {
                [only] => format!("delivery {only}"),
                several => format!("deliveries {}", several.join(", ")),
            };
            self.heading(&format!("Timeline of {deliveries}: {}", drawing.title));
            for line in &drawing.lines {
                self.line(line);
            }
            lines.extend(drawing.lines);
        }
        self.out.push('\n');
        for line in timeline::legend(&lines, self.width()) {
            self.line(&line);
        }
        let told = drawn.iter().filter(|delivery| delivery.has_something_to_say()).count();
        if telling > told {
            let more = telling - told;
            let how = match self.options.amount {
                Amount::Brief => "; -v draws more of them",
                Amount::Full => "",
            };
            self.line(&format!("  and {more} more with something to say{how}"));
        }
    }

    fn steps(&mut self) {
        let report = self.report;
        if report.steps.is_empty() {
            return;
        }
        self.heading("Steps");
        let header = [
            "step", "kind", "progress", "success", "failure", "panic", "dropped", "skipped",
            "running",
        ];
        let mut rows = vec![header.map(String::from)];
        rows.extend(report.steps.iter().map(|step| {
            let kind = match step.detached {
                true => format!("{}, detached", step.kind),
                false => step.kind.clone(),
            };
            let amount = |amount: u64| match amount {
                0 => String::from(NO_VALUE),
                amount => amount.to_string(),
            };
            [
                format!("{}:{}", printable(&step.name), step.line),
                kind,
                progress(&step.progress),
                amount(step.success),
                amount(step.failure),
                amount(step.panic),
                amount(step.dropped),
                amount(step.skipped),
                amount(step.running),
            ]
        }));
        self.rows(&rows, 3);
    }

    fn deliveries(&mut self) {
        let report = self.report;
        if report.deliveries.is_empty() {
            return;
        }
        self.heading(match report.deliveries_listed {
            Listed::All => "Deliveries",
            Listed::Problems | Listed::None => "Deliveries with something to say",
        });
        let mut rows = vec![
            ["id", "result", "termination", "cleanup", "reached", "signal", "time"]
                .map(String::from),
        ];
        rows.extend(telling_first(&report.deliveries).take(MOST_SHOWN).map(delivery_row));
        self.rows(&rows, usize::MAX);
        if report.deliveries.len() > MOST_SHOWN {
            let more = report.deliveries.len() - MOST_SHOWN;
            self.line(&format!("  and {more} more; the JSON report lists them"));
        }
    }

    fn records(&mut self) {
        for delivery in telling_first(&self.report.deliveries).take(MOST_RECORDED) {
            let lines = records::lines(delivery);
            if !lines.is_empty() {
                self.heading(&format!("Records of delivery {}, in order", delivery.id));
            }
            for line in lines {
                self.line(&line);
            }
        }
    }

    /// A table of a header and rows, without the columns that have nothing to say; those from
    /// `numbers` on are right-aligned.
    fn rows<const COLUMNS: usize>(&mut self, rows: &[[String; COLUMNS]], numbers: usize) {
        let told: Vec<usize> = (0..COLUMNS)
            .filter(|column| rows[1..].iter().any(|row| row[*column] != NO_VALUE))
            .collect();
        let mut table = Table::new(Width::Within(self.width() - 1));
        for (place, row) in rows.iter().enumerate() {
            let cells = told.iter().map(|column| row[*column].as_str());
            match place {
                0 => table.header(cells),
                _ => table.row(cells),
            };
        }
        // A short name is never broken: it is what the reader looks for.
        let widest = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
        if told.first() == Some(&0) && widest <= self.width() / 3 {
            table.keep_whole(0);
        }
        let is_number = |(_, column): &(usize, &usize)| **column >= numbers;
        let numbers = told.iter().enumerate().filter(is_number).map(|(place, _)| place);
        for line in table.lines(numbers) {
            self.line(&line);
        }
    }
}

/// Those with something to say, then the others.
fn telling_first(deliveries: &[Delivery]) -> impl Iterator<Item = &Delivery> {
    let (telling, plain): (Vec<_>, Vec<_>) =
        deliveries.iter().partition(|delivery| delivery.has_something_to_say());
    telling.into_iter().chain(plain)
}

/// `when polled`, or with amounts where executions differ: `when polled 3, never 1`
fn progress(progress: &BTreeMap<Progress, u64>) -> String {
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

/// Equal gaps together, in the order in which a reader needs them.
fn group(gaps: &[Gap]) -> Vec<Group<'_>> {
    let mut places = HashMap::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for gap in ranked(gaps) {
        let key = (&gap.service, &gap.step, gap.kind, gap.state, gap.expected);
        let place = *places.entry(key).or_insert(groups.len());
        match groups.get_mut(place) {
            None => groups.push(Group { amount: 1, example: gap }),
            Some(group) => {
                group.amount += 1;
                if gap.late_by_us > group.example.late_by_us {
                    group.example = gap;
                }
            }
        }
    }
    groups
}

/// Which delivery, and who was seen to hold it.
fn describe(gap: &Gap) -> String {
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
fn describe_thread(who: &Who) -> Option<String> {
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

fn delivery_time(time: Percentiles) -> Option<String> {
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
fn arrivals(load: &LoadShown) -> Option<String> {
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

fn cutoffs(control: Control, lateness: Lateness) -> String {
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

fn describe_shutdown(shutdown: &Shutdown) -> String {
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
fn effects(report: &Report) -> Option<String> {
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

fn describe_peer(peer: &PeerRow) -> String {
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

fn detached_failures(step: &StepTotals, file: &str) -> Option<String> {
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
fn most_frequent(mut codes: Vec<(&str, u64)>) -> String {
    codes.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
    let named: Vec<String> =
        codes.iter().map(|(code, amount)| format!("{code} {amount}")).take(10).collect();
    let more = match codes.len().saturating_sub(10) {
        0 => String::new(),
        more => format!(", and {more} codes more"),
    };
    named.join(", ") + &more
}

fn delivery_row(delivery: &Delivery) -> [String; 7] {
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

/// Breaks `text` at spaces into lines of at most `room` letters; a longer word has its own line.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
