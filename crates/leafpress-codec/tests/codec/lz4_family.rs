//! LZ4's encoders share one format and one decoder, and slower ones compress better.

use std::sync::Arc;

use fastrand::Rng;

use crate::support::{dictionaries, sample};
use leafpress_codec::Codec;
use leafpress_codec::{Dictionary, Engine, EngineOptions, Scratch};

fn open(name: &str) -> Arc<dyn Engine> {
    name.parse::<Codec>().unwrap().open(&EngineOptions::default()).unwrap()
}

fn block(engine: &dyn Engine, raw: &[u8], dictionary: Option<&Dictionary>) -> Vec<u8> {
    let mut block = Vec::new();
    engine.compress(raw, dictionary, &mut block).unwrap();
    block
}

#[test]
fn each_decodes_what_the_others_wrote() {
    let family = ["lz4", "lz4:fast=9", "lz4:hc=2", "lz4:hc=3", "lz4:hc=9", "lz4:hc=12"].map(open);
    let mut scratch = Scratch::default();
    for dictionary in dictionaries() {
        for size in [0, 1, 12, 100, 700, 4096, 4097, 16_384, 70_000] {
            for kind in 0..4 {
                let raw = sample(kind, size, size as u64 + 1);
                for writer in &family {
                    let block = block(&**writer, &raw, dictionary.as_ref());
                    for reader in &family {
                        let mut back = vec![0; size];
                        reader.decompress(&block, dictionary.as_ref(), &mut back).unwrap();
                        assert!(back == raw, "{} by {}, {size} bytes", writer.codec(), reader.codec());
                        let decoded = reader.decode(&block, dictionary.as_ref(), size, size, &mut scratch);
                        assert!(decoded.unwrap() == raw);
                    }
                }
            }
        }
    }
}

/// Pages of a bundled sample: Debian's package index.
fn pages() -> Vec<Vec<u8>> {
    let zipped = include_bytes!("../../../../data/packages.txt.gz");
    // RFC 1952: ten bytes, and a name where flag 8 is set.
    let name = if zipped[3] & 8 == 0 {
        0
    } else {
        zipped[10..].iter().position(|&b| b == 0).unwrap() + 1
    };
    let bytes = miniz_oxide::inflate::decompress_to_vec(&zipped[10 + name..]).unwrap();
    bytes.chunks_exact(16 << 10).map(<[u8]>::to_vec).collect()
}

#[test]
fn a_slow_encoder_writes_smaller_blocks_and_a_dictionary_smaller_ones_yet() {
    let pages = pages();
    // Disjoint, so that no page of the evaluation is in the training set.
    let (training, pages) = pages.split_at(pages.len() * 4 / 5);
    let training: Vec<&[u8]> = training.iter().map(Vec::as_slice).collect();
    let size = |name: &str, dictionary: Option<&Dictionary>| -> usize {
        let engine = open(name);
        pages.iter().map(|page| block(&*engine, page, dictionary).len()).sum()
    };
    let codec: Codec = "lz4:hc=9".parse().unwrap();
    let dictionary = Dictionary::train(codec, &training, 64 << 10).unwrap();
    let (fast, slow) = (size("lz4", None), size("lz4:hc=9", None));
    let with_dictionary = size("lz4:hc=9", Some(&dictionary));
    assert!(slow * 100 < fast * 93, "{slow} of {fast}");
    assert!(with_dictionary * 100 < slow * 90, "{with_dictionary} of {slow}");
    assert!(with_dictionary * 100 < size("lz4", Some(&dictionary)) * 90);
}

/// The tables are built at their first use: one set for level 2, one for the levels above it.
#[test]
fn a_dictionary_counts_the_tables_of_slow_encoders() {
    let dictionary = Dictionary::from_bytes(1, sample(1, 64 << 10, 1));
    let raw = sample(1, 16 << 10, 2);
    let mut held_bytes = vec![dictionary.held_bytes()];
    for name in ["lz4:hc=9", "lz4:hc=3", "lz4:hc=12", "lz4:hc=2"] {
        block(&*open(name), &raw, Some(&dictionary));
        held_bytes.push(dictionary.held_bytes());
    }
    let grown: Vec<usize> = held_bytes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(grown[0] > 256 << 10 && grown[0] < 272 << 10, "{grown:?}");
    assert_eq!(grown, [grown[0], 0, 0, grown[0]]);
}

/// A thread's stream is reused across blocks, levels and dictionaries, without carrying state over.
#[test]
fn a_block_does_not_depend_on_the_blocks_before_it() {
    let dictionaries = dictionaries();
    let family = ["lz4:hc=2", "lz4:hc=4", "lz4:hc=11"].map(open);
    let mut random = Rng::with_seed(11);
    for seed in 0..400 {
        let engine = &*family[random.usize(..family.len())];
        let dictionary = dictionaries[random.usize(..dictionaries.len())].as_ref();
        let raw = sample(1 + 2 * random.usize(..2), random.usize(..20_000), seed);
        let after_others = block(engine, &raw, dictionary);
        // A thread that has compressed nothing before.
        let alone = std::thread::scope(|scope| scope.spawn(|| block(engine, &raw, dictionary)).join().unwrap());
        assert!(after_others == alone, "{} of {} bytes", engine.codec(), raw.len());
    }
}
