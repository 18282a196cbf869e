//! Peers on loopback that misbehave as the workload says (P13).
//!
//! All of them live on one thread with a runtime of its own, so that what the workload does to its
//! workers does nothing to them. They listen on 127.0.0.1 only, on ports that the system chooses, and
//! are gone with the run, connections included.
//!
//! Each peer has two ports, and a step knows which is its own: behind one it answers what it hears,
//! behind the other it speaks first, for clients that have nothing to say. What begins like an HTTP
//! request gets an HTTP answer; anything else gets the body alone.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::tcp::ReadHalf;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;

use crate::report::PeerRow;
use crate::workload::{Drip, Peer};

/// As many connections may wait to be accepted as the kernel lets.
const BACKLOG: u32 = 4_096;
/// After an error of `accept`, which is mostly a lack of descriptors.
const BEFORE_ANOTHER_ACCEPT: Duration = Duration::from_millis(10);
/// The runtime looks at its sockets once at least before that is over.
const BEFORE_THE_END: Duration = Duration::from_millis(2);
/// No request that a step sends has a longer head.
const LONGEST_HEAD: usize = 64 * 1_024;
/// So much is written by one call.
const PIECE: usize = 16 * 1_024;
/// What an HTTP request begins with.
const METHODS: [&str; 9] =
    ["GET ", "HEAD ", "POST ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE "];

/// Who begins to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// Whoever connects.
    Client,
    /// The peer.
    Peer,
}

/// Where a peer is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    client_first: SocketAddr,
    peer_first: SocketAddr,
}

impl Door {
    /// Where to connect.
    pub(crate) fn address(self, speaks: Speaks) -> SocketAddr {
        match speaks {
            Speaks::Client => self.client_first,
            Speaks::Peer => self.peer_first,
        }
    }
}

/// What a peer has seen so far.
#[derive(Debug, Default)]
struct Tally {
    connections: AtomicU64,
    requests: AtomicU64,
    answered: AtomicU64,
    reset: AtomicU64,
    closed: AtomicU64,
    abandoned: AtomicU64,
    body_bytes: AtomicU64,
    open: AtomicU64,
}

/// The peers of a run, at work.
pub(crate) struct Peers {
    doors: Vec<Door>,
    seen: Vec<(Arc<Peer>, Arc<Tally>)>,
    /// Dropped, it ends the thread; `None` without peers.
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Peers {
    /// Starts them.
    pub(crate) fn start(peers: &[Peer]) -> io::Result<Self> {
        let seen: Vec<_> =
            peers.iter().map(|peer| (Arc::new(peer.clone()), Arc::new(Tally::default()))).collect();
        if seen.is_empty() {
            return Ok(Self { doors: Vec::new(), seen, thread: None });
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let context = runtime.enter();
        let mut doors = Vec::new();
        let mut refusing = Vec::new();
        for (peer, tally) in &seen {
            let mut sockets = Vec::new();
            for speaks in [Speaks::Client, Speaks::Peer] {
                let socket = TcpSocket::new_v4()?;
                socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
                sockets.push(socket.local_addr()?);
                // Bound and deaf, the kernel refuses for it, and gives the port to nobody else.
                if peer.refuse {
                    refusing.push(socket);
                } else {
                    let listener = socket.listen(BACKLOG)?;
                    let (peer, tally) = (Arc::clone(peer), Arc::clone(tally));
                    drop(runtime.spawn(accept(listener, peer, tally, speaks)));
                }
            }
            doors.push(Door { client_first: sockets[0], peer_first: sockets[1] });
        }
        drop(context);
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("peers".into()).spawn(move || {
            runtime.block_on(async {
                // Only ever ended by the drop of its sender.
                let _ = ended.await;
                // What was closed before that is seen to be.
                tokio::time::sleep(BEFORE_THE_END).await;
            });
            drop(refusing);
        })?;
        Ok(Self { doors, seen, thread: Some((end, thread)) })
    }

    /// Where each of them is, in the order of the file.
    pub(crate) fn doors(&self) -> Vec<Door> {
        self.doors.clone()
    }

    /// Ends them, and says what they saw.
    pub(crate) fn end(self) -> Vec<PeerRow> {
        if let Some((end, thread)) = self.thread {
            drop(end);
            // Runs none of the workload's code, so it cannot be stuck; a panic of it is a bug of ours.
            thread.join().expect("the peers end by themselves");
        }
        self.seen.iter().map(|(peer, tally)| tally.row(&peer.name)).collect()
    }
}

impl Tally {
    fn row(&self, name: &str) -> PeerRow {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PeerRow {
            name: name.to_owned(),
            connections: read(&self.connections),
            requests: read(&self.requests),
            answered: read(&self.answered),
            reset: read(&self.reset),
            closed: read(&self.closed),
            abandoned: read(&self.abandoned),
            body_bytes: read(&self.body_bytes),
            open: read(&self.open),
        }
    }
}

fn add(count: &AtomicU64, amount: u64) {
    count.fetch_add(amount, Ordering::Relaxed);
}

async fn accept(listener: TcpListener, peer: Arc<Peer>, tally: Arc<Tally>, speaks: Speaks) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                add(&tally.connections, 1);
                add(&tally.open, 1);
                let (peer, tally) = (Arc::clone(&peer), Arc::clone(&tally));
                drop(tokio::spawn(async move {
                    serve(stream, &peer, &tally, speaks).await;
                    tally.open.fetch_sub(1, Ordering::Relaxed);
                }));
            }
            Err(_) => tokio::time::sleep(BEFORE_ANOTHER_ACCEPT).await,
        }
    }
}

