//! What must be known before a recommendation is believed.

use super::figures::nearest;
use super::narrative::{like, percent, us};
use super::options::{DeviceSource, Options};
use super::question::{Assumed, Question, at_load_us, lengths};
use super::recommend::Recommendation;
use crate::core::{Bytes, about};
use crate::model::Access;
use crate::{device, suite};

/// Codecs that had less of a processor than this were measured beside other work.
const BUSY: f64 = 0.8;
/// A sample that is a smaller part of the data than this says so.
const SMALL_PART: f64 = 0.999;
/// Shorter reads that take so many times as long as longer ones are worth a word.
const UNREST: f64 = 1.1;
/// Blocks that do not shrink are worth a word from this share on.
const INCOMPRESSIBLE: f64 = 0.02;
/// From such a share of the pages on, zeros are told.
const ZEROS: f64 = 0.02;

/// What is said where nothing was verified.
pub(super) const COMPUTED: &str = "All of this is computed from measurements of the parts. --verify runs the page pool and shows how far it is off on a small scale.";

/// All of them, what matters most first.
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
            "The device's latency, {} us, was given and not measured, and is taken to be the same for all lengths of blocks and any load.",
            us(*latency)
        )),
        (_, Some(report)) => cautions.extend(of_device(question, report)),
        _ => {}
    }
    cautions.extend(busy(suite));
    cautions.extend(incompressible(recommendation, suite));
    if question.blocks.len() > 1 && matches!(question.access, Access::Law(_)) {
        cautions.push(format!(
            "Blocks longer than {} are charged with what an access does not want: whatever lies beside it is read, decoded and kept with it, \
             and is no hotter than any other. Where neighbours are asked for together, longer blocks do better than here.",
            Bytes(question.access_bytes)
        ));
    }
    if matches!(question.access, Access::Trace(_)) {
        cautions.push(
            "With a trace the hit ratios are those of one LRU list, exactly; the page pool's clock comes near them, not to the digit.".into(),
        );
    }
    cautions
}

fn sizes(question: &Question, assumed: Assumed) -> Option<String> {
    let data = format!(
        "the data to be the sample, {}",
        like(question, question.data_bytes as f64)
    );
    let memory = format!(
        "the memory an eighth of the data, {}",
        like(question, question.memory_bytes as f64)
    );
    let (what, how) = match (assumed.data, assumed.memory) {
        (true, true) => (format!("{data}, and {memory}"), "--data-bytes and --memory"),
        (true, false) => (data, "--data-bytes"),
        (false, true) => (memory, "--memory"),
        (false, false) => return None,
    };
    Some(format!("Taken for want of better: {what}. Say {how}."))
}

fn access(question: &Question, assumed: Assumed) -> Option<String> {
    assumed.access.then(|| {
        format!(
            "How pages are asked for was not said: {} was assumed. Hit ratios hang on it more than on anything else; a trace (--distribution trace:FILE) \
             ends the guessing.",
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
            "Ratios and times are of {of_what}: {}% of the data. They hold as far as the rest is like it.",
            percent(part, if part < 0.01 { 3 } else { 1 })
        )
    })
}

fn of_device(question: &Question, report: &device::Report) -> Vec<String> {
    let mut cautions = Vec::new();
    for note in &report.notes {
        // What is said of the order of places, and of the highest percentiles, does not touch a mean of random reads.
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
            "Reads of {} were not measured: the latency is that of the nearest length there is.",
            missing.join(", ")
        ));
    }
    cautions.extend(unrest(report));
    if let device::Source::Fio { .. } = report.source {
        cautions.push(
            "fio does not tell reads at random places from sequential ones: if its job had both, random reads take longer than its mean.".into(),
        );
    }
    cautions
}

/// Reads that took longer than longer ones.
fn unrest(report: &device::Report) -> Option<String> {
    let lengths: Vec<u64> = lengths(report).collect();
    let wait = |bytes: u64| at_load_us(report, bytes, 0.0);
    lengths.windows(2).find_map(|pair| {
        let (short, long) = (wait(pair[0])?, wait(pair[1])?);
        (short > long * UNREST).then(|| {
            format!(
                "Device: reads of {} took {} us and those of {} {} us. A read is not slower than one that has it in itself: the device or the machine was \
                 not at rest. The quicker figure was taken; measure again.",
                Bytes(pair[0]),
                us(short),
                Bytes(pair[1]),
                us(long)
            )
        })
    })
}

/// What is zeros only compresses to nothing, whatever data comes later.
pub(super) fn zeros(share: f64, page_bytes: u64) -> Option<String> {
    (share >= ZEROS).then(|| {
        format!(
            "{}% of the sample's pages of {} are zeros only, as in sparse files and room that is not used yet: they compress to nothing, which data \
             that comes there will not.",
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
            "Other work was running: codecs had {}% of a processor. Their times are CPU times, which that stretches little; the device's latency \
             may be stretched more. Measure on a quiet machine.",
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
            "{}% of the blocks do not shrink by {}: the pool lets them leave where the model takes all pages for alike.",
            percent(share, 1),
            best.name()
        )
    })
}
