//! The keys of a workload file: the one table that validation, advice and reference are made from.
//!
//! Each key states its shape with its range, its default, what it means, and whether this version
//! supports it. Keys of a later version stand here too, so that a file which uses one is refused in
//! plain words, and not as if it were misspelt. What depends on two keys at once is no business
//! of this table; `check` knows it.

use std::time::Duration;

use crate::duration::LONGEST;

/// One key of a table.
#[derive(Debug)]
pub struct Key {
    /// As written in the file.
    pub name: &'static str,
    /// What its value may be.
    pub shape: Shape,
    /// What holds without it.
    pub otherwise: Otherwise,
    /// Whether this version supports it.
    pub since: Since,
    /// What it means, in one line.
    pub doc: &'static str,
}

/// Which version supports something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// This one.
    Now,
    /// A later one; until then its use is refused.
    Later,
}

/// What holds when a key is absent.
#[derive(Clone, Copy, Debug)]
pub enum Otherwise {
    /// Nothing can: it must be given.
    Required,
    /// Nothing: the feature is not used.
    Absent,
    /// What the sentence says; computed from other keys.
    Says(&'static str),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A number.
    Number(f64),
    /// A span of time.
    Time(Duration),
    /// A word.
    Word(&'static str),
}

/// What a value may be.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Any text.
    Text,
    /// A text that names something: not empty, one line.
    Name,
    /// True or false.
    Flag,
    /// A whole number in a range, ends included.
    Whole { least: u64, most: u64 },
    /// A number in a range, ends included.
    Number { least: f64, most: f64 },
    /// A span of time in a range, ends included.
    Time { least: Duration, most: Duration },
    /// So many bytes, `4KiB`.
    Size,
    /// So many in a second or a minute, `50/s`.
    Rate,
    /// One of a few words.
    Word(&'static [Word]),
    /// A list of values of one shape.
    List(&'static Shape),
    /// A table.
    Section(&'static Section),
    /// An array of tables.
    Sections(&'static Section),
    /// A table with keys of the user's own, and values of one shape.
    Map(&'static Shape),
    /// A table whose other keys depend on its `kind`.
    Step(&'static Kinds),
    /// A list, or an array of tables, of those.
    Steps(&'static Kinds),
    /// A comparison with what a run shows.
    Bound(Measure),
    /// The first of these that takes this type of value.
    OneOf(&'static [Shape]),
    /// A form of the value that only a later version supports.
    Later(&'static Shape),
    /// Whatever it is, a later version knows.
    Anything,
}

/// What an expectation compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A count.
    Count,
    /// A span of time.
    Time,
    /// How the run ended.
    Ending,
}

/// One of the words that a value may be.
#[derive(Debug)]
pub struct Word {
    /// As written in the file.
    pub word: &'static str,
    /// Whether this version supports it.
    pub since: Since,
    /// What it means, in one line.
    pub doc: &'static str,
}

/// The keys of one table.
#[derive(Debug)]
pub struct Section {
    /// As messages name it, `[budget]`.
    pub title: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// Tables whose keys depend on their `kind`.
#[derive(Debug)]
pub struct Kinds {
    /// As messages name one, `step`.
    pub title: &'static str,
    /// The keys that each kind has.
    pub common: &'static [Key],
    /// The kinds.
    pub kinds: &'static [Kind],
}

/// One kind, and the keys that only it has.
#[derive(Debug)]
pub struct Kind {
    /// As written in the file.
    pub word: &'static str,
    /// Whether this version supports it.
    pub since: Since,
    /// What it does, in one line.
    pub doc: &'static str,
    /// Its keys beside the common ones.
    pub keys: &'static [Key],
}

const fn key(name: &'static str, shape: Shape, otherwise: Otherwise, doc: &'static str) -> Key {
    Key { name, shape, otherwise, since: Since::Now, doc }
}

const fn later(name: &'static str, shape: Shape, otherwise: Otherwise, doc: &'static str) -> Key {
    Key { name, shape, otherwise, since: Since::Later, doc }
}

const fn word(word: &'static str, doc: &'static str) -> Word {
    Word { word, since: Since::Now, doc }
}

const fn later_word(word: &'static str, doc: &'static str) -> Word {
    Word { word, since: Since::Later, doc }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const fn whole(least: u64, most: u64) -> Shape {
    Shape::Whole { least, most }
}

/// The largest whole number that TOML can write.
const MOST: u64 = i64::MAX as u64;
/// The most messages of a run.
pub const MOST_DELIVERIES: u64 = 10_000_000;
const ANY_TIME: Shape = Shape::Time { least: Duration::ZERO, most: LONGEST };
/// For what would never end, or never begin, if it were nothing.
const SOME_TIME: Shape = Shape::Time { least: Duration::from_micros(1), most: LONGEST };
const SHARE: Shape = Shape::Number { least: 0.0, most: 1.0 };
const WORDS: Shape = Shape::List(&Shape::Text);

use Otherwise::{Absent, Required, Says};

/// The file itself.
pub static ROOT: Section = Section {
    title: "the file",
    keys: &[
        key("name", Shape::Name, Says("the file's stem"), "names the workload in reports"),
        key("description", Shape::Text, Absent, "what the workload shows and what to expect"),
        key(
            "profile",
            Shape::Word(PROFILES),
            Otherwise::Word("queue"),
            "whose rules and ranges apply",
        ),
        key(
            "observe",
            ANY_TIME,
            Otherwise::Time(secs(2)),
            "how long to look for late receipts after the last due instant",
        ),
        key("repeat", whole(1, 1_000), Otherwise::Whole(1), "runs of the whole workload"),
        key("budget", Shape::Section(&BUDGET), Says("its defaults"), "what each delivery may use"),
        key(
            "runtime",
            Shape::Section(&RUNTIME),
            Says("its defaults"),
            "the threads that the workload gets",
        ),
        key(
            "load",
            Shape::Section(&LOAD),
            Says("its defaults"),
            "how many deliveries, and how many at once",
        ),
        key(
            "shutdown",
            Shape::Section(&SHUTDOWN),
            Says("only on a signal, within 30s"),
            "stops the run in its midst",
        ),
        key(
            "settlement",
            Shape::Section(&SETTLEMENT),
            Says("its defaults; with profile custom nothing is settled"),
            "how deliveries are acknowledged",
        ),
        key(
            "middleware",
            Shape::Sections(&MIDDLEWARE),
            Absent,
            "what wraps the course, outermost first",
        ),
        key("guard", Shape::Steps(&STEP), Absent, "steps that may refuse the delivery"),
        key("resolve", Shape::Steps(&STEP), Absent, "steps that find what the handler needs"),
        key("extract", Shape::Steps(&STEP), Absent, "steps that take the message apart"),
        key(
            "handler",
            Shape::Steps(&STEP),
            Says("needed, unless there is a service"),
            "the work itself, in sequence",
        ),
        key("scope", Shape::Section(&SCOPE), Absent, "the delivery's resources"),
        key(
            "expect",
            Shape::Section(&EXPECT),
            Absent,
            "what the workload promises of its own run, which makes it a test",
        ),
        later(
            "service",
            Shape::Sections(&SERVICE),
            Absent,
            "a program that runs beside the deliveries",
        ),
        later("check", Shape::Sections(&CHECK), Absent, "what must hold after the last receipt"),
        key(
            "peers",
            Shape::Map(&Shape::Section(&PEER)),
            Absent,
            "peers on loopback that misbehave as told",
        ),
        later(
            "breakers",
            Shape::Map(&Shape::Section(&BREAKER)),
            Absent,
            "circuit breakers, by name",
        ),
        later(
            "bulkheads",
            Shape::Map(&Shape::Section(&BULKHEAD)),
            Absent,
            "limits of concurrency, by name",
        ),
        later("tiers", Shape::Map(&Shape::Anything), Absent, "classes of time-outs, by name"),
        later(
            "compare",
            Shape::Section(&COMPARE),
            Absent,
            "the matrix of configurations to compare",
        ),
    ],
};

static PROFILES: &[Word] = &[
    word("queue", "a message from a queue: total 100ms to 900s"),
    later_word(
        "websocket",
        "a message on a connection: total 1s to 300s, and a cleanup budget of its own",
    ),
    word(
        "custom",
        "anything else: total 1ms to 24h, settled with nobody unless there is a [settlement]",
    ),
];

pub static BUDGET: Section = Section {
    title: "[budget]",
    keys: &[
        key(
            "total",
            ANY_TIME,
            Otherwise::Time(secs(30)),
            "execution and cleanup of a delivery together",
        ),
        key(
            "reserve",
            SOME_TIME,
            Says("min(total / 4, 1s)"),
            "the tail of it that is kept for cleanup; less than total",
        ),
        key(
            "cooperative_window",
            ANY_TIME,
            Otherwise::Time(millis(250)),
            "the longest cooperative window",
        ),
        later(
            "cleanup_timeout",
            SOME_TIME,
            Says("10s"),
            "what callbacks share, with profile websocket",
        ),
    ],
};

pub static RUNTIME: Section = Section {
    title: "[runtime]",
    keys: &[
        key(
            "workers",
            whole(1, 1_024),
            Otherwise::Whole(2),
            "async worker threads of the workload",
        ),
        key(
            "blocking_threads",
            whole(1, 16_384),
            Otherwise::Whole(64),
            "the most threads of shared blocking work",
        ),
    ],
};

pub static LOAD: Section = Section {
    title: "[load]",
    keys: &[
        key(
            "deliveries",
            whole(1, MOST_DELIVERIES),
            Says("1, or as `for` says"),
            "how many messages",
        ),
        key(
            "concurrency",
            whole(1, 1_000_000),
            Says("1, with a rate 1024"),
            "how many execute at once; the rest wait",
        ),
        key("seed", whole(0, MOST), Otherwise::Whole(7), "where all draws begin"),
        key("for", SOME_TIME, Absent, "how long messages arrive at that rate, instead of how many"),
        key(
            "rate",
            Shape::Rate,
            Says("as fast as concurrency allows"),
            "how many arrive in a second or minute",
        ),
        key("arrivals", Shape::Word(ARRIVALS), Says("even"), "how arrivals are spread"),
        later("http", Shape::Text, Absent, "short for a handler that gets this URL"),
        later(
            "per_connection",
            whole(1, 10_000_000),
            Says("what deliveries / concurrency needs"),
            "messages on each connection, with profile websocket",
        ),
        later(
            "after_stop",
            SOME_TIME,
            Says("to the load's own end"),
            "how long the load goes on past the stop of the services",
        ),
    ],
};

static ARRIVALS: &[Word] =
    &[word("even", "at equal distances"), word("poisson", "at random, by exponential distances")];

pub static SHUTDOWN: Section = Section {
    title: "[shutdown]",
    keys: &[
        key("at", ANY_TIME, Says("only on a signal"), "when it begins"),
        key(
            "after_deliveries",
            whole(1, MOST_DELIVERIES),
            Absent,
            "begins when so many have ended",
        ),
        key(
            "from",
            Shape::Word(SHUTDOWN_FROM),
            Says("ready with services, else start"),
            "where `at` counts from",
        ),
        key(
            "deadline",
            SOME_TIME,
            Otherwise::Time(secs(30)),
            "the root budget, from its beginning",
        ),
        key(
            "mode",
            Shape::Word(SHUTDOWN_MODES),
            Otherwise::Word("graceful"),
            "whether the started may go on",
        ),
        key(
            "admission",
            Shape::Word(ADMISSION),
            Says("keep with services, else close"),
            "whether deliveries still arrive",
        ),
    ],
};

static SHUTDOWN_FROM: &[Word] = &[
    word("start", "the run's start"),
    later_word("ready", "the instant at which the last service is ready"),
];
static SHUTDOWN_MODES: &[Word] = &[
    word("graceful", "until the root's graceful cutoff"),
    word("forced", "all are signalled at once"),
];
static ADMISSION: &[Word] =
    &[word("close", "none is admitted any more"), word("keep", "clients go on knocking")];

pub static SETTLEMENT: Section = Section {
    title: "[settlement]",
    keys: &[
        key("broker", Shape::Word(BROKERS), Otherwise::Word("memory"), "who is told"),
        later("url", Shape::Text, Absent, "where a real broker is"),
        later("queue", Shape::Name, Absent, "the queue of a real broker"),
        key("timeout", SOME_TIME, Otherwise::Time(secs(5)), "how long a confirmation may take"),
        key(
            "redeliveries",
            whole(0, 10_000),
            Otherwise::Whole(0),
            "how often a message may be delivered again",
        ),
        key(
            "confirm_in",
            ANY_TIME,
            Otherwise::Time(millis(2)),
            "how long the memory broker takes to confirm",
        ),
        key("confirm", Shape::Flag, Otherwise::Flag(true), "false: the confirmation never comes"),
    ],
};

static BROKERS: &[Word] = &[
    word("memory", "a broker inside this program"),
    later_word("rabbitmq", "RabbitMQ, by url and queue"),
    later_word("nats", "NATS, by url and queue"),
];

static MIDDLEWARE: Section = Section {
    title: "[[middleware]]",
    keys: &[
        key("name", Shape::Name, Says("middleware-N"), "names it in reports"),
        key("before", Shape::Step(&STEP), Absent, "runs on the way in"),
        key(
            "after",
            Shape::Step(&STEP),
            Absent,
            "runs on the way out, when the course was not cut",
        ),
        key(
            "terminate",
            Shape::Step(&STEP),
            Absent,
            "runs instead of `after` when the course was cut",
        ),
    ],
};

static SCOPE: Section = Section {
    title: "[scope]",
    keys: &[key(
        "dispose",
        Shape::Step(&STEP),
        Required,
        "disposes of the delivery's resources, last of all",
    )],
};

/// A step, wherever it stands.
pub static STEP: Kinds = Kinds {
    title: "step",
    common: &[
        key("name", Shape::Name, Says("stage-N, nested stage-N-M"), "unique in the file"),
        key(
            "timeout",
            Shape::OneOf(&[SOME_TIME, Shape::Later(&Shape::Section(&DYNAMIC_TIMEOUT))]),
            Absent,
            "narrows what the budget leaves",
        ),
        key("poll_budget", whole(1, MOST), Absent, "polls granted before the step is dropped"),
        later("retry", Shape::Section(&RETRY), Absent, "tries again after a retryable failure"),
        later("breaker", Shape::Name, Absent, "the circuit breaker that guards it"),
        later("bulkhead", Shape::Name, Absent, "the bulkhead that it takes a slot of"),
        later("fallback", Shape::Step(&STEP), Absent, "the step that answers its failure or panic"),
        key(
            "optional",
            Shape::Flag,
            Otherwise::Flag(false),
            "a failure degrades the result instead of failing it",
        ),
        key("share", SHARE, Otherwise::Number(1.0), "the share of deliveries that run it"),
        key(
            "fail",
            Shape::OneOf(&[Shape::Name, Shape::Section(&FAIL)]),
            Absent,
            "the failure at the end of its own work; a bare code is permanent",
        ),
        key(
            "panic",
            Shape::OneOf(&[Shape::Flag, Shape::Section(&PANIC)]),
            Otherwise::Flag(false),
            "panics at the end of its own work",
        ),
        key("on_drop", Shape::Step(&DESTRUCTOR), Absent, "what its destructor does"),
        key("detach", Shape::Flag, Otherwise::Flag(false), "started and not awaited"),
    ],
    kinds: &[
        Kind {
            word: "cpu",
            since: Since::Now,
            doc: "computes; without yield_every it cannot be cut",
            keys: &[
                key(
                    "for",
                    SPAN,
                    Says("needed, unless iterations is given"),
                    "CPU time of its thread",
                ),
                key(
                    "iterations",
                    whole(1, MOST),
                    Absent,
                    "rounds of the computation, instead of a time",
                ),
                key(
                    "yield_every",
                    SOME_TIME,
                    Says("never"),
                    "yields to the runtime after each so much CPU time",
                ),
                key("on", Shape::Word(CPU_PLACES), Otherwise::Word("worker"), "where it computes"),
            ],
        },
        Kind {
            word: "cooperative",
            since: Since::Now,
            doc: "works in slices, yields between them, looks at the signal",
            keys: &[
                key("for", SPAN, Required, "how long it works"),
                key("slice", SOME_TIME, Otherwise::Time(millis(1)), "the length of a slice"),
                key(
                    "on_signal",
                    Shape::Word(ON_SIGNAL),
                    Otherwise::Word("return"),
                    "what it does when it has seen the signal",
                ),
                key(
                    "code",
                    Shape::Name,
                    Says("INTERRUPTED"),
                    "its failure with on_signal = \"fail\"",
                ),
                key(
                    "wind_down",
                    ANY_TIME,
                    Otherwise::Time(Duration::ZERO),
                    "how long it goes on working after that",
                ),
            ],
        },
        Kind {
            word: "blocking",
            since: Since::Now,
            doc: "blocks a thread off the async workers",
            keys: &[
                key("for", SPAN, Required, "how long it blocks"),
                key("op", Shape::Word(BLOCKING_OPS), Otherwise::Word("sleep"), "in which way"),
                key(
                    "looks_every",
                    SOME_TIME,
                    Says("never"),
                    "looks at the signal so often, and returns early",
                ),
                key("pool", Shape::Word(POOLS), Otherwise::Word("shared"), "on whose thread"),
            ],
        },
        Kind {
            word: "io",
            since: Since::Now,
            doc: "sleeps, or uses real sockets and files",
            keys: &[
                key("op", Shape::Word(IO_OPS), Required, "what it does"),
                key("for", SPAN, Says("needed with op sleep"), "how long it sleeps"),
                key(
                    "url",
                    Shape::Text,
                    Absent,
                    "of http and tcp; peer:NAME reaches a peer of the file",
                ),
                key(
                    "path",
                    Shape::Text,
                    Absent,
                    "of read and write; relative to the file's folder",
                ),
                key("connect_timeout", SOME_TIME, Absent, "until connected"),
                key(
                    "read_timeout",
                    SOME_TIME,
                    Absent,
                    "from the end of the request to the first byte",
                ),
                key("idle_timeout", SOME_TIME, Absent, "between bytes"),
                key("method", Shape::Name, Says("GET, or POST with a body"), "of http"),
                key("body", Shape::Text, Absent, "of http"),
                key("send", Shape::Text, Absent, "of tcp"),
                key("expect_status", whole(200, 599), Says("2xx"), "of http"),
                later(
                    "keep_alive",
                    Shape::Flag,
                    Says("false"),
                    "keeps one http connection per slot",
                ),
                key("hold", SOME_TIME, Absent, "keeps a tcp connection open that long"),
                key("read", Shape::Word(TCP_READS), Absent, "until when tcp reads"),
                key("size", Shape::Size, Says("4KiB"), "how much is written, 1MiB"),
                key("sync", Shape::Flag, Otherwise::Flag(false), "syncs what was written"),
                key("keep", Shape::Flag, Otherwise::Flag(false), "leaves what was written"),
            ],
        },
        Kind {
            word: "command",
            since: Since::Later,
            doc: "a real process; its tree and pipes are obligations",
            keys: &[
                key("run", WORDS, Required, "the program and its arguments"),
                key("dir", Shape::Text, Says("the file's folder"), "where it runs"),
                key("env", Shape::Map(&Shape::Text), Absent, "added to the environment"),
                key("stdin", Shape::Text, Says("the null device"), "what it reads"),
                key("stop", STOPS, Absent, "how it is asked to stop"),
                key("may_survive", WORDS, Absent, "processes that are declared to outlive it"),
                key("exit", EXITS, Says("0"), "the statuses that are a success"),
                key("stdout", Shape::Text, Absent, "a regular expression that its output matches"),
                key("stdout_bytes", Shape::Bound(Measure::Count), Absent, "how much it prints"),
                key(
                    "pid1",
                    Shape::Flag,
                    Says("false"),
                    "runs it as process 1 of its own pid namespace",
                ),
            ],
        },
        Kind {
            word: "polls",
            since: Since::Now,
            doc: "pending so many times, waking itself each time, then success",
            keys: &[key("count", whole(0, MOST), Required, "how many times it is pending")],
        },
        Kind {
            word: "sequence",
            since: Since::Now,
            doc: "its steps, one after the other",
            keys: &[key("steps", Shape::Steps(&STEP), Required, "in order")],
        },
        Kind {
            word: "parallel",
            since: Since::Now,
            doc: "its steps, side by side in one frame",
            keys: &[
                key("steps", Shape::Steps(&STEP), Required, "the branches"),
                key("wait", Shape::Word(WAITS), Otherwise::Word("all"), "when it returns"),
            ],
        },
        Kind {
            word: "choice",
            since: Since::Now,
            doc: "one of its steps, drawn",
            keys: &[
                key("steps", Shape::Steps(&STEP), Required, "what there is to choose from"),
                key(
                    "weights",
                    Shape::List(&Shape::Number { least: 0.0, most: 1e9 }),
                    Says("all the same"),
                    "how often each is drawn; as many as steps",
                ),
            ],
        },
    ],
};

/// What a destructor does.
static DESTRUCTOR: Kinds = Kinds {
    title: "destructor",
    common: &[key(
        "panic",
        Shape::OneOf(&[Shape::Flag, Shape::Section(&PANIC)]),
        Otherwise::Flag(false),
        "panics at its end",
    )],
    kinds: &[
        Kind {
            word: "cpu",
            since: Since::Now,
            doc: "computes",
            keys: &[
                key(
                    "for",
                    SPAN,
                    Says("needed, unless iterations is given"),
                    "CPU time of its thread",
                ),
                key(
                    "iterations",
                    whole(1, MOST),
                    Absent,
                    "rounds of the computation, instead of a time",
                ),
            ],
        },
        Kind {
            word: "blocking",
            since: Since::Now,
            doc: "blocks the thread that drops the frame",
            keys: &[
                key("for", SPAN, Required, "how long it blocks"),
                key("op", Shape::Word(BLOCKING_OPS), Otherwise::Word("sleep"), "in which way"),
            ],
        },
    ],
};

/// A fixed time or a distribution; only `for` takes the latter.
const SPAN: Shape = Shape::OneOf(&[ANY_TIME, Shape::Section(&DISTRIBUTION)]);

static DISTRIBUTION: Section = Section {
    title: "a distribution",
    keys: &[
        key("min", ANY_TIME, Absent, "the shortest, of a uniform one"),
        key("max", ANY_TIME, Absent, "the longest, of a uniform one; cuts off any other"),
        key("mean", SOME_TIME, Absent, "the mean of an exponential one"),
        key("p50", SOME_TIME, Absent, "the median of a log-normal one"),
        key("p99", SOME_TIME, Absent, "of a log-normal one; longer than p50"),
        later("recorded", Shape::Text, Absent, "an earlier report to draw from"),
        key("step", Shape::Name, Absent, "the step of that report"),
    ],
};

static DYNAMIC_TIMEOUT: Section = Section {
    title: "a dynamic timeout",
    keys: &[
        key("share", SHARE, Absent, "of what the budget leaves"),
        key("p99_of", Shape::Text, Absent, "what was measured of a step"),
        key("tier", Shape::Name, Absent, "one of [tiers]"),
    ],
};

static FAIL: Section = Section {
    title: "fail",
    keys: &[
        key("code", Shape::Name, Required, "the step's word for it"),
        key(
            "retryable",
            Shape::Flag,
            Otherwise::Flag(false),
            "whether another attempt could succeed",
        ),
        key("share", SHARE, Otherwise::Number(1.0), "the share of executions that fail"),
        key(
            "first",
            whole(1, u32::MAX as u64),
            Says("all"),
            "only the first so many executions for a message may fail",
        ),
    ],
};

static PANIC: Section = Section {
    title: "panic",
    keys: &[key("share", SHARE, Required, "the share of executions that panic")],
};

static RETRY: Section = Section {
    title: "retry",
    keys: &[
        key("attempts", whole(1, 1_000_000), Required, "how many in all"),
        key("backoff", Shape::Word(BACKOFFS), Otherwise::Word("exponential"), "how waits grow"),
        key("base", ANY_TIME, Absent, "the first wait"),
        key("cap", ANY_TIME, Absent, "the longest wait"),
        key("jitter", Shape::Flag, Otherwise::Flag(true), "takes a drawn part of each wait"),
        key(
            "timeout_per",
            Shape::Word(TIMEOUT_PER),
            Otherwise::Word("attempt"),
            "what the step's timeout is for",
        ),
    ],
};

static BACKOFFS: &[Word] =
    &[word("constant", "always base"), word("exponential", "doubled each time")];
static TIMEOUT_PER: &[Word] =
    &[word("attempt", "each attempt"), word("all", "all attempts together")];
static CPU_PLACES: &[Word] =
    &[word("worker", "on the worker that polls it"), word("thread", "on a thread of its own")];
static ON_SIGNAL: &[Word] = &[
    word("return", "ends early, with success"),
    word("fail", "ends early, with a failure"),
    word("finish", "sees it and goes on to its end"),
    word("ignore", "never looks"),
];
static BLOCKING_OPS: &[Word] = &[
    word("sleep", "sleeps in the kernel"),
    word("spin", "computes"),
    word("lock", "waits for a lock that is not given to it"),
    word("fsync", "writes and syncs a temporary file"),
    word("dns", "looks up a name, and the answer takes that long"),
];
static POOLS: &[Word] = &[word("shared", "one of the runtime's"), word("own", "one of its own")];
static IO_OPS: &[Word] = &[
    word("sleep", "sleeps on the runtime's timer"),
    word("tcp", "a connection"),
    word("http", "a request"),
    word("read", "reads a file"),
    word("write", "writes a file"),
];
static TCP_READS: &[Word] = &[word("first", "the first bytes"), word("end", "end of the stream")];
static WAITS: &[Word] = &[
    word("all", "when each branch has"),
    word("first", "when the first has; the others are dropped"),
];

/// The operations of an `io` step that have each of its keys; what is not listed belongs to all.
pub static IO_KEYS: &[(&str, &[&str])] = &[
    ("for", &["sleep"]),
    ("url", &["tcp", "http"]),
    ("path", &["read", "write"]),
    ("connect_timeout", &["tcp", "http"]),
    ("read_timeout", &["tcp", "http"]),
    ("idle_timeout", &["tcp", "http"]),
    ("method", &["http"]),
    ("body", &["http"]),
    ("send", &["tcp"]),
    ("expect_status", &["http"]),
    ("keep_alive", &["http"]),
    ("hold", &["tcp"]),
    ("read", &["tcp"]),
    ("size", &["write"]),
    ("sync", &["write"]),
    ("keep", &["write"]),
];

static BREAKER: Section = Section {
    title: "[breakers.NAME]",
    keys: &[
        key("failure_ratio", SHARE, Otherwise::Number(0.5), "the share of failures that opens it"),
        key("minimum", whole(1, 1_000_000), Otherwise::Whole(10), "executions before it may open"),
        key("window", SOME_TIME, Otherwise::Time(secs(30)), "how far back it counts"),
        key("open_for", SOME_TIME, Otherwise::Time(secs(60)), "how long it stays open"),
        key("half_open", whole(1, 1_000_000), Otherwise::Whole(1), "trials before it closes"),
    ],
};

static BULKHEAD: Section = Section {
    title: "[bulkheads.NAME]",
    keys: &[
        key("slots", whole(1, 1_000_000), Otherwise::Whole(10), "how many at once"),
        key("queue", whole(0, 10_000_000), Otherwise::Whole(0), "how many may wait"),
    ],
};

static PEER: Section = Section {
    title: "[peers.NAME]",
    keys: &[
        key(
            "answer_after",
            ANY_TIME,
            Otherwise::Time(Duration::ZERO),
            "from the end of the request",
        ),
        key("status", whole(200, 599), Otherwise::Whole(200), "of its answer"),
        key("body", whole(0, MOST), Otherwise::Whole(0), "bytes of its answer"),
        key("drip", Shape::Section(&DRIP), Absent, "sends the body in pieces"),
        key("reset_after", whole(0, MOST), Absent, "resets after so many bytes of body"),
        key("close_after", whole(0, MOST), Absent, "closes after so many bytes of body"),
        key("refuse", Shape::Flag, Otherwise::Flag(false), "refuses connections"),
        key(
            "accept_after",
            ANY_TIME,
            Otherwise::Time(Duration::ZERO),
            "how long it takes to accept",
        ),
    ],
};

static DRIP: Section = Section {
    title: "drip",
    keys: &[
        key("bytes", whole(1, MOST), Required, "of each piece"),
        key("every", SOME_TIME, Required, "between pieces"),
        key("stop_after", whole(0, MOST), Absent, "bytes after which nothing comes"),
    ],
};

static SERVICE: Section = Section {
    title: "[[service]]",
    keys: &[
        key("name", Shape::Name, Says("service-N"), "names it in reports"),
        key("run", WORDS, Required, "the program and its arguments"),
        key("dir", Shape::Text, Says("the file's folder"), "where it runs"),
        key("env", Shape::Map(&Shape::Text), Absent, "added to the environment"),
        key("ready", Shape::Section(&READY), Says("at once"), "when it is ready"),
        key("stop", STOPS, Says("TERM to the leader"), "how it is asked to stop"),
        key("may_survive", WORDS, Absent, "processes that are declared to outlive it"),
        key("forks", Shape::Flag, Says("false"), "the service is a child of the program"),
        key("pid1", Shape::Flag, Says("false"), "runs it as process 1 of its own pid namespace"),
    ],
};

static READY: Section = Section {
    title: "ready",
    keys: &[
        key("port", whole(1, 65_535), Absent, "when somebody listens on it"),
        key("stdout", Shape::Text, Absent, "when this text is printed"),
        key("http", Shape::Text, Absent, "when this URL answers"),
        key("delay", ANY_TIME, Absent, "after so long"),
        key("within", SOME_TIME, Otherwise::Time(secs(10)), "how long it may take"),
    ],
};

const STOPS: Shape = Shape::OneOf(&[Shape::Section(&STOP), Shape::List(&Shape::Section(&STOP))]);
const EXITS: Shape = Shape::List(&Shape::OneOf(&[whole(0, 255), Shape::Text]));

static STOP: Section = Section {
    title: "stop",
    keys: &[
        key("signal", Shape::Name, Says("TERM"), "what is sent"),
        key("to", Shape::Word(STOP_TO), Says("leader"), "who gets it"),
        key("grace", SOME_TIME, Says("until the root deadline"), "how long it may take"),
        key("after", ANY_TIME, Absent, "how long after the stop began"),
        key("wait", ANY_TIME, Absent, "waits instead of sending"),
        key("run", WORDS, Absent, "runs a program instead of sending"),
        key(
            "exit",
            EXITS,
            Says("0, the signal, or 128 + its number"),
            "the statuses of a clean stop",
        ),
        key("last_signal", Shape::Name, Absent, "what is sent just before KILL"),
        key("continue", Shape::Flag, Says("false"), "sends CONT to stopped processes"),
    ],
};

static STOP_TO: &[Word] =
    &[word("leader", "the program itself"), word("group", "its process group")];

static CHECK: Section = Section {
    title: "[[check]]",
    keys: &[
        key("name", Shape::Name, Required, "names it in reports"),
        key("run", WORDS, Absent, "must end with status 0"),
        key("file", Shape::Text, Absent, "must be there"),
        key("bytes", Shape::Bound(Measure::Count), Absent, "how long the file must be"),
        key("contains", Shape::Text, Absent, "what the file must contain"),
        key("port_free", whole(1, 65_535), Absent, "a port that nobody may listen on"),
        key("lock_free", Shape::Text, Absent, "a file that nobody may hold locked"),
    ],
};

static COMPARE: Section = Section {
    title: "[compare]",
    keys: &[key(
        "vary",
        Shape::Map(&Shape::List(&Shape::Anything)),
        Absent,
        "values to try, by dotted key",
    )],
};

const COUNT: Shape = Shape::Bound(Measure::Count);
const COUNTS: Shape = Shape::Map(&COUNT);
const TIME: Shape = Shape::Bound(Measure::Time);

static EXPECT: Section = Section {
    title: "[expect]",
    keys: &[
        key("deliveries", COUNT, Absent, "deliveries, redeliveries included"),
        key("success", COUNT, Absent, "deliveries that succeeded"),
        key("failure", COUNT, Absent, "deliveries that failed"),
        key("panic", COUNT, Absent, "deliveries that panicked"),
        key("interrupted", COUNT, Absent, "deliveries that were cut off"),
        key("not_started", COUNT, Absent, "deliveries that never started"),
        key("proven", COUNT, Absent, "deliveries that have ended, with evidence"),
        key("late", COUNT, Absent, "deliveries of which something ended late"),
        key("unproven", COUNT, Absent, "deliveries of which something was not seen to end"),
        key("nothing_started", COUNT, Absent, "deliveries that opened nothing"),
        key("degraded", COUNT, Absent, "deliveries with a degraded result"),
        key("partial_effects", COUNT, Absent, "deliveries of which a step sent or wrote a part"),
        key(
            "unknown_effects",
            COUNT,
            Absent,
            "deliveries of which nobody said what came of what a step sent or wrote",
        ),
        key("elapsed", TIME, Absent, "the whole run"),
        key("ending", Shape::Bound(Measure::Ending), Absent, "how the run ended"),
        key("p50", TIME, Absent, "of delivery time"),
        key("p95", TIME, Absent, "of delivery time"),
        key("p99", TIME, Absent, "of delivery time"),
        key("max", TIME, Absent, "of delivery time"),
        key("codes", COUNTS, Absent, "failures by code"),
        key("gap", Shape::Sections(&EXPECT_GAP), Absent, "gaps that are meant to be there"),
        key("shutdown_time", TIME, Absent, "from its beginning to the end of the run"),
        later("in_flight", COUNTS, Absent, "what became of deliveries in flight at the stop"),
        later("after_stop", COUNTS, Absent, "what became of deliveries after the stop"),
        later("serves_for", TIME, Absent, "first refusal minus stop"),
        later(
            "services",
            Shape::Map(&Shape::Section(&EXPECT_SERVICE)),
            Absent,
            "how services ended",
        ),
    ],
};

/// The words that `ending` can be.
pub static ENDINGS: &[&str] = &["incomplete", "failed", "forced", "graceful"];

static EXPECT_GAP: Section = Section {
    title: "[[expect.gap]]",
    keys: &[
        key("step", Shape::Name, Says("any"), "the step that the gap names"),
        key("kind", Shape::Word(OBLIGATIONS), Says("any"), "the kind of the obligation"),
        key("state", Shape::Word(GAP_STATES), Says("any"), "late or unproven"),
        key("count", whole(0, MOST), Says("at least one"), "exactly so many"),
    ],
};

static OBLIGATIONS: &[Word] = &[
    word("execution", "the pipeline's frame"),
    word("task", "a task that a step spawned"),
    word("thread", "a thread that does blocking work"),
    word("callback", "a termination callback"),
    word("scope", "the disposal"),
    word("settlement", "the word to the broker"),
    later_word("process", "a process"),
    later_word("process_tree", "all that a process started"),
    later_word("pipe", "a pipe of a process"),
    later_word("port", "a port that was listened on"),
    word("connection", "a connection"),
];
static GAP_STATES: &[Word] =
    &[word("late", "the receipt came late"), word("unproven", "no receipt came")];

static EXPECT_SERVICE: Section = Section {
    title: "[expect.services.NAME]",
    keys: &[
        key("exit", COUNT, Absent, "its exit status"),
        key("killed", COUNT, Absent, "how many were killed"),
        key("survivors", COUNT, Absent, "processes left at the end of the grace"),
        key("ports_after", COUNT, Absent, "ports still listened on after the proof"),
    ],
};

impl Section {
    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

impl Kinds {
    /// The kind of that word.
    pub fn kind(&self, word: &str) -> Option<&'static Kind> {
        self.kinds.iter().find(|kind| kind.word == word)
    }

    /// The words of the kinds that have a key of that name.
    pub fn kinds_with(&self, name: &str) -> Vec<&'static str> {
        self.kinds
            .iter()
            .filter(|kind| kind.keys.iter().any(|key| key.name == name))
            .map(|kind| kind.word)
            .collect()
    }
}
