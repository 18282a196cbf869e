//! Spans of time as people write and read them.
//!
//! What [`parse`] accepts has one meaning and fits every clock of ours: each unit at most once, and
//! ten years at most in all. Signs and bare numbers are not spans, apart from `0`.

use std::time::Duration;

/// The longest span that can be written: ten years of 365.25 days.
pub const LONGEST: Duration = Duration::from_secs(10 * 31_557_600);

/// Why a text is no span of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing but white space.
    #[error("it is empty")]
    Empty,
    /// A number without a unit, or a part that is no number with a unit.
    #[error("{0} is no number with a unit")]
    Malformed(String),
    /// A unit that does not exist.
    #[error("{0} is no unit of time")]
    UnknownUnit(String),
    /// The same unit twice: one of the two is likely a slip.
    #[error("the unit {0} stands in it twice")]
    RepeatedUnit(String),
    /// Longer than [`LONGEST`].
    #[error("it is longer than ten years")]
    TooLong,
    /// Finer than a nanosecond.
    #[error("it is finer than a nanosecond")]
    TooFine,
}

/// The span that `text` says, as in `250ms` or `1m 30s`.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let mut sum = Duration::ZERO;
    let mut units: Vec<&str> = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(DurationError::Empty);
    }
    if rest == "0" {
        return Ok(sum);
    }
    // Part by part: humantime takes a unit twice, and panics on sums near the end of its range.
    while !rest.is_empty() {
        let (part, unit, tail) = split_part(rest);
        let span = humantime::parse_duration(part).map_err(|error| explain(error, part))?;
        if units.iter().any(|other| is_same_unit(other, unit)) {
            return Err(DurationError::RepeatedUnit(unit.to_owned()));
        }
        units.push(unit);
        sum = sum.saturating_add(span);
        if sum > LONGEST {
            return Err(DurationError::TooLong);
        }
        rest = tail;
    }
    Ok(sum)
}

/// A span in words, as in `1m 30s`.
pub fn show(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}

/// The first number with its unit, that unit alone, and what follows them.
fn split_part(text: &str) -> (&str, &str, &str) {
    let is_unit = |letter: char| letter.is_alphabetic() || letter == 'µ';
    let begin = text.find(is_unit).unwrap_or(text.len());
    let end = text[begin..].find(|letter| !is_unit(letter)).map_or(text.len(), |at| begin + at);
    (&text[..end], &text[begin..end], text[end..].trim_start())
}

/// Whether two units are one, as `h` and `hours` are.
fn is_same_unit(one: &str, other: &str) -> bool {
    let size = |unit| humantime::parse_duration(&format!("1{unit}"));
    size(one) == size(other)
}

fn explain(error: humantime::DurationError, part: &str) -> DurationError {
    let part: String = part.chars().take(40).collect();
    match error {
        humantime::DurationError::UnknownUnit { unit, .. } if !unit.is_empty() => {
            DurationError::UnknownUnit(unit.chars().take(40).collect())
        }
        humantime::DurationError::NumberOverflow if part.contains('.') => DurationError::TooFine,
        humantime::DurationError::NumberOverflow => DurationError::TooLong,
        _ => DurationError::Malformed(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_the_sum_of_its_parts() {
        for (text, millis) in [
            ("250ms", 250),
            ("1m 30s", 90_000),
            ("1m30s", 90_000),
            ("2 sec", 2_000),
            ("1.5s", 1_500),
            (" 1h ", 3_600_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn what_has_no_one_meaning_is_refused() {
        for (text, error) in [
            ("", DurationError::Empty),
            ("  ", DurationError::Empty),
            ("2", DurationError::Malformed("2".into())),
            ("s", DurationError::Malformed("s".into())),
            ("-1s", DurationError::Malformed("-1s".into())),
            ("2 parsecs", DurationError::UnknownUnit("parsecs".into())),
            ("1h1h", DurationError::RepeatedUnit("h".into())),
            ("1h 2hours", DurationError::RepeatedUnit("hours".into())),
            ("11 years", DurationError::TooLong),
            ("18446744073709551615s 1000000000ns", DurationError::TooLong),
            ("99999999999999999999999s", DurationError::TooLong),
            ("0.5ns", DurationError::TooFine),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        for span in [Duration::from_millis(2_250), Duration::from_secs(900), LONGEST] {
            assert_eq!(parse(&show(span)), Ok(span));
        }
    }
}
