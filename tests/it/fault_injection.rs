//! Whole runs of simulated deliveries into which roots are published, shortened and forced at random.
//!
//! Every run follows from one number, which is printed when it fails. The engine decides admission and
//! deliveries; every log is held against the invariants, the whole run against the audit, and the
//! report's buckets against what there was to put into them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;
use std::time::Duration;

use deadline_run::audit;
use deadline_run::engine::{Admission, Ticket};
use deadline_run::event::{
    Decision, DeliveryLog, Entry, Event, EventLog, Initiator, Observation, RunEntry, RunEvent,
    Settlement, StepId,
};
use deadline_run::obligation::{Obligation, ObligationState};
use deadline_run::report::{Report, SettledState, Totals};
use deadline_run::timeline::{Moment, Reason, Root};
use deadline_run::workload::{
    self, AdmissionPolicy, Middleware, SettlementPolicy, Stage, Step, Workload,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::invariants::check_invariants;
use crate::judged::report_of_log;
use crate::simulated::{DISPOSE, Outcome, World, run};
use crate::small_worlds::{any_broker, any_span, any_work, any_world, span};

const RUNS: u64 = 250;

/// Says which run it was, when the test ends by a panic.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the run of seed {}", self.0);
        }
    }
}

/// Draws values, always the same ones of one seed.
struct Draws(TestRunner);

impl Draws {
    fn new(seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        Self(TestRunner::new_with_rng(Config::default(), rng))
    }

    fn draw<S: Strategy>(&mut self, strategy: S) -> S::Value {
        strategy.new_tree(&mut self.0).expect("nothing is filtered").current()
    }

    /// The same shape with other behaviour.
    fn vary(&mut self, shape: &World) -> World {
        let mut world = shape.clone();
        let parts = world.middleware.iter_mut();
        let parts = parts.flat_map(|it| [&mut it.before, &mut it.after, &mut it.terminate]);
        for work in parts.flatten().chain(&mut world.forward).chain(&mut world.dispose) {
            *work = self.draw(any_work());
        }
        if let Some(broker) = &mut world.broker {
            broker.confirms_in = self.draw(any_span());
        }
        world
    }
}

/// What is done to a run from outside.
#[derive(Debug)]
struct Faults {
    /// Each is published at its initiation; whether it is shorter than the others is left to chance.
    roots: Vec<Root>,
    forced: Option<Moment>,
    keeps_admission: bool,
}

impl Faults {
    fn draw(draws: &mut Draws) -> Self {
        let root = (0_u64..12_000, 0_u64..8_000)
            .prop_map(|(at, deadline)| Root::new(Moment::from_nanos(at), span(deadline)));
        let mut roots = draws.draw(prop::collection::vec(root, 0..4));
        roots.sort_by_key(|root| root.initiated);
        let forced = draws.draw(prop::option::of(0_u64..12_000)).map(Moment::from_nanos);
        Self { roots, forced, keeps_admission: draws.draw(prop::bool::weighted(0.3)) }
    }

    fn begins(&self) -> Option<Moment> {
        self.roots.iter().map(|root| root.initiated).chain(self.forced).min()
    }

