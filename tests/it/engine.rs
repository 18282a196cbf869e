//! The engine's rules, one fact each, in worlds small enough to work out by hand.
//!
//! Every expectation was written from the rules and not from a run; every world is checked against
//! the invariants as well.

use std::sync::Arc;
use std::time::Duration;

use deadline_run::engine::record;
use deadline_run::engine::{Admission, Assignment, Delivery};
use deadline_run::event::{DeliveryId, Observation, StepEnd, StepId, StepOutcome, Verdict};
use deadline_run::obligation::Obligation;
use deadline_run::timeline::{Moment, Reason, Root};
use deadline_run::workload::Load;

use crate::invariants::check_invariants;
use crate::simulated::{
    Broker, FOREVER, Middleware, Outcome, Work, World, after, before, run, terminate,
};
use crate::trace::{decisions, trace};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Moment {
    Moment::START + ms(millis)
}

fn sleep(millis: u64) -> Work {
    Work::takes(ms(millis))
}

fn endless() -> Work {
    Work::takes(FOREVER)
}

fn root(initiated: u64, deadline: u64) -> Root {
    Root::new(at(initiated), ms(deadline))
}

/// A delivery with 2 s: `P` is at 1.5 s, the window of a local timeout ends at 1.625 s.
fn two_seconds(handler: Work) -> World {
    World::new(ms(2_000), vec![handler])
}

fn middleware(before: Option<Work>, after: Option<Work>, terminate: Option<Work>) -> Middleware {
    Middleware { before, after, terminate }
}

/// A middleware that is entered and left at once, and terminated in that time.
fn wrap(terminate: Work) -> Middleware {
    middleware(Some(sleep(0)), Some(sleep(0)), Some(terminate))
}

fn outcome(world: &World) -> Outcome {
    let outcome = run(world);
    check_invariants(world, &outcome);
    outcome
}

/// The decisions of a world are exactly these, in this order, at these instants.
fn decides(world: &World, expected: &[&str]) -> Outcome {
    let outcome = outcome(world);
    assert_eq!(decisions(&outcome.log), expected);
    outcome
}

/// So are its decisions with what was seen.
fn goes(world: &World, expected: &[&str]) -> Outcome {
    let outcome = outcome(world);
    assert_eq!(trace(&outcome.log), expected);
    outcome
}

/// These lines stand in the log, in this order, whatever stands between them.
fn shows(world: &World, expected: &[&str]) -> Outcome {
    let outcome = outcome(world);
    let lines = trace(&outcome.log);
    let mut rest = lines.iter();
    for line in expected {
        assert!(rest.any(|found| found == line), "`{line}` is not next in\n{}", lines.join("\n"));
    }
    outcome
}

/// No line of the log has these words in it.
fn never_says(outcome: &Outcome, words: &str) {
    let lines = trace(&outcome.log);
    assert!(!lines.iter().any(|line| line.contains(words)), "`{words}` in\n{}", lines.join("\n"));
}

// Budget

#[test]
fn budget_has_one_deadline_with_a_reserve_of_a_quarter() {
    let world = two_seconds(endless());
    shows(&world, &["1.5s signal DeliveryTimeout", "1.625s cut", "1.625s pipeline dropped"]);
}

#[test]
fn reserve_is_a_second_at_most() {
    let world = World::new(ms(30_000), vec![endless()]);
    // The window: a quarter of the second that is left.
    shows(&world, &["29s signal DeliveryTimeout", "29.25s cut"]);
}

#[test]
fn given_reserve_is_taken_as_it_is() {
    let mut world = two_seconds(endless());
    world.budget.reserve = Some(ms(800));
    shows(&world, &["1.2s signal DeliveryTimeout", "1.4s cut"]);
}

#[test]
fn budget_counts_from_admission() {
    let mut world = two_seconds(endless());
    world.admitted = at(700);
    shows(&world, &["700ms admitted", "2.2s signal DeliveryTimeout", "2.325s cut"]);
}

#[test]
fn stages_share_one_cutoff() {
    let world = World::new(ms(2_000), vec![sleep(1_000), sleep(400), sleep(400)]);
    let expected = [
        "0ns start step 0",
        "1s start step 1",
        "1.4s start step 2",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        "1.625s free slot",
    ];
    decides(&world, &expected);
}

#[test]
fn root_signals_with_a_quarter_of_its_time_left() {
    // From 500 ms with 800 ms: graceful at 1.1 s, hard at 1.3 s; E = 1.1 s + 3/4 of 200 ms.
    let world = two_seconds(endless()).root(root(500, 800));
    shows(&world, &["1.1s signal ShutdownDeadline", "1.1375s cut"]);
}

#[test]
fn root_keeps_two_seconds_at_most() {
    let world = World::new(ms(30_000), vec![endless()]).root(root(0, 12_000));
    // Graceful at 10 s; E is a second later at most.
    shows(&world, &["10s signal ShutdownDeadline", "10.25s cut"]);
}

#[test]
fn later_root_changes_nothing() {
    let world = two_seconds(endless()).root(root(500, 800)).root(root(600, 900));
    shows(&world, &["600ms root", "1.1s signal ShutdownDeadline", "1.1375s cut"]);
}

#[test]
fn earlier_root_takes_the_place_of_a_later_one() {
    let world = two_seconds(endless()).root(root(500, 800)).root(root(600, 400));
    shows(&world, &["900ms signal ShutdownDeadline", "918.75ms cut"]);
}

