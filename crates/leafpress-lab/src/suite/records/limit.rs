//! The limit: all values in one piece, by zstd at a level that is too slow for a cache.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::outcome::Limit;
use crate::core::LabError;

/// The level of zstd whose ratio is the limit.
pub const LIMIT_LEVEL: i32 = 19;
/// Bytes between two looks whether it was cancelled.
const CHUNK_BYTES: usize = 256 << 10;

/// Compresses `bytes` in one piece and brings them back. `None` when it was cancelled.
///
/// # Errors
/// [`LabError::Block`] when zstd fails or returns wrong bytes.
pub(super) fn limit(
    bytes: &[u8],
    file: &str,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(f64),
) -> Result<Option<Limit>, LabError> {
    let failed = |reason: String| LabError::Block {
        codec: name(),
        file: file.to_owned(),
        block: 0,
        block_bytes: bytes.len(),
        reason,
    };
    let started = Instant::now();
    let stored = compress(bytes, cancel, progress).map_err(|e| failed(format!("compress: {e}")))?;
    let Some(stored) = stored else {
        return Ok(None);
    };
    let compress_seconds = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let back = zstd::stream::decode_all(stored.as_slice()).map_err(|e| failed(format!("decompress: {e}")))?;
    let decompress_seconds = started.elapsed().as_secs_f64();
    if back != bytes {
        return Err(failed("WRONG BYTES".into()));
    }
    Ok(Some(Limit {
        codec: name(),
        stored_bytes: stored.len() as u64,
        ratio: bytes.len() as f64 / stored.len().max(1) as f64,
        compress_seconds,
        decompress_seconds,
    }))
}

fn name() -> String {
    format!("zstd:{LIMIT_LEVEL}")
}

fn compress(bytes: &[u8], cancel: &AtomicBool, progress: &mut dyn FnMut(f64)) -> io::Result<Option<Vec<u8>>> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LIMIT_LEVEL)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    for (number, chunk) in bytes.chunks(CHUNK_BYTES).enumerate() {
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        progress((number * CHUNK_BYTES) as f64 / bytes.len() as f64);
        encoder.write_all(chunk)?;
    }
    encoder.finish().map(Some)
}
