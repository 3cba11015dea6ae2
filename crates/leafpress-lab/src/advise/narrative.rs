//! The recommendation in sentences.

use super::candidates::Candidate;
use super::question::Question;
use super::recommend::{Recommendation, Verdict};
use super::thresholds::MemoryBound;
use crate::core::{Bytes, about, about_decimal};
use crate::model::{BreakEven, WITHIN_ERROR};
pub(super) use crate::report::numbers::percent;
use crate::report::numbers::{brief, share_of_memory, thousands};

/// Formats microseconds with the page's number of digits.
pub(super) fn us(us: f64) -> String {
    brief(us)
}

/// Whether a question's sizes were given in powers of 1000.
pub(super) fn is_decimal(question: &Question) -> bool {
    let is_decimal = |bytes: u64| bytes > 0 && bytes.is_multiple_of(1_000_000) && !bytes.is_multiple_of(1 << 20);
    is_decimal(question.data_bytes) || is_decimal(question.memory_bytes)
}

/// Formats bytes, in powers of 1000 if the question's sizes are.
pub(super) fn like(question: &Question, amount: f64) -> String {
    if is_decimal(question) {
        about_decimal(amount)
    } else {
        about(amount)
    }
}

fn per_second(pages: f64) -> String {
    thousands(pages.round() as u64)
}

fn latency(latency: f64) -> String {
    format!("{} us", us(latency))
}

/// Returns the recommendation, in a sentence or two.
pub fn sentence(recommendation: &Recommendation) -> String {
    let (raw, best) = (&recommendation.raw.best, &recommendation.best);
    let block = Bytes(best.block_bytes);
    match recommendation.verdict {
        Verdict::Compress => format!(
            "Compress: give {}% of the memory to pages compressed by {} in blocks of {block}. Hit ratio {}% vs {}% \
             uncompressed, time per page {} us vs {} us: {:.2} times the throughput.",
            share_of_memory(best.best.share),
            best.name(),
            percent(best.best.hit_ratio, 1),
            percent(raw.hit_ratio, 1),
            us(best.best.us_per_page),
            us(raw.us_per_page),
            best.best.pages_per_second / raw.pages_per_second
        ),
        Verdict::TooClose => format!(
            "Do not compress: the gain is too small. The best choice, {} in blocks of {block} with {}% of the memory, \
             saves {}% of the time per page ({} us vs {} us), which is within the error of the computation.",
            best.name(),
            share_of_memory(best.best.share),
            percent(recommendation.gain(), 1),
            us(best.best.us_per_page),
            us(raw.us_per_page)
        ),
        Verdict::DoNotCompress => format!(
            "Do not compress: no codec beats uncompressed pages at any share of the memory. Hit ratio {}%, time per \
             page {} us.",
            percent(raw.hit_ratio, 1),
            us(raw.us_per_page)
        ),
        Verdict::AllFits => "Do not compress: all the data fits into memory uncompressed.".to_owned(),
    }
}

/// Returns the reasons, a sentence or two each.
pub fn reasons(recommendation: &Recommendation, question: &Question) -> Vec<String> {
    let mut reasons = Vec::new();
    reasons.extend(why_codec(recommendation, question));
    match recommendation.verdict {
        Verdict::AllFits => return reasons,
        Verdict::Compress => reasons.extend(gains(recommendation, question)),
        Verdict::TooClose | Verdict::DoNotCompress => {}
    }
    reasons.push(break_even(recommendation));
    reasons.extend(second_codec(recommendation));
    reasons.extend(blocks(recommendation, question));
    reasons.extend(crossovers(recommendation));
    reasons.extend(memory(recommendation, question));
    reasons
}

fn why_codec(recommendation: &Recommendation, question: &Question) -> Option<String> {
    let (raw, best) = (&recommendation.raw, &recommendation.best);
    let codec = best.codec.as_ref()?;
    let (miss, hit) = (latency(best.device_us), us(codec.decompress_us));
    Some(match recommendation.verdict {
        Verdict::Compress => format!(
            "{} compresses pages {:.2}:1. A hit on a compressed page costs {hit} us to decode it, a miss {miss} to \
             read it; compressing an evicted page costs {} us and happens on {}% of accesses.",
            codec.name,
            codec.ratio,
            us(codec.compress_us),
            percent(best.best.compressions, 1)
        ),
        Verdict::AllFits => format!(
            "{} of memory is enough for {} of data.",
            like(question, question.memory_bytes as f64),
            like(question, question.data_bytes as f64)
        ),
        Verdict::TooClose | Verdict::DoNotCompress if codec.ratio < 1.15 => format!(
            "The data hardly compresses: {} reaches {:.2}:1, the pool requires that a page shrinks by an eighth, and \
             each attempt costs {} us.",
            codec.name,
            codec.ratio,
            us(codec.compress_us)
        ),
        Verdict::TooClose | Verdict::DoNotCompress => format!(
            "A read costs {}; {} costs {} us to compress a page and {hit} us to decode it, at {:.2}:1. That exceeds \
             what additional hits save (uncompressed, {}% of accesses hit and each miss costs a read).",
            latency(raw.device_us),
            codec.name,
            us(codec.compress_us),
            codec.ratio,
            percent(raw.best.hit_ratio, 1)
        ),
    })
}

