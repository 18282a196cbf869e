//! The layers of the tree, checked where modules name each other and the world.
//!
//! Reads the sources as text: paths as they are written, groups taken apart and `super` resolved.
//! Comments, strings and test modules are not read. Macros are not expanded, so a path that only a
//! macro makes is not seen.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

const WORDS: &[&str] = &["timeline", "obligation", "event"];
const PURE: &[&str] = &[
    "timeline",
    "obligation",
    "event",
    "events",
    "duration",
    "workload",
    "plan",
    "foresight",
    "engine",
    "audit",
    "advice",
    "report",
    "replay",
    "expect",
    "render",
    "progress",
];
const SHELL: &[&str] = &["workload::file", "panics", "drive", "steps", "settle"];
const WORLD: &[&str] = &[
    "tokio",
    "rustix",
    "libc",
    "tempfile",
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "dbg!",
    "crate::drive",
    "crate::steps",
    "crate::settle",
    "crate::workload::file",
    "crate::cli",
];

/// Which modules may not name what.
struct Layer {
    modules: &'static [&'static str],
    except: &'static [&'static str],
    never: &'static [&'static str],
    why: &'static str,
}

const LAYERS: &[Layer] = &[
    Layer {
        modules: PURE,
        except: &["workload::file"],
        never: WORLD,
        why: "pure modules have no clock, file, thread or terminal",
    },
    Layer {
        modules: &["audit", "advice"],
        except: &[],
        never: &["crate::engine"],
        why: "two readings of the rules share no code",
    },
    Layer {
        modules: &["foresight"],
        except: &[],
        never: &["crate::engine", "crate::audit"],
        why: "what is foreseen is read from the file alone",
    },
    Layer {
        modules: &["engine"],
        except: &[],
        never: &[
            "crate::audit",
            "crate::advice",
            "crate::report",
            "crate::expect",
            "crate::render",
        ],
        why: "the engine decides and does not judge",
    },
    Layer {
        modules: SHELL,
        except: &[],
        never: &["clap", "indicatif", "comfy_table", "crate::cli", "crate::render"],
        why: "the shell knows nothing of arguments and terminals",
    },
];

/// Where a crate may be named: files of `src`, or folders.
struct Address {
    name: &'static str,
    at: &'static [&'static str],
}

const ADDRESSES: &[Address] = &[
    Address { name: "annotate_snippets", at: &["workload/fault.rs"] },
    Address { name: "clap", at: &["cli/args.rs", "cli/args/"] },
    Address { name: "comfy_table", at: &["render/table.rs"] },
    Address { name: "http_body_util", at: &["steps/io/http.rs"] },
    Address { name: "humantime", at: &["duration.rs"] },
    Address { name: "hyper", at: &["steps/io/"] },
    Address { name: "indicatif", at: &["cli/progress.rs"] },
    Address { name: "libc", at: &["drive/", "steps/", "cli/"] },
    Address { name: "libm", at: &["workload/sample.rs"] },
    Address { name: "rand_chacha", at: &["workload/sample.rs"] },
    Address { name: "rustix", at: &["drive/", "steps/", "cli/"] },
    Address { name: "sha2", at: &["workload/file.rs"] },
    Address { name: "tokio", at: &["drive.rs", "drive/", "steps.rs", "steps/"] },
    Address { name: "toml", at: &["workload/file.rs"] },
];

/// One source file, as far as it is read.
struct Source {
    /// Below `src`, with slashes.
    file: String,
    /// `workload::file` for `workload/file.rs`.
    module: String,
    /// Every path that it names, with its line.
    paths: Vec<(usize, String)>,
}

impl Source {
    fn new(file: &str, code: &str) -> Self {
        let module = file.trim_end_matches(".rs").replace('/', "::");
        let paths =
            paths(code).into_iter().map(|(line, path)| (line, absolute(&module, &path))).collect();
        Self { file: file.into(), module, paths }
    }

    fn is_in(&self, modules: &[&str]) -> bool {
        modules.iter().any(|module| is_below(&self.module, module))
    }

    fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (line, path) in &self.paths {
            let mut add = |why: &str| {
                faults.push(format!("src/{}:{line}: names `{path}`, but {why}", self.file));
            };
            if self.is_in(WORDS)
                && path.starts_with("crate::")
                && !WORDS.iter().any(|word| is_below(path, &format!("crate::{word}")))
            {
                add("the words know nothing of anything else");
            }
            for layer in LAYERS {
                let is_bound = self.is_in(layer.modules) && !self.is_in(layer.except);
                if is_bound && layer.never.iter().any(|never| is_below(path, never)) {
                    add(layer.why);
                }
            }
            for address in ADDRESSES {
                let is_there = address.at.iter().any(|at| self.file.starts_with(at));
                if path.contains("::") && is_below(path, address.name) && !is_there {
                    add(&format!(
                        "the address of that crate is src/{}",
                        address.at.join(" or src/")
                    ));
                }
            }
        }
        faults
    }
}

