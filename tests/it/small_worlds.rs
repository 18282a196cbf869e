//! Small worlds, all of them: every duration just before, at and just after every boundary.

use std::time::Duration;

use deadline_run::timeline::{Budget, Moment, Reason, Root};

use crate::invariants::check_invariants;
use crate::simulated::{Broker, FOREVER, Middleware, Work, World, run};

/// Admitted at 10,000 ns with 1,600 ns: `P` is 1,200 later, the window ends at 1,300, `E` is at 1,600.
const ADMITTED: u64 = 10_000;
const TOTAL: u64 = 1_600;
const P: u64 = 1_200;
const WINDOW_END: u64 = 1_300;
/// From a cut at the window's end: `E` less a quarter of what is left to it.
const CHAIN_END: u64 = 1_525;
const E: u64 = 1_600;

fn span(nanos: u64) -> Duration {
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

fn check_all(worlds: impl Iterator<Item = World>) -> usize {
    let check = |world: World| check_invariants(&world, &run(&world));
    worlds.map(check).count()
}

#[test]
fn one_step_at_every_boundary_keeps_the_invariants() {
    let mut worlds = Vec::new();
    for takes in durations() {
        for work in verdicts(&Work::takes(takes)) {
            for work in [work.clone(), work.without_yielding()] {
                for wraps in 0..=2 {
                    for scope in [false, true] {
                        for root in roots() {
                            for stop in stops() {
                                let mut world = world(work.clone());
                                for _ in 0..wraps {
                                    let wrap = middleware(Work::takes(span(10)));
                                    world = world.middleware(wrap);
                                }
                                world.dispose = scope.then(|| Work::takes(span(5)));
                                world.roots.extend(root);
                                world.stops.extend(stop.map(|at| (at, Reason::ForcedShutdown)));
                                worlds.push(world);
                            }
                        }
                    }
                }
            }
        }
    }
    let count = check_all(worlds.into_iter());
    assert_eq!(count, 15 * 4 * 2 * 3 * 2 * 8 * 9);
}
