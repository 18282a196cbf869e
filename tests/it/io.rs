//! Sockets and files in a real run, held against the kernel and against the other side.
//!
//! On the real clock because descriptors, pipes and look-ups are the kernel's. Nothing here depends on
//! how long something takes: each test waits for the end of a run.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use deadline_run::event::{Closer, Effect};
use deadline_run::obligation::{Obligation, ObligationState};
use deadline_run::report::{DeliveryResult, Outcome, Report};

use crate::cases::{MACHINE, run};

/// Runs the text as a workload of that folder.
fn run_in(folder: &Path, text: &str) -> Report {
    let file = folder.join("io.toml");
    fs::write(&file, text).expect("it can be written");
    let (report, disagreements) = run(&file);
    assert!(disagreements.is_empty(), "{disagreements:?}");
    report
}

fn run_text(text: &str) -> Report {
    run_in(tempfile::tempdir().expect("a folder").path(), text)
}

/// The sockets that this process has.
fn sockets() -> usize {
    let descriptors = fs::read_dir("/proc/self/fd").expect("the kernel tells");
    descriptors
        .filter_map(|entry| fs::read_link(entry.expect("an entry").path()).ok())
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

/// One peer for each way to misbehave, and a delivery for each draw of one. `IO_DELIVERIES` makes the
/// run longer.
#[test]
fn whatever_peers_do_every_delivery_has_one_result_and_no_socket_is_left() {
    let _alone = MACHINE.lock();
    let wanted = std::env::var("IO_DELIVERIES").ok().and_then(|wanted| wanted.parse().ok());
    let deliveries: u64 = wanted.unwrap_or(1_000);
    let text = format!(
        r#"
        profile = "custom"
        observe = "10s"
        [budget]
        total = "2s"
        [load]
        deliveries = {deliveries}
        concurrency = 200
        [peers.fine]
        body = 3000
        [peers.gone]
        refuse = true
        [peers.deaf]
        accept_after = "60s"
        [peers.late]
        accept_after = "10ms"
        [peers.silent]
        answer_after = "60s"
        [peers.stalling]
        body = 100
        drip = {{ bytes = 10, every = "1ms", stop_after = 50 }}
        [peers.dripping]
        body = 100000
        drip = {{ bytes = 1, every = "5ms" }}
        [peers.rude]
        body = 100000
        reset_after = 50000
        [peers.short]
        body = 1000
        close_after = 100
        [peers.mute]
        close_after = 0
        [peers.broken]
        status = 500
        [[handler]]
        kind = "choice"
        weights = [10, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 0.5]
        steps = [
          {{ kind = "io", op = "http", url = "peer:fine", body = "hello" }},
          {{ kind = "io", op = "http", url = "peer:gone" }},
          {{ kind = "io", op = "http", url = "peer:deaf", connect_timeout = "30ms" }},
          {{ kind = "io", op = "http", url = "peer:late" }},
          {{ kind = "io", op = "http", url = "peer:silent", read_timeout = "30ms" }},
          {{ kind = "io", op = "http", url = "peer:stalling", idle_timeout = "30ms" }},
          {{ kind = "io", op = "http", url = "peer:dripping", idle_timeout = "1s", timeout = "60ms" }},
          {{ kind = "io", op = "http", url = "peer:rude" }},
          {{ kind = "io", op = "http", url = "peer:short" }},
          {{ kind = "io", op = "http", url = "peer:mute" }},
          {{ kind = "io", op = "http", url = "peer:broken" }},
          {{ name = "cut", kind = "io", op = "http", url = "peer:silent" }},
        ]
        "#
    );
    let before = sockets();
    let report = run_text(&text);
    assert_eq!(sockets(), before, "every socket of the run is gone");
    let totals = &report.totals;
    assert_eq!(totals.deliveries, deliveries);
    let results = [totals.success, totals.failure, totals.interrupted];
    assert_eq!(results.iter().sum::<u64>(), deliveries, "{totals:?}");
    assert_eq!(totals.proven, deliveries, "{:?}", report.gaps);
    let mut connections = 0;
    for delivery in &report.deliveries {
        let mut ran = delivery.steps.iter().filter(|step| step.name != "handler-1");
        let ran = ran.find(|step| step.outcome != Outcome::Skipped).expect("one was chosen");
        assert_eq!(delivery.result == DeliveryResult::Interrupted, ran.name == "cut");
        let owed = delivery.obligations.iter().filter(|row| row.kind == Obligation::Connection);
        for row in owed.clone() {
            assert_eq!(row.state, ObligationState::Proven);
            assert_eq!(row.step.as_deref(), Some(&*ran.name));
        }
        assert_eq!(owed.count(), 1, "{delivery:?}");
        connections += u64::from(ran.code.as_deref() != Some("CONNECTION_REFUSED"));
    }
    let codes: Vec<_> = report.codes.keys().map(String::as_str).collect();
    let expected = [
        "CONNECTION_REFUSED",
        "CONNECTION_RESET",
        "HTTP_STATUS",
        "NO_ANSWER",
        "TIMEOUT_CONNECT",
        "TIMEOUT_IDLE",
        "TIMEOUT_READ",
        "TIMEOUT_TOTAL",
        "TRUNCATED",
    ];
    assert_eq!(codes, expected);
    let accepted: u64 = report.peers.iter().map(|peer| peer.connections).sum();
    assert_eq!(accepted, connections, "each connection has another side");
    let open: u64 = report.peers.iter().map(|peer| peer.open).sum();
    assert_eq!(open, 0, "the other side has seen the end of each: {:?}", report.peers);
    if wanted.is_some() {
        println!(
            "{totals:?}\n{:?}\n{:?}\n{:?}",
            report.codes, report.peers, report.delivery_time_us
        );
    }
}

fn make_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo runs").success());
}

