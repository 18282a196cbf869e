//! The course of a workload: its parts in the order of the file, and the names of its steps.

use std::borrow::Cow;
use std::collections::{HashMap, hash_map};
use std::fmt::{self, Display};

use super::{Check, name_of, place_of};
use crate::event::StepId;
use crate::workload::fault::Fault;
use crate::workload::tree::{Place, quote};
use crate::workload::walk::Given;
use crate::workload::{Middleware, Stage};

impl<'a> Check<'a> {
    /// All steps, numbered in the order of the file.
    pub(super) fn course(&mut self, root: &Given<'a>) -> Course {
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

    pub(super) fn claim(&mut self, name: Cow<'a, str>, place: &'a Place) {
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
}

/// What the stages are made of.
pub(super) struct Course {
    pub(super) middleware: Vec<Middleware>,
    pub(super) guard: Vec<StepId>,
    pub(super) resolve: Vec<StepId>,
    pub(super) extract: Vec<StepId>,
    pub(super) handler: Vec<StepId>,
    pub(super) dispose: Option<StepId>,
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
pub(super) enum DefaultName<'n> {
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