/// Whether the path is `above` or inside it.
fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// A path of a module, with `self` and `super` resolved.
fn absolute(module: &str, path: &str) -> String {
    let mut base: Vec<&str> = module.split("::").collect();
    let mut segments = path.split("::").peekable();
    let mut is_relative = false;
    while let Some(&segment) = segments.peek() {
        match segment {
            "super" => base.pop().map_or((), drop),
            "self" => {}
            _ => break,
        }
        is_relative = true;
        segments.next();
    }
    if !is_relative {
        return path.into();
    }
    std::iter::once("crate").chain(base).chain(segments).collect::<Vec<_>>().join("::")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// `::`
    Into,
    Other(char),
}

/// Every path in the code, with the line it is on; macros end with `!`.
fn paths(code: &str) -> Vec<(usize, String)> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut next = 0;
    while next < tokens.len() {
        next = take_path(&tokens, next, "", &mut found);
    }
    found
}

/// Reads one path that begins there, or skips a token; answers where to go on.
fn take_path(
    tokens: &[(usize, Token)],
    start: usize,
    prefix: &str,
    found: &mut Vec<(usize, String)>,
) -> usize {
    let mut next = start;
    let mut path = prefix.to_string();
    while let Some((line, Token::Word(word))) = tokens.get(next) {
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(word);
        next += 1;
        if tokens.get(next).map(|(_, token)| *token) != Some(Token::Into) {
            if tokens.get(next).map(|(_, token)| *token) == Some(Token::Other('!')) {
                path.push('!');
            }
            found.push((*line, path));
            return next;
        }
        next += 1;
        if tokens.get(next).map(|(_, token)| *token) == Some(Token::Other('{')) {
            return take_group(tokens, next + 1, &path, found);
        }
    }
    next.max(start + 1)
}

fn take_group(
    tokens: &[(usize, Token)],
    start: usize,
    prefix: &str,
    found: &mut Vec<(usize, String)>,
) -> usize {
    let mut next = start;
    while let Some((line, token)) = tokens.get(next) {
        match token {
            Token::Other('}') => return next + 1,
            Token::Word("self") => {
                found.push((*line, prefix.into()));
                next += 1;
            }
            Token::Word("as") => next += 2,
            _ => next = take_path(tokens, next, prefix, found),
        }
    }
    next
}

fn tokens(code: &str) -> Vec<(usize, Token<'_>)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push((line, Token::Word(&rest[..length])));
            length
        } else if rest.starts_with("::") {
            tokens.push((line, Token::Into));
            2
        } else {
            line += usize::from(first == '\n');
            if !first.is_whitespace() {
                tokens.push((line, Token::Other(first)));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// The text with comments, strings and characters blanked, line for line.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_in_word = out.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment_length(rest)
        } else if first == '"' {
            string_length(rest)
        } else if !is_in_word && (first == 'r' || rest.starts_with("br")) {
            raw_string_length(rest)
        } else if first == '\'' {
            character_length(rest)
        } else {
            0
        };
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
    }
    out
}

fn comment_length(text: &str) -> usize {
    let mut depth = 0;
    let mut length = 0;
    loop {
        let rest = &text[length..];
        if rest.starts_with("/*") {
            depth += 1;
            length += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            length += 2;
        } else {
            match rest.chars().next() {
                Some(c) => length += c.len_utf8(),
                None => return length,
            }
        }
        if depth == 0 {
            return length;
        }
    }
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// 0 when it is no raw string.
fn raw_string_length(text: &str) -> usize {
    let body = text.trim_start_matches('b');
    let body = body.strip_prefix('r').unwrap_or(body);
    let hashes = body.len() - body.trim_start_matches('#').len();
    let Some(inner) = body[hashes..].strip_prefix('"') else { return 0 };
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - inner.len();
    inner.find(&end).map_or(text.len(), |found| start + found + end.len())
}

/// 0 when it is a lifetime.
fn character_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            text[2..].char_indices().skip(1).find(|(_, c)| *c == '\'').map_or(0, |(i, _)| i + 3)
        }
        Some(_) => match chars.next() {
            Some((index, '\'')) => index + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Blanks what only tests see; answers the modules that only they have, too.
fn blank_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut modules = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        out.push_str(&rest[..start]);
        let item = &rest[start..];
        let end = item.find(['{', ';']).unwrap_or(item.len());
        let head: Vec<&str> = item[MARK.len()..end].split_whitespace().collect();
        let length =
            if item[end..].starts_with('{') { end + block_length(&item[end..]) } else { end };
        if item[end..].starts_with(';') && head.contains(&"mod") {
            modules.extend(head.last().map(ToString::to_string));
        }
        out.extend(item[..length].chars().filter(|c| *c == '\n'));
        rest = &item[length..];
    }
    out.push_str(rest);
    (out, modules)
}

