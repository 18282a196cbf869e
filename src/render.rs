//! Turns a [`Report`](crate::report::Report), or a [`Foresight`](crate::foresight::Foresight), into bytes.
//!
//! Pure: width and colour are passed in, nothing is printed, and no renderer computes what another
//! one would need.

pub mod json;
pub mod page;
pub mod plan;
mod records;
mod table;
pub mod text;
pub mod timeline;

#[cfg(test)]
#[path = "../tests/it/snapshot.rs"]
mod snapshot;

#[cfg(test)]
mod tests {
    //! Whole outputs, held against what is kept of them.

    use super::page::{Color, printable};
    use super::snapshot::check;
    use super::text::{Amount, Options, last_line, render};
    use super::timeline::draw;
    use crate::event::{Effect, Settlement, StepId};
    use crate::obligation::{Evidence, Obligation, ObligationState};
    use crate::report::sample::{delivery, expecting, facts, report, row, workload};
    use crate::report::tracks::{End, Tracks};
    use crate::report::{
        Cleanup, Delivery, DeliveryResult, ExecutionState, LateReturn, Listed, ObligationRow,
        Outcome, PeerRow, Report, ReturnedIn, Scope, ScopeState, Settled, SettledState, SignalSeen,
        Step, TerminateState, Who,
    };
    use crate::timeline::Reason;
    use crate::workload::Step as WorkloadStep;
    use crate::workload::Work;
    use crate::workload::{Bound, Comparison, ExpectGap, ExpectRow};

    const PLAIN: Options = Options { width: 80, color: Color::Plain, amount: Amount::Brief };

    /// A thread of `compress` that the run did not see end.
    fn stuck() -> ObligationRow {
        ObligationRow {
            who: Some(Who {
                tid: Some(4242),
                state: Some("sleeping".into()),
                cpu_us: Some(120),
                waiting_in: Some("hrtimer_nanosleep".into()),
                inside: Some("closure".into()),
                since_us: Some(70),
                ..Who::default()
            }),
            advice: Some(
                "a blocking thread cannot be cancelled; let it look at the signal (looks_every), \
                 or give the call a timeout of its own"
                    .into(),
            ),
            ..row(Obligation::Thread, ObligationState::Unproven)
        }
    }

    /// The same, seen to end after its due instant.
    fn late() -> ObligationRow {
        ObligationRow {
            evidence: Some(Evidence::ThreadFinished),
            closed_us: Some(3_000_100),
            ..row(Obligation::Thread, ObligationState::Late)
        }
    }

    fn interrupted(id: u32) -> Delivery {
        delivery(id, DeliveryResult::Interrupted)
    }

    fn many() -> Report {
        let mut deliveries: Vec<Delivery> =
            (1..=97).map(|id| delivery(id, DeliveryResult::Success)).collect();
        deliveries.push(interrupted(98).with(late()));
        deliveries.push(interrupted(99).with(stuck()));
        deliveries.push(interrupted(100));
        report(&workload(), deliveries)
    }

    #[test]
    fn success_is_told_in_full() {
        let report = report(&workload(), vec![delivery(1, DeliveryResult::Success)]);
        check("success.txt", &render(&report, PLAIN));
        check("success.json", &super::json::render(&report));
    }

    #[test]
    fn effects_that_are_not_complete_and_peers_are_told() {
        let mut cut = delivery(1, DeliveryResult::Interrupted);
        cut.steps[0].effect = Some(Effect::Partial);
        let mut report = report(&workload(), vec![cut, delivery(2, DeliveryResult::Success)]);
        assert_eq!(report.totals.partial_effects, 1);
        let (name, connections, open) = (String::from("bank"), 2, 1);
        report.peers = vec![PeerRow { name, connections, open, ..PeerRow::default() }];
        let text = render(&report, PLAIN);
        assert!(text.contains("Effects        compress partial 1\n"), "{text}");
        assert!(text.contains("bank: 2 connections, 0 answered, 1 still open\n"), "{text}");
    }

    #[test]
    fn gaps_are_named_before_numbers() {
        check("gaps.txt", &render(&many(), PLAIN));
    }

    #[test]
    fn narrow_pages_are_still_pages() {
        let narrow = Options { width: 0, amount: Amount::Full, ..PLAIN };
        check("narrow.txt", &render(&many(), narrow));
    }

