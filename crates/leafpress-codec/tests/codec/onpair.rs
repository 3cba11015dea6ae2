//! What is particular to `onpair`: its dictionaries, and what single records take.

use fastrand::Rng;
use leafpress_codec::{Codec, CodecError, Dictionary, EngineOptions, Scratch};

use crate::support::sample;

const FORMS: [&str; 4] = ["onpair", "onpair:14", "onpair:16", "onpair:huffman"];

fn records() -> Vec<Vec<u8>> {
    (0..4000).map(|seed| sample(1, 100 + seed % 60, seed as u64)).collect()
}

fn trained(codec: Codec, records: &[Vec<u8>], max_bytes: usize) -> Dictionary {
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    Dictionary::train(codec, &records, max_bytes).unwrap()
}

#[test]
fn training_depends_on_the_records_alone() {
    for form in FORMS {
        let codec = form.parse().unwrap();
        let (one, other) = (
            trained(codec, &records(), 32 << 10),
            trained(codec, &records(), 32 << 10),
        );
        assert_eq!(one.bytes(), other.bytes(), "{form}");
        assert_eq!(one.id(), other.id());
    }
}

#[test]
fn a_dictionary_keeps_to_its_bound() {
    for form in FORMS {
        let codec = form.parse().unwrap();
        for max_bytes in [1 << 10, 3000, 8 << 10, 1 << 20] {
            let dictionary = trained(codec, &records(), max_bytes);
            assert!(dictionary.bytes().len() <= max_bytes, "{form}: {max_bytes}");
            dictionary.prepare_to_read(codec).unwrap();
            assert!(dictionary.held_bytes() > dictionary.bytes().len());
        }
        let records = records();
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        let refused = Dictionary::train(codec, &records, 300);
        assert!(matches!(refused, Err(CodecError::Failed { .. })), "{form}: {refused:?}");
    }
}

/// Records that no training has seen, each alone, take less than with a dictionary of zstd.
#[test]
fn single_records_shrink() {
    let (records, unseen) = (records(), sample(1, 130, 1 << 40));
    let size = |name: &str| {
        let codec: Codec = name.parse().unwrap();
        let engine = codec.open(&EngineOptions::default()).unwrap();
        let dictionary = trained(codec, &records, 32 << 10);
        let mut block = Vec::new();
        engine.compress(&unseen, Some(&dictionary), &mut block).unwrap()
    };
    let [packed, .., huffman] = FORMS.map(size);
    assert!(
        packed < size("zstd:3") && huffman < packed,
        "{packed}, {huffman}, {}",
        size("zstd:3")
    );
}

/// Each byte changed, each length cut, and bytes of other kinds: all are refused, and nothing is written.
#[test]
fn dictionaries_of_others_are_refused() {
    for form in FORMS {
        let codec: Codec = form.parse().unwrap();
        let engine = codec.open(&EngineOptions::default()).unwrap();
        let bytes = trained(codec, &records(), 2 << 10).bytes().to_vec();
        let refuse = |bytes: &[u8], what: &str| {
            let dictionary = Dictionary::from_bytes(1, bytes);
            let mut out = b"kept".to_vec();
            let refused = engine.compress(b"a record", Some(&dictionary), &mut out);
            assert!(
                matches!(refused, Err(CodecError::Failed { .. })),
                "{form}, {what}: {refused:?}"
            );
            assert_eq!(out, b"kept");
            let refused = dictionary.prepare_to_read(codec);
            assert!(
                matches!(refused, Err(CodecError::Failed { .. })),
                "{form}, {what}: {refused:?}"
            );
        };
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            refuse(&changed, &format!("byte {at} changed"));
        }
        for length in (1..bytes.len()).step_by(7) {
            refuse(&bytes[..length], &format!("cut to {length}"));
        }
        refuse(&sample(0, 3000, 1), "noise");
        refuse(b"LPO\x01", "a header");
    }
}

#[test]
fn a_dictionary_of_another_form_is_refused_by_writers() {
    let dictionary = trained("onpair:14".parse().unwrap(), &records(), 8 << 10);
    for form in ["onpair", "onpair:16", "onpair:huffman"] {
        let engine = form.parse::<Codec>().unwrap().open(&EngineOptions::default()).unwrap();
        let refused = engine.compress(b"a record", Some(&dictionary), &mut Vec::new());
        assert!(matches!(refused, Err(CodecError::Failed { .. })), "{form}: {refused:?}");
    }
}

/// Dictionaries with a right check over wrong contents, as someone may make them, are refused or decode to some bytes.
#[test]
fn hostile_dictionaries() {
    let mut random = Rng::with_seed(5);
    let mut scratch = Scratch::default();
    for form in FORMS {
        let codec: Codec = form.parse().unwrap();
        let engine = codec.open(&EngineOptions::default()).unwrap();
        let bytes = trained(codec, &records(), 2 << 10).bytes().to_vec();
        for _ in 0..500 {
            let mut changed = bytes.clone();
            for _ in 0..=random.usize(..4) {
                let at = random.usize(..changed.len() - 4);
                changed[at] = random.u64(..) as u8;
            }
            let body = changed.len() - 4;
            let check = rapidhash::v3::rapidhash_v3(&changed[..body]) as u32;
            changed[body..].copy_from_slice(&check.to_le_bytes());
            let dictionary = Dictionary::from_bytes(1, changed);
            let mut block = Vec::new();
            if engine
                .compress(&sample(1, 200, 3), Some(&dictionary), &mut block)
                .is_ok()
            {
                let back = engine
                    .decode(&block, Some(&dictionary), 200, 200, &mut scratch)
                    .unwrap();
                assert_eq!(back, sample(1, 200, 3));
            }
            let _ = engine.decode(&sample(0, 100, 4), Some(&dictionary), 300, 300, &mut scratch);
        }
    }
}
