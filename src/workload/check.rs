//! Builds a [`Workload`] from a tree, and refuses what its keys say together and cannot mean.
//!
//! Every fault is collected before the answer is given, and each points to the text that causes
//! it. What a single key may be is the business of `keys` and is not repeated here.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, hash_map};
use std::fmt::{self, Display};
use std::path::Path;
use std::time::Duration;

use crate::duration::show;
use crate::event::{Code, StepId};
use crate::obligation::{Obligation, ObligationState};
use crate::timeline::Budget;
use crate::workload::fault::{Fault, nearest};
use crate::workload::tree::{Bytes, Entry, Place, cut, mark, quote};
use crate::workload::walk::{Given, Item, Value, Walk};
use crate::workload::{
    Address, BlockingOp, ClosedOrKept, Connection, CpuAmount, CpuPlace, Destructor, DestructorWork,
    Drip, Expect, ExpectGap, ExpectRow, Fail, Http, Load, Middleware, OnSignal, Pace, Peer, Pool,
    Profile, ReadUntil, Runtime, SettlementPolicy, ShutdownMode, ShutdownPlan, Span, Spread, Stage,
    Step, Tcp, Wait, Work, Workload, Write, keys, url,
};

/// Where a tree came from.
pub struct Origin<'a> {
    /// The file, as the user named it.
    pub path: &'a Path,
    /// Its text.
    pub text: &'a str,
    /// The digest of its bytes.
    pub sha256: String,
}

/// How many execute at once when a rate says how fast they come (SPEC section 6).
const PACED_CONCURRENCY: u32 = 1_024;

/// What is written where no `size` says it.
const ORDINARY_SIZE: u64 = 4_096;

/// The failure of a cooperative step that was told to stop and has no word of its own.
const INTERRUPTED: &str = "INTERRUPTED";

/// The workload that a tree says, or all its faults; `faults` are those already known.
pub fn workload<'a>(
    root: &'a [Entry<'a>],
    origin: Origin<'a>,
    faults: Vec<Fault>,
) -> Result<Workload, Vec<Fault>> {
    let mut walk = Walk::new();
    walk.faults = faults;
    let given = walk.file(&keys::ROOT, root);
    let mut check = Check::new(walk.faults, &origin, &given);
    let workload = check.workload(&given, origin);
    if check.faults.is_empty() { Ok(workload) } else { Err(check.faults) }
}

/// The faults found so far, and the steps built so far.
///
/// What is built beside a fault is made of placeholders, and never leaves this module.
struct Check<'a> {
    faults: Vec<Fault>,
    lines: Lines,
    steps: Vec<Step>,
    /// Where each name was first given, or the step of a default name stands.
    names: HashMap<Cow<'a, str>, &'a Place>,
    declared: Declared<'a>,
    /// The folder of the file: where relative paths start.
    folder: &'a Path,
}

/// What steps may refer to by name.
struct Declared<'a> {
    breakers: BTreeSet<&'a str>,
    bulkheads: BTreeSet<&'a str>,
    /// In the order of the file.
    peers: Vec<&'a str>,
}

impl<'a> Declared<'a> {
    fn new(root: &Given<'a>) -> Self {
        let names = |key| root.map(key).iter().map(|item| &*item.entry.key);
        Self {
            breakers: names("breakers").collect(),
            bulkheads: names("bulkheads").collect(),
            peers: names("peers").collect(),
        }
    }
}

impl<'a> Check<'a> {
    fn new(faults: Vec<Fault>, origin: &Origin<'a>, root: &Given<'a>) -> Self {
        Self {
            faults,
            lines: Lines::new(origin.text),
            folder: origin.path.parent().unwrap_or(Path::new("")),
            steps: Vec::new(),
            names: HashMap::new(),
            declared: Declared::new(root),
        }
    }

    fn fault(&mut self, place: &Place, message: impl Into<String>) {
        self.faults.push(Fault::new(place, message));
    }

    fn workload(&mut self, root: &Given<'a>, origin: Origin<'_>) -> Workload {
        let profile = root.word("profile");
        self.repeat(root);
        let budget = self.budget(root, profile);
        let runtime = runtime(&section(root, "runtime", &keys::RUNTIME));
        let load = self.load(root);
        let shutdown = shutdown(&section(root, "shutdown", &keys::SHUTDOWN));
        let settlement = self.settlement(root, profile);
        let peers = self.peers(root);
        let course = self.course(root);
        let expect = root.table("expect").map(|given| self.expect(given));
        let lines = self.lines.of_keys(root);
        let stem = origin.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Workload {
            name: root.text("name").map(str::to_owned).or(stem).unwrap_or_default(),
            description: root.text("description").map(str::to_owned),
            file: origin.path.to_owned(),
            sha256: origin.sha256,
            profile: if profile == Some("custom") { Profile::Custom } else { Profile::Queue },
            observe: root.time("observe").unwrap_or_default(),
            budget,
            runtime,
            load,
            shutdown,
            peers,
            settlement,
            steps: std::mem::take(&mut self.steps),
            middleware: course.middleware,
            guard: course.guard,
            resolve: course.resolve,
            extract: course.extract,
            handler: course.handler,
            dispose: course.dispose,
            expect,
            lines,
        }
    }

