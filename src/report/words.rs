//! Words for people: spans of time, counts and the names that the stored form uses.
//!
//! Everything here is for reading. What a program compares stays an integer in the report.

use std::time::Duration;

use serde::Serialize;

const MILLI: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// The word that the JSON report uses for a plain value of one of its enums.
pub fn stored(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::from("unknown"),
    }
}

/// The same word for people: `not started`.
pub fn spoken(value: impl Serialize) -> String {
    stored(value).replace('_', " ")
}

/// A span, as exact as a person wants it: `340 ms`, `1.6 s`, `2 min 5 s`.
pub fn span(micros: u64) -> String {
    match micros {
        0..MILLI => format!("{micros} us"),
        MILLI..10_000 => tenths(micros, MILLI, "ms"),
        10_000..SECOND => format!("{} ms", micros / MILLI),
        SECOND..MINUTE => tenths(micros, SECOND, "s"),
        MINUTE..HOUR => format!("{} min {} s", micros / MINUTE, micros % MINUTE / SECOND),
        _ => format!("{} h {} min", micros / HOUR, micros % HOUR / MINUTE),
    }
}

/// One decimal, truncated like all reported time, and none where it is zero.
fn tenths(micros: u64, unit: u64, name: &str) -> String {
    match micros % unit * 10 / unit {
        0 => format!("{} {name}", micros / unit),
        tenth => format!("{}.{tenth} {name}", micros / unit),
    }
}

/// A span to the microsecond, in the form that workload files use: `1s 612ms 40us`.
pub fn exact(span: Duration) -> String {
    let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let parts = [
        (micros / HOUR, "h"),
        (micros % HOUR / MINUTE, "m"),
        (micros % MINUTE / SECOND, "s"),
        (micros % SECOND / MILLI, "ms"),
        (micros % MILLI, "us"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, unit)| format!("{amount}{unit}"))
        .collect();
    if parts.is_empty() { String::from("0s") } else { parts.join(" ") }
}

/// A count with its noun: `1 gap`, `3 gaps`.
pub fn count(amount: u64, one: &str, many: &str) -> String {
    format!("{amount} {}", if amount == 1 { one } else { many })
}

/// The system's words, without the number that std adds.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::DeliveryResult;

    #[test]
    fn spans_read_as_people_say_them() {
        let spans = [
            (0, "0 us"),
            (999, "999 us"),
            (1_000, "1 ms"),
            (1_599, "1.5 ms"),
            (340_999, "340 ms"),
            (1_612_040, "1.6 s"),
            (59_999_999, "59.9 s"),
            (125_000_000, "2 min 5 s"),
            (3_900_000_000, "1 h 5 min"),
        ];
        for (micros, words) in spans {
            assert_eq!(span(micros), words);
        }
    }

    #[test]
    fn exact_spans_lose_no_microsecond() {
        assert_eq!(exact(Duration::from_micros(1_612_040)), "1s 612ms 40us");
        assert_eq!(exact(Duration::from_secs(3_600)), "1h");
        assert_eq!(exact(Duration::ZERO), "0s");
    }

    #[test]
    fn words_are_those_of_the_stored_form() {
        assert_eq!(stored(DeliveryResult::NotStarted), "not_started");
        assert_eq!(spoken(DeliveryResult::NotStarted), "not started");
    }
}