fn gains(recommendation: &Recommendation, question: &Question) -> Vec<String> {
    let memory = question.memory_bytes as f64;
    let best = &recommendation.best.best;
    let mut gains = Vec::new();
    gains.push(match recommendation.raw_memory_bytes {
        Some(needed) => format!(
            "Memory: an uncompressed cache needs {} for the same speed, {} more. Conversely, {} compressed is as fast \
             as {} uncompressed{}.",
            like(question, needed),
            like(question, (needed - memory).max(0.0)),
            like(question, recommendation.enough_memory_bytes.unwrap_or(memory)),
            like(question, memory),
            recommendation
                .enough_memory_bytes
                .map_or_else(String::new, |enough| format!(
                    " ({}% less)",
                    percent(1.0 - enough / memory, 0)
                ))
        ),
        None => "Memory: an uncompressed cache is slower with any amount of memory.".to_owned(),
    });
    gains.push(format!(
        "Throughput: {} pages/s from {} worker{} vs {} uncompressed; or {}% fewer workers at equal throughput. A \
         worker that waits for the device counts as busy.",
        per_second(best.pages_per_second),
        question.workers,
        if question.workers == 1 { "" } else { "s" },
        per_second(recommendation.raw.best.pages_per_second),
        percent(recommendation.workers_saved, 0)
    ));
    gains
}

fn break_even(recommendation: &Recommendation) -> String {
    let name = recommendation.best.name();
    match recommendation.break_even {
        BreakEven::AtOnce => format!("Break-even: {name} pays from the smallest share of the memory."),
        BreakEven::Share(share) => {
            format!(
                "Break-even: {name} pays from {}% of the memory, and costs time below that.",
                percent(share, 1)
            )
        }
        BreakEven::Never => format!("Break-even: {name} does not pay at any share of the memory."),
    }
}

fn describe(one: &Candidate) -> String {
    format!("{} in blocks of {}", one.name(), Bytes(one.block_bytes))
}

fn second_codec(recommendation: &Recommendation) -> Option<String> {
    let second = recommendation.second_codec()?;
    let best = &recommendation.best;
    let more = second.best.us_per_page / best.best.us_per_page - 1.0;
    if !recommendation.verdict.pays() && !second.is_compressing() {
        return None;
    }
    if !recommendation.verdict.pays() {
        return Some(format!(
            "Next best: {}, {} us per page.",
            describe(second),
            us(second.best.us_per_page)
        ));
    }
    let codec = second.codec.as_ref()?;
    let how = format!(
        "ratio {:.2}, {} us to compress, {} us to decode",
        codec.ratio,
        us(codec.compress_us),
        us(codec.decompress_us)
    );
    Some(format!(
        "Second best: {} ({how}), {} us per page, {}% more.{}",
        describe(second),
        us(second.best.us_per_page),
        percent(more, 1),
        if more < WITHIN_ERROR {
            " The difference is within the error: choose by other criteria."
        } else {
            ""
        }
    ))
}

fn blocks(recommendation: &Recommendation, question: &Question) -> Option<String> {
    if question.blocks.len() < 2 || !recommendation.verdict.pays() {
        return None;
    }
    let (best, second) = (&recommendation.best, recommendation.second_block()?);
    Some(format!(
        "Blocks of {}: the next best size, {}, costs {} us per page, {}% more. An access needs {}.",
        Bytes(best.block_bytes),
        Bytes(second.block_bytes),
        us(second.best.us_per_page),
        percent(second.best.us_per_page / best.best.us_per_page - 1.0, 1),
        Bytes(question.access_bytes)
    ))
}

fn crossovers(recommendation: &Recommendation) -> Vec<String> {
    let best = &recommendation.best;
    let block = Bytes(best.block_bytes);
    let mut lines = Vec::new();
    match (recommendation.pays_from_us, recommendation.verdict.pays()) {
        (Some(from), true) => lines.push(format!(
            "Sensitivity: if a read of {block} took less than {}, uncompressed pages would be faster (here: {}).",
            latency(from),
            latency(best.device_us)
        )),
        (Some(from), false) => lines.push(format!(
            "Sensitivity: if a read of {block} took more than {}, compression would begin to pay (here: {}).",
            latency(from),
            latency(best.device_us)
        )),
        // Latencies from a thousandth to a thousand times the device's are considered: the same figure in another unit.
        (None, true) => lines.push(format!(
            "Holds for any device latency of at least {} ns.",
            us(best.device_us)
        )),
        (None, false) => lines.push(format!("Holds for any device latency up to {} ms.", us(best.device_us))),
    }
    for (crossover, side) in recommendation.crossovers.iter().zip(["below", "above"]) {
        if let Some(crossover) = crossover
            .as_ref()
            .filter(|crossover| crossover.codec != "none" && recommendation.verdict.pays())
        {
            lines.push(format!(
                "With a device latency {side} {} the best choice is {} in blocks of {}.",
                latency(crossover.device_us),
                crossover.codec,
                Bytes(crossover.block_bytes)
            ));
        }
    }
    lines
}

fn memory(recommendation: &Recommendation, question: &Question) -> Option<String> {
    let part = |bytes: f64| percent(bytes / question.data_bytes.max(1) as f64, 1);
    Some(match recommendation.pays_until? {
        MemoryBound::From(until) => format!(
            "With {} of memory or more ({}% of the data; here {}%) the gain is below {}%.",
            like(question, until),
            part(until),
            part(question.memory_bytes as f64),
            percent(WITHIN_ERROR, 0)
        ),
        MemoryBound::Never => "Adding memory does not change this until all the data fits.".to_owned(),
    })
}
