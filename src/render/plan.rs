//! The plan of a workload, as text for people and as JSON: what `check` shows.
//!
//! The text is free to change, its last line apart. The JSON, `deadline-run.plan/1`, holds the
//! instants and the findings; the steps stand in the file itself.

use std::time::Duration;

use serde::Serialize;

use super::table::{Table, Width};
use super::text::{Color, NARROWEST, Tone, WIDEST, paint, printable, wrap};
use crate::event::StepId;
use crate::foresight::{Finding, Foresight, Instants, ShutdownInstants};
use crate::report::words::{count, exact};
use crate::report::{Verdict, VerdictWord};
use crate::workload::{
    Address, AdmissionPolicy, BlockingOp, Connection, CpuAmount, CpuPlace, Destructor,
    DestructorWork, Load, OnSignal, Pool, Profile, ReadUntil, Span, Spread, Step, Wait, Work,
    Workload,
};

/// The name of the stored form.
const FORMAT: &str = "deadline-run.plan/1";
/// So many steps are listed at most.
const MOST_STEPS: usize = 200;

/// Everything but the last line.
pub fn body(workload: &Workload, foresight: &Foresight, width: u16, color: Color) -> String {
    let width = usize::from(width.clamp(NARROWEST, WIDEST));
    let mut page = Page { workload, width, color, out: String::new() };
    page.opening();
    page.instants(&foresight.instants);
    page.shutdown(&foresight.shutdown);
    page.steps();
    page.findings("Cannot be proven by construction", &foresight.unprovable);
    page.findings("Warnings", &foresight.warnings);
    page.out.push('\n');
    page.out
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

/// The plan as JSON text that ends with a newline.
pub fn json(workload: &Workload, foresight: &Foresight) -> String {
    let (instants, shutdown) = (&foresight.instants, &foresight.shutdown);
    let stored = Stored {
        format: FORMAT,
        workload: StoredWorkload {
            name: &workload.name,
            file: workload.file.display().to_string(),
            sha256: &workload.sha256,
        },
        instants: StoredInstants {
            normal_cutoff_us: micros(instants.normal_cutoff),
            window_us: micros(instants.window()),
            window_end_us: micros(instants.window_end),
            chain_end_us: micros(instants.chain_end),
            callbacks: instants.callbacks,
            callback_share_us: (instants.callbacks > 0).then(|| micros(instants.share)),
            disposal_us: micros(instants.disposal()),
            hard_cutoff_us: micros(instants.end),
            settled_us: instants.settled.map(micros),
            observe_us: micros(instants.observe),
            run_us: instants.run.map(micros),
        },
        shutdown: StoredShutdown {
            signal_us: micros(shutdown.signal),
            window_end_us: micros(shutdown.window_end),
            end_us: micros(shutdown.end),
            root_hard_us: micros(shutdown.hard_cutoff),
        },
        unprovable: &foresight.unprovable,
        warnings: &foresight.warnings,
    };
    let mut text = serde_json::to_string_pretty(&stored).expect("a plan has only string keys");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Stored<'a> {
    format: &'static str,
    workload: StoredWorkload<'a>,
    instants: StoredInstants,
    shutdown: StoredShutdown,
    unprovable: &'a [Finding],
    warnings: &'a [Finding],
}

#[derive(Serialize)]
struct StoredWorkload<'a> {
    name: &'a str,
    file: String,
    sha256: &'a str,
}

/// From the beginning of a shutdown, for a delivery that has time enough of its own.
#[derive(Serialize)]
struct StoredShutdown {
    signal_us: u64,
    window_end_us: u64,
    end_us: u64,
    root_hard_us: u64,
}

/// From the admission of a delivery, `run_us` from the start of the run.
#[derive(Serialize)]
struct StoredInstants {
    normal_cutoff_us: u64,
    window_us: u64,
    window_end_us: u64,
    chain_end_us: u64,
    callbacks: u32,
    callback_share_us: Option<u64>,
    disposal_us: u64,
    hard_cutoff_us: u64,
    settled_us: Option<u64>,
    observe_us: u64,
    run_us: Option<u64>,
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

struct Page<'a> {
    workload: &'a Workload,
    width: usize,
    color: Color,
    out: String,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn heading(&mut self, text: &str) {
        let heading = paint(text, Tone::Strong, self.color);
        self.out.push('\n');
        self.line(&heading);
    }