/// How a peer is done with a connection.
enum Over {
    /// Its answer was whole.
    Answered,
    Reset,
    Close,
    /// The other side left, or what it said was no request.
    Left,
}

async fn serve(mut stream: TcpStream, peer: &Peer, tally: &Tally, speaks: Speaks) {
    // What is small goes out at once; a peer that cannot say so is only slower.
    let _ = stream.set_nodelay(true);
    let (mut reader, mut writer) = stream.split();
    let request = async {
        match speaks {
            _ if !accept_late(&mut reader, peer.accept_after).await => None,
            Speaks::Client => hear(&mut reader).await,
            Speaks::Peer => Some(Request::Plain),
        }
    };
    let over = match request.await {
        None => Over::Left,
        Some(request) => {
            add(&tally.requests, 1);
            tokio::select! {
                over = answer(peer, tally, request, &mut writer) => over.unwrap_or(Over::Left),
                () = until_left(&mut reader) => Over::Left,
            }
        }
    };
    match over {
        Over::Answered => {
            add(&tally.answered, 1);
            // Our side of the stream is over; theirs ends when they leave.
            if writer.shutdown().await.is_ok() {
                until_left(&mut reader).await;
            }
        }
        Over::Reset => {
            add(&tally.reset, 1);
            // Without it the end is an ordinary one.
            let _ = stream.set_zero_linger();
        }
        Over::Close => add(&tally.closed, 1),
        Over::Left => add(&tally.abandoned, 1),
    }
}

/// Takes its time to accept; answers whether the other side is still there then.
async fn accept_late(reader: &mut ReadHalf<'_>, after: Duration) -> bool {
    let accepted = async {
        tokio::time::sleep(after).await;
        true
    };
    let left = async {
        if matches!(reader.peek(&mut [0]).await, Ok(1..)) {
            std::future::pending::<()>().await;
        }
        false
    };
    tokio::select! {
        biased;
        is_there = accepted => is_there,
        is_there = left => is_there,
    }
}

/// Reads, and forgets, what the other side sends until it closes.
async fn until_left(reader: &mut (impl AsyncRead + Unpin)) {
    let mut piece = [0; 1_024];
    while matches!(reader.read(&mut piece).await, Ok(1..)) {}
}

