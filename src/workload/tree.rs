//! The text of a workload as a tree of values, each of which knows where it was written.
//!
//! Stands between the TOML parser and the table of keys: whoever walks it needs to know neither the
//! parser nor whether a value came from the file or from `--set`. Texts are borrowed from what was
//! read, unless they had escapes in them.

use std::borrow::Cow;
use std::ops::Range;

/// Where something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere in particular: what is missing from the whole file.
    Whole,
    /// These bytes of the file.
    File(Bytes),
    /// These bytes of the `--set` word of that number, from 0.
    Set(u32, Bytes),
}

/// A range of bytes that can be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl From<Range<usize>> for Bytes {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// What was written.
    pub value: Value<'a>,
    /// Where; of a table the header or the braces.
    pub place: Place,
}

/// What can be written.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// Text in quotes.
    Text(Cow<'a, str>),
    /// A whole number as written, and its value if it fits.
    Whole(String, Option<i64>),
    /// A number with a fraction, as written, and its value if it fits.
    Number(String, Option<f64>),
    /// True or false.
    Flag(bool),
    /// A date or a time, as written.
    Date(String),
    /// A list, or an array of tables.
    List(Vec<Node<'a>>),
    /// A table.
    Table(Vec<Entry<'a>>),
}

/// One key of a table and its value.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The key, without quotes.
    pub key: Cow<'a, str>,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub node: Node<'a>,
}

impl Value<'_> {
    /// What it is, for a sentence: `the number 2`, `a table`.
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("the text {}", quote(text)),
            Self::Whole(text, _) | Self::Number(text, _) => format!("the number {}", cut(text)),
            Self::Flag(flag) => flag.to_string(),
            Self::Date(text) => format!("the date {}", cut(text)),
            Self::List(nodes)
                if !nodes.is_empty()
                    && nodes.iter().all(|node| matches!(node.value, Self::Table(_))) =>
            {
                "a list of tables".to_owned()
            }
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// The most letters of the user's own text that a message repeats.
const LONGEST_QUOTE: usize = 60;

/// A text in quotes, cut to a length that can be read.
pub fn quote(text: &str) -> String {
    format!("\"{}\"", cut(text))
}

/// A name as messages mark it, cut to a length that can be read.
pub fn mark(name: &str) -> String {
    format!("`{}`", cut(name))
}

/// A text without anything that moves the cursor, cut to a length that can be read.
pub fn cut(text: &str) -> String {
    let mut letters = text.chars().flat_map(visible);
    let mut shown: String = letters.by_ref().take(LONGEST_QUOTE).collect();
    if letters.next().is_some() {
        shown.push('…');
    }
    shown
}

/// The letter itself, or its escape when a terminal would obey it instead of showing it.
fn visible(letter: char) -> impl Iterator<Item = char> {
    let turns_text = matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_hidden = letter.is_control() || turns_text;
    let escape = is_hidden.then(|| letter.escape_default());
    let plain = (!is_hidden).then_some(letter);
    escape.into_iter().flatten().chain(plain)
}
