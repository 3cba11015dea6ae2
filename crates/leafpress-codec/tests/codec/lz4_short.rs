//! Short records with a dictionary are compressed by a separate encoder: its blocks are LZ4 blocks.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use fastrand::Rng;

use crate::support::{Guarded, dictionaries, sample};
use leafpress_codec::Codec;
use leafpress_codec::{Dictionary, Engine, EngineOptions, Lz4Blocks, Scratch};
// Linked for its object code.
use lz4_sys as _;
use proptest::prelude::*;

unsafe extern "C" {
    fn LZ4_decompress_safe_usingDict(
        source: *const c_char,
        dest: *mut c_char,
        source_size: c_int,
        dest_capacity: c_int,
        dictionary: *const c_char,
        dictionary_size: c_int,
    ) -> c_int;
}

/// The tail that is cut off a block.
const TAIL: [u8; 12] = [0xF9, 0xC5, 0xE3, 0x9B, 0xF6, 0xA7, 0xED, 0x8F, 0xDB, 0xFA, 0xB1, 0xCE];
/// Maximum record length of the encoder for short records.
const MAX_SHORT_BYTES: usize = 512;

fn open(name: &str, lz4_blocks: Lz4Blocks) -> Arc<dyn Engine> {
    let mut options = EngineOptions::default();
    options.lz4_blocks = lz4_blocks;
    name.parse::<Codec>().unwrap().open(&options).unwrap()
}

fn lz4() -> Arc<dyn Engine> {
    open("lz4", Lz4Blocks::TailCutOff)
}

fn block(engine: &dyn Engine, raw: &[u8], dictionary: Option<&Dictionary>) -> Vec<u8> {
    let mut block = Vec::new();
    let written = engine.compress(raw, dictionary, &mut block).unwrap();
    assert_eq!(written, block.len());
    block
}

/// Reads one length of a sequence, with `nibble` from its token.
fn length(bytes: &[u8], at: &mut usize, nibble: u8) -> usize {
    let mut length = usize::from(nibble);
    if nibble == 15 {
        loop {
            length += usize::from(bytes[*at]);
            *at += 1;
            if bytes[*at - 1] != 255 {
                break;
            }
        }
    }
    length
}

/// Parses a complete block and asserts the rules of the format's description (`lz4_Block_format.md`).
fn assert_follows_the_rules(block: &[u8], raw_len: usize, history: usize) {
    let (mut at, mut done, mut last_match) = (0, 0, None);
    loop {
        let token = block[at];
        at += 1;
        let literals = length(block, &mut at, token >> 4);
        at += literals;
        done += literals;
        if at == block.len() {
            assert_eq!(done, raw_len);
            if let Some(begins) = last_match {
                assert!(literals >= 5, "the last five bytes are literals");
                assert!(begins + 12 <= raw_len, "no match begins in the last twelve");
            }
            return;
        }
        let offset = usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
        at += 2;
        assert!(offset > 0 && offset <= done + history, "{offset} of {}", done + history);
        last_match = Some(done);
        done += 4 + length(block, &mut at, token & 15);
    }
}

/// Compresses, and decodes in every possible way.
fn assert_round_trip(raw: &[u8], dictionary: Option<&Dictionary>) {
    let engine = lz4();
    let guarded = Guarded::from(raw);
    let pressed = block(&*engine, guarded.bytes(), dictionary);
    assert!(pressed.len() <= raw.len());
    let history = dictionary.map_or(&[][..], Dictionary::bytes);
    if pressed.len() < raw.len() {
        let whole = [&pressed[..], &TAIL].concat();
        let tailed = [raw, &TAIL].concat();
        let mut back = vec![0; tailed.len()];
        // SAFETY: every pointer is passed with the length of its target.
        let found = unsafe {
            LZ4_decompress_safe_usingDict(
                whole.as_ptr().cast(),
                back.as_mut_ptr().cast(),
                whole.len() as c_int,
                back.len() as c_int,
                history.as_ptr().cast(),
                history.len() as c_int,
            )
        };
        // A record in which a match runs into the tail is compressed without one, if liblz4 compresses it.
        if found == back.len() as c_int && back == tailed {
            assert_follows_the_rules(&whole, tailed.len(), history.len());
        } else {
            assert!(history.len() < 64 || raw.len() > MAX_SHORT_BYTES, "{found}");
        }
    } else {
        assert!(pressed == raw);
    }
    let mut back = vec![0; raw.len()];
    engine.decompress(&pressed, dictionary, &mut back).unwrap();
    assert!(back == raw);
    let mut scratch = Scratch::default();
    for needed in [0, raw.len() / 3, raw.len()] {
        let decoded = engine
            .decode(&pressed, dictionary, raw.len(), needed, &mut scratch)
            .unwrap();
        assert!(decoded.len() >= needed && raw.starts_with(decoded));
    }
    for room in [0, pressed.len().saturating_sub(1), pressed.len(), raw.len() + 100] {
        let mut out = Guarded::from(vec![0; room].as_slice());
        let written = engine.compress_into(raw, dictionary, out.bytes_mut()).unwrap();
        let fits = pressed.len() < raw.len() && pressed.len() <= room;
        assert_eq!(written, fits.then_some(pressed.len()));
        assert!(!fits || out.bytes().starts_with(&pressed));
    }
}

