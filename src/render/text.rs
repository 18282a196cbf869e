//! The text report: the verdict, then the gaps by name, then the numbers.
//!
//! Made for people and free to change. The last line alone is fixed: a word, why, and the exit
//! status (SPEC section 5). Names from a workload are shown with their control characters escaped.

mod words;

use std::collections::HashMap;

use super::page::{Color, Page, Tone, paint, printable, wrap};
use super::records;
use super::table::{Table, Width};
use super::timeline;
use crate::obligation::ObligationState;
use crate::report::tracks::{self, Telling, Tracks};
use crate::report::words::{count, span, spoken, stored};
use crate::report::{
    Delivery, Gap, Listed, Report, Verdict, VerdictWord, complaint, ranked, subject,
};
use words::NO_VALUE;

/// So many groups of gaps, and so many deliveries, are shown at most.
const MOST_SHOWN: usize = 50;
/// So many deliveries are drawn at most with the full amount.
const MOST_DRAWN: usize = 10;
/// So many kinds of deliveries are drawn at most otherwise.
const MOST_DRAWN_BRIEFLY: usize = 3;
/// The records of so many deliveries are shown at most.
const MOST_RECORDED: usize = 3;

/// How to show a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The width of the page, in columns; kept between 60 and 160.
    pub width: u16,
    pub color: Color,
    pub amount: Amount,
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
    let page = Page::new(options.width, options.color);
    Text { report, amount: options.amount, page }.fill()
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

struct Text<'a> {
    report: &'a Report,
    amount: Amount,
    page: Page,
}