    const FULL: Options = Options { amount: Amount::Full, ..PLAIN };

    fn step(name: &str, from: u64, until: Option<u64>, outcome: Outcome) -> Step {
        let example = delivery(1, DeliveryResult::Success).steps.remove(0);
        Step { name: name.into(), started_us: Some(from), ended_us: until, outcome, ..example }
    }

    fn proven(kind: Obligation, at: u64, evidence: Evidence) -> ObligationRow {
        ObligationRow {
            evidence: Some(evidence),
            closed_us: Some(at),
            ..row(kind, ObligationState::Proven)
        }
    }

    /// A pipeline that was inside a poll at `E` and came back with success after it.
    fn written_off() -> Delivery {
        let mut delivery = interrupted(1)
            .with(ObligationRow {
                evidence: Some(Evidence::FutureReturned),
                opened_us: 40,
                closed_us: Some(640_140),
                late_by_us: Some(240_100),
                ..row(Obligation::Execution, ObligationState::Late)
            })
            .with(row(Obligation::Callback, ObligationState::Unproven))
            .with(row(Obligation::Scope, ObligationState::Unproven))
            .with_callback(TerminateState::NotRun);
        delivery.obligations.remove(0);
        delivery.execution.state = ExecutionState::Unreleased;
        delivery.execution.at_us = None;
        delivery.execution.late_return = Some(LateReturn::Success);
        delivery.scope = Scope { state: ScopeState::NotRun, started_us: None, at_us: None };
        delivery.steps = vec![step("compress", 60, Some(640_100), Outcome::Success)];
        delivery.settlement =
            Settled { decision: None, state: SettledState::Revoked, at_us: Some(400_120) };
        delivery
    }

    /// Two callbacks: the inner one overran its share, the outer one got what was left.
    fn slow_cleanup() -> Delivery {
        let mut delivery = interrupted(1)
            .with(proven(Obligation::Callback, 381_200, Evidence::Returned))
            .with(proven(Obligation::Callback, 362_700, Evidence::Dropped))
            .with(proven(Obligation::Scope, 383_400, Evidence::Returned))
            .with_callback(TerminateState::Completed);
        let outer = &mut delivery.callbacks[0];
        outer.started_us = Some(362_750);
        outer.ended_us = Some(381_200);
        let mut inner = outer.clone();
        inner.middleware = "audit".into();
        inner.terminate = TerminateState::TimedOut;
        inner.started_us = Some(325_200);
        inner.ended_us = Some(362_700);
        delivery.callbacks.push(inner);
        delivery.scope.started_us = Some(381_300);
        delivery.scope.at_us = Some(383_400);
        delivery.cleanup = Cleanup::Failed;
        delivery
    }

    /// A success that came after the signal, with its way through the middleware.
    fn in_the_window() -> Delivery {
        let mut delivery = delivery(1, DeliveryResult::Success);
        delivery.returned_in = Some(ReturnedIn::Cooperative);
        delivery.ended_us = Some(318_900);
        delivery.signal = Some(SignalSeen {
            reason: Reason::DeliveryTimeout,
            at_us: 300_040,
            observed_us: Some(300_950),
        });
        delivery.window_end_us = Some(325_040);
        delivery.obligations[0].closed_us = Some(318_900);
        delivery.execution.at_us = Some(318_900);
        delivery.steps = vec![step("compress", 2_100, Some(316_200), Outcome::Success)];
        let way = &mut delivery.callbacks[0];
        (way.before_started_us, way.before_ended_us) = (Some(50), Some(2_090));
        (way.after_started_us, way.after_ended_us) = (Some(316_210), Some(318_890));
        delivery.scope.started_us = Some(318_910);
        delivery.scope.at_us = Some(320_000);
        delivery.settlement = Settled {
            decision: Some(Settlement::Ack),
            state: SettledState::Confirmed,
            at_us: Some(322_000),
        };
        delivery.with(ObligationRow {
            step: None,
            opened_us: 320_000,
            due_us: 5_320_000,
            ..proven(Obligation::Settlement, 322_000, Evidence::BrokerConfirmed)
        })
    }

