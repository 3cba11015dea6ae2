//! The answer in a paragraph, and its cautions.

use super::alternatives::{Alternative, Kind, MAX_DRIVE_WRITES, indexed_records};
use super::options::Requests;
use super::run::Plan;
use crate::core::{Bytes, about};
use crate::report::numbers::{percent, thousands, three_digits};

/// A sample that is a smaller part of all records is cautioned about.
const SMALL_PART: f64 = 1e-4;
/// Samples with fewer records or bytes are cautioned about.
const FEW_RECORDS: u64 = 1000;
const FEW_BYTES: f64 = 256.0 * 1024.0;
/// An error that is cautioned about.
const LARGE_ERROR: f64 = 0.1;
/// Records of a trace whose mean length differs by a larger factor do not fit the sample.
const OTHER_LENGTH: f64 = 2.0;
/// Alternatives that differ by less cost the same.
const SAME_COST: f64 = 0.05;

/// Dollars per month, in words.
pub(super) fn money(dollars: f64) -> String {
    match dollars {
        dollars if dollars >= 99.5 => format!("${}", thousands(dollars.round() as u64)),
        dollars => format!("${dollars:.2}"),
    }
}

/// The paragraph.
pub(super) fn answer(plan: &Plan) -> String {
    let Some(best) = plan.best() else {
        return "No alternative answers enough requests without the backend.".into();
    };
    let mut parts = vec![recommendation(plan, best)];
    parts.extend(others(plan, best));
    parts.extend(fastest(plan, best));
    parts.extend(unchanged(plan, best));
    parts.push(sensitivity(plan, best));
    parts.join(" ")
}

/// What to do, what it needs, and what it costs.
fn recommendation(plan: &Plan, best: &Alternative) -> String {
    let total = about(plan.options.total_bytes as f64);
    let given = about(plan.options.memory_bytes as f64);
    let memory = about(best.memory_bytes);
    let over = best.memory_bytes - plan.options.memory_bytes as f64;
    let what = match best.kind {
        Kind::Tree if over > 0.0 => format!(
            "Compress, and buy {} of memory: a Tree holds all of the {total} of records in {memory} (±{}%), {} more \
             than the {given}",
            about(over),
            percent(plan.sampled.error, 1),
            about(over)
        ),
        Kind::Tree => format!(
            "Compress: a Tree holds all of the {total} of records in {memory} (±{}%), which is less than the {given} \
             of memory",
            percent(plan.sampled.error, 1)
        ),
        Kind::CacheEnough => format!(
            "Compress, and buy {} of memory: a Cache of {memory} answers {}% of the requests",
            about(over),
            percent(best.memory_hits, 1)
        ),
        Kind::Cache => format!(
            "Compress: a Cache in {memory} of the {given} of memory answers {}% of the requests to the {total} of \
             records",
            percent(best.memory_hits, 1)
        ),
        Kind::Uncompressed => format!(
            "Neither buy nor compress: an uncompressed cache in {memory} of the {given} of memory answers {}% of the \
             requests",
            percent(best.memory_hits, 1)
        ),
        Kind::UncompressedEnough => format!(
            "Buy {} of memory: compression does not pay, and an uncompressed cache of {memory} answers {}% of the \
             requests",
            about(over),
            percent(best.memory_hits, 1)
        ),
        Kind::CacheAndSsd => format!(
            "Compress, and add an SSD: of the requests to {total} of records, a Cache in {memory} of memory answers \
             {}%, and {} of SSD {}%",
            percent(best.memory_hits, 1),
            about(best.ssd_bytes),
            percent(best.ssd_hits, 1)
        ),
        Kind::PagePool => format!(
            "Keep the {total} of records on an SSD: a page pool in {memory} of memory answers {}% of the requests, the \
             SSD the others",
            percent(best.memory_hits, 1)
        ),
    };
    format!(
        "{what}; about {} a month, and {} us per access.",
        money(best.cost.total()),
        three_digits(best.time.mean_us)
    )
}