#[test]
fn delivery_admitted_under_a_root_has_what_the_root_has_left() {
    // The root is hard at 1 s; 400 ms of it are left. R = 100 ms, so P = 900 ms, while the root is
    // graceful at 750 ms.
    let mut world = two_seconds(endless()).root(root(0, 1_000));
    world.admitted = at(600);
    // E = 750 ms + 3/4 of 250 ms.
    shows(&world, &["750ms signal ShutdownDeadline", "796.875ms cut"]);
}

#[test]
fn given_reserve_is_cut_to_a_quarter_of_what_a_root_leaves() {
    // Hard at 10 s, graceful at 8 s. Admitted at 6 s with 3 s of its own: H = 9 s, P = 7.5 s as given.
    let mut world = World::new(ms(3_000), vec![endless()]).root(root(0, 10_000));
    world.budget.reserve = Some(ms(1_500));
    world.admitted = at(6_000);
    shows(&world, &["7.5s signal DeliveryTimeout"]);
    // Admitted at 7.6 s: 2.4 s are left, a quarter is 600 ms, P = 9.4 s, and graceful is first.
    world.admitted = at(7_600);
    shows(&world, &["8s signal ShutdownDeadline"]);
    // Admitted past graceful: signalled at once, as of the cutoff.
    world.admitted = at(8_500);
    let world_outcome =
        shows(&world, &["8.5s signal ShutdownDeadline, due 8s", "8.5s cut, due 8.25s"]);
    assert!(world_outcome.closed);
}

// Normal course

#[test]
fn course_enters_outermost_first_and_leaves_innermost_first() {
    let wrap = || middleware(Some(sleep(10)), Some(sleep(10)), None);
    let world = World::new(ms(2_000), vec![sleep(10), sleep(10)])
        .middleware(wrap())
        .middleware(wrap())
        .dispose(sleep(5))
        .broker(0);
    let expected = [
        "0ns start before 0",
        "10ms start before 1",
        "20ms start step 0",
        "30ms start step 1",
        "40ms start after 1",
        "50ms start after 0",
        "60ms return success",
        "60ms dispose until 2s",
        "65ms settle Ack until 5.065s",
        "75ms free slot",
    ];
    assert!(decides(&world, &expected).closed);
}

#[test]
fn failed_step_is_the_last_of_the_way_in() {
    for (says, result) in [
        (sleep(10).fails(true), "retryable failure"),
        (sleep(10).fails(false), "failure"),
        (sleep(10).panics(), "panic"),
    ] {
        let world = World::new(ms(2_000), vec![says, sleep(10)])
            .middleware(wrap(endless()))
            .middleware(wrap(endless()));
        let expected = [
            "0ns start before 0",
            "0ns start before 1",
            "0ns start step 0",
            "10ms start after 1",
            "10ms start after 0",
            &format!("10ms return {result}"),
            "10ms free slot",
        ];
        decides(&world, &expected);
    }
}

#[test]
fn failed_before_is_not_entered() {
    let world = two_seconds(sleep(10)).middleware(wrap(endless())).middleware(middleware(
        Some(sleep(7).fails(false)),
        Some(sleep(0)),
        Some(endless()),
    ));
    let expected = [
        "0ns start before 0",
        "0ns start before 1",
        "7ms start after 0",
        "7ms return failure",
        "7ms free slot",
    ];
    decides(&world, &expected);
}

#[test]
fn failed_after_fails_a_success_and_outer_ones_still_run() {
    let world = two_seconds(sleep(10))
        .middleware(wrap(endless()))
        .middleware(middleware(None, Some(sleep(3).fails(true)), Some(endless())))
        .broker(0);
    let expected = [
        "13ms start after 0",
        "13ms after 0 says success",
        "13ms return retryable failure",
        "13ms settle DeadLetter until 5.013s",
    ];
    never_says(&shows(&world, &expected), "call");
}

#[test]
fn failed_after_never_replaces_an_earlier_failure() {
    let world = two_seconds(sleep(10).fails(false)).middleware(middleware(
        None,
        Some(sleep(3).fails(true)),
        None,
    ));
    shows(&world, &["13ms return failure"]);
}

#[test]
fn panicking_after_ends_the_unwind_and_is_terminated_with_the_outer_ones() {
    let panicking = middleware(None, Some(sleep(3).panics()), Some(sleep(2)));
    let world = two_seconds(sleep(10))
        .middleware(wrap(sleep(2)))
        .middleware(panicking)
        .middleware(wrap(sleep(2)))
        .broker(0);
    // The innermost was left in order. Chain: 2 s - 250 ms - 13 ms in two shares.
    let expected = [
        "0ns start before 0",
        "0ns start before 2",
        "0ns start step 0",
        "10ms start after 2",
        "10ms start after 1",
        "13ms return panic",
        "13ms call terminate 1 until 881.5ms",
        "15ms call terminate 0 until 1.75s",
        "17ms settle DeadLetter until 5.017s",
        "27ms free slot",
    ];
    decides(&world, &expected);
}

#[test]
fn absent_parts_start_nothing_and_are_never_due() {
    let world = two_seconds(endless())
        .middleware(middleware(None, None, None))
        .middleware(middleware(None, Some(sleep(1)), None))
        .middleware(middleware(Some(sleep(1)), None, Some(sleep(1))));
    let expected = [
        "0ns start before 2",
        "1ms start step 0",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        // Chain: 2 s less a quarter of 375 ms.
        "1.625s call terminate 2 until 1.90625s",
        "1.626s free slot",
    ];
    decides(&world, &expected);
}

#[test]
fn absent_after_is_complete_once_the_way_out_reaches_it() {
    let panicking = middleware(None, Some(sleep(1).panics()), None);
    let world = two_seconds(sleep(1)).middleware(panicking).middleware(middleware(
        None,
        None,
        Some(endless()),
    ));
    never_says(&shows(&world, &["2ms return panic"]), "call");
}

