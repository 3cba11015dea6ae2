//! Sealed blocks round-trip, and nothing else is accepted.

use std::sync::Arc;

use fastrand::Rng;
use leafpress_codec::Codec;
use leafpress_codec::sealed::{self, Label, MAX_OVERHEAD_BYTES, Sealer};
use leafpress_codec::{CodecError, Dictionary, EngineOptions, Scratch};
use proptest::prelude::*;

use crate::support::{Guarded, NAMES, dictionaries_for, sample};

const MOST: usize = 1 << 20;

/// One sealer per codec that can run here.
fn sealers() -> Vec<Sealer> {
    let opened = NAMES
        .iter()
        .filter_map(|name| match Sealer::open(name.parse().unwrap()) {
            Ok(sealer) => Some(sealer),
            Err(CodecError::Unavailable { .. }) => None,
            Err(error) => panic!("{name}: {error}"),
        });
    opened.collect()
}

/// The bytes of a dictionary that the codec takes.
fn dictionary_bytes(codec: Codec, seed: u64) -> Vec<u8> {
    if codec.family() != "onpair" {
        return sample(1, 4000, seed);
    }
    let samples: Vec<Vec<u8>> = (0..100).map(|at| sample(1, 300, 1000 * seed + at)).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    Dictionary::train(codec, &samples, 4000).unwrap().bytes().to_vec()
}

fn sealer(name: &str) -> Sealer {
    Sealer::open(name.parse().unwrap()).unwrap()
}

#[test]
fn what_was_sealed_is_unsealed() {
    for sealer in sealers() {
        for dictionary in dictionaries_for(sealer.codec()) {
            let dictionaries: Vec<Dictionary> = dictionary.iter().cloned().collect();
            for size in [0, 1, 5, 14, 100, 1000, 4096, 4097, 70_000, 140_000] {
                for kind in 0..4 {
                    let raw = sample(kind, size, 11);
                    let sealed = sealer.seal(&raw, dictionary.as_ref()).unwrap();
                    assert!(sealed.len() <= raw.len() + MAX_OVERHEAD_BYTES);
                    let label = Label::read(&sealed).unwrap();
                    assert_eq!(label.raw_bytes, size);
                    let back = sealed::unseal(&sealed, &dictionaries, size).unwrap();
                    assert!(back == raw, "{}, {size} bytes of kind {kind}", sealer.codec());
                    let mut room = vec![7; size + 3];
                    assert_eq!(sealed::unseal_into(&sealed, &dictionaries, &mut room).unwrap(), size);
                    assert!(room[..size] == raw && room[size..] == [7; 3]);
                }
            }
        }
    }
}

#[test]
fn the_label_names_codec_and_dictionary() {
    let raw = sample(1, 2000, 3);
    let dictionary = Dictionary::from_bytes(0, sample(1, 5000, 4));
    for (name, family, takes_dictionary) in [
        ("none", "none", false),
        ("lz4:hc=9", "lz4", true),
        ("zstd:9", "zstd", true),
        ("deflate:6", "deflate", false),
    ] {
        let label = Label::read(&sealer(name).seal(&raw, Some(&dictionary)).unwrap()).unwrap();
        assert_eq!((label.family, label.raw_bytes), (family, 2000));
        assert_eq!(label.dictionary_id, takes_dictionary.then_some(0), "{name}");
    }
    // Incompressible bytes are stored raw.
    let noise = sample(0, 2000, 5);
    let label = Label::read(&sealer("zstd:3").seal(&noise, Some(&dictionary)).unwrap()).unwrap();
    assert_eq!((label.family, label.dictionary_id), ("none", None));
}

/// Every bit of the header, the checksum and the block is protected.
#[test]
fn each_flipped_bit_is_found() {
    for sealer in sealers() {
        let dictionary = Dictionary::from_bytes(9, dictionary_bytes(sealer.codec(), 6));
        for kind in [0, 1, 2] {
            let raw = sample(kind, 400, 7);
            let sealed = sealer.seal(&raw, Some(&dictionary)).unwrap();
            for bit in 0..sealed.len() * 8 {
                let mut flipped = sealed.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let unsealed = sealed::unseal(&flipped, std::slice::from_ref(&dictionary), MOST);
                assert!(unsealed.is_err(), "{}, bit {bit}", sealer.codec());
            }
            for len in 0..sealed.len() {
                let cut = sealed::unseal(&sealed[..len], std::slice::from_ref(&dictionary), MOST);
                assert!(
                    matches!(cut, Err(CodecError::Corrupt { .. })),
                    "{} cut to {len}",
                    sealer.codec()
                );
            }
            let longer = [sealed.as_slice(), &[0]].concat();
            assert!(sealed::unseal(&longer, std::slice::from_ref(&dictionary), MOST).is_err());
        }
    }
}

