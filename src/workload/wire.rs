//! What steps of real I/O reach, and how: connections, files, and the peers of the file.

use std::path::PathBuf;
use std::time::Duration;

/// A connection that a step makes for one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// To whom.
    pub to: Address,
    /// Until it is connected, a look-up of the name included; `None`: no limit.
    pub connect_timeout: Option<Duration>,
    /// From the end of the request to the first byte; `None`: no limit.
    pub read_timeout: Option<Duration>,
    /// Between bytes; `None`: no limit.
    pub idle_timeout: Option<Duration>,
}

/// Whom a connection is made to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The peer of that place in [`Workload::peers`](crate::workload::Workload::peers).
    Peer(usize),
    /// Somebody else.
    Host {
        /// A name, which is looked up, or an address.
        host: String,
        /// The port.
        port: u16,
    },
}

/// An `io` step with `op = "tcp"` (Q11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Whom it connects to, and how long it waits.
    pub connection: Connection,
    /// What it sends; empty for nothing.
    pub send: String,
    /// Until when it reads; `None`: not at all.
    pub read: Option<ReadUntil>,
    /// How long it keeps the connection open after that; `None`: not at all.
    pub hold: Option<Duration>,
}

/// Until when a `tcp` step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadUntil {
    /// The first bytes.
    First,
    /// The end of the stream.
    End,
}

/// An `io` step with `op = "http"` (P12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Whom it connects to, and how long it waits.
    pub connection: Connection,
    /// Host and port as the request names them.
    pub authority: String,
    /// Path and query.
    pub target: String,
    /// The method.
    pub method: String,
    /// The body of the request; empty for none.
    pub body: String,
    /// The status that is a success; `None`: any 2xx.
    pub expect_status: Option<u16>,
}

/// An `io` step with `op = "write"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Which file.
    pub path: PathBuf,
    /// How many bytes.
    pub size: u64,
    /// Whether it is synced.
    pub sync: bool,
    /// Whether it stays when the run is over.
    pub keep: bool,
}

/// `[peers.NAME]`: somebody on loopback who misbehaves as told (P13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// From the end of the request to the answer.
    pub answer_after: Duration,
    /// The status of its answer.
    pub status: u16,
    /// Bytes of its answer's body.
    pub body: u64,
    /// Sends the body in pieces; `None`: as fast as it goes.
    pub drip: Option<Drip>,
    /// Resets after so many bytes of body; after 0 before anything of the answer.
    pub reset_after: Option<u64>,
    /// Closes after so many bytes of body; after 0 before anything of the answer.
    pub close_after: Option<u64>,
    /// Refuses connections.
    pub refuse: bool,
    /// How long it takes to accept a connection.
    pub accept_after: Duration,
}

/// A body in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// Of each piece.
    pub bytes: u64,
    /// Between two pieces; the first comes at once.
    pub every: Duration,
    /// Bytes after which nothing comes.
    pub stop_after: Option<u64>,
}
