//! Workload files that must be refused, and how; and what those that are sound become.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use deadline_run::event::{Code, StepId};

use deadline_run::obligation::{Obligation, ObligationState};
use deadline_run::timeline::Budget;
use deadline_run::workload::fault::Faults;
use deadline_run::workload::keys::{self, Key, Kinds, Measure, Section, Shape, Since};
use deadline_run::workload::{
    Address, BlockingOp, Bound, Comparison, CpuAmount, CpuPlace, Destructor, DestructorWork, Drip,
    ExpectGap, Fail, Load, Middleware, OnSignal, Pool, Profile, ReadUntil, Runtime,
    SettlementPolicy, ShutdownPlan, Span, Stage, Step, Wait, Work, Workload, file,
};
use proptest::prelude::*;

/// A handler that makes any file complete; it comes last, so that it moves no line.
const HANDLER: &str = "\n[[handler]]\nkind = 'cpu'\nfor = '1ms'\n";

fn parse(text: &str, settings: &[&str]) -> Result<Workload, Faults> {
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    file::parse(Path::new("w.toml"), text, &settings)
}

/// The text is refused with so many faults, and what is shown has all the fragments, in order.
fn check_refused(text: &str, settings: &[&str], count: usize, fragments: &[&str]) {
    let faults = parse(text, settings).expect_err(&format!("refused:\n{text}"));
    let shown = faults.to_string();
    let mut rest = shown.as_str();
    for fragment in fragments {
        let at = rest.find(fragment);
        let at = at.unwrap_or_else(|| panic!("{fragment:?} is to be found, in order, in\n{shown}"));
        rest = &rest[at + fragment.len()..];
    }
    assert_eq!(faults.len(), count, "{text}\n{shown}");
}

