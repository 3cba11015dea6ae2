//! Caveats of a recommendation.

use super::figures::nearest;
use super::narrative::{like, percent, us};
use super::options::{DeviceSource, Options};
use super::question::{Assumed, Question, at_load_us, lengths};
use super::recommend::Recommendation;
use crate::core::{Bytes, about};
use crate::model::Access;
use crate::{device, suite};

/// Below this share of a processor, codecs were measured while other work ran.
const BUSY: f64 = 0.8;
/// A sample that is a smaller part of the data than this gets a caveat.
const SMALL_PART: f64 = 0.999;
/// Factor by which a shorter read must exceed a longer one to get a caveat.
const UNREST: f64 = 1.1;
/// The share of incompressible blocks from which on there is a caveat.
const INCOMPRESSIBLE: f64 = 0.02;
/// The share of zero pages from which on there is a caveat.
const ZEROS: f64 = 0.02;

/// The caveat of an advice that was not verified.
pub(super) const COMPUTED: &str = "All figures are computed from measurements of the parts. --verify runs the page \
                                   pool and reports the error at a small scale.";

/// All caveats, the most important first.
pub(super) fn of(
    options: &Options,
    question: &Question,
    assumed: Assumed,
    recommendation: &Recommendation,
    suite: &suite::Report,
    device: Option<&device::Report>,
) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(sizes(question, assumed));
    cautions.extend(access(question, assumed));
    cautions.extend(sample(question, suite));
    match (&options.device, device) {
        (DeviceSource::Latency(latency), _) => cautions.push(format!(
            "The device's latency, {} us, was given, not measured, and is assumed equal for all block sizes and any \
             load.",
            us(*latency)
        )),
        (_, Some(report)) => cautions.extend(of_device(question, report)),
        _ => {}
    }
    cautions.extend(busy(suite));
    cautions.extend(incompressible(recommendation, suite));
    if question.blocks.len() > 1 && matches!(question.access, Access::Distribution(_)) {
        cautions.push(format!(
            "Blocks larger than {} contain data that an access does not need: its neighbours are read, decoded and \
             cached with it, and are assumed no hotter than other data. If accesses have spatial locality, larger \
             blocks do better than predicted.",
            Bytes(question.access_bytes)
        ));
    }
    if matches!(question.access, Access::Trace(_)) {
        cautions.push(
            "With a trace, hit ratios are exact for a single LRU list; those of the page pool's clock differ slightly."
                .into(),
        );
    }
    cautions
}

fn sizes(question: &Question, assumed: Assumed) -> Option<String> {
    let data = format!(
        "the sample's size for the data, {}",
        like(question, question.data_bytes as f64)
    );
    let memory = format!(
        "an eighth of the data for the memory, {}",
        like(question, question.memory_bytes as f64)
    );
    let (what, how) = match (assumed.data, assumed.memory) {
        (true, true) => (format!("{data}, and {memory}"), "--data-bytes and --memory"),
        (true, false) => (data, "--data-bytes"),
        (false, true) => (memory, "--memory"),
        (false, false) => return None,
    };
    Some(format!("Assumed: {what}. Set {how}."))
}

fn access(question: &Question, assumed: Assumed) -> Option<String> {
    assumed.access.then(|| {
        format!(
            "The access distribution was not given: {} was assumed. Hit ratios depend on it more than on anything \
             else; a trace (--distribution trace:FILE) removes this uncertainty.",
            question.access.name()
        )
    })
}

fn sample(question: &Question, suite: &suite::Report) -> Option<String> {
    let sample = &suite.sample;
    let part = sample.bytes as f64 / question.data_bytes.max(1) as f64;
    (part < SMALL_PART).then(|| {
        let taken = about(sample.bytes as f64);
        let of_what = if sample.bytes < sample.found_bytes {
            format!(
                "{taken}, evenly spread over the sample's {}",
                about(sample.found_bytes as f64)
            )
        } else {
            format!("the whole sample of {taken}")
        };
        format!(
            "Ratios and times are of {of_what}: {}% of the data. Valid only if the sample is representative.",
            percent(part, if part < 0.01 { 3 } else { 1 })
        )
    })
}

