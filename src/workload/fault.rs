//! What is wrong with a workload, for the person who has its file open.
//!
//! Collects every fault of a file and shows them together, in the order of the file: where, what
//! was found, what would be right, and the offending text underlined. Decides nothing about the
//! file itself.

use std::fmt;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::workload::tree::{Bytes, Place};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What was found, and what would be right.
    pub message: String,
    /// What may have been meant.
    pub help: Option<String>,
}

impl Fault {
    /// A fault without advice.
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        Self { place: *place, message: message.into(), help: None }
    }

    /// The same fault, with advice if there is any.
    pub fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }
}

/// All that is wrong with one file and the `--set` words that came with it; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    path: PathBuf,
    text: String,
    settings: Vec<String>,
    faults: Vec<Fault>,
}

/// The most faults that are written out; nobody reads the hundred-and-first.
const MOST_SHOWN: usize = 100;
/// The most letters of a line that a snippet shows.
const WIDEST_SNIPPET: usize = 100;

impl Faults {
    /// The faults of a file, in the order of the file.
    pub fn new(path: &Path, text: &str, settings: &[String], mut faults: Vec<Fault>) -> Self {
        assert!(!faults.is_empty(), "a file without faults is a workload");
        faults.sort_by_key(|fault| fault.place);
        Self { path: path.to_owned(), text: text.to_owned(), settings: settings.to_vec(), faults }
    }

    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one")]
    pub fn len(&self) -> usize {
        self.faults.len()
    }

