//! `report.html`: one file, readable without a network.

use maud::{Markup, html};

use super::charts::{self, Side};
use super::pivot::{Pivot, Setting};
use super::verdict::verdicts;
use super::{hotset, table};
use crate::core::LabError;
use crate::core::keys::LoadOrder;
use crate::eval::{EvalConfig, EvalOutcome, Workload};
use crate::report;
use crate::report::html::{self, document, figure, pair, swatch};
use crate::report::numbers::thousands;
use crate::report::palette::colour;

/// Explanation of the figures.
const NOTES: [&str; 7] = [
    "<b>Bytes held</b> is all the memory of the tree by its own accounting: leaves, inner nodes, landing buffers, large values, \
     dictionaries and retired memory not yet freed, each with its allocator's slack. <b>User bytes</b> are the keys and values \
     in it. <b>Memory saved</b> is 1 - held / user, negative when the tree is larger than its data. Contexts that codecs \
     keep per thread belong to the process and are not included; <b>Resident</b> memory is the \
     system's own figure after the load, for comparison: up to 1 MB of it is the process's.",
    "Every read copies the value out and compares all of it with the possible values of its key; after the timed window every key is \
     checked once more. A missing key, a stale value or a wrong byte is a mismatch. The cost of choosing keys and of checking is included in \
     throughput, not in latency.",
    "Values are cut from the data byte for byte. The key space is loaded with neighbouring cuts under neighbouring keys; each write \
     puts another cut, from far away in the data, so memory after writes is that of shuffled records.",
    "The load is closed-loop: each thread starts its next operation when the last one ends, so a stall delays the operations behind \
     it instead of being counted for each of them.",
    "CPU seconds are those of the process in the timed window only; throughput per core divides by them, background threads included.",
    "Each row ran in its own process. Runs followed each other on one machine, and other work on it affects them.",
    "Latencies cover the whole timed window, in HDR histograms with three significant digits.",
];

pub(super) fn page(
    config: &EvalConfig,
    host: &str,
    outcome: &EvalOutcome,
    pivot: &Pivot<'_>,
) -> Result<String, LabError> {
    let settings = pivot.settings.iter().map(|setting| section(pivot, setting));
    let settings = settings.collect::<Result<Vec<_>, _>>()?;
    let body = html! {
        (head(host, outcome, pivot))
        (html::all(&settings))
        @if !outcome.failures.is_empty() {
            h2 { "Runs that failed" }
            ul.bad {
                @for failure in &outcome.failures { li { code { (failure.spec.label()) } ": " (failure.reason) } }
            }
        }
        h2 { "How it was measured" }
        @if let Some(command) = &config.command_line {
            h3 { "Command" }
            pre { (command) }
        }
        (html::terms(&configuration(config, host)))
        (html::notes(&NOTES))
    };
    Ok(document("Leafpress evaluation", &body))
}

fn head(host: &str, outcome: &EvalOutcome, pivot: &Pivot<'_>) -> Markup {
    html! {
        h1 { "Leafpress evaluation" }
        (report::verdict::html(&verdicts(pivot)))
        (html::cautions(&outcome.cautions))
        p { (outcome.data) " · " (host) }
        @if outcome.mismatches > 0 {
            p.bad { (outcome.mismatches) " mismatches: answers that no order of the writes allows." }
        } @else {
            p.faint { (outcome.rows.len()) " runs, every answer checked, 0 mismatches." }
        }
        @if outcome.cancelled {
            p.bad { "Cancelled: only finished rows are shown." }
        }
    }
}

