//! Holds a tree of values against the table of keys.
//!
//! What comes out has only keys of the table, values of their shape and in their range, and knows
//! every fixed default. What was faulty is left out and remembered, so that nobody reports it a
//! second time. Relations between keys are not looked at here.

use std::fmt::{self, Display};
use std::time::Duration;

use crate::duration;
use crate::workload::fault::{Fault, advise, nearest};
use crate::workload::keys::{
    ENDINGS, Key, Kind, Kinds, Measure, Otherwise, Section, Shape, Since, Word,
};
use crate::workload::tree::{self, Entry, Node, Place, mark, quote};
use crate::workload::{Bound, Comparison, Rate};

/// The most steps inside one another; a recursion further down could exhaust the stack.
const DEEPEST: usize = 32;

/// A table that was held against its keys.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// Where the table stands.
    pub place: &'a Place,
    /// Its `kind`, where its keys depend on one; `None` where that was faulty or is not asked for.
    pub kind: Option<&'static Kind>,
    /// Its keys beside those of its kind; none if nothing can be said of what was not written.
    keys: &'static [Key],
    items: Vec<(&'static str, Item<'a>)>,
    faulty: Vec<&'static str>,
}

/// A written value that has its shape.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    /// What was written.
    pub entry: &'a Entry<'a>,
    /// Its value.
    pub value: Value<'a>,
}

impl<'a> Item<'a> {
    /// Where the value was written.
    pub fn place(&self) -> &'a Place {
        &self.entry.node.place
    }

    /// Where its key was written.
    pub fn key_place(&self) -> &'a Place {
        &self.entry.place
    }
}