// Signal

#[test]
fn root_graceful_wins_a_tie_with_the_normal_cutoff() {
    // Graceful at 500 ms + 3/4 * 1333.333333 ms would not be whole: hard at 1.9 s, graceful at 1.5 s.
    let tie = Root { initiated: at(300), graceful_cutoff: at(1_500), hard_cutoff: at(1_900) };
    let world = two_seconds(endless()).root(tie);
    // E = 1.5 s + 3/4 of 400 ms = 1.8 s; a quarter of 300 ms.
    shows(&world, &["1.5s signal ShutdownDeadline", "1.575s cut"]);
    let later = Root { graceful_cutoff: at(1_501), ..tie };
    // E is the root's hard cutoff all the same.
    let world = two_seconds(endless()).root(later);
    shows(&world, &["1.5s signal DeliveryTimeout", "1.6s cut"]);
}

#[test]
fn each_reason_signals_at_once_with_a_window_of_its_own() {
    for reason in [Reason::ForcedShutdown, Reason::RuntimeFailure, Reason::RuntimeCancellation] {
        let world = two_seconds(endless()).stop(at(400), reason).broker(1);
        // E = 1.4 s; a quarter of a second.
        let expected = [
            &format!("400ms signal {reason:?}"),
            "650ms cut",
            "650ms settle Released",
            "650ms free slot",
        ];
        let outcome = shows(&world, &expected);
        assert!(outcome.closed);
    }
}

#[test]
fn first_reason_stays_and_its_window_is_not_restarted() {
    let world = two_seconds(endless())
        .stop(at(400), Reason::RuntimeFailure)
        .stop(at(500), Reason::ForcedShutdown);
    shows(&world, &["400ms signal RuntimeFailure", "500ms stopped ForcedShutdown", "650ms cut"]);
    let world = two_seconds(endless()).stop(at(1_550), Reason::ForcedShutdown);
    shows(&world, &["1.5s signal DeliveryTimeout", "1.625s cut"]);
}

#[test]
fn stop_at_the_very_cutoff_comes_second() {
    let world = two_seconds(endless()).stop(at(1_500), Reason::ForcedShutdown);
    shows(&world, &["1.5s signal DeliveryTimeout", "1.5s stopped ForcedShutdown", "1.625s cut"]);
}

#[test]
fn late_decision_records_the_cutoff_and_eats_into_the_window() {
    let mut world = two_seconds(endless());
    world.lateness = ms(40);
    shows(&world, &["1.54s signal DeliveryTimeout, due 1.5s", "1.665s cut, due 1.625s"]);
}

#[test]
fn released_delivery_never_starts() {
    let mut machine = Delivery::new(Arc::new(two_seconds(sleep(1)).broker(0).plan()), 1);
    let mut log = Vec::new();
    record(&mut machine, at(300), Observation::Released, &mut log);
    assert_eq!(trace(&log), ["300ms released"]);
    assert!(machine.is_closed() && machine.due().is_none());
    assert_eq!(machine.assignment(), Assignment::Nothing);
}

#[test]
fn closed_admission_leaves_the_started_alone() {
    let mut admission =
        Admission::new(&Load { deliveries: 3, concurrency: 1, pace: None, seed: 7 });
    assert_eq!(admission.admit(Moment::START).map(|ticket| ticket.id), Some(DeliveryId(1)));
    let released: Vec<u32> = admission.close(Moment::START).map(|ticket| ticket.id.0).collect();
    assert_eq!((released, admission.in_flight()), (vec![2, 3], 1));
}

// Cooperative window

#[test]
fn window_after_a_local_timeout_is_a_sixteenth_below_four_seconds() {
    for (total, signal, cut) in [
        (100, "75ms", "81.25ms"),
        (2_000, "1.5s", "1.625s"),
        (4_000, "3s", "3.25s"),
        (10_000, "9s", "9.25s"),
    ] {
        let world = World::new(ms(total), vec![endless()]);
        shows(&world, &[&format!("{signal} signal DeliveryTimeout"), &format!("{cut} cut")]);
    }
}

#[test]
fn given_window_is_a_cap_and_no_more() {
    for (cap, cut) in [(20, "1.52s"), (125, "1.625s"), (400, "1.625s")] {
        let mut world = two_seconds(endless());
        world.budget.window_cap = ms(cap);
        shows(&world, &[&format!("{cut} cut")]);
    }
}

#[test]
fn result_ready_at_the_normal_cutoff_needs_no_signal() {
    let outcome = shows(&two_seconds(sleep(1_500)), &["1.5s return success"]);
    never_says(&outcome, "signal");
    let late = World::new(ms(2_000), vec![Work::takes(ms(1_500) + Duration::from_nanos(1))]);
    shows(&late, &["1.5s signal DeliveryTimeout", "1.500000001s return success"]);
}

#[test]
fn whole_course_ready_at_the_normal_cutoff_needs_no_signal() {
    let world = two_seconds(sleep(1_500)).middleware(wrap(endless()));
    let outcome = shows(&world, &["1.5s start after 0", "1.5s return success"]);
    never_says(&outcome, "signal");
}

#[test]
fn panicking_destructor_at_the_normal_cutoff_is_part_of_the_end() {
    let world = two_seconds(sleep(1_500).destructor_panics());
    let expected = ["1.5s destructor of step 0 panics", "1.5s return panic"];
    never_says(&shows(&world, &expected), "signal");
}