    fn repeat(&mut self, root: &Given) {
        if root.whole("repeat").is_some_and(|repeat| repeat > 1) {
            let place = place_of(root, "repeat");
            self.fault(place, "`repeat` above 1 is not supported by this version yet");
        }
    }

    /// B3, and what reserve and window may be.
    fn budget(&mut self, root: &Given, profile: Option<&'static str>) -> Budget {
        let given = section(root, "budget", &keys::BUDGET);
        let total = given.time("total");
        let reserve = given.time("reserve");
        if let (Some(profile), Some(total)) = (profile, total) {
            let (least, most) = total_range(profile);
            if !(least..=most).contains(&total) {
                let message = format!(
                    "budget.total is {}; with profile {profile} use {} to {}",
                    show(total),
                    show(least),
                    show(most)
                );
                self.fault(place_of(&given, "total"), message);
            } else if profile == "websocket" && total.subsec_nanos() != 0 {
                let message = format!(
                    "budget.total is {}; with profile websocket use whole seconds",
                    show(total)
                );
                self.fault(place_of(&given, "total"), message);
            }
        }
        if profile == Some("websocket") && given.mentions("reserve") {
            let message = "budget.reserve has no use with profile websocket, whose cleanup has a budget of its own; leave it out";
            self.fault(place_of(&given, "reserve"), message);
        } else if let (Some(total), Some(reserve)) = (total, reserve)
            && reserve >= total
        {
            let message = format!(
                "budget.reserve is {}, which leaves no time to work in a total of {}; use less than {}",
                show(reserve),
                show(total),
                show(total)
            );
            self.fault(place_of(&given, "reserve"), message);
        }
        if profile.is_some_and(|profile| profile != "websocket")
            && let Some(item) = given.get("cleanup_timeout")
        {
            self.fault(item.key_place(), "budget.cleanup_timeout belongs to profile websocket");
        }
        Budget {
            total: total.unwrap_or_default(),
            reserve,
            window_cap: given.time("cooperative_window").unwrap_or_default(),
        }
    }

    /// P15: how many, how fast, for how long.
    fn load(&mut self, root: &Given) -> Load {
        let given = section(root, "load", &keys::LOAD);
        let written = given.whole("deliveries").map(|number| small(Some(number)));
        let during = given.time("for");
        let rate = given.rate("rate");
        if !given.mentions("rate") {
            for name in ["for", "arrivals"] {
                if let Some(item) = given.get(name) {
                    let message = format!(
                        "load.{name} says nothing without a load.rate, for example \"50/s\""
                    );
                    self.fault(item.key_place(), message);
                }
            }
        }
        if let (true, Some(item)) = (given.mentions("deliveries"), given.get("for")) {
            let message = "load.for and load.deliveries both say how many messages there are; leave out one of them";
            self.fault(item.key_place(), message);
        }
        let mut deliveries = written.unwrap_or(1);
        if let (Some(rate), Some(during)) = (rate, during) {
            // One that would arrive at the very end does not, nor does what rounding adds.
            let gaps = during.as_secs_f64() * rate.per_second();
            let expected = (gaps - 1e-6).ceil().max(1.0);
            if expected > keys::MOST_DELIVERIES as f64 {
                let message = format!(
                    "load.rate over {} is more than {} messages; lower load.rate or shorten load.for",
                    show(during),
                    keys::MOST_DELIVERIES
                );
                self.fault(place_of(&given, "for"), message);
            }
            deliveries = expected as u32;
        }
        let spread = match given.word("arrivals") {
            Some("poisson") => Spread::Poisson,
            _ => Spread::Even,
        };
        let pace = rate.map(|rate| Pace { rate, spread, during });
        let unpaced = if pace.is_some() { PACED_CONCURRENCY } else { 1 };
        let concurrency = given.whole("concurrency").map(|number| small(Some(number)));
        Load {
            deliveries,
            concurrency: concurrency.unwrap_or(unpaced),
            pace,
            seed: given.whole("seed").unwrap_or_default(),
        }
    }

    fn settlement(
        &mut self,
        root: &Given,
        profile: Option<&'static str>,
    ) -> Option<SettlementPolicy> {
        if profile == Some("custom") && !root.mentions("settlement") {
            return None;
        }
        let given = section(root, "settlement", &keys::SETTLEMENT);
        if given.word("broker") == Some("memory") {
            for name in ["url", "queue"] {
                if let Some(item) = given.get(name) {
                    let message = format!("settlement.{name} has no use with the memory broker");
                    self.fault(item.key_place(), message);
                }
            }
        }
        let confirms = given.flag("confirm").unwrap_or(true);
        if let (false, Some(item)) = (confirms, given.get("confirm_in")) {
            let message = "settlement.confirm_in says when and `confirm = false` never; leave out one of them";
            self.fault(item.key_place(), message);
        }
        Some(SettlementPolicy {
            timeout: given.time("timeout").unwrap_or_default(),
            redeliveries: small(given.whole("redeliveries")),
            confirm_in: given.time("confirm_in").filter(|_| confirms),
        })
    }

