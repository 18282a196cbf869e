//! What in a workload is likely not meant.
//!
//! Each finding says what the file does, why that is probably not wanted, and what would be right.
//! What `[expect]` names is wanted, and no finding.

use std::time::Duration;

use super::reach::{
    Reach, can_fail, heeds_the_signal, holds_its_worker, in_order, is_threaded, looks_up, may_fail,
};
use super::{Finding, FindingKind, Page, takes};
use crate::event::StepId;
use crate::report::words::{count, exact};
use crate::workload::{Address, BlockingOp, CpuPlace, OnSignal, Pool, Step, Wait, Work, Workload};

/// Less than a timer, a wake-up and a poll together take on a busy machine.
pub(super) const POLL_WORTH: Duration = Duration::from_millis(1);

/// Every doubt, by what it is about.
pub(super) fn find(page: &Page<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(no_window(page));
    findings.extend(idle_slots(page));
    findings.extend(too_few_threads(page));
    findings.extend(unused_peers(page));
    findings.extend(all_optional(page));
    findings.extend(never_starts(page));
    if !page.expects_row(&["interrupted", "success"]) {
        findings.extend(always_interrupted(page).map(|(finding, _)| finding));
    }
    for id in page.ids() {
        let step = page.workload.step(id);
        let reach = page.reaches.of(id);
        findings.extend(never_drawn(page, id, step));
        if !reach.can_run {
            continue;
        }
        findings.extend(timeout_never_fires(page, id, step, reach));
        findings.extend(limits_never_fire(page, id, step, reach));
        findings.extend(poll_budget_never_used(page, id, step));
        findings.extend(wind_down_too_long(page, id, step, reach));
        findings.extend(looks_too_rarely(page, id, step, reach));
        findings.extend(callback_over_share(page, id, step, reach));
        findings.extend(no_effect(page, id, step));
    }
    findings
}

fn no_window(page: &Page<'_>) -> Option<Finding> {
    let window = page.instants.window();
    if window >= POLL_WORTH {
        return None;
    }
    let cap = page.workload.budget.window_cap;
    let (key, mend) = match cap < POLL_WORTH {
        true => ("budget.cooperative_window", "leave out the key, or use 1ms at least"),
        false if page.workload.budget.reserve.is_some() => {
            ("budget.reserve", "the window is a quarter of the reserve at most; use a longer one")
        }
        false => ("budget.total", "the window is a sixteenth of such a total; use a longer one"),
    };
    let words = [
        format!("the cooperative window is {}", exact(window)),
        String::from("hardly anything can return after it has seen the signal"),
        mend.into(),
    ];
    Some(page.of_key(FindingKind::NoWindow, key, words))
}

fn idle_slots(page: &Page<'_>) -> Option<Finding> {
    let load = &page.workload.load;
    let words = [
        format!(
            "{} slots for {}",
            load.concurrency,
            count(load.deliveries.into(), "message", "messages")
        ),
        String::from("the other slots are never taken"),
        String::from("use as many deliveries at least, or a lower concurrency"),
    ];
    // With a rate the default is as good as no bound.
    let is_written = page.workload.lines.contains_key("load.concurrency");
    (is_written && load.concurrency > load.deliveries)
        .then(|| page.of_key(FindingKind::IdleSlots, "load.concurrency", words))
}

/// How many threads of the shared pool the workload can want at once, in deliveries that hold a slot.
pub(super) fn most_threads(workload: &Workload) -> u64 {
    let cleanup = workload.middleware.iter().filter_map(|one| one.terminate);
    let awaited = in_order(workload).into_iter().chain(cleanup).chain(workload.dispose);
    let ids = (0..workload.steps.len() as u32).map(StepId);
    let detached = ids
        .filter(|id| workload.step(*id).detach)
        .map(|id| threads_inside(workload, id))
        .fold(0, u64::saturating_add);
    let each = awaited.map(|id| threads(workload, id)).max().unwrap_or(0).saturating_add(detached);
    each.saturating_mul(workload.load.concurrency.min(workload.load.deliveries).into())
}

/// The threads that are wanted at once by whoever awaits the step.
fn threads(workload: &Workload, id: StepId) -> u64 {
    if workload.step(id).detach { 0 } else { threads_inside(workload, id) }
}

fn threads_inside(workload: &Workload, id: StepId) -> u64 {
    let inside =
        |steps: &[StepId]| steps.iter().map(|id| threads(workload, *id)).collect::<Vec<_>>();
    match &workload.step(id).work {
        Work::Blocking { pool: Pool::Shared, .. } | Work::Read { .. } | Work::Write(_) => 1,
        work if looks_up(work).is_some() => 1,
        Work::Parallel { steps, .. } => inside(steps).iter().sum(),
        work => inside(work.children()).into_iter().max().unwrap_or(0),
    }
}