#[test]
fn a_dictionary_that_is_not_there_or_another_is_an_error() {
    let raw = sample(1, 1000, 8);
    for name in ["lz4", "zstd:3", "onpair", "onpair:huffman"] {
        let of = |seed| Dictionary::from_bytes(5, dictionary_bytes(name.parse().unwrap(), seed));
        let sealed = sealer(name).seal(&raw, Some(&of(1))).unwrap();
        let missing = sealed::unseal(&sealed, &[Dictionary::from_bytes(6, vec![1; 50])], MOST);
        assert!(
            matches!(missing, Err(CodecError::UnknownDictionary { id: 5 })),
            "{missing:?}"
        );
        let other = sealed::unseal(&sealed, &[of(2)], MOST);
        assert!(matches!(other, Err(CodecError::Corrupt { .. })), "{other:?}");
        assert_eq!(sealed::unseal(&sealed, &[of(1)], MOST).unwrap(), raw);
    }
}

#[test]
fn rejects_an_impossible_length_before_using_memory() {
    let raw = vec![b'x'; 100_000];
    let sealed = sealer("zstd:1").seal(&raw, None).unwrap();
    let refused = sealed::unseal(&sealed, &[], raw.len() - 1);
    assert!(
        matches!(refused, Err(CodecError::TooLong { bytes: 100_000, .. })),
        "{refused:?}"
    );
    assert!(matches!(
        sealed::unseal_into(&sealed, &[], &mut [0; 10]),
        Err(CodecError::TooLong { limit_bytes: 10, .. })
    ));
    // Raw lengths of a gigabyte for a few bytes; of 2^35; and in non-canonical LEB128.
    for (form, digits) in [
        (1, &[0x80, 0x80, 0x80, 0x80, 4][..]),
        (2, &[0x80, 0x80, 0x80, 0x80, 4]),
        (3, &[0x80, 0x80, 0x80, 0x80, 4]),
        (2, &[0xFF, 0xFF, 0xFF, 0xFF, 0x7F]),
        (2, &[0x80, 0x80, 0x80, 0x80, 0x80, 1]),
        (2, &[0x81, 0]),
    ] {
        let hostile = [b"LPS\x01", &[form][..], digits, &[0; 20]].concat();
        let refused = sealed::unseal(&hostile, &[], usize::MAX);
        assert!(
            matches!(refused, Err(CodecError::Corrupt { .. })),
            "{form} {digits:?}: {refused:?}"
        );
    }
}

#[test]
fn rejects_invalid_sealed_blocks_with_a_reason() {
    for (bytes, why) in [
        (&b""[..], "cut off"),
        (b"LPS", "cut off"),
        (b"RIFF....", "does not begin"),
        (b"LPS\x02......................", "version"),
        (b"LPS\x01\x05.....................", "codec"),
    ] {
        let error = sealed::unseal(bytes, &[], MOST).unwrap_err();
        assert!(
            matches!(error, CodecError::Corrupt { .. }) && error.to_string().contains(why),
            "{error}"
        );
    }
    assert!(matches!(
        Sealer::open(Codec::Auto { level: 3 }),
        Err(CodecError::Unavailable { .. })
    ));
}

/// Random bytes after a valid header, and modified valid blocks: an error or the raw bytes; never a read past the end.
#[test]
fn hostile_bytes() {
    let dictionary = Dictionary::from_bytes(9, sample(1, 3000, 6));
    let dictionaries = [dictionary.clone()];
    let mut random = Rng::with_seed(12);
    for form in [0_u8, 1, 2, 3, 4, 0x81, 0x82, 0x83, 0x84] {
        for _ in 0..400 {
            let mut hostile = b"LPS\x01".to_vec();
            hostile.extend([form, random.usize(..128) as u8]);
            if form & 0x80 != 0 {
                hostile.extend(9_u32.to_le_bytes());
            }
            hostile.extend(sample(0, 8 + random.usize(..200), random.u64(..)));
            let guarded = Guarded::from(hostile.as_slice());
            assert!(sealed::unseal(guarded.bytes(), &dictionaries, MOST).is_err());
        }
    }
}