    /// All steps, numbered in the order of the file.
    fn course(&mut self, root: &Given<'a>) -> Course {
        if !root.mentions("handler") && !root.mentions("service") {
            let message = "a workload needs at least one [[handler]], the work itself";
            let help = "[[handler]] with a `kind`, for example kind = \"io\", op = \"sleep\", for = \"1s\"";
            self.faults.push(Fault::new(&Place::Whole, message).help(help.to_owned()));
        } else if root.get("handler").is_some()
            && root.tables("handler").is_empty()
            && !root.mentions("service")
        {
            self.fault(
                place_of(root, "handler"),
                "handler is empty; write at least one [[handler]]",
            );
        }
        let parts = top_level(root);
        self.middleware_names(root);
        self.claim_written_names(&parts);
        let mut course = Course::new(root);
        for part in parts {
            let id = self.step(part.given, part.stage, DefaultName::Outer(part.stage, part.number));
            course.put(part.stage, part.number, id);
        }
        course
    }

    fn middleware_names(&mut self, root: &Given<'a>) {
        let mut names: HashMap<Cow<'a, str>, &'a Place> = HashMap::new();
        for (number, given) in (1..).zip(root.tables("middleware")) {
            let (name, place) = name_of(given, &format_args!("middleware-{number}"));
            if let Some(first) = names.get(&name) {
                let message = format!(
                    "the middleware {} has the name of the one on {}; use another",
                    quote(&name),
                    self.lines.describe(first)
                );
                self.fault(place, message);
            } else {
                names.insert(name, place);
            }
        }
    }

    /// Takes down the names that were written, before any default name is given away: so that it is
    /// always the default that is told to make room, in whatever order they stand.
    fn claim_written_names(&mut self, parts: &[Part<'_, 'a>]) {
        self.names.reserve(parts.len());
        let mut rest: Vec<&Given<'a>> = parts.iter().rev().map(|part| part.given).collect();
        let mut steps = 0;
        while let Some(given) = rest.pop() {
            steps += 1;
            if let (Some(name), Some(item)) = (given.text("name"), given.get("name")) {
                self.claim(name.into(), item.place());
            }
            rest.extend(given.tables("steps").iter().rev());
            rest.extend(given.table("fallback"));
        }
        self.steps.reserve_exact(steps);
    }

    fn claim(&mut self, name: Cow<'a, str>, place: &'a Place) {
        match self.names.entry(name) {
            hash_map::Entry::Vacant(free) => {
                free.insert(place);
            }
            hash_map::Entry::Occupied(taken) => {
                let message = format!(
                    "the step {} has the name of the one on {}; use another",
                    quote(taken.key()),
                    self.lines.describe(taken.get())
                );
                self.fault(place, message);
            }
        }
    }

    /// Builds a step and those inside it, itself first.
    fn step(&mut self, given: &Given<'a>, stage: Stage, default_name: DefaultName<'_>) -> StepId {
        let id = StepId(small(Some(self.steps.len() as u64)));
        let (name, place) = name_of(given, &default_name);
        if !given.mentions("name") {
            self.claim(name.clone(), place);
        }
        self.references(given);
        let step = Step {
            name: name.into_owned(),
            stage,
            line: self.lines.of(given.place),
            // Stands in for work that is built below, or that has a fault.
            work: Work::Polls { count: 0 },
            timeout: given.time("timeout"),
            poll_budget: given.whole("poll_budget"),
            fail: given.get("fail").and_then(fail),
            panic: given.get("panic").map_or(0.0, panic),
            share: given.number("share").unwrap_or(1.0),
            optional: given.flag("optional").unwrap_or(false),
            on_drop: given.table("on_drop").and_then(|given| self.destructor(given)),
            detach: given.flag("detach").unwrap_or(false),
        };
        self.steps.push(step);
        if let Some(work) = self.work(given, stage, default_name) {
            self.steps[id.0 as usize].work = work;
        }
        if let Some(fallback) = given.table("fallback") {
            self.step(fallback, stage, DefaultName::Fallback(&default_name));
        }
        id
    }