/// The values that shapes let through.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// Of [`Shape::Text`] and [`Shape::Name`].
    Text(&'a str),
    /// Of [`Shape::Rate`].
    Rate(Rate),
    /// Of [`Shape::Flag`].
    Flag(bool),
    /// Of [`Shape::Whole`].
    Whole(u64),
    /// Of [`Shape::Size`], in bytes.
    Size(u64),
    /// Of [`Shape::Number`].
    Number(f64),
    /// Of [`Shape::Time`].
    Time(Duration),
    /// Of [`Shape::Word`].
    Word(&'static str),
    /// Of [`Shape::List`].
    List(Vec<Value<'a>>),
    /// Of [`Shape::Section`] and [`Shape::Step`].
    Table(Box<Given<'a>>),
    /// Of [`Shape::Sections`] and [`Shape::Steps`].
    Tables(Vec<Given<'a>>),
    /// Of [`Shape::Map`]; the names are the keys of its entries.
    Map(Vec<Item<'a>>),
    /// Of [`Shape::Bound`], with the right-hand side as written.
    Bound(Box<Bound>, &'a str),
    /// Of [`Shape::Anything`].
    Anything,
}

// A step is asked for some thirty names, each a constant where it is asked. Inlined, most of the
// comparisons are of one length.
impl<'a> Given<'a> {
    /// A table of which nothing was written.
    pub fn defaults(section: &'static Section) -> Self {
        Self { keys: section.keys, ..Self::empty(&Place::Whole, 0) }
    }

    /// The value of a key, if it was written and is not faulty.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Item<'a>> {
        self.items.iter().find(|(key, _)| *key == name).map(|(_, item)| item)
    }

    /// Whether a key was written, faulty or not.
    #[inline]
    pub fn mentions(&self, name: &str) -> bool {
        self.get(name).is_some() || self.faulty.contains(&name)
    }

    /// What was written, in the order of the file.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Item<'a>)> {
        self.items.iter().map(|(name, item)| (*name, item))
    }

    /// The text of a key.
    #[inline]
    pub fn text(&self, name: &str) -> Option<&'a str> {
        match self.get(name)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The rate of a key.
    pub fn rate(&self, name: &str) -> Option<Rate> {
        match self.get(name)?.value {
            Value::Rate(rate) => Some(rate),
            _ => None,
        }
    }

    /// The flag of a key, written or default.
    #[inline]
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.plain(name)? {
            Otherwise::Flag(flag) => Some(flag),
            _ => None,
        }
    }

    /// The whole number of a key, written or default.
    #[inline]
    pub fn whole(&self, name: &str) -> Option<u64> {
        match self.plain(name)? {
            Otherwise::Whole(whole) => Some(whole),
            _ => None,
        }
    }

    /// The number of a key, written or default.
    #[inline]
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.plain(name)? {
            Otherwise::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The span of a key, written or default.
    #[inline]
    pub fn time(&self, name: &str) -> Option<Duration> {
        match self.plain(name)? {
            Otherwise::Time(time) => Some(time),
            _ => None,
        }
    }

    /// The word of a key, written or default.
    #[inline]
    pub fn word(&self, name: &str) -> Option<&'static str> {
        match self.plain(name)? {
            Otherwise::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The table of a key.
    #[inline]
    pub fn table(&self, name: &str) -> Option<&Given<'a>> {
        match &self.get(name)?.value {
            Value::Table(given) => Some(given),
            _ => None,
        }
    }

    /// The tables of a key; none if it was not written.
    #[inline]
    pub fn tables(&self, name: &str) -> &[Given<'a>] {
        match self.get(name).map(|item| &item.value) {
            Some(Value::Tables(tables)) => tables,
            _ => &[],
        }
    }

    /// The names and values of a key; none if it was not written.
    pub fn map(&self, name: &str) -> &[Item<'a>] {
        match self.get(name).map(|item| &item.value) {
            Some(Value::Map(items)) => items,
            _ => &[],
        }
    }

    /// A value that can be a default: as it was written, else the default; never of a faulty key.
    #[inline]
    fn plain(&self, name: &str) -> Option<Otherwise> {
        let Some(item) = self.get(name) else {
            return self.otherwise(name);
        };
        match item.value {
            Value::Flag(flag) => Some(Otherwise::Flag(flag)),
            Value::Whole(whole) => Some(Otherwise::Whole(whole)),
            Value::Number(number) => Some(Otherwise::Number(number)),
            Value::Time(time) => Some(Otherwise::Time(time)),
            Value::Word(word) => Some(Otherwise::Word(word)),
            _ => None,
        }
    }

    #[inline]
    fn otherwise(&self, name: &str) -> Option<Otherwise> {
        if self.faulty.contains(&name) {
            return None;
        }
        let own = self.kind.map_or(&[][..], |kind| kind.keys);
        find(own, name).or_else(|| find(self.keys, name)).map(|key| key.otherwise)
    }

    /// A table that will have so many items, and no defaults.
    fn empty(place: &'a Place, items: usize) -> Self {
        let items = Vec::with_capacity(items);
        Self { place, kind: None, keys: &[], items, faulty: Vec::new() }
    }
}

/// The dotted name of a value, put together when a message needs it.
#[derive(Clone, Copy)]
enum Label<'l> {
    /// Of the file, and of a table that has no name of its own.
    Nameless,
    /// Of a key of a table.
    Key(&'l Label<'l>, &'l str),
}

impl Display for Label<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nameless => Ok(()),
            Self::Key(Self::Nameless, name) => out.write_str(name),
            Self::Key(table, name) => write!(out, "{table}.{name}"),
        }
    }
}

/// Walks one file, and collects its faults.
pub struct Walk {
    /// What was found so far.
    pub faults: Vec<Fault>,
    depth: usize,
}

impl Walk {
    /// A walk that has found nothing yet.
    pub fn new() -> Self {
        Self { faults: Vec::new(), depth: 0 }
    }

    /// Holds a whole file against the keys of `section`.
    pub fn file<'a>(&mut self, section: &'static Section, entries: &'a [Entry<'a>]) -> Given<'a> {
        self.section(section, entries, &Place::Whole, &Label::Nameless)
    }

    /// Holds a table against the keys of `section`; `label` is how messages name the table.
    fn section<'a>(
        &mut self,
        section: &'static Section,
        entries: &'a [Entry<'a>],
        place: &'a Place,
        label: &Label<'_>,
    ) -> Given<'a> {
        let mut given = Given::empty(place, entries.len());
        given.keys = section.keys;
        for entry in entries {
            match section.key(&entry.key) {
                Some(key) => self.entry(key, entry, label, &mut given),
                None => {
                    let names: Vec<_> = supported_keys(section.keys).collect();
                    let message = format!("{} is no key of {}", mark(&entry.key), section.title);
                    self.unknown(entry, message, &names, &mut given);
                }
            }
        }
        self.require(section.keys, &section.title, &given);
        given
    }

    /// Holds a table against the keys of its kind.
    fn step<'a>(
        &mut self,
        kinds: &'static Kinds,
        entries: &'a [Entry<'a>],
        place: &'a Place,
    ) -> Given<'a> {
        let mut given = Given::empty(place, entries.len());
        if self.depth == DEEPEST {
            let message = format!("more than {DEEPEST} steps inside one another; use fewer");
            self.faults.push(Fault::new(place, message));
            return given;
        }
        self.depth += 1;
        let kind = self.kind(kinds, entries, place);
        given.kind = kind;
        for entry in entries.iter().filter(|entry| entry.key != "kind") {
            let own = kind.and_then(|kind| find(kind.keys, &entry.key));
            match own.or_else(|| find(kinds.common, &entry.key)) {
                Some(key) => self.entry(key, entry, &Label::Nameless, &mut given),
                None => self.foreign_key(kinds, kind, entry, &mut given),
            }
        }
        if let Some(kind) = kind {
            given.keys = kinds.common;
            let title = format_args!("a {} of kind {}", kinds.title, kind.word);
            self.require(kind.keys, &title, &given);
            self.require(kinds.common, &kinds.title, &given);
        }
        self.depth -= 1;
        given
    }

    fn kind(
        &mut self,
        kinds: &'static Kinds,
        entries: &[Entry<'_>],
        place: &Place,
    ) -> Option<&'static Kind> {
        let Some(entry) = entries.iter().find(|entry| entry.key == "kind") else {
            let message = format!("a {} needs a `kind`", kinds.title);
            let help = format!("one of {}", supported_kinds(kinds));
            self.faults.push(Fault::new(place, message).help(help));
            return None;
        };
        let tree::Value::Text(word) = &entry.node.value else {
            let found = entry.node.value.describe();
            let message = format!("kind is {found}; use one of {}", supported_kinds(kinds));
            self.faults.push(Fault::new(&entry.node.place, message));
            return None;
        };
        let kind = kinds.kind(word);
        match kind {
            None => {
                let message = format!(
                    "{} is no kind of {}; use one of {}",
                    mark(word),
                    kinds.title,
                    supported_kinds(kinds)
                );
                let near = nearest(word, kinds.kinds.iter().map(|kind| kind.word));
                let help = near.map(|near| format!("did you mean `{near}`?"));
                self.faults.push(Fault::new(&entry.node.place, message).help(help));
            }
            Some(kind) if kind.since == Since::Later => {
                self.unsupported(&entry.node.place, &format!("kind {}", mark(word)));
                return None;
            }
            Some(_) => {}
        }
        kind
    }

    fn foreign_key(
        &mut self,
        kinds: &'static Kinds,
        kind: Option<&'static Kind>,
        entry: &Entry<'_>,
        given: &mut Given<'_>,
    ) {
        let others = kinds.kinds_with(&entry.key);
        match kind {
            // Without its kind nothing can be said of a key that some kind has.
            None if !others.is_empty() => {}
            Some(kind) if !others.is_empty() => {
                let message = format!("{} is no key of kind {}", mark(&entry.key), kind.word);
                let help = format!("it belongs to kind {}", others.join(", "));
                self.faults.push(Fault::new(&entry.place, message).help(help));
            }
            _ => {
                let mut names = vec!["kind"];
                names.extend(kind.iter().flat_map(|kind| supported_keys(kind.keys)));
                names.extend(supported_keys(kinds.common));
                let message = format!("{} is no key of a {}", mark(&entry.key), kinds.title);
                self.unknown(entry, message, &names, given);
            }
        }
    }

    /// Reports a key that does not exist. The one that was likely meant counts as written, so that
    /// it is not called missing as well.
    fn unknown(
        &mut self,
        entry: &Entry<'_>,
        message: String,
        names: &[&'static str],
        given: &mut Given<'_>,
    ) {
        given.faulty.extend(nearest(&entry.key, names.iter().copied()));
        self.faults.push(Fault::new(&entry.place, message).help(advise(&entry.key, names)));
    }

    /// Holds one value against its key, and keeps it if it is sound.
    fn entry<'a>(
        &mut self,
        key: &'static Key,
        entry: &'a Entry<'a>,
        label: &Label<'_>,
        given: &mut Given<'a>,
    ) {
        if key.since == Since::Later {
            // Whatever else is wrong with it would send its reader to mend what cannot be used.
            self.unsupported(&entry.place, &mark(key.name));
            given.faulty.push(key.name);
            return;
        }
        match self.value(&key.shape, &entry.node, &Label::Key(label, key.name)) {
            Some(value) => given.items.push((key.name, Item { entry, value })),
            None => given.faulty.push(key.name),
        }
    }

    /// Names what is missing.
    fn require(&mut self, keys: &'static [Key], title: &dyn Display, given: &Given<'_>) {
        for key in keys {
            if matches!(key.otherwise, Otherwise::Required) && !given.mentions(key.name) {
                let message = format!("{title} needs {}", mark(key.name));
                self.faults.push(Fault::new(given.place, message).help(key.doc.to_owned()));
            }
        }
    }

    fn unsupported(&mut self, place: &Place, what: &str) {
        self.faults.push(Fault::new(place, format!("{what} is not supported by this version yet")));
    }

    /// The value if it has its shape; else a fault.
    fn value<'a>(
        &mut self,
        shape: &'static Shape,
        node: &'a Node<'a>,
        label: &Label<'_>,
    ) -> Option<Value<'a>> {
        let place = &node.place;
        match (shape, &node.value) {
            (Shape::Text, tree::Value::Text(text)) => Some(Value::Text(text)),
            (Shape::Name, tree::Value::Text(text)) => {
                if text.trim().is_empty() || text.chars().any(char::is_control) {
                    self.fault(place, format!("{label} is {}; use a name on one line", quote(text)))
                } else {
                    Some(Value::Text(text))
                }
            }
            (Shape::Flag, tree::Value::Flag(flag)) => Some(Value::Flag(*flag)),
            (Shape::Whole { least, most }, tree::Value::Whole(text, whole)) => {
                let whole = whole.and_then(|whole| u64::try_from(whole).ok());
                let whole = self.in_range(whole, *least, *most, text, place, label)?;
                Some(Value::Whole(whole))
            }
            (Shape::Number { least, most }, tree::Value::Whole(text, whole)) => {
                let number = whole.map(|whole| whole as f64);
                let number = self.in_range(number, *least, *most, text, place, label)?;
                Some(Value::Number(number))
            }
            (Shape::Number { least, most }, tree::Value::Number(text, number)) => {
                let number = self.in_range(*number, *least, *most, text, place, label)?;
                Some(Value::Number(number))
            }
            (Shape::Time { least, most }, tree::Value::Text(text)) => {
                self.time(*least, *most, text, place, label).map(Value::Time)
            }
            (Shape::Time { .. }, tree::Value::Whole(text, _) | tree::Value::Number(text, _)) => {
                let text = tree::cut(text);
                let message = format!(
                    "{label} is the number {text}; write it as text with a unit, \"{text}s\""
                );
                self.fault(place, message)
            }
            (Shape::Rate, tree::Value::Text(text)) => match rate(text) {
                Some(rate) => Some(Value::Rate(rate)),
                None => self.fault(
                    place,
                    format!(
                        "{label} is {}; write a number above 0 and /s or /m, \"50/s\"",
                        quote(text)
                    ),
                ),
            },
            (Shape::Size, tree::Value::Text(text)) => match parse_size(text) {
                Some(bytes) => Some(Value::Size(bytes)),
                None => self.fault(
                    place,
                    format!(
                        "{label} is {}; write a whole number and a unit, \"4KiB\" or \"1MB\"",
                        quote(text)
                    ),
                ),
            },
            (Shape::Size, tree::Value::Whole(text, _)) => {
                let text = tree::cut(text);
                let message = format!(
                    "{label} is the number {text}; write it as text with a unit, \"{text}B\""
                );
                self.fault(place, message)
            }
            (Shape::Word(words), tree::Value::Text(text)) => {
                self.word(words, text, place, label).map(Value::Word)
            }
            (Shape::List(shape), tree::Value::List(nodes)) => self.list(shape, nodes, label),
            (Shape::Section(section), tree::Value::Table(entries)) => {
                Some(Value::Table(Box::new(self.section(section, entries, place, label))))
            }
            (Shape::Step(kinds), tree::Value::Table(entries)) => {
                Some(Value::Table(Box::new(self.step(kinds, entries, place))))
            }
            (Shape::Sections(section), tree::Value::List(nodes)) => {
                self.tables(nodes, label, |walk, entries, place| {
                    walk.section(section, entries, place, &Label::Nameless)
                })
            }
            (Shape::Steps(kinds), tree::Value::List(nodes)) => {
                self.tables(nodes, label, |walk, entries, place| walk.step(kinds, entries, place))
            }
            (Shape::Map(shape), tree::Value::Table(entries)) => {
                Some(Value::Map(self.map(shape, entries, label)))
            }
            (Shape::Bound(measure), value) => self.bound(*measure, value, place, label),
            (Shape::OneOf(shapes), value) => {
                match shapes.iter().find(|shape| takes(shape, value)) {
                    Some(shape) => self.value(shape, node, label),
                    // The first form is the usual one, and its advice the most likely to be right.
                    None => self.value(&shapes[0], node, label),
                }
            }
            (Shape::Later(_), _) => {
                self.unsupported(place, &format!("{} as {label}", node.value.describe()));
                None
            }
            (Shape::Anything, _) => Some(Value::Anything),
            (
                Shape::Text
                | Shape::Name
                | Shape::Flag
                | Shape::Whole { .. }
                | Shape::Number { .. }
                | Shape::Time { .. }
                | Shape::Rate
                | Shape::Size
                | Shape::Word(_)
                | Shape::List(_)
                | Shape::Section(_)
                | Shape::Sections(_)
                | Shape::Map(_)
                | Shape::Step(_)
                | Shape::Steps(_),
                value,
            ) => {
                let message = format!("{label} is {}; {}", value.describe(), wanted(shape, label));
                self.fault(place, message)
            }
        }
    }

    /// The number if there is one and it lies in the range, ends included.
    fn in_range<T: PartialOrd + Display>(
        &mut self,
        number: Option<T>,
        least: T,
        most: T,
        text: &str,
        place: &Place,
        label: &Label<'_>,
    ) -> Option<T> {
        match number {
            Some(number) if (&least..=&most).contains(&&number) => Some(number),
            _ => {
                let text = tree::cut(text);
                self.fault(place, format!("{label} is {text}; use {least} to {most}"))
            }
        }
    }

    fn fault<T>(&mut self, place: &Place, message: String) -> Option<T> {
        self.faults.push(Fault::new(place, message));
        None
    }

    /// A list is sound when each of its values is: a missing one would move the others.
    fn list<'a>(
        &mut self,
        shape: &'static Shape,
        nodes: &'a [Node<'a>],
        label: &Label<'_>,
    ) -> Option<Value<'a>> {
        let values: Vec<_> =
            nodes.iter().filter_map(|node| self.value(shape, node, label)).collect();
        (values.len() == nodes.len()).then_some(Value::List(values))
    }

    fn map<'a>(
        &mut self,
        shape: &'static Shape,
        entries: &'a [Entry<'a>],
        label: &Label<'_>,
    ) -> Vec<Item<'a>> {
        let mut items = Vec::new();
        for entry in entries {
            let name = tree::cut(&entry.key);
            if let Some(value) = self.value(shape, &entry.node, &Label::Key(label, &name)) {
                items.push(Item { entry, value });
            }
        }
        items
    }

    fn tables<'a>(
        &mut self,
        nodes: &'a [Node<'a>],
        label: &Label<'_>,
        mut one: impl FnMut(&mut Self, &'a [Entry<'a>], &'a Place) -> Given<'a>,
    ) -> Option<Value<'a>> {
        let mut tables = Vec::with_capacity(nodes.len());
        for node in nodes {
            match &node.value {
                tree::Value::Table(entries) => tables.push(one(self, entries, &node.place)),
                value => {
                    let found = value.describe();
                    let message = format!("{label} has {found} in it; write tables only");
                    self.faults.push(Fault::new(&node.place, message));
                }
            }
        }
        // Of what is not empty nobody is to say that it is.
        (nodes.is_empty() || !tables.is_empty()).then_some(Value::Tables(tables))
    }

    fn time(
        &mut self,
        least: Duration,
        most: Duration,
        text: &str,
        place: &Place,
        label: &Label<'_>,
    ) -> Option<Duration> {
        match duration::parse(text) {
            Ok(time) if (least..=most).contains(&time) => Some(time),
            Ok(time) => {
                let found = duration::show(time);
                let (least, most) = (duration::show(least), duration::show(most));
                self.fault(place, format!("{label} is {found}; use {least} to {most}"))
            }
            Err(error) => {
                let message = format!(
                    "{label} is {}, which is no span of time: {error}; write one like \"250ms\" or \"1m 30s\"",
                    quote(text)
                );
                self.fault(place, message)
            }
        }
    }

    fn word(
        &mut self,
        words: &'static [Word],
        text: &str,
        place: &Place,
        label: &Label<'_>,
    ) -> Option<&'static str> {
        match words.iter().find(|word| word.word == text) {
            None => {
                let message =
                    format!("{label} is {}; use one of {}", quote(text), supported(words));
                let near = nearest(text, words.iter().map(|word| word.word));
                let help = near.map(|near| format!("did you mean `{near}`?"));
                self.faults.push(Fault::new(place, message).help(help));
                None
            }
            Some(word) => {
                if word.since == Since::Later {
                    self.unsupported(place, &format!("{label} {}", mark(text)));
                }
                Some(word.word)
            }
        }
    }

    /// The right-hand side of an expectation: an exact number, or a comparison in a text.
    fn bound<'a>(
        &mut self,
        measure: Measure,
        value: &'a tree::Value<'a>,
        place: &Place,
        label: &Label<'_>,
    ) -> Option<Value<'a>> {
        let advice = match measure {
            Measure::Count => "write a whole number, or a comparison like \">= 1\"",
            Measure::Time => "write a comparison like \"< 250ms\"",
            Measure::Ending => "write one of incomplete, failed, forced, graceful",
        };
        let bound = match (measure, value) {
            (Measure::Count, tree::Value::Whole(_, Some(whole))) => {
                u64::try_from(*whole).ok().map(|count| Bound::Count(Comparison::Equal, count))
            }
            (Measure::Count, tree::Value::Text(text)) => {
                let (comparison, count) = split_comparison(text);
                count.parse().ok().map(|count| Bound::Count(comparison, count))
            }
            (Measure::Time, tree::Value::Text(text)) => {
                let (comparison, span) = split_comparison(text);
                duration::parse(span).ok().map(|span| Bound::Span(comparison, span))
            }
            (Measure::Ending, tree::Value::Text(text)) => {
                let (comparison, word) = split_comparison(text);
                (comparison == Comparison::Equal && ENDINGS.contains(&word))
                    .then(|| Bound::Word(word.to_owned()))
            }
            _ => None,
        };
        let written = match value {
            tree::Value::Text(text) => text,
            tree::Value::Whole(text, _) => text.as_str(),
            _ => "",
        };
        match bound {
            Some(bound) => Some(Value::Bound(Box::new(bound), written)),
            None => self.fault(place, format!("{label} is {}; {advice}", value.describe())),
        }
    }
}