/// What else answers as many requests, with its cost.
fn others(plan: &Plan, best: &Alternative) -> Option<String> {
    let mut others: Vec<_> = plan
        .alternatives
        .iter()
        .filter(|other| other.is_enough && other.kind != best.kind)
        .collect();
    others.sort_by(|one, other| one.cost.total().total_cmp(&other.cost.total()));
    let other = |other: &&Alternative| {
        let ssd = match other.ssd_bytes > 0.0 {
            true => format!(" and {} of SSD", about(other.ssd_bytes)),
            false => String::new(),
        };
        let memory = about(other.memory_bytes);
        format!(
            "{} ({memory} of memory{ssd}) {}",
            other.kind.name(),
            money(other.cost.total())
        )
    };
    let names: Vec<String> = others.iter().map(other).collect();
    (!names.is_empty()).then(|| format!("Others that answer as much without the backend: {}.", names.join(", ")))
}

/// What is faster, where the cheapest waits for an SSD.
fn fastest(plan: &Plan, best: &Alternative) -> Option<String> {
    let enough = plan.alternatives.iter().filter(|other| other.is_enough);
    let fastest = enough.min_by(|one, other| one.time.mean_us.total_cmp(&other.time.mean_us))?;
    if best.ssd_bytes == 0.0 || fastest.kind == best.kind {
        return None;
    }
    Some(format!(
        "The fastest of them, {}, takes {} us per access and costs {} a month more.",
        fastest.kind.name(),
        three_digits(fastest.time.mean_us),
        money(fastest.cost.total() - best.cost.total())
    ))
}

/// What the memory does uncompressed.
fn unchanged(plan: &Plan, best: &Alternative) -> Option<String> {
    let now = plan
        .alternatives
        .iter()
        .find(|other| other.kind == Kind::Uncompressed)?;
    if now.is_enough || best.kind == Kind::Uncompressed {
        return None;
    }
    Some(format!(
        "Uncompressed, {} of memory answer {}% of the requests, and an access takes {} us, with {} us for each miss.",
        about(plan.options.memory_bytes as f64),
        percent(now.memory_hits, 1),
        three_digits(now.time.mean_us),
        three_digits(plan.options.backend_us)
    ))
}

/// Whether the answer depends on what was measured and assumed.
fn sensitivity(plan: &Plan, best: &Alternative) -> String {
    let case = |case: &super::run::Case| {
        let same = case.alternatives.iter().find(|other| other.kind == best.kind);
        let new = super::alternatives::cheapest(&case.alternatives);
        match (new, same) {
            (Some(new), _) if new.kind == best.kind => format!(
                "with {} the answer is the same, at {} of memory and {}",
                case.what,
                about(new.memory_bytes),
                money(new.cost.total())
            ),
            (Some(new), Some(same)) if same.is_enough && same.cost.total() < new.cost.total() * (1.0 + SAME_COST) => {
                format!(
                    "with {} it costs {}, about as much as {}",
                    case.what,
                    money(same.cost.total()),
                    new.kind.name()
                )
            }
            (Some(new), _) => format!(
                "with {} the cheapest is {} ({} of memory) at {}",
                case.what,
                new.kind.name(),
                about(new.memory_bytes),
                money(new.cost.total())
            ),
            (None, _) => format!("with {} none is enough", case.what),
        }
    };
    let cases: Vec<String> = plan.cases.iter().map(case).collect();
    let text = cases.join("; ");
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => text,
    }
}