fn too_few_threads(page: &Page<'_>) -> Option<Finding> {
    let wanted = page.threads;
    let threads = page.workload.runtime.blocking_threads;
    let words = [
        format!(
            "{} for up to {wanted} pieces of blocking work at once",
            count(threads as u64, "thread", "threads")
        ),
        String::from("the others wait for one, and waiting is charged to their budgets"),
        String::from(
            "raise runtime.blocking_threads, lower load.concurrency, or use pool = \"own\"",
        ),
    ];
    (wanted > threads as u64)
        .then(|| page.of_key(FindingKind::TooFewThreads, "runtime.blocking_threads", words))
}

fn all_optional(page: &Page<'_>) -> Option<Finding> {
    let workload = page.workload;
    let handler = &workload.handler;
    let is_hidden = |id: &StepId| workload.step(*id).optional;
    let first = *handler.first()?;
    let words = [
        String::from("every step of the handler is optional"),
        String::from("whatever fails in it, the delivery succeeds and is only degraded"),
        String::from("take `optional` from what the delivery is about, or expect `degraded`"),
    ];
    let hides = handler.iter().all(is_hidden) && handler.iter().any(|id| can_fail(workload, *id));
    (hides && !page.expects_row(&["degraded"]))
        .then(|| page.of_step(FindingKind::AllOptional, first, words))
}

/// The steps at which no delivery can be in time, and whether that holds for every delivery.
pub(super) fn always_interrupted(page: &Page<'_>) -> impl Iterator<Item = (Finding, bool)> {
    let instants = page.instants;
    let mut elapsed = Duration::ZERO;
    let mut found = Vec::new();
    for id in in_order(page.workload) {
        let step = page.workload.step(id);
        let own = page.reaches.of(id).awaited.least;
        let end = elapsed.saturating_add(own);
        let heeds = heeds_the_signal(page.workload, id);
        if page.reaches.of(id).can_run && !step.detach && !heeds && end > instants.window_end {
            let is_for_all = step.share >= 1.0;
            let before = match elapsed.is_zero() {
                true => String::new(),
                false => format!(", after {} at least before it", exact(elapsed)),
            };
            let who = if is_for_all { "every delivery" } else { "every delivery that runs it" };
            let words = [
                format!("takes {} at least{before}", exact(own)),
                format!(
                    "the window ends at {}, so {who} is interrupted",
                    exact(instants.window_end)
                ),
                String::from("raise budget.total, shorten the step, or expect `interrupted`"),
            ];
            found.push((page.of_step(FindingKind::AlwaysInterrupted, id, words), is_for_all));
            if is_for_all {
                break;
            }
        }
        if !step.detach && step.share >= 1.0 {
            // What looks at the signal can end then, and not before.
            elapsed = if heeds { end.min(instants.normal_cutoff.max(elapsed)) } else { end };
        }
        if may_fail(page.workload, id) {
            break;
        }
    }
    found.into_iter()
}

/// Steps behind one that always fails, in the stages and in sequences.
fn never_starts(page: &Page<'_>) -> Vec<Finding> {
    let workload = page.workload;
    let stages = [&workload.guard, &workload.resolve, &workload.extract, &workload.handler];
    let before = workload.middleware.iter().filter_map(|one| one.before);
    let forward: Vec<StepId> = before.chain(stages.into_iter().flatten().copied()).collect();
    let sequences = workload.steps.iter().filter_map(|step| match &step.work {
        Work::Sequence { steps } => Some(steps.clone()),
        _ => None,
    });
    let mut findings = Vec::new();
    for steps in std::iter::once(forward).chain(sequences) {
        let Some(at) = steps.iter().position(|id| always_fails(page, *id)) else { continue };
        let Some(next) = steps.get(at + 1) else { continue };
        let failing = workload.step(steps[at]);
        let words = [
            format!("comes after `{}`, which always fails or panics", failing.name),
            String::from("it never starts, nor does what follows it"),
            format!("make `{}` optional, or let it fail for a share only", failing.name),
        ];
        findings.push(page.of_step(FindingKind::NeverStarts, *next, words));
    }
    findings
}

fn always_fails(page: &Page<'_>, id: StepId) -> bool {
    let step = page.workload.step(id);
    let fails = step.panic >= 1.0
        || step.fail.as_ref().is_some_and(|fail| fail.share >= 1.0 && fail.first.is_none());
    fails
        && step.share >= 1.0
        && !step.optional
        && !step.detach
        // What ends early on seeing the signal does not come to its `fail`.
        && !heeds_the_signal(page.workload, id)
}

