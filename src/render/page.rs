//! A page of text for people: lines, headings and paragraphs within its width, with colours or without.
//!
//! Knows nothing of what it shows.

/// Narrower than this a table is one letter a line.
const NARROWEST: u16 = 60;
/// Wider than this a line is hard to follow.
const WIDEST: u16 = 160;

/// Whether the text carries colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    Plain,
    Ansi,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Bad,
    Open,
    Faint,
    Strong,
}

/// The page as far as it is written.
pub(super) struct Page {
    pub out: String,
    width: u16,
    pub color: Color,
}

impl Page {
    /// An empty page; its width is kept between 60 and 160 columns.
    pub fn new(width: u16, color: Color) -> Self {
        Self { out: String::new(), width: width.clamp(NARROWEST, WIDEST), color }
    }

    pub fn width(&self) -> usize {
        usize::from(self.width)
    }

    /// The widest that any page is.
    pub fn widest() -> usize {
        usize::from(WIDEST)
    }

    pub fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    pub fn blank(&mut self) {
        self.out.push('\n');
    }

    pub fn paint(&self, text: &str, tone: Tone) -> String {
        paint(text, tone, self.color)
    }

    pub fn heading(&mut self, text: &str) {
        let heading = self.paint(text, Tone::Strong);
        self.blank();
        self.line(&heading);
    }

    /// Wraps `text`, with `first` in front of its first line and its other lines below that.
    pub fn paragraph(&mut self, indent: usize, first: &str, text: &str) {
        let hang = first.chars().count();
        let lines = wrap(text, self.width().saturating_sub(indent + hang));
        for (place, line) in lines.iter().enumerate() {
            let lead = if place == 0 { first } else { "" };
            self.line(&format!("{:indent$}{lead:hang$}{line}", ""));
        }
    }
}

/// The text with whatever could move a cursor, or reorder a line, spelled out instead.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        let reorders = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if letter.is_control() || reorders {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

pub(super) fn paint(text: &str, tone: Tone, color: Color) -> String {
    let code = match tone {
        Tone::Good => "1;32",
        Tone::Bad => "1;31",
        Tone::Open => "1;33",
        Tone::Faint => "2",
        Tone::Strong => "1",
    };
    match color {
        Color::Plain => text.into(),
        Color::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
    }
}

/// Breaks `text` at spaces into lines of at most `room` letters; a longer word has its own line.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
