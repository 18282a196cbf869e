//! One sentence about what would help, for each obligation that was late or is not proven.
//!
//! Promises to say only what follows from the workload file and from what was seen: a thread is
//! called spinning only when its CPU time grew, and waiting only when the kernel said so. Where
//! nothing was seen, it says that. Decides nothing: the verdicts are the audit's.

use std::time::Duration;

use crate::obligation::ObligationState;
use crate::report::{ScopeState, TerminateState, Who};
use crate::workload::{BlockingOp, Step, Work};

/// What is overdue, with what the verdict already says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// The pipeline's frame.
    Execution,
    /// The pipeline's frame, whose release is in doubt because a destructor panicked.
    PanickedDestructor,
    /// A task that was started and not awaited.
    Task,
    /// A thread.
    Thread,
    /// A connection.
    Connection,
    /// A termination callback that was due.
    Callback(TerminateState),
    /// The disposal, after the execution was released.
    Scope(ScopeState),
    /// The disposal, which could not start because the execution was not released.
    UnreleasedScope,
    /// The word to the broker.
    Settlement,
    /// Anything, in a record that was cut short before it was due.
    CutShort,
}

/// One overdue obligation, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// What is overdue.
    pub overdue: Overdue,
    /// Late or unproven.
    pub state: ObligationState,
    /// Whose work it is; for an execution, whoever held it.
    pub step: Option<&'a Step>,
    /// Who was seen to hold it.
    pub who: Option<&'a Who>,
    /// From its opening to its due instant.
    pub allowed: Duration,
}

/// The sentence for one case.
pub fn advise(case: &Case<'_>) -> String {
    match case.overdue {
        Overdue::Execution => execution(case),
        Overdue::PanickedDestructor => {
            let name = name(case);
            format!(
                "a destructor of {name} panicked, so nothing shows that what the frame held was \
                 released: let destructors not panic, and move what can fail to `terminate` or the scope"
            )
        }
        Overdue::Task => task(case),
        Overdue::Thread => thread(case),
        Overdue::Connection => connection(case),
        Overdue::Callback(state) => callback(case, state),
        Overdue::Scope(state) => scope(case, state),
        Overdue::UnreleasedScope => {
            "the execution was not released in time, so the disposal could not start: see to the \
             execution first"
                .to_owned()
        }
        Overdue::CutShort => {
            "the run was cut short before this was due: whether it would have ended in time is not known"
                .to_owned()
        }
        Overdue::Settlement => {
            let within = words(case.allowed);
            match case.state {
                ObligationState::Late => format!(
                    "the broker confirmed, but not within {within}: if it is often so slow, give \
                     `settlement.timeout` more, and expect the message again meanwhile"
                ),
                _ => format!(
                    "the broker was silent for {within} and until observation ended: whether it \
                     took the settlement is not known, so be ready for the message to come again"
                ),
            }
        }
    }
}

/// Less CPU time than this shows that a thread was there, and not that it spun.
const LEAST_SPIN: Duration = Duration::from_millis(1);

/// What a thread was seen to do after the due instant.
enum Activity {
    /// Its CPU time grew by so much.
    Spinning(Duration),
    /// The kernel showed it waiting.
    Waiting { in_what: Option<String>, uninterruptibly: bool },
    /// It was ready to run and its CPU time did not grow.
    Starved,
    /// It was stopped from outside.
    Stopped,
    /// Nothing that would tell.
    Unseen,
}

impl Activity {
    fn of(who: Option<&Who>) -> Self {
        let Some(who) = who else { return Self::Unseen };
        let used = who.cpu_us.map(Duration::from_micros);
        let in_what = who.waiting_in.clone();
        match (who.state.as_deref(), used) {
            (Some("sleeping"), _) => Self::Waiting { in_what, uninterruptibly: false },
            (Some("disk_sleep"), _) => Self::Waiting { in_what, uninterruptibly: true },
            (Some("stopped"), _) => Self::Stopped,
            (Some("running"), Some(used)) if used.is_zero() => Self::Starved,
            (Some("running"), Some(used)) if used >= LEAST_SPIN => Self::Spinning(used),
            _ => Self::Unseen,
        }
    }

    /// What was seen, to stand after the name of a thread or step; empty when nothing was.
    fn seen(&self) -> Option<String> {
        match self {
            Self::Spinning(used) => Some(format!(
                "was seen spinning ({} of CPU time after the due instant)",
                words(*used)
            )),
            Self::Waiting { in_what, uninterruptibly } => {
                let how = if *uninterruptibly { "waiting uninterruptibly" } else { "sleeping" };
                let place = in_what.as_ref().map_or(String::new(), |place| format!(", in {place}"));
                Some(format!("was seen {how} in the kernel{place}"))
            }
            Self::Starved => {
                Some("was seen ready to run and got no CPU time after the due instant".to_owned())
            }
            Self::Stopped => Some("was seen stopped from outside".to_owned()),
            Self::Unseen => None,
        }
    }
}

