//! When messages arrive (P15): a schedule that the settings fix in advance.
//!
//! The instants are those of the schedule, whoever notices them how late. The first message of an
//! even load arrives at the start; the distances of a Poisson load are drawn, each for its own
//! message, so the same seed gives the same arrivals on every machine.

use crate::timeline::Moment;
use crate::workload::sample::{Draw, NameHash, Occasion, Purpose};
use crate::workload::{Load, Pace, Spread};

/// The arrivals that are still to come, in order.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pace: Pace,
    seed: u64,
    /// How many there were.
    arrived: u32,
    /// No more than so many come.
    most: u32,
    /// None comes from here on.
    until: Moment,
    next: Option<Moment>,
    /// Nanoseconds to the next one of a Poisson load: rounded only when it is asked for.
    exact: f64,
}

impl Arrivals {
    /// All arrivals of a load; `None` when all messages are there at the start.
    pub fn new(load: &Load) -> Option<Self> {
        let pace = load.pace.clone()?;
        // How many an even load has is worked out beforehand, so that no rounding adds one.
        let (most, until) = match (pace.spread, pace.during) {
            (Spread::Poisson, Some(during)) => (u32::MAX, Moment::START + during),
            _ => (load.deliveries, Moment::NEVER),
        };
        let mut arrivals =
            Self { pace, seed: load.seed, arrived: 0, most, until, next: None, exact: 0.0 };
        arrivals.next = arrivals.following();
        Some(arrivals)
    }

    /// When the next message arrives; `None` when there is no other.
    pub fn peek(&self) -> Option<Moment> {
        self.next
    }

    /// The next arrival, if it has come by `now`.
    pub fn by(&mut self, now: Moment) -> Option<Moment> {
        self.next.filter(|at| *at <= now)?;
        self.next()
    }

    fn following(&mut self) -> Option<Moment> {
        if self.arrived == self.most {
            return None;
        }
        let gap = self.pace.rate.gap_nanos();
        match self.pace.spread {
            // Multiplied and not added up: a million small errors are one large one.
            Spread::Even => self.exact = f64::from(self.arrived) * gap,
            Spread::Poisson => {
                let occasion = Occasion {
                    seed: self.seed,
                    message: self.arrived + 1,
                    attempt: 1,
                    retry: 1,
                    step: NameHash::new(""),
                };
                self.exact += Draw::new(occasion, Purpose::Arrival).exponential() * gap;
            }
        }
        Some(Moment::from_nanos(self.exact as u64)).filter(|at| *at < self.until)
    }
}

impl Iterator for Arrivals {
    type Item = Moment;

    fn next(&mut self) -> Option<Moment> {
        let at = self.next?;
        self.arrived += 1;
        self.next = self.following();
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::workload::Rate;

    fn load(amount: f64, per: u64, spread: Spread, during: Option<Duration>) -> Load {
        let rate = Rate { amount, per: Duration::from_secs(per) };
        let pace = Some(Pace { rate, spread, during });
        Load { deliveries: 4, concurrency: 1, pace, seed: 11 }
    }

    fn micros(load: &Load) -> Vec<u64> {
        Arrivals::new(load).expect("it has a pace").map(Moment::micros).collect()
    }

    #[test]
    fn even_arrivals_begin_at_the_start_and_keep_their_distance() {
        assert_eq!(micros(&load(20.0, 1, Spread::Even, None)), [0, 50_000, 100_000, 150_000]);
        assert_eq!(
            micros(&load(7.5, 60, Spread::Even, None)),
            [0, 8_000_000, 16_000_000, 24_000_000]
        );
    }

    #[test]
    fn a_drawn_load_for_a_time_ends_before_it_is_over() {
        let second = Some(Duration::from_secs(1));
        let drawn = micros(&load(1_000.0, 1, Spread::Poisson, second));
        assert!((900..1_100).contains(&drawn.len()), "{}", drawn.len());
        assert!(drawn.iter().all(|at| *at < 1_000_000));
    }

    #[test]
    fn drawn_arrivals_stay_the_same_for_good_and_follow_the_seed() {
        let mut load = load(100.0, 1, Spread::Poisson, None);
        let drawn = micros(&load);
        assert!(drawn.is_sorted());
        assert_eq!(drawn, [466, 16_352, 30_645, 35_545]);
        load.seed = 12;
        assert_ne!(micros(&load), drawn);
    }

    #[test]
    fn without_a_pace_all_are_there_at_the_start() {
        let load = Load { pace: None, ..load(1.0, 1, Spread::Even, None) };
        assert!(Arrivals::new(&load).is_none());
    }
}