    /// Thirty steps in two sequences, a detached one, one that fails, and a thread that is late.
    fn thirty_steps() -> Report {
        let mut workload = workload();
        let example = workload.steps[1].clone();
        let mut delivery = delivery(1, DeliveryResult::Failure);
        delivery.steps.clear();
        for number in 0..30_u64 {
            let name = format!("part-{number}");
            let from = 100 + number * 4_000;
            let outcome = if number == 27 { Outcome::Failure } else { Outcome::Success };
            delivery.steps.push(step(&name, from, Some(from + 3_900), outcome));
            workload.steps.push(WorkloadStep { name, ..example.clone() });
        }
        let sequence = |steps: std::ops::Range<u16>| Work::Sequence {
            steps: steps.map(|step| StepId(step.into())).collect(),
        };
        workload.steps[4].work = sequence(5..12);
        workload.steps[7].work = sequence(8..10);
        workload.steps[33].detach = true;
        delivery.steps[0].ended_us = Some(27_900);
        delivery.steps[3].ended_us = Some(23_900);
        delivery.steps[29].ended_us = None;
        delivery.steps[29].outcome = Outcome::Running;
        let report_of = |delivery| report(&workload, vec![delivery]);
        report_of(delivery.with(ObligationRow { step: Some("part-26".into()), ..late() }))
    }

    #[test]
    fn a_success_is_drawn_when_all_is_asked_for() {
        let report = report(&workload(), vec![delivery(1, DeliveryResult::Success)]);
        assert!(!render(&report, PLAIN).contains("Timeline"));
        check("timeline-success.txt", &timelines(&report, FULL));
    }

    #[test]
    fn timelines_tell_what_happened() {
        let stories = [
            ("late-thread", interrupted(1).with(late())),
            ("stuck-thread", interrupted(1).with(stuck())),
            ("written-off", written_off()),
            ("slow-cleanup", slow_cleanup()),
            ("panic", delivery(1, DeliveryResult::Panic)),
            ("window", in_the_window()),
        ];
        for (name, delivery) in stories {
            let report = report(&workload(), vec![delivery]);
            check(&format!("timeline-{name}.txt"), &timelines(&report, FULL));
        }
    }

    #[test]
    fn thirty_steps_are_drawn_as_far_as_they_tell_something() {
        let report = thirty_steps();
        check("timeline-thirty-steps.txt", &timelines(&report, FULL));
        for width in [60, 160] {
            let options = Options { width, ..FULL };
            check(&format!("timeline-thirty-steps-{width}.txt"), &timelines(&report, options));
        }
    }

    #[test]
    fn hundreds_of_steps_are_left_out_and_the_frame_is_not() {
        let mut delivery = in_the_window();
        delivery.steps =
            (0..500).map(|number| step("part", number, None, Outcome::Running)).collect();
        let text = timelines(&report(&workload(), vec![delivery]), FULL);
        assert!(text.contains("\n  ... 461 more, 459 of which did not go well\n"), "{text}");
        assert!(text.contains("\n  settlement "), "{text}");
    }