fn of_device(question: &Question, report: &device::Report) -> Vec<String> {
    let mut cautions = Vec::new();
    for note in &report.notes {
        // Notes on the order of requests and on high percentiles do not affect a mean of random reads.
        if !matches!(note.topic, device::Topic::Few) {
            cautions.push(format!("Device: {}.", note.text.trim_end_matches('.')));
        }
    }
    let missing: Vec<String> = question
        .blocks
        .iter()
        .filter(|block| nearest(report, block.block_bytes) != Some(block.block_bytes))
        .map(|block| Bytes(block.block_bytes).to_string())
        .collect();
    if !missing.is_empty() {
        cautions.push(format!(
            "Reads of {} were not measured: the latency of the nearest measured size was used.",
            missing.join(", ")
        ));
    }
    cautions.extend(unrest(report));
    if let device::Source::Fio { .. } = report.source {
        cautions.push(
            "fio does not distinguish random reads from sequential ones: if its job had both, random reads take longer \
             than its mean.".into(),
        );
    }
    cautions
}

/// Reads that took longer than larger ones.
fn unrest(report: &device::Report) -> Option<String> {
    let lengths: Vec<u64> = lengths(report).collect();
    let wait = |bytes: u64| at_load_us(report, bytes, 0.0);
    lengths.windows(2).find_map(|pair| {
        let (short, long) = (wait(pair[0])?, wait(pair[1])?);
        (short > long * UNREST).then(|| {
            format!(
                "Device: reads of {} took {} us, those of {} {} us. A read cannot be slower than a larger one: the \
                 device or the machine was busy. The lower latency was used; measure again.",
                Bytes(pair[0]),
                us(short),
                Bytes(pair[1]),
                us(long)
            )
        })
    })
}

/// Pages of zeros compress to nothing, unlike data that may replace them.
pub(super) fn zeros(share: f64, page_bytes: u64) -> Option<String> {
    (share >= ZEROS).then(|| {
        format!(
            "{}% of the sample's pages of {} contain only zeros, as in sparse files and preallocated space: they \
             compress to nothing, but data written there later will not.",
            percent(share, 0),
            Bytes(page_bytes)
        )
    })
}

fn busy(suite: &suite::Report) -> Option<String> {
    let rows = suite.overall.iter().filter(|row| row.codec != suite::MEMCPY);
    let (cpu, wall) = rows.fold((0.0, 0.0), |(cpu, wall), row| {
        let of = |speed: &suite::Speed| (speed.cpu_median_us, speed.median_us * row.threads as f64);
        let ((c1, w1), (c2, w2)) = (of(&row.compress), of(&row.decompress));
        (cpu + c1 + c2, wall + w1 + w2)
    });
    (wall > 0.0 && cpu < wall * BUSY).then(|| {
        format!(
            "Other work was running: codecs had {}% of a processor. Their times are CPU times, which that affects \
             little; the device's latency may be affected more. Measure on a quiet machine.",
            percent(cpu / wall, 0)
        )
    })
}

fn incompressible(recommendation: &Recommendation, suite: &suite::Report) -> Option<String> {
    let best = &recommendation.best;
    let row = suite
        .overall
        .iter()
        .find(|row| row.codec == best.name() && row.block_bytes as u64 == best.block_bytes)?;
    let share = row.stored_blocks as f64 / row.blocks.max(1) as f64;
    (share >= INCOMPRESSIBLE).then(|| {
        format!(
            "{}% of the blocks do not compress with {}: the pool evicts them, while the model treats all pages alike.",
            percent(share, 1),
            best.name()
        )
    })
}