#[inline]
fn find(keys: &'static [Key], name: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.name == name)
}

/// Whether a shape is written with this type of value.
fn takes(shape: &Shape, value: &tree::Value<'_>) -> bool {
    match shape {
        Shape::Text
        | Shape::Name
        | Shape::Time { .. }
        | Shape::Rate
        | Shape::Size
        | Shape::Word(_) => {
            matches!(value, tree::Value::Text(_))
        }
        Shape::Flag => matches!(value, tree::Value::Flag(_)),
        Shape::Whole { .. } => matches!(value, tree::Value::Whole(..)),
        Shape::Number { .. } => {
            matches!(value, tree::Value::Whole(..) | tree::Value::Number(..))
        }
        Shape::List(_) | Shape::Sections(_) | Shape::Steps(_) => {
            matches!(value, tree::Value::List(_))
        }
        Shape::Section(_) | Shape::Map(_) | Shape::Step(_) => {
            matches!(value, tree::Value::Table(_))
        }
        Shape::OneOf(shapes) => shapes.iter().any(|shape| takes(shape, value)),
        Shape::Later(shape) => takes(shape, value),
        Shape::Bound(_) | Shape::Anything => true,
    }
}

/// What would be right instead of a value of another type.
fn wanted(shape: &Shape, label: &Label<'_>) -> String {
    match shape {
        Shape::Text | Shape::Name => "write a text in quotes".to_owned(),
        Shape::Flag => "write true or false".to_owned(),
        Shape::Whole { least, most } => format!("write a whole number from {least} to {most}"),
        Shape::Number { least, most } => format!("write a number from {least} to {most}"),
        Shape::Time { .. } => "write a span of time as text, like \"250ms\"".to_owned(),
        Shape::Size => "write an amount as text, like \"4KiB\"".to_owned(),
        Shape::Rate => "write a rate as text, like \"50/s\"".to_owned(),
        Shape::Word(words) => {
            format!("write one of {} in quotes", supported(words))
        }
        Shape::List(_) => "write a list, [...]".to_owned(),
        Shape::Section(_) | Shape::Map(_) | Shape::Step(_) => {
            format!("write a table, [{label}] or {{ ... }}")
        }
        Shape::Sections(_) | Shape::Steps(_) => format!("write [[{label}]] above each"),
        Shape::Bound(_) | Shape::OneOf(_) | Shape::Later(_) | Shape::Anything => {
            "write something else".to_owned()
        }
    }
}