#[test]
fn records_of_every_length() {
    for dictionary in dictionaries() {
        for len in (0..=80).chain([127, 128, 254, 255, 256, 257, 300, 511, 512, 513, 600]) {
            for kind in 0..4 {
                assert_round_trip(&sample(kind, len, len as u64), dictionary.as_ref());
            }
        }
    }
}

/// Lengths of matches and of literals around each value at which their encoding changes.
#[test]
fn lengths_around_those_that_take_another_byte() {
    let bytes = sample(0, 4096, 1);
    let dictionary = Dictionary::from_bytes(1, bytes.as_slice());
    let noise = sample(0, 600, 2);
    for len in (1..40).chain(265..280).chain(500..=512) {
        let from = &bytes[1000..][..len];
        let (before, behind) = (&noise[..len.min(512 - len)], &noise[..len.min(13)]);
        assert_round_trip(from, Some(&dictionary));
        assert_round_trip(&[before, from].concat(), Some(&dictionary));
        assert_round_trip(&[from, &noise[..512 - len]].concat(), Some(&dictionary));
        assert_round_trip(&[before, from, behind].concat(), Some(&dictionary));
        assert_round_trip(
            &[&noise[..13], from, &noise[..512_usize.saturating_sub(13 + len)]].concat(),
            Some(&dictionary),
        );
    }
}

/// The tail's bytes may occur in a record or a dictionary.
#[test]
fn the_tail_inside_a_record() {
    let with_tail = [&sample(1, 100, 1)[..], &TAIL, &sample(1, 100, 2)].concat();
    let all = [
        Dictionary::from_bytes(1, with_tail),
        Dictionary::from_bytes(2, TAIL.repeat(30)),
    ];
    for dictionary in dictionaries().into_iter().flatten().chain(all) {
        for repeats in 0..5 {
            for cut in 0..=TAIL.len() {
                let tails = TAIL.repeat(repeats);
                let text = sample(1, 60, 3);
                assert_round_trip(&[&text[..], &tails, &TAIL[..cut]].concat(), Some(&dictionary));
                assert_round_trip(&[&TAIL[cut..], &tails, &text].concat(), Some(&dictionary));
                assert_round_trip(
                    &[&text[..20], &tails, &TAIL[..cut], &text[20..], &TAIL].concat(),
                    Some(&dictionary),
                );
            }
        }
    }
}

/// Matches that begin at a dictionary's first byte and end at its last.
#[test]
fn dictionaries_of_every_length() {
    let bytes = sample(1, 70_000, 5);
    let lengths = (0..100).chain([255, 256, 1000, 4095, 4096, 5000, 16_384, 40_000]);
    for len in lengths
        .chain((65_536 - MAX_SHORT_BYTES - 2)..=(65_536 - MAX_SHORT_BYTES + 2))
        .chain(65_534..=65_537)
        .chain([70_000])
    {
        let bytes = &bytes[..len];
        let dictionary = Dictionary::from_bytes(1, bytes);
        for part in [128, 300, 512] {
            let part = part.min(len);
            assert_round_trip(&bytes[..part], Some(&dictionary));
            assert_round_trip(&bytes[len - part..], Some(&dictionary));
            assert_round_trip(
                &[&bytes[len - part / 2..], &bytes[..part / 2]].concat(),
                Some(&dictionary),
            );
        }
    }
}

