//! What the kernel says of this process's own threads.
//!
//! Reads `/proc/self/task`. Everything it cannot read is `None`. Thread ids are reused, so a
//! thread is only believed to be the one that was named when its start time is the same.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crate::event::{ThreadName, ThreadState};

/// What a thread was doing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doing {
    pub state: Option<ThreadState>,
    pub cpu: Option<Duration>,
    pub waiting_in: Option<Arc<str>>,
}

/// The name of the calling thread; `None` where the kernel does not tell.
pub(crate) fn this_thread() -> Option<ThreadName> {
    thread_local! {
        static NAME: Option<ThreadName> = read_this_thread();
    }
    NAME.with(|name| *name)
}

/// The CPU time that the calling thread has used.
pub(crate) fn this_thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// Looks at a thread of this process.
pub(crate) fn look(thread: ThreadName) -> Doing {
    let Some((state, start_ticks)) = read_stat(thread.tid) else {
        return Doing { state: Some(ThreadState::Dead), ..Doing::default() };
    };
    if start_ticks != thread.start_ticks {
        return Doing { state: Some(ThreadState::Dead), ..Doing::default() };
    }
    let waiting_in = match state {
        ThreadState::Running | ThreadState::Dead => None,
        _ => read_wait(thread.tid),
    };
    Doing { state: Some(state), cpu: read_cpu(thread.tid), waiting_in }
}

fn read_this_thread() -> Option<ThreadName> {
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    read_stat(tid).map(|(_, start_ticks)| ThreadName { tid, start_ticks })
}

fn read_task(tid: u32, file: &str) -> Option<String> {
    fs::read_to_string(format!("/proc/self/task/{tid}/{file}")).ok()
}

/// State and start time: the third and the 22nd field. The second, the name, may hold anything, so
/// fields are counted from its closing parenthesis.
fn read_stat(tid: u32) -> Option<(ThreadState, u64)> {
    let stat = read_task(tid, "stat")?;
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = match fields.next()? {
        "R" => ThreadState::Running,
        "S" | "I" => ThreadState::Sleeping,
        "D" => ThreadState::DiskSleep,
        "T" | "t" => ThreadState::Stopped,
        "Z" | "X" | "x" => ThreadState::Dead,
        _ => ThreadState::Other,
    };
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Nanoseconds on a processor: the first number of `schedstat`.
fn read_cpu(tid: u32) -> Option<Duration> {
    let nanos = read_task(tid, "schedstat")?.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// The kernel function that the thread waits in, or else the number of its system call.
fn read_wait(tid: u32) -> Option<Arc<str>> {
    let channel = read_task(tid, "wchan").filter(|channel| !channel.is_empty() && channel != "0");
    let call = || {
        let call = read_task(tid, "syscall")?;
        let number = call.split_ascii_whitespace().next()?;
        number.parse::<u32>().ok().map(|number| format!("system call {number}"))
    };
    channel.or_else(call).map(Arc::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_sleeping_thread_is_seen_asleep_and_a_reused_id_is_not_believed() {
        let (name_out, name_in) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            name_out.send(this_thread()).expect("the test listens");
            let _ = ended.recv();
        });
        let name = name_in.recv().expect("the thread speaks").expect("the kernel tells");
        let doing = loop {
            let doing = look(name);
            if doing.state == Some(ThreadState::Sleeping) {
                break doing;
            }
        };
        assert!(doing.cpu.is_some());
        let other = ThreadName { start_ticks: name.start_ticks + 1, ..name };
        assert_eq!(look(other).state, Some(ThreadState::Dead));
        drop(end);
        thread.join().expect("the thread ends");
    }
}
