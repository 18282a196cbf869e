//! `[expect]`: what a workload promises of its own run.

use std::time::Duration;

/// `[expect]`: what the workload promises of its own run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// In the order of the file.
    pub rows: Vec<ExpectRow>,
    /// `[[expect.gap]]`.
    pub gaps: Vec<ExpectGap>,
}

/// One line of `[expect]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectRow {
    /// What is compared, as written (`late`, `p99`, `codes.BUSY`).
    pub what: String,
    /// How it must compare.
    pub bound: Bound,
    /// The right-hand side as written (`>= 1`), for the report.
    pub written: String,
}

/// A comparison with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// Of counts.
    Count(Comparison, u64),
    /// Of spans.
    Span(Comparison, Duration),
    /// Of a word, exactly.
    Word(String),
}

/// How two values must compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`, or a bare number.
    Equal,
    /// `!=`
    Unequal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// Whether `found` compares so with `wanted`.
    pub fn holds<T: PartialOrd>(self, found: T, wanted: T) -> bool {
        match self {
            Self::Equal => found == wanted,
            Self::Unequal => found != wanted,
            Self::Less => found < wanted,
            Self::AtMost => found <= wanted,
            Self::Greater => found > wanted,
            Self::AtLeast => found >= wanted,
        }
    }
}

/// One `[[expect.gap]]`: whatever is absent matches all.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectGap {
    /// The name of the step that the gap names.
    pub step: Option<String>,
    /// The kind of the obligation.
    pub kind: Option<crate::obligation::Obligation>,
    /// `late` or `unproven`.
    pub state: Option<crate::obligation::ObligationState>,
    /// Exactly so many; `None`: at least one.
    pub count: Option<u64>,
}
