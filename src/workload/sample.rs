//! Draws: what chance decides in a run, so that the same seed gives the same work (P14).
//!
//! A draw depends on the seed, the message, the attempts, the step's name and what it is for, and on
//! nothing else: neither the order of draws nor another step moves it. The generator gives whole
//! numbers and `libm` the functions, so every machine draws the same.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::duration::LONGEST;
use crate::workload::Span;

/// How many standard deviations the 99th percentile of a normal distribution is above its mean.
const P99_DEVIATIONS: f64 = 2.326_347_874_040_840_8;

/// What a draw is for; each draws by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Whether the delivery runs the step.
    Share = 1,
    /// How long the step takes.
    Duration = 2,
    /// Whether it fails.
    Fail = 3,
    /// Whether it panics.
    Panic = 4,
    /// Which step a choice takes.
    Choice = 5,
    /// How long the destructor takes.
    DestructorDuration = 6,
    /// Whether the destructor panics.
    DestructorPanic = 7,
    /// How long after the one before it the message arrives.
    Arrival = 8,
}

/// A step's name as draws use it; worked out once per step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NameHash(u64);

impl NameHash {
    /// FNV-1a of the name: fixed for good, unlike the hashes of std.
    pub fn new(name: &str) -> Self {
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }
}

/// Which execution of which step a draw belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Occasion {
    /// The workload's seed.
    pub seed: u64,
    /// Which message, from 1.
    pub message: u32,
    /// Which delivery of it, from 1.
    pub attempt: u32,
    /// Which attempt of the step within the delivery, from 1.
    pub retry: u32,
    /// Whose step.
    pub step: NameHash,
}

/// A source of numbers for one purpose on one occasion.
///
/// Nothing is computed before the first number is asked for.
#[derive(Clone, Debug)]
pub struct Draw {
    key: [u8; 32],
    generator: Option<ChaCha8Rng>,
}

impl Draw {
    /// The draw for `purpose` on `occasion`.
    pub fn new(occasion: Occasion, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[0..8].copy_from_slice(&occasion.seed.to_le_bytes());
        key[8..16].copy_from_slice(&occasion.step.0.to_le_bytes());
        key[16..20].copy_from_slice(&occasion.message.to_le_bytes());
        key[20..24].copy_from_slice(&occasion.attempt.to_le_bytes());
        key[24..28].copy_from_slice(&occasion.retry.to_le_bytes());
        key[28..32].copy_from_slice(&(purpose as u32).to_le_bytes());
        Self { key, generator: None }
    }

