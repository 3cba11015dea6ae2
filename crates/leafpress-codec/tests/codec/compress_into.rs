//! Compression into bounded room: a block that fits decodes to its input, one that does not is refused, and a refusal
//! does not affect the next call.

use std::sync::Arc;

use crate::support::{dictionaries_for, engines, sample};
use leafpress_codec::{Codec, Dictionary, Engine, EngineOptions, Lz4Blocks};

fn all() -> Vec<Arc<dyn Engine>> {
    let mut options = EngineOptions::default();
    options.lz4_blocks = Lz4Blocks::Standard;
    let standard = ["lz4", "lz4:fast=7"].map(|name| name.parse::<Codec>().unwrap().open(&options).unwrap());
    engines().into_iter().chain(standard).collect()
}

/// Compresses into a room of that size, between guard bytes that are checked, and decodes what fits.
fn attempt(engine: &dyn Engine, dictionary: Option<&Dictionary>, raw: &[u8], room: usize) -> Option<usize> {
    let mut out = vec![0x5A; room + 16];
    let written = engine.compress_into(raw, dictionary, &mut out[8..8 + room]).unwrap();
    assert!(
        out[..8].iter().chain(&out[8 + room..]).all(|byte| *byte == 0x5A),
        "{}",
        engine.codec()
    );
    if let Some(written) = written {
        assert!(written <= room && written < raw.len());
        let mut back = vec![0xA5; raw.len()];
        engine.decompress(&out[8..8 + written], dictionary, &mut back).unwrap();
        assert_eq!(back, raw, "{} size {} room {room}", engine.codec(), raw.len());
    }
    written
}

#[test]
fn what_fits_is_read_back() {
    for engine in all() {
        for dictionary in dictionaries_for(engine.codec()) {
            let dictionary = dictionary.as_ref().filter(|_| engine.supports_dictionary());
            for size in [
                0, 1, 100, 511, 4095, 4096, 4097, 16_384, 40_000, 131_072, 131_073, 300_000,
            ] {
                for kind in 0..4 {
                    let raw = sample(kind, size, size as u64);
                    let Some(least) = attempt(&*engine, dictionary, &raw, size + size / 4 + 1000) else {
                        continue;
                    };
                    // Engines differ in how much room beyond the block they need; none needs less, except QPL, whose
                    // blocks depend on the room.
                    let by_room = matches!(engine.codec(), Codec::Qpl { .. });
                    for room in [0, least / 3, least / 2, least - 1, least + 64, size * 7 / 8] {
                        let written = attempt(&*engine, dictionary, &raw, room);
                        assert!(written.is_none() || room >= least || by_room, "{}", engine.codec());
                    }
                }
            }
        }
    }
}

#[test]
fn refusals_and_blocks_take_turns() {
    for engine in all() {
        for size in [4096, 16_384, 200_000] {
            for seed in 0..6 {
                let noise = sample(0, size, seed);
                let text = sample(1, size, seed);
                for room in [size / 50, size / 7, size * 7 / 8] {
                    attempt(&*engine, None, &noise, room);
                    attempt(&*engine, None, &text, room);
                }
            }
        }
    }
}
