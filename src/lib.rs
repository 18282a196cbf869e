//! (map to be written)
pub mod advice;
pub mod audit;
pub mod event;
pub mod obligation;
pub mod plan;
pub mod report;
pub mod timeline;

pub mod workload;
