//! Reads a stored report back.
//!
//! Takes fields that it does not know, for additions do not change the format's version; takes no
//! other format, and guesses nothing that is missing.

use serde::Deserialize;

use super::{FORMAT, Report};

/// Why a text is no report that this version can show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// No JSON, or not the JSON of a report.
    #[error("{line}:{column}: {what}")]
    Malformed { line: usize, column: usize, what: String },
    /// JSON that does not say which format it has.
    #[error("it is JSON without a `format`; use a file that `--report json=FILE` wrote")]
    Unnamed,
    /// Another form of ours, another version, or something else altogether.
    #[error("its format is `{found}`{by}; this version reads `{FORMAT}`")]
    Foreign {
        found: String,
        /// ` of deadline-run 0.3.0`, when it says so.
        by: String,
    },
}

/// As much as every format of ours has.
#[derive(Deserialize)]
struct Head {
    format: Option<serde_json::Value>,
    program: Option<serde_json::Value>,
}

/// The report that `bytes` hold.
pub fn parse(bytes: &[u8]) -> Result<Report, ReportError> {
    // The format first: a report of another version may lack anything.
    let head: Head = serde_json::from_slice(bytes).map_err(|error| malformed(&error))?;
    match head.format {
        None => Err(ReportError::Unnamed),
        Some(serde_json::Value::String(format)) if format == FORMAT => {
            serde_json::from_slice(bytes).map_err(|error| malformed(&error))
        }
        Some(found) => {
            let found = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            let by = head.program.as_ref().and_then(written_by).unwrap_or_default();
            Err(ReportError::Foreign { found: shortened(&found), by })
        }
    }
}

fn written_by(program: &serde_json::Value) -> Option<String> {
    let word = |key| program.get(key).and_then(serde_json::Value::as_str);
    Some(format!(" of {} {}", shortened(word("name")?), shortened(word("version")?)))
}

fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

fn malformed(error: &serde_json::Error) -> ReportError {
    let text = error.to_string();
    // It says the place at the end, where ours stands in front.
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
    ReportError::Malformed { line: error.line(), column: error.column(), what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::json;
    use crate::report::DeliveryResult;
    use crate::report::sample::{delivery, report, workload};

    fn stored() -> String {
        json::render(&report(&workload(), vec![delivery(1, DeliveryResult::Success)]))
    }

    fn refusal(text: &str) -> String {
        parse(text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn what_was_stored_is_read_back() {
        assert_eq!(json::render(&parse(stored().as_bytes()).unwrap()), stored());
    }

    #[test]
    fn unknown_fields_are_additions_of_a_newer_version() {
        let newer = stored().replace("\"polls\"", "\"colour\": [1, {}],\n \"polls\"");
        let newer = newer.replacen('{', "{\"mood\": null,", 1);
        assert_ne!(newer, stored());
        assert_eq!(parse(newer.as_bytes()).unwrap(), parse(stored().as_bytes()).unwrap());
    }

    #[test]
    fn fields_that_were_added_may_be_missing() {
        let mut old: serde_json::Value = serde_json::from_str(&stored()).unwrap();
        for step in old["steps"].as_array_mut().unwrap() {
            step.as_object_mut().unwrap().remove("inside");
        }
        let delivery = &mut old["deliveries"][0];
        delivery["scope"].as_object_mut().unwrap().remove("started_us");
        for added in ["before_started_us", "before_ended_us", "after_started_us", "after_ended_us"]
        {
            delivery["callbacks"][0].as_object_mut().unwrap().remove(added);
        }
        assert!(parse(old.to_string().as_bytes()).is_ok());
    }

    #[test]
    fn refusals_say_what_was_found() {
        let missing = stored().replace("\"totals\"", "\"sums\"");
        let cases = [
            ("", "1:0: EOF while parsing"),
            ("[budget]\n", "1:2: expected value"),
            ("{}", "JSON without a `format`"),
            ("{\"format\": 7}", "its format is `7`; this version reads `deadline-run.report/1`"),
            (
                "{\"format\": \"deadline-run.report/2\", \
                 \"program\": {\"name\": \"deadline-run\", \"version\": \"0.9.0\"}}",
                "its format is `deadline-run.report/2` of deadline-run 0.9.0; this version",
            ),
            (&missing, "missing field `totals`"),
            (&stored()[..900], "EOF while parsing"),
        ];
        for (text, expected) in cases {
            let message = refusal(text);
            assert!(message.contains(expected), "{text}: {message}");
            assert!(!message.contains(" at line "), "{message}");
        }
    }
}
