//! Small worlds, all of them, every duration just before, at and just after every boundary; and
//! large ones at random.
//!
//! Expects nothing of a world but the invariants of every log.

use std::time::Duration;

use deadline_run::event::Verdict;
use deadline_run::obligation::Obligation;
use deadline_run::timeline::{Budget, Moment, Reason, Root};
use proptest::prelude::*;

use crate::invariants::check_invariants;
use crate::simulated::{Broker, Detached, FOREVER, Middleware, Work, World, run};

/// Admitted at 10,000 ns with 1,600 ns: `P` is 1,200 later, the window ends at 1,300, `E` is at 1,600.
const ADMITTED: u64 = 10_000;
const TOTAL: u64 = 1_600;
const P: u64 = 1_200;
const WINDOW_END: u64 = 1_300;
/// From a cut at the window's end: `E` less a quarter of what is left to it.
const CHAIN_END: u64 = 1_525;
const E: u64 = 1_600;

pub fn span(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn moment(nanos: u64) -> Moment {
    Moment::from_nanos(ADMITTED + nanos)
}

fn around(boundary: u64) -> [Duration; 3] {
    [span(boundary - 1), span(boundary), span(boundary + 1)]
}

/// Every duration of interest of a step that starts at admission.
fn durations() -> Vec<Duration> {
    let mut durations = vec![Duration::ZERO, span(700), FOREVER];
    for boundary in [P, WINDOW_END, CHAIN_END, E] {
        durations.extend(around(boundary));
    }
    durations
}

fn verdicts(work: &Work) -> [Work; 4] {
    [work.clone(), work.clone().fails(true), work.clone().fails(false), work.clone().panics()]
}

fn roots() -> Vec<Option<Root>> {
    let root = |at, deadline| Some(Root::new(moment(at), span(deadline)));
    vec![
        None,
        // Graceful at 850; graceful at P, a tie; too late to matter.
        root(700, 200),
        root(200, 1_333),
        root(1_000, 40_000),
        // In the window: shortens it, has passed it already.
        root(1_210, 200),
        root(1_250, 60),
        // In cleanup: brings E forward, and to this very instant.
        root(1_400, 100),
        root(1_450, 0),
    ]
}

fn stops() -> Vec<Option<Moment>> {
    let mut stops = vec![None];
    stops.extend([0, 600, P - 1, P, P + 1, WINDOW_END, 1_400, E].map(|at| Some(moment(at))));
    stops
}

fn world(handler: Work) -> World {
    World {
        budget: Budget {
            total: span(TOTAL),
            reserve: None,
            window_cap: Duration::from_millis(250),
        },
        observe: span(3_000),
        admitted: Moment::from_nanos(ADMITTED),
        ..World::new(span(TOTAL), vec![handler])
    }
    .broker_with(Broker { timeout: span(500), redeliveries: 1, confirms_in: span(10) })
}

fn middleware(terminate: Work) -> Middleware {
    Middleware {
        before: Some(Work::takes(span(0))),
        after: Some(Work::takes(span(1))),
        terminate: Some(terminate),
    }
}

fn check(world: &World) {
    check_invariants(world, &run(world));
}

#[test]
fn one_step_at_every_boundary_keeps_the_invariants() {
    let mut count = 0;
    for takes in durations() {
        for work in verdicts(&Work::takes(takes)) {
            for work in [work.clone(), work.without_yielding()] {
                for wraps in 0..=2 {
                    for scope in [false, true] {
                        let mut world = world(work.clone());
                        for _ in 0..wraps {
                            world = world.middleware(middleware(Work::takes(span(10))));
                        }
                        world.dispose = scope.then(|| Work::takes(span(5)));
                        count += check_under_every_root_and_stop(&world);
                    }
                }
            }
        }
    }
    assert_eq!(count, 15 * 4 * 2 * 3 * 2 * 8 * 9);
}

/// Answers how many worlds that were.
fn check_under_every_root_and_stop(world: &World) -> usize {
    let mut count = 0;
    for root in roots() {
        for stop in stops() {
            let mut world = world.clone();
            world.roots.extend(root);
            world.stops.extend(stop.map(|at| (at, Reason::ForcedShutdown)));
            check(&world);
            count += 1;
        }
    }
    count
}

#[test]
fn cleanup_at_every_boundary_keeps_the_invariants() {
    // Cut at the window's end: two shares of 112 ns end 1,412 and at the chain's end, 1,525.
    let from_the_cut = |until: u64| around(until - WINDOW_END);
    let mut terminates = vec![Duration::ZERO, FOREVER];
    terminates.extend([1_412, CHAIN_END, E].into_iter().flat_map(from_the_cut));
    let behaviours: Vec<Work> = terminates
        .into_iter()
        .flat_map(|takes| [Work::takes(takes), Work::takes(takes).without_yielding()])
        .collect();
    let disposals = [Duration::ZERO, span(E - CHAIN_END), span(E - CHAIN_END + 1), FOREVER];
    let mut count = 0;
    for outer in &behaviours {
        for inner in &behaviours {
            for dispose in disposals {
                for drop_takes in [Duration::ZERO, span(30)] {
                    let mut world = world(Work::takes(FOREVER).drop_takes(drop_takes))
                        .middleware(middleware(outer.clone().drop_takes(drop_takes)))
                        .middleware(middleware(inner.clone()))
                        .dispose(Work::takes(dispose));
                    check(&world);
                    world = world.root(Root::new(moment(1_400), span(100)));
                    check(&world);
                    count += 2;
                }
            }
        }
    }
    assert_eq!(count, 22 * 22 * 4 * 2 * 2);
}

#[test]
fn release_at_every_boundary_keeps_the_invariants() {
    let drops = [CHAIN_END, E].into_iter().flat_map(|until| around(until - WINDOW_END));
    for drop_takes in drops.chain([Duration::ZERO, FOREVER]) {
        for takes in durations() {
            for panics in [false, true] {
                for frame_takes in [Duration::ZERO, span(E - P), FOREVER] {
                    let mut work = Work::takes(takes).drop_takes(drop_takes);
                    work.destructor_panics = panics;
                    let mut world = world(work)
                        .middleware(middleware(Work::takes(span(10))))
                        .dispose(Work::takes(span(5)));
                    world.frame_takes = frame_takes;
                    check_under_every_root_and_stop(&world);
                }
            }
        }
    }
}

#[test]
fn detached_work_and_confirmations_at_every_boundary_keep_the_invariants() {
    for takes in durations() {
        for lasts in durations() {
            for confirms_in in [0, 499, 500, 501, 4_000].map(span) {
                for kind in [Obligation::Task, Obligation::Thread] {
                    let mut world = world(Work::takes(takes).opens(kind, lasts))
                        .dispose(Work::takes(span(5)).opens(kind, lasts))
                        .broker_with(Broker { timeout: span(500), redeliveries: 1, confirms_in });
                    check(&world);
                    world = world.stop(moment(900), Reason::RuntimeFailure);
                    check(&world);
                    world = world.root(Root::new(moment(1_400), span(100)));
                    check(&world);
                }
            }
        }
    }
}

pub fn any_span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        4 => (0_u64..2_000).prop_map(span),
        2 => (0_u64..60).prop_map(span),
        1 => prop::sample::select(durations()),
    ]
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    let failure = |retryable| Verdict::Failure { code: "BROKEN".into(), retryable };
    prop_oneof![
        6 => Just(Verdict::Success),
        1 => any::<bool>().prop_map(failure),
        1 => Just(Verdict::Panic),
    ]
}

