//! Under which other circumstances the recommendation would be another.

use serde::Serialize;

use super::candidates::{Candidate, best_share};
use crate::core::LabError;
use crate::model::{BreakEven, CodecCosts, Model, NOTHING_US, Options, Point};

/// Latencies from a thousandth to a thousand times the measured one are considered.
const SCALES: (f64, f64) = (1e-3, 1e3);
/// Steps of that range on the way to a crossover.
const STEPS: i32 = 120;

/// A latency of the device at which another choice becomes the better one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossover {
    /// Microseconds of a read, at the length of block of the choice before.
    pub device_us: f64,
    /// The codec that is better from there on, `none` for no compression.
    pub codec: String,
    /// Length of its blocks in bytes.
    pub block_bytes: u64,
}

/// The best choice if reads took `scale` times as long. Of equals the first.
fn best_at(candidates: &[Candidate], scale: f64) -> Option<&Candidate> {
    let us = candidates.iter().map(|one| {
        let (us, point) = one.scaled(scale);
        // A codec whose best share is 0 does not compress.
        let is_codec = one.codec.is_some() && point.share > 0.0;
        (us, one, is_codec || one.codec.is_none())
    });
    let us = us.filter(|(.., counts)| *counts);
    us.reduce(|least, one| if one.0 < least.0 - NOTHING_US { one } else { least })
        .map(|(_, one, _)| one)
}

/// The nearest latencies below and above at which another choice than now is best.
pub(super) fn crossovers(candidates: &[Candidate]) -> [Option<Crossover>; 2] {
    let Some(now) = best_at(candidates, 1.0) else {
        return [None, None];
    };
    let is_now = |scale: f64| best_at(candidates, scale).is_some_and(|one| same(one, now));
    SCALES_BOTH.map(|end| {
        let scale = |step: i32| f64::powf(end, f64::from(step) / f64::from(STEPS));
        let first = (1..=STEPS).find(|step| !is_now(scale(*step)))?;
        let (mut near, mut far) = (scale(first - 1), scale(first));
        for _ in 0..40 {
            let middle = f64::midpoint(near, far);
            if is_now(middle) {
                near = middle;
            } else {
                far = middle;
            }
        }
        let other = best_at(candidates, far)?;
        Some(Crossover {
            device_us: f64::midpoint(near, far) * now.device_us,
            codec: other.name().to_owned(),
            block_bytes: other.block_bytes,
        })
    })
}

const SCALES_BOTH: [f64; 2] = [SCALES.0, SCALES.1];

fn same(one: &Candidate, other: &Candidate) -> bool {
    one.name() == other.name() && one.block_bytes == other.block_bytes
}

/// The latency, as that of `now`'s blocks, from which on some codec beats not compressing: `None` when none does up to
/// a thousand times the measured latency, or down to a thousandth.
pub(super) fn pays_from_us(candidates: &[Candidate], now: &Candidate) -> Option<f64> {
    let pays = |scale: f64| best_at(candidates, scale).is_some_and(|one| one.codec.is_some());
    let (mut low, mut high) = SCALES;
    if pays(low) || !pays(high) {
        return None;
    }
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if pays(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some((low * high).sqrt() * now.device_us)
}

/// Bisections of a share.
const SHARE_STEPS: u32 = 14;

/// From which share on the codec is faster than raw pages, which take `raw_us`.
pub(super) fn break_even(
    options: &Options,
    codec: &CodecCosts,
    points: &[Point],
    raw_us: f64,
) -> Result<BreakEven, LabError> {
    let model = Model::of(options)?;
    let wins = |point: &Point| point.us_per_page < raw_us - NOTHING_US;
    let Some(first) = points.iter().position(|point| point.share > 0.0 && wins(point)) else {
        return Ok(BreakEven::Never);
    };
    let (mut low, mut high) = (
        first.checked_sub(1).map_or(0.0, |before| points[before].share),
        points[first].share,
    );
    for _ in 0..SHARE_STEPS {
        let middle = f64::midpoint(low, high);
        if wins(&model.point(codec, middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(if high < 0.001 {
        BreakEven::AtOnce
    } else {
        BreakEven::Share(high)
    })
}

/// How much memory it takes for compression not to pay any more.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBound {
    /// From this many bytes.
    From(f64),
    /// It pays until all the data fits.
    Never,
}

/// Steps between the memory there is and the data.
const MEMORY_STEPS: i32 = 12;

/// The memory from which on the codec, with the blocks of `options`, gains less than `least_gain` of the time of the
/// fastest of `raws`: raw pages of all lengths.
pub(super) fn pays_until(
    raws: &[Options],
    options: &Options,
    codec: &CodecCosts,
    share: f64,
    least_gain: f64,
) -> Result<MemoryBound, LabError> {
    let model = Model::of(options)?;
    let raws = raws.iter().map(Model::of).collect::<Result<Vec<_>, _>>()?;
    let pays = |memory: f64| {
        let raw = raws.iter().map(|raw| raw.raw(memory).us_per_page);
        let raw = raw.fold(f64::MAX, f64::min);
        let shares = [share, share / 2.0, 0.1];
        let least = shares.map(|share| model.point_with(memory, codec, share).us_per_page);
        least.into_iter().fold(f64::MAX, f64::min) < raw * (1.0 - least_gain)
    };
    let (from, to) = (options.memory_bytes as f64, options.data_bytes() * 1.02);
    if from >= to {
        return Ok(MemoryBound::Never);
    }
    let at = |step: i32| from * (to / from).powf(f64::from(step) / f64::from(MEMORY_STEPS));
    let Some(first) = (1..MEMORY_STEPS).find(|step| !pays(at(*step))) else {
        return Ok(MemoryBound::Never);
    };
    let (mut low, mut high) = (at(first - 1), at(first));
    for _ in 0..6 {
        let middle = f64::midpoint(low, high);
        if pays(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(MemoryBound::From(f64::midpoint(low, high)))
}

/// Bytes of memory with which the codec is as fast as not compressing is with all of it.
pub(super) fn memory_for(options: &Options, codec: &CodecCosts, us: f64) -> Result<f64, LabError> {
    let model = Model::of(options)?;
    let fast_enough = |memory: f64| {
        let (best, _) = best_share(model.raw(memory), |share| model.point_with(memory, codec, share));
        best.us_per_page <= us
    };
    let (mut low, mut high) = (0.0, options.memory_bytes as f64);
    for _ in 0..10 {
        let middle = f64::midpoint(low, high);
        if fast_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}
