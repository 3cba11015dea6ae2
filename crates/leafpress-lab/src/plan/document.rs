//! The report of a plan.

use super::alternatives::{Alternative, Kind, cheapest};
use super::answer::{answer, cautions, money};
use super::run::Plan;
use crate::core::about;
use crate::report::document::{Document, Table};
use crate::report::numbers::{percent, thousands, three_digits};
use crate::report::{NOT_APPLICABLE, tsv};

const NOTES: [&str; 7] = [
    "<b>Uncompressed</b>: key and value, and 64 bytes for an entry. Times are those of a hash map.",
    "<b>Tree</b>: the sample in a tree of default settings; its memory is projected by the bytes of keys and values. \
     The error is that of the spread of four parts of the sample, with a probability of 95%.",
    "<b>Cache</b>: a cache of default settings, filled with the sample until it evicted. Hits are those of S3-FIFO, \
     which is simulated with fewer objects of the same popularity, or by the trace.",
    "<b>Cache and SSD</b>: what leaves memory is compressed with <code>zstd:3</code> and written; four fifths of the \
     SSD are filled, and two bytes of memory know a record. A hit on the SSD brings the record back.",
    "<b>Page pool</b>: all records on the SSD, in pages of 8 KiB in the order of their keys, kept in memory \
     uncompressed or with <code>lz4</code>. A page has many records, of which few are hot.",
    "<b>Cores</b> are CPU time by requests per second. The backend's cores and memory are not counted.",
    "<b>Prices</b> that were not given are those of Amazon's cloud, us-east-1, on demand, 2025: r7g, gp3, c7g.",
];

/// Builds the report. Its table for programs is `summary.tsv`, a line for each case and alternative.
pub fn document(plan: &Plan) -> Document<'_> {
    let mut document = Document::new("Leafpress: what to buy for records");
    document.how = "estimated";
    document.verdicts = vec![answer(plan)];
    document.cautions = cautions(plan);
    document.head = head(plan);
    document.notes.extend(NOTES);
    document.table(alternatives(plan));
    document.caption(format!(
        "* the cheapest that answers {}% of what a cache of all records answers. Money is dollars a month: {} for a \
         GiB of memory, {} for a GB of SSD, {} for a core.",
        percent(plan.options.need, 1).trim_end_matches(".0"),
        plan.options.prices.memory_gib,
        plan.options.prices.ssd_gb,
        plan.options.prices.core
    ));
    let written = plan.alternatives.iter().filter(|one| one.ssd_bytes_per_day > 0.0);
    written.for_each(|one| document.caption(endurance(one)));
    document.heading("What if");
    document.table(cases(plan));
    document.tsv("summary", "summary.tsv", || summary(plan));
    document.results(plan);
    document
}

/// How often an SSD is written over.
fn endurance(one: &Alternative) -> String {
    format!(
        "{}: {} are written a day, {} times the SSD; drives are specified for 0.3 to 3 times.",
        one.kind.name(),
        about(one.ssd_bytes_per_day),
        three_digits(one.ssd_bytes_per_day / one.ssd_bytes)
    )
}

fn head(plan: &Plan) -> Vec<String> {
    let sampled = &plan.sampled;
    let mut head = vec![
        format!(
            "{} of {} records of {} ({}), {:.0} bytes each on average; {} of them in all, which take {} uncompressed",
            thousands(sampled.records),
            thousands(sampled.found),
            plan.options.data,
            plan.options.format,
            sampled.record_bytes,
            thousands(plan.records.round() as u64),
            about(plan.raw_bytes)
        ),
        format!(
            "Bytes of a record: {:.0} in a Tree (±{}%, {}), {:.0} in a Cache, {:.0} on an SSD",
            sampled.tree_bytes,
            percent(sampled.error, 1),
            sampled.codec,
            sampled.held.per_byte() * sampled.record_bytes,
            sampled.disk_bytes
        ),
        format!(
            "A read of memory takes {} us uncompressed, {} us compressed; an insertion into a Tree {} us of CPU time",
            three_digits(sampled.times.raw.mean_us),
            three_digits(sampled.times.compressed.mean_us),
            three_digits(sampled.times.insert_us)
        ),
        format!(
            "Requests: {}, {} per second",
            plan.options.requests,
            thousands(plan.options.ops.round() as u64)
        ),
    ];
    head.extend(sampled.left_out.clone());
    head.extend(plan.trace.iter().flat_map(|(lines, _)| lines.clone()));
    head
}

