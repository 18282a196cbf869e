//! Who may start: the buffer of waiting deliveries and the slots.
//!
//! Knows numbers only. Waiting is not charged to a budget (SPEC section 3); closing admission
//! releases the waiting and touches nobody else (C4).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::event::DeliveryId;
use crate::timeline::Moment;

/// A delivery that has arrived and may wait for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Its number.
    pub id: DeliveryId,
    /// Which message it carries, from 1.
    pub message: u32,
    /// How often this message has been delivered, this time included.
    pub attempt: u32,
    /// When it entered the buffer.
    pub arrived: Moment,
}

/// Who waits, in the order of their turn. Millions take no more room than one.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// First deliveries not admitted yet: they all arrive with the run.
    unsent: RangeInclusive<u32>,
    redelivered: VecDeque<Ticket>,
}

impl Waiting {
    fn nobody() -> Self {
        Self { unsent: RangeInclusive::new(1, 0), redelivered: VecDeque::new() }
    }
}

impl Iterator for Waiting {
    type Item = Ticket;

    fn next(&mut self) -> Option<Ticket> {
        let first = self.unsent.next().map(|message| Ticket {
            id: DeliveryId(message),
            message,
            attempt: 1,
            arrived: Moment::START,
        });
        first.or_else(|| self.redelivered.pop_front())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.unsent.size_hint().0 + self.redelivered.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Waiting {}

/// The buffer and the slots of a run.
#[derive(Clone, Debug)]
pub struct Admission {
    waiting: Waiting,
    last_id: u32,
    free_slots: u32,
    slots: u32,
    open: bool,
}

impl Admission {
    /// So many messages, at most `slots` at once.
    pub fn new(messages: u32, slots: u32) -> Self {
        Self {
            waiting: Waiting { unsent: 1..=messages, redelivered: VecDeque::new() },
            last_id: messages,
            free_slots: slots,
            slots,
            open: true,
        }
    }

    /// Gives a free slot to the delivery whose turn it is.
    pub fn admit(&mut self) -> Option<Ticket> {
        if self.free_slots == 0 || !self.open {
            return None;
        }
        let ticket = self.waiting.next()?;
        self.free_slots -= 1;
        Some(ticket)
    }

    /// A slot is free again.
    pub fn free_slot(&mut self) {
        self.free_slots += 1;
        assert!(self.free_slots <= self.slots, "a slot is freed once");
    }

    /// The message comes again, last in the queue. With admission closed the ticket comes back: it
    /// will never start.
    pub fn redeliver(&mut self, message: u32, attempt: u32, now: Moment) -> Option<Ticket> {
        self.last_id += 1;
        let ticket = Ticket { id: DeliveryId(self.last_id), message, attempt, arrived: now };
        if self.open {
            self.waiting.redelivered.push_back(ticket);
            return None;
        }
        Some(ticket)
    }

    /// Closes admission and releases who still waits.
    pub fn close(&mut self) -> Waiting {
        self.open = false;
        std::mem::replace(&mut self.waiting, Waiting::nobody())
    }

    /// Whether nobody waits and nobody holds a slot.
    pub fn is_over(&self) -> bool {
        self.waiting.len() == 0 && self.free_slots == self.slots
    }

    /// How many hold a slot.
    pub fn in_flight(&self) -> u32 {
        self.slots - self.free_slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redelivery_waits_behind_everyone_and_takes_the_next_id() {
        let mut admission = Admission::new(2, 1);
        let first = admission.admit().expect("a slot is free");
        assert_eq!((first.id, admission.admit()), (DeliveryId(1), None));
        assert_eq!(admission.redeliver(1, 2, Moment::from_nanos(5)), None);
        admission.free_slot();
        assert_eq!(admission.admit().map(|ticket| ticket.message), Some(2));
        admission.free_slot();
        let again = admission.admit().expect("the redelivery waits");
        assert_eq!((again.id, again.message, again.attempt), (DeliveryId(3), 1, 2));
        admission.free_slot();
        assert!(admission.is_over());
    }

    #[test]
    fn closed_admission_releases_the_waiting_and_starts_nobody() {
        let mut admission = Admission::new(3, 1);
        admission.admit();
        assert_eq!(admission.close().len(), 2);
        admission.free_slot();
        assert_eq!(admission.admit(), None);
        assert!(admission.redeliver(1, 2, Moment::START).is_some());
        assert!(admission.is_over());
    }
}
