//! Panics that belong to the workload, kept away from the terminal and from the process's end.
//!
//! [`contain`] runs a piece of the workload's own code: its panic becomes a value. Two panics in
//! one frame, or one that unwinds into another, abort a process in spite of `catch_unwind`; so each
//! destructor of a step runs inside a `contain` of its own, and a frame is dropped after the
//! unwinding and not during it.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// The workload's code panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// Runs the workload's code and turns its panic into a value.
///
/// The payload is forgotten rather than dropped: a payload can panic in its own destructor.
pub fn contain<R>(work: impl FnOnce() -> R) -> Result<R, Panicked> {
    CONTAINED.set(CONTAINED.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(CONTAINED.get() - 1);
    result.map_err(|payload| {
        std::mem::forget(payload);
        Panicked
    })
}

/// Whether a panic on this thread now would be the workload's, and contained.
fn is_expected() -> bool {
    CONTAINED.get() > 0
}

/// Keeps contained panics quiet; all others reach the hook that was there before. Once per process.
pub fn hush() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !is_expected() {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    struct PanicsInDrop;

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            let _ = contain(|| panic!("in a destructor"));
        }
    }

    #[test]
    fn destructors_that_panic_in_a_pair_and_while_unwinding_are_contained() {
        hush();
        let outcome = contain(|| {
            let _pair = (PanicsInDrop, PanicsInDrop);
            panic!("unwinds into both");
        });
        assert_eq!(outcome, Err::<(), _>(Panicked));
        assert!(!is_expected());
    }
}
