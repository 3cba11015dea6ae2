//! Checks that an engine returns what it was given, and rejects corrupt input.

use leafpress::codec::Engine;

/// Frames of the sample to test, evenly spread.
const TRIED: usize = 64;

/// Tests round trips of odd and real inputs; every real block also truncated, which must be an error.
pub fn run(engine: &dyn Engine, frames: &[&[u8]]) -> Result<(), String> {
    let noise: Vec<u8> = (0_u32..4096)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let zeros = vec![0_u8; 4096];
    for odd in [&[][..], &[7], &noise, &zeros, &noise[..100]] {
        round_trip(engine, odd)?;
    }
    for frame in frames.iter().step_by(frames.len().div_ceil(TRIED).max(1)) {
        let block = round_trip(engine, frame)?;
        if let Some((_, cut)) = block.split_last() {
            let mut raw = vec![0; frame.len()];
            if engine.decompress(cut, None, &mut raw).is_ok() && raw != **frame {
                return Err(format!(
                    "a block of {} bytes without its last byte was accepted",
                    block.len()
                ));
            }
        }
    }
    Ok(())
}

fn round_trip(engine: &dyn Engine, raw: &[u8]) -> Result<Vec<u8>, String> {
    let mut block = Vec::new();
    let length = engine
        .compress(raw, None, &mut block)
        .map_err(|e| format!("compressing {} bytes: {e}", raw.len()))?;
    if length != block.len() {
        return Err(format!(
            "compress returned length {length} and wrote {} bytes",
            block.len()
        ));
    }
    let mut back = vec![0xaa; raw.len()];
    engine
        .decompress(&block, None, &mut back)
        .map_err(|e| format!("decompressing {} bytes: {e}", raw.len()))?;
    if back == raw {
        Ok(block)
    } else {
        Err(format!("{} bytes came back changed", raw.len()))
    }
}
