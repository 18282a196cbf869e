//! The plan of a workload as text for people: what `check` shows.
//!
//! Free to change, its last line apart. [`json`] is the stored form.

pub mod json;
mod steps;

use std::time::Duration;

use super::page::{Color, Page, Tone, printable};
use super::table::{Table, Width};
use crate::event::StepId;
use crate::foresight::{Finding, Foresight, Instants, ShutdownInstants};
use crate::report::words::{count, exact};
use crate::report::{Verdict, VerdictWord};
use crate::workload::{AdmissionPolicy, Load, Profile, Spread, Workload};

/// So many steps are listed at most.
const MOST_STEPS: usize = 200;

/// Everything but the last line.
pub fn body(workload: &Workload, foresight: &Foresight, width: u16, color: Color) -> String {
    let mut text = Text { workload, page: Page::new(width, color) };
    text.opening();
    text.instants(&foresight.instants);
    text.shutdown(&foresight.shutdown);
    text.steps();
    text.findings("Cannot be proven by construction", &foresight.unprovable);
    text.findings("Warnings", &foresight.warnings);
    text.page.blank();
    text.page.out
}

/// What the last line says.
pub fn verdict(workload: &Workload, foresight: &Foresight) -> Verdict {
    let expected = foresight.unprovable.iter().filter(|finding| finding.expected).count();
    let unprovable = match (foresight.unprovable.len(), expected) {
        (0, _) => String::from("nothing that cannot be proven by construction"),
        (all, 0) => format!("{all} that cannot be proven by construction"),
        (all, expected) => {
            format!("{all} that cannot be proven by construction, {expected} of it expected")
        }
    };
    let warnings = count(foresight.warnings.len() as u64, "warning", "warnings");
    let why = format!("{} is valid; {unprovable}; {warnings}", workload.name);
    Verdict { word: VerdictWord::Ok, why }
}

struct Text<'a> {
    workload: &'a Workload,
    page: Page,
}

