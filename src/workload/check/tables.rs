//! The tables of a workload that hold no steps: budget, threads, load, shutdown, broker.

use std::time::Duration;

use super::{Check, place_of, section, small};
use crate::duration::show;
use crate::timeline::Budget;
use crate::workload::walk::Given;
use crate::workload::{
    AdmissionPolicy, Load, Pace, Runtime, SettlementPolicy, ShutdownMode, ShutdownPlan, Spread,
    keys,
};

/// How many execute at once when a rate says how fast they come (SPEC section 6).
const PACED_CONCURRENCY: u32 = 1_024;

impl<'a> Check<'a> {
    pub(super) fn repeat(&mut self, root: &Given) {
        if root.whole("repeat").is_some_and(|repeat| repeat > 1) {
            let place = place_of(root, "repeat");
            self.fault(place, "`repeat` above 1 is not supported by this version yet");
        }
    }

    /// B3, and what reserve and window may be.
    pub(super) fn budget(&mut self, root: &Given, profile: Option<&'static str>) -> Budget {
        let given = section(root, "budget", &keys::BUDGET);
        let total = given.time("total");
        let reserve = given.time("reserve");
        if let (Some(profile), Some(total)) = (profile, total) {
            let (least, most) = total_range(profile);
            if !(least..=most).contains(&total) {
                let message = format!(
                    "budget.total is {}; with profile {profile} use {} to {}",
                    show(total),
                    show(least),
                    show(most)
                );
                self.fault(place_of(&given, "total"), message);
            } else if profile == "websocket" && total.subsec_nanos() != 0 {
                let message = format!(
                    "budget.total is {}; with profile websocket use whole seconds",
                    show(total)
                );
                self.fault(place_of(&given, "total"), message);
            }
        }
        if profile == Some("websocket") && given.mentions("reserve") {
            let message = "budget.reserve has no use with profile websocket, whose cleanup has a budget of its own; leave it out";
            self.fault(place_of(&given, "reserve"), message);
        } else if let (Some(total), Some(reserve)) = (total, reserve)
            && reserve >= total
        {
            let message = format!(
                "budget.reserve is {}, which leaves no time to work in a total of {}; use less than {}",
                show(reserve),
                show(total),
                show(total)
            );
            self.fault(place_of(&given, "reserve"), message);
        }
        if profile.is_some_and(|profile| profile != "websocket")
            && let Some(item) = given.get("cleanup_timeout")
        {
            self.fault(item.key_place(), "budget.cleanup_timeout belongs to profile websocket");
        }
        Budget {
            total: total.unwrap_or_default(),
            reserve,
            window_cap: given.time("cooperative_window").unwrap_or_default(),
        }
    }

    /// P15: how many, how fast, for how long.
    pub(super) fn load(&mut self, root: &Given) -> Load {
        let given = section(root, "load", &keys::LOAD);
        let written = given.whole("deliveries").map(|number| small(Some(number)));
        let during = given.time("for");
        let rate = given.rate("rate");
        if !given.mentions("rate") {
            for name in ["for", "arrivals"] {
                if let Some(item) = given.get(name) {
                    let message = format!(
                        "load.{name} says nothing without a load.rate, for example \"50/s\""
                    );
                    self.fault(item.key_place(), message);
                }
            }
        }
        if let (true, Some(item)) = (given.mentions("deliveries"), given.get("for")) {
            let message = "load.for and load.deliveries both say how many messages there are; leave out one of them";
            self.fault(item.key_place(), message);
        }
        let mut deliveries = written.unwrap_or(1);
        if let (Some(rate), Some(during)) = (rate, during) {
            // One that would arrive at the very end does not, nor does what rounding adds.
            let gaps = during.as_secs_f64() * rate.per_second();
            let expected = (gaps - 1e-6).ceil().max(1.0);
            if expected > keys::MOST_DELIVERIES as f64 {
                let message = format!(
                    "load.rate over {} is more than {} messages; lower load.rate or shorten load.for",
                    show(during),
                    keys::MOST_DELIVERIES
                );
                self.fault(place_of(&given, "for"), message);
            }
            deliveries = expected as u32;
        }
        let spread = match given.word("arrivals") {
            Some("poisson") => Spread::Poisson,
            _ => Spread::Even,
        };
        let pace = rate.map(|rate| Pace { rate, spread, during });
        let unpaced = if pace.is_some() { PACED_CONCURRENCY } else { 1 };
        let concurrency = given.whole("concurrency").map(|number| small(Some(number)));
        Load {
            deliveries,
            concurrency: concurrency.unwrap_or(unpaced),
            pace,
            seed: given.whole("seed").unwrap_or_default(),
        }
    }

    pub(super) fn settlement(
        &mut self,
        root: &Given,
        profile: Option<&'static str>,
    ) -> Option<SettlementPolicy> {
        if profile == Some("custom") && !root.mentions("settlement") {
            return None;
        }
        let given = section(root, "settlement", &keys::SETTLEMENT);
        if given.word("broker") == Some("memory") {
            for name in ["url", "queue"] {
                if let Some(item) = given.get(name) {
                    let message = format!("settlement.{name} has no use with the memory broker");
                    self.fault(item.key_place(), message);
                }
            }
        }
        let confirms = given.flag("confirm").unwrap_or(true);
        if let (false, Some(item)) = (confirms, given.get("confirm_in")) {
            let message = "settlement.confirm_in says when and `confirm = false` never; leave out one of them";
            self.fault(item.key_place(), message);
        }
        Some(SettlementPolicy {
            timeout: given.time("timeout").unwrap_or_default(),
            redeliveries: small(given.whole("redeliveries")),
            confirm_in: given.time("confirm_in").filter(|_| confirms),
        })
    }
}

pub(super) fn runtime(given: &Given) -> Runtime {
    Runtime {
        workers: small(given.whole("workers")) as usize,
        blocking_threads: small(given.whole("blocking_threads")) as usize,
    }
}

pub(super) fn shutdown(given: &Given) -> ShutdownPlan {
    let mode = given.word("mode");
    let admission = given.word("admission");
    ShutdownPlan {
        at: given.time("at"),
        after_deliveries: given.whole("after_deliveries").map(|number| small(Some(number))),
        deadline: given.time("deadline").unwrap_or_default(),
        mode: match mode {
            Some("forced") => ShutdownMode::Forced,
            _ => ShutdownMode::Graceful,
        },
        admission: match admission {
            Some("keep") => AdmissionPolicy::Keep,
            _ => AdmissionPolicy::Close,
        },
    }
}

/// B3.
fn total_range(profile: &str) -> (Duration, Duration) {
    match profile {
        "websocket" => (Duration::from_secs(1), Duration::from_secs(300)),
        "custom" => (Duration::from_millis(1), Duration::from_secs(24 * 3_600)),
        _ => (Duration::from_millis(100), Duration::from_secs(900)),
    }
}
