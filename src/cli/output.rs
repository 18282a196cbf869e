//! The way out: bytes leave through here, and nothing that is stuck can hold them up.
//!
//! What it promises:
//!
//! 1. Nothing goes through `std::io::stdout` or `stderr`, whose locks stuck work may hold. The
//!    descriptors are duplicated at the start, and the duplicates are written.
//! 2. A thread of its own writes to each, so that a reader who takes nothing holds that thread and
//!    never the program: after a patience without a byte taken the writing is given up.
//! 3. A report file is written whole or not at all, and an existing one survives any failure. What
//!    is no regular file (`/dev/null`, a pipe) is written in place, with the same patience.
//!
//! A kill in the middle can leave a `.deadline-run-*` file beside the report.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use deadline_run::report::words::reason;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

/// How long a reader of the report may take nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a reader of progress and messages may take nothing.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);
/// What a pipe that has any room takes at once.
const PIECE: usize = 4096;
/// Links that lead to one another are followed so far.
const MOST_LINKS: usize = 40;

/// Ends the program now. Threads that are stuck, and destructors, are left behind.
pub fn leave(status: u8) -> ! {
    // SAFETY: `_exit` takes a number, touches no memory of ours and does not return.
    unsafe { libc::_exit(i32::from(status)) }
}

/// Writes a line to stderr when there is no thread that could. A pipe that is ready takes so little at
/// once, and one that does not become ready gets nothing.
pub fn say_without_a_thread(line: &str) {
    let stderr = rustix::stdio::stderr();
    let patience = Timespec { tv_sec: SHORT_PATIENCE.as_secs() as i64, tv_nsec: 0 };
    let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut fds, Some(&patience)) == Ok(1) && fds[0].revents().contains(PollFlags::OUT) {
        let _ = rustix::io::write(stderr, line.as_bytes());
    }
}

/// The two ways to whoever started the program.
#[derive(Debug)]
pub struct Outlets {
    pub stdout: Outlet,
    /// Shared with the progress display.
    pub stderr: Arc<Outlet>,
}

impl Outlets {
    /// Duplicates stdout and stderr; to be called before anything else runs.
    pub fn open() -> io::Result<Self> {
        let duplicate = |fd: std::os::fd::BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, 3);
        Ok(Self {
            stdout: Outlet::new(duplicate(rustix::stdio::stdout())?, PATIENCE)?,
            stderr: Arc::new(Outlet::new(duplicate(rustix::stdio::stderr())?, SHORT_PATIENCE)?),
        })
    }

    /// Writes to stderr; there is nobody to tell when that fails.
    pub fn say(&self, text: &str) {
        let _ = self.stderr.write(text.as_bytes());
    }

    /// Writes an error message to stderr.
    pub fn complain(&self, message: &str) {
        self.say(&format!("error: {message}\n"));
    }
}

/// Whether text for this outlet should be coloured when nobody says.
pub fn wants_color(outlet: &Outlet) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    outlet.is_terminal()
        && set("NO_COLOR").is_none()
        && set("TERM").is_none_or(|term| term != "dumb")
}

/// Why bytes did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nobody is there to read.
    Closed,
    /// Somebody may be there, and took nothing for so long.
    Stalled(Duration),
    /// The system said no.
    Refused(Errno),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => out.write_str("nobody reads it any more"),
            Self::Stalled(patience) => {
                write!(out, "no byte was taken for {} s; gave up", patience.as_secs_f32())
            }
            Self::Refused(errno) => reason(&io::Error::from(*errno)).fmt(out),
        }
    }
}

/// A descriptor, and the thread that alone writes to it.
#[derive(Debug)]
pub struct Outlet {
    fd: Arc<OwnedFd>,
    /// Whoever holds this has the turn.
    orders: Mutex<Sender<Vec<u8>>>,
    state: Arc<(Mutex<State>, Condvar)>,
    patience: Duration,
}

/// How far the writing thread has got.
#[derive(Debug, Default)]
struct State {
    /// Bytes taken in all.
    taken: u64,
    /// Orders carried out in all.
    settled: u64,
    /// Final: nothing more is written after it.
    fault: Option<Fault>,
}

