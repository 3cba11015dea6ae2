//! Every codec round-trips its blocks, with and without a dictionary, completely and partially.

use std::sync::{Arc, OnceLock};

use fastrand::Rng;

use crate::support::{dictionaries_for, engines, sample};
use leafpress_codec::{CodecError, Dictionary, Engine, Scratch};
use proptest::prelude::*;

const SIZES: [usize; 24] = [
    0, 1, 2, 5, 7, 12, 13, 31, 64, 100, 128, 255, 256, 511, 512, 1000, 1024, 4095, 4096, 4097, 16_384, 65_535, 65_536,
    70_000,
];

#[test]
fn sizes_and_contents() {
    let mut scratch = Scratch::default();
    for engine in engines() {
        for dictionary in dictionaries_for(engine.codec()) {
            let dictionary = dictionary.as_ref().filter(|_| engine.supports_dictionary());
            for size in SIZES {
                for kind in 0..4 {
                    let raw = sample(kind, size, size as u64);
                    let mut out = b"before".to_vec();
                    let len = engine.compress(&raw, dictionary, &mut out).unwrap();
                    assert_eq!(out.len(), 6 + len);
                    assert_eq!(&out[..6], b"before");
                    let block = &out[6..];
                    let mut back = vec![0xA5; size];
                    engine.decompress(block, dictionary, &mut back).unwrap();
                    assert_eq!(back, raw, "{} size {size} kind {kind}", engine.codec());
                    for needed in [0, 1, size / 3, size.saturating_sub(1), size] {
                        let part = engine
                            .decode(block, dictionary, size, needed.min(size), &mut scratch)
                            .unwrap();
                        assert!(part.len() >= needed.min(size) && part.len() <= size);
                        assert_eq!(part, &raw[..part.len()], "{} size {size} kind {kind}", engine.codec());
                    }
                }
            }
        }
    }
}

/// Bytes for which deflate's fixed codes take nine bits, so that blocks have the maximum length.
#[test]
fn least_compressible_bytes() {
    let lengths = (1..700).chain(4000..4200).chain([9000, 65_535, 65_536, 100_003]);
    let mut random = Rng::with_seed(9);
    for len in lengths {
        let raw: Vec<u8> = (0..len).map(|_| 144 + random.usize(..112) as u8).collect();
        for engine in engines() {
            let mut block = Vec::new();
            let compressed = engine.compress(&raw, None, &mut block);
            assert!(compressed.is_ok(), "{}, {len} bytes: {compressed:?}", engine.codec());
            let mut back = vec![0; len];
            engine.decompress(&block, None, &mut back).unwrap();
            assert_eq!(back, raw, "{}, {len} bytes", engine.codec());
        }
    }
}

#[test]
fn batches() {
    for engine in engines() {
        for dictionary in [&None, &dictionaries_for(engine.codec())[2]] {
            let dictionary = dictionary.as_ref().filter(|_| engine.supports_dictionary());
            let raws: Vec<Vec<u8>> = (0..40)
                .map(|i| sample(i % 4, [0, 1, 128, 1000, 5000][i % 5], i as u64))
                .collect();
            let raws: Vec<&[u8]> = raws.iter().map(Vec::as_slice).collect();
            let mut blocks = vec![b"before".to_vec()];
            engine.compress_batch(&raws, dictionary, &mut blocks).unwrap();
            assert_eq!(blocks.len(), 41);
            let mut refs: Vec<&[u8]> = blocks[1..].iter().map(Vec::as_slice).collect();
            // One block that does not affect the others.
            refs[7] = &[0xFF; 3];
            let mut backs: Vec<Vec<u8>> = raws.iter().map(|raw| vec![0xA5; raw.len()]).collect();
            let mut slices: Vec<&mut [u8]> = backs.iter_mut().map(Vec::as_mut_slice).collect();
            let results = engine.decompress_batch(&refs, dictionary, &mut slices);
            assert_eq!(results.len(), 40);
            for (i, result) in results.iter().enumerate() {
                if i == 7 {
                    assert!(matches!(result, Err(CodecError::Corrupt { .. })), "{}", engine.codec());
                } else {
                    assert!(result.is_ok(), "{} block {i}: {result:?}", engine.codec());
                    assert_eq!(backs[i], raws[i], "{} block {i}", engine.codec());
                }
            }
            let counters = engine.counters();
            assert_eq!(counters.compress_calls % 40, 0);
            assert_eq!(counters.compress_calls, counters.decompress_calls);
            assert_eq!(
                counters.hardware_calls + counters.software_calls,
                counters.compress_calls + counters.decompress_calls
            );
        }
    }
}

