//! Trees of values that are almost right: sound ones, changed in a few places as bytes choose.
//!
//! The same bytes make the same changes, so that an input is its own recipe.

use serde_json::{Map, Value, json};

/// Bytes as choices. When they run out, each choice is the first.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn are_left(&self) -> bool {
        !self.0.is_empty()
    }

    fn byte(&mut self) -> usize {
        self.0.split_off_first().map_or(0, |byte| usize::from(*byte))
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        match count {
            ..=256 => self.byte() % count,
            _ => (self.byte() << 16 | self.byte() << 8 | self.byte()) % count,
        }
    }

    pub fn one_of<'b, T>(&mut self, all: &'b [T]) -> &'b T {
        &all[self.below(all.len())]
    }

    /// The next few bytes as letters.
    pub fn word(&mut self) -> String {
        let length = 1 + self.below(12);
        let (word, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        String::from_utf8_lossy(word).into_owned()
    }
}

/// Texts and numbers that stand at some boundary, or belong to another key.
fn odd_values() -> Vec<Value> {
    let texts = [
        "",
        "1s",
        "0s",
        "100ms",
        "1us",
        "900s",
        "24h",
        "10years",
        "1h 1h",
        "-1s",
        ">= 1",
        "< 1s",
        "== x",
        "websocket",
        "custom",
        "thread",
        "own",
        "first",
        "fail",
        "later",
        "50/s",
        "sleep",
        "spin",
        "cpu",
        "blocking",
        "io",
        "polls",
        "choice",
        "a\nb",
        "\u{202e}",
        "\u{0}",
        "ä€\u{1f980}",
    ];
    let numbers = [
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(10_000_000),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(0.5),
        json!(1e300),
        json!(-0.0),
        json!(1e-300),
    ];
    let mut values: Vec<_> = texts.into_iter().map(Value::from).collect();
    values.extend(numbers);
    values.extend([json!(true), json!(false), json!([]), json!({}), json!([{}]), json!([1, "1s"])]);
    values.extend([
        json!({ "min": "1ms", "max": "2ms" }),
        json!({ "mean": "1ms" }),
        json!({ "p50": "1ms", "p99": "9ms", "max": "5ms" }),
        json!({ "share": 0.5 }),
        json!({ "code": "BUSY", "retryable": true, "first": 2 }),
        json!({ "kind": "cpu", "for": "1ms" }),
        json!({ "kind": "blocking", "for": "1ms", "pool": "own" }),
        json!({ "kind": "io", "op": "sleep", "for": "1ms", "detach": true }),
    ]);
    values
}

/// Changes the tree in one place; `keys` are those that a table may be given.
pub fn change(tree: &mut Value, keys: &[&str], choices: &mut Choices<'_>) {
    let places = places(tree);
    let [place, other] = [0, 1].map(|_| choices.one_of(&places));
    let other = tree.pointer(other).expect("it was found there").clone();
    let node = tree.pointer_mut(place).expect("it was found there");
    match (choices.below(8), node) {
        (0, node) => *node = choices.one_of(&odd_values()).clone(),
        (1, node) => *node = other,
        (2, Value::Object(table)) if !table.is_empty() => {
            let key = nth_key(table, choices);
            table.remove(&key);
        }
        (2, Value::Array(list)) if !list.is_empty() => drop(list.remove(choices.below(list.len()))),
        (3, Value::Object(table)) => drop(table.insert((*choices.one_of(keys)).to_owned(), other)),
        (3, Value::Array(list)) if !list.is_empty() => list.push(choices.one_of(list).clone()),
        (4, Value::Object(table)) => {
            let value = choices.one_of(&odd_values()).clone();
            table.insert((*choices.one_of(keys)).to_owned(), value);
        }
        (4, Value::Array(list)) if !list.is_empty() => {
            let (one, other) = (choices.below(list.len()), choices.below(list.len()));
            list.swap(one, other);
        }
        (5, Value::Object(table)) if !table.is_empty() => {
            let key = nth_key(table, choices);
            let value = table.remove(&key).expect("it was found there");
            table.insert((*choices.one_of(keys)).to_owned(), value);
        }
        (6, node @ Value::Object(_)) => {
            *node = json!({ "kind": "sequence", "steps": [node.take()] });
        }
        (6, node) => *node = json!([node.take()]),
        (_, Value::Number(number)) => {
            let near = number.as_u64().unwrap_or_default();
            let near = [near.wrapping_add(1), near.wrapping_sub(1), near << 1, near >> 1];
            *number = (*choices.one_of(&near)).into();
        }
        (_, node) => *node = choices.one_of(&odd_values()).clone(),
    }
}

