#![no_main]

use deadline_run_fuzz::properties;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| properties::workload_mutated(bytes));
