//! Checking a workload of a megabyte, beside what `toml` alone needs to parse it into types.
//!
//! The check keeps spans, collects every fault and builds the workload; the peer only builds types.
//! CPU time, interleaved, medians.

use std::path::Path;
use std::time::Duration;

use deadline_run::workload;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

const ROUNDS: usize = 15;

/// The peer's types: as loose as they can be and still be types.
#[derive(Deserialize)]
#[allow(dead_code, reason = "they are only built")]
struct File {
    budget: Budget,
    handler: Vec<Step>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "they are only built")]
struct Budget {
    total: String,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "they are only built")]
struct Step {
    name: String,
    kind: String,
    op: Option<String>,
    #[serde(rename = "for")]
    duration: Option<String>,
    timeout: Option<String>,
    share: Option<f64>,
    optional: Option<bool>,
    steps: Option<Vec<Step>>,
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn megabyte() -> String {
    let mut text = String::from("[budget]\ntotal = \"30s\"\n");
    let mut number = 0;
    while text.len() < 1 << 20 {
        number += 1;
        text += &format!(
            "[[handler]]\nname = \"sleep-{number}\"\nkind = \"io\"\nop = \"sleep\"\nfor = \"1ms\"\n\
             timeout = \"2s\"\nshare = 0.5\noptional = true\n\n[[handler]]\nname = \"all-{number}\"\n\
             kind = \"parallel\"\nsteps = [\n  {{ name = \"one-{number}\", kind = \"cpu\", for = \"1ms\" }},\n  \
             {{ name = \"two-{number}\", kind = \"cooperative\", for = \"5ms\" }},\n]\n\n"
        );
    }
    text
}

fn main() {
    let text = megabyte();
    let path = Path::new("megabyte.toml");
    let (mut checked, mut parsed) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let before = cpu();
        let workload = workload::file::parse(path, &text, &[]).expect("it is valid");
        checked.push(cpu() - before);
        let steps = workload.steps.len();
        // Or the peer would begin with memory that is already there.
        drop(workload);
        let before = cpu();
        let file: File = toml::from_str(&text).expect("it is valid");
        parsed.push(cpu() - before);
        assert!(steps > file.handler.len());
    }
    checked.sort_unstable();
    parsed.sort_unstable();
    let (checked, parsed) = (checked[ROUNDS / 2], parsed[ROUNDS / 2]);
    println!("a workload of {} bytes, CPU time, medians of {ROUNDS} rounds", text.len());
    println!("  toml into types  {parsed:>8.1?}  1.00");
    println!(
        "  check            {checked:>8.1?}  {:.2}",
        checked.as_secs_f64() / parsed.as_secs_f64()
    );
}
