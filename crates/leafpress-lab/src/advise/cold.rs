//! Measures a codec's cost after a wait for the device, which the suite's loops do not cover.
//!
//! In a cache a page is compressed when another one is wanted, and hardly ever twice in a row: the codec's tables and
//! code, the page and where it goes have left the CPU's caches, and the CPU comes out of a sleep. Here each compression
//! and each decoding follows a read of a simulated device (`leafpress::store::FaultyStore`), of another page each time,
//! as in the pool.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leafpress::codec::Engine;
use leafpress::store::{FaultyStore, MemoryStore, Operation, PageStore};
use serde::Serialize;

use crate::core::LabError;
use crate::suite::SamplePages;

/// Seconds that a codec is measured with one length of blocks, and the bounds of how often.
const SECONDS: f64 = 0.15;
const TIMES: (usize, usize) = (16, 400);
/// The longest wait, in microseconds: caches are as cold then as they get.
const LONGEST_WAIT_US: f64 = 1000.0;
/// The share of the times, the longest ones, that is discarded: other work interfered.
pub(super) const LEFT_OUT: f64 = 0.1;

/// Microseconds of the pool's own work for a page it compresses: it chooses the page, copies it into the log, reclaims
/// a part of a segment and removes evicted pages from its index. Measured as `sweep_ns` over `compressions` less the
/// codec's own time, 4.6 us on an idle machine: `leafpress pool -p FILE --store memory -m 6M -w 1 -M 1,1 -f 40 -c
/// zstd:1 --device-latency-us 110 --background-threads 0 --out DIR`.
pub const SWEEP_US: f64 = 4.5;

/// Microseconds after a wait for the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cold {
    /// To compress a block and copy the result.
    pub compress_us: f64,
    /// To decode a block into a new buffer.
    pub decompress_us: f64,
}

/// Measures a codec with blocks of one length, behind waits of `device_us`, without the share `left_out` of the longest
/// times; `None` when the sample has none so long, or it was cancelled.
///
/// # Errors
/// [`LabError::System`] when the codec fails.
pub(super) fn measure(
    engine: &dyn Engine,
    sample: &SamplePages,
    block_bytes: usize,
    (device_us, left_out): (f64, f64),
    cancel: &AtomicBool,
) -> Result<Option<Cold>, LabError> {
    let pages: Vec<&[u8]> = sample.pages(block_bytes).collect();
    let Some(first) = pages.first() else { return Ok(None) };
    let failed = |what: String| LabError::System(format!("{}: {what}", engine.codec()));
    let memory = MemoryStore::from_pages([Box::<[u8]>::from(*first)]).map_err(|e| failed(e.to_string()))?;
    let device = FaultyStore::new(memory);
    let wait_us = device_us.clamp(1.0, LONGEST_WAIT_US);
    device.set_latency(Operation::Read, Duration::from_nanos((wait_us * 1e3) as u64));
    let mut frame = vec![0; block_bytes];
    let mut wait = || device.read(0, &mut frame).map_err(|e| failed(e.to_string()));
    let times = (SECONDS * 1e6 / (2.0 * (wait_us + 30.0))) as usize;
    let times = times.clamp(TIMES.0, TIMES.1);
    // Another page each time, all over the sample.
    let picked = (0..times).map(|time| pages[(time * 7919 + 1) % pages.len()]);
    let (mut compress, mut decode) = (Vec::with_capacity(times), Vec::with_capacity(times));
    let (mut log, mut out) = (Vec::with_capacity(times), Vec::new());
    for page in picked {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        wait()?;
        let start = Instant::now();
        out.clear();
        let length = engine
            .compress(page, None, &mut out)
            .map_err(|e| failed(e.to_string()))?;
        // Incompressible blocks stay raw.
        let block = (length < page.len()).then(|| out[..length].to_vec());
        compress.push(start.elapsed());
        log.push((page.len(), block));
    }
    for (length, block) in &log {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(block) = block else { continue };
        wait()?;
        let start = Instant::now();
        let mut copy = vec![0; *length];
        engine
            .decompress(block, None, &mut copy)
            .map_err(|e| failed(e.to_string()))?;
        black_box(&copy);
        decode.push(start.elapsed());
    }
    Ok(Some(Cold {
        compress_us: mean_us(compress, left_out),
        decompress_us: mean_us(decode, left_out),
    }))
}

/// The mean without that share of the longest times.
fn mean_us(mut times: Vec<Duration>, left_out: f64) -> f64 {
    times.sort_unstable();
    let kept = (times.len() as f64 * (1.0 - left_out)).ceil() as usize;
    let sum: Duration = times.iter().take(kept).sum();
    sum.as_secs_f64() * 1e6 / kept.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::mean_us;

    #[test]
    fn the_longest_times_are_left_out() {
        let mut times = vec![Duration::from_micros(10); 9];
        times.push(Duration::from_micros(10_000));
        assert_eq!(mean_us(times, 0.1), 10.0);
        assert_eq!(mean_us(Vec::new(), 0.1), 0.0);
    }
}