    /// The names by which a step refers to other tables.
    fn references(&mut self, given: &Given) {
        for (key, title) in [("breaker", "breakers"), ("bulkhead", "bulkheads")] {
            let declared = match key {
                "breaker" => &self.declared.breakers,
                _ => &self.declared.bulkheads,
            };
            if let (Some(name), Some(item)) = (given.text(key), given.get(key))
                && !declared.contains(name)
            {
                let fault = dangling(item.place(), key, title, name, declared);
                self.faults.push(fault);
            }
        }
        if let (Some(url), Some(item)) = (given.text("url"), given.get("url"))
            && let Some(name) = url.strip_prefix("peer:")
            && !self.declared.peers.contains(&name)
        {
            let declared = self.declared.peers.iter().copied().collect();
            let fault = dangling(item.place(), "url", "peers", name, &declared);
            self.faults.push(fault);
        }
    }

    /// The work of a step; `None` if it has a fault or belongs to a later version.
    fn work(
        &mut self,
        given: &Given<'a>,
        stage: Stage,
        default_name: DefaultName<'_>,
    ) -> Option<Work> {
        match given.kind?.word {
            "cpu" => Some(Work::Cpu {
                amount: self.cpu_amount(given)?,
                yield_every: given.time("yield_every"),
                on: match given.word("on")? {
                    "thread" => CpuPlace::Thread,
                    _ => CpuPlace::Worker,
                },
            }),
            "cooperative" => {
                let on_signal = self.on_signal(given);
                Some(Work::Cooperative {
                    duration: self.span(given, "for")?,
                    slice: given.time("slice")?,
                    on_signal: on_signal?,
                    wind_down: given.time("wind_down")?,
                })
            }
            "blocking" => Some(Work::Blocking {
                duration: self.span(given, "for")?,
                op: blocking_op(given.word("op")?)?,
                looks_every: given.time("looks_every"),
                pool: match given.word("pool")? {
                    "own" => Pool::Own,
                    _ => Pool::Shared,
                },
            }),
            "io" => {
                self.io_keys(given);
                match given.word("op")? {
                    "sleep" => Some(Work::Sleep { duration: self.span(given, "for")? }),
                    "tcp" => self.tcp(given),
                    "http" => self.http(given),
                    "read" => Some(Work::Read { path: self.folder.join(given.text("path")?) }),
                    _ => Some(Work::Write(Box::new(Write {
                        path: self.folder.join(given.text("path")?),
                        size: match &given.get("size").map(|item| &item.value) {
                            Some(Value::Size(bytes)) => *bytes,
                            _ => ORDINARY_SIZE,
                        },
                        sync: given.flag("sync")?,
                        keep: given.flag("keep")?,
                    }))),
                }
            }
            "polls" => Some(Work::Polls { count: given.whole("count")? }),
            "sequence" => {
                Some(Work::Sequence { steps: self.children(given, stage, default_name)? })
            }
            "parallel" => Some(Work::Parallel {
                steps: self.children(given, stage, default_name)?,
                wait: match given.word("wait")? {
                    "first" => Wait::First,
                    _ => Wait::All,
                },
            }),
            "choice" => {
                let weights = self.weights(given);
                let steps = self.children(given, stage, default_name)?;
                Some(Work::Choice { steps, weights: weights? })
            }
            _ => None,
        }
    }

    fn children(
        &mut self,
        given: &Given<'a>,
        stage: Stage,
        default_name: DefaultName<'_>,
    ) -> Option<Vec<StepId>> {
        let item = given.get("steps")?;
        let tables = given.tables("steps");
        if tables.is_empty() {
            self.fault(item.place(), "steps is empty; write at least one step");
            return None;
        }
        let ids = (1..).zip(tables).map(|(number, given)| {
            self.step(given, stage, DefaultName::Inner(&default_name, number))
        });
        Some(ids.collect())
    }

    fn on_signal(&mut self, given: &Given) -> Option<OnSignal> {
        let word = given.word("on_signal")?;
        if let (true, Some(item)) = (word != "fail", given.get("code")) {
            let message =
                format!("`code` has no use with on_signal = \"{word}\"; it belongs to \"fail\"");
            self.fault(item.key_place(), message);
        }
        Some(match word {
            "fail" => {
                OnSignal::Fail { code: Code::from(given.text("code").unwrap_or(INTERRUPTED)) }
            }
            "finish" => OnSignal::Finish,
            "ignore" => OnSignal::Ignore,
            _ => OnSignal::Return,
        })
    }

    /// Which keys of an `io` step its operation has.
    fn io_keys(&mut self, given: &Given) {
        let Some(op) = given.word("op") else { return };
        for (key, ops) in keys::IO_KEYS {
            if let (false, Some(item)) = (ops.contains(&op), given.get(key)) {
                let message = format!(
                    "`{key}` has no use with op = \"{op}\"; it belongs to {}",
                    ops.join(" and ")
                );
                self.fault(item.key_place(), message);
            }
        }
        let needed = match op {
            "sleep" => "for",
            "tcp" | "http" => "url",
            _ => "path",
        };
        if !given.mentions(needed) {
            let message = format!("an io step with op = \"{op}\" needs `{needed}`");
            self.fault(given.place, message);
        }
        if let (Some(""), Some(item)) = (given.text("path"), given.get("path")) {
            self.fault(item.place(), "path is empty; write the name of a file");
        }
    }