impl Outlet {
    /// An outlet to `fd`.
    pub fn new(fd: OwnedFd, patience: Duration) -> io::Result<Self> {
        let (orders, received) = channel();
        let fd = Arc::new(fd);
        let state = Arc::new((Mutex::default(), Condvar::new()));
        let writer = (Arc::clone(&fd), Arc::clone(&state));
        thread::Builder::new()
            .name("deadline-run-out".into())
            .spawn(move || carry_out(&received, &writer.0, &writer.1))?;
        Ok(Self { fd, orders: Mutex::new(orders), state, patience })
    }

    /// Writes all of it, or says why not; after a fault nothing is written any more.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Fault> {
        let turn = lock(&self.orders);
        let (state, moved) = &*self.state;
        let mut state = lock(state);
        if let Some(fault) = state.fault {
            return Err(fault);
        }
        let wanted = state.settled + 1;
        if turn.send(bytes.to_vec()).is_err() {
            return Err(Fault::Closed);
        }
        let mut seen = state.taken;
        let mut since = Instant::now();
        while state.settled < wanted && state.fault.is_none() {
            let left = self.patience.saturating_sub(since.elapsed());
            if left.is_zero() {
                state.fault = Some(Fault::Stalled(self.patience));
                break;
            }
            state = moved.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            if state.taken > seen {
                seen = state.taken;
                since = Instant::now();
            }
        }
        state.fault.map_or(Ok(()), Err)
    }

    /// Whether a terminal is at the other end.
    pub fn is_terminal(&self) -> bool {
        rustix::termios::isatty(&*self.fd)
    }

    /// The width of the terminal at the other end, in columns.
    pub fn width(&self) -> Option<u16> {
        let size = rustix::termios::tcgetwinsize(&*self.fd).ok()?;
        (size.ws_col > 0).then_some(size.ws_col)
    }
}

/// A panic while holding one of these locks leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writing thread: may be stuck in a write for good, and holds no lock while it is.
fn carry_out(orders: &Receiver<Vec<u8>>, fd: &OwnedFd, state: &(Mutex<State>, Condvar)) {
    let (state, moved) = state;
    // Asked now: a terminal that hung up does not know any more that it was one.
    let is_terminal = rustix::termios::isatty(fd);
    for order in orders {
        let written = write_out(fd, &order, PIECE, |taken| {
            lock(state).taken += taken;
            moved.notify_all();
        });
        if let Err(errno) = written {
            let fault = match errno {
                // A terminal that hung up answers EIO, a socket ECONNRESET.
                Errno::PIPE | Errno::CONNRESET => Fault::Closed,
                Errno::IO if is_terminal => Fault::Closed,
                errno => Fault::Refused(errno),
            };
            lock(state).fault.get_or_insert(fault);
            moved.notify_all();
            return;
        }
        lock(state).settled += 1;
        moved.notify_all();
    }
}

/// Writes all of `bytes`, at most `piece` at once, however long that takes; tells how much was taken.
pub(super) fn write_out(
    fd: &OwnedFd,
    bytes: &[u8],
    piece: usize,
    mut tell: impl FnMut(u64),
) -> Result<(), Errno> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match rustix::io::write(fd, &rest[..rest.len().min(piece)]) {
            Ok(taken) => {
                rest = &rest[taken..];
                tell(taken as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_for_room(fd),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Waits until a descriptor that does not block has room, or a while.
fn wait_for_room(fd: &OwnedFd) {
    let mut fds = [PollFd::new(fd, PollFlags::OUT)];
    let _ = poll(&mut fds, Some(&Timespec { tv_sec: 1, tv_nsec: 0 }));
}

/// A report or events file that cannot be written, with the reason.
#[derive(Debug)]
pub struct FileFault {
    what: &'static str,
    file: PathBuf,
    reason: String,
}

impl fmt::Display for FileFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} cannot be written: {}", self.what, self.file.display(), self.reason)
    }
}