fn execution(case: &Case<'_>) -> String {
    let name = name(case);
    let activity = Activity::of(case.who);
    let seen = activity.seen().map_or(String::new(), |seen| format!(" and {seen}"));
    let inside = case.who.and_then(|who| who.inside.as_deref());
    if let Some(holder) = case.who.and_then(|who| who.delivery) {
        let remedy = yielding(case.step);
        return format!(
            "the worker was held by {name} of delivery {holder}{seen}, not by this delivery's own \
             work: {remedy}, or give the workload more workers"
        );
    }
    match (case.step, inside) {
        (None, _) => "what held the pipeline was not seen: look at what its steps do between two \
                      awaits, and in their destructors"
            .to_owned(),
        (Some(_), Some("destructor")) => format!(
            "the destructor of {name} was still running{seen}: a drop cannot be cut, so let it only \
             hand over, and do the slow part in `terminate` or the scope"
        ),
        (Some(step), Some("poll")) => format!(
            "{name} stayed inside one poll{seen}, and what does not return from a poll cannot be \
             dropped: {}",
            yielding(Some(step))
        ),
        (Some(step), _) if never_yields(step) => {
            format!("{name} never yields{seen}, so it cannot be cut: {}", yielding(Some(step)))
        }
        (Some(step), _) if step.on_drop.is_some() => format!(
            "{name} was the last step to begin and has a destructor with work of its own{seen}: \
             whether the poll or the drop took so long was not seen; keep both short"
        ),
        (Some(_), _) => format!(
            "{name} was the last step to begin{seen}; what held it was not seen: look at what it \
             does between two awaits, and at who else shares its worker"
        ),
    }
}

/// What would let a step be cut.
fn yielding(step: Option<&Step>) -> &'static str {
    match step.map(|step| &step.work) {
        Some(Work::Cpu { yield_every: None, .. }) => {
            "give it `yield_every`, or move it off the workers with `on = \"thread\"`"
        }
        Some(Work::Cpu { .. }) => "make `yield_every` shorter",
        Some(Work::Cooperative { .. }) => "make its `slice` shorter",
        _ => "let it await between its parts, or make it a `blocking` step",
    }
}

fn never_yields(step: &Step) -> bool {
    use crate::workload::CpuPlace::Worker;
    matches!(step.work, Work::Cpu { yield_every: None, on: Worker, .. })
}

fn task(case: &Case<'_>) -> String {
    let name = name(case);
    if let Some(seen) = Activity::of(case.who).seen() {
        return format!(
            "{name} is started and not awaited, and {seen} past the deadline: await it, or let it \
             look at the signal and end by itself"
        );
    }
    let fate = match case.state {
        ObligationState::Late => "ended only after the deadline",
        _ => "was not seen to end",
    };
    match case.step.map(|step| &step.work) {
        Some(Work::Sleep { .. }) => format!(
            "{name} is started and not awaited, waits without looking at the signal, and {fate}: \
             await it, give it a `timeout`, or abort it and join it"
        ),
        _ => format!(
            "{name} is started and not awaited, and {fate}: await it, or let it look at the signal \
             and end by itself"
        ),
    }
}

fn thread(case: &Case<'_>) -> String {
    let name = name(case);
    // It was looked at, and there was no thread: work that is awaited is not owed before it has one.
    let has_thread = case.who.is_none_or(|who| who.tid.is_some());
    if case.state == ObligationState::Unproven && !has_thread {
        return format!(
            "{name} is started and not awaited, and was still waiting for a thread when it was last \
             looked at: await it, or give the workload more `blocking_threads`"
        );
    }
    let seen = Activity::of(case.who).seen();
    let fact = match (&seen, case.state) {
        (Some(seen), _) => format!("its thread {seen}"),
        (None, ObligationState::Late) => "its thread ended only after the deadline".to_owned(),
        (None, _) => "its thread was not seen to end".to_owned(),
    };
    let (habit, remedy) = match case.step.map(|step| &step.work) {
        Some(Work::Blocking { op: BlockingOp::Lock, looks_every: None, .. }) => (
            "waits for a lock and never looks at the signal".to_owned(),
            "wait for it with a time-out, or give it `looks_every`".to_owned(),
        ),
        Some(Work::Blocking { op: BlockingOp::Dns, looks_every: None, .. }) => (
            "looks a name up, which nothing cuts short".to_owned(),
            "look it up beforehand, or use a resolver that is async or has a short time-out"
                .to_owned(),
        ),
        Some(Work::Tcp(_) | Work::Http(_)) => (
            "looks a name up before it connects, which nothing cuts short".to_owned(),
            "use an address, or a resolver that is async or has a short time-out".to_owned(),
        ),
        Some(Work::Read { .. } | Work::Write(_)) => (
            "was inside a call to the file system, which nothing cuts short".to_owned(),
            "use files that answer in time, or put the work into a process that can be killed"
                .to_owned(),
        ),
        Some(Work::Blocking { looks_every: None, .. }) => (
            "never looks at the signal".to_owned(),
            "give it `looks_every`, split the work, or put it into a process that can be killed"
                .to_owned(),
        ),
        Some(Work::Blocking { looks_every: Some(every), .. }) => (
            format!("looks at the signal only every {}", words(*every)),
            "look more often, and keep short what follows the look".to_owned(),
        ),
        Some(Work::Cpu { .. }) => (
            "computes on a thread that never looks at the signal".to_owned(),
            "split the work into steps that fit into the budget".to_owned(),
        ),
        _ => (
            "left a thread behind".to_owned(),
            "let its work look at the signal, or split it".to_owned(),
        ),
    };
    format!("{name} {habit}, and {fact}: {remedy}")
}