    /// A number from 0 up to but not including 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.whole() >> 11) as f64 * STEP
    }

    /// A duration; a fixed one takes no number.
    pub fn duration(&mut self, span: &Span) -> Duration {
        match span {
            Span::Fixed(duration) => *duration,
            Span::Uniform { min, max } => {
                let width = nanos(*max).saturating_sub(nanos(*min)) + 1;
                let drawn = (u128::from(self.whole()) * u128::from(width)) >> 64;
                *min + Duration::from_nanos(drawn as u64)
            }
            Span::Exponential { mean, max } => {
                cut_off(self.exponential() * nanos(*mean) as f64, *max)
            }
            Span::LogNormal { p50, p99, max } => {
                let (median, high) = (libm::log(nanos(*p50) as f64), libm::log(nanos(*p99) as f64));
                let deviation = (high - median) / P99_DEVIATIONS;
                cut_off(libm::exp(median + deviation * self.normal()), *max)
            }
        }
    }

    /// Whether something of that share happens; at 0 and 1 it takes no number.
    pub fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && (share >= 1.0 || self.unit() < share)
    }

    /// An index of `weights`, as often as its weight says; never one of weight 0.
    pub fn choice(&mut self, weights: &[f64]) -> usize {
        let sum: f64 = weights.iter().sum();
        let mut rest = self.unit() * sum;
        let mut chosen = 0;
        for (index, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            chosen = index;
            if rest < *weight {
                break;
            }
            // Rounding can leave a crumb behind the last weight, which is then chosen.
            rest -= weight;
        }
        chosen
    }

    /// A number of the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// A number of the standard normal distribution, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }

    fn whole(&mut self) -> u64 {
        self.generator.get_or_insert_with(|| ChaCha8Rng::from_seed(self.key)).next_u64()
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// So many nanoseconds, but not more than `max`, nor than any span can be.
fn cut_off(nanos: f64, max: Option<Duration>) -> Duration {
    Duration::from_nanos(nanos as u64).min(max.unwrap_or(LONGEST)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(message: u32, purpose: Purpose) -> Draw {
        let step = NameHash::new("compress");
        Draw::new(Occasion { seed: 7, message, attempt: 1, retry: 1, step }, purpose)
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// So many durations, in order.
    fn durations(span: &Span) -> Vec<Duration> {
        let mut all: Vec<_> =
            (1..=20_000).map(|message| draw(message, Purpose::Duration).duration(span)).collect();
        all.sort();
        all
    }

    fn is_near(found: Duration, wanted: Duration) -> bool {
        found.abs_diff(wanted) < wanted / 20
    }

    #[test]
    fn name_hash_is_fnv_1a() {
        assert_eq!(NameHash::new(""), NameHash(0xcbf2_9ce4_8422_2325));
        assert_eq!(NameHash::new("a"), NameHash(0xaf63_dc4c_8601_ec8c));
    }

    #[test]
    fn drawn_values_stay_the_same_for_good() {
        let uniform = Span::Uniform { min: millis(1), max: millis(5) };
        let exponential = Span::Exponential { mean: millis(10), max: None };
        let log_normal = Span::LogNormal { p50: millis(10), p99: millis(120), max: None };
        let nanos = |span| draw(1, Purpose::Duration).duration(span).as_nanos();
        assert_eq!(draw(1, Purpose::Share).unit().to_bits(), 4_604_541_738_136_863_180);
        assert_eq!(
            [nanos(&uniform), nanos(&exponential), nanos(&log_normal)],
            [2_997_185, 6_917_408, 3_973_762]
        );
        assert_eq!(draw(3, Purpose::Choice).choice(&[1.0, 2.0, 3.0]), 2);
    }

    #[test]
    fn a_draw_depends_on_each_word_of_its_occasion() {
        let base =
            Occasion { seed: 7, message: 1, attempt: 1, retry: 1, step: NameHash::new("compress") };
        let mut units: Vec<_> = [
            base,
            Occasion { seed: 8, ..base },
            Occasion { message: 2, ..base },
            Occasion { attempt: 2, ..base },
            Occasion { retry: 2, ..base },
            Occasion { step: NameHash::new("other"), ..base },
        ]
        .map(|occasion| Draw::new(occasion, Purpose::Fail).unit().to_bits())
        .to_vec();
        units.push(Draw::new(base, Purpose::Panic).unit().to_bits());
        units.sort_unstable();
        units.dedup();
        assert_eq!(units.len(), 7);
    }

    #[test]
    fn uniform_reaches_both_ends_and_no_further() {
        let two = Span::Uniform { min: Duration::from_nanos(4), max: Duration::from_nanos(5) };
        let all = durations(&two);
        assert_eq!(all[0], Duration::from_nanos(4));
        assert_eq!(all[all.len() - 1], Duration::from_nanos(5));
        let middle = durations(&Span::Uniform { min: millis(10), max: millis(30) })[10_000];
        assert!(is_near(middle, millis(20)), "{middle:?}");
    }

    #[test]
    fn exponential_has_its_mean() {
        let all = durations(&Span::Exponential { mean: millis(10), max: None });
        let mean = all.iter().sum::<Duration>() / 20_000;
        assert!(is_near(mean, millis(10)), "{mean:?}");
    }

    #[test]
    fn log_normal_has_its_percentiles() {
        let all = durations(&Span::LogNormal { p50: millis(10), p99: millis(120), max: None });
        assert!(is_near(all[10_000], millis(10)), "{:?}", all[10_000]);
        assert!(is_near(all[19_800], millis(120)), "{:?}", all[19_800]);
    }

    #[test]
    fn max_cuts_any_distribution_off() {
        let max = Some(millis(15));
        for span in [
            Span::Exponential { mean: millis(10), max },
            Span::LogNormal { p50: millis(10), p99: millis(120), max },
        ] {
            let all = durations(&span);
            assert_eq!(all[all.len() - 1], millis(15));
            assert!(all[0] < millis(15));
        }
    }

    #[test]
    fn a_share_happens_as_often_as_it_says() {
        let often = |share| {
            (1..=20_000).filter(|message| draw(*message, Purpose::Share).happens(share)).count()
        };
        assert_eq!(often(0.0), 0);
        assert_eq!(often(1.0), 20_000);
        assert!((5_700..6_300).contains(&often(0.3)), "{}", often(0.3));
    }

    #[test]
    fn a_choice_follows_its_weights_and_never_takes_a_zero() {
        let mut counts = [0; 5];
        for message in 1..=20_000 {
            counts[draw(message, Purpose::Choice).choice(&[0.0, 6.0, 3.0, 1.0, 0.0])] += 1;
        }
        assert_eq!((counts[0], counts[4]), (0, 0));
        assert!((11_700..12_300).contains(&counts[1]), "{counts:?}");
        assert!((5_700..6_300).contains(&counts[2]), "{counts:?}");
    }
}
