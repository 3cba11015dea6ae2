//! Speed and ratio of an engine on one thread.

use std::sync::Arc;

use leafpress::Dictionary;
use leafpress::codec::Engine;
use leafpress_lab::suite;
use serde::Serialize;

/// Passes over the frames; the fastest counts.
const PASSES: usize = 3;

/// Measurements of an engine on the frames.
#[derive(Debug, Serialize)]
pub struct Speed {
    /// Raw bytes per second, in millions.
    pub compress_mb_per_s: f64,
    /// Raw bytes per second, in millions.
    pub decompress_mb_per_s: f64,
    /// Raw bytes per compressed byte. A frame that does not shrink counts as its raw length, as in a tree.
    pub ratio: f64,
    /// The whole sample.
    #[serde(skip)]
    pub row: suite::Row,
}

pub fn speed(engine: &Arc<dyn Engine>, frames: &[&[u8]]) -> Result<Speed, String> {
    let row = suite::measure_blocks(engine, frames, PASSES).map_err(|e| e.to_string())?;
    Ok(Speed {
        compress_mb_per_s: row.compress.mb_per_s,
        decompress_mb_per_s: row.decompress.mb_per_s,
        ratio: row.ratio,
        row,
    })
}

/// Returns the raw bytes per compressed byte with a dictionary.
pub fn ratio(engine: &dyn Engine, dictionary: &Dictionary, frames: &[&[u8]]) -> Result<f64, String> {
    let (mut raw, mut held, mut block) = (0, 0, Vec::new());
    for frame in frames {
        block.clear();
        engine
            .compress(frame, Some(dictionary), &mut block)
            .map_err(|e| e.to_string())?;
        raw += frame.len();
        held += block.len().min(frame.len());
    }
    Ok(raw as f64 / held.max(1) as f64)
}