#[test]
fn degraded_result_ready_at_the_normal_cutoff_needs_no_signal() {
    let mut machine = Delivery::new(Arc::new(two_seconds(sleep(1)).plan()), 1);
    let mut log = Vec::new();
    record(&mut machine, at(0), Observation::Admitted { root: None }, &mut log);
    let step = StepId(0);
    let end = StepEnd {
        step,
        outcome: StepOutcome::Failure,
        code: Some("BROKEN".into()),
        polls: 1,
        left: None,
        over: None,
        traces: None,
    };
    record(&mut machine, at(1_500), Observation::StepEnded(Arc::new(end)), &mut log);
    record(&mut machine, at(1_500), Observation::Degraded { step }, &mut log);
    let verdict = Verdict::Success;
    record(&mut machine, at(1_500), Observation::ElementReturned { step, verdict }, &mut log);
    let expected =
        ["0ns admitted", "0ns start step 0", "1.5s step 0 says success", "1.5s return success"];
    assert_eq!(trace(&log), expected);
}

#[test]
fn result_ready_at_the_end_of_the_window_counts() {
    let outcome = shows(&two_seconds(sleep(1_625)), &["1.625s return success"]);
    never_says(&outcome, "cut");
    let late = World::new(ms(2_000), vec![Work::takes(ms(1_625) + Duration::from_nanos(1))]);
    never_says(&shows(&late, &["1.625s cut"]), "return");
}

#[test]
fn what_needs_one_more_poll_at_the_cutoff_is_not_ready() {
    // The control thread came first at that very instant; the poll after it is another poll.
    let mut machine = Delivery::new(Arc::new(two_seconds(sleep(1)).plan()), 1);
    let mut log = Vec::new();
    record(&mut machine, at(0), Observation::Admitted { root: None }, &mut log);
    record(&mut machine, at(1_500), Observation::Tick, &mut log);
    record(&mut machine, at(1_625), Observation::Tick, &mut log);
    assert_eq!(machine.assignment(), Assignment::Nothing);
    assert!(!machine.may_start_in_course());
    let expected = ["0ns start step 0", "1.5s signal DeliveryTimeout", "1.625s cut"];
    assert_eq!(decisions(&log), expected);
}

#[test]
fn result_in_the_window_is_the_result_whatever_it_is() {
    for (work, result, settlement) in [
        (sleep(1_550), "success", "Ack"),
        (sleep(1_550).fails(true), "retryable failure", "Retry"),
        (sleep(1_550).fails(false), "failure", "DeadLetter"),
        (sleep(1_550).panics(), "panic", "Retry"),
    ] {
        let expected = [
            "1.5s signal DeliveryTimeout",
            &format!("1.55s return {result}"),
            &format!("1.55s settle {settlement} until 6.55s"),
        ];
        never_says(&shows(&two_seconds(work).broker(1), &expected), "cut");
    }
}

#[test]
fn later_stages_run_inside_the_window() {
    let world = World::new(ms(2_000), vec![sleep(1_510), sleep(10)]).middleware(wrap(endless()));
    let expected = ["1.51s start step 1", "1.52s start after 0", "1.52s return success"];
    shows(&world, &expected);
}

#[test]
fn pending_after_at_the_end_of_the_window_is_an_interruption() {
    let slow = middleware(None, Some(sleep(200)), Some(sleep(1)));
    let world = two_seconds(sleep(1_490)).middleware(slow).broker(0);
    let expected = [
        "1.49s start after 0",
        "1.625s cut",
        "1.625s call terminate 0 until 1.90625s",
        "1.626s settle DeadLetter until 6.626s",
    ];
    never_says(&shows(&world, &expected), "return");
}

#[test]
fn root_published_in_the_window_shortens_it() {
    // E = hard = 1.7 s; the window is a quarter of 200 ms from the original 1.5 s.
    let world = two_seconds(endless()).root(root(1_520, 180));
    shows(&world, &["1.5s signal DeliveryTimeout", "1.52s root", "1.55s cut"]);
}

#[test]
fn root_published_past_its_own_window_cuts_now() {
    // Hard at 1.68 s: the window would have ended at 1.545 s.
    let world = two_seconds(endless()).root(root(1_580, 100));
    let expected = [
        "1.5s signal DeliveryTimeout",
        "1.58s root",
        "1.58s cut, due 1.545s",
        "1.58s pipeline dropped",
    ];
    shows(&world, &expected);
}

#[test]
fn root_published_with_more_time_lengthens_nothing() {
    let world = two_seconds(endless()).root(root(1_510, 30_000));
    shows(&world, &["1.5s signal DeliveryTimeout", "1.625s cut"]);
}

#[test]
fn window_is_never_reopened() {
    let world = two_seconds(endless().drop_takes(ms(100)))
        .root(root(1_580, 100))
        .root(root(1_590, 1_000))
        .stop(at(1_600), Reason::ForcedShutdown);
    let outcome = outcome(&world);
    let cuts = trace(&outcome.log).iter().filter(|line| line.contains("cut")).count();
    assert_eq!(cuts, 1);
}

// Cutting off

#[test]
fn drop_is_evident_at_its_end() {
    let world = two_seconds(endless().drop_takes(ms(30))).dispose(sleep(1));
    shows(&world, &["1.625s cut", "1.655s pipeline dropped", "1.655s dispose until 2s"]);
}

#[test]
fn panicking_destructor_leaves_a_frame_that_is_gone() {
    let world = two_seconds(endless().destructor_panics()).middleware(wrap(sleep(1))).broker(0);
    let expected = [
        "1.625s cut",
        "1.625s destructor of step 0 panics",
        "1.625s pipeline dropped",
        "1.625s call terminate 0 until 1.90625s",
        "1.626s settle DeadLetter until 6.626s",
    ];
    shows(&world, &expected);
}

