use super::*;

fn settings(ttl: Option<Duration>) -> Settings {
    Settings {
        capacity_bytes: 4 << 20,
        record_bytes: 80.0,
        ttl,
        miss_cost: Duration::ZERO,
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
        "leafpress:zstd:1@page",
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
fn what_a_program_brings_is_one_of_the_engines() {
    static BROUGHT: [AddedEngine; 1] = [AddedEngine {
        name: "brought+along",
        is_default: false,
        make: |settings| match settings.disk {
            Some(_) => Ok(Box::new(moka::Moka::new(None, settings)?)),
            None => Err(CacheError::Disk {
                reason: "there is none".into(),
            }),
        },
    }];
    add_engines(&BROUGHT);
    let engine: EngineSpec = "brought+along".parse().unwrap();
    assert_eq!(engine, EngineSpec::Added(&BROUGHT[0]));
    assert_eq!(serde_json::to_string(&engine).unwrap(), "\"brought+along\"");
    assert!(engine.needs_disk() && engine.has_disk() && !engine.bounds_memory());
    assert!(!EngineSpec::default_list().contains(&engine));
    let unknown = "brought".parse::<EngineSpec>().unwrap_err().to_string();
    assert!(unknown.contains("brought+along, quick_cache"), "{unknown}");
    assert!(engine.make(&settings(None)).is_err());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let disk = DiskOptions { bytes: 4 << 20, path };
    let on_disk = Settings {
        disk: Some(disk.clone()),
        ..settings(None)
    };
    conformance::values_come_back_as_they_were_put("brought", engine.make(&on_disk).unwrap().as_ref());
    let mut options = Options {
        engines: vec![engine],
        ..Options::new(super::super::Work::Paper(crate::cache::PaperObjects::default()))
    };
    let refused = |options: &Options| options.validate().unwrap_err().to_string();
    assert!(
        refused(&options).contains("disk: brought+along"),
        "{}",
        refused(&options)
    );
    options.disk = Some(disk.clone());
    options.validate().unwrap();
    std::fs::create_dir(disk.directory()).unwrap();
    assert!(
        refused(&options).contains("cache.d exists already"),
        "{}",
        refused(&options)
    );
}

#[test]
fn values_come_back_as_they_were_put() {
    for engine in all() {
        let cache = engine.make(&settings(None)).unwrap();
        conformance::values_come_back_as_they_were_put(&engine.to_string(), cache.as_ref());
    }
}

#[test]
fn readers_never_go_back() {
    for engine in all() {
        let cache = engine.make(&settings(None)).unwrap();
        conformance::readers_never_go_back(&engine.to_string(), cache.as_ref(), 30_000);
    }
}

#[test]
fn records_expire_in_every_cache() {
    let ttl = Duration::from_secs(1);
    std::thread::scope(|scope| {
        for engine in all() {
            scope.spawn(move || {
                let cache = engine.make(&settings(Some(ttl))).unwrap();
                conformance::a_record_expires(&engine.to_string(), cache.as_ref(), ttl);
            });
        }
    });
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