fn section(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Markup, LabError> {
    let hue = |codec: &str| {
        let index = pivot.codecs.iter().position(|known| known == codec).unwrap_or(0);
        colour(&pivot.codecs, index)
    };
    let throughput = charts::throughput(pivot, setting)?;
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for workload in trade_off_workloads(setting) {
        let title = format!("Throughput vs memory saved, {workload}: up and to the right is better");
        first.extend(charts::trade_off(pivot, setting, workload)?.map(|svg| figure(&title, &svg)));
    }
    for (side, title) in [(Side::Read, "Read latency"), (Side::Write, "Write latency")] {
        second.extend(charts::latency(pivot, setting, side)?.map(|svg| figure(title, &svg)));
    }
    for (title, svg) in hotset::charts(pivot, setting)? {
        second.push(figure(title, &svg));
    }
    let named = setting.lines.iter().map(|line| (hue(&line.codec), line.codec.as_str()));
    Ok(html! {
        h2 { (setting.title()) }
        (pair(&first))
        (table::html(setting, |codec| swatch(hue(codec))))
        p.faint { (table::caption(setting)) }
        @for line in hotset::text(setting).lines() { p { (line) } }
        (html::legend(named))
        @if let Some(svg) = throughput { (figure("Throughput by workload", &svg)) }
        (pair(&second))
    })
}

/// The two ends of the mix: the workload that reads most and the one that writes most.
fn trade_off_workloads(setting: &Setting<'_>) -> Vec<Workload> {
    let mut workloads = vec![setting.main_workload()];
    workloads.extend(
        setting
            .write_workload()
            .filter(|write| *write != setting.main_workload()),
    );
    workloads
}

fn key_choice(config: &EvalConfig) -> String {
    let mut choice = config.distribution.to_string();
    if config.workloads.contains(&Workload::HotSet) {
        let hotset = config.distribution_of(Workload::HotSet);
        choice += &format!("; hotset: {hotset}, moved at {} operations", thousands(config.shift_at));
    }
    choice
}

fn configuration(config: &EvalConfig, host: &str) -> Vec<(&'static str, String)> {
    let on_off = |on: bool| if on { "on" } else { "off" };
    let samples = match config.latency_samples_per_thread {
        _ if !config.measure_latency => "not measured".to_owned(),
        0 => "every operation".to_owned(),
        samples => format!("about {samples} per thread, spread over the timed window"),
    };
    let default = |value: Option<usize>| value.map_or_else(|| "the codec's default".to_owned(), |n| n.to_string());
    let mut entries = vec![
        ("host", host.to_owned()),
        ("leafpress", env!("CARGO_PKG_VERSION").to_owned()),
        (
            "data",
            format!(
                "{}{}",
                config.data,
                if config.raw { " (its own bytes, not opened)" } else { "" }
            ),
        ),
        (
            "keys",
            format!(
                "{} ({}), loaded {}",
                thousands(config.keys),
                config.key_source(),
                match config.load_order {
                    LoadOrder::Random => "in random order",
                    LoadOrder::Sequential => "in the order of the keys, in bulk (Tree::extend)",
                }
            ),
        ),
        (
            "values",
            match &config.records {
                Some(_) => "the records' own".to_owned(),
                None => format!("cut as {}", config.effective_cut()),
            },
        ),
        ("key choice", key_choice(config)),
        (
            "timed window",
            format!("{} s after {} s of warm-up", config.seconds, config.warmup_seconds),
        ),
        ("shards", config.shards.to_string()),
        ("leaf bytes", default(config.leaf_bytes)),
        ("frame bytes", default(config.frame_bytes)),
        (
            "dictionary",
            if config.dictionary {
                "trained from the data".into()
            } else {
                "off".into()
            },
        ),
        ("temperature, where the codec is auto", config.temperature.to_string()),
        ("latency", samples),
        ("seed", config.seed.to_string()),
    ];
    if config.background.contains(&true) {
        let codec = config.background_codec.as_deref().unwrap_or("all");
        entries.push((
            "background compaction",
            format!(
                "{} threads, watermark {}%, codecs {codec}",
                config.background_threads, config.watermark_pct
            ),
        ));
    }
    if let Some(sub_pages) = config.hashed_sub_pages {
        entries.push(("layout", format!("hashed, {sub_pages} sub-pages")));
    }
    if config.iaa || config.zlib_accel {
        entries.push((
            "accelerators",
            format!("IAA {}, zlib-accel {}", on_off(config.iaa), on_off(config.zlib_accel)),
        ));
    }
    entries
}