/// What the answer rests on.
pub(super) fn cautions(plan: &Plan) -> Vec<String> {
    let (options, sampled) = (&plan.options, &plan.sampled);
    let mut cautions = Vec::new();
    if !options.assumed.is_empty() {
        let value = |flag: &&str| match *flag {
            "distribution" => format!("--distribution {}", options.requests),
            "ops" => format!("--ops {}", options.ops),
            "device-us" => format!("--device-us {}", options.device_us),
            "backend-us" => format!("--backend-us {}", options.backend_us),
            "memory-gib-cost" => format!("--memory-gib-cost {}", options.prices.memory_gib),
            "ssd-gb-cost" => format!("--ssd-gb-cost {}", options.prices.ssd_gb),
            "core-cost" => format!("--core-cost {}", options.prices.core),
            "ssd" => "an SSD as large as the records need (--ssd)".into(),
            "writes" => format!("--writes {}", 100.0 * options.writes),
            other => format!("--{other}"),
        };
        let values: Vec<String> = options.assumed.iter().map(value).collect();
        cautions.push(format!("Not given, and assumed: {}.", values.join(", ")));
    }
    let part = sampled.records as f64 / plan.records;
    if part < SMALL_PART {
        cautions.push(format!(
            "The sample is one record in {} of all: the answer holds as far as it resembles the others.",
            thousands((1.0 / part).round() as u64)
        ));
    }
    if sampled.records < FEW_RECORDS || sampled.records as f64 * sampled.record_bytes < FEW_BYTES {
        cautions.push(format!(
            "The sample has only {} records of {} bytes: the memory of a Tree is that of its smallest parts, too much \
             for each record.",
            thousands(sampled.records),
            thousands(sampled.record_bytes.round() as u64)
        ));
    }
    let worn: Vec<_> = plan
        .alternatives
        .iter()
        .filter(|other| other.ssd_bytes_per_day > MAX_DRIVE_WRITES * other.ssd_bytes)
        .map(|other| other.kind.name())
        .collect();
    if !worn.is_empty() {
        cautions.push(format!(
            "Not recommended, because the SSD would be written more than {MAX_DRIVE_WRITES} times a day: {}.",
            worn.join(", ")
        ));
    }
    let has_ssd = plan.alternatives.iter().any(|other| other.kind == Kind::CacheAndSsd);
    if has_ssd && options.ssd_bytes.is_none() && indexed_records(options.memory_bytes) < plan.records {
        cautions.push(format!(
            "The memory has room to index {} records on an SSD, fewer than there are: a larger SSD would not help.",
            thousands(indexed_records(options.memory_bytes) as u64)
        ));
    }
    if sampled.error > LARGE_ERROR {
        cautions.push(format!(
            "Parts of the sample compress differently: the memory of compressed records is known to ±{}% only.",
            percent(sampled.error, 0)
        ));
    }
    let tree = plan.alternatives.iter().find(|other| other.kind == Kind::Tree);
    let is_near = |bytes: f64| (bytes / options.memory_bytes as f64 - 1.0).abs() < sampled.error.max(SAME_COST);
    if tree.is_some_and(|tree| is_near(tree.memory_bytes)) {
        cautions.push("Whether a Tree of all records fits into the memory is within the error.".into());
    }
    if let Some((_, record_bytes)) = &plan.trace {
        cautions.push(
            "A trace has first requests for records, which any cache misses. It does not say which records are \
             neighbours: the page pool is omitted."
                .into(),
        );
        let factor = record_bytes / sampled.record_bytes;
        if !(1.0 / OTHER_LENGTH..=OTHER_LENGTH).contains(&factor) {
            cautions.push(format!(
                "Records of the trace have {record_bytes:.0} bytes on average, those of the sample {:.0}: the trace's \
                 hits need not be those of such records.",
                sampled.record_bytes
            ));
        }
    } else if let (None, Requests::Distribution(_)) = (
        plan.alternatives.iter().find(|other| other.kind == Kind::PagePool),
        &options.requests,
    ) {
        cautions.push(format!(
            "A page pool needs an SSD for all of the {}: it is omitted.",
            Bytes(options.total_bytes)
        ));
    }
    cautions.push(
        "Times are those of a sample, parts of which the processor's caches hold: a read of much memory takes some 0.1 \
         to 0.5 us more."
            .into(),
    );
    cautions
}
