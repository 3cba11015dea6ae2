//! Tyche's report of a run, as text: Tyche's figures first, then additional ones.

use std::fmt::Write;

use leafpress_pages::pool::RawShare;

use super::{Options, Outcome, Report};
use crate::core::corpus::Source;
use crate::core::{Bytes, about};
use crate::report::numbers::thousands;
use crate::report::table::of_figures;

/// Points of the share over time that a report shows.
const POINTS: usize = 10;

/// Formats Tyche's report of one run.
pub fn report(report: &Report) -> String {
    format!("{}\n\n{}", head(report).join("\n"), body(report))
}

/// Tyche's report without its head.
pub(super) fn body(report: &Report) -> String {
    let (options, outcome) = (&report.options, &report.outcome);
    let mut text = String::new();
    acquisitions(&mut text, options, outcome);
    pool(&mut text, outcome);
    rounds(&mut text, outcome);
    latencies(&mut text, outcome);
    memory(&mut text, options, outcome);
    device(&mut text, options, outcome);
    over_time(&mut text, options, outcome);
    checks(&mut text, outcome);
    text
}

/// The share of the memory for compressed pages, as in tables.
pub(super) fn compressed(share: RawShare) -> String {
    match share {
        RawShare::Fixed { raw_percent } => format!("{}%", 100_u8.saturating_sub(raw_percent)),
        RawShare::Adaptive => "adaptive".into(),
    }
}

/// Describes a run in a few words: for progress and headings.
pub fn name(options: &Options) -> String {
    match options.codec {
        leafpress::Codec::None => "none".into(),
        codec => format!("{codec} {}", compressed(options.share)),
    }
}

/// Describes a run.
pub(super) fn head(report: &Report) -> Vec<String> {
    let options = &report.options;
    let mut lines = common_head(report);
    lines.push(format!(
        "Pool of {} · {} · {} · share {} · {}",
        Bytes(options.budget_bytes),
        options.codec,
        options.policy,
        options.share,
        counted(options.workers as u64, "worker")
    ));
    lines
}

/// Describes the common setting of a sweep's runs.
pub(super) fn common_head(report: &Report) -> Vec<String> {
    let (options, outcome) = (&report.options, &report.outcome);
    let data = match &options.data {
        Source::Path(path) => path.display().to_string(),
        other => other.to_string(),
    };
    let mut work = format!("Choice {}", options.distribution);
    if options.update_pct > 0.0 {
        let _ = write!(work, " · {}% of rounds update", options.update_pct);
    }
    if options.delete_pct > 0.0 {
        let _ = write!(work, " · {}% of rounds delete", options.delete_pct);
    }
    let device = match options.device_latency_us {
        0 => String::new(),
        us => format!("; {us} us added to every read and write"),
    };
    vec![
        format!(
            "{} pages, {}, of {data}",
            thousands(outcome.set.pages),
            about(outcome.set.bytes as f64)
        ),
        format!("Store {}{device}", outcome.set.place),
        format!(
            "{work} · {} to {} pages per round · {} s · {}",
            options.round_pages.0, options.round_pages.1, options.seconds, report.host
        ),
    ]
}

/// Lines of a section: a label, followed by figures.
fn line(text: &mut String, label: &str, figures: &str) {
    let _ = writeln!(text, "{label:<20}: {figures}");
}

fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", thousands(count), if count == 1 { "" } else { "s" })
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// A count with how many that is in a second.
fn rate(outcome: &Outcome, count: u64, what: &str) -> String {
    format!("{} ({:.0} per sec)", counted(count, what), outcome.per_second(count))
}