#[test]
fn threads_share_a_sealer() {
    let sealer = Arc::new(sealer("lz4"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let sealer = Arc::clone(&sealer);
            scope.spawn(move || {
                for size in 0..200 {
                    let raw = sample(1, size * 7, thread);
                    assert_eq!(
                        sealed::unseal(&sealer.seal(&raw, None).unwrap(), &[], MOST).unwrap(),
                        raw
                    );
                }
            });
        }
    });
}

fn from_hex(digits: &str) -> Vec<u8> {
    let bytes = (0..digits.len()).step_by(2);
    bytes
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect()
}

/// Blocks of earlier versions can be read permanently: `LPS\x01` of every form, with and without a dictionary.
#[test]
fn frozen_images_are_read() {
    let raw = b"the same words, the same words, the same words, the same words";
    let dictionary = Dictionary::from_bytes(0x0102_0304, b"all of the same words".to_vec());
    for (form, image) in IMAGES {
        let image = from_hex(image);
        assert_eq!(image[4], form);
        let unsealed = sealed::unseal(&image, std::slice::from_ref(&dictionary), MOST);
        assert_eq!(unsealed.unwrap(), raw, "form {form}");
    }
}

/// Golden blocks of `Sealer::seal`, never to be regenerated.
const IMAGES: [(u8, &str); 6] = [
    (
        0x00,
        "4c505301003ea4cad8cc7701539d7468652073616d6520776f7264732c207468652073616d6520776f7264732c2\
         07468652073616d6520776f7264732c207468652073616d6520776f726473",
    ),
    (
        0x01,
        "4c505301013e6623c0860f3732bbff017468652073616d6520776f7264732c2010001bc0",
    ),
    (0x81, "4c505301813e04030201fb2b38681c502e550a0e001b2c1e000f10000dc0"),
    (
        0x02,
        "4c505301023ec75e72ce545c0cb1807468652073616d6520776f7264732c2001001e732e01",
    ),
    (0x82, "4c505301823e0403020131cf8a4139e329ba082c0300337108aabb906710"),
    (
        0x03,
        "4c505301033e1bc245ef151e07572bc94855284ecc4d5528cf2f4a29d6512821890f00",
    ),
];

/// Dictionaries and records of OnPair that were written before can be read permanently, too.
#[test]
fn frozen_dictionaries_of_onpair_are_read() {
    for image in &ONPAIR_IMAGES {
        let codec: Codec = image.name.parse().unwrap();
        let dictionary = Dictionary::from_bytes(ONPAIR_DICTIONARY_ID, image.dictionary);
        dictionary.prepare_to_read(codec).unwrap();
        let engine = codec.open(&EngineOptions::default()).unwrap();
        for (raw, sealed) in ONPAIR_RECORDS.iter().zip(image.sealed) {
            let sealed = from_hex(sealed);
            let unsealed = sealed::unseal(&sealed, std::slice::from_ref(&dictionary), MOST);
            assert!(unsealed.unwrap() == *raw, "{codec}");
            // The block alone, as a tree stores it.
            let block = &sealed[ONPAIR_BLOCK_AT..];
            assert!(block.len() < raw.len() && sealed[4] == 0x84);
            let mut back = vec![0; raw.len()];
            engine.decompress(block, Some(&dictionary), &mut back).unwrap();
            assert!(back == *raw, "{codec}");
            let mut scratch = Scratch::default();
            for needed in [1, raw.len() / 2, raw.len()] {
                let part = engine.decode(block, Some(&dictionary), raw.len(), needed, &mut scratch);
                let part = part.unwrap();
                assert!(part.len() >= needed && raw.starts_with(part), "{codec}, {needed} bytes");
            }
        }
        // What is written today with the old dictionary can be read as well.
        for raw in ONPAIR_RECORDS {
            let sealed = sealer(image.name).seal(raw, Some(&dictionary)).unwrap();
            let unsealed = sealed::unseal(&sealed, std::slice::from_ref(&dictionary), MOST);
            assert!(unsealed.unwrap() == raw, "{codec}");
        }
    }
}

