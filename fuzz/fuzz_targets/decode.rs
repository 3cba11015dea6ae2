//! Decodes any bytes by any codec, with or without a dictionary, to an error or the requested number of bytes; and
//! checks that a codec decodes what it has compressed.
#![no_main]

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use leafpress::codec::{CodecError, Dictionary, Engine, EngineOptions, Scratch};
use libfuzzer_sys::fuzz_target;

const CODECS: [&str; 12] = [
    "none",
    "lz4",
    "zstd:1",
    "zstd:5",
    "onpair",
    "onpair:14",
    "onpair:16",
    "onpair:huffman",
    "deflate:1",
    "zlib:1",
    "qpl:software:fixed",
    "qpl:software:dynamic",
];
const HEADER_BYTES: usize = 5;

/// An engine and the dictionaries that it accepts.
struct Setup {
    engine: Arc<dyn Engine>,
    dictionaries: Vec<Option<Dictionary>>,
}

fn setups() -> &'static [Setup] {
    static SETUPS: OnceLock<Vec<Setup>> = OnceLock::new();
    SETUPS.get_or_init(|| {
        let records: Vec<String> = (0..2000)
            .map(|i| format!("record {i:05} of {} leaves, {:x}\n", i % 7, i * i))
            .collect();
        let samples: Vec<&[u8]> = records.iter().map(String::as_bytes).collect();
        let train = |codec, bytes| Some(Dictionary::train(codec, &samples, bytes).expect("enough samples"));
        let open = |name: &&str| {
            let codec: leafpress::Codec = name.parse().expect("a codec's name");
            let engine = codec.open(&EngineOptions::default()).ok()?;
            let dictionaries = match codec.family() {
                "onpair" => vec![None, train(codec, 1024), train(codec, 64 << 10)],
                _ if engine.supports_dictionary() => vec![
                    None,
                    train(leafpress::Codec::Zstd { level: 1 }, 4096),
                    Some(Dictionary::from_bytes(2, records.concat().into_bytes())),
                    Some(Dictionary::from_bytes(3, b"leaf".to_vec())),
                ],
                _ => vec![None],
            };
            Some(Setup { engine, dictionaries })
        };
        CODECS.iter().filter_map(open).collect()
    })
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

fuzz_target!(|bytes: &[u8]| {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return;
    };
    let Setup { engine, dictionaries } = &setups()[usize::from(header[0]) % setups().len()];
    let dictionary = dictionaries[usize::from(header[1]) % dictionaries.len()].as_ref();
    // Slightly more than 128 KiB, from which on Zstandard has another format.
    let raw_len = usize::from(u16::from_le_bytes([header[2], header[3]])) * 2 + usize::from(header[4] & 7);
    let needed = raw_len * usize::from(header[4] >> 3) / 31;

    // An allocation of just this size, so that reading past it is noticed.
    let block: Box<[u8]> = rest.into();
    let mut raw = vec![0; raw_len].into_boxed_slice();
    let whole = engine.decompress(&block, dictionary, &mut raw);
    assert!(matches!(whole, Ok(()) | Err(CodecError::Corrupt { .. })), "{whole:?}");
    SCRATCH.with_borrow_mut(|scratch| {
        if let Ok(part) = engine.decode(&block, dictionary, raw_len, needed, scratch) {
            assert!(part.len() >= needed && part.len() <= raw_len);
            assert!(whole.is_err() || *part == raw[..part.len()]);
        }
        let mut pressed = Vec::new();
        engine
            .compress(rest, dictionary, &mut pressed)
            .expect("any bytes can be compressed");
        let back = engine.decode(&pressed, dictionary, rest.len(), rest.len(), scratch);
        assert_eq!(back.expect("a block that compress wrote"), rest);
    });
});
