//! Bytes that no encoder wrote are an error or decode to other bytes of the right length: never a panic, a read or a
//! write out of bounds. Blocks and outputs end directly before an inaccessible page.

use fastrand::Rng;

use crate::support::{Guarded, dictionaries_for, engines, sample};
use leafpress_codec::{CodecError, Dictionary, Engine, Scratch};

/// Passes a block to every decoding function.
fn feed(
    engine: &dyn Engine,
    block: &[u8],
    dictionary: Option<&Dictionary>,
    raw_len: usize,
    scratch: &mut Scratch,
) -> bool {
    let block = Guarded::from(block);
    let mut raw = Guarded::from(vec![0; raw_len].as_slice());
    let whole = engine.decompress(block.bytes(), dictionary, raw.bytes_mut());
    if let Err(error) = &whole {
        assert!(
            matches!(error, CodecError::Corrupt { .. }),
            "{}: {error}",
            engine.codec()
        );
    }
    let decoded = engine.decode(block.bytes(), dictionary, raw_len, raw_len, scratch);
    assert_eq!(decoded.is_ok(), whole.is_ok(), "{}", engine.codec());
    if let Ok(bytes) = decoded {
        assert_eq!(bytes, raw.bytes());
    }
    for needed in [0, 1, raw_len / 5, raw_len / 2] {
        if let Ok(part) = engine.decode(block.bytes(), dictionary, raw_len, needed, scratch) {
            assert!(part.len() >= needed && part.len() <= raw_len);
        }
    }
    whole.is_ok()
}

fn every(mut test: impl FnMut(&dyn Engine, Option<&Dictionary>, &mut Scratch)) {
    let mut scratch = Scratch::default();
    for engine in engines() {
        for dictionary in dictionaries_for(engine.codec()) {
            if dictionary.is_none() || engine.supports_dictionary() {
                test(&*engine, dictionary.as_ref(), &mut scratch);
            }
        }
    }
}

#[test]
fn random_bytes() {
    every(|engine, dictionary, scratch| {
        let mut random = Rng::with_seed(1);
        for _ in 0..150 {
            let block = sample(0, random.usize(..300), random.u64(..));
            feed(engine, &block, dictionary, random.usize(..3000), scratch);
        }
    });
}

#[test]
fn truncations() {
    every(|engine, dictionary, scratch| {
        for kind in [1, 3] {
            let raw = sample(kind, 700, 5);
            let mut block = Vec::new();
            engine.compress(&raw, dictionary, &mut block).unwrap();
            for len in (0..block.len()).step_by(3) {
                let ok = feed(engine, &block[..len], dictionary, raw.len(), scratch);
                // A zstd block has no end marker: a shorter one can be another block of the same length. In other
                // formats only the bytes after the last raw byte may be missing.
                if ok && engine.codec().family() != "zstd" {
                    let mut back = vec![0; raw.len()];
                    engine.decompress(&block[..len], dictionary, &mut back).unwrap();
                    assert!(back == raw, "{} cut from {} to {len}", engine.codec(), block.len());
                }
            }
        }
    });
}

#[test]
fn bit_flips() {
    every(|engine, dictionary, scratch| {
        let mut random = Rng::with_seed(3);
        for size in [128, 1024, 20_000] {
            let raw = sample(1, size, 6);
            let mut block = Vec::new();
            engine.compress(&raw, dictionary, &mut block).unwrap();
            for _ in 0..100 {
                let mut flipped = block.clone();
                for _ in 0..=random.usize(..3) {
                    let bit = random.usize(..flipped.len() * 8);
                    flipped[bit / 8] ^= 1 << (bit % 8);
                }
                feed(engine, &flipped, dictionary, raw.len(), scratch);
            }
        }
    });
}

#[test]
fn wrong_raw_length() {
    every(|engine, dictionary, scratch| {
        let raw = sample(1, 900, 7);
        let mut block = Vec::new();
        engine.compress(&raw, dictionary, &mut block).unwrap();
        for len in [0, 1, 131, 899, 901, 1024, 131_072, 131_073, 200_000] {
            let ok = feed(engine, &block, dictionary, len, scratch);
            assert!(!ok, "{} as {len}", engine.codec());
        }
    });
}

#[test]
fn wrong_dictionary() {
    let mut scratch = Scratch::default();
    for engine in engines().iter().filter(|e| e.supports_dictionary()) {
        let all = dictionaries_for(engine.codec());
        for right in &all {
            let raw = sample(1, 600, 8);
            let mut block = Vec::new();
            engine.compress(&raw, right.as_ref(), &mut block).unwrap();
            for wrong in &all {
                feed(&**engine, &block, wrong.as_ref(), raw.len(), &mut scratch);
            }
        }
    }
}

/// Bytes that begin like a zstd dictionary without being one.
#[test]
fn malformed_dictionary() {
    let mut bytes = vec![0x37, 0xA4, 0x30, 0xEC, 1, 0, 0, 0];
    bytes.extend_from_slice(&sample(0, 1000, 9));
    let dictionary = Dictionary::from_bytes(1, bytes);
    let mut scratch = Scratch::default();
    for engine in engines().iter().filter(|e| e.supports_dictionary()) {
        let mut block = b"kept".to_vec();
        let result = engine.compress(&sample(1, 300, 1), Some(&dictionary), &mut block);
        if matches!(engine.codec().family(), "zstd" | "onpair") {
            assert!(matches!(result, Err(CodecError::Failed { .. })));
            assert_eq!(block, b"kept");
            assert!(
                engine
                    .decode(&[1, 2, 3], Some(&dictionary), 300, 300, &mut scratch)
                    .is_err()
            );
            assert_eq!(engine.counters().errors, 2);
        } else {
            assert!(result.is_ok());
        }
    }
}

#[test]
fn too_little_to_train_on() {
    let samples: Vec<Vec<u8>> = (0..100).map(|i| sample(1, 100, i)).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let tiny: Vec<&[u8]> = samples.iter().map(|s| &s[..2]).collect();
    for name in ["zstd:1", "lz4", "onpair", "onpair:16", "onpair:huffman"] {
        let codec: leafpress_codec::Codec = name.parse().unwrap();
        for (samples, max_bytes) in [
            (&samples[..0], 8192),
            (&samples[..3], 8192),
            (&tiny[..], 8192),
            (&samples[..], 10),
        ] {
            let error = Dictionary::train(codec, samples, max_bytes).unwrap_err();
            assert!(matches!(error, CodecError::Failed { .. }), "{name}: {error}");
            assert!(
                error.to_string().contains("too few") || error.to_string().contains("samples"),
                "{error}"
            );
        }
        let trained = Dictionary::train(codec, &samples, 2048).unwrap();
        assert!(trained.bytes().len() <= 2048 && !trained.bytes().is_empty());
        assert!(trained.held_bytes() > trained.bytes().len());
    }
    assert!(Dictionary::train("deflate:1".parse().unwrap(), &samples, 2048).is_err());
}
