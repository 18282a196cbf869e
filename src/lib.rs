//! (map to be written)
pub mod event;
pub mod expect;
pub mod obligation;
pub mod plan;
pub mod progress;
pub mod render;
pub mod report;
pub mod timeline;

pub mod workload;