#[test]
fn a_read_that_hangs_is_a_thread_that_outlives_its_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("pipe");
    make_fifo(&fifo);
    let text = r#"
        observe = "50ms"
        [budget]
        total = "200ms"
        [[handler]]
        name = "load"
        kind = "io"
        op = "read"
        path = "pipe"
    "#;
    let report = run_in(folder.path(), text);
    // Whoever waits to open it may go on now.
    drop(fs::OpenOptions::new().read(true).write(true).open(&fifo));
    let delivery = &report.deliveries[0];
    let step = &delivery.steps[0];
    assert_eq!((step.outcome, step.effect), (Outcome::Dropped, None));
    let owed = |kind| delivery.obligations.iter().find(|row| row.kind == kind);
    let thread = owed(Obligation::Thread).expect("a thread reads");
    assert_eq!(thread.state, ObligationState::Unproven);
    assert_eq!(thread.step.as_deref(), Some("load"));
    let execution = owed(Obligation::Execution).expect("there is always one");
    assert_eq!(execution.state, ObligationState::Proven, "the frame went all the same");
}

#[test]
fn a_write_that_is_cut_in_the_middle_says_how_far_it_can_have_come() {
    // What fits into the pipe is written, and nobody makes room. The first size takes more than one
    // call; of the second the one call that is being made can be all.
    for (size, effect) in [("4MiB", Effect::Partial), ("100KiB", Effect::Unknown)] {
        let folder = tempfile::tempdir().expect("a folder");
        let fifo = folder.path().join("pipe");
        make_fifo(&fifo);
        let both_ends = fs::OpenOptions::new().read(true).write(true).open(&fifo);
        let both_ends = both_ends.expect("it opens");
        let text = format!(
            r#"
            observe = "50ms"
            [budget]
            total = "200ms"
            [[handler]]
            name = "save"
            kind = "io"
            op = "write"
            path = "pipe"
            size = "{size}"
            "#
        );
        let report = run_in(folder.path(), &text);
        let step = &report.deliveries[0].steps[0];
        assert_eq!((step.outcome, step.effect), (Outcome::Dropped, Some(effect)), "{size}");
        let partial = u64::from(effect == Effect::Partial);
        assert_eq!((report.totals.partial_effects, report.totals.unproven), (partial, 1));
        drop(both_ends);
    }
}

#[test]
fn only_what_a_step_made_is_removed_and_only_if_it_is_not_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("old"), "of somebody else").expect("it can be written");
    let text = r#"
        [budget]
        total = "10s"
        [[handler]]
        kind = "sequence"
        steps = [
          { kind = "io", op = "write", path = "made" },
          { kind = "io", op = "write", path = "kept", size = "1000B", keep = true },
          { kind = "io", op = "write", path = "old", size = "7B" },
        ]
    "#;
    let report = run_in(folder.path(), text);
    assert_eq!(report.totals.success, 1);
    let read = |name: &str| fs::read(folder.path().join(name)).ok().map(|bytes| bytes.len());
    assert_eq!([read("made"), read("kept"), read("old")], [None, Some(1_000), Some(7)]);
}

