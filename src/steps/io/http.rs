//! `op = "http"`: one request on a connection of its own (P12).
//!
//! hyper speaks the protocol and owns the [`Line`](super::line::Line) while it does; it is polled here
//! and nowhere else, so the connection goes with the frame of the step.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::{Request, StatusCode};

use crate::event::{Effect, StepId};
use crate::steps::Scene;
use crate::steps::io::line::{End, Meter, Patience, connect, read_off};
use crate::steps::io::{Failed, Trace};
use crate::workload::Http;

/// Asks, and reads the whole answer.
pub(super) async fn ask(
    scene: &Scene,
    id: StepId,
    http: &Http,
    trace: &Arc<Trace>,
) -> Result<(), Failed> {
    trace.set_effect(Effect::None);
    let line = connect(scene, id, &http.connection, trace).await?;
    let meter = line.meter();
    let mut patience = Patience::new(scene, &http.connection, Arc::clone(&meter));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(line).await.map_err(|_| failed(&meter))?;
    let mut connection = pin!(connection);
    let mut is_connected = true;
    let mut answer = pin!(sender.send_request(request(http)?));
    let mut body: Option<(StatusCode, Incoming)> = None;
    let status = poll_fn(|context| {
        loop {
            if is_connected {
                is_connected = connection.as_mut().poll(context).is_pending();
            }
            match &mut body {
                None => match answer.as_mut().poll(context) {
                    Poll::Ready(Ok(answer)) => {
                        body = Some((answer.status(), answer.into_body()));
                        continue;
                    }
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(failed(&meter))),
                    Poll::Pending => {}
                },
                Some((status, body)) => match Pin::new(body).poll_frame(context) {
                    Poll::Ready(Some(Ok(_))) => continue,
                    Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(failed(&meter))),
                    Poll::Ready(None) => return Poll::Ready(Ok(*status)),
                    Poll::Pending => {}
                },
            }
            return patience.poll(context).map_or(Poll::Pending, |why| Poll::Ready(Err(why)));
        }
    })
    .await?;
    trace.set_effect(Effect::Complete);
    let is_expected = match http.expect_status {
        Some(expected) => status.as_u16() == expected,
        None => status.is_success(),
    };
    if is_expected { Ok(()) } else { Err(Failed::HTTP_STATUS) }
}

fn request(http: &Http) -> Result<Request<Full<Bytes>>, Failed> {
    Request::builder()
        .method(http.method.as_str())
        .uri(&http.target)
        .header("host", &http.authority)
        .body(Full::new(Bytes::copy_from_slice(http.body.as_bytes())))
        .map_err(|_| Failed::NOT_HTTP)
}

/// Why the exchange came to nothing: what the connection saw, and not what hyper makes of it.
fn failed(meter: &Meter) -> Failed {
    let passed = read_off(meter);
    match passed.end {
        Some(End::Reset) => Failed::RESET,
        Some(End::Closed) if passed.received == 0 => Failed::NO_ANSWER,
        Some(End::Closed) => Failed::TRUNCATED,
        None => Failed::NOT_HTTP,
    }
}