    fn tcp(&mut self, given: &Given) -> Option<Work> {
        let (to, _) = self.address(given, "tcp", None)?;
        Some(Work::Tcp(Box::new(Tcp {
            connection: connection(given, to),
            send: given.text("send").unwrap_or_default().to_owned(),
            read: given.word("read").map(|word| match word {
                "first" => ReadUntil::First,
                _ => ReadUntil::End,
            }),
            hold: given.time("hold"),
        })))
    }

    fn http(&mut self, given: &Given) -> Option<Work> {
        let body = given.text("body").unwrap_or_default();
        let method = given.text("method").unwrap_or(if body.is_empty() { "GET" } else { "POST" });
        let is_token =
            |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        if let (false, Some(item)) = (method.chars().all(is_token), given.get("method")) {
            let message =
                format!("method is {}; write one like \"GET\" or \"POST\"", quote(method));
            self.fault(item.place(), message);
            return None;
        }
        let (to, url) = self.address(given, "http", Some(80))?;
        Some(Work::Http(Box::new(Http {
            connection: connection(given, to),
            authority: url.as_ref().map_or("localhost", |url| url.authority).to_owned(),
            target: url.as_ref().map_or("/", |url| url.target).to_owned(),
            method: method.to_owned(),
            body: body.to_owned(),
            expect_status: given.whole("expect_status").map(|status| small(Some(status)) as u16),
        })))
    }