fn timeout_never_fires(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Option<Finding> {
    let timeout = step.timeout?;
    let instants = page.instants;
    let is_bound_to_cutoff = !reach.is_detached && !step.stage.is_cleanup();
    let due = reach.start.least.saturating_add(timeout);
    let (why, mend) = if step.detach && is_threaded(&step.work) {
        (
            String::from("nobody awaits the thread, so there is nothing to time out"),
            String::from("leave it out, or await the step"),
        )
    } else if holds_its_worker(step) {
        (
            String::from(
                "the step returns in one poll, and a timeout is only noticed between polls",
            ),
            String::from("give the step a `yield_every`"),
        )
    } else if is_bound_to_cutoff && due >= instants.normal_cutoff {
        (
            format!(
                "it would be due at {} or later, and from {} on only the signal counts",
                exact(due),
                exact(instants.normal_cutoff)
            ),
            match instants.normal_cutoff.saturating_sub(reach.start.least) {
                Duration::ZERO => {
                    String::from("shorten what runs before it, or raise budget.total")
                }
                left => format!("use less than {}", exact(left)),
            },
        )
    } else if takes_no_longer_than_written(page, step, reach) && timeout > reach.work.most {
        (
            format!("the step's own work {}", takes(reach.work)),
            String::from("use a shorter one, or let the work take longer"),
        )
    } else {
        return None;
    };
    let words = [format!("has a timeout of {} that never fires", exact(timeout)), why, mend];
    Some(page.of_step(FindingKind::TimeoutNeverFires, id, words))
}

/// The limits of a connection that the cutoff or the step's own timeout always comes before.
fn limits_never_fire(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Vec<Finding> {
    let Some(connection) = step.work.connection() else { return Vec::new() };
    let cutoff = page.instants.normal_cutoff;
    let is_bound_to_cutoff = !reach.is_detached && !step.stage.is_cleanup();
    let limits = [
        ("connect_timeout", connection.connect_timeout),
        ("read_timeout", connection.read_timeout),
        ("idle_timeout", connection.idle_timeout),
    ];
    let mut findings = Vec::new();
    for (key, limit) in limits {
        let Some(limit) = limit else { continue };
        let due = reach.start.least.saturating_add(limit);
        let (why, mend) = match step.timeout.filter(|timeout| *timeout <= limit) {
            _ if is_bound_to_cutoff && due >= cutoff => (
                format!(
                    "it would be due at {} or later, and from {} on only the signal counts",
                    exact(due),
                    exact(cutoff)
                ),
                String::from("use a shorter one, or raise budget.total"),
            ),
            Some(timeout) => (
                format!("the step's own timeout of {} comes first", exact(timeout)),
                format!("use less than {}, or leave it out", exact(timeout)),
            ),
            None => continue,
        };
        let words = [format!("has a {key} of {} that never fires", exact(limit)), why, mend];
        findings.push(page.of_step(FindingKind::TimeoutNeverFires, id, words));
    }
    findings
}

/// Whether the work is over by the wall clock when the file says so, however busy the machine is.
fn takes_no_longer_than_written(page: &Page<'_>, step: &Step, reach: Reach) -> bool {
    match &step.work {
        // What is ready in the poll in which its timeout is noticed counts (P2).
        Work::Sleep { .. } => true,
        // Detached, it can still be winding down when its timeout fires.
        Work::Cooperative { .. } => !reach.is_detached,
        Work::Blocking { op, .. } => *op != BlockingOp::Fsync && !page.may_queue(step),
        Work::Cpu { .. }
        | Work::Tcp(_)
        | Work::Http(_)
        | Work::Read { .. }
        | Work::Write(_)
        | Work::Polls { .. }
        | Work::Sequence { .. }
        | Work::Parallel { .. }
        | Work::Choice { .. } => false,
    }
}

fn poll_budget_never_used(page: &Page<'_>, id: StepId, step: &Step) -> Option<Finding> {
    let budget = step.poll_budget?;
    let needed = match &step.work {
        Work::Polls { count } => count.saturating_add(1),
        Work::Cpu { .. } if holds_its_worker(step) => 1,
        _ => return None,
    };
    let words = [
        format!("has a poll budget of {budget}, and needs {}", count(needed, "poll", "polls")),
        String::from("the budget is never exhausted"),
        format!("use less than {needed}, or leave it out"),
    ];
    (budget >= needed).then(|| page.of_step(FindingKind::PollBudgetNeverUsed, id, words))
}

/// Whether an awaited step of the course can still be at work when the signal comes.
fn can_see_the_signal(page: &Page<'_>, step: &Step, reach: Reach) -> bool {
    !reach.is_detached
        && !step.stage.is_cleanup()
        && reach.start.most.saturating_add(reach.awaited.most) > page.instants.normal_cutoff
}

fn wind_down_too_long(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Option<Finding> {
    let Work::Cooperative {
        on_signal: OnSignal::Return | OnSignal::Fail { .. }, wind_down, ..
    } = &step.work
    else {
        return None;
    };
    let window = page.instants.window();
    let words = [
        format!("winds down for {} after it has seen the signal", exact(*wind_down)),
        format!("the window is {}, so it is cut all the same", exact(window)),
        format!("wind down in less than {}, or raise budget.reserve", exact(window)),
    ];
    (*wind_down > window && can_see_the_signal(page, step, reach))
        .then(|| page.of_step(FindingKind::WindDownTooLong, id, words))
}

fn looks_too_rarely(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Option<Finding> {
    let Work::Blocking { looks_every: Some(looks_every), .. } = &step.work else { return None };
    let window = page.instants.window();
    let words = [
        format!("looks at the signal every {}", exact(*looks_every)),
        format!(
            "the window is {}, so it can look for the first time when it is cut",
            exact(window)
        ),
        format!("look more often than every {}", exact(window)),
    ];
    (*looks_every > window && can_see_the_signal(page, step, reach))
        .then(|| page.of_step(FindingKind::LooksTooRarely, id, words))
}

fn callback_over_share(page: &Page<'_>, id: StepId, step: &Step, reach: Reach) -> Option<Finding> {
    let instants = page.instants;
    let is_callback = page.workload.middleware.iter().any(|one| one.terminate == Some(id));
    if !is_callback || step.detach || reach.awaited.most <= instants.share {
        return None;
    }
    let among = match instants.callbacks {
        1 => String::new(),
        callbacks => format!(", one of {callbacks}"),
    };
    let words = [
        takes(reach.awaited),
        format!(
            "cut at the window's end, a delivery has {} for this callback{among}; past that it is \
             dropped, and the cleanup has failed",
            exact(instants.share)
        ),
        String::from("shorten it, or raise budget.reserve"),
    ];
    Some(page.of_step(FindingKind::CallbackOverShare, id, words))
}

fn never_drawn(page: &Page<'_>, id: StepId, step: &Step) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |id, what: &str, why: &str, mend: &str| {
        let words = [what, why, mend].map(String::from);
        findings.push(page.of_step(FindingKind::NeverDrawn, id, words));
    };
    if step.share == 0.0 {
        add(id, "has a share of 0", "it never runs", "use a share above 0, or leave out the step");
    }
    if step.fail.as_ref().is_some_and(|fail| fail.share == 0.0) {
        add(
            id,
            "fails for a share of 0",
            "it never fails",
            "use a share above 0, or leave out `fail`",
        );
    }
    if let Work::Choice { steps, weights } = &step.work {
        for (branch, _) in steps.iter().zip(weights).filter(|(_, weight)| **weight == 0.0) {
            let why = format!("`{}` never chooses it", step.name);
            add(
                *branch,
                "has a weight of 0",
                &why,
                "use a weight above 0, or leave out the branch",
            );
        }
    }
    findings
}

/// Peers that no step names.
fn unused_peers(page: &Page<'_>) -> Vec<Finding> {
    let connections = page.workload.steps.iter().filter_map(|step| step.work.connection());
    let used: Vec<&Address> = connections.map(|connection| &connection.to).collect();
    let peers = page.workload.peers.iter().enumerate();
    peers
        .filter(|(place, _)| !used.contains(&&Address::Peer(*place)))
        .map(|(_, peer)| {
            let words = [
                String::from("no step has this peer's url"),
                String::from("nobody ever connects to it"),
                format!("use url = \"peer:{}\" in a step, or leave it out", peer.name),
            ];
            page.of_key(FindingKind::NoEffect, &format!("peers.{}", peer.name), words)
        })
        .collect()
}

fn no_effect(page: &Page<'_>, id: StepId, step: &Step) -> Option<Finding> {
    let words = match &step.work {
        Work::Cpu { yield_every: Some(_), on: CpuPlace::Thread, .. } => [
            "has a `yield_every` on a thread of its own",
            "there is nobody to yield to, so it changes nothing",
            "leave it out, or compute on the worker",
        ],
        Work::Parallel { steps, wait: Wait::First } if steps.len() == 1 => [
            "races one branch alone",
            "there is nothing for it to win against",
            "add a branch, or leave out `wait`",
        ],
        _ => return None,
    };
    Some(page.of_step(FindingKind::NoEffect, id, words.map(String::from)))
}