    fn run_events(&self) -> Vec<RunEntry> {
        let began = self.roots.iter().map(|root| RunEntry {
            at: root.initiated,
            // The one whose root no workload says.
            event: RunEvent::ShutdownBegan { by: Initiator::MaxTime, root: *root },
        });
        let forced = self.forced.map(|at| RunEntry { at, event: RunEvent::Forced });
        let mut entries: Vec<_> = began.chain(forced).collect();
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

/// What happens to the slots and the buffer; closing comes last at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    FreeSlot,
    Redeliver { message: u32, attempt: u32 },
    Close,
}

struct Run {
    workload: Workload,
    log: EventLog,
}

/// Runs a load under faults, and holds every delivery against the invariants.
fn simulate(seed: u64) -> (Run, World) {
    let mut draws = Draws::new(seed);
    let mut shape = draws.draw(any_world());
    shape.broker = shape.broker.or_else(|| Some(draws.draw(any_broker())));
    shape.lateness = Duration::ZERO;
    shape.attempt = 1;
    let faults = Faults::draw(&mut draws);
    let mut workload = workload_of(&shape, draws.draw(1_u32..40), draws.draw(1_u32..9));
    if faults.keeps_admission {
        workload.shutdown.admission = AdmissionPolicy::Keep;
    }
    shape.roots.clone_from(&faults.roots);
    shape.stops = faults.forced.map(|at| (at, Reason::ForcedShutdown)).into_iter().collect();

    let mut admission = Admission::new(&workload.load);
    let mut nexts = BinaryHeap::new();
    if let Some(at) = if faults.keeps_admission { faults.forced } else { faults.begins() } {
        nexts.push(Reverse((at, Next::Close)));
    }
    let (mut now, mut is_closed) = (Moment::START, false);
    let mut log = EventLog { run: faults.run_events(), ..EventLog::default() };
    let mut until = log.run.last().map_or(Moment::START, |entry| entry.at);
    loop {
        while let Some(ticket) = admission.admit(now) {
            assert!(!is_closed, "nobody starts when admission is closed");
            let mut world = draws.vary(&shape);
            (world.admitted, world.attempt) = (now, ticket.attempt);
            let outcome = run(&world);
            check_invariants(&world, &outcome);
            for entry in &outcome.log {
                until = until.max(entry.at);
                match entry.event {
                    Event::Decided(Decision::FreeSlot) => {
                        nexts.push(Reverse((entry.at, Next::FreeSlot)));
                    }
                    Event::Decided(Decision::Redeliver) => {
                        let (message, attempt) = (ticket.message, ticket.attempt + 1);
                        nexts.push(Reverse((entry.at, Next::Redeliver { message, attempt })));
                    }
                    _ => {}
                }
            }
            log.deliveries.push(delivery(ticket, outcome));
        }
        let Some(Reverse((at, next))) = nexts.pop() else { break };
        now = at;
        match next {
            Next::FreeSlot => admission.free_slot(),
            Next::Redeliver { message, attempt } => {
                let refused = admission.redeliver(message, attempt, now);
                log.deliveries.extend(refused.map(|ticket| released(ticket, now)));
            }
            Next::Close => {
                is_closed = true;
                let waiting = admission.close(now);
                log.deliveries.extend(waiting.map(|ticket| released(ticket, now)));
            }
        }
    }
    assert!(admission.is_over(), "nobody waits and nobody holds a slot");
    log.deliveries.sort_by_key(|delivery| delivery.id);
    let at = until.max(now);
    log.run.push(RunEntry { at, event: RunEvent::ObservationEnded });
    (Run { workload, log }, shape)
}

fn delivery(ticket: Ticket, outcome: Outcome) -> DeliveryLog {
    let Ticket { id, message, attempt, arrived } = ticket;
    DeliveryLog { id, message, attempt, arrived, entries: outcome.log }
}

fn released(ticket: Ticket, at: Moment) -> DeliveryLog {
    let log = vec![Entry { at, event: Event::Observed(Observation::Released) }];
    delivery(ticket, Outcome { log, closed: true })
}

/// The workload that the audit reads; its steps have the simulation's numbers.
fn workload_of(shape: &World, deliveries: u32, concurrency: u32) -> Workload {
    let text = "profile = \"custom\"\n[[handler]]\nkind = \"polls\"\ncount = 1\n";
    let mut workload = workload::file::parse(Path::new("faults.toml"), text, &[]).expect("valid");
    let plan = shape.plan();
    let stage = |id: u32| match id {
        0..100 if (id as usize) < shape.forward.len() => Stage::Handler,
        100..200 => Stage::Before,
        200..300 => Stage::After,
        _ => Stage::Terminate,
    };
    let step = workload.steps[0].clone();
    let steps = (0..=DISPOSE.0).map(|id| {
        let stage = if id == DISPOSE.0 { Stage::Dispose } else { stage(id) };
        Step { name: format!("step {id}"), stage, ..step.clone() }
    });
    workload.steps = steps.collect();
    workload.handler = (0..shape.forward.len() as u32).map(StepId).collect();
    let middleware = plan.middleware.iter().enumerate().map(|(number, parts)| Middleware {
        name: format!("middleware {number}"),
        before: parts.before,
        after: parts.after,
        terminate: parts.terminate,
    });
    workload.middleware = middleware.collect();
    workload.dispose = plan.dispose;
    workload.budget = plan.budget;
    workload.observe = plan.observe;
    workload.load.deliveries = deliveries;
    workload.load.concurrency = concurrency;
    workload.settlement = plan.settlement.map(|shape| SettlementPolicy {
        timeout: shape.timeout,
        redeliveries: shape.redeliveries,
        confirm_in: None,
    });
    workload
}

/// Every delivery stands in one bucket of each kind, and every message has one end.
fn check_buckets(run: &Run, report: &Report) {
    let Totals { deliveries, success, failure, panic, interrupted, not_started, .. } =
        report.totals;
    assert_eq!(deliveries as usize, run.log.deliveries.len());
    assert_eq!(success + failure + panic + interrupted + not_started, deliveries);
    let Totals { proven, late, unproven, nothing_started, .. } = report.totals;
    assert_eq!(proven + late + unproven + nothing_started, deliveries);
    assert_eq!(nothing_started, not_started);
    if let Some(shutdown) = &report.shutdown {
        assert_eq!(shutdown.released, not_started);
    }

    let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
    for delivery in &report.deliveries {
        let settled = delivery.settlement;
        // The broker delivers again what it has confirmed, also when that came too late to be settled.
        let mut owed = delivery.obligations.iter();
        let is_answered = owed.any(|row| {
            row.kind == Obligation::Settlement && row.state != ObligationState::Unproven
        });
        let comes_again = settled.decision == Some(Settlement::Retry) && is_answered;
        *ends.entry(delivery.message).or_default() += u32::from(!comes_again);
        let loses_its_right = settled.decision.is_none();
        assert_eq!(loses_its_right, settled.state == SettledState::Revoked);
        let goes_back = settled.decision == Some(Settlement::Released);
        assert_eq!(goes_back, settled.state == SettledState::Released);
    }
    assert_eq!(ends.len(), run.workload.load.deliveries as usize);
    assert!(ends.values().all(|ends| *ends == 1), "a message ends once: {ends:?}");
}

/// What all runs together have shown: a test of shutdowns must have seen some of each kind.
#[derive(Debug, Default)]
struct Seen {
    reasons: BTreeMap<String, usize>,
    states: BTreeMap<String, usize>,
    deliveries: usize,
}

#[test]
fn roots_published_shortened_and_forced_at_any_instant_keep_every_rule() {
    let mut seen = Seen::default();
    for seed in 0..RUNS {
        let _seed = Seed(seed);
        let (run, shape) = simulate(seed);
        let audit = audit::judge(&run.workload, &shape.plan(), &run.log);
        assert_eq!(audit.disagreements, Vec::<String>::new());
        let report = report_of_log(&run.workload, audit);
        check_buckets(&run, &report);
        seen.deliveries += report.deliveries.len();
        for delivery in &report.deliveries {
            let reason = delivery.signal.map(|signal| format!("{:?}", signal.reason));
            *seen.reasons.entry(reason.unwrap_or_default()).or_default() += 1;
            *seen.states.entry(format!("{:?}", delivery.settlement.state)).or_default() += 1;
        }
    }
    assert!(seen.deliveries > 3_000, "{seen:?}");
    for reason in ["DeliveryTimeout", "ShutdownDeadline", "ForcedShutdown"] {
        assert!(seen.reasons.get(reason).is_some_and(|count| *count > 100), "{reason}: {seen:?}");
    }
    for state in ["Confirmed", "Unresolved", "Released", "Revoked"] {
        assert!(seen.states.get(state).is_some_and(|count| *count > 100), "{state}: {seen:?}");
    }
}
