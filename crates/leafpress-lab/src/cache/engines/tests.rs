use super::*;

fn settings(ttl: Option<Duration>) -> Settings {
    Settings {
        knob_bytes: 4 << 20,
        record_bytes: 80.0,
        ttl,
        disk: None,
    }
}

/// Every cache that is compiled in, plain and with values compressed.
fn all() -> Vec<EngineSpec> {
    let mut engines = vec![
        "leafpress",
        "leafpress:lz4",
        "leafpress:none",
        "leafpress@page",
        "leafpress:zstd:1@clock",
        "quick_cache",
        "quick_cache+lz4",
        "moka",
        "moka+zstd:3",
    ];
    if cfg!(feature = "foyer") {
        engines.extend(["foyer", "foyer+lz4"]);
    }
    engines.into_iter().map(|engine| engine.parse().unwrap()).collect()
}

#[test]
fn names_round_trip() {
    for engine in all() {
        assert_eq!(engine.to_string().parse::<EngineSpec>().unwrap(), engine);
        engine.check().unwrap();
    }
    assert_eq!("moka+none".parse::<EngineSpec>().unwrap().to_string(), "moka");
    for (name, part) in [
        ("redis", "quick_cache"),
        ("", "quick_cache"),
        ("leafpress+lz4", "known"),
        ("moka:lz4", "known"),
        ("moka+rle", "rle"),
        ("leafpress:rle", "rle"),
        ("leafpress@arc", "arc"),
        ("moka@lru", "known"),
    ] {
        let error = name.parse::<EngineSpec>().unwrap_err().to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
    let foyer = EngineSpec::Other(Peer::Foyer, None).check();
    assert_eq!(foyer.is_ok(), cfg!(feature = "foyer"), "{foyer:?}");
}

#[test]
fn values_come_back_as_they_were_put() {
    for engine in all() {
        let cache = engine.make(&settings(None)).unwrap();
        let mut value = b"old".to_vec();
        assert!(!cache.get(b"absent", &mut value).unwrap(), "{engine}");
        for (at, len) in [0, 1, 64, 1000, 20_000].into_iter().enumerate() {
            let key = format!("key{at}");
            for byte in [b'a', at as u8] {
                // The second half does not compress.
                let half = (0..len).map(|i: usize| ((i * i * 7919) >> 5) as u8);
                let put: Vec<u8> = std::iter::repeat_n(byte, len).chain(half).collect();
                cache.insert(key.as_bytes(), &put).unwrap();
                assert!(cache.get(key.as_bytes(), &mut value).unwrap(), "{engine} {len}");
                assert!(value == put, "{engine} {len}");
            }
        }
        assert_eq!(cache.standing().records, 5, "{engine}");
        for _ in 0..2 {
            cache.remove(b"key3").unwrap();
            assert!(!cache.get(b"key3", &mut value).unwrap(), "{engine}");
        }
        assert_eq!(cache.standing().records, 4, "{engine}");
    }
}

#[test]
fn records_expire_in_every_cache() {
    let caches: Vec<_> = all()
        .into_iter()
        .map(|engine| (engine, engine.make(&settings(Some(Duration::from_secs(1)))).unwrap()))
        .collect();
    let mut value = Vec::new();
    for (engine, cache) in &caches {
        cache.insert(b"key", b"value").unwrap();
        // A machine may be slow.
        let there = cache.get(b"key", &mut value).unwrap();
        assert!(!there || value == b"value", "{engine}");
    }
    std::thread::sleep(Duration::from_millis(1050));
    for (engine, cache) in &caches {
        assert!(!cache.get(b"key", &mut value).unwrap(), "{engine}");
    }
}

#[test]
fn an_envelope_that_is_cut_short_is_an_error() {
    let codec = Some(Codec::Lz4 { acceleration: 1 });
    let envelope = Envelope::new(codec, Some(Duration::from_secs(9))).unwrap();
    let wrapped = envelope.wrap(&[b'a'; 100]).unwrap();
    let mut value = Vec::new();
    assert!(envelope.unwrap(&wrapped, &mut value).unwrap() && value == [b'a'; 100]);
    for len in [0, 3, 4, 7, 8, wrapped.len() - 1] {
        assert!(envelope.unwrap(&wrapped[..len], &mut value).is_err(), "{len}");
    }
}