/// It goes with the frame of its step: one that is open has a frame that is still there.
fn connection(case: &Case<'_>) -> String {
    let name = name(case);
    let fate = match case.state {
        ObligationState::Late => "was closed only after the deadline",
        _ => "was not seen to close",
    };
    let remedy = match case.step.is_some_and(|step| step.detach) {
        true => "await the step, or give it a `timeout`",
        false => "see to what held its frame, and give it a `timeout`",
    };
    format!("the connection of {name} {fate}, for its step still had it: {remedy}")
}

fn callback(case: &Case<'_>, state: TerminateState) -> String {
    let name = name(case);
    match state {
        TerminateState::NotRun => format!(
            "the execution was not released in time, so {name} could not run: see to the execution \
             first"
        ),
        TerminateState::BudgetExhausted => format!(
            "the time for callbacks was used up before {name} could start: make the release and the \
             callbacks further in shorter, or `budget.reserve` larger"
        ),
        TerminateState::Interrupted => {
            let fate = match case.state {
                ObligationState::Late => "was gone only after it",
                _ => "was not seen to go",
            };
            format!(
                "the end of the shutdown came before the share of {name} was used, and its frame \
                 {fate}: give the shutdown more time, or the callback less to do"
            )
        }
        _ => match Activity::of(case.who).seen() {
            Some(seen) => format!(
                "{name} {seen} when its time was over, and what does not return from a poll or a \
                 destructor cannot be dropped: let it await between its parts"
            ),
            None => format!(
                "{name} was cut and its frame was not gone by the deadline: keep its polls and its \
                 destructor short, or give it more `budget.reserve`"
            ),
        },
    }
}

fn scope(case: &Case<'_>, state: ScopeState) -> String {
    let name = name(case);
    match state {
        ScopeState::NotRun => format!(
            "{name} was never started although the execution was released: what ran before it left \
             no time, so make the release and the callbacks shorter, or `budget.reserve` larger"
        ),
        _ => match Activity::of(case.who).seen() {
            Some(seen) => format!(
                "{name} {seen} when the deadline came: let it await between its parts, and give it \
                 more `budget.reserve`"
            ),
            None => format!(
                "{name} did not return by the deadline, and a disposer that is dropped leaves it \
                 unknown what is still held: make it shorter, or `budget.reserve` larger"
            ),
        },
    }
}

fn name(case: &Case<'_>) -> String {
    case.step.map_or_else(|| "a step".to_owned(), |step| format!("`{}`", step.name))
}

