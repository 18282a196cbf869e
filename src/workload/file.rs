//! Reads workload files.
//!
//! A file becomes a [`Workload`] or the list of all its faults. Whatever the bytes are, the answer
//! is one of the two. The TOML parser and the digest are named here and nowhere else.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::report::words::reason;
use crate::workload::fault::{Fault, Faults};
use crate::workload::tree::{Bytes, Entry, Node, Place, Value};
use crate::workload::{Workload, check, settings};

/// The most bytes of a file; what is longer is no workload.
const LONGEST_FILE: u64 = 16 << 20;
/// The format of what we write is named within so many characters.
const LONGEST_HEAD: usize = 100;

/// The workload that a file says; `settings` are the `KEY=VALUE` words of `--set`.
pub fn load(path: &Path, settings: &[String]) -> Result<Workload, Faults> {
    parse(path, &read(path, settings)?, settings)
}

/// Reads the text of a workload file; `settings` are shown in its faults.
pub fn read(path: &Path, settings: &[String]) -> Result<String, Faults> {
    let refuse =
        |message: String| Faults::new(path, "", settings, vec![Fault::new(&Place::Whole, message)]);
    let mut bytes = Vec::new();
    let read =
        File::open(path).and_then(|file| file.take(LONGEST_FILE + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        return Err(refuse(format!("the file cannot be read: {}", reason(&error))));
    }
    if bytes.len() as u64 > LONGEST_FILE {
        let head = String::from_utf8_lossy(&bytes[..LONGEST_HEAD]);
        if let Some(fault) = json(&head) {
            return Err(Faults::new(path, &head, settings, vec![fault]));
        }
        return Err(refuse(format!(
            "the file is longer than {} MiB, which no workload is",
            LONGEST_FILE >> 20
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[at];
            let text = String::from_utf8_lossy(error.as_bytes());
            // The replacement character is three bytes long and stands where the bad byte stood.
            let place = Place::File(Bytes { start: at, end: at + 3 });
            let message = format!("the byte 0x{byte:02x} is no UTF-8; save the file as UTF-8");
            Err(Faults::new(path, &text, settings, vec![Fault::new(&place, message)]))
        }
    }
}

/// The workload that a text says; `path` names it in messages and reports.
pub fn parse(path: &Path, text: &str, settings: &[String]) -> Result<Workload, Faults> {
    let refuse = |faults| Faults::new(path, text, settings, faults);
    let mut root = read_document(text).map_err(refuse)?;
    let mut faults = Vec::new();
    settings::apply(&mut root, settings, &read_setting, &mut faults);
    let origin = check::Origin { path, text, sha256: digest(text.as_bytes()) };
    check::workload(&root, origin, faults).map_err(refuse)
}

/// SHA-256 in lower-case hex.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is JSON gets one fault: no TOML begins like it, and a parser of TOML finds hundreds.
fn json(text: &str) -> Option<Fault> {
    let start = text.len() - text.trim_start().len();
    if !text[start..].starts_with('{') {
        return None;
    }
    let head: String = text[start..].chars().take(LONGEST_HEAD).collect();
    let ours = |format: &str| head.contains(format);
    let message = if ours("\"deadline-run.report/") {
        "it is a report and no workload; `deadline-run show FILE` shows it"
    } else if ours("\"deadline-run.events/") {
        "it holds the events of a run and is no workload; `deadline-run show FILE` makes a report of it"
    } else {
        "it is JSON and no workload, which is TOML"
    };
    Some(Fault::new(&Place::File(Bytes { start, end: start + 1 }), message))
}

/// The tree of a text, or its faults of syntax.
fn read_document(text: &str) -> Result<Vec<Entry<'_>>, Vec<Fault>> {
    if let Some(fault) = json(text) {
        return Err(vec![fault]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(entries(table.into_inner(), &|bytes| Place::File(bytes)));
    }
    let mut found: Vec<_> =
        errors.iter().map(|error| (error.span().unwrap_or(0..0), error.message())).collect();
    found.sort_by_key(|(span, _)| (span.start, span.end));
    // One slip makes the parser stumble on until the line ends: the first fault of a line is the true one.
    let mut faults = Vec::new();
    let mut last_start = None;
    for (span, message) in found {
        let is_same_line = last_start.is_some_and(|last: usize| {
            text.get(last..span.start).is_some_and(|between| !between.contains('\n'))
        });
        if !is_same_line {
            let place = Place::File(Bytes::from(span.clone()));
            faults.push(Fault::new(&place, format!("not valid TOML: {message}")));
        }
        last_start = Some(span.start);
    }
    Err(faults)
}

/// The value of a `--set` word, if it is TOML.
fn read_setting<'a>(text: &'a str, place: &dyn Fn(Bytes) -> Place) -> Option<Node<'a>> {
    let value = DeValue::parse(text.trim()).ok()?;
    let indent = text.len() - text.trim_start().len();
    Some(node(value, &|bytes: Bytes| {
        place(Bytes { start: bytes.start + indent, end: bytes.end + indent })
    }))
}

fn entries<'a>(table: DeTable<'a>, place: &impl Fn(Bytes) -> Place) -> Vec<Entry<'a>> {
    let mut entries: Vec<_> = table
        .into_iter()
        .map(|(key, value)| Entry {
            place: place(key.span().into()),
            key: key.into_inner(),
            node: node(value, place),
        })
        .collect();
    // The parser sorts by key; the reader of a message has the file's order.
    entries.sort_by_key(|entry| entry.place);
    entries
}

/// Recurses as deep as the parser allows, which is 80 levels.
fn node<'a>(value: Spanned<DeValue<'a>>, place: &impl Fn(Bytes) -> Place) -> Node<'a> {
    let bytes = value.span().into();
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text),
        DeValue::Integer(whole) => {
            Value::Whole(whole.to_string(), i64::from_str_radix(whole.as_str(), whole.radix()).ok())
        }
        DeValue::Float(number) => {
            let value = number.as_str().parse::<f64>().ok().filter(|number| number.is_finite());
            Value::Number(number.to_string(), value)
        }
        DeValue::Boolean(flag) => Value::Flag(flag),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(values) => {
            Value::List(values.into_iter().map(|value| node(value, place)).collect())
        }
        DeValue::Table(table) => Value::Table(entries(table, place)),
    };
    Node { value, place: place(bytes) }
}
