//! Whatever a log says, judging it neither panics nor changes its mind.

use proptest::prelude::*;

use super::world::*;
use crate::event::{
    Decision, Observation, Opening, RunEvent, Settlement, StepId, StepOutcome, Verdict,
};
use crate::obligation::{Evidence, Obligation, ObligationState};
use crate::timeline::Reason;
use crate::workload::Stage;

/// One entry out of everything that a log can hold; `step` may name a step that does not exist.
fn odd(course: Course, kind: u8, step: u32, micros: u64) -> Course {
    let (id, opening) = (StepId(step), Opening(step));
    let due = at(micros / 2 * 3);
    let verdict =
        [Verdict::Success, failure("NO", step == 1), Verdict::Panic][step as usize % 3].clone();
    match kind {
        0 => course.admit(micros),
        1 => course.see(micros, Observation::Released),
        2 => course.see(micros, Observation::StepStarted { step: id }),
        3 => course.step_ended(micros, id, StepOutcome::Skipped),
        4 => course.see(micros, Observation::ElementReturned { step: id, verdict }),
        5 => course.see(micros, Observation::DestructorPanicked { step: id }),
        6 => course.see(micros, Observation::PipelineReturned),
        7 => course.drop_pipeline(micros),
        8 => course.drop_element(micros, id),
        9 => course.open(micros, step, Obligation::Thread, id),
        10 => {
            let evidence = Evidence::ThreadFinished;
            course.see(micros, Observation::Closed { opening, evidence, cpu: None })
        }
        11 => course.confirm(micros),
        12 => course.publish(micros, root(micros, micros, micros + u64::from(step) * 100_000)),
        13 => course.see(micros, Observation::Stopped { reason: Reason::ForcedShutdown }),
        14 => course.start(micros, id),
        15 => course.decide(micros, Decision::Return { verdict }),
        16 => course.decide(micros, Decision::Signal { reason: Reason::RuntimeFailure, due }),
        17 => course.cut(micros),
        18 => course.call(micros, id, micros + 10),
        19 => course.cut_callback(micros, id),
        20 => course.dispose(micros, id, micros + 10),
        21 => course.settle(micros, Settlement::Retry, micros),
        22 => course.revoke(micros),
        23 => course.decide(micros, Decision::Expire { due }),
        24 => course.freeze(micros),
        25 => course.decide(micros, Decision::FreeSlot),
        26 => course.decide(micros, Decision::Redeliver),
        _ => course.tick(micros),
    }
}

proptest! {
    #[test]
    fn no_log_is_odd_enough_to_panic(
        entries in prop::collection::vec((0_u8..28, 0_u32..9, 0_u64..4_000_000), 0..50),
        in_order in any::<bool>(),
        observed_until in prop::option::of(0_u64..5_000_000),
    ) {
        let mut world = World::new();
        world.middleware("outer", &[Stage::Before, Stage::After, Stage::Terminate]);
        world.middleware("inner", &[Stage::After, Stage::Terminate]);
        world.handler("work", blocking());
        world.scope();
        if let Some(micros) = observed_until {
            world.run(micros, RunEvent::ObservationEnded);
        }
        let mut entries = entries;
        if in_order {
            entries.sort_by_key(|(_, _, micros)| *micros);
        }
        let course = entries
            .into_iter()
            .fold(Course::new().admit(0), |course, (kind, step, micros)| {
                odd(course, kind, step, micros)
            });
        world.log.deliveries.push(course.log);
        let audit = world.judge();
        prop_assert_eq!(&audit, &world.judge());
        for row in &audit.deliveries[0].obligations {
            let is_gap = row.state != ObligationState::Proven;
            prop_assert_eq!(is_gap, row.advice.is_some());
            prop_assert_eq!(row.evidence.is_some(), row.closed_us.is_some());
            prop_assert!(row.evidence.is_none_or(|evidence| row.kind.accepts(evidence)));
        }
    }
}