#[test]
fn a_name_is_looked_up_on_a_thread_before_the_connection() {
    // Sockets of this process are counted elsewhere.
    let _alone = MACHINE.lock();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let other_side = std::thread::spawn(move || {
        let (first, _) = listener.accept().expect("somebody connects");
        drop(first);
    });
    let text = format!(
        r#"
        [budget]
        total = "20s"
        [[handler]]
        name = "call"
        kind = "io"
        op = "tcp"
        url = "tcp://localhost:{port}"
        hold = "60s"
        "#
    );
    let report = run_text(&text);
    other_side.join().expect("it ends");
    let delivery = &report.deliveries[0];
    assert_eq!(delivery.result, DeliveryResult::Success, "{delivery:?}");
    assert_eq!(delivery.steps[0].closed_by, Some(Closer::Peer));
    let kinds: Vec<_> = delivery.obligations.iter().map(|row| row.kind).collect();
    assert_eq!(kinds[..2], [Obligation::Execution, Obligation::Thread], "the look-up comes first");
    assert!(kinds[2..].contains(&Obligation::Connection));
}

/// Name, code, effect and closer of a step.
type Words = (String, Option<String>, Option<Effect>, Option<Closer>);

/// The words of each step of a case.
fn words_of(case: &str) -> Vec<Words> {
    let _alone = MACHINE.lock();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(case);
    let (report, disagreements) = run(&file.with_extension("toml"));
    assert!(disagreements.is_empty(), "{disagreements:?}");
    let steps = report.deliveries.into_iter().next().expect("there is one").steps.into_iter();
    steps.skip(1).map(|step| (step.name, step.code, step.effect, step.closed_by)).collect()
}

#[track_caller]
fn check_words(case: &str, expected: &[(&str, &str, Effect, Option<Closer>)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(name, code, effect, closer)| {
            let code = (!code.is_empty()).then(|| (*code).to_owned());
            ((*name).to_owned(), code, Some(*effect), *closer)
        })
        .collect();
    assert_eq!(words_of(case), expected);
}

#[test]
fn each_way_in_which_http_fails_has_its_own_word_and_effect() {
    use Closer::{Peer, Us};
    let expected = [
        ("fine", "", Effect::Complete, Some(Us)),
        ("patient", "", Effect::Complete, Some(Us)),
        ("gone", "CONNECTION_REFUSED", Effect::None, None),
        ("deaf", "TIMEOUT_CONNECT", Effect::None, None),
        ("silent", "TIMEOUT_READ", Effect::Unknown, Some(Us)),
        ("stalling", "TIMEOUT_IDLE", Effect::Unknown, Some(Us)),
        ("rude", "CONNECTION_RESET", Effect::Unknown, Some(Peer)),
        ("short", "TRUNCATED", Effect::Unknown, Some(Peer)),
        ("mute", "NO_ANSWER", Effect::Unknown, Some(Peer)),
        ("broken", "HTTP_STATUS", Effect::Complete, Some(Us)),
        ("wanted", "", Effect::Complete, Some(Us)),
        ("total", "TIMEOUT_TOTAL", Effect::Unknown, Some(Us)),
    ];
    check_words("http-in-every-way-fails", &expected);
}

#[test]
fn a_plain_connection_says_who_closed_it() {
    use Closer::{Peer, Us};
    let expected = [
        ("send", "", Effect::Complete, Some(Us)),
        ("first", "", Effect::None, Some(Us)),
        ("end", "", Effect::Complete, Some(Peer)),
        ("left", "", Effect::None, Some(Peer)),
        ("half-open", "", Effect::Complete, Some(Us)),
        ("reset", "CONNECTION_RESET", Effect::None, Some(Peer)),
        ("mute", "NO_ANSWER", Effect::Unknown, Some(Peer)),
        ("silent", "TIMEOUT_READ", Effect::None, Some(Us)),
    ];
    check_words("tcp-reads-holds-and-is-left", &expected);
}
