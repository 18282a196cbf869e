//! Steps of real I/O, and the peers that some of them reach.

use super::{Check, place_of, small};
use crate::workload::fault::Fault;
use crate::workload::tree::quote;
use crate::workload::walk::{Given, Item, Value};
use crate::workload::{Address, Connection, Drip, Http, Peer, ReadUntil, Tcp, Work, keys, url};

/// What is written where no `size` says it.
pub(super) const ORDINARY_SIZE: u64 = 4_096;

impl<'a> Check<'a> {
    /// Which keys of an `io` step its operation has.
    pub(super) fn io_keys(&mut self, given: &Given) {
        let Some(op) = given.word("op") else { return };
        for (key, ops) in keys::IO_KEYS {
            if let (false, Some(item)) = (ops.contains(&op), given.get(key)) {
                let message = format!(
                    "`{key}` has no use with op = \"{op}\"; it belongs to {}",
                    ops.join(" and ")
                );
                self.fault(item.key_place(), message);
            }
        }
        let needed = match op {
            "sleep" => "for",
            "tcp" | "http" => "url",
            _ => "path",
        };
        if !given.mentions(needed) {
            let message = format!("an io step with op = \"{op}\" needs `{needed}`");
            self.fault(given.place, message);
        }
        if let (Some(""), Some(item)) = (given.text("path"), given.get("path")) {
            self.fault(item.place(), "path is empty; write the name of a file");
        }
    }

    pub(super) fn tcp(&mut self, given: &Given) -> Option<Work> {
        let (to, _) = self.address(given, "tcp", None)?;
        Some(Work::Tcp(Box::new(Tcp {
            connection: connection(given, to),
            send: given.text("send").unwrap_or_default().to_owned(),
            read: given.word("read").map(|word| match word {
                "first" => ReadUntil::First,
                _ => ReadUntil::End,
            }),
            hold: given.time("hold"),
        })))
    }

    pub(super) fn http(&mut self, given: &Given) -> Option<Work> {
        let body = given.text("body").unwrap_or_default();
        let method = given.text("method").unwrap_or(if body.is_empty() { "GET" } else { "POST" });
        let is_token =
            |letter: char| letter.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(letter);
        if let (false, Some(item)) = (method.chars().all(is_token), given.get("method")) {
            let message =
                format!("method is {}; write one like \"GET\" or \"POST\"", quote(method));
            self.fault(item.place(), message);
            return None;
        }
        let (to, url) = self.address(given, "http", Some(80))?;
        Some(Work::Http(Box::new(Http {
            connection: connection(given, to),
            authority: url.as_ref().map_or("localhost", |url| url.authority).to_owned(),
            target: url.as_ref().map_or("/", |url| url.target).to_owned(),
            method: method.to_owned(),
            body: body.to_owned(),
            expect_status: given.whole("expect_status").map(|status| small(Some(status)) as u16),
        })))
    }

    /// Whom a `url` means, and the URL itself when that is no peer.
    fn address<'u>(
        &mut self,
        given: &Given<'u>,
        scheme: &str,
        default_port: Option<u16>,
    ) -> Option<(Address, Option<url::Url<'u>>)> {
        let (text, item) = (given.text("url")?, given.get("url")?);
        if let Some(name) = text.strip_prefix("peer:") {
            // One that is not declared has been reported.
            let place = self.declared.peers.iter().position(|peer| *peer == name)?;
            return Some((Address::Peer(place), None));
        }
        let found = url::parse(text, scheme).and_then(|url| match url.port.or(default_port) {
            Some(port) => Ok((url, port)),
            None => Err("its port is missing"),
        });
        match found {
            Ok((url, _)) if scheme == "tcp" && url.target != "/" => {
                let message = format!("url is {}; a tcp connection has no path", quote(text));
                self.fault(item.place(), message);
                None
            }
            Ok((url, port)) => {
                let host = url.host.to_owned();
                Some((Address::Host { host, port }, Some(url)))
            }
            Err(why) => {
                let form = match scheme {
                    "http" => "http://HOST:PORT/PATH",
                    _ => "tcp://HOST:PORT",
                };
                let message = format!(
                    "url is {}: {why}; with op = \"{scheme}\" use {form}, or peer:NAME",
                    quote(text)
                );
                let help = text.starts_with("https:").then(|| {
                    "there is no TLS in this program; reach the service in plain HTTP".to_owned()
                });
                self.faults.push(Fault::new(item.place(), message).help(help));
                None
            }
        }
    }

    pub(super) fn peers(&mut self, root: &Given<'a>) -> Vec<Peer> {
        root.map("peers").iter().filter_map(|item| self.peer(item)).collect()
    }

    fn peer(&mut self, item: &Item<'a>) -> Option<Peer> {
        let Value::Table(given) = &item.value else { return None };
        if let (Some(_), Some(second)) = (given.get("reset_after"), given.get("close_after")) {
            let message =
                "`reset_after` and `close_after` exclude each other; leave out one of them";
            self.fault(second.key_place(), message);
        }
        if given.flag("refuse") == Some(true)
            && let Some((name, other)) = given.all().find(|(name, _)| *name != "refuse")
        {
            let message = format!("`{name}` has no use with refuse = true; leave out one of them");
            self.fault(other.key_place(), message);
        }
        let has_no_body = matches!(given.whole("status"), Some(204 | 304));
        if has_no_body && given.whole("body").is_some_and(|body| body > 0) {
            let message = "an answer of status 204 or 304 has no body; leave out `body`";
            self.fault(place_of(given, "body"), message);
        }
        Some(Peer {
            name: item.entry.key.clone().into_owned(),
            answer_after: given.time("answer_after")?,
            status: small(given.whole("status")) as u16,
            body: given.whole("body")?,
            drip: given.table("drip").and_then(|drip| {
                Some(Drip {
                    bytes: drip.whole("bytes")?,
                    every: drip.time("every")?,
                    stop_after: drip.whole("stop_after"),
                })
            }),
            reset_after: given.whole("reset_after"),
            close_after: given.whole("close_after"),
            refuse: given.flag("refuse")?,
            accept_after: given.time("accept_after")?,
        })
    }
}

fn connection(given: &Given, to: Address) -> Connection {
    Connection {
        to,
        connect_timeout: given.time("connect_timeout"),
        read_timeout: given.time("read_timeout"),
        idle_timeout: given.time("idle_timeout"),
    }
}
