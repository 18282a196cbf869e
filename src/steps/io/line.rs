//! One connection, from before its descriptor exists until after it is gone.
//!
//! Whoever holds the [`Line`] holds the descriptor, and nobody else does: dropping it closes the
//! descriptor first and says so then. On Linux `close` lets go of a descriptor whatever it answers,
//! so the end of that drop is the receipt.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::ReadBufCursor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::event::{Closer, Effect, Opening, StepId};
use crate::obligation::{Evidence, Obligation};
use crate::steps::Scene;
use crate::steps::io::{Failed, Trace, on_thread};
use crate::steps::limit::{self, Limit};
use crate::timeline::Moment;
use crate::workload::{Address, Connection};

/// So much is read at once.
pub(super) const PIECE: usize = 8_192;

/// How the other side ended the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its side of the stream is over.
    Closed,
    /// It reset the connection, or had closed it when we sent.
    Reset,
}

/// What has gone over a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub sent: u64,
    /// Whether that is all there is to send.
    pub is_sent: bool,
    pub received: u64,
    pub last_received: Moment,
    pub end: Option<End>,
}

/// What has gone over a connection, for those who wait beside it.
pub(super) type Meter = Arc<Mutex<Passed>>;

pub(super) fn read_off(meter: &Meter) -> Passed {
    *lock(meter)
}

fn lock(meter: &Meter) -> MutexGuard<'_, Passed> {
    meter.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Held {
    Connecting(Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>),
    Connected(TcpStream),
    Gone,
}

/// A connection, and the obligation that it is.
pub(super) struct Line {
    scene: Scene,
    opening: Opening,
    held: Held,
    meter: Meter,
    trace: Arc<Trace>,
}

/// Connects, within the `connect_timeout`.
pub(super) async fn connect(
    scene: &Scene,
    id: StepId,
    connection: &Connection,
    trace: &Arc<Trace>,
) -> Result<Line, Failed> {
    let limit = connection.connect_timeout;
    let mut limit = limit.and_then(|span| Limit::new(scene, scene.now(), span));
    let mut connecting = pin!(connect_to(scene, id, &connection.to, trace));
    poll_fn(|context| match connecting.as_mut().poll(context) {
        Poll::Pending if limit::is_over(&mut limit, scene, context) => {
            Poll::Ready(Err(Failed::TIMEOUT_CONNECT))
        }
        polled => polled,
    })
    .await
}

async fn connect_to(
    scene: &Scene,
    id: StepId,
    to: &Address,
    trace: &Arc<Trace>,
) -> Result<Line, Failed> {
    let (addresses, accepted_after) = match to {
        Address::Peer(place) => {
            let shared = scene.cell.shared();
            let speaks = super::speaks_first(scene.workload().step(id));
            let accepted_after = shared.workload.peers[*place].accept_after;
            (vec![shared.peers[*place].address(speaks)], accepted_after)
        }
        Address::Host { host, port } => match host.parse::<IpAddr>() {
            Ok(address) => (vec![SocketAddr::new(address, *port)], Duration::ZERO),
            Err(_) => (look_up(scene, id, host.clone(), *port).await?, Duration::ZERO),
        },
    };
    let mut failed = Failed::LOOKUP;
    for address in addresses {
        match Line::open(scene, id, address, trace).await {
            Ok(line) => {
                // The kernel shakes hands for whoever listens. A connection that the peer has not
                // accepted yet counts as none, as if its backlog were full.
                if !accepted_after.is_zero() {
                    tokio::time::sleep(accepted_after).await;
                }
                trace.set_closed_by(Closer::Us);
                return Ok(line);
            }
            Err(other) => failed = other,
        }
    }
    Err(failed)
}

