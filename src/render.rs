//! Turns a [`Report`](crate::report::Report), or a [`Foresight`](crate::foresight::Foresight), into bytes.
//!
//! Pure: width and colour are passed in, nothing is printed, and no renderer computes what another
//! one would need.

pub mod json;
pub mod plan;
mod records;
pub mod text;

#[cfg(test)]
mod tests {
    //! Whole outputs, compared with files in `tests/snapshots`; `UPDATE_SNAPSHOTS=1` rewrites them.

    use std::path::Path;

    use super::text::{Amount, Color, Options, last_line, printable, render};
    use crate::obligation::{Evidence, Obligation, ObligationState};
    use crate::report::sample::{delivery, expecting, facts, report, row, workload};
    use crate::report::{
        Delivery, DeliveryResult, Listed, ObligationRow, Outcome, Report, TerminateState, Who,
    };
    use crate::workload::{Bound, Comparison, ExpectGap, ExpectRow};

    const PLAIN: Options = Options { width: 80, color: Color::Plain, amount: Amount::Brief };

    fn check(name: &str, text: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&file, text).expect("snapshots can be written");
            return;
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        if kept == text {
            return;
        }
        let (mut kept_lines, mut lines) = (kept.lines(), text.lines());
        let mut difference = String::new();
        loop {
            match (kept_lines.next(), lines.next()) {
                (None, None) => break,
                (kept, now) if kept == now => {
                    difference += &format!("  {}\n", now.unwrap_or_default());
                }
                (kept, now) => {
                    difference.extend(kept.map(|line| format!("- {line}\n")));
                    difference.extend(now.map(|line| format!("+ {line}\n")));
                }
            }
        }
        panic!("{} differs (- kept, + now):\n{difference}", file.display());
    }

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
    fn gaps_are_named_before_numbers() {
        check("gaps.txt", &render(&many(), PLAIN));
    }

    #[test]
    fn narrow_pages_are_still_pages() {
        let narrow = Options { width: 0, amount: Amount::Full, ..PLAIN };
        check("narrow.txt", &render(&many(), narrow));
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
                .with(row(Obligation::Callback, ObligationState::Proven))
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
        let held = interrupted(1)
            .with(row(Obligation::Callback, ObligationState::Unproven))
            .with(row(Obligation::Scope, ObligationState::Unproven))
            .with(row(Obligation::Execution, ObligationState::Late))
            .with_callback(TerminateState::NotRun);
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