fn acquisitions(text: &mut String, options: &Options, outcome: &Outcome) {
    let _ = writeln!(
        text,
        "Acquisitions        : {} ({:.0} per sec).  {}.  {} misses.",
        thousands(outcome.work.acquisitions),
        outcome.throughput(),
        counted(outcome.hits(), "hit"),
        thousands(outcome.misses())
    );
    let _ = writeln!(
        text,
        "Pages in the set    : {} ({})",
        thousands(outcome.set.pages),
        about(outcome.set.bytes as f64)
    );
    line(
        text,
        "Compressions",
        &rate(outcome, outcome.counters.compressions, "compression"),
    );
    line(
        text,
        "Restorations",
        &rate(outcome, outcome.counters.restorations, "restoration"),
    );
    let all = outcome.work.acquisitions.max(1) as f64;
    let _ = writeln!(
        text,
        "Hit ratio           : {} ({} raw, {} compressed)",
        percent(outcome.hit_ratio()),
        percent(outcome.counters.raw_hits as f64 / all),
        percent(outcome.counters.compressed_hits as f64 / all)
    );
    if let (Some(theory), Some(of_held)) = (outcome.theory(options), outcome.theory_of_held(options)) {
        let _ = writeln!(
            text,
            "  in theory         : {} (from memory, share and ratio), {} (from the pages held at the end)",
            percent(theory),
            percent(of_held)
        );
    }
}

fn pool(text: &mut String, outcome: &Outcome) {
    let held = &outcome.held;
    let _ = writeln!(
        text,
        "Memory ratio        : {:.1}% raw at the end, {:.1}% on average ({} raw, {} compressed)",
        held.raw_percent,
        100.0 - outcome.compressed_share() * 100.0,
        about(held.raw_space_bytes as f64),
        about(held.compressed_space_bytes as f64)
    );
    let full = if outcome.full { "pool full" } else { "pool not full" };
    let _ = writeln!(
        text,
        "Run time            : {:.1} sec after {:.1} sec of warm-up ({full}){}",
        outcome.seconds,
        outcome.warmup_seconds,
        if outcome.interrupted { ", INTERRUPTED" } else { "" }
    );
    let _ = writeln!(
        text,
        "Time sweeping       : {} ({} ns)",
        counted(outcome.counters.sweeps, "sweep"),
        thousands(outcome.counters.sweep_ns)
    );
    let _ = writeln!(
        text,
        "Processor           : {:.2} cores busy ({:.2} s user, {:.2} s system), {:.2}% of it deciding on the share",
        outcome.cores(),
        outcome.cpu.user_seconds,
        outcome.cpu.system_seconds,
        outcome.deciding_pct()
    );
}

fn rounds(text: &mut String, outcome: &Outcome) {
    let work = &outcome.work;
    line(text, "Rounds", &rate(outcome, work.rounds, "round"));
    line(text, "  Read", &rate(outcome, work.acquisitions, "page"));
    line(text, "  Updated", &rate(outcome, work.updates, "page"));
    line(text, "  Deleted", &rate(outcome, work.deletes, "page"));
    if work.creates > 0 {
        line(text, "  Created", &rate(outcome, work.creates, "page"));
    }
    if work.rounds_cut > 0 {
        let _ = writeln!(
            text,
            "  Cut short         : {} that found everything pinned",
            counted(work.rounds_cut, "round")
        );
    }
}

fn latencies(text: &mut String, outcome: &Outcome) {
    let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
    let rows = [
        ("acquire", &outcome.acquire),
        ("update", &outcome.update),
        ("delete", &outcome.delete),
    ];
    let rows = rows.into_iter().filter_map(|(name, latency)| {
        let latency = latency.as_ref()?;
        Some([
            name.to_owned(),
            format!("{:.2}", latency.mean_ns / 1e3),
            us(latency.p50_ns),
            us(latency.p90_ns),
            us(latency.p99_ns),
            us(latency.p999_ns),
            us(latency.max_ns),
        ])
    });
    let table = of_figures(["us", "mean", "p50", "p90", "p99", "p99.9", "max"], rows, 1);
    let _ = writeln!(text, "{table}");
}

