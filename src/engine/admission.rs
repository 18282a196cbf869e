//! Who may start: the buffer of waiting deliveries and the slots.
//!
//! Knows numbers and the instants of arrival only. Waiting is not charged to a budget (SPEC section 3); closing admission
//! releases the waiting and touches nobody else (C4).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::event::DeliveryId;
use crate::timeline::Moment;
use crate::workload::Load;
use crate::workload::arrivals::Arrivals;

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

/// Who waits, in the order of their turn. Millions that were there from the start take no more room
/// than one.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// First deliveries that arrived with the run and are not admitted yet.
    unsent: RangeInclusive<u32>,
    /// Those that arrived later: first deliveries of a paced load, and redeliveries.
    queue: VecDeque<Ticket>,
}

impl Waiting {
    fn nobody() -> Self {
        Self { unsent: RangeInclusive::new(1, 0), queue: VecDeque::new() }
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
        first.or_else(|| self.queue.pop_front())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.unsent.size_hint().0 + self.queue.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Waiting {}

/// The buffer and the slots of a run.
#[derive(Clone, Debug)]
pub struct Admission {
    waiting: Waiting,
    /// First deliveries that are still to arrive; `None` when there is no other.
    arrivals: Option<Arrivals>,
    last_id: u32,
    last_message: u32,
    free_slots: u32,
    slots: u32,
    open: bool,
}

impl Admission {
    /// The messages of a load, so many at once as it says.
    pub fn new(load: &Load) -> Self {
        let arrivals = Arrivals::new(load);
        let at_once = if arrivals.is_some() { 0 } else { load.deliveries };
        Self {
            waiting: Waiting { unsent: 1..=at_once, queue: VecDeque::new() },
            arrivals,
            last_id: at_once,
            last_message: at_once,
            free_slots: load.concurrency,
            slots: load.concurrency,
            open: true,
        }
    }

    /// When the next message arrives that is not here by now; `None` when there is no other.
    pub fn next_arrival(&self) -> Option<Moment> {
        self.arrivals.as_ref()?.peek()
    }

    /// Gives a free slot to the delivery whose turn it is.
    pub fn admit(&mut self, now: Moment) -> Option<Ticket> {
        if self.free_slots == 0 || !self.open {
            return None;
        }
        self.arrive(now);
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
        self.arrive(now);
        self.last_id += 1;
        let ticket = Ticket { id: DeliveryId(self.last_id), message, attempt, arrived: now };
        if self.open {
            self.waiting.queue.push_back(ticket);
            return None;
        }
        Some(ticket)
    }

    /// Closes admission and releases who still waits. Those that have not arrived do not exist (P15).
    pub fn close(&mut self, now: Moment) -> Waiting {
        self.arrive(now);
        self.open = false;
        self.arrivals = None;
        std::mem::replace(&mut self.waiting, Waiting::nobody())
    }

    /// Whether nobody will arrive, nobody waits and nobody holds a slot.
    pub fn is_over(&self) -> bool {
        self.next_arrival().is_none() && self.waiting.len() == 0 && self.free_slots == self.slots
    }

    /// How many hold a slot.
    pub fn in_flight(&self) -> u32 {
        self.slots - self.free_slots
    }

    /// How many deliveries there have been, redeliveries included.
    pub fn arrived(&self) -> u32 {
        self.last_id
    }

    /// Takes into the buffer whoever has arrived by now.
    fn arrive(&mut self, now: Moment) {
        let Some(arrivals) = &mut self.arrivals else { return };
        while let Some(arrived) = arrivals.by(now) {
            self.last_id += 1;
            self.last_message += 1;
            self.waiting.queue.push_back(Ticket {
                id: DeliveryId(self.last_id),
                message: self.last_message,
                attempt: 1,
                arrived,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workload::{Pace, Rate, Spread};

    fn at_once(deliveries: u32, concurrency: u32) -> Load {
        Load { deliveries, concurrency, pace: None, seed: 7 }
    }

    fn millis(millis: u64) -> Moment {
        Moment::START + Duration::from_millis(millis)
    }

    /// One every ten milliseconds.
    fn paced(deliveries: u32, concurrency: u32) -> Load {
        let rate = Rate { amount: 100.0, per: Duration::from_secs(1) };
        let pace = Some(Pace { rate, spread: Spread::Even, during: None });
        Load { pace, ..at_once(deliveries, concurrency) }
    }

    #[test]
    fn redelivery_waits_behind_everyone_and_takes_the_next_id() {
        let mut admission = Admission::new(&at_once(2, 1));
        let first = admission.admit(Moment::START).expect("a slot is free");
        assert_eq!((first.id, admission.admit(Moment::START)), (DeliveryId(1), None));
        assert_eq!(admission.redeliver(1, 2, Moment::from_nanos(5)), None);
        admission.free_slot();
        assert_eq!(admission.admit(millis(1)).map(|ticket| ticket.message), Some(2));
        admission.free_slot();
        let again = admission.admit(millis(1)).expect("the redelivery waits");
        assert_eq!((again.id, again.message, again.attempt), (DeliveryId(3), 1, 2));
        admission.free_slot();
        assert!(admission.is_over());
    }

    #[test]
    fn closed_admission_releases_the_waiting_and_starts_nobody() {
        let mut admission = Admission::new(&at_once(3, 1));
        admission.admit(Moment::START);
        assert_eq!(admission.close(Moment::START).len(), 2);
        admission.free_slot();
        assert_eq!(admission.admit(millis(1)), None);
        assert!(admission.redeliver(1, 2, Moment::START).is_some());
        assert!(admission.is_over());
    }

    #[test]
    fn nobody_is_admitted_before_arriving_and_a_redelivery_comes_before_later_arrivals() {
        let mut admission = Admission::new(&paced(3, 1));
        let first = admission.admit(millis(1)).expect("it arrived with the run");
        assert_eq!((first.arrived, admission.next_arrival()), (Moment::START, Some(millis(10))));
        admission.free_slot();
        assert_eq!(admission.admit(millis(9)), None);
        assert!(!admission.is_over());
        assert_eq!(admission.redeliver(1, 2, millis(12)), None);
        let numbers: Vec<_> = [13, 14, 35]
            .map(|at| {
                let ticket = admission.admit(millis(at)).expect("somebody waits");
                admission.free_slot();
                (ticket.id.0, ticket.message, ticket.attempt, ticket.arrived)
            })
            .into();
        assert_eq!(numbers, [(2, 2, 1, millis(10)), (3, 1, 2, millis(12)), (4, 3, 1, millis(20))]);
        assert!(admission.is_over());
    }

    #[test]
    fn who_has_not_arrived_when_admission_closes_does_not_exist() {
        let mut admission = Admission::new(&paced(100, 1));
        admission.admit(Moment::START);
        let released: Vec<_> = admission.close(millis(25)).map(|ticket| ticket.arrived).collect();
        assert_eq!(released, [millis(10), millis(20)]);
        assert_eq!((admission.arrived(), admission.next_arrival()), (3, None));
    }
}