    /// Each of them, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.faults.iter()
    }

    /// The text for the terminal, with or without colour.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for fault in self.faults.iter().take(MOST_SHOWN) {
            let title = format!("{}: {}", self.where_is(&fault.place), fault.message);
            if color {
                out.push_str(&format!("\u{1b}[1m{title}\u{1b}[0m\n"));
            } else {
                out.push_str(&title);
                out.push('\n');
            }
            out.push_str(&self.snippet(fault, &renderer));
            out.push('\n');
        }
        if let Some(more) = self.faults.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
            out.push_str(&format!("{}: and {more} more faults\n", self.path.display()));
        }
        out
    }

    /// `file:line:column`, or the `--set` word.
    fn where_is(&self, place: &Place) -> String {
        match place {
            Place::Whole => self.path.display().to_string(),
            Place::File(bytes) => {
                let start = floor(&self.text, bytes.start);
                let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
                let line = self.text[..start].matches('\n').count() + 1;
                let column = self.text[line_start..start].chars().count() + 1;
                format!("{}:{line}:{column}", self.path.display())
            }
            Place::Set(number, _) => {
                format!("--set {}", crate::workload::tree::cut(&self.settings[*number as usize]))
            }
        }
    }

    /// The offending text underlined, and the advice.
    fn snippet(&self, fault: &Fault, renderer: &Renderer) -> String {
        let mut group = Group::with_level(Level::ERROR);
        let excerpt = match &fault.place {
            Place::Whole => None,
            Place::File(bytes) => Some((Excerpt::new(&self.text, *bytes), true)),
            Place::Set(number, bytes) => {
                Some((Excerpt::new(&self.settings[*number as usize], *bytes), false))
            }
        };
        let Some((excerpt, numbered)) = excerpt else {
            return fault.help.as_ref().map_or(String::new(), |help| format!("  = help: {help}\n"));
        };
        group = group.element(
            Snippet::source(excerpt.text)
                .line_start(excerpt.line)
                .line_numbering(numbered)
                .annotation(AnnotationKind::Primary.span(excerpt.bytes.start..excerpt.bytes.end)),
        );
        if let Some(help) = &fault.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let mut text = renderer.render(&[group]);
        text.push('\n');
        text
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Faults {}

/// One line, or as much of it as can be shown, and the bytes of it to underline.
struct Excerpt {
    text: String,
    line: usize,
    bytes: Bytes,
}

impl Excerpt {
    fn new(text: &str, bytes: Bytes) -> Self {
        let start = floor(text, bytes.start);
        let end = floor(text, bytes.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let line = text[..start].matches('\n').count() + 1;
        let end = end.min(line_end);
        // A long line is cut around what is underlined.
        let from = back(text, line_start, start, WIDEST_SNIPPET / 4);
        let until = forward(text, start, line_end, WIDEST_SNIPPET);
        let cut_before = if from > line_start { "…" } else { "" };
        let cut_after = if until < line_end { "…" } else { "" };
        let shift = cut_before.len();
        let kept = text[from..until].trim_end_matches('\r');
        // What was trimmed can have the fault in it; the mark then stands behind the last letter.
        let last = shift + kept.len();
        let bytes = Bytes {
            start: (start - from + shift).min(last),
            end: (end.min(until).max(start) - from + shift).min(last),
        };
        Self { text: format!("{cut_before}{kept}{cut_after}"), line, bytes }
    }
}

/// The nearest boundary of a letter at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `count` letters before `at`, but not before `least`.
fn back(text: &str, least: usize, at: usize, count: usize) -> usize {
    text[least..at].char_indices().rev().take(count).last().map_or(at, |(index, _)| least + index)
}

/// `count` letters after `at`, but not after `most`.
fn forward(text: &str, at: usize, most: usize, count: usize) -> usize {
    text[at..most].char_indices().nth(count).map_or(most, |(index, _)| at + index)
}

/// The name nearest to what was written, if one is near enough to have been meant.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST_NAME: usize = 40;
    // A file can have a fault and a name on every line; comparing all with all would take minutes.
    const MOST_NAMES: usize = 200;
    let length = written.chars().count();
    let farthest = (length / 3).max(1);
    if !(2..=LONGEST_NAME).contains(&length) {
        return None;
    }
    names
        .into_iter()
        .take(MOST_NAMES)
        .filter(|name| name.chars().take(LONGEST_NAME * 2).count().abs_diff(length) <= farthest)
        .map(|name| (strsim::damerau_levenshtein(written, name), name))
        .filter(|(distance, _)| *distance <= farthest)
        .min()
        .map(|(_, name)| name)
}

/// Advice on a name: the nearest, else all that there are.
pub fn advise(written: &str, names: &[&str]) -> Option<String> {
    const MOST_LISTED: usize = 40;
    match nearest(written, names.iter().copied()) {
        Some(near) => Some(format!("did you mean `{near}`?")),
        None if names.is_empty() || names.len() > MOST_LISTED => None,
        None => Some(format!("possible here: {}", names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every place in texts with all that makes lines and letters uneven.
    #[test]
    fn any_place_of_any_text_can_be_shown() {
        let long = format!("a = '{}'\r\n", "ä".repeat(300));
        let blank = format!("a ={}1", "\r".repeat(300));
        let texts = ["", "\r\r", "\r\r\n\r", "ä\n\n€ = 1", "\t\u{0}\u{202e}x", &long, &blank];
        for text in texts {
            for start in 0..=text.len() + 1 {
                for end in [start, start + 1, text.len(), text.len() + 9] {
                    let place = Place::File(Bytes { start, end });
                    let fault = Fault::new(&place, "wrong");
                    let faults = Faults::new(Path::new("w"), text, &[], vec![fault]);
                    assert!(faults.to_string().starts_with("w:"));
                }
            }
        }
    }

    #[test]
    fn only_what_is_near_is_advised() {
        let names = ["total", "reserve", "for"];
        for (written, near) in [
            ("totl", Some("total")),
            ("fro", Some("for")),
            ("resreve", Some("reserve")),
            ("url", None),
            ("x", None),
            (&"t".repeat(1_000_000), None),
        ] {
            assert_eq!(nearest(written, names), near, "{}", &written[..1]);
        }
    }

    #[test]
    fn faults_beyond_a_hundred_are_counted() {
        let faults = vec![Fault::new(&Place::Whole, "wrong"); 103];
        let shown = Faults::new(Path::new("w"), "", &[], faults).to_string();
        assert_eq!(shown.matches("wrong").count(), 100);
        assert!(shown.ends_with("w: and 3 more faults"), "{shown}");
    }
}
