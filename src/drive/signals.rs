//! SIGINT and SIGTERM to the program, taken by a thread of their own.
//!
//! The first begins the shutdown, the second forces it, the third ends the program at once with 128
//! plus its number (SPEC D1, D2, D4). A handler on the workload's runtime would starve behind it.
//!
//! One request can come as two signals: `timeout` sends its signal to its child and then to the whole
//! group. Equal ones that come closer together than anybody asks twice are one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::drive::rank;
use crate::event::Initiator;

const PRIORITY: u32 = 5;
/// Two equal signals no further apart are one request. Both of `timeout` come at once; a person, and a
/// key that is held, need longer.
const ONE_REQUEST: Duration = Duration::from_millis(10);

type Listener = Arc<dyn Fn(Initiator, u32) + Send + Sync>;

/// The signals that the program has been sent.
#[derive(Clone, Default)]
pub struct Signals {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    count: u32,
    last: Option<(Initiator, Instant)>,
    listener: Option<Listener>,
}

impl Signals {
    /// Takes SIGINT and SIGTERM from here on. To be called before any other thread is started: the
    /// threads of the program inherit that they are blocked.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn take() -> std::io::Result<Self> {
        let set = signal_set();
        // SAFETY: the set is live and initialised; a null old set is allowed.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        let signals = Self::default();
        let state = Arc::clone(&signals.state);
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            rank::raise(PRIORITY);
            loop {
                let mut number = 0;
                // SAFETY: both point to live values of this thread.
                if unsafe { libc::sigwait(&raw const set, &raw mut number) } == 0 {
                    answer(&state, number, Instant::now());
                }
            }
        })?;
        Ok(signals)
    }

    /// How many have come.
    pub fn count(&self) -> u32 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Tells `listener` of those that come, and of the one that has come already.
    pub(crate) fn listen(&self, listener: Option<Listener>) {
        let (last, count) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.listener.clone_from(&listener);
            (state.last, state.count)
        };
        if let (Some((by, _)), Some(listener)) = (last, listener) {
            listener(by, count);
        }
    }
}

fn answer(state: &Mutex<State>, number: i32, now: Instant) {
    let by = if number == libc::SIGINT { Initiator::Interrupt } else { Initiator::Terminate };
    let (count, listener) = {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_echo = |(last, at)| last == by && now.duration_since(at) <= ONE_REQUEST;
        if state.last.is_some_and(is_echo) {
            return;
        }
        state.count += 1;
        state.last = Some((by, now));
        (state.count, state.listener.clone())
    };
    if count >= 3 {
        // SAFETY: ends the process without running anything of ours, which is what is wanted.
        unsafe { libc::_exit(128 + number) };
    }
    if let Some(listener) = listener {
        listener(by, count);
    }
}

fn signal_set() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; adding two valid numbers cannot fail.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals that came so many milliseconds after the first, and what was told of them.
    fn told(signals: &[(i32, u64)]) -> Vec<(Initiator, u32)> {
        let taken = Signals::default();
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&told);
        let began = Instant::now();
        for (place, (number, millis)) in signals.iter().enumerate() {
            answer(&taken.state, *number, began + Duration::from_millis(*millis));
            if place == 0 {
                let tell = Arc::clone(&tell);
                taken.listen(Some(Arc::new(move |by, count| {
                    tell.lock().expect("nobody panics").push((by, count));
                })));
            }
        }
        let told = told.lock().expect("nobody panics");
        told.clone()
    }

    #[test]
    fn a_signal_that_came_before_anybody_listened_is_told() {
        let expected = [(Initiator::Interrupt, 1), (Initiator::Terminate, 2)];
        assert_eq!(told(&[(libc::SIGINT, 0), (libc::SIGTERM, 0)]), expected);
    }

    #[test]
    fn equal_signals_at_once_are_one_request_and_two_a_moment_later() {
        let term = libc::SIGTERM;
        assert_eq!(told(&[(term, 0), (term, 10)]), [(Initiator::Terminate, 1)]);
        let expected = [(Initiator::Terminate, 1), (Initiator::Terminate, 2)];
        assert_eq!(told(&[(term, 0), (term, 11)]), expected);
    }
}
