//! Bad input is refused and never more than that: the properties of `fuzz/`, tried briefly.

mod mutate;
mod properties;

use proptest::collection::vec;
use proptest::prelude::*;

/// Where the properties find the files that they start from.
const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

proptest! {
    #[test]
    fn any_bytes_are_a_workload_or_have_faults(bytes in vec(any::<u8>(), 0..200)) {
        properties::workload_bytes(&bytes);
    }

    #[test]
    fn any_changed_file_is_a_workload_or_has_faults(bytes in vec(any::<u8>(), 0..60)) {
        properties::workload_mutated(&bytes);
    }

    #[test]
    fn any_words_of_the_command_line_leave_a_workload_or_have_faults(
        bytes in vec(any::<u8>(), 0..80),
    ) {
        properties::set_words(&bytes);
        properties::set_lines(&bytes);
    }

    #[test]
    fn any_log_is_judged_and_replayed(bytes in vec(any::<u8>(), 0..40)) {
        properties::replay_log(&bytes);
    }
}