#[test]
fn large_values() {
    for engine in engines() {
        for dictionary in dictionaries_for(engine.codec()) {
            let dictionary = dictionary.as_ref().filter(|_| engine.supports_dictionary());
            for size in [131_071, 131_072, 131_073, 1_500_000] {
                let raw = sample(1, size, 9);
                let mut out = Vec::new();
                engine.compress(&raw, dictionary, &mut out).unwrap();
                let is_without_tokens =
                    engine.codec().family() == "onpair" && dictionary.is_none_or(|given| given.bytes().is_empty());
                assert!(
                    engine.codec().family() == "none" || out.len() < size / 2 || is_without_tokens,
                    "{}",
                    engine.codec()
                );
                let mut back = vec![0; size];
                engine.decompress(&out, dictionary, &mut back).unwrap();
                assert!(back == raw, "{} size {size}", engine.codec());
            }
        }
    }
}

/// The tail of LZ4's short inputs occurs in the dictionary and in the input, completely and partially, where matches
/// run into it.
#[test]
fn lz4_tails_in_the_data() {
    const TAIL: [u8; 12] = [0xF9, 0xC5, 0xE3, 0x9B, 0xF6, 0xA7, 0xED, 0x8F, 0xDB, 0xFA, 0xB1, 0xCE];
    let mut scratch = Scratch::default();
    for engine in engines().iter().filter(|e| e.codec().family() == "lz4") {
        for seed in 0..40 {
            let record = sample(if seed % 3 == 0 { 0 } else { 1 }, 20 + seed * 7, seed as u64);
            for known in 0..=TAIL.len() {
                let mut bytes = sample(0, 100, 99);
                bytes.extend_from_slice(&record);
                bytes.extend_from_slice(&TAIL[..known]);
                bytes.extend_from_slice(&sample(0, 50, 98));
                let dictionary = Dictionary::from_bytes(1, bytes.as_slice());
                let mut with_tail = record.clone();
                with_tail.extend_from_slice(&TAIL[..known]);
                for raw in [&record, &with_tail, &bytes] {
                    for dictionary in [None, Some(&dictionary)] {
                        let mut block = Vec::new();
                        engine.compress(raw, dictionary, &mut block).unwrap();
                        assert!(block.len() <= raw.len());
                        for needed in [raw.len(), raw.len() / 4] {
                            let back = engine
                                .decode(&block, dictionary, raw.len(), needed, &mut scratch)
                                .unwrap();
                            assert_eq!(back, &raw[..back.len()], "seed {seed} known {known}");
                            assert!(back.len() >= needed);
                        }
                        let mut back = vec![0; raw.len()];
                        engine.decompress(&block, dictionary, &mut back).unwrap();
                        assert_eq!(back, *raw);
                    }
                }
                // The whole record is one match, with or without the tail after it.
                let mut block = Vec::new();
                engine.compress(&record, Some(&dictionary), &mut block).unwrap();
                assert!(
                    record.len() < 40 || block.len() < record.len() / 2 + 12,
                    "seed {seed} known {known}"
                );
            }
        }
    }
}

/// A thread's buffer is used with several dictionaries and without one in turn.
#[test]
fn one_scratch_for_many_dictionaries() {
    for engine in engines() {
        let dictionaries = dictionaries_for(engine.codec());
        let mut scratch = Scratch::default();
        for step in 0_usize..200 {
            let dictionary = dictionaries[(step * step + step / 7) % dictionaries.len()]
                .as_ref()
                .filter(|_| engine.supports_dictionary());
            let raw = sample(step % 4, 50 + step * 17, step as u64);
            let mut block = Vec::new();
            engine.compress(&raw, dictionary, &mut block).unwrap();
            let back = engine
                .decode(&block, dictionary, raw.len(), raw.len(), &mut scratch)
                .unwrap();
            assert_eq!(back, raw, "{} step {step}", engine.codec());
        }
    }
}

