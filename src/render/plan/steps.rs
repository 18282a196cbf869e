//! What a step does, in one line.

use std::time::Duration;

use crate::report::words::{count, exact};
use crate::workload::{
    Address, BlockingOp, Connection, CpuAmount, CpuPlace, Destructor, DestructorWork, OnSignal,
    Pool, ReadUntil, Span, Step, Wait, Work, Workload,
};

/// A step's work and its policies, as in `blocking 1s 600ms, share 0.25`.
pub(super) fn describe(step: &Step, workload: &Workload) -> String {
    let mut parts = vec![describe_work(&step.work, workload)];
    if let Some(timeout) = step.timeout {
        parts.push(format!("timeout {}", exact(timeout)));
    }
    if let Some(budget) = step.poll_budget {
        parts.push(count(budget, "poll granted", "polls granted"));
    }
    if let Some(fail) = &step.fail {
        let retryable = if fail.retryable { ", retryable" } else { "" };
        let first = fail.first.map_or(String::new(), |first| format!(", the first {first}"));
        parts.push(format!("fails with {}{}{first}{retryable}", fail.code, of_all(fail.share)));
    }
    if step.panic > 0.0 {
        parts.push(format!("panics{}", of_all(step.panic)));
    }
    if step.share < 1.0 {
        parts.push(format!("share {}", step.share));
    }
    if step.optional {
        parts.push(String::from("optional"));
    }
    if step.detach {
        parts.push(String::from("detached"));
    }
    if let Some(destructor) = &step.on_drop {
        parts.push(describe_destructor(destructor));
    }
    parts.join(", ")
}

fn of_all(share: f64) -> String {
    if share < 1.0 { format!(" (share {share})") } else { String::new() }
}

fn describe_work(work: &Work, workload: &Workload) -> String {
    match work {
        Work::Cpu { amount, yield_every, on } => {
            let place = match on {
                CpuPlace::Worker => "",
                CpuPlace::Thread => ", on a thread of its own",
            };
            let yields = match yield_every {
                Some(every) => format!(", yields every {}", exact(*every)),
                None if *on == CpuPlace::Worker => String::from(", never yields"),
                None => String::new(),
            };
            format!("cpu {}{yields}{place}", describe_amount(amount))
        }
        Work::Cooperative { duration, slice, on_signal, wind_down } => {
            let seen = match on_signal {
                OnSignal::Return => format!("returns {} after the signal", exact(*wind_down)),
                OnSignal::Fail { code } => {
                    format!("fails with {code} {} after the signal", exact(*wind_down))
                }
                OnSignal::Finish => String::from("finishes whatever the signal"),
                OnSignal::Ignore => String::from("ignores the signal"),
            };
            format!("cooperative {} by {}, {seen}", describe_span(duration), exact(*slice))
        }
        Work::Blocking { op, duration, looks_every, pool } => {
            let looks = match looks_every {
                Some(every) => format!(", looks every {}", exact(*every)),
                None => String::from(", never looks at the signal"),
            };
            let pool = match pool {
                Pool::Shared => "",
                Pool::Own => ", on a thread of its own",
            };
            format!("blocking {} {}{looks}{pool}", op_word(*op), describe_span(duration))
        }
        Work::Sleep { duration } => format!("io sleep {}", describe_span(duration)),
        Work::Tcp(tcp) => {
            let mut text = format!("io tcp to {}", describe_connection(&tcp.connection, workload));
            match tcp.read {
                Some(ReadUntil::First) => text.push_str(", reads the first bytes"),
                Some(ReadUntil::End) => text.push_str(", reads to the end"),
                None => {}
            }
            if let Some(hold) = tcp.hold {
                text.push_str(&format!(", holds it {}", exact(hold)));
            }
            text
        }
        Work::Http(http) => format!(
            "io http {} {} of {}",
            http.method,
            http.target,
            describe_connection(&http.connection, workload)
        ),
        Work::Read { path } => format!("io read {}", path.display()),
        Work::Write(write) => {
            let synced = if write.sync { ", synced" } else { "" };
            let kept = if write.keep { ", kept" } else { ", removed at the end" };
            format!("io write {} bytes to {}{synced}{kept}", write.size, write.path.display())
        }
        Work::Polls { count: polls } => format!("polls {polls}"),
        Work::Sequence { .. } => String::from("sequence"),
        Work::Parallel { wait: Wait::All, .. } => String::from("parallel, waits for all"),
        Work::Parallel { wait: Wait::First, .. } => String::from("parallel, waits for the first"),
        Work::Choice { weights, .. } => {
            let weights: Vec<String> = weights.iter().map(ToString::to_string).collect();
            format!("choice, weights {}", weights.join(" to "))
        }
    }
}

fn describe_connection(connection: &Connection, workload: &Workload) -> String {
    let mut text = match &connection.to {
        Address::Peer(place) => format!("peer {}", workload.peers[*place].name),
        Address::Host { host, port } => format!("{host} port {port}"),
    };
    let limits = [
        ("connects", connection.connect_timeout),
        ("is answered", connection.read_timeout),
        ("hears more", connection.idle_timeout),
    ];
    for (what, limit) in limits {
        if let Some(limit) = limit {
            text.push_str(&format!(", {what} within {}", exact(limit)));
        }
    }
    text
}

fn describe_destructor(destructor: &Destructor) -> String {
    let work = match &destructor.work {
        DestructorWork::Cpu(amount) => format!("cpu {}", describe_amount(amount)),
        DestructorWork::Blocking { op, duration } => {
            format!("blocking {} {}", op_word(*op), describe_span(duration))
        }
    };
    let panics = match destructor.panic > 0.0 {
        true => format!(" and panics{}", of_all(destructor.panic)),
        false => String::new(),
    };
    format!("destructor {work}{panics}")
}

fn describe_amount(amount: &CpuAmount) -> String {
    match amount {
        CpuAmount::Time(span) => describe_span(span),
        CpuAmount::Iterations(rounds) => count(*rounds, "round", "rounds"),
    }
}

fn describe_span(span: &Span) -> String {
    let cut = |max: &Option<Duration>| match max {
        Some(max) => format!(", {} at most", exact(*max)),
        None => String::new(),
    };
    match span {
        Span::Fixed(fixed) => exact(*fixed),
        Span::Uniform { min, max } => format!("{} to {}", exact(*min), exact(*max)),
        Span::Exponential { mean, max } => {
            format!("exponential, mean {}{}", exact(*mean), cut(max))
        }
        Span::LogNormal { p50, p99, max } => {
            format!("log-normal, p50 {}, p99 {}{}", exact(*p50), exact(*p99), cut(max))
        }
    }
}

fn op_word(op: BlockingOp) -> &'static str {
    match op {
        BlockingOp::Sleep => "sleep",
        BlockingOp::Spin => "spin",
        BlockingOp::Lock => "lock",
        BlockingOp::Fsync => "fsync",
        BlockingOp::Dns => "dns",
    }
}