#[test]
fn unreleased_execution_is_revoked_and_nothing_is_called() {
    let world = two_seconds(sleep(2_700).without_yielding())
        .middleware(wrap(sleep(1)))
        .dispose(sleep(1))
        .broker(1);
    let expected = [
        "0ns admitted",
        "0ns start before 0",
        "0ns before 0 says success",
        "0ns start step 0",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        "2s freeze",
        "2s revoke",
        "2.7s step 0 says success",
        "2.7s pipeline dropped",
        "2.7s free slot",
    ];
    assert!(goes(&world, &expected).closed);
}

#[test]
fn unreleased_execution_holds_its_slot_until_observation_ends() {
    let world = two_seconds(endless().without_yielding()).broker(0);
    let expected = [
        "0ns start step 0",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        "2s freeze",
        "2s revoke",
        "4s free slot",
    ];
    assert!(!decides(&world, &expected).closed);
}

#[test]
fn root_published_past_the_end_does_not_move_it() {
    // E = 2 s, for want of a root; this one, known in time, would have made it 1.95 s.
    let world = two_seconds(endless().without_yielding())
        .stop(at(1_200), Reason::RuntimeFailure)
        .root(Root::new(at(2_100), ms(100)));
    let before_it =
        two_seconds(endless().without_yielding()).stop(at(1_200), Reason::RuntimeFailure);
    shows(&before_it, &["1.2s signal RuntimeFailure", "2s freeze", "4s free slot"]);
    shows(&world, &["1.2s signal RuntimeFailure", "2s freeze", "2.1s root", "4s free slot"]);
}

#[test]
fn release_at_the_end_is_in_time_and_past_it_is_not() {
    let world = |drop_takes| {
        let handler = endless().drop_takes(drop_takes);
        two_seconds(handler).middleware(wrap(sleep(1))).broker(0)
    };
    // At E itself nothing is left of the chain.
    let expected =
        ["1.625s cut", "2s pipeline dropped", "2s settle DeadLetter until 7s", "2s freeze"];
    never_says(&shows(&world(ms(375)), &expected), "call");
    let expected = ["2s freeze", "2s revoke", "2.000000001s pipeline dropped"];
    shows(&world(ms(375) + Duration::from_nanos(1)), &expected);
}

#[test]
fn panicking_destructor_that_ends_at_the_end_is_a_release_in_time() {
    let handler = endless().drop_takes(ms(375)).destructor_panics();
    let outcome = shows(
        &two_seconds(handler).broker(0),
        &["2s pipeline dropped", "2s settle DeadLetter until 7s", "2s freeze"],
    );
    never_says(&outcome, "revoke");
}

#[test]
fn returned_pipeline_whose_frame_does_not_go_is_revoked() {
    let mut world = two_seconds(sleep(10)).broker(0);
    world.frame_takes = ms(2_500);
    let expected = [
        "10ms return success",
        "2s freeze",
        "2s revoke",
        "2.51s pipeline returned",
        "2.51s free slot",
    ];
    never_says(&shows(&world, &expected), "signal");
}

#[test]
fn overrunning_poll_that_returns_the_whole_pipeline_is_the_release() {
    let world = two_seconds(sleep(1_700).without_yielding())
        .middleware(middleware(Some(sleep(0)), None, Some(sleep(1))))
        .dispose(sleep(1))
        .broker(0);
    // The absent `after` was reached in that poll: nothing is left to terminate.
    let expected = [
        "1.625s cut",
        "1.7s step 0 says success",
        "1.7s return success",
        "1.7s pipeline returned",
        "1.7s dispose until 2s",
        "1.701s settle DeadLetter until 6.701s",
    ];
    never_says(&shows(&world, &expected), "call");
}

#[test]
fn overrunning_poll_that_only_ends_a_step_starts_nothing() {
    let world = World::new(ms(2_000), vec![sleep(1_700).without_yielding(), sleep(1)])
        .middleware(wrap(sleep(1)))
        .broker(0);
    let expected = [
        "0ns start before 0",
        "0ns start step 0",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        // Chain: 2 s less a quarter of 300 ms.
        "1.7s call terminate 0 until 1.925s",
        "1.701s settle DeadLetter until 6.701s",
        "1.711s free slot",
    ];
    decides(&world, &expected);
    let world = two_seconds(sleep(1_700).without_yielding()).middleware(wrap(sleep(1)));
    shows(
        &world,
        &[
            "1.7s step 0 says success",
            "1.7s pipeline dropped",
            "1.7s call terminate 0 until 1.925s",
        ],
    );
}

#[test]
fn before_that_overruns_the_window_enters_its_middleware() {
    let overrunning = sleep(1_700).without_yielding();
    let world =
        two_seconds(sleep(1)).middleware(middleware(Some(overrunning), None, Some(sleep(1))));
    shows(
        &world,
        &["1.625s cut", "1.7s before 0 says success", "1.7s call terminate 0 until 1.925s"],
    );
}

#[test]
fn detached_work_delays_neither_cleanup_nor_settlement_nor_the_slot() {
    let world = two_seconds(endless().opens(Obligation::Task, ms(2_500))).broker(0);
    let expected = [
        "0ns admitted",
        "0ns start step 0",
        "0ns opened 0",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        "1.625s pipeline dropped",
        "1.625s settle DeadLetter until 6.625s",
        "1.635s confirmed",
        "1.635s free slot",
        "2s freeze",
        "2.5s closed 0",
    ];
    assert!(goes(&world, &expected).closed);
}