/// Where a report is to go; looked at before anything runs, so that a typo costs no run.
#[derive(Debug)]
pub struct Target {
    /// `report` or `events`, as messages call it.
    what: &'static str,
    /// As the user named it.
    named: PathBuf,
    /// Links followed.
    file: PathBuf,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A new file takes its place.
    Replace,
    /// It is no regular file.
    InPlace,
}

impl Target {
    /// Finds out how the report `named` can be written, and that it probably can.
    pub fn find(named: &Path) -> Result<Self, FileFault> {
        Self::find_as("report", named)
    }

    /// The same for a file that messages call `what`.
    pub fn find_as(what: &'static str, named: &Path) -> Result<Self, FileFault> {
        let fault = |reason: String| FileFault { what, file: named.into(), reason };
        let system = |error: io::Error| fault(reason(&error));
        let file = follow(named).map_err(system)?;
        let way = match fs::metadata(&file) {
            Ok(meta) if meta.is_dir() => return Err(fault("it is a directory".into())),
            Ok(meta) if meta.file_type().is_socket() => {
                return Err(fault("it is a socket".into()));
            }
            Ok(meta) => {
                writable(&file).map_err(system)?;
                if meta.is_file() && !is_descriptor(named) { Way::Replace } else { Way::InPlace }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Way::Replace,
            Err(error) => return Err(system(error)),
        };
        if way == Way::Replace {
            let folder = folder(&file);
            if !folder.is_dir() {
                return Err(fault(format!("there is no directory {}", folder.display())));
            }
            // Asking for permission is not enough: a file system may be mounted read-only.
            beside(&file).map_err(|error| {
                fault(format!("directory {}: {}", folder.display(), reason(&error)))
            })?;
        }
        Ok(Self { what, named: named.into(), file, way })
    }

    /// Whether it would take the place of `other`, which exists.
    pub fn is(&self, other: &Path) -> bool {
        match (fs::metadata(&self.file), fs::metadata(other)) {
            (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
            _ => false,
        }
    }

    /// Where it lies, whatever way led there: two reports of one place would be one.
    pub fn place(&self) -> PathBuf {
        match (fs::canonicalize(folder(&self.file)), self.file.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => self.file.clone(),
        }
    }

    /// Writes it whole, or leaves what was there.
    pub fn write(&self, bytes: &[u8]) -> Result<(), FileFault> {
        self.write_within(bytes, PATIENCE)
    }

    /// Opens it to be written bit by bit, from its beginning; what is no regular file gets `patience` to
    /// have a reader.
    pub fn open_stream(&self, patience: Duration) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::APPEND
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        match self.way {
            Way::Replace => rustix::fs::open(&self.file, flags, Mode::from_raw_mode(0o666)),
            Way::InPlace => open_in_place(&self.file, patience),
        }
    }

    /// That it cannot be written, for this reason.
    pub fn fault(&self, reason: String) -> FileFault {
        FileFault { what: self.what, file: self.named.clone(), reason }
    }

    fn write_within(&self, bytes: &[u8], patience: Duration) -> Result<(), FileFault> {
        let fault = |reason| self.fault(reason);
        match self.way {
            Way::Replace => replace(&self.file, bytes).map_err(|error| fault(reason(&error))),
            Way::InPlace => {
                let fd = open_in_place(&self.file, patience)
                    .map_err(|errno| fault(Fault::Refused(errno).to_string()))?;
                let outlet = Outlet::new(fd, patience).map_err(|error| fault(reason(&error)))?;
                outlet.write(bytes).map_err(|stopped| fault(stopped.to_string()))
            }
        }
    }
}

/// A link into the descriptors of a process: what is there is in use under another name too.
fn is_descriptor(named: &Path) -> bool {
    named.starts_with("/dev/fd") || named.starts_with("/proc") || named.starts_with("/dev/stderr")
}

/// What symbolic links lead to, even if nothing is there yet.
fn follow(named: &Path) -> io::Result<PathBuf> {
    let mut file = named.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&file) {
            // A link under /proc stands for an open file, whatever its text says.
            Ok(meta) if meta.is_symlink() && !file.starts_with("/proc") => {
                file = folder(&file).join(fs::read_link(&file)?);
            }
            Ok(_) => return Ok(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(file),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn writable(file: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(file, Access::WRITE_OK)?)
}

/// A new file in the same directory, which goes away unless it is kept.
fn beside(file: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".deadline-run-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder(file))
}

fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut whole = beside(file)?;
    if let Ok(meta) = fs::symlink_metadata(file) {
        // Looked at again: it may have become a device or a link since the run began.
        if !meta.is_file() {
            return Err(io::Error::other("it is no regular file any more"));
        }
        // The owner stays too where we may say so; the mode comes last, for chown clears bits of it.
        let owner = rustix::fs::Uid::from_raw(meta.uid());
        let group = rustix::fs::Gid::from_raw(meta.gid());
        let _ = rustix::fs::fchown(whole.as_file().as_fd(), Some(owner), Some(group));
        whole.as_file().set_permissions(Permissions::from_mode(meta.mode() & 0o7777))?;
    }
    whole.write_all(bytes)?;
    match whole.as_file().sync_all() {
        // Some file systems have nothing to sync, and say so in this way.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
        _ => {}
    }
    whole.persist(file).map_err(|kept| kept.error)?;
    // The report is there; that its name also survives a power failure is worth a try.
    if let Ok(folder) = fs::File::open(folder(file)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Opens without blocking: a named pipe may not have a reader yet, and gets `patience` to have one.
fn open_in_place(file: &Path, patience: Duration) -> Result<OwnedFd, Errno> {
    // Appending matters only where the name is that of a descriptor which leads to a file.
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let since = Instant::now();
    loop {
        match rustix::fs::open(file, flags, Mode::empty()) {
            Err(Errno::NXIO) if since.elapsed() < patience => {
                thread::sleep(Duration::from_millis(20));
            }
            opened => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);

    fn pipe(patience: Duration) -> (OwnedFd, Outlet) {
        let (reader, writer) = io::pipe().unwrap();
        (reader.into(), Outlet::new(writer.into(), patience).unwrap())
    }

    fn device(name: &str) -> Outlet {
        let fd = rustix::fs::open(name, OFlags::WRONLY, Mode::empty()).unwrap();
        Outlet::new(fd, SHORT).unwrap()
    }

    fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
        let target = Target::find(file).map_err(|fault| fault.to_string())?;
        target.write_within(bytes, SHORT).map_err(|fault| fault.to_string())
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_written_arrives_in_order() {
        let (reader, outlet) = pipe(Duration::from_secs(10));
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            fs::File::from(reader).read_to_end(&mut all).unwrap();
            all
        });
        let long: Vec<u8> = (0..300_000u32).map(|place| (place % 251) as u8).collect();
        outlet.write(&long).unwrap();
        outlet.write(b"end").unwrap();
        drop(outlet);
        assert!(reading.join().unwrap() == [long.as_slice(), b"end"].concat());
    }

    #[test]
    fn a_closed_pipe_is_closed_and_not_refused() {
        let (reader, outlet) = pipe(SHORT);
        drop(reader);
        assert_eq!(outlet.write(b"x"), Err(Fault::Closed));
        assert_eq!(outlet.write(b"x"), Err(Fault::Closed));
    }

    #[test]
    fn a_full_device_is_refused_with_its_reason() {
        let fault = device("/dev/full").write(b"x").unwrap_err();
        assert_eq!(fault, Fault::Refused(Errno::NOSPC));
        assert_eq!(fault.to_string(), "No space left on device");
    }

    #[test]
    fn a_stalled_pipe_is_given_up() {
        let (_reader, outlet) = pipe(SHORT);
        assert_eq!(outlet.write(&vec![0; 1 << 20]), Err(Fault::Stalled(SHORT)));
        // What is stalled once costs no second patience.
        let since = Instant::now();
        assert_eq!(outlet.write(b"x"), Err(Fault::Stalled(SHORT)));
        assert!(since.elapsed() < SHORT);
    }

    #[test]
    fn a_slow_reader_is_not_a_stalled_one() {
        let (reader, outlet) = pipe(Duration::from_secs(1));
        // Takes twice the patience in all, and never as much between two bytes.
        let reading = thread::spawn(move || {
            let mut taken = 0;
            let mut piece = vec![0; 1 << 16];
            while let Ok(some @ 1..) = rustix::io::read(&reader, &mut piece) {
                taken += some;
                thread::sleep(Duration::from_millis(200));
            }
            taken
        });
        let bytes = vec![0; 10 << 16];
        assert_eq!(outlet.write(&bytes), Ok(()));
        drop(outlet);
        assert_eq!(reading.join().unwrap(), bytes.len());
    }

    #[test]
    fn a_report_is_replaced_whole_and_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let held = fs::File::open(&file).unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        // Whoever had it open still has the old one whole.
        assert_eq!(io::read_to_string(held).unwrap(), "old");
        assert_eq!(names(folder.path()), ["report.json"]);
    }

    #[test]
    fn a_report_survives_a_failed_write() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        fs::write(&file, "old").unwrap();
        let target = Target::find(&file).unwrap();
        // The way is blocked after it was looked at: a directory stands where the report was.
        fs::rename(&file, folder.path().join("kept")).unwrap();
        fs::create_dir(&file).unwrap();
        let message = target.write(b"new").unwrap_err().to_string();
        assert!(message.contains("report.json cannot be written: it is no regular"), "{message}");
        assert_eq!(names(folder.path()), ["kept", "report.json"]);
        assert_eq!(fs::read_to_string(folder.path().join("kept")).unwrap(), "old");
    }