/// Changes a list or a number of the tree, so that a reader of fixed types still takes it.
pub fn shuffle(tree: &mut Value, choices: &mut Choices<'_>) {
    let is_loose = |place: &String| {
        tree.pointer(place).is_some_and(|node| node.is_array() || node.is_number())
    };
    let places: Vec<_> = places(tree).into_iter().filter(is_loose).collect();
    let [place, other] = [0, 1].map(|_| choices.one_of(&places));
    let other = match tree.pointer(other).expect("it was found there") {
        Value::Array(list) if !list.is_empty() => Some(choices.one_of(list).clone()),
        _ => None,
    };
    match tree.pointer_mut(place).expect("it was found there") {
        Value::Array(list) => {
            let at = choices.below(list.len() + 1);
            match (choices.below(4), other) {
                (0, Some(other)) => list.insert(at, other),
                (1, _) if at < list.len() => list.insert(at, list[at].clone()),
                (2, _) if at < list.len() => list.swap(at, choices.below(at + 1)),
                _ if at < list.len() => drop(list.remove(at)),
                _ => {}
            }
        }
        node => {
            let now = node.as_u64().unwrap_or_default();
            let odd = [0, 1, 2, u64::from(u32::MAX), u64::MAX, 1_000_000_000];
            let near = [now.wrapping_add(1), now.wrapping_sub(1), now << 1, now >> 1];
            *node = (*choices.one_of(&[near.as_slice(), &odd].concat())).into();
        }
    }
}

fn nth_key(table: &Map<String, Value>, choices: &mut Choices<'_>) -> String {
    let nth = choices.below(table.len());
    table.keys().nth(nth).expect("it is one of them").clone()
}

/// JSON pointers to every value of the tree, itself first.
fn places(tree: &Value) -> Vec<String> {
    let mut places = vec![String::new()];
    let mut next = 0;
    while let Some(place) = places.get(next).cloned() {
        next += 1;
        match tree.pointer(&place) {
            Some(Value::Object(table)) => {
                let escape = |key: &String| key.replace('~', "~0").replace('/', "~1");
                places.extend(table.keys().map(|key| format!("{place}/{}", escape(key))));
            }
            Some(Value::Array(list)) => {
                places.extend((0..list.len()).map(|at| format!("{place}/{at}")));
            }
            _ => {}
        }
    }
    places
}

/// Pointers to the tables of the tree.
pub fn tables(tree: &Value) -> Vec<String> {
    let is_table = |place: &String| tree.pointer(place).is_some_and(Value::is_object);
    places(tree).into_iter().filter(is_table).collect()
}

/// The tree as TOML: a line for each key of the file, and everything else inline.
pub fn toml(tree: &Value) -> String {
    let Value::Object(root) = tree else { return inline(tree) };
    root.iter().map(|(key, value)| format!("{} = {}\n", text(key), inline(value))).collect()
}

fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let entries =
                table.iter().map(|(key, value)| format!("{} = {}", text(key), inline(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => {
            format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::String(word) => text(word),
        other => other.to_string(),
    }
}

/// A JSON text is a TOML text, but for one letter that TOML wants escaped.
fn text(word: &str) -> String {
    Value::from(word).to_string().replace('\u{7f}', "\\u007f")
}