/// A span in words, to two figures or so: `2.6 seconds`, `94 milliseconds`.
fn words(span: Duration) -> String {
    let micros = span.as_micros();
    let (unit, word) = match micros {
        0..1_000 => (1, "microsecond"),
        1_000..1_000_000 => (1_000, "millisecond"),
        1_000_000..60_000_000 => (1_000_000, "second"),
        60_000_000..3_600_000_000 => (60_000_000, "minute"),
        _ => (3_600_000_000, "hour"),
    };
    let (whole, tenths) = (micros / unit, micros % unit * 10 / unit);
    let number = match tenths {
        0 => whole.to_string(),
        _ if whole >= 10 => whole.to_string(),
        _ => format!("{whole}.{tenths}"),
    };
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {word}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{CpuAmount, CpuPlace, Pool, Span, Stage};

    fn step(work: Work) -> Step {
        Step {
            name: "x".to_owned(),
            stage: Stage::Handler,
            line: 1,
            work,
            timeout: None,
            poll_budget: None,
            fail: None,
            panic: 0.0,
            share: 1.0,
            optional: false,
            on_drop: None,
            detach: false,
        }
    }

    fn blocking(looks_every: Option<Duration>) -> Step {
        let duration = Span::Fixed(Duration::from_secs(60));
        step(Work::Blocking { op: BlockingOp::Spin, duration, looks_every, pool: Pool::Own })
    }

    fn cpu(yield_every: Option<Duration>) -> Step {
        let amount = CpuAmount::Time(Span::Fixed(Duration::from_secs(3)));
        step(Work::Cpu { amount, yield_every, on: CpuPlace::Worker })
    }

    fn seen(state: &str, cpu_us: Option<u64>, inside: &str) -> Who {
        Who {
            tid: Some(7),
            state: Some(state.to_owned()),
            cpu_us,
            inside: Some(inside.to_owned()),
            ..Who::default()
        }
    }

    /// The sentence for an unproven obligation that had 2 s.
    fn says(overdue: Overdue, step: Option<&Step>, who: Option<&Who>) -> String {
        let allowed = Duration::from_secs(2);
        advise(&Case { overdue, state: ObligationState::Unproven, step, who, allowed })
    }

    #[test]
    fn a_thread_is_called_spinning_only_when_its_cpu_time_grew() {
        let step = blocking(None);
        let thread = |who: Option<&Who>| says(Overdue::Thread, Some(&step), who);
        let spun = thread(Some(&seen("running", Some(1_200_000), "closure")));
        assert!(spun.contains("spinning (1.2 seconds of CPU time"), "{spun}");
        for who in [
            seen("running", Some(0), "closure"),
            seen("running", Some(68), "closure"),
            seen("running", None, "closure"),
            seen("sleeping", Some(900), "closure"),
            Who::default(),
        ] {
            assert!(!thread(Some(&who)).contains("spinning"), "{who:?}");
        }
        assert!(thread(Some(&Who::default())).contains("still waiting for a thread"));
        assert!(thread(None).contains("its thread was not seen to end"));
    }

    #[test]
    fn a_thread_that_looks_is_told_to_look_more_often() {
        let step = blocking(Some(Duration::from_millis(10)));
        let advice = says(Overdue::Thread, Some(&step), None);
        assert!(advice.contains("looks at the signal only every 10 milliseconds"), "{advice}");
        assert!(!advice.contains("give it `looks_every`"), "{advice}");
    }

    #[test]
    fn a_step_that_never_yields_is_told_to() {
        let step = cpu(None);
        let advice = says(Overdue::Execution, Some(&step), None);
        assert!(advice.contains("`x` never yields"), "{advice}");
        assert!(advice.contains("`yield_every`"), "{advice}");
    }

    #[test]
    fn a_destructor_is_blamed_only_when_it_was_seen() {
        let step = step(Work::Polls { count: 1 });
        let seen = seen("sleeping", Some(0), "destructor");
        let advice = says(Overdue::Execution, Some(&step), Some(&seen));
        assert!(advice.contains("the destructor of `x` was still running"), "{advice}");
        let unseen = says(Overdue::Execution, Some(&step), None);
        assert!(unseen.contains("what held it was not seen"), "{unseen}");
        assert!(
            says(Overdue::Execution, None, None).contains("what held the pipeline was not seen")
        );
    }

    #[test]
    fn a_disposer_seen_working_is_told_so() {
        let step = step(Work::Polls { count: 1 });
        let seen = seen("running", Some(5_000), "poll");
        let advice = says(Overdue::Scope(ScopeState::TimedOut), Some(&step), Some(&seen));
        assert!(advice.contains("spinning (5 milliseconds of CPU time"), "{advice}");
    }

    #[test]
    fn cleanup_that_never_ran_is_told_why() {
        let step = step(Work::Polls { count: 1 });
        let callback = |state| says(Overdue::Callback(state), Some(&step), None);
        let not_run = callback(TerminateState::NotRun);
        assert!(not_run.contains("the execution was not released"), "{not_run}");
        let exhausted = callback(TerminateState::BudgetExhausted);
        assert!(exhausted.contains("was used up before `x` could start"), "{exhausted}");
        let shortened = callback(TerminateState::Interrupted);
        assert!(shortened.contains("give the shutdown more time"), "{shortened}");
        let unreleased = says(Overdue::UnreleasedScope, Some(&step), None);
        assert!(unreleased.contains("the disposal could not start"), "{unreleased}");
        let late = says(Overdue::Scope(ScopeState::TimedOut), Some(&step), None);
        assert!(late.contains("`x` did not return by the deadline"), "{late}");
    }

    #[test]
    fn spans_read_as_words() {
        let read = |micros| words(Duration::from_micros(micros));
        assert_eq!(read(1), "1 microsecond");
        assert_eq!(read(94_900), "94 milliseconds");
        assert_eq!(read(1_000_000), "1 second");
        assert_eq!(read(2_600_060), "2.6 seconds");
        assert_eq!(read(90_000_000), "1.5 minutes");
    }
}
