//! `none` is pure Rust: it runs under Miri (`cargo +nightly miri test --no-default-features --test codec none::`).

use leafpress_codec::{CodecError, EngineOptions, Scratch};

#[test]
fn stores_bytes_unchanged() {
    let codec: leafpress_codec::Codec = "none".parse().unwrap();
    let engine = codec.open(&EngineOptions::default()).unwrap();
    let mut scratch = Scratch::default();
    for size in [0, 1, 100, 3000] {
        let raw: Vec<u8> = (0..size).map(|i| i as u8).collect();
        let mut block = Vec::new();
        assert_eq!(engine.compress(&raw, None, &mut block).unwrap(), size);
        assert_eq!(block, raw);
        assert_eq!(engine.decode(&block, None, size, size / 2, &mut scratch).unwrap(), raw);
        let mut back = vec![0; size + 1];
        assert!(matches!(
            engine.decompress(&block, None, &mut back),
            Err(CodecError::Corrupt { .. })
        ));
        engine.decompress(&block, None, &mut back[..size]).unwrap();
        assert_eq!(back[..size], raw);
    }
    let mut blocks = Vec::new();
    engine.compress_batch(&[b"a", b"bc"], None, &mut blocks).unwrap();
    assert_eq!(blocks, [b"a".to_vec(), b"bc".to_vec()]);
    let counters = engine.counters();
    assert_eq!(
        (counters.compress_calls, counters.decompress_calls, counters.errors),
        (6, 12, 4)
    );
    assert_eq!(counters.compress_bytes_in, counters.compress_bytes_out);
    assert_eq!(counters.compress_ns + counters.decompress_ns, 0);
}