    /// Whom a `url` means, and the URL itself when that is no peer.
    fn address<'u>(
        &mut self,
        given: &Given<'u>,
        scheme: &str,
        default_port: Option<u16>,
    ) -> Option<(Address, Option<url::Url<'u>>)> {
        let (text, item) = (given.text("url")?, given.get("url")?);
        if let Some(name) = text.strip_prefix("peer:") {
            // One that is not declared has been reported.
            let place = self.declared.peers.iter().position(|peer| *peer == name)?;
            return Some((Address::Peer(place), None));
        }
        let found = url::parse(text, scheme).and_then(|url| match url.port.or(default_port) {
            Some(port) => Ok((url, port)),
            None => Err("its port is missing"),
        });
        match found {
            Ok((url, _)) if scheme == "tcp" && url.target != "/" => {
                let message = format!("url is {}; a tcp connection has no path", quote(text));
                self.fault(item.place(), message);
                None
            }
            Ok((url, port)) => {
                let host = url.host.to_owned();
                Some((Address::Host { host, port }, Some(url)))
            }
            Err(why) => {
                let form = match scheme {
                    "http" => "http://HOST:PORT/PATH",
                    _ => "tcp://HOST:PORT",
                };
                let message = format!(
                    "url is {}: {why}; with op = \"{scheme}\" use {form}, or peer:NAME",
                    quote(text)
                );
                let help = text.starts_with("https:").then(|| {
                    "there is no TLS in this program; reach the service in plain HTTP".to_owned()
                });
                self.faults.push(Fault::new(item.place(), message).help(help));
                None
            }
        }
    }

    fn peers(&mut self, root: &Given<'a>) -> Vec<Peer> {
        root.map("peers").iter().filter_map(|item| self.peer(item)).collect()
    }

    fn peer(&mut self, item: &Item<'a>) -> Option<Peer> {
        let Value::Table(given) = &item.value else { return None };
        if let (Some(_), Some(second)) = (given.get("reset_after"), given.get("close_after")) {
            let message =
                "`reset_after` and `close_after` exclude each other; leave out one of them";
            self.fault(second.key_place(), message);
        }
        if given.flag("refuse") == Some(true)
            && let Some((name, other)) = given.all().find(|(name, _)| *name != "refuse")
        {
            let message = format!("`{name}` has no use with refuse = true; leave out one of them");
            self.fault(other.key_place(), message);
        }
        let has_no_body = matches!(given.whole("status"), Some(204 | 304));
        if has_no_body && given.whole("body").is_some_and(|body| body > 0) {
            let message = "an answer of status 204 or 304 has no body; leave out `body`";
            self.fault(place_of(given, "body"), message);
        }
        Some(Peer {
            name: item.entry.key.clone().into_owned(),
            answer_after: given.time("answer_after")?,
            status: small(given.whole("status")) as u16,
            body: given.whole("body")?,
            drip: given.table("drip").and_then(|drip| {
                Some(Drip {
                    bytes: drip.whole("bytes")?,
                    every: drip.time("every")?,
                    stop_after: drip.whole("stop_after"),
                })
            }),
            reset_after: given.whole("reset_after"),
            close_after: given.whole("close_after"),
            refuse: given.flag("refuse")?,
            accept_after: given.time("accept_after")?,
        })
    }

    fn cpu_amount(&mut self, given: &Given) -> Option<CpuAmount> {
        match (given.mentions("for"), given.mentions("iterations")) {
            (true, true) => {
                let place = given.get("iterations").map_or(given.place, |item| item.key_place());
                self.fault(
                    place,
                    "`for` and `iterations` exclude each other; leave out one of them",
                );
                None
            }
            (true, false) => self.span(given, "for").map(CpuAmount::Time),
            (false, true) => given.whole("iterations").map(CpuAmount::Iterations),
            (false, false) => {
                self.fault(given.place, "a step of kind cpu needs `for` or `iterations`");
                None
            }
        }
    }

    fn weights(&mut self, given: &Given) -> Option<Vec<f64>> {
        let steps = given.tables("steps").len();
        if !given.mentions("weights") {
            return Some(vec![1.0; steps]);
        }
        let item = given.get("weights")?;
        let Value::List(values) = &item.value else { return None };
        let weights: Vec<f64> = values
            .iter()
            .filter_map(|value| match value {
                Value::Number(number) => Some(*number),
                _ => None,
            })
            .collect();
        if given.get("steps").is_some() && steps > 0 && weights.len() != steps {
            let message = format!(
                "weights has {} numbers for {}; write one for each step",
                weights.len(),
                count(steps, "step")
            );
            self.fault(item.place(), message);
            return None;
        }
        if weights.iter().all(|weight| *weight == 0.0) {
            self.fault(item.place(), "weights are all 0, so nothing can be drawn; use one above 0");
            return None;
        }
        Some(weights)
    }

    fn destructor(&mut self, given: &Given) -> Option<Destructor> {
        let work = match given.kind?.word {
            "cpu" => DestructorWork::Cpu(self.cpu_amount(given)?),
            _ => DestructorWork::Blocking {
                duration: self.span(given, "for")?,
                op: blocking_op(given.word("op")?)?,
            },
        };
        Some(Destructor { work, panic: given.get("panic").map_or(0.0, panic) })
    }

    /// A fixed time or a distribution.
    fn span(&mut self, given: &Given, name: &str) -> Option<Span> {
        let item = given.get(name)?;
        match &item.value {
            Value::Time(time) => Some(Span::Fixed(*time)),
            Value::Table(distribution) => self.distribution(distribution),
            _ => None,
        }
    }

    fn distribution(&mut self, given: &Given) -> Option<Span> {
        let mut shape: Vec<&str> =
            given.all().map(|(name, _)| name).filter(|name| *name != "max").collect();
        shape.sort_unstable();
        let has_max = given.mentions("max");
        match (shape.as_slice(), has_max) {
            (["min"], true) => {
                let (min, max) = (given.time("min")?, given.time("max")?);
                if min > max {
                    let message =
                        format!("min is {}, which is longer than max, {}", show(min), show(max));
                    self.fault(place_of(given, "min"), message);
                }
                Some(Span::Uniform { min, max })
            }
            (["mean"], _) => {
                Some(Span::Exponential { mean: given.time("mean")?, max: given.time("max") })
            }
            (["p50", "p99"], _) => {
                let (p50, p99) = (given.time("p50")?, given.time("p99")?);
                if p99 <= p50 {
                    let message = format!(
                        "p99 is {}, which is not longer than p50, {}",
                        show(p99),
                        show(p50)
                    );
                    self.fault(place_of(given, "p99"), message);
                }
                Some(Span::LogNormal { p50, p99, max: given.time("max") })
            }
            // Refused by the table of keys.
            (["recorded"] | ["recorded", "step"], _) => None,
            _ => {
                // A key that is there and faulty has been reported, and may be the missing one.
                if ["min", "max", "mean", "p50", "p99", "recorded", "step"]
                    .iter()
                    .all(|name| given.mentions(name) == given.get(name).is_some())
                {
                    let help = "{ min, max } is uniform, { mean } exponential, { p50, p99 } log-normal; the last two also take max";
                    let message = "these keys make no distribution";
                    self.faults.push(Fault::new(given.place, message).help(help.to_owned()));
                }
                None
            }
        }
    }

    fn expect(&mut self, given: &Given) -> Expect {
        let mut rows = Vec::new();
        for (name, item) in given.all() {
            match &item.value {
                Value::Bound(bound, written) => rows.push(ExpectRow {
                    what: name.to_owned(),
                    bound: (**bound).clone(),
                    written: (*written).to_owned(),
                }),
                Value::Map(items) => rows.extend(items.iter().filter_map(|item| {
                    let Value::Bound(bound, written) = &item.value else { return None };
                    Some(ExpectRow {
                        what: format!("{name}.{}", item.entry.key),
                        bound: (**bound).clone(),
                        written: (*written).to_owned(),
                    })
                })),
                _ => {}
            }
        }
        // The last to need the names. In their order, so that one file always gets the same advice.
        let names: BTreeSet<_> = std::mem::take(&mut self.names).into_keys().collect();
        let gaps = given.tables("gap").iter().map(|gap| self.gap(gap, &names)).collect();
        Expect { rows, gaps }
    }

    fn gap(&mut self, given: &Given, names: &BTreeSet<Cow<'a, str>>) -> ExpectGap {
        let step = given.text("step");
        if let (Some(step), Some(item)) = (step, given.get("step"))
            && !names.contains(step)
        {
            let near = nearest(step, names.iter().map(|name| &**name));
            let help = near.map(|near| format!("did you mean `{near}`?"));
            let message = format!("no step has the name {}", quote(step));
            self.faults.push(Fault::new(item.place(), message).help(help));
        }
        ExpectGap {
            step: step.map(str::to_owned),
            kind: given.word("kind").and_then(obligation),
            state: given.word("state").map(|word| match word {
                "late" => ObligationState::Late,
                _ => ObligationState::Unproven,
            }),
            count: given.whole("count"),
        }
    }
}