fn block_length(text: &str) -> usize {
    let mut depth = 0_usize;
    for (index, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return index + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn files(folder: &Path, below: &str, found: &mut Vec<(String, String)>) {
    let entries = fs::read_dir(folder).expect("the sources can be listed");
    let mut entries: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, &format!("{below}{name}/"), found);
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("a source can be read");
            found.push((format!("{below}{name}"), text));
        }
    }
}

fn sources(texts: &[(String, String)]) -> Vec<Source> {
    let mut read = Vec::new();
    let mut only_tests = HashSet::new();
    for (file, text) in texts {
        let (code, modules) = blank_tests(&blank(text));
        let folder = match file.as_str() {
            "lib.rs" | "main.rs" => String::new(),
            _ => format!("{}/", file.trim_end_matches(".rs")),
        };
        only_tests.extend(modules.iter().map(|module| format!("{folder}{module}.rs")));
        read.push(Source::new(file, &code));
    }
    read.retain(|source| !only_tests.contains(&source.file));
    read
}

fn faults_of(file: &str, text: &str) -> Vec<String> {
    let texts = [(file.to_string(), text.to_string())];
    sources(&texts).iter().flat_map(Source::faults).collect()
}

#[test]
fn modules_name_nothing_outside_their_layer() {
    let mut texts = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut texts);
    let sources = sources(&texts);
    assert!(sources.iter().any(|source| source.module == "engine"), "the engine was read");
    let faults: Vec<String> = sources.iter().flat_map(Source::faults).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_way_to_name_something_is_seen() {
    for (file, text, named) in [
        ("engine.rs", "use crate::report::Report;", "1: names `crate::report::Report`"),
        (
            "engine/delivery.rs",
            "fn f() {\n    crate::audit::judge();\n}",
            "2: names `crate::audit::judge`",
        ),
        ("engine/delivery.rs", "use super::super::render;", "1: names `crate::render`"),
        ("foresight/gaps.rs", "use crate::engine::Delivery;", "1: names `crate::engine::Delivery`"),
        ("event.rs", "use super::plan;", "1: names `crate::plan`"),
        (
            "audit.rs",
            "use crate::{\n    event::Entry,\n    engine::Delivery,\n};",
            "3: names `crate::engine::Delivery`",
        ),
        ("audit/cutoffs.rs", "use crate::engine::{self};", "1: names `crate::engine`"),
        ("advice.rs", "use crate::engine as rules;", "1: names `crate::engine`"),
        ("plan.rs", "use std::{fs, time::{Duration, Instant}};", "1: names `std::fs`"),
        ("plan.rs", "use std::time::{Duration, Instant};", "1: names `std::time::Instant`"),
        ("render/text.rs", "println!(\"{}\", x);", "1: names `println!`"),
        ("workload/check.rs", "let x = std::env::var(\"X\");", "1: names `std::env::var`"),
        ("workload/keys.rs", "use toml::de::DeTable;", "1: names `toml::de::DeTable`"),
        ("cli/run.rs", "#[derive(clap::Parser)]\nstruct Run;", "1: names `clap::Parser`"),
        ("drive/real.rs", "use crate::cli::args;", "1: names `crate::cli::args`"),
    ] {
        let faults = faults_of(file, text);
        let begins = format!("src/{file}:{named}");
        assert!(faults.iter().any(|fault| fault.starts_with(&begins)), "{begins} in {faults:?}");
    }
}

#[test]
fn what_may_be_named_is_no_fault() {
    for (file, text) in [
        ("event.rs", "use crate::timeline::Moment; use std::time::Duration;"),
        ("engine.rs", "// crate::report\n/* std::fs /* println! */ */ let x = \"crate::audit\";"),
        (
            "engine.rs",
            "let x = r#\"crate::\"audit\"#; let y = '\"'; let z: &'static str = \"tokio::\";",
        ),
        ("engine.rs", "#[cfg(test)]\nmod tests {\n    use crate::report::Report;\n}"),
        ("render/table.rs", "use comfy_table::Table; writeln!(out, \"x\");"),
        ("workload/file.rs", "use std::fs::File; use toml::de::DeTable;"),
        ("steps.rs", "tokio::task::yield_now().await;"),
        ("steps/command.rs", "fn libc() {}"),
        ("drive/control.rs", "use std::time::Instant;"),
        ("report.rs", "struct Drive { drive: u8 }"),
    ] {
        assert_eq!(faults_of(file, text), Vec::<String>::new(), "{file}: {text}");
    }
}

#[test]
fn file_of_a_test_module_is_not_read() {
    let texts = [
        ("report.rs".to_string(), "#[cfg(test)]\npub(crate) mod sample;".to_string()),
        ("report/sample.rs".to_string(), "use std::fs;".to_string()),
    ];
    assert!(sources(&texts).iter().all(|source| source.module == "report"));
}
