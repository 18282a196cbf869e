//! What was started and must be shown to have ended, and what counts as showing it.
//!
//! The one table of what discharges what is [`Obligation::accepts`]; it is SPEC section 4. A
//! request to stop is in no row of it: "kill sent" or "abort called" discharges nothing.

use serde::{Deserialize, Serialize};

/// The kinds of things that must be shown to have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Obligation {
    /// The delivery's pipeline: its frame.
    Execution,
    /// A task that a step spawned and did not await.
    Task,
    /// A thread that does blocking work for a step.
    Thread,
    /// A connection that a step opens: its descriptor.
    Connection,
    /// A termination callback that became due.
    Callback,
    /// The disposal of the delivery's resources.
    Scope,
    /// The word to the broker.
    Settlement,
}

/// How an end was observed. Each names what was seen and nothing more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The pipeline returned by itself, and its frame is gone.
    FutureReturned,
    /// The pipeline's frame was dropped, and that drop finished.
    FutureDropped,
    /// The task's join resolved, after its future was dropped.
    TaskJoined,
    /// The closure ended and all that it owned was dropped; the thread itself may live on in its pool.
    ThreadFinished,
    /// Its descriptor is gone, or both sides have closed it.
    ConnectionClosed,
    /// A callback or disposer returned, with success or failure.
    Returned,
    /// A callback or disposer panicked, and its frame is gone.
    Panicked,
    /// A callback was dropped for time, and that drop finished.
    Dropped,
    /// The broker said so itself.
    BrokerConfirmed,
}

/// What is known of an obligation when the report is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObligationState {
    /// A receipt came by the due instant.
    Proven,
    /// A receipt came after the due instant, while the run was still observed.
    Late,
    /// No receipt came as long as the run was observed; it may have ended since, or never.
    Unproven,
}

impl Obligation {
    /// Whether `evidence` is a receipt for an obligation of this kind (SPEC section 4).
    pub const fn accepts(self, evidence: Evidence) -> bool {
        match self {
            Self::Execution => {
                matches!(evidence, Evidence::FutureReturned | Evidence::FutureDropped)
            }
            Self::Task => matches!(evidence, Evidence::TaskJoined),
            Self::Thread => matches!(evidence, Evidence::ThreadFinished),
            Self::Connection => matches!(evidence, Evidence::ConnectionClosed),
            Self::Callback => {
                matches!(evidence, Evidence::Returned | Evidence::Panicked | Evidence::Dropped)
            }
            Self::Scope => matches!(evidence, Evidence::Returned | Evidence::Panicked),
            Self::Settlement => matches!(evidence, Evidence::BrokerConfirmed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_discharges_a_callback_and_never_a_scope() {
        assert!(Obligation::Callback.accepts(Evidence::Dropped));
        assert!(!Obligation::Scope.accepts(Evidence::Dropped));
    }
}