/// What the stages are made of.
struct Course {
    middleware: Vec<Middleware>,
    guard: Vec<StepId>,
    resolve: Vec<StepId>,
    extract: Vec<StepId>,
    handler: Vec<StepId>,
    dispose: Option<StepId>,
}

impl Course {
    fn new(root: &Given) -> Self {
        let middleware = (1..).zip(root.tables("middleware")).map(|(number, given)| Middleware {
            name: name_of(given, &format_args!("middleware-{number}")).0.into_owned(),
            before: None,
            after: None,
            terminate: None,
        });
        Self {
            middleware: middleware.collect(),
            guard: Vec::new(),
            resolve: Vec::new(),
            extract: Vec::new(),
            handler: Vec::new(),
            dispose: None,
        }
    }

    fn put(&mut self, stage: Stage, number: usize, id: StepId) {
        match stage {
            Stage::Before => self.middleware[number - 1].before = Some(id),
            Stage::After => self.middleware[number - 1].after = Some(id),
            Stage::Terminate => self.middleware[number - 1].terminate = Some(id),
            Stage::Guard => self.guard.push(id),
            Stage::Resolve => self.resolve.push(id),
            Stage::Extract => self.extract.push(id),
            Stage::Handler => self.handler.push(id),
            Stage::Dispose => self.dispose = Some(id),
        }
    }
}

/// A top-level step, not yet built.
struct Part<'g, 'a> {
    given: &'g Given<'a>,
    stage: Stage,
    /// Its number in its stage, or that of its middleware; from 1.
    number: usize,
}

/// The name of a step that was given none, put together when it is needed.
#[derive(Clone, Copy)]
enum DefaultName<'n> {
    /// The step of that number in its stage.
    Outer(Stage, usize),
    /// The step of that number inside another.
    Inner(&'n DefaultName<'n>, usize),
    /// The fallback of another.
    Fallback(&'n DefaultName<'n>),
}

impl Display for DefaultName<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outer(stage, number) => write!(out, "{}-{number}", stage.word()),
            Self::Inner(outer, number) => write!(out, "{outer}-{number}"),
            Self::Fallback(step) => write!(out, "{step}-fallback"),
        }
    }
}

/// All top-level steps, in the order of the file.
fn top_level<'g, 'a>(root: &'g Given<'a>) -> Vec<Part<'g, 'a>> {
    let mut parts = Vec::new();
    let mut add = |given, stage, number| parts.push(Part { given, stage, number });
    for (number, middleware) in (1..).zip(root.tables("middleware")) {
        for stage in [Stage::Before, Stage::After, Stage::Terminate] {
            if let Some(given) = middleware.table(stage.word()) {
                add(given, stage, number);
            }
        }
    }
    for stage in [Stage::Guard, Stage::Resolve, Stage::Extract, Stage::Handler] {
        for (number, given) in (1..).zip(root.tables(stage.word())) {
            add(given, stage, number);
        }
    }
    if let Some(given) = root.table("scope").and_then(|scope| scope.table("dispose")) {
        add(given, Stage::Dispose, 1);
    }
    parts.sort_by_key(|part| part.given.place);
    parts
}

/// A table of the file; if it is absent, or cannot be read, its defaults.
fn section<'a>(root: &Given<'a>, name: &str, section: &'static keys::Section) -> Given<'a> {
    root.table(name).cloned().unwrap_or_else(|| Given::defaults(section))
}

fn runtime(given: &Given) -> Runtime {
    Runtime {
        workers: small(given.whole("workers")) as usize,
        blocking_threads: small(given.whole("blocking_threads")) as usize,
    }
}

fn shutdown(given: &Given) -> ShutdownPlan {
    let mode = given.word("mode");
    let admission = given.word("admission");
    ShutdownPlan {
        at: given.time("at"),
        after_deliveries: given.whole("after_deliveries").map(|number| small(Some(number))),
        deadline: given.time("deadline").unwrap_or_default(),
        mode: match mode {
            Some("forced") => ShutdownMode::Forced,
            _ => ShutdownMode::Graceful,
        },
        admission: match admission {
            Some("keep") => ClosedOrKept::Keep,
            _ => ClosedOrKept::Close,
        },
    }
}