impl Text<'_> {
    fn opening(&mut self) {
        let Workload { load, runtime, .. } = self.workload;
        let file = printable(&self.workload.file.display().to_string());
        let name = self.page.paint(&printable(&self.workload.name), Tone::Strong);
        self.page.line(&format!("{name} ({file}): the plan, nothing was run"));
        self.page.blank();
        let profile = match self.workload.profile {
            Profile::Queue => "queue",
            Profile::Custom => "custom",
        };
        let settlement = match &self.workload.settlement {
            None => String::from("with nobody"),
            Some(policy) => {
                let confirms = match policy.confirm_in {
                    Some(span) => format!("confirms in {}", exact(span)),
                    None => String::from("never confirms"),
                };
                let redeliveries = count(policy.redeliveries.into(), "redelivery", "redeliveries");
                format!("memory broker, {confirms}; {redeliveries}")
            }
        };
        for (name, text) in [
            ("Profile", profile.to_owned()),
            (
                "Load",
                format!("{}, {} at a time, seed {}", messages(load), load.concurrency, load.seed),
            ),
            (
                "Runtime",
                format!(
                    "{}, {}",
                    count(runtime.workers as u64, "worker", "workers"),
                    count(runtime.blocking_threads as u64, "blocking thread", "blocking threads")
                ),
            ),
            ("Settlement", settlement),
        ] {
            self.page.paragraph(1, &format!("{name:<12}"), &text);
        }
    }

    fn instants(&mut self, instants: &Instants) {
        self.page.heading("A delivery that is not over by itself, from its admission");
        let callbacks = match instants.callbacks {
            0 => String::new(),
            1 => format!("the callback is over; it has {}", exact(instants.share)),
            callbacks => format!(
                "the {callbacks} callbacks are over; each has {} at least when all run",
                exact(instants.share)
            ),
        };
        let disposal = match self.workload.dispose {
            None => String::new(),
            Some(_) => format!("; disposal had {}", exact(instants.disposal())),
        };
        let mut rows = vec![
            (instants.normal_cutoff, String::from("P: the signal asks it to end")),
            (
                instants.window_end,
                format!("the window of {} ends: what still runs is cut", exact(instants.window())),
            ),
            (instants.chain_end, callbacks),
            (instants.end, format!("E = H: the outcome freezes{disposal}")),
        ];
        rows.retain(|(_, text)| !text.is_empty());
        if let Some(settled) = instants.settled {
            rows.push((settled, String::from("the settlement expires, at the latest")));
        }
        let last = instants.settled.unwrap_or(instants.end).saturating_add(instants.observe);
        rows.push((
            last,
            format!("late receipts are no longer looked for, after {}", exact(instants.observe)),
        ));
        let mut table = Table::new(Width::Within(Page::widest()));
        for (at, text) in rows {
            table.row([exact(at), text]);
        }
        self.table(table, &[0]);
        let run = match instants.run {
            Some(run) => {
                format!("The whole run is over {} after its start, at the latest.", exact(run))
            }
            None => String::from("How many messages arrive, and when, only the draws know."),
        };
        self.page.paragraph(1, "", &run);
    }

    /// Told of a file that speaks of it: one that anybody stops has the same instants.
    fn shutdown(&mut self, instants: &ShutdownInstants) {
        if !self.workload.lines.keys().any(|key| key.starts_with("shutdown.")) {
            return;
        }
        let plan = &self.workload.shutdown;
        let at = plan.at.map(|at| format!("at {}", exact(at)));
        let after = plan
            .after_deliveries
            .map(|after| format!("after {}", count(after.into(), "delivery", "deliveries")));
        let begins: Vec<String> = at.into_iter().chain(after).collect();
        let begins = match begins.is_empty() {
            true => String::from("on a signal"),
            false => format!("{}, or on a signal", begins.join(" or ")),
        };
        self.page.heading(&format!("A shutdown, from its beginning {begins}"));
        let closes = match plan.admission {
            AdmissionPolicy::Close => {
                "admission closes: who waits is released, who started goes on"
            }
            AdmissionPolicy::Keep => "deliveries go on arriving and starting",
        };
        let mut table = Table::new(Width::Within(Page::widest()));
        table.row([exact(Duration::ZERO), closes.to_owned()]);
        for (at, text) in [
            (instants.signal, "who is still at work gets the signal"),
            (instants.window_end, "the window ends: what still runs is cut"),
            (instants.end, "E: the outcome freezes"),
            (instants.hard_cutoff, "the root ends, settlements included"),
        ] {
            table.row([exact(at), text.to_owned()]);
        }
        self.table(table, &[0]);
    }

    fn steps(&mut self) {
        self.page.heading("Steps");
        let workload = self.workload;
        let before = workload.middleware.iter().filter_map(|one| one.before);
        let after = workload.middleware.iter().rev().filter_map(|one| one.after);
        let terminate = workload.middleware.iter().rev().filter_map(|one| one.terminate);
        let stages = [&workload.guard, &workload.resolve, &workload.extract, &workload.handler];
        let top = before
            .chain(stages.into_iter().flatten().copied())
            .chain(after)
            .chain(terminate)
            .chain(workload.dispose);
        let mut rows = Vec::new();
        for id in top {
            self.step_rows(id, 0, &mut rows);
        }
        let more = rows.len().saturating_sub(MOST_STEPS);
        let mut table = Table::new(Width::Within(self.page.width() - 1));
        table.header(["stage", "step", "does"]);
        for row in rows.into_iter().take(MOST_STEPS) {
            table.row(row);
        }
        self.table(table, &[]);
        if more > 0 {
            self.page.line(&format!("  and {}", count(more as u64, "step more", "steps more")));
        }
    }

    fn step_rows(&self, id: StepId, depth: usize, rows: &mut Vec<[String; 3]>) {
        let step = self.workload.step(id);
        let stage = if depth == 0 { step.stage.word() } else { "" };
        let branch = match depth {
            0 => String::new(),
            depth => format!("{}\u{2514} ", "\u{b7} ".repeat(depth - 1)),
        };
        let line = if step.line > 0 { format!(":{}", step.line) } else { String::new() };
        let name = format!("{branch}{}{line}", printable(&step.name));
        rows.push([stage.to_owned(), name, printable(&steps::describe(step, self.workload))]);
        for child in step.work.children() {
            self.step_rows(*child, depth + 1, rows);
        }
    }

    fn table(&mut self, table: Table, numbers: &[usize]) {
        for line in table.lines(numbers.iter().copied()) {
            self.page.line(&line);
        }
    }

    fn findings(&mut self, title: &str, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.page.heading(&format!("{title}: {}", findings.len()));
        for finding in findings {
            let file = self.workload.file.display();
            let place = match finding.line {
                Some(line) => format!("{file}:{line}"),
                None => file.to_string(),
            };
            let expected = if finding.expected { " (expected)" } else { "" };
            let text =
                format!("{place}: {}: {}: {}{expected}", finding.about, finding.what, finding.why);
            self.page.paragraph(2, "", &printable(&text));
            self.page.paragraph(4, "help: ", &printable(&finding.mend));
        }
    }
}

/// `20 deliveries at 20/s`
fn messages(load: &Load) -> String {
    let all = count(load.deliveries.into(), "delivery", "deliveries");
    let Some(pace) = &load.pace else { return all };
    let per = if pace.rate.per == Duration::from_secs(1) { "s" } else { "m" };
    let drawn = match pace.spread {
        Spread::Even => "",
        Spread::Poisson => ", drawn",
    };
    let (amount, rate) = (all, pace.rate.amount);
    match (pace.during, pace.spread) {
        (Some(during), Spread::Poisson) => {
            format!("about {amount} at {rate}/{per} for {}{drawn}", exact(during))
        }
        (Some(during), Spread::Even) => format!("{amount} at {rate}/{per} for {}", exact(during)),
        (None, _) => format!("{amount} at {rate}/{per}{drawn}"),
    }
}
