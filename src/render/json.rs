//! The JSON report: the stored form itself, indented, in the order of its fields.

use crate::report::Report;

/// The report as JSON text that ends with a newline.
pub fn render(report: &Report) -> String {
    let mut text =
        serde_json::to_string_pretty(report).expect("a report has only string keys and no floats");
    text.push('\n');
    text
}
