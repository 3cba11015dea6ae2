//! The report of a comparison: workload, table, explanations, charts and problems.

use maud::html;

use super::outcome::{Line, Measured, Outcome};
use super::verdict::verdicts;
use super::{Length, Options, charts, driver, mrc, tables};
use crate::core::latency::Latency;
use crate::core::{Bytes, about};
use crate::report::document::{Document, Table};
use crate::report::hot_set_move;
use crate::report::html::pair;
use crate::report::numbers::{mops, percent, thousands};
use crate::report::paragraph::wrapped;
use crate::report::table::{Best, Marked, Part, ranked};

/// Explanation of the figures in the text.
const CAPTION: [&str; 2] = [
    "Memory is the growth of the process since just before the cache is created; its peak is in the table, as a \
     multiple of the memory. leafpress is configured with the memory itself. For the others, a capacity was searched \
     at which the process fits; entries weigh their stored key and value.",
    "Every hit was compared with the expected value. A star marks the best of its column.",
];

const NOTES: [&str; 6] = [
    "<b>Memory</b> is the growth of the process's resident memory since just before the cache was created, sampled 50 \
     times per second. Each cache ran in its own process, with this program's allocator.",
    "<b>Capacity</b> is the one configured for a cache. For leafpress it is the memory itself; for the others, a \
     capacity was searched at which the process fits into the memory.",
    "<b>A hit</b> is a read that found its key; its value was copied out or decoded, and compared with the expected \
     one. <b>A miss</b> is followed by the insertion, whose time is included.",
    "<b>With miss cost</b>, each miss also waits for the backend, each thread for its own.",
    "<b>With --rate</b>, requests arrive as a Poisson process, each thread with an equal share of the rate, whether \
     the cache keeps up or not. Latency then counts from the intended start, queueing included. The warm-up runs at \
     full speed.",
    "Values are derived from a hash of key and version, so that each can be verified without a second copy.",
];

/// Explanation of latencies.
fn times(options: &Options) -> &'static str {
    if options.rate.is_some() {
        "Requests arrive as a Poisson process, whether the cache keeps up or not; those still queued at the end are \
         the backlog. Latency counts from the intended start to the answer: the value copied out or decoded; for \
         misses with the insertion, without the backend. The benchmark's own work in between is included."
    } else {
        "Look-aside: misses are inserted. Latency is that of the cache's own calls, with the value copied out or \
         decoded: hits; misses with the insertion. Charged: as if each miss had also waited for the backend, each \
         thread for its own."
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
fn headings(options: &Options) -> [&'static str; 14] {
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
        "capacity",
        "records\nheld",
    ]
}

/// Builds the report. Its tables are `summary.tsv`, a line for each cache, `over_time.tsv`, a line for each window of
/// each, and `mrc.tsv`, a line for each size of the curves; there are none for what was not run.
pub fn document(outcome: &Outcome) -> Document<'_> {
    let options = &outcome.options;
    let has_caches = !options.engines.is_empty();
    let mut document = Document::new(match has_caches {
        true => "Leafpress vs other caches",
        false => "Memory needs of a cache",
    });
    document.verdicts = verdicts(outcome);
    document.cautions = outcome.cautions();
    document.head = head(outcome);
    document.troubles = outcome.troubles();
    document.page_only(|| Ok(pair(&charts::answers(outcome, &charts::runs(outcome)))));
    if has_caches {
        document.notes.extend(NOTES);
        document.table(Table::marked(headings(options), rows(outcome)).parts(&PARTS));
        moves(outcome).into_iter().for_each(|line| document.paragraph(line));
        for note in [CAPTION[0], times(options), CAPTION[1]] {
            document.text_only(wrapped(note, "", ""));
        }
        let chosen = outcome.lines.iter().flat_map(|line| {
            let (engine, measured) = (&line.engine, line.measured.as_ref());
            let codec = measured.and_then(|measured| measured.chosen_codec.as_ref());
            let reason = measured.and_then(|measured| measured.codec_reason.as_ref());
            let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
            let share = measured.and_then(|measured| measured.raw_share.as_ref());
            let codec = codec.map(|codec| format!("{engine} chose the codec {codec}{reason}."));
            [codec, share.map(|share| format!("{engine} takes {share}."))]
        });
        chosen.flatten().for_each(|note| document.caption(note));
        different_work(outcome)
            .into_iter()
            .for_each(|note| document.caption(note));
        document.tsv("summary", "summary.tsv", || tables::summary(outcome));
        document.tsv("over time", "over_time.tsv", || tables::over_time(outcome));
    }
    if let Some(curves) = &outcome.mrc {
        mrc::add(&mut document, curves, options, || {
            charts::points(&charts::runs(outcome))
        });
        document.tsv("curves", "mrc.tsv", || mrc::tsv(curves));
    }
    document.page_only(|| match charts::runs(outcome).as_slice() {
        [] => Ok(html! {}),
        runs => charts::charts(outcome, runs),
    });
    document.results(outcome);
    document
}

