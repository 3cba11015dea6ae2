//! The report of an evaluation.

use maud::{Markup, html};

use super::charts::{self, Side, codec_colour};
use super::hotset;
use super::pivot::{Pivot, Setting};
use super::table::{caption, table};
use super::verdict::verdicts;
use crate::core::LabError;
use crate::core::keys::LoadOrder;
use crate::eval::{EvalConfig, EvalOutcome, Workload};
use crate::report::document::Document;
use crate::report::html::{figure, legend, pair};
use crate::report::numbers::thousands;

/// Explanation of the figures.
const NOTES: [&str; 7] = [
    "<b>Bytes held</b> is all the memory of the tree by its own accounting: leaves, inner nodes, landing buffers, \
     large values, dictionaries and retired memory not yet freed, each with its allocator's slack. <b>User bytes</b> \
     are the keys and values in it. <b>Memory saved</b> is 1 - held / user, negative when the tree is larger than its \
     data. Contexts that codecs keep per thread belong to the process and are not included; <b>Resident</b> memory is \
     the system's own figure after the load, for comparison: up to 1 MB of it is the process's.",
    "Every read copies the value out and compares all of it with the possible values of its key; after the timed \
     window every key is checked once more. A missing key, a stale value or a wrong byte is a mismatch. The cost of \
     choosing keys and of checking is included in throughput, not in latency.",
    "Values are cut from the data byte for byte. The key space is loaded with neighbouring cuts under neighbouring \
     keys; each write puts another cut, from far away in the data, so memory after writes is that of shuffled records.",
    "The load is closed-loop: each thread starts its next operation when the last one ends, so a stall delays the \
     operations behind it instead of being counted for each of them.",
    "CPU seconds are those of the process in the timed window only; throughput per core divides by them, background \
     threads included.",
    "Each row ran in its own process. Runs followed each other on one machine, and other work on it affects them.",
    "Latencies cover the whole timed window, in HDR histograms with three significant digits.",
];

/// The report.
pub(super) fn document<'r>(
    config: &EvalConfig,
    host: &str,
    outcome: &EvalOutcome,
    pivot: &'r Pivot<'r>,
) -> Document<'r> {
    let mut document = Document::new("Leafpress evaluation");
    document.verdicts = verdicts(pivot);
    document.cautions.clone_from(&outcome.cautions);
    if !pivot.settings.is_empty() {
        let checked = format!(
            "{} runs, every answer checked, {} mismatches.",
            outcome.rows.len(),
            outcome.mismatches
        );
        document.head = vec![outcome.data.clone(), host.to_owned(), checked];
    }
    document.troubles = troubles(outcome);
    document.terms = configuration(config, host);
    document.notes.extend(NOTES);
    for setting in &pivot.settings {
        document.heading(setting.title());
        document.page_only(|| trade_offs(pivot, setting));
        document.table(table(pivot, setting));
        document.caption(caption(setting));
        hotset::text(setting).lines().for_each(|line| document.paragraph(line));
        document.page_only(|| drawn(pivot, setting));
    }
    if !pivot.settings.is_empty() {
        document.text_only("\n* best in its column\n");
    }
    document
}

fn troubles(outcome: &EvalOutcome) -> Vec<String> {
    let failures = outcome.failures.iter();
    let failures = failures.map(|failure| {
        let (label, reason, log) = (failure.spec.label(), &failure.reason, failure.log.display());
        format!("failed: {label}: {reason} (log: {log})")
    });
    let wrong = outcome.rows.iter().filter(|row| row.result.mismatches > 0);
    let wrong = wrong.map(|row| {
        let example = row.result.mismatch_examples.first().map_or("", String::as_str);
        format!(
            "MISMATCHES: {}: {} answers that no order of the writes allows ({example})",
            row.spec.label(),
            row.result.mismatches
        )
    });
    let cancelled = outcome.cancelled.then(|| {
        let path = outcome.summary_path.display();
        format!("cancelled: {} finished rows are in {path}", outcome.rows.len())
    });
    failures.chain(wrong).chain(cancelled).collect()
}

/// Throughput against memory, for the two ends of the mix: the workload that reads most and the one that writes most.
fn trade_offs(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Markup, LabError> {
    let main = setting.main_workload();
    let writes = setting.write_workload().filter(|write| *write != main);
    let mut figures = Vec::new();
    for workload in [main].into_iter().chain(writes) {
        let title = format!("Throughput vs memory saved, {workload}: up and to the right is better");
        figures.extend(charts::trade_off(pivot, setting, workload)?.map(|svg| figure(&title, &svg)));
    }
    Ok(pair(&figures))
}

/// Throughput, latencies, and what a move of the hot keys costs.
fn drawn(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Markup, LabError> {
    let throughput = charts::throughput(pivot, setting)?;
    let mut figures = Vec::new();
    for (side, title) in [(Side::Read, "Read latency"), (Side::Write, "Write latency")] {
        figures.extend(charts::latency(pivot, setting, side)?.map(|svg| figure(title, &svg)));
    }
    for (title, svg) in hotset::charts(pivot, setting)? {
        figures.push(figure(title, &svg));
    }
    let lines = setting.lines.iter();
    Ok(html! {
        (legend(lines.map(|line| (codec_colour(pivot, line), line.codec.as_str()))))
        @if let Some(svg) = throughput { (figure("Throughput by workload", &svg)) }
        (pair(&figures))
    })
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
                config.background_threads, config.landing_compaction_pct
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