fn alternatives(plan: &Plan) -> Table {
    let headings = [
        "",
        "memory",
        "SSD",
        "from\nmemory %",
        "from\nSSD %",
        "from\nbackend %",
        "mean\nus",
        "p99\nus",
        "cores",
        "written\nper day",
        "$ per\nmonth",
    ];
    let best = plan.best().map(|best| best.kind);
    let row = |one: &Alternative| {
        let of_ssd = |text: String| match one.ssd_bytes > 0.0 {
            true => text,
            false => NOT_APPLICABLE.to_owned(),
        };
        vec![
            format!("{}{}", one.kind.name(), if best == Some(one.kind) { " *" } else { "" }),
            about(one.memory_bytes),
            of_ssd(about(one.ssd_bytes)),
            percent(one.memory_hits, 1),
            of_ssd(percent(one.ssd_hits, 1)),
            percent(one.backend_share(), 1),
            three_digits(one.time.mean_us),
            three_digits(one.time.p99_us),
            format!("{:.2}", one.cores),
            of_ssd(about(one.ssd_bytes_per_day)),
            money(one.cost.total()).replace('$', ""),
        ]
    };
    Table {
        words: 1,
        ..Table::new(headings, plan.alternatives.iter().map(row))
    }
}

fn cases(plan: &Plan) -> Table {
    let headings = [
        "",
        "Tree\nmemory",
        "hits %\nuncompressed",
        "hits %\nCache",
        "from memory %\nCache and SSD",
        "cheapest",
        "$ per\nmonth",
    ];
    let row = |(what, alternatives): (&str, &[Alternative])| {
        let of = |kind, figure: &dyn Fn(&Alternative) -> String| {
            let found = alternatives.iter().find(|one| one.kind == kind);
            found.map_or_else(|| NOT_APPLICABLE.to_owned(), figure)
        };
        let hits = |one: &Alternative| percent(one.memory_hits, 1);
        let best = cheapest(alternatives);
        vec![
            what.to_owned(),
            of(Kind::Tree, &|one| about(one.memory_bytes)),
            of(Kind::Uncompressed, &hits),
            of(Kind::Cache, &hits),
            of(Kind::CacheAndSsd, &hits),
            best.map_or_else(|| NOT_APPLICABLE.to_owned(), |best| best.kind.name().to_owned()),
            best.map_or_else(
                || NOT_APPLICABLE.to_owned(),
                |best| money(best.cost.total()).replace('$', ""),
            ),
        ]
    };
    Table {
        words: 1,
        ..Table::new(headings, all_cases(plan).map(row))
    }
}

/// The measured and assumed case, and the others.
fn all_cases(plan: &Plan) -> impl Iterator<Item = (&str, &[Alternative])> {
    let first = ("as measured", plan.alternatives.as_slice());
    let others = plan.cases.iter();
    std::iter::once(first).chain(others.map(|case| (case.what.as_str(), case.alternatives.as_slice())))
}

fn summary(plan: &Plan) -> String {
    let names = [
        "case",
        "alternative",
        "memory_bytes",
        "ssd_bytes",
        "memory_hits",
        "ssd_hits",
        "is_enough",
        "mean_us",
        "p99_us",
        "cores",
        "ssd_bytes_per_day",
        "memory_cost",
        "ssd_cost",
        "core_cost",
    ];
    let rows = all_cases(plan).flat_map(|(what, alternatives)| alternatives.iter().map(move |one| (what, one)));
    let row = |(what, one): (&str, &Alternative)| {
        vec![
            tsv::word(what),
            tsv::word(one.kind.name()),
            tsv::number(one.memory_bytes, 0),
            tsv::number(one.ssd_bytes, 0),
            tsv::number(one.memory_hits, 4),
            tsv::number(one.ssd_hits, 4),
            tsv::word(one.is_enough),
            tsv::number(one.time.mean_us, 3),
            tsv::number(one.time.p99_us, 3),
            tsv::number(one.cores, 3),
            tsv::number(one.ssd_bytes_per_day, 0),
            tsv::number(one.cost.memory, 2),
            tsv::number(one.cost.ssd, 2),
            tsv::number(one.cost.cores, 2),
        ]
    };
    tsv::table(names, rows.map(row))
}
