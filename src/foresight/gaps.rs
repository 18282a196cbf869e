//! What cannot be proven to end in time by construction.
//!
//! Each finding is about one obligation whose receipt can come after `E`, or cannot come at all,
//! when work takes as long as the file lets it.

use std::time::Duration;

use super::reach::{Reach, destructor, heeds_the_signal, is_threaded, longest_poll, looks_up};
use super::{Finding, FindingKind, Page, takes};
use crate::event::StepId;
use crate::obligation::Obligation;
use crate::report::words::exact;
use crate::workload::{BlockingOp, OnSignal, Stage, Step, Work};

/// Every such finding, marked where `[expect]` covers it.
pub(super) fn find(page: &Page<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for id in page.ids() {
        let step = page.workload.step(id);
        let reach = page.reaches.of(id);
        // Nothing of the course starts when the window has ended (X5).
        let is_too_late = !step.stage.is_cleanup() && reach.start.least > page.instants.window_end;
        if is_too_late || !reach.can_run {
            continue;
        }
        let span = Span::of(page, step, reach);
        let gaps = [
            cannot_be_cut(page, id, step, reach, span),
            thread(page, id, step, reach, span),
            call(id, step, page),
            task(page, id, step, reach, span),
            destructor_outlasts(page, id, step, reach, span),
            destructor_panics(page, id, step, reach),
            disposer(page, id, step, reach),
        ];
        for (mut finding, kind) in gaps.into_iter().flatten() {
            finding.expected = page.expects_gap(Some(id), kind);
            findings.push(finding);
        }
    }
    findings.extend(broker(page).map(|finding| Finding {
        expected: page.expects_gap(None, Obligation::Settlement),
        ..finding
    }));
    findings
}

type Gap = (Finding, Obligation);

/// Between which instants of its delivery a step runs, and when it is cut.
#[derive(Clone, Copy)]
struct Span {
    /// When it starts at the latest.
    start: Duration,
    /// When it is asked to end; for cleanup this is when it is cut.
    asked: Duration,
    /// When its frame is dropped.
    cut: Duration,
}

impl Span {
    fn of(page: &Page<'_>, step: &Step, reach: Reach) -> Self {
        let instants = page.instants;
        let from = |base: Duration| base.saturating_add(reach.start.most);
        match step.stage {
            Stage::Terminate => {
                let before = instants.share * reach.callbacks_before;
                let began = instants.window_end + before;
                let cut = began + instants.share;
                Self { start: from(began).min(cut), asked: cut, cut }
            }
            Stage::Dispose => {
                let began = instants.end - instants.disposal();
                let (asked, cut) = (instants.end, instants.end);
                Self { start: from(began).min(cut), asked, cut }
            }
            _ => {
                let (asked, cut) = (instants.normal_cutoff, instants.window_end);
                let start = if reach.is_detached {
                    from(Duration::ZERO)
                } else {
                    from(Duration::ZERO).min(cut)
                };
                let start = if page.may_queue(step) { start.max(cut) } else { start };
                Self { start, asked, cut }
            }
        }
    }
}

fn cannot_be_cut(
    page: &Page<'_>,
    id: StepId,
    step: &Step,
    reach: Reach,
    span: Span,
) -> Option<Gap> {
    let instants = page.instants;
    let poll = longest_poll(step, reach.work);
    if reach.is_detached || step.stage == Stage::Dispose {
        return None;
    }
    // The last poll begins when the work does, or at the latest just before the cut.
    let can_be_polled_until_cut = span.start.saturating_add(reach.work.most) > span.cut;
    let last_poll = match can_be_polled_until_cut && poll < reach.work.most {
        true => span.cut,
        false => span.start,
    };
    if last_poll.saturating_add(poll) <= instants.end {
        return None;
    }
    let (frame, kind) = match step.stage {
        Stage::Terminate => ("the callback", Obligation::Callback),
        _ => ("the execution", Obligation::Execution),
    };
    let what = match poll < reach.work.most {
        true => format!("works up to {} between two yields", exact(poll)),
        false => format!("{} without a yield", takes(reach.work)),
    };
    let always = reach.start.least.saturating_add(reach.work.least) > instants.end;
    let consequence = match (kind, always) {
        (Obligation::Callback, _) => "ends late or unproven",
        (_, true) => {
            "is released late, or not while the run is observed, whenever the step runs; \
                      callbacks and disposal are not run, and the right to settle is lost"
        }
        (_, false) => {
            "can be released late or not at all; then callbacks and disposal are not run, \
                       and the right to settle is lost"
        }
    };
    let words = [
        what,
        format!("it cannot be cut, so {frame} {consequence}"),
        format!(
            "give it a `yield_every` well below the {} between cut and end",
            exact(instants.end - instants.window_end)
        ),
    ];
    Some((page.of_step(FindingKind::CannotBeCut, id, words), kind))
}