/// Looks a name up as most programs do: on a thread, by a call that nothing cuts short.
async fn look_up(
    scene: &Scene,
    id: StepId,
    host: String,
    port: u16,
) -> Result<Vec<SocketAddr>, Failed> {
    let call = move || (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
    on_thread(scene, id, call).await?.map_err(|_: io::Error| Failed::LOOKUP)
}

impl Line {
    async fn open(
        scene: &Scene,
        id: StepId,
        address: SocketAddr,
        trace: &Arc<Trace>,
    ) -> Result<Self, Failed> {
        let passed = Passed {
            sent: 0,
            is_sent: false,
            received: 0,
            last_received: Moment::START,
            end: None,
        };
        let mut line = Self {
            scene: scene.clone(),
            opening: scene.cell.open(Obligation::Connection, id, None),
            held: Held::Connecting(Box::pin(TcpStream::connect(address))),
            meter: Arc::new(Mutex::new(passed)),
            trace: Arc::clone(trace),
        };
        poll_fn(|context| line.poll_connect(context)).await.map_err(|error| {
            match error.kind() {
                ErrorKind::ConnectionRefused => Failed::REFUSED,
                ErrorKind::ConnectionReset => Failed::RESET,
                ErrorKind::TimedOut => Failed::TIMEOUT_CONNECT,
                _ => Failed::CONNECT,
            }
        })?;
        Ok(line)
    }

    fn poll_connect(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Held::Connecting(connecting) = &mut self.held else { return Poll::Ready(Ok(())) };
        let stream = ready!(connecting.as_mut().poll(context))?;
        // What is small goes out at once.
        stream.set_nodelay(true)?;
        self.held = Held::Connected(stream);
        Poll::Ready(Ok(()))
    }

    /// What goes over it, to be read off while somebody else holds the line.
    pub(super) fn meter(&self) -> Meter {
        Arc::clone(&self.meter)
    }

    /// Reads some bytes; 0 is the end of the other side.
    pub(super) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(room);
        let Held::Connected(stream) = &mut self.held else { return Poll::Pending };
        match ready!(Pin::new(stream).poll_read(context, &mut room)) {
            Ok(()) if room.filled().is_empty() => self.note_end(End::Closed),
            Ok(()) => {
                let mut passed = lock(&self.meter);
                passed.received += room.filled().len() as u64;
                passed.last_received = self.scene.now();
            }
            Err(error) => {
                self.note_end(End::Reset);
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(room.filled().len()))
    }

    /// Sends some of these bytes.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Held::Connected(stream) = &mut self.held else { return Poll::Pending };
        let sent = ready!(Pin::new(stream).poll_write(context, bytes));
        match &sent {
            Ok(count) => {
                let mut passed = lock(&self.meter);
                passed.sent += *count as u64;
                passed.is_sent = false;
                drop(passed);
                self.trace.set_effect(Effect::Partial);
            }
            Err(_) => self.note_end(End::Reset),
        }
        Poll::Ready(sent)
    }

    /// Notes that nothing more is to be sent: what comes of it is the other side's to say.
    pub(super) fn note_all_sent(&mut self) {
        let mut passed = lock(&self.meter);
        if !std::mem::replace(&mut passed.is_sent, true) && passed.sent > 0 {
            self.trace.set_effect(Effect::Unknown);
        }
    }

    fn note_end(&mut self, end: End) {
        lock(&self.meter).end.get_or_insert(end);
        self.trace.set_closed_by(Closer::Peer);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.held = Held::Gone;
        self.scene.cell.close(self.opening, Evidence::ConnectionClosed, None);
    }
}

impl hyper::rt::Read for Line {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut room: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = [0; PIECE];
        let most = room.remaining().min(PIECE);
        let count = ready!(self.get_mut().poll_receive(context, &mut piece[..most]))?;
        room.put_slice(&piece[..count]);
        Poll::Ready(Ok(()))
    }
}

impl hyper::rt::Write for Line {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(context, bytes)
    }

    /// Comes when all that was buffered has been written; a request is buffered whole.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = self.get_mut();
        if lock(&line.meter).sent > 0 {
            line.note_all_sent();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().held {
            Held::Connected(stream) => Pin::new(stream).poll_shutdown(context),
            Held::Connecting(_) | Held::Gone => Poll::Ready(Ok(())),
        }
    }
}

/// What a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    Nothing,
    FirstByte,
    NextByte,
}

/// How long a step goes on waiting for the other side: its `read_timeout`, and then its
/// `idle_timeout`.
pub(super) struct Patience<'a> {
    scene: &'a Scene,
    connection: &'a Connection,
    meter: Meter,
    waits: For,
    limit: Option<Limit>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(scene: &'a Scene, connection: &'a Connection, meter: Meter) -> Self {
        Self { scene, connection, meter, waits: For::Nothing, limit: None }
    }

    /// Why the step waits no longer, once that is so. Asked after each poll that brought nothing.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Option<Failed> {
        let passed = read_off(&self.meter);
        let now = self.scene.now();
        let (waits, span, failed) = match passed {
            Passed { received: 1.., .. } => {
                (For::NextByte, self.connection.idle_timeout, Failed::TIMEOUT_IDLE)
            }
            Passed { is_sent: true, .. } => {
                (For::FirstByte, self.connection.read_timeout, Failed::TIMEOUT_READ)
            }
            _ => (For::Nothing, None, Failed::TIMEOUT_READ),
        };
        let span = span?;
        if self.waits != waits {
            self.waits = waits;
            self.limit = Limit::new(self.scene, now, span);
        }
        while limit::is_over(&mut self.limit, self.scene, context) {
            // Bytes that came meanwhile move the end on.
            let due = passed.last_received + span;
            if waits != For::NextByte || due <= now {
                return Some(failed);
            }
            self.limit = Limit::new(self.scene, now, due.since(now));
        }
        None
    }
}