    #[test]
    fn links_lead_to_the_file_that_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let there = folder.path().join("there");
        fs::create_dir(&there).unwrap();
        let link = folder.path().join("latest.json");
        std::os::unix::fs::symlink("there/first.json", &link).unwrap();
        // First into the void, then over what is there.
        for text in ["one", "two"] {
            write(&link, text.as_bytes()).unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(there.join("first.json")).unwrap(), text);
        }
        let circle = folder.path().join("circle");
        std::os::unix::fs::symlink("circle", &circle).unwrap();
        assert!(write(&circle, b"x").unwrap_err().contains("symbolic links"));
    }

    #[test]
    fn a_typo_is_found_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Target::find(&folder.path().join("no/report.json")).unwrap_err().to_string();
        assert!(missing.contains("there is no directory"), "{missing}");
        let directory = Target::find(folder.path()).unwrap_err().to_string();
        assert!(directory.contains("it is a directory"), "{directory}");
        assert!(Target::find(Path::new("/proc/report.json")).is_err());
    }

    #[test]
    fn looking_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("report.json");
        Target::find(&file).unwrap();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn what_is_no_regular_file_is_written_in_place() {
        write(Path::new("/dev/null"), b"x").unwrap();
        let full = write(Path::new("/dev/full"), b"x").unwrap_err();
        assert_eq!(full, "report /dev/full cannot be written: No space left on device");
        assert!(!fs::metadata("/dev/full").unwrap().is_file());
    }

    #[test]
    fn a_named_pipe_waits_for_its_reader_and_not_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        let nobody = write(&file, b"x").unwrap_err();
        assert!(nobody.contains("No such device or address"), "{nobody}");
        let target = Target::find(&file).unwrap();
        let reading = thread::spawn(move || fs::read_to_string(file).unwrap());
        target.write_within(b"whole", Duration::from_secs(10)).unwrap();
        assert_eq!(reading.join().unwrap(), "whole");
    }

    #[test]
    fn a_report_is_recognised_as_the_workload() {
        let folder = tempfile::tempdir().unwrap();
        let workload = folder.path().join("orders.toml");
        fs::write(&workload, "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&workload, &link).unwrap();
        assert!(Target::find(&link).unwrap().is(&workload));
        assert!(!Target::find(&folder.path().join("other")).unwrap().is(&workload));
    }
}