/// The words that this version supports, for a sentence.
fn supported(words: &[Word]) -> String {
    let words = words.iter().filter(|word| word.since == Since::Now).map(|word| word.word);
    words.collect::<Vec<_>>().join(", ")
}

/// The names of the keys that this version supports.
fn supported_keys(keys: &'static [Key]) -> impl Iterator<Item = &'static str> {
    keys.iter().filter(|key| key.since == Since::Now).map(|key| key.name)
}

/// The kinds that this version supports, for a sentence.
fn supported_kinds(kinds: &Kinds) -> String {
    let kinds = kinds.kinds.iter().filter(|kind| kind.since == Since::Now).map(|kind| kind.word);
    kinds.collect::<Vec<_>>().join(", ")
}

/// Splits `>= 1` into its comparison and the rest; without a sign it is an equality.
fn split_comparison(text: &str) -> (Comparison, &str) {
    let text = text.trim();
    let signs = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        ("==", Comparison::Equal),
        ("!=", Comparison::Unequal),
        (">", Comparison::Greater),
        ("<", Comparison::Less),
    ];
    for (sign, comparison) in signs {
        if let Some(rest) = text.strip_prefix(sign) {
            return (comparison, rest.trim());
        }
    }
    (Comparison::Equal, text)
}

fn rate(text: &str) -> Option<Rate> {
    let [second, minute] = [1, 60].map(Duration::from_secs);
    let in_seconds = text.strip_suffix("/s").map(|number| (number, second));
    let (number, per) =
        in_seconds.or_else(|| text.strip_suffix("/m").map(|number| (number, minute)))?;
    let amount = number.trim().parse::<f64>().ok()?;
    // Above 0 as a rate too: a subnormal number is one a minute in longer than any run.
    let rate = Rate { amount, per };
    (amount > 0.0 && rate.per_second().is_normal() && rate.gap_nanos().is_finite()).then_some(rate)
}

/// The largest file that can be asked for.
const LARGEST: u64 = 1 << 50;

/// Bytes of `4KiB`, `1MB`, `512B`.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (base, power) = match unit.trim() {
        "" | "B" => (1_u64, 0),
        "KB" | "kB" => (1_000, 1),
        "MB" => (1_000, 2),
        "GB" => (1_000, 3),
        "KiB" => (1_024, 1),
        "MiB" => (1_024, 2),
        "GiB" => (1_024, 3),
        _ => return None,
    };
    let bytes = number.parse::<u64>().ok()?.checked_mul(base.pow(power))?;
    (bytes <= LARGEST).then_some(bytes)
}