    /// Wraps `text`, with `first` in front of its first line and its other lines below that.
    fn paragraph(&mut self, indent: usize, first: &str, text: &str) {
        let hang = first.chars().count();
        for (place, line) in wrap(text, self.width - indent - hang).iter().enumerate() {
            let lead = if place == 0 { first } else { "" };
            self.line(&format!("{:indent$}{lead:hang$}{line}", ""));
        }
    }

    fn opening(&mut self) {
        let Workload { load, runtime, .. } = self.workload;
        let file = printable(&self.workload.file.display().to_string());
        let name = paint(&printable(&self.workload.name), Tone::Strong, self.color);
        self.line(&format!("{name} ({file}): the plan, nothing was run"));
        self.out.push('\n');
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
            self.paragraph(1, &format!("{name:<12}"), &text);
        }
    }

    fn instants(&mut self, instants: &Instants) {
        self.heading("A delivery that is not over by itself, from its admission");
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
        let mut table = Table::new(Width::Within(usize::from(WIDEST)));
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
        self.paragraph(1, "", &run);
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
        self.heading(&format!("A shutdown, from its beginning {begins}"));
        let closes = match plan.admission {
            AdmissionPolicy::Close => {
                "admission closes: who waits is released, who started goes on"
            }
            AdmissionPolicy::Keep => "deliveries go on arriving and starting",
        };
        let mut table = Table::new(Width::Within(usize::from(WIDEST)));
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
        self.heading("Steps");
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
        let mut table = Table::new(Width::Within(self.width - 1));
        table.header(["stage", "step", "does"]);
        for row in rows.into_iter().take(MOST_STEPS) {
            table.row(row);
        }
        self.table(table, &[]);
        if more > 0 {
            self.line(&format!("  and {}", count(more as u64, "step more", "steps more")));
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
        rows.push([stage.to_owned(), name, printable(&describe(step, self.workload))]);
        for child in step.work.children() {
            self.step_rows(*child, depth + 1, rows);
        }
    }

    fn table(&mut self, table: Table, numbers: &[usize]) {
        for line in table.lines(numbers.iter().copied()) {
            self.line(&line);
        }
    }

    fn findings(&mut self, title: &str, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        self.heading(&format!("{title}: {}", findings.len()));
        for finding in findings {
            let file = self.workload.file.display();
            let place = match finding.line {
                Some(line) => format!("{file}:{line}"),
                None => file.to_string(),
            };
            let expected = if finding.expected { " (expected)" } else { "" };
            let text =
                format!("{place}: {}: {}: {}{expected}", finding.about, finding.what, finding.why);
            self.paragraph(2, "", &printable(&text));
            self.paragraph(4, "help: ", &printable(&finding.mend));
        }
    }
}

/// A step's work and its policies, as in `blocking 1s 600ms, share 0.25`.
fn describe(step: &Step, workload: &Workload) -> String {
    let mut parts = vec![describe_work(&step.work, workload)];
    if let Some(timeout) = step.timeout {
        parts.push(format!("timeout {}", exact(timeout)));
    }
    if let Some(budget) = step.poll_budget {
        parts.push(count(budget, "poll granted", "polls granted"));
    }
    if let Some(fail) = &step.fail {
        let retryable = if fail.retryable { ", retryable" } else { "" };
        let first = fail.first.map_or(String::new(), |first| format!(", the first {first}"));
        parts.push(format!("fails with {}{}{first}{retryable}", fail.code, of_all(fail.share)));
    }
    if step.panic > 0.0 {
        parts.push(format!("panics{}", of_all(step.panic)));
    }
    if step.share < 1.0 {
        parts.push(format!("share {}", step.share));
    }
    if step.optional {
        parts.push(String::from("optional"));
    }
    if step.detach {
        parts.push(String::from("detached"));
    }
    if let Some(destructor) = &step.on_drop {
        parts.push(describe_destructor(destructor));
    }
    parts.join(", ")
}

fn of_all(share: f64) -> String {
    if share < 1.0 { format!(" (share {share})") } else { String::new() }
}

