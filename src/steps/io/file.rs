//! `op = "read"` and `op = "write"`: calls to the file system on a thread.
//!
//! A step that is dropped takes nothing from its thread: the call that it is inside of goes on, and
//! after that it begins none. How far that can have brought a file is the step's effect.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write as _};
use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::drive::Cell;
use crate::event::{Effect, StepId};
use crate::steps::Scene;
use crate::steps::io::{Failed, Trace, on_thread};
use crate::workload::Write;

/// So much is read or written by one call.
const PIECE: usize = 256 * 1_024;

/// Reads the file to its end.
pub(super) async fn read(
    scene: &Scene,
    id: StepId,
    path: &Path,
    trace: &Arc<Trace>,
) -> Result<(), Failed> {
    let (path, trace) = (path.to_owned(), Arc::clone(trace));
    let call = move || {
        let mut piece = vec![0; PIECE];
        let mut file = File::open(path)?;
        while trace.begin(None) && file.read(&mut piece)? > 0 {}
        Ok(())
    };
    on_thread(scene, id, call).await?.map_err(|_: io::Error| Failed::READ)
}

/// Writes the file anew, from its beginning.
pub(super) async fn write(
    scene: &Scene,
    id: StepId,
    write: &Write,
    trace: &Arc<Trace>,
) -> Result<(), Failed> {
    trace.set_effect(Effect::None);
    let pen = Pen {
        cell: Arc::clone(&scene.cell),
        trace: Arc::clone(trace),
        write: write.clone(),
        done: 0,
        whole: 1 + write.size + u64::from(write.sync),
    };
    on_thread(scene, id, move || pen.write()).await?.map_err(|_| Failed::WRITE)
}

/// Writes a file, part by part: it is emptied, each byte is written, and perhaps it is synced.
struct Pen {
    cell: Arc<Cell>,
    trace: Arc<Trace>,
    write: Write,
    done: u64,
    whole: u64,
}

impl Pen {
    fn write(mut self) -> io::Result<()> {
        let Some(file) = self.part(1, Self::open)? else { return Ok(()) };
        let mut file = file;
        let mut left = self.write.size;
        let piece = vec![b'x'; usize::try_from(left).unwrap_or(PIECE).min(PIECE)];
        while left > 0 {
            let count = left.min(PIECE as u64);
            let part = self.part(count, |_| file.write_all(&piece[..count as usize]))?;
            if part.is_none() {
                return Ok(());
            }
            left -= count;
        }
        if self.write.sync {
            self.part(1, |_| file.sync_all())?;
        }
        Ok(())
    }

    /// Does so many parts in one call; `None` if the step is over.
    fn part<T>(
        &mut self,
        count: u64,
        call: impl FnOnce(&Self) -> io::Result<T>,
    ) -> io::Result<Option<T>> {
        if !self.trace.begin(Some(effect(self.done, self.done + count, self.whole))) {
            return Ok(None);
        }
        let done = call(self)?;
        self.done += count;
        self.trace.begin(Some(effect(self.done, self.done, self.whole)));
        Ok(Some(done))
    }

    /// Opens the file, empty. One that was not there before is removed when the run is over.
    fn open(&self) -> io::Result<File> {
        let path = &self.write.path;
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(file) => {
                if !self.write.keep {
                    let written = &self.cell.shared().written;
                    written.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
                }
                Ok(file)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).truncate(true).open(path)
            }
            Err(error) => Err(error),
        }
    }
}

/// The effect of something of which `least` to `most` parts are done.
fn effect(least: u64, most: u64, whole: u64) -> Effect {
    let of = |parts| match parts {
        0 => Effect::None,
        parts if parts == whole => Effect::Complete,
        _ => Effect::Partial,
    };
    if of(least) == of(most) { of(least) } else { Effect::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_named_only_when_it_is_the_same_however_far_the_call_has_come() {
        let rows = [
            ((0, 0), Effect::None),
            ((0, 3), Effect::Unknown),
            ((3, 3), Effect::Partial),
            ((3, 9), Effect::Partial),
            ((3, 10), Effect::Unknown),
            ((10, 10), Effect::Complete),
        ];
        for ((least, most), expected) in rows {
            assert_eq!(effect(least, most, 10), expected, "{least} to {most} of 10");
        }
    }
}
