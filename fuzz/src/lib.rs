//! The properties of `tests/it/bad_input.rs`, for targets that try them as long as one likes.

#[path = "../../tests/it/judged.rs"]
pub mod judged;
#[path = "../../tests/it/bad_input/mutate.rs"]
mod mutate;
#[path = "../../tests/it/bad_input/properties.rs"]
pub mod properties;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
