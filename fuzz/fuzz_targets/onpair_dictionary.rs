//! Any bytes as a dictionary of `onpair`, with a right check, are refused, or a record returns as it was; and any block
//! is an error or the requested number of bytes.
#![no_main]

use std::sync::OnceLock;

use leafpress::codec::{Codec, CodecError, Dictionary, EngineOptions, Scratch};
use libfuzzer_sys::fuzz_target;
use rapidhash::v3::rapidhash_v3;

const CODECS: [Codec; 4] = [
    Codec::OnPair { bits: 12 },
    Codec::OnPair { bits: 14 },
    Codec::OnPair { bits: 16 },
    Codec::OnPairHuffman,
];
const HEADER_BYTES: usize = 4;

/// A short dictionary.
fn trained(codec: Codec) -> &'static Dictionary {
    static TRAINED: [OnceLock<Dictionary>; CODECS.len()] = [const { OnceLock::new() }; CODECS.len()];
    let at = CODECS.iter().position(|known| *known == codec).expect("one of them");
    TRAINED[at].get_or_init(|| {
        let records: Vec<String> = (0..500)
            .map(|i| format!("record {i:05} of {} leaves, {:x}", i % 7, i * i))
            .collect();
        let samples: Vec<&[u8]> = records.iter().map(String::as_bytes).collect();
        Dictionary::train(codec, &samples, 1500).expect("enough samples")
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some(([form, record_len, raw_len, changes], rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return;
    };
    let codec = CODECS[usize::from(*form) % CODECS.len()];
    let (record, rest) = rest.split_at(usize::from(*record_len).min(rest.len()));
    // Random bytes would hardly be a dictionary: a trained one is changed at places that the input names.
    let mut changed = trained(codec).bytes().to_vec();
    let body = changed.len() - 4;
    for change in rest.chunks_exact(3).take(usize::from(*changes) % 8) {
        changed[usize::from(u16::from_le_bytes([change[0], change[1]])) % body] = change[2];
    }
    let check = (rapidhash_v3(&changed[..body]) as u32).to_le_bytes();
    changed[body..].copy_from_slice(&check);

    let dictionary = Dictionary::from_bytes(1, changed);
    let engine = codec.open(&EngineOptions::default()).expect("it is always built in");
    let mut scratch = Scratch::default();
    let mut block = Vec::new();
    match engine.compress(record, Some(&dictionary), &mut block) {
        Ok(_) => {
            let back = engine.decode(&block, Some(&dictionary), record.len(), record.len(), &mut scratch);
            assert_eq!(back.expect("a block that compress wrote"), record);
        }
        Err(error) => assert!(matches!(error, CodecError::Failed { .. }), "{error}"),
    }
    let mut raw = vec![0; usize::from(*raw_len)].into_boxed_slice();
    let block: Box<[u8]> = rest.into();
    let whole = engine.decompress(&block, Some(&dictionary), &mut raw);
    assert!(
        matches!(
            whole,
            Ok(()) | Err(CodecError::Corrupt { .. } | CodecError::Failed { .. })
        ),
        "{whole:?}"
    );
});