/// A thread keeps buffers for some dictionaries only; with more of them in any order decoding still succeeds.
#[test]
fn more_dictionaries_than_a_thread_keeps_buffers_for() {
    let dictionaries: Vec<Dictionary> = (0..9)
        .map(|seed| Dictionary::from_bytes(seed, sample(1, 1000 + 9000 * seed as usize, u64::from(seed))))
        .collect();
    // Those of onpair keep none: they decode without history.
    let primed = |engine: &&Arc<dyn Engine>| engine.supports_dictionary() && engine.codec().family() != "onpair";
    for engine in engines().iter().filter(primed) {
        let mut random = Rng::with_seed(4);
        for step in 0..600 {
            // Runs of one dictionary, alternating pairs, and all of them.
            let among = [1, 2, dictionaries.len()][step / 10 % 3];
            let dictionary = Some(&dictionaries[(step / 30 + random.usize(..among)) % dictionaries.len()]);
            let size = [60, 4096, 4200, 16_500, 140_000][random.usize(..5)];
            let raw = sample(1 + 2 * random.usize(..2), size, step as u64);
            let mut block = Vec::new();
            engine.compress(&raw, dictionary, &mut block).unwrap();
            let mut back = vec![0xA5; size];
            engine.decompress(&block, dictionary, &mut back).unwrap();
            assert!(back == raw, "{} step {step}, {size} bytes", engine.codec());
        }
    }
}

#[test]
fn threads_share_an_engine_and_a_dictionary() {
    for engine in engines() {
        let dictionaries = dictionaries_for(engine.codec());
        let before = engine.counters();
        std::thread::scope(|s| {
            for t in 0..4_usize {
                let (engine, dictionaries) = (&engine, &dictionaries);
                s.spawn(move || {
                    let mut scratch = Scratch::default();
                    for step in 0..100 {
                        let dictionary = dictionaries[(t + step) % dictionaries.len()]
                            .as_ref()
                            .filter(|_| engine.supports_dictionary());
                        let raw = sample(step % 4, 100 + step, (t * 1000 + step) as u64);
                        let mut block = Vec::new();
                        engine.compress(&raw, dictionary, &mut block).unwrap();
                        let back = engine
                            .decode(&block, dictionary, raw.len(), raw.len(), &mut scratch)
                            .unwrap();
                        assert_eq!(back, raw);
                    }
                });
            }
        });
        let after = engine.counters();
        assert_eq!(after.compress_calls - before.compress_calls, 400);
        assert_eq!(after.decompress_calls - before.decompress_calls, 400);
        assert_eq!(after.compress_bytes_out, after.decompress_bytes_in);
        assert_eq!(after.compress_bytes_in, after.decompress_bytes_out);
        assert_eq!(after.errors, 0);
        let timed = after.compress_ns > 0 && after.decompress_ns > 0;
        assert_eq!(timed, engine.codec().family() != "none");
        assert_eq!(
            after.hardware_calls + after.software_calls,
            after.compress_calls + after.decompress_calls
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_bytes(raw in proptest::collection::vec(any::<u8>(), 0..3000), repeat in 1..20_usize) {
        static ENGINES: OnceLock<Vec<Arc<dyn Engine>>> = OnceLock::new();
        let raw = raw.repeat(repeat);
        let mut scratch = Scratch::default();
        for engine in ENGINES.get_or_init(engines) {
            for dictionary in dictionaries_for(engine.codec()) {
                let dictionary = dictionary.as_ref().filter(|_| engine.supports_dictionary());
                let mut block = Vec::new();
                engine.compress(&raw, dictionary, &mut block).unwrap();
                let back = engine.decode(&block, dictionary, raw.len(), raw.len(), &mut scratch).unwrap();
                prop_assert_eq!(back, &raw[..]);
            }
        }
    }
}
