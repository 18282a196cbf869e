//! One step: its work, its policies, and what it refers to by name.

use std::collections::BTreeSet;

use super::course::DefaultName;
use super::io::ORDINARY_SIZE;
use super::{Check, count, name_of, place_of, small};
use crate::duration::show;
use crate::event::{Code, StepId};
use crate::workload::fault::{Fault, nearest};
use crate::workload::tree::{Place, cut, mark, quote};
use crate::workload::walk::{Given, Item, Value};
use crate::workload::{
    BlockingOp, CpuAmount, CpuPlace, Destructor, DestructorWork, Fail, OnSignal, Pool, Span, Stage,
    Step, Wait, Work, Write,
};

/// The failure of a cooperative step that was told to stop and has no word of its own.
const INTERRUPTED: &str = "INTERRUPTED";

impl<'a> Check<'a> {
    /// Builds a step and those inside it, itself first.
    pub(super) fn step(
        &mut self,
        given: &Given<'a>,
        stage: Stage,
        default_name: DefaultName<'_>,
    ) -> StepId {
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

fn dangling(place: &Place, key: &str, title: &str, name: &str, declared: &BTreeSet<&str>) -> Fault {
    let message = format!("{key} names {}, but there is no [{title}.{}]", quote(name), cut(name));
    let near = nearest(name, declared.iter().copied());
    Fault::new(place, message).help(near.map(|near| format!("did you mean {}?", mark(near))))
}