fn thread(page: &Page<'_>, id: StepId, step: &Step, reach: Reach, span: Span) -> Option<Gap> {
    if !is_threaded(&step.work) {
        return None;
    }
    let end = page.instants.end;
    let looks = match &step.work {
        Work::Blocking { looks_every, .. } => *looks_every,
        _ => None,
    };
    let by_itself = span.start.saturating_add(reach.work.most);
    let on_signal =
        looks.map_or(Duration::MAX, |every| span.start.max(span.asked).saturating_add(every));
    let own = destructor(step.on_drop.as_ref());
    if by_itself.min(on_signal).saturating_add(own) <= end {
        return None;
    }
    let always = looks.is_none()
        && !step.stage.is_cleanup()
        && reach.start.least.saturating_add(reach.work.least) > end;
    let what = match looks {
        None => format!("{} on a thread and never looks at the signal", takes(reach.work)),
        Some(every) => format!("looks at the signal every {} only", exact(every)),
    };
    let what = match own.is_zero() {
        true => what,
        false => format!("{what}, and its destructor can take {}", length(own)),
    };
    let words = [
        what,
        match always {
            true => String::from(
                "a thread cannot be cut, so its end is late or unproven whenever it is begun",
            ),
            false => String::from("a thread cannot be cut, so its end can be late or unproven"),
        },
        match &step.work {
            Work::Blocking { op: BlockingOp::Dns, .. } => {
                String::from("look it up beforehand, or use a resolver with a short time-out")
            }
            Work::Cpu { .. } => {
                String::from("compute on the worker with a `yield_every`, or split the work")
            }
            _ => String::from("give it a short `looks_every`, or split the work"),
        },
    ];
    Some((page.of_step(FindingKind::ThreadOutlasts, id, words), Obligation::Thread))
}

/// Calls that an `io` step makes on a thread, and that nothing cuts short.
fn call(id: StepId, step: &Step, page: &Page<'_>) -> Option<Gap> {
    let (what, mend) = match (&step.work, looks_up(&step.work)) {
        (Work::Read { .. }, _) => {
            ("reads a file on a thread".to_owned(), "read only what answers in time")
        }
        (Work::Write(_), _) => {
            ("writes a file on a thread".to_owned(), "write only to what answers in time")
        }
        (_, Some(host)) => (
            format!("looks up {host} on a thread before it connects"),
            "use an address, or a resolver with a short time-out",
        ),
        _ => return None,
    };
    let words = [
        what,
        String::from(
            "a thread inside a call cannot be cut, so its end is late or unproven when the call hangs",
        ),
        String::from(mend),
    ];
    Some((page.of_step(FindingKind::ThreadOutlasts, id, words), Obligation::Thread))
}