/// The effect of moving the hot set on each cache, a line each.
fn moves(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.lines.iter().filter_map(|line| {
        let (measured, shift_at) = (line.measured.as_ref()?, outcome.options.shift_at?);
        Some(hot_set_move::words(
            &line.engine.to_string(),
            &measured.timeline,
            shift_at,
        ))
    });
    lines.collect()
}

/// A note if hit ratios are of different operations.
fn different_work(outcome: &Outcome) -> Option<String> {
    let (least, most) = outcome.operations()?;
    (!outcome.did_the_same()).then(|| {
        format!(
            "Each cache ran for the same time and did {} to {} operations, so hits and charged throughput have no \
             best. The verdict compares the first operations that all have done; use --operations for equal numbers.",
            thousands(least),
            thousands(most)
        )
    })
}

/// Describes the workload and the options.
fn head(outcome: &Outcome) -> Vec<String> {
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
fn rows(outcome: &Outcome) -> Vec<Vec<Marked>> {
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
            let bytes = line.capacity.as_ref()?.bytes as f64;
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
pub(crate) fn microseconds(us: f64) -> String {
    match us {
        us if us >= 100.0 => format!("{us:.0}"),
        us if us >= 10.0 => format!("{us:.1}"),
        us => format!("{us:.2}"),
    }
}

/// Formats a cache's result in a line.
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
    use crate::report::testing::{assert_golden, charts, has_verdict, kept};

    #[test]
    fn the_report_is_as_it_was() {
        let report = document(&fixtures::outcome()).text();
        assert!(report.lines().all(|line| line.chars().count() <= 130), "{report}");
        assert_golden("cache/golden/report.txt", &report);
    }

    #[test]
    fn a_rate_and_a_file_have_their_words() {
        let outcome = fixtures::at_a_rate();
        let lines: Vec<_> = outcome.lines.iter().map(line).collect();
        assert_golden(
            "cache/golden/at_a_rate.txt",
            &(document(&outcome).text() + &lines.join("\n") + "\n"),
        );
    }

    #[test]
    fn a_run_is_a_line() {
        let outcome = fixtures::outcome();
        let lines: Vec<_> = outcome.lines.iter().map(line).collect();
        assert_golden("cache/golden/lines.txt", &(lines.join("\n") + "\n"));
    }

    #[test]
    fn a_page_has_the_table_the_charts_and_the_troubles() {
        let page = kept(document(&fixtures::outcome()).page("leafpress cache --paper").unwrap());
        assert_eq!(charts(&page), 8, "{}", page.len());
        assert!(has_verdict(&page), "{page}");
        for part in [
            "leafpress cache --paper",
            "MISMATCHES: moka",
            "failed: foyer",
            "Memory over time",
            "quick_cache+zstd:3",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn a_page_of_a_rate_names_caches_that_fell_behind_and_charges_nothing() {
        let page = document(&fixtures::at_a_rate())
            .page("leafpress cache --rate 500000")
            .unwrap();
        assert_eq!(charts(&page), 7, "{}", page.len());
        for part in [
            "FELL BEHIND: quick_cache+zstd:3",
            "log",
            "from the intended start",
            "cache_config.poolSizes",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("Throughput with miss cost"));
    }

    #[test]
    fn a_page_without_a_run_is_one() {
        let mut outcome = fixtures::outcome();
        outcome.lines.clear();
        outcome.cancelled = true;
        let page = document(&outcome).page("leafpress cache").unwrap();
        assert!(
            page.contains("interrupted: 0 of 4 caches") && !page.contains("<svg"),
            "{page}"
        );
    }
}
