//! Speed and ratio of an engine on one thread.

use std::time::{Duration, Instant};

use leafpress::Dictionary;
use leafpress::codec::Engine;
use serde::Serialize;

/// Time each direction is measured for, at least one pass over the frames.
const BUDGET: Duration = Duration::from_millis(60);

/// What an engine did with the frames.
#[derive(Debug, Serialize)]
pub struct Speed {
    /// Raw bytes per second, in millions.
    pub compress_mb_per_s: f64,
    /// Raw bytes per second, in millions.
    pub decompress_mb_per_s: f64,
    /// Raw bytes per compressed byte. A frame that does not shrink counts as its raw length: that is how a tree stores it.
    pub ratio: f64,
}

pub fn speed(engine: &dyn Engine, frames: &[&[u8]]) -> Result<Speed, String> {
    let blocks = compress(engine, None, frames)?;
    let mut block = Vec::new();
    let compress_mb_per_s = rate(frames, |frame, _| {
        block.clear();
        engine.compress(frame, None, &mut block).map(|_| ())
    })?;
    let mut raw = vec![0; frames.iter().map(|frame| frame.len()).max().unwrap_or(0)];
    let decompress_mb_per_s = rate(frames, |frame, i| {
        engine.decompress(&blocks[i], None, &mut raw[..frame.len()])
    })?;
    Ok(Speed {
        compress_mb_per_s,
        decompress_mb_per_s,
        ratio: ratio_of(frames, &blocks),
    })
}

/// Raw bytes per compressed byte.
pub fn ratio(engine: &dyn Engine, dictionary: Option<&Dictionary>, frames: &[&[u8]]) -> Result<f64, String> {
    Ok(ratio_of(frames, &compress(engine, dictionary, frames)?))
}

fn ratio_of(frames: &[&[u8]], blocks: &[Vec<u8>]) -> f64 {
    let raw: usize = frames.iter().map(|frame| frame.len()).sum();
    let held: usize = frames
        .iter()
        .zip(blocks)
        .map(|(frame, block)| block.len().min(frame.len()))
        .sum();
    raw as f64 / held.max(1) as f64
}

fn compress(engine: &dyn Engine, dictionary: Option<&Dictionary>, frames: &[&[u8]]) -> Result<Vec<Vec<u8>>, String> {
    frames
        .iter()
        .map(|frame| {
            let mut block = Vec::new();
            engine
                .compress(frame, dictionary, &mut block)
                .map_err(|e| e.to_string())?;
            Ok(block)
        })
        .collect()
}

/// Raw megabytes per second of `work` over the frames, round and round until the budget is spent.
fn rate<E: std::fmt::Display>(
    frames: &[&[u8]],
    mut work: impl FnMut(&[u8], usize) -> Result<(), E>,
) -> Result<f64, String> {
    let start = Instant::now();
    let mut bytes = 0_usize;
    let mut elapsed;
    loop {
        for (i, frame) in frames.iter().enumerate() {
            work(frame, i).map_err(|e| e.to_string())?;
            bytes += frame.len();
            // Slow engines on large samples: a look at the clock every 64 frames ends the pass early.
            if i % 64 == 63 && start.elapsed() > BUDGET {
                break;
            }
        }
        elapsed = start.elapsed();
        if elapsed > BUDGET {
            break;
        }
    }
    Ok(bytes as f64 / 1e6 / elapsed.as_secs_f64().max(1e-9))
}