#[test]
fn a_dictionary_counts_the_table_for_short_records() {
    let dictionary = Dictionary::from_bytes(1, sample(1, 16 << 10, 1));
    let engine = lz4();
    let before = dictionary.held_bytes();
    block(&*engine, &sample(1, MAX_SHORT_BYTES, 2), Some(&dictionary));
    let with_short = dictionary.held_bytes() - before;
    assert_eq!(with_short, 8 << 10);
    block(&*engine, &sample(1, MAX_SHORT_BYTES + 1, 2), Some(&dictionary));
    let with_all = dictionary.held_bytes() - before;
    assert!(
        with_all > with_short + (16 << 10) && with_all < with_short + (17 << 10),
        "{with_all}"
    );
}

/// Compared with liblz4's encoder, which writes blocks without a cut tail.
#[test]
fn blocks_are_at_most_as_large_as_those_of_liblz4() {
    let liblz4 = open("lz4", Lz4Blocks::Standard);
    let records: Vec<Vec<u8>> = (0..3000).map(|seed| sample(1, 128, seed)).collect();
    let samples: Vec<&[u8]> = records[1000..].iter().map(Vec::as_slice).collect();
    let dictionary = Dictionary::train(Codec::Lz4 { acceleration: 1 }, &samples, 8 << 10).unwrap();
    let sum = |engine: &dyn Engine| -> usize {
        let blocks = records[..1000]
            .iter()
            .map(|raw| block(engine, raw, Some(&dictionary)).len());
        blocks.sum()
    };
    let (own, theirs) = (sum(&*lz4()), sum(&*liblz4));
    assert!(own < theirs, "{own} of {theirs}");
}

#[test]
fn a_block_does_not_depend_on_the_blocks_before_it() {
    let dictionaries = dictionaries();
    let engine = lz4();
    let mut random = Rng::with_seed(7);
    for seed in 0..300 {
        let dictionary = dictionaries[random.usize(..dictionaries.len())].as_ref();
        let raw = sample(1 + 2 * random.usize(..2), random.usize(..600), seed);
        let after_others = block(&*engine, &raw, dictionary);
        let alone = std::thread::scope(|scope| scope.spawn(|| block(&*engine, &raw, dictionary)).join().unwrap());
        assert!(after_others == alone, "{} bytes", raw.len());
    }
}

/// Bytes with repetitions at all distances, from an alphabet of any size.
fn bytes(len: impl Into<proptest::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        proptest::collection::vec(any::<u8>(), 1..20),
        proptest::collection::vec(0_u8..4, 1..40),
        (any::<u8>(), 1_usize..60).prop_map(|(byte, len)| vec![byte; len]),
        (0..=TAIL.len()).prop_map(|len| TAIL[..len].to_vec()),
    ];
    let len = len.into();
    (
        proptest::collection::vec(piece, 0..60),
        proptest::collection::vec(any::<(u16, u16)>(), 0..20),
        any::<usize>(),
    )
        .prop_map(move |(pieces, copies, size)| {
            let mut bytes = pieces.concat();
            for (from, count) in copies {
                let from = usize::from(from) % bytes.len().max(1);
                let to = bytes.len().min(from + usize::from(count) % 100);
                bytes.extend_from_within(from..to);
            }
            bytes.truncate(len.start() + size % (len.end_incl() - len.start() + 1));
            bytes
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_record_with_any_dictionary(
        dictionary in bytes(0..=2000),
        records in proptest::collection::vec((bytes(0..=520), any::<(u16, u16)>()), 1..6),
    ) {
        let shared = Dictionary::from_bytes(1, dictionary.as_slice());
        for (mut record, (from, count)) in records {
            // A part of the dictionary somewhere in the record.
            let from = usize::from(from) % dictionary.len().max(1);
            let part = &dictionary[from..dictionary.len().min(from + usize::from(count) % 600)];
            let at = usize::from(count) % (record.len() + 1);
            record.splice(at..at, part.iter().copied());
            assert_round_trip(&record, Some(&shared));
            assert_round_trip(&record, None);
        }
    }
}
