//! Runs work under a deadline and says, with evidence, what completed and what has really ended.
//!
//! # The one idea
//! Decide in pure code, act in the shell, judge from the log.
//!
//! ```text
//! file -> Workload -> Plan -> driver (engine decides, steps act) -> EventLog -> audit -> Report -> renderer -> bytes
//! ```
//!
//! # Modules, in reading order
//! Words, which know nothing of anything else:
//! - [`timeline`]: instants, and those that a budget fixes in advance.
//! - [`obligation`]: what must be shown to have ended, and what counts as showing it.
//! - [`event`]: what was observed and decided; the run's only record.
//!
//! Pure: no clock, no file, no thread, no terminal:
//! - [`duration`]: durations as people write them.
//! - [`workload`]: what the user wrote, checked; its faults; its seeded draws.
//! - [`plan`]: the workload as the engine and the audit see it.
//! - [`foresight`]: what a plan tells before anything is run.
//! - [`engine`]: the phase machines.
//! - [`audit`]: the plan and the log to verdicts, by its own reading of the rules.
//! - [`advice`]: one true sentence for each gap.
//! - [`report`]: the one value that is shown and stored; [`expect`] holds it against `[expect]`.
//! - [`events`]: the record as lines, written as things happen, and read back.
//! - [`replay`]: a recorded log against a fresh engine.
//! - [`render`]: a report or a plan as text or JSON.
//! - [`progress`]: counters that a driver moves.
//!
//! Shell: clocks, threads, the runtime, files:
//! - [`workload::file`]: reads a workload.
//! - [`panics`]: the workload's panics, kept away from the terminal and the process's end.
//! - [`drive`]: makes a run happen; `steps` do the work.
//! - [`settle`]: whom deliveries are settled with.
//!
//! The binary calls these and judges nothing.
//!
//! # Invariants
//! 1. Time first: what is due before `now` happens before the observation at `now` is considered. At
//!    the very instant, ends of work come first, then cutoffs, then starts.
//! 2. One observation, then its decisions, then the next. The same inputs give the same decisions.
//! 3. The clock decides; a timer only wakes.
//! 4. Asked before cut, a full window between; nothing of the normal course starts after the cut; one
//!    settlement; each callback once.
//! 5. A decision is never evidence. Evidence names exactly what was seen.
//! 6. Unknown stays unknown: no default reads as success. An odd observation is logged and judged.
//! 7. Late evidence is recorded as late and changes no verdict.
//! 8. Every obligation is opened before its work starts; no receipt, no "proven". An entry's place in its
//!    delivery's log is its order: moments tie, order does not.
//! 9. The report is never written through anything that stuck work can hold.

pub mod advice;
pub mod audit;
pub mod drive;
pub mod duration;
pub mod engine;
pub mod event;
pub mod events;
pub mod expect;
pub mod foresight;
pub mod obligation;
pub mod panics;
pub mod plan;
pub mod progress;
pub mod render;
pub mod replay;
pub mod report;
pub mod settle;
mod steps;
pub mod timeline;
pub mod workload;