/// A dictionary of OnPair, and the sealed [`ONPAIR_RECORDS`], never to be written anew.
struct OnPairImage {
    name: &'static str,
    dictionary: &'static [u8],
    sealed: [&'static str; 3],
}

const ONPAIR_DICTIONARY_ID: u32 = 0x0102_0304;
/// Offset of the block in a seal of a record of fewer than 128 bytes.
const ONPAIR_BLOCK_AT: usize = 4 + 1 + 1 + 4 + 8;
/// One of a few long tokens, one with bytes that are rare, and one of more than 64 bytes.
const ONPAIR_RECORDS: [&[u8]; 3] = [
    b"record 00042 of 3 leaves, with the same words",
    b"\x00record\xFF caf\xC3\xA9 of 5 leaves, with the same words as others",
    b"record 00321 of 6 leaves, with the same words as others: and again: record 99999 of 9 leaves, with the words",
];
const ONPAIR_IMAGES: [OnPairImage; 4] = [
    OnPairImage {
        name: "onpair",
        dictionary: include_bytes!("images/onpair.dictionary"),
        sealed: [
            "4c505301842d040302017421dec67fc0953baca0033a20043e4002c8300c",
            "4c505301843904030201e394984f218870d500d0098530089ad0098460152030087780081a011026800cc3000277300c\
             20a009c7100985d009c300",
            "4c505301846c04030201f191ca036104de71aca00340e0033c7002c8400c77900984000277000977300999000520d009\
             8530089ad0098400024ff0044ff0044f00029a800820f00420700920c00c9ad00984300c",
        ],
    },
    OnPairImage {
        name: "onpair:14",
        dictionary: include_bytes!("images/onpair-14.dictionary"),
        sealed: [
            "4c505301842d040302014cf7eac128d4c210a8800ea00310013e800df00c540298c01f200c00",
            "4c5053018439040302017d5449b65d6f47360000260008f801950026f007640520801f80070c021dc14060023003c200\
             0880070803204025b00c3002800026200c00",
            "4c505301846c040302010725316642805063a8800e1004f0003bc009c00c0c03780025f007800078c022800738029440\
             140002600280801f500960027f0008000540015000140005800095c0200002400120802400023c03950026f0070803",
        ],
    },
    OnPairImage {
        name: "onpair:16",
        dictionary: include_bytes!("images/onpair-16.dictionary"),
        sealed: [
            "4c505301842d0403020115e8803e532813d4a8003a003a0044003e003600cf00950098007f00c200",
            "4c505301843904030201120600fb4c95f7eb0000980080007e00950098007f00590120007e00780083001d0103012600\
             cc00c20020007800c20020009500cb008c0080009800c200",
            "4c505301846c04030201ad0cdfee3291ceaaa8003a0041003c003b002700cc00c300780094007f00200078008b007800\
             8e00940051002000980080007e00950098007f0020005000500050005000500020009500830020005000200092002000\
             cf00950098007f00c200",
        ],
    },
    OnPairImage {
        name: "onpair:huffman",
        dictionary: include_bytes!("images/onpair-huffman.dictionary"),
        sealed: [
            "4c505301842d040302015bfa7ed54259b7c0e91a698088c28ff59dff",
            "4c50530184390403020136a4da089e35e4c3ef215d23eddd41afd73ffaab9feb3bc3f59d21becbd7f3fcce",
            "4c505301846c04030201dd91a37616b581b9e91a6980d8985eea5cdfcce0fabad737f8669f1cd235d260efbd37c42b6c\
             f826f0dd23ed3bff",
        ],
    },
];

proptest! {
    #[test]
    fn any_bytes_return(
        raw in prop::collection::vec(any::<u8>(), 0..3000),
        repeats in 1_usize..4,
        which in any::<prop::sample::Index>(),
    ) {
        let raw = raw.repeat(repeats);
        let sealers = sealers();
        let sealer = which.get(&sealers);
        for dictionary in dictionaries_for(sealer.codec()) {
            let dictionaries: Vec<Dictionary> = dictionary.iter().cloned().collect();
            let sealed = sealer.seal(&raw, dictionary.as_ref()).unwrap();
            prop_assert_eq!(&sealed::unseal(&sealed, &dictionaries, raw.len()).unwrap(), &raw);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_unseal(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(sealed::unseal(&bytes, &[], MOST).is_err());
        let headed = [b"LPS\x01".as_slice(), &bytes].concat();
        prop_assert!(sealed::unseal(&headed, &[], MOST).is_err());
    }
}