/// What the other side said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Plain,
    Http { wants_body: bool },
}

/// Hears a request to its end; `None` if the other side left before.
async fn hear(reader: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut heard = Vec::new();
    let mut piece = [0; 1_024];
    loop {
        let count = reader.read(&mut piece).await.ok()?;
        if count == 0 || heard.len() > LONGEST_HEAD {
            return None;
        }
        heard.extend_from_slice(&piece[..count]);
        if !may_be_http(&heard) {
            return Some(Request::Plain);
        }
        if let Some(rest) = body_to_come(&heard) {
            let mut left = rest;
            while left > 0 {
                let count = reader.read(&mut piece).await.ok().filter(|count| *count > 0)?;
                left = left.saturating_sub(count as u64);
            }
            return Some(Request::Http { wants_body: !heard.starts_with(b"HEAD ") });
        }
    }
}

/// Whether this is, or can become, the beginning of a request.
fn may_be_http(heard: &[u8]) -> bool {
    METHODS.iter().map(|method| method.as_bytes()).any(|method| {
        let common = method.len().min(heard.len());
        heard[..common] == method[..common]
    })
}

/// How much of a request's body is still to come; `None` while its head is not whole.
fn body_to_come(heard: &[u8]) -> Option<u64> {
    let head_end = heard.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&heard[..head_end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0_u64);
    Some(length.saturating_sub((heard.len() - head_end) as u64))
}

async fn answer(
    peer: &Peer,
    tally: &Tally,
    request: Request,
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Over> {
    tokio::time::sleep(peer.answer_after).await;
    let ends_after = match (peer.reset_after, peer.close_after) {
        (Some(bytes), _) => Some((bytes, Over::Reset)),
        (None, Some(bytes)) => Some((bytes, Over::Close)),
        (None, None) => None,
    };
    let (most, over) = match ends_after {
        Some((0, over)) => return Ok(over),
        Some((bytes, over)) => (bytes, over),
        None => (u64::MAX, Over::Answered),
    };
    let body = match request {
        Request::Plain => peer.body,
        Request::Http { wants_body } => {
            let head = format!(
                "HTTP/1.1 {} As-Told\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                peer.status, peer.body
            );
            writer.write_all(head.as_bytes()).await?;
            if wants_body { peer.body } else { 0 }
        }
    };
    let stops_at = peer.drip.and_then(|drip| drip.stop_after).unwrap_or(u64::MAX);
    send(body.min(most).min(stops_at), peer.drip, tally, writer).await?;
    // What is not to be reached does not happen.
    if stops_at < body.min(most) {
        std::future::pending::<()>().await;
    }
    Ok(if most <= body { over } else { Over::Answered })
}

/// Sends so many bytes, in one go or in pieces.
async fn send(
    bytes: u64,
    drip: Option<Drip>,
    tally: &Tally,
    writer: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let piece = [b'x'; PIECE];
    let mut left = bytes;
    while left > 0 {
        let mut in_piece = drip.map_or(left, |drip| drip.bytes.min(left));
        left -= in_piece;
        while in_piece > 0 {
            let count = in_piece.min(PIECE as u64);
            writer.write_all(&piece[..count as usize]).await?;
            add(&tally.body_bytes, count);
            in_piece -= count;
        }
        if let Some(drip) = drip.filter(|_| left > 0) {
            tokio::time::sleep(drip.every).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_known_by_its_beginning_and_ends_where_it_says() {
        assert!(may_be_http(b"GE"));
        assert!(may_be_http(b"GET / HTTP/1.1"));
        assert!(!may_be_http(b"PING\r\n"));
        assert_eq!(body_to_come(b"GET / HTTP/1.1\r\nhost: x\r\n"), None);
        assert_eq!(body_to_come(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"), Some(0));
        let post = b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab";
        assert_eq!(body_to_come(post), Some(3));
    }
}
