//! The comparison as text: workload, table, explanations and problems.

use super::outcome::{Line, Measured, Outcome};
use super::verdict::verdicts;
use super::{Length, Options, driver, mrc};
use crate::core::latency::Latency;
use crate::core::{Bytes, about};
use crate::report::moved;
use crate::report::numbers::{mops, percent, thousands};
use crate::report::paragraph::wrapped;
use crate::report::table::{Best, Marked, Part, of_marked, ranked};
use crate::report::verdict;

/// Explanation of the figures.
const NOTES: [&str; 2] = [
    "Memory is the growth of the process since just before the cache is created; its peak is in the table, as a multiple of the memory. \
     leafpress is configured with the memory itself. For the others, a capacity (knob) was searched at which the process \
     fits; entries weigh their stored key and value.",
    "Every hit was compared with the expected value. A star marks the best of its column.",
];

/// Explanation of latencies.
fn times(options: &Options) -> &'static str {
    if options.rate.is_some() {
        "Requests arrive as a Poisson process, whether the cache keeps up or not; those still queued at the end are the \
         backlog. Latency counts from the intended start to the answer: the value copied out or decoded; for misses with the insertion, \
         without the backend. The benchmark's own work in between is included."
    } else {
        "Look-aside: misses are inserted. Latency is that of the cache's own calls, with the value copied out or decoded: hits; \
         misses with the insertion. Charged: as if each miss had also waited for the backend, each thread for its own."
    }
}

/// The tables of [`headings`].
const PARTS: [Part<'_>; 4] = [
    ("", &[1, 2, 3, 4]),
    ("Latency of hits", &[5, 6, 7]),
    ("Latency of misses", &[8, 9, 10]),
    ("Memory", &[11, 12, 13]),
];

/// Column headings of the table.
pub(super) fn headings(options: &Options) -> [&'static str; 14] {
    [
        "cache",
        "hits\nmemory %",
        "\ndisk %",
        "Mops/s\nas run",
        if options.rate.is_some() {
            "back-\nlog"
        } else {
            "\ncharged"
        },
        "hit us\np50",
        "\np99",
        "\np99.9",
        "miss us\np50",
        "\np99",
        "\np99.9",
        "peak of\nmemory",
        "knob",
        "records\nheld",
    ]
}

/// All of it.
pub fn report(outcome: &Outcome) -> String {
    let mut text = verdict::text(&verdicts(outcome)) + &head(outcome);
    for trouble in outcome.troubles().into_iter().chain(outcome.cautions()) {
        text += &wrapped(&trouble, "", "  ");
    }
    if !outcome.options.engines.is_empty() {
        let headings = headings(&outcome.options).to_vec();
        text += &format!("{}\n", of_marked(headings, rows(outcome), 1, &PARTS));
        text += &moves(outcome).concat();
        for note in [NOTES[0], times(&outcome.options), NOTES[1]] {
            text += &wrapped(note, "", "");
        }
        if let Some(note) = different_work(outcome) {
            text += &wrapped(&note, "", "");
        }
    }
    if let Some(curves) = &outcome.mrc {
        text += &mrc::text(curves, &outcome.options);
    }
    text
}

/// The effect of moving the hot set on each cache, a line each.
pub(super) fn moves(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.lines.iter().filter_map(|line| {
        let (measured, shift_at) = (line.measured.as_ref()?, outcome.options.shift_at?);
        Some(moved::words(&line.engine.to_string(), &measured.timeline, shift_at))
    });
    lines.collect()
}

/// A note if hit ratios are of different operations.
pub(super) fn different_work(outcome: &Outcome) -> Option<String> {
    let (least, most) = outcome.operations()?;
    (!outcome.did_the_same()).then(|| {
        format!(
            "Each cache ran for the same time and did {} to {} operations, so hits and charged throughput have no best. The verdict \
             compares the first operations that all have done; use --operations for equal numbers.",
            thousands(least),
            thousands(most)
        )
    })
}

/// Describes the workload and the options.
fn head(outcome: &Outcome) -> String {
    let lines = head_lines(outcome);
    lines.iter().map(|line| wrapped(line, "", "  ")).collect()
}

/// The description, unwrapped.
pub(super) fn head_lines(outcome: &Outcome) -> Vec<String> {
    let runs = (!outcome.options.engines.is_empty()).then(|| how(&outcome.options));
    let lines = outcome
        .work
        .iter()
        .cloned()
        .chain(unused(outcome))
        .chain(runs)
        .chain([outcome.host.clone()]);
    lines.collect()
}

/// Ignored fields of a CacheBench file.
fn unused(outcome: &Outcome) -> Option<String> {
    let fields = outcome.unused_fields.join(", ");
    (!fields.is_empty()).then(|| format!("ignored fields: {fields}"))
}

fn how(options: &Options) -> String {
    let length = match options.length {
        Some(Length::Seconds(seconds)) => format!("{seconds} s"),
        Some(Length::Operations(operations)) => format!("{} operations", thousands(operations)),
        None if options.is_trace() => "once through the trace".into(),
        None => format!("{} s", driver::DEFAULT_SECONDS),
    };
    let warmup = match options.warmup_operations {
        Some(0) => "no warm-up".into(),
        Some(operations) => format!("{} warm-up operations", thousands(operations)),
        None if options.is_of_a_file() => "no warm-up".into(),
        None => "two warm-up operations per key".into(),
    };
    let writes = if options.write_pct > 0.0 {
        format!(", {}% overwrite", options.write_pct)
    } else {
        String::new()
    };
    let shift = options
        .shift_at
        .map_or_else(String::new, |at| format!(", hot set moved after {}", thousands(at)));
    let load = if options.load { "every key inserted once, " } else { "" };
    let ttl = options
        .ttl_seconds
        .map_or_else(String::new, |ttl| format!(", records live for {ttl} s"));
    let pace = match options.rate {
        Some(rate) => format!("at {} requests per second", thousands(rate as u64)),
        None => format!("a miss costs {} us", options.backend_us),
    };
    format!(
        "memory {}, {} thread{}{writes}{ttl}; {load}{warmup}, measured: {length}{shift}; {pace}",
        Bytes(options.memory_bytes),
        options.threads,
        if options.threads == 1 { "" } else { "s" },
    )
}

