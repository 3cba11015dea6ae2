//! Every codec at every length of blocks, each at its best share.

use serde::Serialize;

use super::question::{BlockFigures, Question};
use crate::core::LabError;
use crate::model::{CodecCosts, MAX_COMPRESSED, Model, NOTHING_US, Options, Point, least};

/// A codec, or none, with blocks of one length.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// Its ratio and costs; `None` compresses nothing.
    pub codec: Option<CodecCosts>,
    /// Length of its blocks in bytes.
    pub block_bytes: u64,
    /// Microseconds of a read of a block, at the load that the cache without compression makes.
    pub device_us: f64,
    /// The point with the lowest microseconds per page; share 0 compresses nothing.
    pub best: Point,
    /// The evaluated points, by share.
    #[serde(skip)]
    pub points: Vec<Point>,
}

impl Candidate {
    /// Returns the codec's name; `none` compresses nothing.
    pub fn name(&self) -> &str {
        self.codec.as_ref().map_or("none", |codec| codec.name.as_str())
    }

    /// Returns whether it is a codec that beats not compressing with the same blocks.
    pub fn is_compressing(&self) -> bool {
        self.codec.is_some() && self.best.share > 0.0
    }

    /// The lowest microseconds per page if reads took `scale` times as long, and its point.
    pub(super) fn scaled(&self, scale: f64) -> (f64, &Point) {
        let us = |point: &Point| point.us_per_page + (scale - 1.0) * self.device_us * (1.0 - point.hit_ratio);
        let points = self.points.iter().map(|point| (us(point), point));
        points.fold((us(&self.best), &self.best), |least, one| {
            if one.0 < least.0 - NOTHING_US { one } else { least }
        })
    }
}

/// The blocks' options for the model with the latency at the load of the cache without compression.
pub(super) fn options_at_load(question: &Question, block: &BlockFigures) -> Result<Options, LabError> {
    let without_device = question.model_options(block, 0.0);
    let model = Model::of(&without_device)?;
    let raw = model.raw(question.memory_bytes as f64);
    let workers = f64::from(question.workers);
    let device_us = block
        .reads
        .wait_of_workers_us(workers, raw.us_per_page, 1.0 - raw.hit_ratio);
    Ok(Options {
        device_us,
        ..without_device
    })
}

/// Without compression, and each codec, with blocks of one length.
pub(super) fn of_block(question: &Question, block: &BlockFigures) -> Result<Vec<Candidate>, LabError> {
    let options = options_at_load(question, block)?;
    let model = Model::of(&options)?;
    let raw = model.raw(options.memory_bytes as f64);
    let candidate = |codec: Option<&CodecCosts>, best: Point, points: Vec<Point>| Candidate {
        codec: codec.cloned(),
        block_bytes: block.block_bytes,
        device_us: options.device_us,
        best,
        points,
    };
    let mut candidates = vec![candidate(None, raw, vec![raw])];
    for codec in &block.codecs {
        let (best, points) = best_share(raw, |share| model.point(codec, share));
        candidates.push(candidate(Some(codec), best, points));
    }
    Ok(candidates)
}

/// The best share and the evaluated points: in tenths, then near the best of them, to a percent.
pub(super) fn best_share(raw: Point, at: impl Fn(f64) -> Point) -> (Point, Vec<Point>) {
    let mut points = vec![raw];
    points.extend((1..10).map(|tenth| at(f64::from(tenth) / 10.0)));
    points.push(at(MAX_COMPRESSED));
    for step in [0.03, 0.01] {
        let share = least(raw, points.iter().copied()).share;
        for near in [share - 2.0 * step, share - step, share + step, share + 2.0 * step] {
            let is_new = points.iter().all(|point| (point.share - near).abs() > 1e-6);
            if near > 0.0 && near < MAX_COMPRESSED && is_new {
                points.push(at(near));
            }
        }
    }
    points.sort_by(|one, other| one.share.total_cmp(&other.share));
    // Of equal ones the one that compresses least.
    (least(raw, points.iter().copied()), points)
}