fn describe_work(work: &Work, workload: &Workload) -> String {
    match work {
        Work::Cpu { amount, yield_every, on } => {
            let place = match on {
                CpuPlace::Worker => "",
                CpuPlace::Thread => ", on a thread of its own",
            };
            let yields = match yield_every {
                Some(every) => format!(", yields every {}", exact(*every)),
                None if *on == CpuPlace::Worker => String::from(", never yields"),
                None => String::new(),
            };
            format!("cpu {}{yields}{place}", describe_amount(amount))
        }
        Work::Cooperative { duration, slice, on_signal, wind_down } => {
            let seen = match on_signal {
                OnSignal::Return => format!("returns {} after the signal", exact(*wind_down)),
                OnSignal::Fail { code } => {
                    format!("fails with {code} {} after the signal", exact(*wind_down))
                }
                OnSignal::Finish => String::from("finishes whatever the signal"),
                OnSignal::Ignore => String::from("ignores the signal"),
            };
            format!("cooperative {} by {}, {seen}", describe_span(duration), exact(*slice))
        }
        Work::Blocking { op, duration, looks_every, pool } => {
            let looks = match looks_every {
                Some(every) => format!(", looks every {}", exact(*every)),
                None => String::from(", never looks at the signal"),
            };
            let pool = match pool {
                Pool::Shared => "",
                Pool::Own => ", on a thread of its own",
            };
            format!("blocking {} {}{looks}{pool}", op_word(*op), describe_span(duration))
        }
        Work::Sleep { duration } => format!("io sleep {}", describe_span(duration)),
        Work::Tcp(tcp) => {
            let mut text = format!("io tcp to {}", describe_connection(&tcp.connection, workload));
            match tcp.read {
                Some(ReadUntil::First) => text.push_str(", reads the first bytes"),
                Some(ReadUntil::End) => text.push_str(", reads to the end"),
                None => {}
            }
            if let Some(hold) = tcp.hold {
                text.push_str(&format!(", holds it {}", exact(hold)));
            }
            text
        }
        Work::Http(http) => format!(
            "io http {} {} of {}",
            http.method,
            http.target,
            describe_connection(&http.connection, workload)
        ),
        Work::Read { path } => format!("io read {}", path.display()),
        Work::Write(write) => {
            let synced = if write.sync { ", synced" } else { "" };
            let kept = if write.keep { ", kept" } else { ", removed at the end" };
            format!("io write {} bytes to {}{synced}{kept}", write.size, write.path.display())
        }
        Work::Polls { count: polls } => format!("polls {polls}"),
        Work::Sequence { .. } => String::from("sequence"),
        Work::Parallel { wait: Wait::All, .. } => String::from("parallel, waits for all"),
        Work::Parallel { wait: Wait::First, .. } => String::from("parallel, waits for the first"),
        Work::Choice { weights, .. } => {
            let weights: Vec<String> = weights.iter().map(ToString::to_string).collect();
            format!("choice, weights {}", weights.join(" to "))
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

fn describe_connection(connection: &Connection, workload: &Workload) -> String {
    let mut text = match &connection.to {
        Address::Peer(place) => format!("peer {}", workload.peers[*place].name),
        Address::Host { host, port } => format!("{host} port {port}"),
    };
    let limits = [
        ("connects", connection.connect_timeout),
        ("is answered", connection.read_timeout),
        ("hears more", connection.idle_timeout),
    ];
    for (what, limit) in limits {
        if let Some(limit) = limit {
            text.push_str(&format!(", {what} within {}", exact(limit)));
        }
    }
    text
}

fn describe_destructor(destructor: &Destructor) -> String {
    let work = match &destructor.work {
        DestructorWork::Cpu(amount) => format!("cpu {}", describe_amount(amount)),
        DestructorWork::Blocking { op, duration } => {
            format!("blocking {} {}", op_word(*op), describe_span(duration))
        }
    };
    let panics = match destructor.panic > 0.0 {
        true => format!(" and panics{}", of_all(destructor.panic)),
        false => String::new(),
    };
    format!("destructor {work}{panics}")
}

fn describe_amount(amount: &CpuAmount) -> String {
    match amount {
        CpuAmount::Time(span) => describe_span(span),
        CpuAmount::Iterations(rounds) => count(*rounds, "round", "rounds"),
    }
}

fn describe_span(span: &Span) -> String {
    let cut = |max: &Option<Duration>| match max {
        Some(max) => format!(", {} at most", exact(*max)),
        None => String::new(),
    };
    match span {
        Span::Fixed(fixed) => exact(*fixed),
        Span::Uniform { min, max } => format!("{} to {}", exact(*min), exact(*max)),
        Span::Exponential { mean, max } => {
            format!("exponential, mean {}{}", exact(*mean), cut(max))
        }
        Span::LogNormal { p50, p99, max } => {
            format!("log-normal, p50 {}, p99 {}{}", exact(*p50), exact(*p99), cut(max))
        }
    }
}

fn op_word(op: BlockingOp) -> &'static str {
    match op {
        BlockingOp::Sleep => "sleep",
        BlockingOp::Spin => "spin",
        BlockingOp::Lock => "lock",
        BlockingOp::Fsync => "fsync",
        BlockingOp::Dns => "dns",
    }
}
