//! Reads what the user named, and stops waiting for it when a signal comes.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use deadline_run::drive::signals::Signals;

/// How long a signal may go unnoticed.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What `read` answers about `file`; `None` when a signal came first. A named pipe that nobody writes
/// to is waited for on a thread of its own, which is left behind then.
pub fn read<T: Send + 'static>(
    file: &Path,
    signals: &Signals,
    read: impl FnOnce() -> T + Clone + Send + 'static,
) -> Option<T> {
    if file.metadata().is_ok_and(|meta| meta.is_file()) {
        return Some(read());
    }
    let (answer, answered) = channel();
    let on_a_thread = read.clone();
    let spawned = thread::Builder::new().name("deadline-run-in".into()).spawn(move || {
        let _ = answer.send(on_a_thread());
    });
    if spawned.is_err() {
        return Some(read());
    }
    loop {
        match answered.recv_timeout(BETWEEN_LOOKS) {
            Ok(answer) => return Some(answer),
            // It has panicked, and will here.
            Err(RecvTimeoutError::Disconnected) => return Some(read()),
            Err(RecvTimeoutError::Timeout) if signals.count() > 0 => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