#[test]
fn detached_work_is_signalled_at_the_normal_cutoff_of_a_pipeline_that_has_returned() {
    let world = two_seconds(sleep(10).opens(Obligation::Thread, ms(1_800))).broker(0);
    let expected = [
        "0ns start step 0",
        "10ms return success",
        "10ms settle Ack until 5.01s",
        "20ms free slot",
        "1.5s signal detached",
    ];
    assert!(decides(&world, &expected).closed);
}

#[test]
fn stop_reaches_what_is_detached_from_a_pipeline_that_has_returned() {
    let world = two_seconds(sleep(10).opens(Obligation::Thread, ms(1_800)))
        .stop(at(700), Reason::ForcedShutdown);
    let expected =
        ["0ns start step 0", "10ms return success", "10ms free slot", "700ms signal detached"];
    decides(&world, &expected);
}

// Cleanup

#[test]
fn callbacks_run_innermost_first_in_equal_shares() {
    let world = two_seconds(endless())
        .middleware(wrap(sleep(10)))
        .middleware(wrap(sleep(10)))
        .middleware(wrap(sleep(10)))
        .dispose(sleep(10))
        .broker(0);
    // 375 ms are left; the chain ends at 2 s - 93.75 ms, 281.25 ms from the cut.
    let expected = [
        "1.625s cut",
        "1.625s call terminate 2 until 1.71875s",
        "1.635s call terminate 1 until 1.770625s",
        "1.645s call terminate 0 until 1.90625s",
        "1.655s dispose until 2s",
        "1.665s settle DeadLetter until 6.665s",
    ];
    shows(&world, &expected);
}

#[test]
fn disposal_keeps_a_quarter_of_a_second_at_most() {
    let world = World::new(ms(30_000), vec![sleep(1_000)])
        .middleware(middleware(None, Some(sleep(0).panics()), Some(sleep(1))))
        .dispose(sleep(1));
    shows(&world, &["1s call terminate 0 until 29.75s", "1.001s dispose until 30s"]);
}

#[test]
fn only_entered_middleware_is_terminated() {
    let world = two_seconds(sleep(1))
        .middleware(wrap(sleep(1)))
        .middleware(middleware(Some(endless()), None, Some(sleep(1))))
        .middleware(wrap(sleep(1)));
    let expected = [
        "0ns start before 0",
        "0ns start before 1",
        "1.5s signal DeliveryTimeout",
        "1.625s cut",
        "1.625s call terminate 0 until 1.90625s",
        "1.626s free slot",
    ];
    decides(&world, &expected);
}

#[test]
fn middleware_that_was_left_is_not_terminated() {
    let world = two_seconds(sleep(1_490))
        .middleware(wrap(sleep(1)))
        .middleware(middleware(None, Some(endless()), Some(sleep(1))))
        .middleware(middleware(None, Some(sleep(1).fails(true)), Some(sleep(1))));
    let expected = [
        "1.491s start after 1",
        "1.625s cut",
        "1.625s call terminate 1 until 1.765625s",
        "1.626s call terminate 0 until 1.90625s",
    ];
    never_says(&shows(&world, &expected), "terminate 2");
}

#[test]
fn overrunning_callback_is_dropped_before_the_next_starts() {
    let world = two_seconds(endless())
        .middleware(wrap(sleep(10)))
        .middleware(wrap(endless().drop_takes(ms(20))))
        .broker(0);
    let expected = [
        "1.625s call terminate 1 until 1.765625s",
        "1.765625s cut terminate 1",
        "1.785625s terminate 1 dropped",
        "1.785625s call terminate 0 until 1.90625s",
        "1.795625s settle DeadLetter until 6.795625s",
    ];
    shows(&world, &expected);
}

#[test]
fn callback_that_ends_with_its_share_was_in_time() {
    let exact = Work::takes(Duration::from_micros(140_625));
    let world = two_seconds(endless()).middleware(wrap(sleep(10))).middleware(wrap(exact));
    let outcome = shows(
        &world,
        &["1.765625s terminate 1 says success", "1.765625s call terminate 0 until 1.90625s"],
    );
    never_says(&outcome, "cut terminate");
}

#[test]
fn failed_callback_does_not_stop_the_others() {
    for broken in [sleep(5).fails(true), sleep(5).panics()] {
        let world = two_seconds(endless())
            .middleware(wrap(sleep(5)))
            .middleware(wrap(broken))
            .dispose(sleep(5));
        let expected =
            ["1.63s call terminate 0 until 1.90625s", "1.635s dispose until 2s", "1.64s free slot"];
        let outcome = shows(&world, &expected);
        let calls = trace(&outcome.log).iter().filter(|line| line.contains("call")).count();
        assert_eq!(calls, 2);
    }
}

#[test]
fn callbacks_that_cannot_start_in_time_give_way_to_the_disposal() {
    // The inner one does not yield, and keeps the whole chain.
    let world = two_seconds(endless())
        .middleware(wrap(sleep(1)))
        .middleware(wrap(sleep(300).without_yielding()))
        .dispose(sleep(10))
        .broker(0);
    let expected = [
        "1.625s call terminate 1 until 1.765625s",
        "1.765625s cut terminate 1",
        "1.925s terminate 1 says success",
        "1.925s dispose until 2s",
        "1.935s settle DeadLetter until 6.935s",
    ];
    never_says(&shows(&world, &expected), "call terminate 0");
}

