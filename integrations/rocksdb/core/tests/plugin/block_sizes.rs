//! Blocks from 100 bytes to 1 MiB, of every kind of data, come back through every codec.

use proptest::prelude::*;
use rocksdb::DB;

use crate::support::{noise, options, text};

/// What a value is made of.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Empty,
    Zeroes,
    Text,
    Noise,
    /// Text with noise in it.
    Mixed,
    /// Matches at the longest distance that the window of 4 KiB allows, and just beyond.
    Window,
    /// Bytes that look like the ends of LZ4 and deflate blocks.
    Tails,
}

fn value(kind: Kind, seed: u64, bytes: usize) -> Vec<u8> {
    match kind {
        Kind::Empty => Vec::new(),
        Kind::Zeroes => vec![0; bytes],
        Kind::Text => text(seed, bytes),
        Kind::Noise => noise(seed, bytes),
        Kind::Mixed => {
            let mut out = text(seed, bytes);
            for (at, chunk) in out.chunks_mut(64).enumerate().filter(|(at, _)| at % 3 == 0) {
                chunk.copy_from_slice(&noise(seed + at as u64, 64)[..chunk.len()]);
            }
            out
        }
        Kind::Window => noise(seed, 4096 + (seed % 3) as usize - 1).repeat(bytes / 4095 + 1)[..bytes].to_vec(),
        Kind::Tails => {
            let tail = [
                0xF9, 0xC5, 0xE3, 0x9B, 0xF6, 0xA7, 0xED, 0x8F, 0xDB, 0xFA, 0xB1, 0xCE, 0x03, 0x00, 0xFF,
            ];
            let mut out = text(seed, bytes);
            let at = out.len().saturating_sub(tail.len());
            out[at..].copy_from_slice(&tail[..bytes - at]);
            out
        }
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Empty),
        Just(Kind::Zeroes),
        Just(Kind::Text),
        Just(Kind::Noise),
        Just(Kind::Mixed),
        Just(Kind::Window),
        Just(Kind::Tails),
    ]
}

fn codecs() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("lz4"),
        Just("lz4:fast=30"),
        Just("lz4:hc=4"),
        Just("zstd:3"),
        Just("zstd:-5"),
        Just("zstd:12"),
        Just("deflate:1"),
        Just("deflate:9"),
        Just("qpl:auto:dynamic"),
    ]
}

/// Sizes spread evenly over their logarithms, with the codecs' own bounds among them.
fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => (100.0_f64.log2()..20.0).prop_map(|log| log.exp2() as usize),
        1 => prop_oneof![
            Just(4095_usize), Just(4096), Just(4097), Just(65_535),
            Just(65_536), Just(131_072), Just(131_073), Just(1 << 20)
        ],
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_block_comes_back(
        codec in codecs(),
        dictionary in prop_oneof![Just(0), Just(4096)],
        block_bytes in sizes(),
        values in prop::collection::vec((kinds(), any::<u64>(), sizes()), 1..24),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let options = options(&format!(
            "block_based_table_factory={{block_size={block_bytes};no_block_cache=true}};\
             compression_manager={{id=leafpress;codec={codec};dictionary_bytes={dictionary};verify=true}}"
        ));
        let db = DB::open(&options, directory.path()).unwrap();
        let values: Vec<_> = values.into_iter().map(|(kind, seed, bytes)| value(kind, seed % 1000, bytes)).collect();
        for (at, value) in values.iter().enumerate() {
            db.put(crate::support::key(at as u64), value).unwrap();
        }
        db.flush().unwrap();
        for (at, value) in values.iter().enumerate() {
            let found = db.get(crate::support::key(at as u64)).unwrap();
            prop_assert_eq!(found.as_ref(), Some(value));
        }
    }
}