fn task(page: &Page<'_>, id: StepId, step: &Step, reach: Reach, span: Span) -> Option<Gap> {
    if !step.detach || is_threaded(&step.work) {
        return None;
    }
    let end = page.instants.end;
    let by_itself = span.start.saturating_add(reach.awaited.most);
    let on_signal = match &step.work {
        Work::Cooperative {
            slice,
            on_signal: OnSignal::Return | OnSignal::Fail { .. },
            wind_down,
            ..
        } => span.start.max(span.asked).saturating_add(*slice).saturating_add(*wind_down),
        _ => Duration::MAX,
    };
    if by_itself.min(on_signal) <= end {
        return None;
    }
    let mend = match heeds_the_signal(page.workload, id) {
        true => "shorten what it does after the signal, or await it",
        false => "let it look at the signal, give it a `timeout`, or await it",
    };
    let words = [
        format!("{} and is not awaited", takes(reach.awaited)),
        format!("detached work is not cut, and it is due at {}", exact(end)),
        mend.into(),
    ];
    Some((page.of_step(FindingKind::TaskOutlasts, id, words), Obligation::Task))
}

fn destructor_outlasts(
    page: &Page<'_>,
    id: StepId,
    step: &Step,
    reach: Reach,
    span: Span,
) -> Option<Gap> {
    let own = destructor(step.on_drop.as_ref());
    if own.is_zero() || is_threaded(&step.work) || reach.is_detached || step.stage == Stage::Dispose
    {
        return None;
    }
    let dropped = span.start.saturating_add(reach.work.most).min(span.cut);
    if dropped.saturating_add(own) <= page.instants.end {
        return None;
    }
    let (frame, kind) = match step.stage {
        Stage::Terminate => ("the callback", Obligation::Callback),
        _ => ("the execution", Obligation::Execution),
    };
    let words = [
        format!("has a destructor that can take {}", length(own)),
        format!(
            "dropped at {}, {frame} is not gone by {}",
            exact(dropped),
            exact(page.instants.end)
        ),
        String::from("keep blocking work out of destructors, or raise `budget.reserve`"),
    ];
    Some((page.of_step(FindingKind::DestructorOutlasts, id, words), kind))
}

fn destructor_panics(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Option<Gap> {
    let panics = step.on_drop.as_ref().is_some_and(|destructor| destructor.panic > 0.0);
    let in_execution = !reach.is_detached && !step.stage.is_cleanup() && !is_threaded(&step.work);
    let words = [
        String::from("has a destructor that can panic"),
        String::from(
            "its frame is gone then, but no release is evident: the execution stays unproven for good",
        ),
        String::from("do what can fail before the end of the work, and nothing in the destructor"),
    ];
    (panics && in_execution)
        .then(|| (page.of_step(FindingKind::DestructorPanics, id, words), Obligation::Execution))
}

fn disposer(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Option<Gap> {
    if page.workload.dispose != Some(id) {
        return None;
    }
    let left = page.instants.disposal();
    let worst = match is_threaded(&step.work) {
        true => reach.work.most,
        false => reach.awaited.most,
    };
    if worst <= left {
        return None;
    }
    let words = [
        takes(reach.awaited),
        format!(
            "after a cut, disposal has {}; one that does not return by then is unproven",
            exact(left)
        ),
        String::from("shorten it, or raise `budget.reserve`"),
    ];
    Some((page.of_step(FindingKind::DisposerOutlasts, id, words), Obligation::Scope))
}

fn broker(page: &Page<'_>) -> Option<Finding> {
    let policy = page.workload.settlement.as_ref()?;
    let (key, what) = match policy.confirm_in {
        None => ("settlement.confirm", String::from("the broker never confirms")),
        Some(confirm_in) if confirm_in > policy.timeout => (
            "settlement.confirm_in",
            format!(
                "the broker confirms after {}, and settlement.timeout is {}",
                exact(confirm_in),
                exact(policy.timeout)
            ),
        ),
        Some(_) => return None,
    };
    let words = [
        what,
        String::from("every settlement expires unresolved"),
        String::from("let it confirm within settlement.timeout"),
    ];
    Some(page.of_key(FindingKind::NotConfirmed, key, words))
}

fn length(span: Duration) -> String {
    match span {
        Duration::MAX => String::from("any time"),
        span => exact(span),
    }
}