type Figure<'f> = dyn Fn(&Line, &Measured) -> Option<(String, f64)> + 'f;

/// The table's rows.
pub(super) fn rows(outcome: &Outcome) -> Vec<Vec<Marked>> {
    let options = &outcome.options;
    let rate_of = |per_second: f64| Some((mops(per_second), per_second));
    let share = |ratio: Option<f64>| ratio.map(|ratio| (percent(ratio, 1), ratio));
    let us = |latency: Option<&Latency>, ns: &dyn Fn(&Latency) -> u64| {
        let ns = ns(latency?) as f64;
        Some((microseconds(ns / 1e3), ns))
    };
    let fifth = match options.rate {
        Some(_) => Some(Best::Least),
        None => outcome.did_the_same().then_some(Best::Most),
    };
    // Of different operations the higher ratio is not the better one, and what the disk answers the memory has not.
    let hits = outcome.did_the_same().then_some(Best::Most);
    let columns: [(Option<Best>, &Figure<'_>); 13] = [
        (hits, &|_, m| share(m.memory_hit_ratio())),
        (None, &|_, m| share(m.disk_hit_ratio())),
        (Some(Best::Most), &|_, m| rate_of(m.throughput())),
        (fifth, &|_, m| match &m.rate {
            Some(rate) => Some((thousands(rate.backlog), rate.backlog as f64)),
            None => rate_of(m.charged_throughput(options)?),
        }),
        (Some(Best::Least), &|_, m| us(m.hit_latency.as_ref(), &|l| l.p50_ns)),
        (Some(Best::Least), &|_, m| us(m.hit_latency.as_ref(), &|l| l.p99_ns)),
        (Some(Best::Least), &|_, m| us(m.hit_latency.as_ref(), &|l| l.p999_ns)),
        (Some(Best::Least), &|_, m| us(m.miss_latency.as_ref(), &|l| l.p50_ns)),
        (Some(Best::Least), &|_, m| us(m.miss_latency.as_ref(), &|l| l.p99_ns)),
        (Some(Best::Least), &|_, m| us(m.miss_latency.as_ref(), &|l| l.p999_ns)),
        (None, &|_, m| {
            let part = m.peak_over_memory(options);
            Some((format!("{part:.2}x"), part))
        }),
        (None, &|line, _| {
            let bytes = line.knob.as_ref()?.bytes as f64;
            Some((about(bytes), bytes))
        }),
        (Some(Best::Most), &|_, m| {
            let records = m.records?;
            Some((thousands(records), records as f64))
        }),
    ];
    let mut rows: Vec<Vec<Marked>> = outcome
        .lines
        .iter()
        .map(|line| {
            vec![Marked {
                text: line.engine.to_string(),
                best: false,
            }]
        })
        .collect();
    for (best, figure) in columns {
        let lines = outcome.lines.iter();
        let cells = lines
            .map(|line| figure(line, line.measured.as_ref()?))
            .collect::<Vec<_>>();
        let absent: Vec<bool> = cells.iter().map(Option::is_none).collect();
        for ((row, mut cell), absent) in rows.iter_mut().zip(ranked(cells, best)).zip(absent) {
            if absent {
                cell.text = "-".into();
            }
            row.push(cell);
        }
    }
    rows
}

/// Microseconds with as many digits as help.
pub(super) fn microseconds(us: f64) -> String {
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

/// A cache's result in a line.
pub fn line(line: &Line) -> String {
    let name = format!("{:<18}", line.engine.to_string());
    let Some(measured) = &line.measured else {
        return format!("{name} failed: {}", line.failure.as_deref().unwrap_or("no answer"));
    };
    let hits = measured
        .hit_ratio()
        .map_or_else(|| "no reads".into(), |ratio| format!("{}% hits", percent(ratio, 1)));
    let wrong = match measured.mismatches.total() {
        0 => String::new(),
        wrong => format!("  {wrong} MISMATCHES"),
    };
    let asked = measured
        .rate
        .as_ref()
        .map_or_else(String::new, |rate| format!(" of {}", mops(rate.asked)));
    format!(
        "{name} {hits:>10} {:>6}{asked} Mops/s{wrong}",
        mops(measured.throughput())
    )
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use crate::report::testing::assert_golden;

    #[test]
    fn the_report_is_as_it_was() {
        let report = report(&fixtures::outcome());
        assert!(report.lines().all(|line| line.chars().count() <= 130), "{report}");
        assert_golden("cache/golden/report.txt", &report);
    }

    #[test]
    fn a_rate_and_a_file_have_their_words() {
        let outcome = fixtures::at_a_rate();
        let lines: Vec<_> = outcome.lines.iter().map(line).collect();
        assert_golden(
            "cache/golden/at_a_rate.txt",
            &(report(&outcome) + &lines.join("\n") + "\n"),
        );
    }

    #[test]
    fn a_run_is_a_line() {
        let outcome = fixtures::outcome();
        let lines: Vec<_> = outcome.lines.iter().map(line).collect();
        assert_golden("cache/golden/lines.txt", &(lines.join("\n") + "\n"));
    }
}
