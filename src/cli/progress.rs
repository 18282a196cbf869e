//! Shows how far a run has got, on stderr.
//!
//! On a terminal a bar, elsewhere a line now and then, nothing for a run that is over at once. It
//! lives on a thread of its own and writes through an [`Outlet`]; a terminal that takes nothing
//! holds up that thread, and neither the run nor the end of the program.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use deadline_run::progress::Progress;
use deadline_run::report::words::span;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::output::Outlet;

/// How long a run may take before there is anything to see of a bar.
const BAR_AFTER: Duration = Duration::from_millis(500);
const BAR_EVERY: Duration = Duration::from_millis(200);
const DRAWN_PER_SECOND: u8 = 10;
const LINE_AFTER: Duration = Duration::from_secs(5);
const LINE_EVERY: Duration = Duration::from_secs(30);
/// How long the end of a run waits for the last drawing.
const GOODBYE: Duration = Duration::from_millis(300);

/// How to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Bar,
    Lines,
}

/// A display that is going on.
#[derive(Debug)]
pub struct Watch {
    stop: Sender<()>,
    ended: Receiver<()>,
}

impl Watch {
    /// Begins to show `progress`; `None` when there is no thread to be had, which is no reason not to run.
    pub fn start(progress: Arc<Progress>, style: Style, outlet: Arc<Outlet>) -> Option<Self> {
        let (stop, stopped) = channel();
        let (end, ended) = channel();
        let show = move || {
            match style {
                Style::Bar => show_bar(&progress, outlet, &stopped),
                Style::Lines => show_lines(&progress, &outlet, &stopped, LINE_AFTER, LINE_EVERY),
            }
            let _ = end.send(());
        };
        thread::Builder::new().name("deadline-run-progress".into()).spawn(show).ok()?;
        Some(Self { stop, ended })
    }

    /// Takes it away. Does not wait long: the display may be stuck.
    pub fn stop(self) {
        drop(self.stop);
        let _ = self.ended.recv_timeout(GOODBYE);
    }
}

/// Waits for the end; whether it has come.
fn is_over(stopped: &Receiver<()>, within: Duration) -> bool {
    stopped.recv_timeout(within) != Err(RecvTimeoutError::Timeout)
}

fn show_bar(progress: &Progress, outlet: Arc<Outlet>, stopped: &Receiver<()>) {
    let began = Instant::now();
    if is_over(stopped, BAR_AFTER) {
        return;
    }
    let screen = Screen { outlet, pending: Mutex::default() };
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(screen), DRAWN_PER_SECOND);
    let style = ProgressStyle::with_template("{elapsed} [{bar:24}] {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    let bar = ProgressBar::with_draw_target(Some(progress.total.load(Relaxed)), target)
        .with_style(style)
        .with_position(progress.over.load(Relaxed))
        .with_message(describe(progress))
        .with_elapsed(began.elapsed());
    loop {
        bar.update(|state| {
            state.set_len(progress.total.load(Relaxed));
            state.set_pos(progress.over.load(Relaxed));
        });
        bar.set_message(describe(progress));
        if is_over(stopped, BAR_EVERY) {
            bar.finish_and_clear();
            return;
        }
    }
}

fn show_lines(
    progress: &Progress,
    outlet: &Outlet,
    stopped: &Receiver<()>,
    after: Duration,
    every: Duration,
) {
    let began = Instant::now();
    let mut wait = after;
    while !is_over(stopped, wait) {
        let elapsed = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let line = format!("after {}: {}\n", span(elapsed), describe(progress));
        if outlet.write(line.as_bytes()).is_err() {
            return;
        }
        wait = every;
    }
}

/// `40 of 100 deliveries over, 8 in flight, 3 interrupted, 1 overdue`
fn describe(progress: &Progress) -> String {
    let mut text = format!(
        "{} of {} deliveries over, {} in flight",
        progress.over.load(Relaxed),
        progress.total.load(Relaxed),
        progress.in_flight.load(Relaxed)
    );
    for (amount, word) in [(&progress.interrupted, "interrupted"), (&progress.overdue, "overdue")] {
        let amount = amount.load(Relaxed);
        if amount > 0 {
            text += &format!(", {amount} {word}");
        }
    }
    text
}

/// A terminal behind an outlet: what is drawn is kept until it is flushed as one piece.
#[derive(Debug)]
struct Screen {
    outlet: Arc<Outlet>,
    pending: Mutex<String>,
}

impl Screen {
    fn keep(&self, text: &str) -> io::Result<()> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
        Ok(())
    }

    fn move_by(&self, places: usize, direction: char) -> io::Result<()> {
        match places {
            0 => Ok(()),
            places => self.keep(&format!("\u{1b}[{places}{direction}")),
        }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        self.outlet.width().unwrap_or(80)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.move_by(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.move_by(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.move_by(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.move_by(columns, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.keep(text)?;
        self.keep("\r\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.keep(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.keep("\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let text =
            std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        match self.outlet.write(text.as_bytes()) {
            Ok(()) => Ok(()),
            Err(fault) => Err(io::Error::other(fault.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_shows_nothing() {
        for style in [Style::Bar, Style::Lines] {
            let (reader, writer) = io::pipe().unwrap();
            let outlet = Arc::new(Outlet::new(writer.into(), Duration::from_secs(1)).unwrap());
            Watch::start(Arc::default(), style, outlet).unwrap().stop();
            // The display has dropped its outlet by now, so that the pipe comes to an end.
            let mut some = [0; 1];
            assert_eq!(rustix::io::read(&reader, &mut some), Ok(0), "{style:?}");
        }
    }

    #[test]
    fn a_line_names_what_went_wrong_so_far() {
        let progress = Progress::default();
        progress.total.store(100, Relaxed);
        progress.over.store(40, Relaxed);
        progress.in_flight.store(8, Relaxed);
        assert_eq!(describe(&progress), "40 of 100 deliveries over, 8 in flight");
        progress.overdue.store(1, Relaxed);
        assert_eq!(describe(&progress), "40 of 100 deliveries over, 8 in flight, 1 overdue");
    }

    #[test]
    fn a_stalled_terminal_does_not_hold_the_end() {
        let (_reader, writer) = io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK).unwrap();
        while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {}
        rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::empty()).unwrap();
        let outlet = Arc::new(Outlet::new(writer.into(), Duration::from_secs(60)).unwrap());
        let watch = Watch::start(Arc::default(), Style::Bar, outlet).unwrap();
        // Long enough for the bar to be drawn into a pipe that takes nothing.
        thread::sleep(BAR_AFTER + BAR_EVERY);
        let since = Instant::now();
        watch.stop();
        assert!(since.elapsed() < Duration::from_secs(5));
    }
}