#[test]
fn callback_that_outlives_the_delivery_leaves_the_scope_alone() {
    let world = two_seconds(endless())
        .middleware(wrap(sleep(1)))
        .middleware(wrap(sleep(600).without_yielding()))
        .dispose(sleep(10))
        .broker(0);
    let expected = [
        "1.765625s cut terminate 1",
        "2s freeze",
        "2s settle DeadLetter until 7s",
        "2.01s confirmed",
        "2.225s terminate 1 says success",
        "2.225s free slot",
    ];
    let outcome = shows(&world, &expected);
    never_says(&outcome, "dispose");
    assert!(outcome.closed);
}

#[test]
fn disposer_is_cut_at_the_end() {
    let world = two_seconds(sleep(10)).dispose(endless()).broker(0);
    let expected = [
        "10ms dispose until 2s",
        "2s cut dispose",
        "2s freeze",
        "2s settle DeadLetter until 7s",
        "2s dispose dropped",
        "2.01s confirmed",
        "2.01s free slot",
    ];
    shows(&world, &expected);
}

#[test]
fn disposer_that_ends_at_the_end_was_in_time() {
    let outcome = shows(
        &two_seconds(sleep(10)).dispose(sleep(1_990)).broker(0),
        &["2s dispose says success", "2s settle Ack until 7s"],
    );
    never_says(&outcome, "cut");
}

#[test]
fn root_published_in_cleanup_brings_its_end_forward() {
    let world = two_seconds(endless())
        .middleware(wrap(endless()))
        .dispose(endless())
        .root(root(1_650, 100));
    let expected =
        ["1.625s call terminate 0 until 1.90625s", "1.75s cut terminate 0", "1.75s freeze"];
    never_says(&shows(&world, &expected), "dispose");
    let world = two_seconds(sleep(10)).dispose(endless()).root(root(1_650, 100));
    shows(&world, &["10ms dispose until 2s", "1.75s cut dispose", "1.75s freeze"]);
}

#[test]
fn signal_of_the_execution_does_not_reach_its_cleanup() {
    let world = two_seconds(sleep(10)).dispose(sleep(1_700)).stop(at(700), Reason::ForcedShutdown);
    let expected =
        ["0ns start step 0", "10ms return success", "10ms dispose until 2s", "1.71s free slot"];
    decides(&world, &expected);
}

// Settlement