pub fn any_work() -> impl Strategy<Value = Work> {
    let kind = prop::sample::select(vec![Obligation::Task, Obligation::Thread]);
    let detached = (kind, any_span()).prop_map(|(kind, lasts)| Detached { kind, lasts });
    (
        any_span(),
        any_verdict(),
        prop::bool::weighted(0.75),
        prop_oneof![3 => Just(Duration::ZERO), 1 => any_span()],
        prop::bool::weighted(0.1),
        prop::collection::vec(detached, 0..2),
    )
        .prop_map(|(takes, says, yields, drop_takes, destructor_panics, opens)| Work {
            takes,
            says,
            yields,
            drop_takes,
            destructor_panics,
            opens,
        })
}

fn any_middleware() -> impl Strategy<Value = Middleware> {
    let part = || prop::option::weighted(0.7, any_work());
    (part(), part(), part()).prop_map(|(before, after, terminate)| Middleware {
        before,
        after,
        terminate,
    })
}

fn any_reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(vec![
        Reason::ForcedShutdown,
        Reason::RuntimeFailure,
        Reason::RuntimeCancellation,
    ])
}

pub fn any_broker() -> impl Strategy<Value = Broker> {
    (0_u64..2_000, 0_u32..3, any_span()).prop_map(|(timeout, redeliveries, confirms_in)| Broker {
        timeout: span(timeout),
        redeliveries,
        confirms_in,
    })
}

fn any_budget() -> impl Strategy<Value = Budget> {
    (100_u64..4_000)
        .prop_flat_map(|total| (Just(total), prop::option::of(0..total), 0_u64..400))
        .prop_map(|(total, reserve, cap)| Budget {
            total: span(total),
            reserve: reserve.map(span),
            window_cap: span(cap),
        })
}

/// A root that some are admitted under, some never see.
fn any_root() -> impl Strategy<Value = Root> {
    (0_u64..14_000, 0_u64..4_000)
        .prop_map(|(at, deadline)| Root::new(Moment::from_nanos(at), span(deadline)))
}

pub fn any_world() -> impl Strategy<Value = World> {
    let stop = ((0_u64..2_500).prop_map(moment), any_reason());
    let shape = (
        prop::collection::vec(any_middleware(), 0..4),
        prop::collection::vec(any_work(), 1..4),
        prop::option::of(any_work()),
        prop::option::weighted(0.8, any_broker()),
    );
    let circumstances = (
        any_budget(),
        0_u64..3_000,
        1_u32..4,
        prop_oneof![3 => Just(Duration::ZERO), 1 => any_span()],
        prop::collection::vec(any_root(), 0..3),
        prop::collection::vec(stop, 0..2),
        prop_oneof![3 => Just(Duration::ZERO), 1 => (0_u64..300).prop_map(span)],
    );
    (shape, circumstances).prop_map(|(shape, circumstances)| {
        let (middleware, forward, dispose, broker) = shape;
        let (budget, observe, attempt, frame_takes, roots, stops, lateness) = circumstances;
        World {
            budget,
            observe: span(observe),
            attempt,
            admitted: Moment::from_nanos(ADMITTED),
            middleware,
            forward,
            dispose,
            frame_takes,
            broker,
            roots,
            stops,
            lateness,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_world_keeps_the_invariants(world in any_world()) {
        check(&world);
    }
}