fn check_accepted(text: &str, settings: &[&str]) -> Workload {
    parse(text, settings).unwrap_or_else(|faults| panic!("accepted:\n{text}\n{faults}"))
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Faults of one key or table, in front of a handler.
#[test]
fn a_faulty_key_is_refused_with_its_place_and_what_would_be_right() {
    let cases: &[(&str, &[&str])] = &[
        // Unknown keys and words.
        (
            "[budget]\ntotl = '2s'",
            &["w.toml:2:1: `totl` is no key of [budget]", "did you mean `total`?"],
        ),
        ("[budget]\nquite_other = 1", &["w.toml:2:1: ", "possible here: total, reserve"]),
        ("budgte = 1", &["w.toml:1:1: `budgte` is no key of the file", "`budget`"]),
        (
            "profile = 'queu'",
            &["w.toml:1:11: profile is \"queu\"; use one of queue, custom", "`queue`"],
        ),
        // Types.
        ("[budget]\ntotal = 2", &["w.toml:2:9: budget.total is the number 2", "\"2s\""]),
        ("[budget]\ntotal = 2.5", &["the number 2.5", "\"2.5s\""]),
        ("[budget]\ntotal = true", &["budget.total is true; write a span of time as text"]),
        ("[budget]\ntotal = 1979-05-27", &["budget.total is the date 1979-05-27"]),
        ("[budget]\ntotal = { min = '1s', max = '2s' }", &["budget.total is a table"]),
        ("budget = '2s'", &["budget is the text \"2s\"; write a table"]),
        ("[[budget]]\ntotal = '2s'", &["budget is a list of tables; write a table"]),
        ("[guard]\nkind = 'cpu'", &["guard is a table; write [[guard]] above each"]),
        ("guard = [1]", &["w.toml:1:10: guard has the number 1 in it; write tables only"]),
        ("name = 3", &["name is the number 3; write a text in quotes"]),
        ("name = ''", &["name is \"\"; use a name on one line"]),
        ("name = \"a\\nb\"", &["name is \"a\\nb\"; use a name"]),
        ("[load]\ndeliveries = '5'", &["load.deliveries is the text \"5\"; write a whole number"]),
        (
            "[load]\nrate = '0/s'",
            &["w.toml:2:8: load.rate is \"0/s\"; write a number above 0 and /s or /m"],
        ),
        ("[load]\nfor = '5s'", &["w.toml:2:1: load.for says nothing without a load.rate"]),
        ("[load]\narrivals = 'even'", &["load.arrivals says nothing without a load.rate"]),
        (
            "[load]\nrate = '5/s'\nfor = '5s'\ndeliveries = 3",
            &["w.toml:3:1: load.for and load.deliveries both say how many messages there are"],
        ),
        (
            "[load]\nrate = '5000000/s'\nfor = '5s'",
            &["w.toml:3:7: load.rate over 5s is more than 10000000 messages"],
        ),
        ("[load]\ndeliveries = 5.0", &["load.deliveries is the number 5.0; write a whole number"]),
        (
            "[settlement]\nconfirm = 'no'",
            &["settlement.confirm is the text \"no\"; write true or false"],
        ),
        // Ranges.
        (
            "[load]\nconcurrency = 0",
            &["w.toml:2:15: load.concurrency is 0; use 1 to ", "concurrency = 0"],
        ),
        ("[load]\ndeliveries = -1", &["load.deliveries is -1; use 1 to"]),
        (
            "[load]\nseed = 99999999999999999999999999",
            &["load.seed is 99999999999999999999999999; use 0 to"],
        ),
        ("[runtime]\nworkers = 0", &["runtime.workers is 0; use 1 to"]),
        ("[runtime]\nblocking_threads = 0xFFFFFF", &["runtime.blocking_threads is 0x"]),
        ("[settlement]\nredeliveries = -1", &["settlement.redeliveries is -1; use 0 to"]),
        ("[settlement]\ntimeout = '0s'", &["settlement.timeout is 0s; use 1us to"]),
        // Spans of time.
        (
            "observe = '2 parsecs'",
            &["\"2 parsecs\", which is no span of time: parsecs is no unit of time"],
        ),
        ("observe = '1h1h'", &["the unit h stands in it twice"]),
        ("observe = '11years'", &["longer than ten years"]),
        ("observe = '99999999999999999999s'", &["longer than ten years"]),
        ("observe = ''", &["it is empty"]),
        // The budget.
        (
            "[budget]\ntotal = '50ms'",
            &["budget.total is 50ms; with profile queue use 100ms to 15m"],
        ),
        ("[budget]\ntotal = '901s'", &["w.toml:2:9: budget.total is 15m 1s", "100ms to 15m"]),
        ("profile = 'custom'\n[budget]\ntotal = '25h'", &["with profile custom use 1ms to 1day"]),
        (
            "[budget]\ntotal = '2s'\nreserve = '2s'",
            &[
                "w.toml:3:11: budget.reserve is 2s, which leaves no time to work in a total of 2s; use less than 2s",
                "reserve = '2s'",
            ],
        ),
        // Settlement.
        (
            "[settlement]\nconfirm = false\nconfirm_in = '1s'",
            &["w.toml:3:1: settlement.confirm_in says when and `confirm = false` never"],
        ),
        // Expectations.
        ("[expect]\nsucces = 1", &["`succes` is no key of [expect]", "`success`"]),
        (
            "[expect]\nlate = -1",
            &["expect.late is the number -1; write a whole number, or a comparison"],
        ),
        ("[expect]\nlate = '>= many'", &["expect.late is the text \">= many\""]),
        ("[expect]\nlate = '< 2s'", &["expect.late is the text \"< 2s\""]),
        (
            "[expect]\np99 = 250",
            &["expect.p99 is the number 250; write a comparison like \"< 250ms\""],
        ),
        ("[expect]\np99 = '< 3'", &["expect.p99 is the text \"< 3\""]),
        (
            "[expect]\nending = 'gracefully'",
            &["expect.ending is the text \"gracefully\"; write one of incomplete"],
        ),
        ("[expect.codes]\nBUSY = true", &["expect.codes.BUSY is true"]),
        (
            "[[expect.gap]]\nstep = 'handler-2'",
            &["w.toml:2:8: no step has the name \"handler-2\"", "`handler-1`"],
        ),
        (
            "[[expect.gap]]\nkind = 'thraed'",
            &[
                "w.toml:2:8: kind is \"thraed\"; use one of execution, task",
                "did you mean `thread`?",
            ],
        ),
        // Places.
        ("[scope]", &["w.toml:1:1: [scope] needs `dispose`"]),
    ];
    for (text, fragments) in cases {
        check_refused(&format!("{text}{HANDLER}"), &[], 1, fragments);
    }
}

/// Faults of a step; each case is the inside of `[[handler]]`, which stands on line 1.
#[test]
fn a_faulty_step_is_refused_with_its_place_and_what_would_be_right() {
    let cases: &[(&str, &[&str])] = &[
        ("for = '1s'", &["w.toml:1:1: a step needs a `kind`", "cpu, cooperative"]),
        ("kind = 3", &["w.toml:2:8: kind is the number 3; use one of cpu"]),
        (
            "kind = 'blokcing'\nfor = '1s'",
            &["w.toml:2:8: `blokcing` is no kind of step", "`blocking`"],
        ),
        ("kind = 'cpu'\nfro = '1ms'", &["w.toml:3:1: `fro` is no key of a step", "`for`"]),
        (
            "kind = 'cpu'\nfor = '1ms'\nurl = 'x'",
            &["w.toml:4:1: `url` is no key of kind cpu", "it belongs to kind io"],
        ),
        ("kind = 'cpu'", &["a step of kind cpu needs `for` or `iterations`"]),
        (
            "kind = 'sequence'\nsteps = ['a']",
            &["w.toml:3:10: steps has the text \"a\" in it; write tables only"],
        ),
        ("kind = 'sequence'\nsteps = []", &["w.toml:3:9: steps is empty; write at least one step"]),
        (
            "kind = 'cpu'\nfor = '1ms'\niterations = 5",
            &["w.toml:4:1: `for` and `iterations` exclude each other"],
        ),
        ("kind = 'cooperative'", &["a step of kind cooperative needs `for`"]),
        ("kind = 'blocking'", &["a step of kind blocking needs `for`"]),
        ("kind = 'polls'", &["a step of kind polls needs `count`"]),
        ("kind = 'io'\nfor = '1s'", &["a step of kind io needs `op`"]),
        ("kind = 'io'\nop = 'sleep'", &["w.toml:1:1: an io step with op = \"sleep\" needs `for`"]),
        (
            "kind = 'io'\nop = 'sleep'\nfor = '1s'\nurl = 'x'",
            &["w.toml:5:1: `url` has no use with op = \"sleep\"; it belongs to tcp and http"],
        ),
        ("kind = 'cpu'\nfor = '1ms'\nshare = -0.5", &["w.toml:4:9: share is -0.5; use 0 to 1"]),
        ("kind = 'cpu'\nfor = '1ms'\nshare = nan", &["share is nan; use 0 to 1"]),
        ("kind = 'cpu'\nfor = '1ms'\npoll_budget = 0", &["poll_budget is 0; use 1 to"]),
        ("kind = 'cpu'\nfor = '1ms'\non = 'moon'", &["on is \"moon\"; use one of worker, thread"]),
        ("kind = 'cpu'\nfor = '1ms'\nyield_every = '0s'", &["yield_every is 0s; use"]),
        (
            "kind = 'cpu'\nfor = '1ms'\ntimeout = 5",
            &["timeout is the number 5; write it as text with a unit, \"5s\""],
        ),
        ("kind = 'cpu'\nfor = '1ms'\nfail = true", &["fail is true; write a text in quotes"]),
        ("kind = 'cpu'\nfor = '1ms'\nfail = { retryable = true }", &["fail needs `code`"]),
        (
            "kind = 'cpu'\nfor = '1ms'\nfail = { code = 'A', share = 2 }",
            &["fail.share is 2; use 0 to 1"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\nfail = { code = 'A', first = 0 }",
            &["fail.first is 0; use 1 to"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\npanic = 'yes'",
            &["panic is the text \"yes\"; write true or false"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\npanic = { shar = 1 }",
            &["`shar` is no key of panic", "`share`"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\non_drop = { kind = 'io', op = 'sleep', for = '1s' }",
            &["`io` is no kind of destructor", "cpu, blocking"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\non_drop = { kind = 'cpu', for = '1s', detach = true }",
            &["`detach` is no key of a destructor"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\non_drop = { kind = 'cpu', for = '1s', timeout = '1s' }",
            &["`timeout` is no key of a destructor"],
        ),
        (
            "kind = 'cpu'\nfor = '1ms'\non_drop = { kind = 'cpu', for = '1s', on = 'thread' }",
            &["`on` is no key of a destructor"],
        ),
        (
            "kind = 'cooperative'\nfor = '1ms'\ncode = 'X'",
            &["w.toml:4:1: `code` has no use with on_signal = \"return\""],
        ),
        // Distributions.
        (
            "kind = 'cpu'\nfor = { min = '2s', max = '1s' }",
            &["w.toml:3:15: min is 2s, which is longer than max, 1s"],
        ),
        (
            "kind = 'cpu'\nfor = { p50 = '2s', p99 = '2s' }",
            &["w.toml:3:27: p99 is 2s, which is not longer than p50, 2s"],
        ),
        ("kind = 'cpu'\nfor = { p50 = '0s', p99 = '2s' }", &["for.p50 is 0s; use"]),
        (
            "kind = 'cpu'\nfor = { min = '2s' }",
            &["w.toml:3:7: these keys make no distribution", "uniform"],
        ),
        ("kind = 'cpu'\nfor = { mean = '2s', p50 = '1s' }", &["these keys make no distribution"]),
        ("kind = 'cpu'\nfor = {}", &["these keys make no distribution"]),
        ("kind = 'cpu'\nfor = { mean = '2 parsecs' }", &["for.mean is \"2 parsecs\""]),
        ("kind = 'cpu'\nfor = 5", &["for is the number 5; write it as text"]),
        ("kind = 'cpu'\nfor = ['1s']", &["for is a list; write a span of time as text"]),
        // Composition.
        ("kind = 'sequence'", &["a step of kind sequence needs `steps`"]),
        ("kind = 'sequence'\nsteps = []", &["w.toml:3:9: steps is empty"]),
        (
            "kind = 'sequence'\nsteps = { kind = 'cpu', for = '1s' }",
            &["steps is a table; write [[steps]]"],
        ),
        (
            "kind = 'parallel'\nsteps = [{ kind = 'cpu' }]",
            &["w.toml:3:10: a step of kind cpu needs `for`"],
        ),
        (
            "kind = 'choice'\nweights = [1, 2, 3]\nsteps = [{ kind = 'cpu', for = '1s' }, { kind = 'cpu', for = '1s' }]",
            &["w.toml:3:11: weights has 3 numbers for 2 steps"],
        ),
        (
            "kind = 'choice'\nweights = [0, 0.0]\nsteps = [{ kind = 'cpu', for = '1s' }, { kind = 'cpu', for = '1s' }]",
            &["w.toml:3:11: weights are all 0"],
        ),
        (
            "kind = 'choice'\nweights = [-1, 2]\nsteps = [{ kind = 'cpu', for = '1s' }, { kind = 'cpu', for = '1s' }]",
            &["w.toml:3:12: weights is -1; use 0 to"],
        ),
        (
            "kind = 'choice'\nweights = ['1', 2]\nsteps = [{ kind = 'cpu', for = '1s' }, { kind = 'cpu', for = '1s' }]",
            &["w.toml:3:12: weights is the text \"1\"; write a number"],
        ),
        // Names.
        (
            "kind = 'cpu'\nfor = '1s'\nname = 'a'\n[[handler]]\nkind = 'cpu'\nfor = '1s'\nname = 'a'",
            &["w.toml:8:8: the step \"a\" has the name of the one on line 4; use another"],
        ),
        (
            "kind = 'cpu'\nfor = '1s'\nname = 'handler-2'\n[[handler]]\nkind = 'cpu'\nfor = '1s'",
            &["w.toml:5:1: the step \"handler-2\" has the name of the one on line 4"],
        ),
        (
            "kind = 'sequence'\nsteps = [{ kind = 'cpu', for = '1s' }]\n[[handler]]\nkind = 'cpu'\nfor = '1s'\nname = 'handler-1-1'",
            &["w.toml:3:10: the step \"handler-1-1\" has the name of the one on line 7"],
        ),
        (
            "kind = 'cpu'\nfor = '1s'\n[[middleware]]\nname = 'm'\n[[middleware]]\nname = 'm'",
            &["w.toml:7:8: the middleware \"m\" has the name of the one on line 5"],
        ),
    ];
    for (text, fragments) in cases {
        check_refused(&format!("[[handler]]\n{text}"), &[], 1, fragments);
    }
}

#[test]
fn what_belongs_to_a_later_version_is_refused_once_and_its_inside_is_left_alone() {
    let step = |keys: &str| format!("[[handler]]\nkind = 'cpu'\nfor = '1s'\n{keys}");
    let cases: Vec<(String, usize, &[&str])> = vec![
        (
            step("retry = { attempts = 3 }"),
            1,
            &["w.toml:4:1: `retry` is not supported by this version yet"],
        ),
        (step("retry = { attempts = 0, bsae = '1s' }"), 1, &["`retry` is not supported"]),
        (step("fallback = { kind = 'cpu' }"), 1, &["`fallback` is not supported"]),
        (
            step("breaker = 'payments'\n[breakers.payment]\nminimum = 3"),
            2,
            &["w.toml:4:1: `breaker` is not supported", "`breakers` is not supported"],
        ),
        (
            step("bulkhead = 'db'\n[bulkheads.db]\nslots = 0"),
            2,
            &["`bulkhead` is not supported", "`bulkheads` is not supported"],
        ),
        (
            step("timeout = { share = 0.5 }"),
            1,
            &["w.toml:4:11: a table as timeout is not supported by this version yet"],
        ),
        (step("[compare]\nvery = 3"), 1, &["`compare` is not supported"]),
        (step("[load]\nhttp = 5"), 1, &["`http` is not supported"]),
        (
            step("[settlement]\nbroker = 'nats'\nurl = 'nats://x'"),
            2,
            &["settlement.broker `nats` is not supported", "`url` is not supported"],
        ),
        (step("[settlement]\nurl = 'nats://x'"), 1, &["`url` is not supported"]),
        (step("[expect.in_flight]\nlost = 0"), 1, &["`in_flight` is not supported"]),
        (step("[[expect.gap]]\nkind = 'process'"), 1, &["kind `process` is not supported"]),
        (
            "[[handler]]\nkind = 'cpu'\nfor = { recorded = 'r.json', step = 'a' }".into(),
            1,
            &["`recorded` is not supported"],
        ),
        (
            "[[handler]]\nkind = 'command'\nrun = 'true'".into(),
            1,
            &["w.toml:2:8: kind `command` is not supported"],
        ),
        (
            "[[handler]]\nkind = 'io'\nop = 'http'\nurl = 'http://a'\nkeep_alive = true".into(),
            1,
            &["`keep_alive` is not supported"],
        ),
        (format!("repeat = 3{HANDLER}"), 1, &["w.toml:1:10: `repeat` above 1 is not supported"]),
        (
            format!("profile = 'websocket'\n[budget]\ntotal = '500ms'{HANDLER}"),
            2,
            &[
                "profile `websocket` is not supported",
                "budget.total is 500ms; with profile websocket use 1s to 5m",
            ],
        ),
        (
            format!("profile = 'websocket'\n[budget]\nreserve = '1s'{HANDLER}"),
            2,
            &["budget.reserve has no use with profile websocket"],
        ),
        (
            format!("[budget]\ncleanup_timeout = '1s'{HANDLER}"),
            1,
            &["`cleanup_timeout` is not supported"],
        ),
        ("[[service]]\nname = 'api'".into(), 1, &["`service` is not supported"]),
    ];
    for (text, count, fragments) in cases {
        check_refused(&text, &[], count, fragments);
    }
}

/// Faults of one `io` step, and of peers behind it.
#[test]
fn a_step_that_cannot_reach_anything_is_refused_with_what_would_be_right() {
    let cases: &[(&str, usize, &[&str])] = &[
        (
            "op = 'http'\nurl = 'peer:silent'\n[peers.silnt]",
            1,
            &["url names \"silent\", but there is no [peers.silent]", "did you mean `silnt`?"],
        ),
        ("op = 'http'", 1, &["w.toml:1:1: an io step with op = \"http\" needs `url`"]),
        ("op = 'tcp'", 1, &["an io step with op = \"tcp\" needs `url`"]),
        ("op = 'write'", 1, &["an io step with op = \"write\" needs `path`"]),
        ("op = 'read'\npath = ''", 1, &["path is empty; write the name of a file"]),
        (
            "op = 'http'\nurl = 'https://a/b'",
            1,
            &[
                "w.toml:4:7: url is \"https://a/b\": its scheme is another",
                "use http://HOST:PORT/PATH, or peer:NAME",
                "there is no TLS in this program",
            ],
        ),
        ("op = 'http'\nurl = 'http://a:99999'", 1, &["a port is a number from 1 to 65535"]),
        ("op = 'tcp'\nurl = 'tcp://a'", 1, &["its port is missing", "use tcp://HOST:PORT"]),
        ("op = 'tcp'\nurl = 'tcp://a:1/x'", 1, &["a tcp connection has no path"]),
        (
            "op = 'http'\nurl = 'http://a'\nmethod = 'GET /'",
            1,
            &["method is \"GET /\"; write one like \"GET\" or \"POST\""],
        ),
        (
            "op = 'write'\npath = 'x'\nsize = '1 furlong'",
            1,
            &["size is \"1 furlong\"; write a whole number and a unit, \"4KiB\" or \"1MB\""],
        ),
        (
            "op = 'write'\npath = 'x'\nsize = 100",
            1,
            &["size is the number 100; write it as text with a unit, \"100B\""],
        ),
        (
            "op = 'read'\npath = 'x'\nread_timeout = '1s'",
            1,
            &["`read_timeout` has no use with op = \"read\"; it belongs to tcp and http"],
        ),
        (
            "op = 'http'\nurl = 'peer:p'\n[peers.p]\nreset_after = 1\nclose_after = 2",
            1,
            &["w.toml:7:1: `reset_after` and `close_after` exclude each other"],
        ),
        (
            "op = 'http'\nurl = 'peer:p'\n[peers.p]\nbody = 1\nrefuse = true",
            1,
            &["`body` has no use with refuse = true"],
        ),
        (
            "op = 'http'\nurl = 'peer:p'\n[peers.p]\nbody = 1\nstatus = 204",
            1,
            &["an answer of status 204 or 304 has no body"],
        ),
        (
            "op = 'http'\nurl = 'peer:p'\n[peers.p]\nstatus = 100",
            1,
            &["peers.p.status is 100; use 200 to 599"],
        ),
        (
            "op = 'http'\nurl = 'peer:p'\n[peers.p]\ndrip = { bytes = 1 }",
            1,
            &["drip needs `every`"],
        ),
    ];
    for (text, count, fragments) in cases {
        check_refused(&format!("[[handler]]\nkind = 'io'\n{text}"), &[], *count, fragments);
    }
}

#[test]
fn io_steps_and_peers_are_read_as_written() {
    let text = "[[handler]]\nkind = 'io'\nop = 'http'\nurl = 'http://[::1]:8080/x?y'\n\
                body = 'hi'\nread_timeout = '1s'\n\
                [[handler]]\nkind = 'io'\nop = 'write'\npath = 'a/b'\nsize = '2KiB'\nkeep = true\n\
                [[handler]]\nkind = 'io'\nop = 'tcp'\nurl = 'peer:slow'\nread = 'end'\n\
                [peers.slow]\nbody = 7\ndrip = { bytes = 2, every = '1ms' }\n";
    let workload = check_accepted(text, &[]);
    let Work::Http(http) = &workload.steps[0].work else { panic!("it is http") };
    assert_eq!((http.method.as_str(), http.target.as_str()), ("POST", "/x?y"));
    assert_eq!(http.connection.to, Address::Host { host: "::1".into(), port: 8080 });
    assert_eq!(http.connection.read_timeout, Some(millis(1_000)));
    let Work::Write(write) = &workload.steps[1].work else { panic!("it writes") };
    assert_eq!((write.size, write.sync, write.keep), (2_048, false, true));
    assert_eq!(write.path, Path::new("a/b"), "the file has no folder to start at");
    let Work::Tcp(tcp) = &workload.steps[2].work else { panic!("it is tcp") };
    assert_eq!((tcp.read, &tcp.connection.to), (Some(ReadUntil::End), &Address::Peer(0)));
    let peer = &workload.peers[0];
    assert_eq!((peer.name.as_str(), peer.status, peer.body), ("slow", 200, 7));
    assert_eq!(peer.drip, Some(Drip { bytes: 2, every: millis(1), stop_after: None }));
}

#[test]
fn what_is_possible_is_what_this_version_supports() {
    for (text, section) in [
        ("[load]\nquite_other = 1", keys::LOAD.keys),
        ("[budget]\nquite_other = 1", keys::BUDGET.keys),
    ] {
        let shown = parse(&format!("{text}{HANDLER}"), &[]).unwrap_err().to_string();
        let (_, offered) = shown.split_once("possible here: ").expect("it offers something");
        let offered: Vec<_> = offered.trim().split(", ").collect();
        let supported = section.iter().filter(|key| key.since == Since::Now);
        assert_eq!(offered, supported.map(|key| key.name).collect::<Vec<_>>());
    }
}

#[test]
fn a_file_that_is_no_workload_at_all_says_why() {
    let mut nested = "{ kind = 'cpu', for = '1s' }".to_owned();
    for _ in 0..34 {
        nested = format!("{{ kind = 'sequence', steps = [{nested}] }}");
    }
    let cases: &[(&str, usize, &[&str])] = &[
        ("", 1, &["w.toml: a workload needs at least one [[handler]]"]),
        ("handler = []", 1, &["w.toml:1:11: handler is empty"]),
        ("this is not = = toml", 1, &["w.toml:1:6: not valid TOML"]),
        ("a = \r\r\r", 1, &["w.toml:1:"]),
        ("[budget]\r\ntotal = 'x\r\n", 1, &["w.toml:2:"]),
        ("\u{feff}a = = 1", 1, &["w.toml:1:"]),
        ("a = = 1\nb = = 2", 2, &["w.toml:1:", "w.toml:2:"]),
        ("[budget]\ntotal = '1s'\ntotal = '2s'", 1, &["w.toml:3:1: not valid TOML: duplicate key"]),
        (&format!("handler = [{nested}]"), 1, &["more than 32 steps inside one another"]),
        (&"[".repeat(100_000), 1, &["w.toml:1:"]),
        (&"a={b=".repeat(10_000), 1, &["w.toml:1:"]),
    ];
    for (text, count, fragments) in cases {
        check_refused(text, &[], *count, fragments);
    }
}

#[test]
fn all_faults_are_shown_at_once_in_the_order_of_the_file() {
    let text = "[budget]\ntotl = '2s'\n[[handler]]\nkind = 'cpu'\nfro = '1ms'\n";
    let shown = parse(text, &["load.seed=x"]).unwrap_err().to_string();
    let wanted = "w.toml:2:1: `totl` is no key of [budget]
  |
2 | totl = '2s'
  | ^^^^
  |
  = help: did you mean `total`?

w.toml:5:1: `fro` is no key of a step
  |
5 | fro = '1ms'
  | ^^^
  |
  = help: did you mean `for`?

--set load.seed=x: load.seed is the text \"x\"; write a whole number from 0 to 9223372036854775807
 |
 | load.seed=x
 |           ^";
    assert_eq!(shown, wanted);
}

const NAMED: &str = "[[middleware]]
name = 'tx'
terminate = { kind = 'io', op = 'sleep', for = '5ms' }
[[handler]]
name = 'compress'
kind = 'io'
op = 'sleep'
for = '5ms'
[[handler]]
kind = 'sequence'
steps = [{ kind = 'io', op = 'sleep', for = '5ms' }]
";

#[test]
fn set_is_a_value_of_the_file_and_reaches_tables_by_name() {
    let sleeps = |workload: &Workload, name: &str| {
        let step = workload.steps.iter().find(|step| step.name == name).expect(name);
        match &step.work {
            Work::Sleep { duration: Span::Fixed(duration) } => *duration,
            work => panic!("{work:?}"),
        }
    };
    let two = Duration::from_secs(2);
    for (setting, step) in [
        ("handler.compress.for=2s", "compress"),
        ("handler.compress.for='2s'", "compress"),
        ("handler.handler-2.steps.handler-2-1.for=2s", "handler-2-1"),
        ("handler.\"handler-2\".steps.handler-2-1.for=2s", "handler-2-1"),
        ("middleware.tx.terminate.for=2s", "terminate-1"),
    ] {
        assert_eq!(sleeps(&check_accepted(NAMED, &[setting]), step), two, "{setting}");
    }
    let workload =
        check_accepted(NAMED, &["budget.total=1s", "load.deliveries=5", "budget.total=3s"]);
    assert_eq!((workload.budget.total, workload.load.deliveries), (Duration::from_secs(3), 5));
    let workload = check_accepted(
        NAMED,
        &["expect.codes.BUSY=>= 1", "scope.dispose={kind='cpu', iterations=3}"],
    );
    assert_eq!(workload.expect.unwrap().rows[0].what, "codes.BUSY");
    assert_eq!((workload.dispose, workload.steps[4].line), (Some(StepId(4)), 0));
}

#[test]
fn a_faulty_set_names_its_word_as_the_place() {
    let cases: &[(&str, usize, &[&str])] = &[
        ("budget.totl=1s", 1, &["--set budget.totl=1s: `totl` is no key of [budget]", "`total`"]),
        (
            "budget.total=50ms",
            1,
            &["--set budget.total=50ms: budget.total is 50ms; with profile queue use"],
        ),
        ("budget.total=2", 1, &["--set budget.total=2: budget.total is the number 2"]),
        ("budget.total", 1, &["--set budget.total: no value; write KEY=VALUE"]),
        ("=1", 1, &["--set =1: a part of the key is empty"]),
        ("budget..total=1", 1, &["a part of the key is empty"]),
        (
            "handler.compres.for=1s",
            1,
            &["`handler` has no table of the name \"compres\"", "did you mean `compress`?"],
        ),
        (
            "handler.handler-1.for=1s",
            1,
            &["`handler` has no table of the name \"handler-1\"", "did you mean `handler-2`?"],
        ),
        ("handler.compress=1s", 1, &["`compress` is a table; add one of its keys"]),
        ("handler.compress.for.min=1s", 1, &["`for` is the text \"5ms\", and no table"]),
        (
            "handler.compress.name=handler-2",
            1,
            &["w.toml:9:1: the step \"handler-2\" has the name of the one on the command line"],
        ),
        ("load={concurrency=0}", 1, &["--set load={concurrency=0}: load.concurrency is 0"]),
    ];
    for (setting, count, fragments) in cases {
        check_refused(NAMED, &[setting], *count, fragments);
    }
    check_refused(
        &format!("name = 'n'\n{NAMED}"),
        &["name.x=1"],
        1,
        &["--set name.x=1: `name` is the text \"n\", and no table"],
    );
    let deep = format!("{}=1", vec!["a"; 100_000].join("."));
    check_refused(NAMED, &[&deep], 1, &["more than 64 parts in the key"]);
}

/// Every key of the table in a file of its own, with a value of its shape.
#[test]
fn every_key_is_accepted_or_refused_as_not_yet_supported() {
    let mut seen = 0;
    for key in keys::ROOT.keys {
        for Sample { text, is_later } in samples_of_key(key, 0) {
            let handler = if key.name == "handler" { "" } else { HANDLER };
            let text = format!("{text}{handler}");
            let faults = match parse(&text, &[]) {
                Ok(_) => Vec::new(),
                Err(faults) => faults.iter().map(|fault| fault.message.clone()).collect(),
            };
            for message in &faults {
                for wrong in ["is no key", "is no kind", "; use ", "; write ", " needs ", "TOML"] {
                    assert!(!message.contains(wrong), "{text}\n{message}");
                }
            }
            let is_refused =
                faults.iter().any(|fault| fault.contains("not supported by this version yet"));
            assert_eq!(is_refused, is_later, "{text}\n{faults:#?}");
            seen += 1;
        }
    }
    assert!(seen > 250, "{seen}");
}

/// A `key = value` line or a value, and whether something in it belongs to a later version.
#[derive(Clone)]
struct Sample {
    text: String,
    is_later: bool,
}

fn samples_of_key(key: &Key, depth: usize) -> Vec<Sample> {
    let mut samples = samples_of(key.name, &key.shape, depth);
    for sample in &mut samples {
        sample.text = format!("{} = {}", key.name, sample.text);
        sample.is_later |= key.since == Since::Later;
    }
    samples
}

fn samples_of(name: &str, shape: &Shape, depth: usize) -> Vec<Sample> {
    let plain = |text: String| vec![Sample { text, is_later: false }];
    let wrap = |samples: Vec<Sample>, before: &str, after: &str| {
        let wrap =
            |sample: Sample| Sample { text: format!("{before}{}{after}", sample.text), ..sample };
        samples.into_iter().map(wrap).collect::<Vec<_>>()
    };
    match shape {
        Shape::Text | Shape::Name if name == "step" => plain("'handler-1'".into()),
        Shape::Text if name == "url" => plain("'tcp://127.0.0.1:1'".into()),
        Shape::Text | Shape::Name => plain("'x'".into()),
        Shape::Flag => plain("true".into()),
        Shape::Whole { least, .. } => plain(least.to_string()),
        Shape::Number { most, .. } => plain(format!("{most:?}")),
        // Long enough for every total, short enough for every reserve.
        Shape::Time { .. } => plain(if name == "p99" { "'2s'".into() } else { "'1s'".into() }),
        Shape::Rate => plain("'1.5/s'".into()),
        Shape::Size => plain("'4KiB'".into()),
        Shape::Word(words) => words
            .iter()
            .map(|word| Sample {
                text: format!("'{}'", word.word),
                is_later: word.since == Since::Later,
            })
            .collect(),
        Shape::List(shape) => wrap(samples_of(name, shape, depth), "[", "]"),
        Shape::Map(shape) => wrap(samples_of(name, shape, depth), "{ x = ", " }"),
        Shape::Section(section) => section_samples(section, depth),
        Shape::Sections(section) => wrap(section_samples(section, depth), "[", "]"),
        Shape::Step(kinds) => step_samples(kinds, depth),
        Shape::Steps(kinds) => wrap(step_samples(kinds, depth), "[", "]"),
        Shape::Bound(Measure::Count) => plain("'>= 1'".into()),
        Shape::Bound(Measure::Time) => plain("'<= 1s'".into()),
        Shape::Bound(Measure::Ending) => plain("'graceful'".into()),
        Shape::OneOf(shapes) => {
            shapes.iter().flat_map(|shape| samples_of(name, shape, depth)).collect()
        }
        Shape::Later(shape) => {
            let later = |sample| Sample { is_later: true, ..sample };
            samples_of(name, shape, depth).into_iter().map(later).collect()
        }
        Shape::Anything => plain("1".into()),
    }
}

fn section_samples(section: &Section, depth: usize) -> Vec<Sample> {
    table_samples(section.keys, String::new(), false, depth)
}

fn step_samples(kinds: &Kinds, depth: usize) -> Vec<Sample> {
    if depth == 1 {
        return vec![Sample { text: "{ kind = 'cpu', for = '1s' }".into(), is_later: false }];
    }
    let mut samples = Vec::new();
    for kind in kinds.kinds {
        let head = format!("kind = '{}', ", kind.word);
        let is_later = kind.since == Since::Later;
        samples.extend(table_samples(kind.keys, head, is_later, depth + 1));
    }
    let head = "kind = 'cpu', for = '1s', ".to_owned();
    samples.extend(table_samples(kinds.common, head, false, depth + 1));
    samples
}

/// One table for each key and value, with the other keys that it needs.
fn table_samples(keys: &[Key], head: String, is_later: bool, depth: usize) -> Vec<Sample> {
    let mut tables = Vec::new();
    for key in keys {
        let mut needed: Vec<_> = keys
            .iter()
            .filter(|other| other.name != key.name && belong_together(&head, other, key))
            .map(|other| samples_of_key(other, 1).remove(0))
            .collect();
        if let Some((_, ops)) = keys::IO_KEYS.iter().find(|(name, _)| *name == key.name)
            && head.contains("'io'")
        {
            needed.push(Sample { text: format!("op = '{}'", ops[0]), is_later: false });
            needed.extend(needed_by(ops[0], key.name));
        }
        for sample in samples_of_key(key, depth) {
            let op = sample.text.strip_prefix("op = ").filter(|_| head.contains("'io'"));
            let op = op.map(|op| op.trim_matches('\''));
            let mut lines = vec![sample.text.clone()];
            lines.extend(op.and_then(|op| needed_by(op, "op")).map(|sample| sample.text));
            lines.extend(needed.iter().map(|sample| sample.text.clone()));
            tables.push(Sample {
                text: format!("{{ {head}{} }}", lines.join(", ")),
                is_later: is_later
                    || sample.is_later
                    || needed.iter().any(|sample| sample.is_later),
            });
        }
    }
    tables
}

/// Whether `key` cannot be used without `other`.
fn belong_together(head: &str, other: &Key, key: &Key) -> bool {
    let is_cpu = head.contains("'cpu', ") && !head.contains("for");
    let is_io = head.contains("'io'");
    matches!(other.otherwise, keys::Otherwise::Required) && !is_io
        || is_cpu && other.name == "for" && key.name != "iterations"
        || matches!(
            (key.name, other.name),
            ("min", "max") | ("max", "min") | ("p50", "p99") | ("p99", "p50")
        )
}

/// What an operation of kind `io` needs beside that key.
fn needed_by(op: &str, key: &str) -> Option<Sample> {
    let (name, text) = match op {
        "sleep" => ("for", "for = '1s'"),
        "tcp" => ("url", "url = 'tcp://127.0.0.1:1'"),
        "http" => ("url", "url = 'http://127.0.0.1:1'"),
        _ => ("path", "path = 'x'"),
    };
    (name != key).then(|| Sample { text: text.into(), is_later: false })
}

/// Everything that this version has, once.
const FULL: &str = "name = 'orders'
description = 'all of it'
observe = '3s'
[budget]
total = '10s'
reserve = '800ms'
cooperative_window = '40ms'
[runtime]
workers = 3
blocking_threads = 8
[load]
deliveries = 100
concurrency = 8
seed = 11
[settlement]
timeout = '1s'
redeliveries = 2
confirm = false
[expect]
late = '>= 1'
success = 97
p99 = '< 2s'
ending = 'incomplete'
codes.BUSY = '<= 3'
[[expect.gap]]
step = 'copy'
kind = 'thread'
state = 'unproven'
count = 2
[[middleware]]
after = { kind = 'cpu', iterations = 5, on = 'thread', yield_every = '1ms', panic = true }
before = { kind = 'io', op = 'sleep', for = { mean = '1ms', max = '5ms' } }
[[middleware]]
name = 'tx'
terminate = { name = 'rollback', kind = 'cpu', for = '2ms' }
[[handler]]
name = 'copy'
kind = 'blocking'
for = { p50 = '10ms', p99 = '120ms' }
op = 'fsync'
looks_every = '10ms'
pool = 'own'
timeout = '1s'
poll_budget = 3
optional = true
share = 0.1
detach = true
fail = { code = 'BUSY', retryable = true, share = 0.2, first = 2 }
panic = { share = 0.5 }
on_drop = { kind = 'blocking', op = 'spin', for = '2s', panic = true }
[[handler]]
kind = 'choice'
steps = [
  { kind = 'cooperative', for = { min = '1ms', max = '2ms' }, slice = '2ms', on_signal = 'fail', code = 'STOPPED', wind_down = '3ms' },
  { kind = 'parallel', wait = 'first', steps = [{ kind = 'polls', count = 5, fail = 'GONE' }] },
]
weights = [9, 1]
[[guard]]
kind = 'cooperative'
for = '1ms'
on_signal = 'ignore'
[scope]
dispose = { kind = 'sequence', steps = [{ kind = 'cooperative', for = '1ms', on_signal = 'fail' }] }
";

#[test]
fn a_full_file_becomes_the_workload_it_says() {
    let workload = check_accepted(FULL, &[]);
    let step = |name: &str, stage, line, work| Step {
        name: name.to_owned(),
        stage,
        line,
        work,
        timeout: None,
        poll_budget: None,
        fail: None,
        panic: 0.0,
        share: 1.0,
        optional: false,
        on_drop: None,
        detach: false,
    };
    let fixed = |length| Span::Fixed(millis(length));
    let cooperative = |duration, slice, on_signal, wind_down| Work::Cooperative {
        duration,
        slice: millis(slice),
        on_signal,
        wind_down: millis(wind_down),
    };
    let fail_with = |code: &str| OnSignal::Fail { code: Code::from(code) };
    let steps = vec![
        Step {
            panic: 1.0,
            ..step(
                "after-1",
                Stage::After,
                31,
                Work::Cpu {
                    amount: CpuAmount::Iterations(5),
                    yield_every: Some(millis(1)),
                    on: CpuPlace::Thread,
                },
            )
        },
        step(
            "before-1",
            Stage::Before,
            32,
            Work::Sleep { duration: Span::Exponential { mean: millis(1), max: Some(millis(5)) } },
        ),
        step(
            "rollback",
            Stage::Terminate,
            35,
            Work::Cpu {
                amount: CpuAmount::Time(fixed(2)),
                yield_every: None,
                on: CpuPlace::Worker,
            },
        ),
        Step {
            timeout: Some(millis(1_000)),
            poll_budget: Some(3),
            fail: Some(Fail {
                code: Code::from("BUSY"),
                retryable: true,
                share: 0.2,
                first: Some(2),
            }),
            panic: 0.5,
            share: 0.1,
            optional: true,
            on_drop: Some(Destructor {
                work: DestructorWork::Blocking { op: BlockingOp::Spin, duration: fixed(2_000) },
                panic: 1.0,
            }),
            detach: true,
            ..step(
                "copy",
                Stage::Handler,
                36,
                Work::Blocking {
                    op: BlockingOp::Fsync,
                    duration: Span::LogNormal { p50: millis(10), p99: millis(120), max: None },
                    looks_every: Some(millis(10)),
                    pool: Pool::Own,
                },
            )
        },
        step(
            "handler-2",
            Stage::Handler,
            51,
            Work::Choice { steps: vec![StepId(5), StepId(6)], weights: vec![9.0, 1.0] },
        ),
        step(
            "handler-2-1",
            Stage::Handler,
            54,
            cooperative(
                Span::Uniform { min: millis(1), max: millis(2) },
                2,
                fail_with("STOPPED"),
                3,
            ),
        ),
        step(
            "handler-2-2",
            Stage::Handler,
            55,
            Work::Parallel { steps: vec![StepId(7)], wait: Wait::First },
        ),
        Step {
            fail: Some(Fail {
                code: Code::from("GONE"),
                retryable: false,
                share: 1.0,
                first: None,
            }),
            ..step("handler-2-2-1", Stage::Handler, 55, Work::Polls { count: 5 })
        },
        step("guard-1", Stage::Guard, 58, cooperative(fixed(1), 1, OnSignal::Ignore, 0)),
        step("dispose-1", Stage::Dispose, 63, Work::Sequence { steps: vec![StepId(10)] }),
        step(
            "dispose-1-1",
            Stage::Dispose,
            63,
            cooperative(fixed(1), 1, fail_with("INTERRUPTED"), 0),
        ),
    ];
    assert_eq!(workload.steps, steps);
    let expect = workload.expect.expect("the file has an [expect]");
    let rows: Vec<_> = expect
        .rows
        .iter()
        .map(|row| (row.what.as_str(), row.bound.clone(), row.written.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            ("late", Bound::Count(Comparison::AtLeast, 1), ">= 1"),
            ("success", Bound::Count(Comparison::Equal, 97), "97"),
            ("p99", Bound::Span(Comparison::Less, millis(2_000)), "< 2s"),
            ("ending", Bound::Word("incomplete".into()), "incomplete"),
            ("codes.BUSY", Bound::Count(Comparison::AtMost, 3), "<= 3"),
        ]
    );
    assert_eq!(
        expect.gaps,
        [ExpectGap {
            step: Some("copy".into()),
            kind: Some(Obligation::Thread),
            state: Some(ObligationState::Unproven),
            count: Some(2),
        }]
    );
    let middleware = |name: &str, before, after, terminate| Middleware {
        name: name.to_owned(),
        before,
        after,
        terminate,
    };
    let digest = workload.sha256.clone();
    assert_eq!(
        workload_without_steps(workload.profile, digest),
        Workload {
            steps: Vec::new(),
            expect: None,
            lines: BTreeMap::new(),
            ..check_accepted(FULL, &[])
        }
    );
    assert_eq!(
        workload.middleware,
        [
            middleware("middleware-1", Some(StepId(1)), Some(StepId(0)), None),
            middleware("tx", None, None, Some(StepId(2))),
        ]
    );
}

/// All of [`FULL`] beside steps and expectations.
fn workload_without_steps(profile: Profile, sha256: String) -> Workload {
    Workload {
        name: "orders".into(),
        description: Some("all of it".into()),
        file: "w.toml".into(),
        sha256,
        profile,
        observe: millis(3_000),
        budget: Budget {
            total: millis(10_000),
            reserve: Some(millis(800)),
            window_cap: millis(40),
        },
        runtime: Runtime { workers: 3, blocking_threads: 8 },
        load: Load { deliveries: 100, concurrency: 8, pace: None, seed: 11 },
        shutdown: ShutdownPlan::default(),
        peers: Vec::new(),
        settlement: Some(SettlementPolicy {
            timeout: millis(1_000),
            redeliveries: 2,
            confirm_in: None,
        }),
        steps: Vec::new(),
        middleware: vec![
            Middleware {
                name: "middleware-1".into(),
                before: Some(StepId(1)),
                after: Some(StepId(0)),
                terminate: None,
            },
            Middleware { name: "tx".into(), before: None, after: None, terminate: Some(StepId(2)) },
        ],
        guard: vec![StepId(8)],
        resolve: Vec::new(),
        extract: Vec::new(),
        handler: vec![StepId(3), StepId(4)],
        dispose: Some(StepId(9)),
        expect: None,
        lines: BTreeMap::new(),
    }
}

#[test]
fn a_handler_alone_gets_the_defaults() {
    let workload = check_accepted("[[handler]]\nkind = 'cpu'\nfor = '1ms'\n", &[]);
    assert_eq!(
        workload,
        Workload {
            name: "w".into(),
            description: None,
            file: "w.toml".into(),
            sha256: "970805691296e5e542a2924e4e32fd223b531bc5cee0b7555c450d864ba9bf58".into(),
            profile: Profile::Queue,
            observe: millis(2_000),
            budget: Budget { total: millis(30_000), reserve: None, window_cap: millis(250) },
            runtime: Runtime { workers: 2, blocking_threads: 64 },
            load: Load { deliveries: 1, concurrency: 1, pace: None, seed: 7 },
            shutdown: ShutdownPlan::default(),
            peers: Vec::new(),
            settlement: Some(SettlementPolicy {
                timeout: millis(5_000),
                redeliveries: 0,
                confirm_in: Some(millis(2)),
            }),
            steps: workload.steps.clone(),
            middleware: Vec::new(),
            guard: Vec::new(),
            resolve: Vec::new(),
            extract: Vec::new(),
            handler: vec![StepId(0)],
            dispose: None,
            expect: None,
            lines: BTreeMap::new(),
        }
    );
    let custom =
        |table: &str| check_accepted(&format!("profile = 'custom'\n{table}{HANDLER}"), &[]);
    assert_eq!(custom("").settlement, None);
    assert_eq!(custom("[settlement]").settlement, workload.settlement);
}

#[test]
fn keys_outside_steps_know_their_lines() {
    let text =
        "[budget]\ntotal = '2s'\n[expect]\ncodes.BUSY = 0\n[[expect.gap]]\nkind = 'thread'\n";
    let workload = check_accepted(&format!("{text}{HANDLER}"), &["load.deliveries=3"]);
    let lines = [
        ("budget.total", 2),
        ("expect.codes.BUSY", 4),
        ("expect.gap.1", 5),
        ("load.deliveries", 0),
    ];
    assert_eq!(workload.lines, lines.map(|(key, line)| (key.to_owned(), line)).into());
}

#[test]
fn a_file_that_cannot_be_read_as_text_is_refused() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, b"name = 'a'\nname = '\xff'\n").expect("the folder can be written");
    let shown = file::load(&path, &[]).unwrap_err().to_string();
    assert!(shown.contains("bad.toml:2:9: the byte 0xff is no UTF-8"), "{shown}");
    let shown = file::load(folder.path(), &[]).unwrap_err().to_string();
    assert!(shown.contains("the file cannot be read"), "{shown}");
    let shown = file::load(&folder.path().join("none.toml"), &[]).unwrap_err().to_string();
    assert!(shown.contains("none.toml: the file cannot be read"), "{shown}");
    std::fs::write(&path, HANDLER).expect("the folder can be written");
    assert!(file::load(&path, &[]).is_ok());
}

/// Takes the real clock: a check that compares all with all would take minutes here.
#[test]
fn a_file_of_a_megabyte_is_checked_fast() {
    let step = |number| {
        format!("[[handler]]\nname = 's{number}'\nkind = 'io'\nop = 'sleep'\nfor = '1ms'\n")
    };
    let sound: String = (0..16_000).map(step).collect();
    let start = Instant::now();
    assert_eq!(check_accepted(&sound, &[]).steps.len(), 16_000);
    let faulty = sound.replace("op =", "opp =").replace("name", "breaker");
    assert_eq!(parse(&faulty, &[]).unwrap_err().len(), 32_000);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn any_text_is_a_workload_or_has_faults(text in "(?s).{0,200}", setting in "(?s).{0,40}") {
        if let Err(faults) = parse(&text, &[&setting]) {
            prop_assert!(!faults.render(true).is_empty());
        }
    }

    /// Words of a sound file in another order come closer to the checks than noise does.
    #[test]
    fn any_words_are_a_workload_or_have_faults(
        lines in proptest::collection::vec((0_usize..70, 0_usize..70), 1..40),
        setting in "(handler|load|budget|scope|expect|steps|copy|for|\\.|=|\\{|\\}|\\[|\\]|'|\"|1s|1){1,12}",
    ) {
        let words: Vec<_> = FULL.lines().collect();
        let mut text = String::new();
        for (left, right) in lines {
            let left = words[left % words.len()].split('=').next().unwrap_or_default();
            let right = words[right % words.len()];
            text.push_str(&match right.split_once('=') {
                Some((_, value)) if !left.starts_with('[') => format!("{left}={value}\n"),
                _ => format!("{right}\n"),
            });
        }
        for text in [&text, FULL] {
            if let Err(faults) = parse(text, &[&setting]) {
                prop_assert!(!faults.render(false).is_empty());
            }
        }
    }
}