impl Text<'_> {
    fn fill(mut self) -> String {
        self.opening();
        self.gaps();
        self.two_answers();
        self.numbers();
        self.expectations();
        self.timelines();
        if self.amount == Amount::Full {
            self.steps();
            self.deliveries();
            self.records();
        }
        self.page.blank();
        self.page.out
    }

    fn opening(&mut self) {
        let report = self.report;
        let word = self.page.paint(&stored(report.verdict.word), tone(report.verdict.word));
        let name = self.page.paint(&printable(&report.workload.name), Tone::Strong);
        let line = format!(
            "{name} ({}): {word}, ending {}, {} in {}",
            printable(&report.workload.file),
            spoken(report.ending),
            count(report.totals.deliveries, "delivery", "deliveries"),
            span(report.elapsed_us),
        );
        self.page.line(&line);
        if let Some(at) = report.cut_short_us {
            let text = format!(
                "the run was cut short: its record ends {} after its start. What was open then is \
                 unproven, what came later is not known, and no expectation was judged.",
                span(at)
            );
            self.page.blank();
            self.page.paragraph(0, "", &text);
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
        self.page
            .heading(&format!("Not shown to have ended in time: {unproven} unproven, {late} late"));
        let groups = group(&report.gaps);
        for group in groups.iter().take(MOST_SHOWN) {
            self.gap(group);
        }
        if groups.len() > MOST_SHOWN {
            let more = groups.len() - MOST_SHOWN;
            self.page
                .line(&format!("  and {more} kinds of gaps more; the JSON report lists every one"));
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
        for (place, line) in wrap(&text, self.page.width() - 4).iter().enumerate() {
            let line = match line.split_once(' ') {
                Some((state, rest)) if place == 0 => {
                    format!("  {} {rest}", self.page.paint(state, Tone::Open))
                }
                _ => format!("    {line}"),
            };
            self.page.line(&line);
        }
        let who = words::describe(gap);
        if !who.is_empty() {
            self.page.paragraph(4, "", &who);
        }
        if let Some(advice) = &gap.advice {
            self.page.paragraph(4, "help: ", &printable(advice));
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
        self.page.blank();
        for line in table.lines([1, 4]) {
            self.page.line(&line);
        }
    }

    fn numbers(&mut self) {
        let report = self.report;
        let mut rows: Vec<(&str, String)> = Vec::new();
        if let Some(time) = words::delivery_time(report.delivery_time_us) {
            rows.push(("Delivery time", time));
        }
        rows.extend(words::arrivals(&report.load).map(|text| ("Arrivals", text)));
        rows.push((
            "Cutoffs",
            words::cutoffs(report.engine.control, report.engine.cutoff_lateness_us),
        ));
        if let Some(shutdown) = &report.shutdown {
            rows.push(("Shutdown", words::describe_shutdown(shutdown)));
        }
        if !report.codes.is_empty() {
            let codes: Vec<_> =
                report.codes.iter().map(|(code, amount)| (code.as_str(), *amount)).collect();
            rows.push(("Failures", words::most_frequent(codes)));
        }
        if report.totals.degraded > 0 {
            let degraded = count(report.totals.degraded, "delivery", "deliveries");
            rows.push(("Degraded", degraded));
        }
        if let Some(effects) = words::effects(report) {
            rows.push(("Effects", effects));
        }
        for peer in &report.peers {
            rows.push(("Peer", words::describe_peer(peer)));
        }
        for failure in &report.cleanup_failures {
            let deliveries = count(failure.deliveries, "delivery", "deliveries");
            rows.push(("Cleanup", format!("{} in {deliveries}", failure.name())));
        }
        for step in report.steps.iter().filter(|step| step.detached) {
            if let Some(failures) = words::detached_failures(step, &report.workload.file) {
                rows.push(("Detached", failures));
            }
        }
        self.page.blank();
        for (name, text) in rows {
            self.page.paragraph(1, &format!("{name:<15}"), &printable(&text));
        }
    }

    fn expectations(&mut self) {
        let rows = &self.report.expectations;
        if rows.is_empty() {
            return;
        }
        let holding = rows.iter().filter(|row| row.holds).count();
        self.page.heading(&format!("Expectations: {holding} of {} hold", rows.len()));
        for row in rows {
            let mark = match row.holds {
                true => self.page.paint("holds ", Tone::Faint),
                false => self.page.paint("broken", Tone::Bad),
            };
            let line = format!(
                "  {mark} {}: expected {}, found {}",
                printable(&row.what),
                printable(&row.expected),
                printable(&row.found)
            );
            self.page.line(&line);
        }
    }

    /// The deliveries worth drawing: of each kind one, or more of all with the full amount.
    fn timelines(&mut self) {
        let report = self.report;
        let Telling { examples, others } = tracks::telling(report);
        let telling = examples.len() + others.len();
        let drawn: Vec<&Delivery> = match self.amount {
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
            let lines = timeline::draw(&tracks, self.page.width());
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
            self.page.heading(&format!("Timeline of {deliveries}: {}", drawing.title));
            for line in &drawing.lines {
                self.page.line(line);
            }
            lines.extend(drawing.lines);
        }
        self.page.blank();
        for line in timeline::legend(&lines, self.page.width()) {
            self.page.line(&line);
        }
        let told = drawn.iter().filter(|delivery| delivery.has_something_to_say()).count();
        if telling > told {
            let more = telling - told;
            let how = match self.amount {
                Amount::Brief => "; -v draws more of them",
                Amount::Full => "",
            };
            self.page.line(&format!("  and {more} more with something to say{how}"));
        }
    }

    fn steps(&mut self) {
        let report = self.report;
        if report.steps.is_empty() {
            return;
        }
        self.page.heading("Steps");
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
                words::progress(&step.progress),
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
        self.page.heading(match report.deliveries_listed {
            Listed::All => "Deliveries",
            Listed::Problems | Listed::None => "Deliveries with something to say",
        });
        let mut rows = vec![
            ["id", "result", "termination", "cleanup", "reached", "signal", "time"]
                .map(String::from),
        ];
        rows.extend(telling_first(&report.deliveries).take(MOST_SHOWN).map(words::delivery_row));
        self.rows(&rows, usize::MAX);
        if report.deliveries.len() > MOST_SHOWN {
            let more = report.deliveries.len() - MOST_SHOWN;
            self.page.line(&format!("  and {more} more; the JSON report lists them"));
        }
    }

    fn records(&mut self) {
        for delivery in telling_first(&self.report.deliveries).take(MOST_RECORDED) {
            let lines = records::lines(delivery);
            if !lines.is_empty() {
                self.page.heading(&format!("Records of delivery {}, in order", delivery.id));
            }
            for line in lines {
                self.page.line(&line);
            }
        }
    }

    /// A table of a header and rows, without the columns that have nothing to say; those from
    /// `numbers` on are right-aligned.
    fn rows<const COLUMNS: usize>(&mut self, rows: &[[String; COLUMNS]], numbers: usize) {
        let told: Vec<usize> = (0..COLUMNS)
            .filter(|column| rows[1..].iter().any(|row| row[*column] != NO_VALUE))
            .collect();
        let mut table = Table::new(Width::Within(self.page.width() - 1));
        for (place, row) in rows.iter().enumerate() {
            let cells = told.iter().map(|column| row[*column].as_str());
            match place {
                0 => table.header(cells),
                _ => table.row(cells),
            };
        }
        // A short name is never broken: it is what the reader looks for.
        let widest = rows.iter().map(|row| row[0].chars().count()).max().unwrap_or(0);
        if told.first() == Some(&0) && widest <= self.page.width() / 3 {
            table.keep_whole(0);
        }
        let is_number = |(_, column): &(usize, &usize)| **column >= numbers;
        let numbers = told.iter().enumerate().filter(is_number).map(|(place, _)| place);
        for line in table.lines(numbers) {
            self.page.line(&line);
        }
    }
}

/// Those with something to say, then the others.
fn telling_first(deliveries: &[Delivery]) -> impl Iterator<Item = &Delivery> {
    let (telling, plain): (Vec<_>, Vec<_>) =
        deliveries.iter().partition(|delivery| delivery.has_something_to_say());
    telling.into_iter().chain(plain)
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
