//! `op = "tcp"`: connect, send, read, hold (Q11).

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::event::{Effect, StepId};
use crate::steps::Scene;
use crate::steps::io::line::{Line, PIECE, Patience, connect, read_off};
use crate::steps::io::{Failed, Trace};
use crate::workload::{ReadUntil, Tcp};

/// Has the connection that the step says.
pub(super) async fn converse(
    scene: &Scene,
    id: StepId,
    tcp: &Tcp,
    trace: &Arc<Trace>,
) -> Result<(), Failed> {
    trace.set_effect(Effect::None);
    let mut line = connect(scene, id, &tcp.connection, trace).await?;
    let mut rest = tcp.send.as_bytes();
    while !rest.is_empty() {
        let sent = poll_fn(|context| line.poll_send(context, rest)).await;
        rest = &rest[sent.map_err(|_| Failed::RESET)?..];
    }
    line.note_all_sent();
    let mut patience = Patience::new(scene, &tcp.connection, line.meter());
    match tcp.read {
        Some(ReadUntil::First) => {
            receive(&mut line, &mut patience).await?;
        }
        Some(ReadUntil::End) => while receive(&mut line, &mut patience).await? > 0 {},
        None => {}
    }
    if tcp.read.is_some() && read_off(&line.meter()).received == 0 {
        return Err(Failed::NO_ANSWER);
    }
    if let Some(hold) = tcp.hold {
        keep_open(&mut line, hold).await?;
    }
    if !tcp.send.is_empty() {
        trace.set_effect(Effect::Complete);
    }
    Ok(())
}

/// Reads some bytes, as long as there is patience; 0 is the end.
async fn receive(line: &mut Line, patience: &mut Patience<'_>) -> Result<usize, Failed> {
    poll_fn(|context| match poll_discard(line, context) {
        Poll::Pending => patience.poll(context).map_or(Poll::Pending, |why| Poll::Ready(Err(why))),
        received => received,
    })
    .await
}

/// Keeps the connection open for so long, or until the other side closes it.
async fn keep_open(line: &mut Line, hold: Duration) -> Result<(), Failed> {
    let mut over = pin!(tokio::time::sleep(hold));
    poll_fn(|context| {
        loop {
            match poll_discard(line, context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(failed)) => return Poll::Ready(Err(failed)),
                Poll::Pending => return over.as_mut().poll(context).map(Ok),
            }
        }
    })
    .await
}

fn poll_discard(line: &mut Line, context: &mut Context<'_>) -> Poll<Result<usize, Failed>> {
    let received = ready!(line.poll_receive(context, &mut [0; PIECE]));
    Poll::Ready(received.map_err(|_| Failed::RESET))
}