    #[test]
    fn drawings_keep_to_their_page() {
        let deliveries =
            [written_off(), slow_cleanup(), in_the_window(), interrupted(1).with(stuck())];
        // From microseconds to hours, and all at one instant.
        for scale in [0, 1, 40, 100, 100_000, 60_000_000] {
            for delivery in &deliveries {
                let mut tracks = Tracks::of(&thirty_steps(), delivery).expect("it was admitted");
                let at = |us: u64| us * scale / 100;
                tracks.admitted_us = at(tracks.admitted_us);
                tracks.end_us = at(tracks.end_us);
                tracks.normal_cutoff_us = tracks.normal_cutoff_us.map(at);
                for track in &mut tracks.tracks {
                    track.name.push_str("-with-a-long-name");
                    track.began_us = track.began_us.map(at);
                    track.due_us = track.due_us.checked_mul(scale).map_or(u64::MAX, |us| us / 100);
                    track.end = match track.end {
                        End::Ended(us) => End::Ended(at(us)),
                        End::Cut(us) => End::Cut(at(us)),
                        End::Proven(us) => End::Proven(at(us)),
                        End::Open => End::Open,
                    };
                }
                for width in 60..=160 {
                    for line in draw(&tracks, width) {
                        assert!(line.chars().count() <= width, "{width}, {scale}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_success_that_needed_the_signal_is_set_apart() {
        let success = || delivery(1, DeliveryResult::Success);
        let text = render(&report(&workload(), vec![success(), in_the_window()]), PLAIN);
        assert!(text.contains("\n  success           2  (1 after the signal)  "), "{text}");
        let text = render(&report(&workload(), vec![success()]), PLAIN);
        assert!(!text.contains("after the signal"), "{text}");
    }

    #[test]
    fn timelines_are_few_and_the_rest_is_counted() {
        let kinds = |amount: u32| -> Vec<Delivery> {
            (1..=amount)
                .map(|id| Delivery {
                    code: Some(format!("CODE_{}", id % 20)),
                    // No two are drawn alike.
                    window_end_us: Some(325_040 + u64::from(id) * 1_000),
                    ..interrupted(id)
                })
                .collect()
        };
        let drawn = |amount, options| {
            let text = render(&report(&workload(), kinds(amount)), options);
            let more = text.lines().find(|line| line.contains("more with something to say"));
            (text.matches("Timeline of").count(), more.map(|line| line.trim().to_owned()))
        };
        assert_eq!(drawn(3, PLAIN), (3, None));
        let more = "and 97 more with something to say; -v draws more of them";
        assert_eq!(drawn(100, PLAIN), (3, Some(more.into())));
        let more = "and 90 more with something to say";
        assert_eq!(drawn(100, FULL), (10, Some(more.into())));
        // One of each kind is enough.
        let alike = report(&workload(), (1..=7).map(|id| interrupted(id).with(late())).collect());
        assert_eq!(render(&alike, PLAIN).matches("Timeline of").count(), 1);
    }

    #[test]
    fn an_end_before_the_admission_is_drawn_and_not_labelled() {
        let mut over = interrupted(1).with(row(Obligation::Execution, ObligationState::Late));
        over.obligations[0].due_us = 10;
        over.normal_cutoff_us = Some(5);
        let text = render(&report(&workload(), vec![over]), FULL);
        assert!(text.contains("Timeline of delivery 1") && !text.contains(" E 0"), "{text}");
    }

    #[test]
    fn equal_timelines_are_drawn_once() {
        let mut other = interrupted(5);
        other.window_end_us = Some(326_040);
        let deliveries = vec![interrupted(2), interrupted(3), other, interrupted(8)];
        let text = render(&report(&workload(), deliveries), FULL);
        let titles: Vec<_> = text.lines().filter(|line| line.starts_with("Timeline of")).collect();
        let rest = "interrupted after delivery timeout, proven";
        let titled = ["deliveries 2, 3, 8", "delivery 5"];
        assert_eq!(titles, titled.map(|whose| format!("Timeline of {whose}: {rest}")));
    }

    #[test]
    fn what_never_began_has_no_timeline() {
        let report = report(&workload(), vec![delivery(1, DeliveryResult::NotStarted)]);
        let text = render(&report, FULL);
        assert!(!text.contains("Timeline") && !text.contains("since admission"), "{text}");
    }

    /// The part of the text report that draws.
    fn timelines(report: &Report, options: Options) -> String {
        let text = render(report, options);
        let from = text.find("Timeline of").expect("something is drawn");
        let until = text.find("\nSteps\n").expect("the table of steps follows");
        text[from..until].into()
    }

    #[test]
    fn gaps_stand_in_the_json_too() {
        let report = report(&workload(), vec![interrupted(1).with(stuck())]);
        check("gaps.json", &super::json::render(&report));
    }

    #[test]
    fn thousands_of_gaps_are_grouped() {
        let deliveries = (1..=3_000)
            .map(|id| {
                let mut late = late();
                late.late_by_us = Some(u64::from(id) * 1_000);
                interrupted(id).with(late).with(stuck())
            })
            .collect();
        check("thousands.txt", &render(&report(&workload(), deliveries), PLAIN));
    }

    #[test]
    fn failures_are_told_with_their_codes() {
        let mut detached = delivery(4, DeliveryResult::Success);
        let mut writer = detached.steps[0].clone();
        writer.name = "writer".into();
        writer.outcome = Outcome::Failure;
        writer.code = Some("DISK_FULL".into());
        detached.steps.push(writer);
        let deliveries = vec![
            delivery(1, DeliveryResult::Failure),
            delivery(2, DeliveryResult::Panic),
            delivery(3, DeliveryResult::Interrupted)
                .with(ObligationRow {
                    evidence: Some(Evidence::Returned),
                    closed_us: Some(330_200),
                    ..row(Obligation::Callback, ObligationState::Proven)
                })
                .with_callback(TerminateState::Failed),
            detached,
            delivery(5, DeliveryResult::NotStarted),
        ];
        let full = Options { amount: Amount::Full, ..PLAIN };
        check("failures.txt", &render(&report(&workload(), deliveries), full));
    }

    fn exactly(what: &str, wanted: u64) -> ExpectRow {
        ExpectRow {
            what: what.into(),
            bound: Bound::Count(Comparison::Equal, wanted),
            written: wanted.to_string(),
        }
    }

    #[test]
    fn causes_are_named_before_consequences() {
        let mut held = interrupted(1)
            .with(row(Obligation::Callback, ObligationState::Unproven))
            .with(row(Obligation::Scope, ObligationState::Unproven))
            .with(row(Obligation::Execution, ObligationState::Late))
            .with_callback(TerminateState::NotRun);
        // The first is that of an execution which ended in time.
        held.obligations.remove(0);
        held.scope = Scope { state: ScopeState::NotRun, started_us: None, at_us: None };
        let alone = interrupted(2).with(row(Obligation::Scope, ObligationState::Unproven));
        check("causes.txt", &render(&report(&workload(), vec![held.clone()]), PLAIN));
        // A disposal that was not held up by anything is a cause itself.
        let both = report(&workload(), vec![held, alone]);
        assert!(both.verdict.why.starts_with("scope of compress"), "{}", both.verdict.why);
    }

    #[test]
    fn expected_gaps_are_ok_and_still_named() {
        let gap = ExpectGap {
            step: Some("compress".into()),
            kind: Some(Obligation::Thread),
            state: Some(ObligationState::Unproven),
            count: None,
        };
        let workload = expecting(vec![exactly("interrupted", 1)], vec![gap]);
        let report = report(&workload, vec![interrupted(1).with(stuck())]);
        check("expected.txt", &render(&report, PLAIN));
    }

    #[test]
    fn broken_expectations_are_named() {
        let workload = expecting(vec![exactly("interrupted", 1), exactly("panic", 0)], vec![]);
        let report = report(&workload, vec![delivery(1, DeliveryResult::Success)]);
        check("broken.txt", &render(&report, PLAIN));
    }

    #[test]
    fn a_shutdown_is_told() {
        use crate::event::Initiator;
        let mut facts = facts();
        facts.shutdown = Some(crate::report::Shutdown {
            initiated_by: Initiator::Terminate,
            initiated_us: 1_200_000,
            root_graceful_us: 3_200_000,
            root_hard_us: 4_200_000,
            elapsed_us: 340_000,
            forced: false,
            in_flight: None,
            after_stop: None,
            first_refusal_us: None,
            last_success_us: None,
            released: 8,
        });
        let deliveries = vec![delivery(1, DeliveryResult::Success)];
        let report = Report::assemble(&workload(), facts, deliveries, Listed::All);
        check("shutdown.txt", &render(&report, PLAIN));
    }

    #[test]
    fn names_cannot_write_to_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\n\u{202e}c\tü"), "a\\u{1b}[2Jb\\n\\u{202e}c\\tü");
        let mut workload = workload();
        workload.name = "\u{1b}]0;owned\u{7}".into();
        workload.steps[1].name = "com\npress".into();
        let mut stuck = stuck();
        stuck.step = Some("com\npress".into());
        let text = render(&report(&workload, vec![interrupted(1).with(stuck)]), PLAIN);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("unproven: thread of com\\npress (orders.toml:12)"), "{last}");
    }

    #[test]
    fn colours_change_no_letter() {
        let ansi = render(&many(), Options { color: Color::Ansi, ..PLAIN });
        let mut plain = String::new();
        let mut rest = ansi.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = after.split_once('m').expect("every escape is a colour").1;
        }
        plain.push_str(rest);
        assert_ne!(ansi, plain);
        assert_eq!(plain, render(&many(), PLAIN));
    }

    #[test]
    fn the_last_line_stands_alone() {
        let report = many();
        let line = last_line(&report.verdict, report.exit_status, Color::Plain);
        assert_eq!(
            line,
            "unproven: thread of compress (orders.toml:12) still running, and 1 gap more; \
             97 of 100 succeeded \u{b7} exit 3\n"
        );
        assert!(render(&report, PLAIN).ends_with(&line));
    }

    #[test]
    fn json_reads_back_as_it_was() {
        let report = many();
        let text = super::json::render(&report);
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }
}