/// What is settled, for every result, reason, cleanup and number of attempts left (M1, K5).
#[test]
fn settlement_follows_result_then_reason_then_cleanup() {
    let forced = |world: World| world.stop(at(100), Reason::ForcedShutdown);
    let asis = |world: World| world;
    type Table<'a> = &'a [(&'a str, Work, fn(World) -> World, bool, &'a str, &'a str)];
    let rows: Table = &[
        ("success", sleep(10), asis, true, "Ack", "Ack"),
        ("success, cleanup failed", sleep(10), asis, false, "Retry", "DeadLetter"),
        ("permanent", sleep(10).fails(false), asis, true, "DeadLetter", "DeadLetter"),
        (
            "permanent, cleanup failed",
            sleep(10).fails(false),
            asis,
            false,
            "DeadLetter",
            "DeadLetter",
        ),
        ("retryable", sleep(10).fails(true), asis, true, "Retry", "DeadLetter"),
        ("retryable, cleanup failed", sleep(10).fails(true), asis, false, "Retry", "DeadLetter"),
        ("panic", sleep(10).panics(), asis, true, "Retry", "DeadLetter"),
        ("panic, cleanup failed", sleep(10).panics(), asis, false, "Retry", "DeadLetter"),
        ("timeout", endless(), asis, true, "Retry", "DeadLetter"),
        ("timeout, cleanup failed", endless(), asis, false, "Retry", "DeadLetter"),
        ("forced", endless(), forced, true, "Released", "Released"),
        ("forced, cleanup failed", endless(), forced, false, "Released", "Released"),
        ("forced, success in the window", sleep(120), forced, true, "Ack", "Ack"),
        (
            "forced, retryable in the window",
            sleep(120).fails(true),
            forced,
            true,
            "Retry",
            "DeadLetter",
        ),
    ];
    for (what, handler, change, cleans_up, with_more, at_last) in rows {
        let disposer = if *cleans_up { sleep(1) } else { sleep(1).fails(true) };
        let world = change(two_seconds(handler.clone()).dispose(disposer)).broker(1);
        for (attempt, expected) in [(1, with_more), (2, at_last)] {
            let outcome = outcome(&World { attempt, ..world.clone() });
            let settled: Vec<String> = decisions(&outcome.log)
                .iter()
                .filter_map(|line| line.split_once("settle "))
                .map(|(_, rest)| rest.split(' ').next().unwrap_or(rest).to_string())
                .collect();
            assert_eq!(settled, [*expected], "{what}, attempt {attempt}");
            let comes_again = decisions(&outcome.log).iter().any(|line| line.contains("redeliver"));
            assert_eq!(comes_again, *expected == "Retry", "{what}, attempt {attempt}");
        }
    }
}

#[test]
fn shutdown_and_runtime_reasons_release_the_message() {
    let shutdown = two_seconds(endless()).root(root(0, 800)).broker(1);
    shows(
        &shutdown,
        &["600ms signal ShutdownDeadline", "637.5ms settle Released", "637.5ms free slot"],
    );
    let failure = two_seconds(endless()).stop(at(1), Reason::RuntimeCancellation).broker(1);
    shows(&failure, &["251ms settle Released"]);
}

#[test]
fn redelivery_follows_the_confirmation() {
    let world = two_seconds(sleep(10).fails(true)).broker(1);
    let expected = [
        "0ns start step 0",
        "10ms return retryable failure",
        "10ms settle Retry until 5.01s",
        "20ms redeliver",
        "20ms free slot",
    ];
    assert!(decides(&world, &expected).closed);
}

fn slow_broker(timeout: u64, confirms_in: Duration) -> Broker {
    Broker { timeout: ms(timeout), redeliveries: 1, confirms_in }
}

#[test]
fn settlement_without_a_word_expires() {
    let world = two_seconds(sleep(10)).broker_with(slow_broker(300, FOREVER));
    let expected = [
        "0ns start step 0",
        "10ms return success",
        "10ms settle Ack until 310ms",
        "310ms expire",
        "310ms free slot",
        "2s freeze",
    ];
    assert!(!decides(&world, &expected).closed);
}

#[test]
fn confirmation_at_the_last_instant_counts() {
    let world = two_seconds(sleep(10)).broker_with(slow_broker(300, ms(300)));
    never_says(&shows(&world, &["310ms confirmed", "310ms free slot"]), "expire");
}

#[test]
fn late_confirmation_still_holds_for_the_message() {
    let world = two_seconds(sleep(10).fails(true)).broker_with(slow_broker(300, ms(400)));
    let expected = ["310ms expire", "310ms free slot", "410ms confirmed", "410ms redeliver"];
    assert!(shows(&world, &expected).closed);
}

#[test]
fn settlement_is_capped_by_the_root_and_not_added_to_it() {
    let world =
        two_seconds(sleep(510)).root(root(500, 800)).broker_with(slow_broker(5_000, FOREVER));
    shows(&world, &["510ms settle Ack until 1.3s", "1.3s expire"]);
    // A root that comes later shortens what is under way.
    let world =
        two_seconds(sleep(10)).root(root(500, 800)).broker_with(slow_broker(5_000, FOREVER));
    shows(&world, &["10ms settle Ack until 5.01s", "500ms root", "1.3s expire"]);
}

#[test]
fn settlement_decided_past_the_root_was_due_at_the_root() {
    let mut world = two_seconds(sleep(510)).root(root(500, 800)).dispose(endless());
    world.lateness = ms(40);
    let world = world.broker_with(slow_broker(5_000, FOREVER));
    shows(&world, &["1.34s settle Retry until 1.3s", "1.34s expire, due 1.3s"]);
}

#[test]
fn settlement_may_outlast_the_delivery() {
    let world = two_seconds(sleep(10)).broker_with(slow_broker(5_000, ms(3_000)));
    shows(&world, &["2s freeze", "3.01s confirmed", "3.01s free slot"]);
}

#[test]
fn slot_is_held_through_a_settlement_although_the_disposer_does_not_go() {
    let world = |confirms_in| {
        two_seconds(sleep(10))
            .dispose(endless().drop_takes(FOREVER))
            .broker_with(slow_broker(5_000, confirms_in))
    };
    // Observation alone would let the slot go at 4 s.
    let unheard = outcome(&world(FOREVER));
    shows(&world(FOREVER), &["2s settle Retry until 7s", "7s expire", "7s free slot"]);
    never_says(&unheard, "4s free slot");
    shows(&world(ms(3_000)), &["5s confirmed", "5s redeliver", "5s free slot"]);
    shows(&world(ms(1_000)), &["3s confirmed", "3s redeliver", "4s free slot"]);
}

// Force, in every phase

#[test]
fn force_before_the_signal_is_the_signal() {
    let world = two_seconds(endless()).root(root(500, 800)).stop(at(600), Reason::ForcedShutdown);
    // E = 600 ms + 3/4 of 700 ms = 1.125 s; a quarter of 525 ms.
    shows(&world, &["600ms signal ForcedShutdown", "731.25ms cut", "731.25ms pipeline dropped"]);
}

#[test]
fn force_changes_nothing_once_a_signal_or_a_result_is_there() {
    let busy = sleep(1_800).without_yielding();
    let worlds = [
        ("window", 1_550, two_seconds(endless())),
        ("cut", 1_700, two_seconds(busy.clone()).middleware(wrap(sleep(1)))),
        ("callback", 1_700, two_seconds(endless()).middleware(wrap(sleep(100)))),
        ("disposal", 100, two_seconds(sleep(10)).dispose(sleep(200))),
        ("settling", 15, two_seconds(sleep(10))),
        ("overdue", 2_100, two_seconds(sleep(2_500).without_yielding())),
    ];
    for (phase, millis, world) in worlds {
        let world = world.broker(1);
        let undisturbed = decisions(&outcome(&world).log);
        let forced = world.stop(at(millis), Reason::ForcedShutdown);
        assert_eq!(decisions(&outcome(&forced).log), undisturbed, "{phase}");
    }
}

#[test]
fn force_while_the_frame_goes_changes_nothing() {
    let mut world = two_seconds(sleep(10)).broker(0);
    world.frame_takes = ms(100);
    let undisturbed = decisions(&outcome(&world).log);
    let forced = world.stop(at(50), Reason::ForcedShutdown);
    assert_eq!(decisions(&outcome(&forced).log), undisturbed);
}

// Names that the traces use are the steps that the engine is given.

#[test]
fn plan_of_a_world_names_every_part() {
    let plan = two_seconds(sleep(1)).middleware(wrap(sleep(1))).plan();
    let shape = plan.middleware[0];
    assert_eq!(
        (shape.before, shape.after, shape.terminate),
        (Some(before(0)), Some(after(0)), Some(terminate(0)))
    );
}

#[test]
fn what_is_opened_after_a_stop_that_nobody_heard_hears_it_at_once() {
    let dispose = sleep(50).opens(Obligation::Task, ms(20));
    let world = two_seconds(sleep(10)).dispose(dispose).stop(at(10), Reason::ForcedShutdown);
    shows(&world, &["10ms stopped ForcedShutdown", "10ms opened 0", "10ms signal detached"]);
}
