//! Where a connection goes: `http://host:port/path`, `tcp://host:port`, `peer:NAME`.
//!
//! Takes apart what a user can mean and no more: no user names, no fragments, no other schemes.

/// A URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url<'a> {
    /// A name or an address; one of IPv6 without its brackets.
    pub host: &'a str,
    /// The port; `None` if it is the scheme's own.
    pub port: Option<u16>,
    /// Host and port as they were written.
    pub authority: &'a str,
    /// Path and query; never empty.
    pub target: &'a str,
}

/// The URL of that scheme, or what is wrong with it.
pub(super) fn parse<'a>(text: &'a str, scheme: &str) -> Result<Url<'a>, &'static str> {
    let rest = text
        .strip_prefix(scheme)
        .and_then(|rest| rest.strip_prefix("://"))
        .ok_or("its scheme is another")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.contains('@') {
        return Err("a user name has no place in it");
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']').ok_or("a `[` is not closed")?;
            if host.parse::<core::net::Ipv6Addr>().is_err() {
                return Err("what stands in brackets is no IPv6 address");
            }
            (
                host,
                rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or("a port is `:N`")?,
            )
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    if host.is_empty() {
        return Err("it names no host");
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    if !authority.starts_with('[') && !host.chars().all(is_name) {
        return Err("its host has letters that no host name has");
    }
    let port = match port {
        "" if authority.ends_with(':') => return Err("its port is missing"),
        "" => None,
        port => match port.parse() {
            Ok(0) | Err(_) => return Err("a port is a number from 1 to 65535"),
            Ok(port) => Some(port),
        },
    };
    if target.contains('#') {
        return Err("a fragment has no place in it");
    }
    let is_sent = |letter: char| letter.is_ascii_graphic() && !"\"<>\\^`{|}".contains(letter);
    if !target.chars().all(is_sent) {
        return Err("its path has letters that must be written as %XX");
    }
    let target = match target {
        "" => "/",
        target if target.starts_with('?') => return Err("its path is missing before the `?`"),
        target => target,
    };
    Ok(Url { host, port, authority, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let rows = [
            ("http://127.0.0.1:8080/x?y=1", ("127.0.0.1", Some(8080), "/x?y=1")),
            ("http://api", ("api", None, "/")),
            ("http://[::1]:80", ("::1", Some(80), "/")),
            ("http://[::1]/", ("::1", None, "/")),
        ];
        for (text, expected) in rows {
            let url = parse(text, "http").expect("a URL");
            assert_eq!((url.host, url.port, url.target), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let bad = [
            "https://api",
            "http//api",
            "http://",
            "http://:80",
            "http://api:",
            "http://api:0",
            "http://api:70000",
            "http://a b",
            "http://me@api",
            "http://[::1",
            "http://[x]:1",
            "http://api/#top",
            "http://api/a b",
            "http://[::1]80",
            "http://api?x",
        ];
        for text in bad {
            assert!(parse(text, "http").is_err(), "{text}");
        }
    }
}
