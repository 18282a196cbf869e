//! Who deliveries are settled with.

pub mod memory;