/// B3.
fn total_range(profile: &str) -> (Duration, Duration) {
    match profile {
        "websocket" => (Duration::from_secs(1), Duration::from_secs(300)),
        "custom" => (Duration::from_millis(1), Duration::from_secs(24 * 3_600)),
        _ => (Duration::from_millis(100), Duration::from_secs(900)),
    }
}

fn connection(given: &Given, to: Address) -> Connection {
    Connection {
        to,
        connect_timeout: given.time("connect_timeout"),
        read_timeout: given.time("read_timeout"),
        idle_timeout: given.time("idle_timeout"),
    }
}

fn fail(item: &Item) -> Option<Fail> {
    match &item.value {
        Value::Text(code) => {
            Some(Fail { code: Code::from(*code), retryable: false, share: 1.0, first: None })
        }
        Value::Table(given) => Some(Fail {
            code: Code::from(given.text("code")?),
            retryable: given.flag("retryable")?,
            share: given.number("share")?,
            first: given.whole("first").map(|first| small(Some(first))),
        }),
        _ => None,
    }
}

fn panic(item: &Item) -> f64 {
    match &item.value {
        Value::Flag(true) => 1.0,
        Value::Table(given) => given.number("share").unwrap_or_default(),
        _ => 0.0,
    }
}

fn blocking_op(word: &str) -> Option<BlockingOp> {
    match word {
        "sleep" => Some(BlockingOp::Sleep),
        "spin" => Some(BlockingOp::Spin),
        "lock" => Some(BlockingOp::Lock),
        "fsync" => Some(BlockingOp::Fsync),
        "dns" => Some(BlockingOp::Dns),
        _ => None,
    }
}

fn obligation(word: &str) -> Option<Obligation> {
    match word {
        "execution" => Some(Obligation::Execution),
        "task" => Some(Obligation::Task),
        "thread" => Some(Obligation::Thread),
        "connection" => Some(Obligation::Connection),
        "callback" => Some(Obligation::Callback),
        "scope" => Some(Obligation::Scope),
        "settlement" => Some(Obligation::Settlement),
        _ => None,
    }
}

fn dangling(place: &Place, key: &str, title: &str, name: &str, declared: &BTreeSet<&str>) -> Fault {
    let message = format!("{key} names {}, but there is no [{title}.{}]", quote(name), cut(name));
    let near = nearest(name, declared.iter().copied());
    Fault::new(place, message).help(near.map(|near| format!("did you mean {}?", mark(near))))
}

/// The name of a table, and where it was written; a default one stands where its table does.
fn name_of<'a>(given: &Given<'a>, default: &dyn Display) -> (Cow<'a, str>, &'a Place) {
    match (given.text("name"), given.get("name")) {
        (Some(name), Some(item)) => (name.into(), item.place()),
        _ => (default.to_string().into(), given.place),
    }
}

/// Where the value of a key stands, or its table if it was not written.
fn place_of<'a>(given: &Given<'a>, name: &str) -> &'a Place {
    given.get(name).map_or(given.place, Item::place)
}

/// A number whose range the table of keys has bounded.
fn small(number: Option<u64>) -> u32 {
    number.map_or(0, |number| u32::try_from(number).expect("the table of keys bounds it"))
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Where lines begin, so that no line is counted twice.
struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect() }
    }

    /// The line of a place, from 1; 0 if it is not in the file.
    fn of(&self, place: &Place) -> u32 {
        match place {
            Place::File(Bytes { start, .. }) => {
                let line = self.starts.partition_point(|begin| begin <= start);
                u32::try_from(line).unwrap_or(u32::MAX)
            }
            Place::Whole | Place::Set(..) => 0,
        }
    }

    /// The lines of what was written in the tables that hold no steps.
    fn of_keys(&self, root: &Given) -> BTreeMap<String, u32> {
        let mut lines = BTreeMap::new();
        for peer in root.map("peers") {
            lines.insert(format!("peers.{}", peer.entry.key), self.of(peer.key_place()));
        }
        for table in ["budget", "runtime", "load", "shutdown", "settlement", "expect"] {
            let Some(given) = root.table(table) else { continue };
            for (name, item) in given.all() {
                let key = format!("{table}.{name}");
                match &item.value {
                    Value::Map(items) => lines.extend(items.iter().map(|item| {
                        (format!("{key}.{}", item.entry.key), self.of(item.key_place()))
                    })),
                    Value::Tables(tables) => {
                        lines.extend((1..).zip(tables).map(|(number, table)| {
                            (format!("{key}.{number}"), self.of(table.place))
                        }))
                    }
                    _ => {
                        lines.insert(key, self.of(item.key_place()));
                    }
                }
            }
        }
        lines
    }

    fn describe(&self, place: &Place) -> String {
        match self.of(place) {
            0 => "the command line".to_owned(),
            line => format!("line {line}"),
        }
    }
}