fn memory(text: &mut String, options: &Options, outcome: &Outcome) {
    let held = &outcome.held;
    let over = match outcome.most_over_budget(options) {
        over @ 1.. => format!("{} OVER it at times", about(over as f64)),
        under => format!("always at least {} under it", about(under.unsigned_abs() as f64)),
    };
    let _ = writeln!(
        text,
        "Memory held         : {} of a budget of {}, {over}",
        about(held.bytes_held as f64),
        Bytes(options.budget_bytes)
    );
    let _ = writeln!(
        text,
        "  Raw               : {}, {}",
        about(held.raw_space_bytes as f64),
        counted(held.raw_pages, "page")
    );
    let _ = writeln!(
        text,
        "  Compressed        : {}, {} of {} raw{}",
        about(held.compressed_space_bytes as f64),
        counted(held.compressed_pages, "page"),
        about(held.compressed_raw_bytes as f64),
        outcome
            .ratio_held()
            .map_or_else(String::new, |ratio| format!(" (ratio {ratio:.2})"))
    );
    let _ = writeln!(
        text,
        "  Tables and ghosts : {} and {}",
        about(held.table_bytes as f64),
        about(held.ghost_bytes as f64)
    );
    let _ = writeln!(
        text,
        "  Pinned copies     : {}, above the budget",
        about(held.pinned_copy_bytes as f64)
    );
    if let Some(resident) = outcome.most_resident_bytes() {
        let ratio = resident as f64 / options.budget_bytes as f64;
        let _ = writeln!(
            text,
            "  Resident growth   : peak {}, {} of the budget",
            about(resident.max(0) as f64),
            percent(ratio.max(0.0))
        );
    }
}

fn device(text: &mut String, options: &Options, outcome: &Outcome) {
    let (counters, held) = (&outcome.counters, &outcome.held);
    let megabytes = |bytes| outcome.per_second(bytes) / 1e6;
    let _ = writeln!(
        text,
        "Device              : {} read ({:.1} MB/s), {} written ({:.1} MB/s)",
        about(counters.store_read_bytes as f64),
        megabytes(counters.store_read_bytes),
        about(counters.store_write_bytes as f64),
        megabytes(counters.store_write_bytes)
    );
    let us = |ns: f64| ns / 1e3;
    let mut costs = format!("{:.2} us to read a page", us(held.store_read_ns));
    if options.codec != leafpress::Codec::None {
        let _ = write!(
            costs,
            ", {:.2} to compress, {:.2} to decode",
            us(held.compress_ns),
            us(held.decompress_ns)
        );
    }
    line(text, "Costs, lately", &costs);
    if counters.write_errors > 0 {
        line(text, "  Write errors", &thousands(counters.write_errors));
    }
}

/// The share at a few points in time.
fn over_time(text: &mut String, options: &Options, outcome: &Outcome) {
    let samples = &outcome.samples;
    if samples.is_empty() || options.share != RawShare::Adaptive {
        return;
    }
    let points: Vec<_> = (1..=POINTS.min(samples.len()))
        .map(|point| &samples[samples.len() * point / POINTS.min(samples.len()) - 1])
        .map(|sample| format!("{:.1} s {:.1}%", sample.at_seconds, sample.held.raw_percent))
        .collect();
    line(text, "Raw share over time", &points.join(", "));
}

fn checks(text: &mut String, outcome: &Outcome) {
    let checks = &outcome.checks;
    if checks.checked == 0 && checks.wrong == 0 {
        line(text, "Checked", "nothing (--check off)");
        return;
    }
    let read_back = match checks.read_back {
        0 => String::new(),
        pages => format!(" ({} of them read back from the store at the end)", thousands(pages)),
    };
    let _ = writeln!(
        text,
        "Checked             : {}{read_back}, {} wrong",
        counted(checks.checked, "page"),
        thousands(checks.wrong)
    );
    for example in &checks.examples {
        line(text, "  WRONG", example);
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
