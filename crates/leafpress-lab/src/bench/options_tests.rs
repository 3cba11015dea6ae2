use super::*;

fn refused(change: impl Fn(&mut Options)) -> String {
    let mut options = Options::new("leafpress:none".parse().unwrap());
    change(&mut options);
    options.validate().unwrap_err().to_string()
}

#[test]
fn pibenchs_defaults_are_valid() {
    let options = Options::new("btreemap".parse().unwrap());
    options.validate().unwrap();
    assert_eq!((options.key_size, options.value_size, options.seed), (8, 8, 1729));
    assert_eq!((options.records, options.operations), (1_000_000, 1_000_000));
}

#[test]
fn reports_every_bound_with_its_range() {
    type Case<'c> = (&'c dyn Fn(&mut Options), &'c [&'c str]);
    let cases: [Case<'_>; 22] = [
        (&|o| o.records = u64::MAX, &["records: ", "between 0 and"]),
        (&|o| o.operations = u64::MAX, &["operations: ", "between 0 and"]),
        (&|o| o.threads = 0, &["threads: 0", "between 1 and 1024"]),
        (&|o| o.key_size = 0, &["key_size: 0", "between 1 and 128"]),
        (&|o| o.key_size = 129, &["key_size: 129", "128"]),
        (&|o| o.key_prefix = "x".repeat(121), &["key_size: 8", "between 1 and 7"]),
        (
            &|o| o.key_prefix = "x".repeat(128),
            &["key_prefix: 128 bytes", "at most 127"],
        ),
        (&|o| o.value_size = 0, &["value_size: 0", "between 1 and 1048576"]),
        (&|o| o.ratios.read = -0.1, &["read_ratio: -0.1", "between 0 and 1"]),
        (&|o| o.ratios.scan = f64::NAN, &["scan_ratio: NaN"]),
        (&|o| o.scan_size = 0, &["scan_size: 0", "between 1"]),
        (&|o| o.sampling_ms = 0, &["sampling_ms: 0", "between 1 and 3600000"]),
        (
            &|o| o.latency_sampling = 1.5,
            &["latency_sampling: 1.5", "between 0 and 1"],
        ),
        (&|o| o.protocol = Some(3), &["protocol: 3", "[0, 1, 2]"]),
        (&|o| o.clock = Some(4), &["clock: 4", "[0, 1, 2, 3]"]),
        (&|o| o.garbage_collector = Some(2), &["garbage_collector: 2"]),
        (&|o| o.rate = Some(0.0), &["rate: 0", "greater than 0"]),
        (&|o| o.warmup_seconds = -1.0, &["warmup-seconds: -1"]),
        (&|o| o.repeat = 0, &["repeat: 0", "between 1 and 1000"]),
        (&|o| o.seconds = f64::NAN, &["seconds: NaN"]),
        (&|o| (o.law, o.skew) = (Law::SelfSimilar, 0.6), &["skew: 0.6", "0.5"]),
        (&|o| (o.law, o.hotset) = (Law::HotSet, (0.0, 80.0)), &["hotset: 0,80"]),
    ];
    for (change, words) in cases {
        let message = refused(change);
        for word in words {
            assert!(message.contains(word), "no `{word}` in: {message}");
        }
    }
    for skew in [f64::INFINITY, -0.1, f64::NAN] {
        assert!(refused(|o| (o.law, o.skew) = (Law::Zipfian, skew)).starts_with("skew: "));
    }
}

#[test]
fn reports_a_wrong_sum_of_ratios_but_allows_a_millionth() {
    let message = refused(|o| o.ratios.insert = 0.5);
    assert!(
        message.contains("sum to 1.5") && message.contains("insert 0.5"),
        "{message}"
    );
    let mut options = Options::new("dummy".parse().unwrap());
    options.ratios = Ratios {
        read: 0.5 + 9e-7,
        update: 0.5,
        ..Ratios::NONE
    };
    options.validate().unwrap();
    options.ratios.read = 0.5 + 2e-6;
    assert!(options.validate().is_err());
}

#[test]
fn reports_impossible_combinations() {
    for (change, words) in [
        (
            (|o| (o.input, o.ratios.read, o.ratios.scan) = ("hashmap".parse().unwrap(), 0.5, 0.5)) as fn(&mut Options),
            "is unordered",
        ),
        (|o| (o.mode, o.seconds) = (Mode::Time, 0.0), "time mode needs a length"),
        (|o| o.records = 0, "only a run of inserts"),
        (|o| (o.key_size, o.records) = (1, 256), "255 different keys"),
        (
            |o| (o.key_size, o.records, o.operations, o.ratios.read, o.ratios.insert) = (1, 200, 100, 0.0, 1.0),
            "200 records and about 100 inserts",
        ),
        (
            |o| (o.repeat, o.skip_load, o.ratios.read, o.ratios.insert) = (2, true, 0.0, 1.0),
            "affect the next",
        ),
    ] {
        let message = refused(change);
        assert!(message.contains(words), "no `{words}` in: {message}");
    }
    let mut options = Options::new("dummy".parse().unwrap());
    (options.records, options.ratios) = (
        0,
        Ratios {
            insert: 1.0,
            ..Ratios::NONE
        },
    );
    options.validate().unwrap();
    (options.key_size, options.records, options.operations) = (1, 255, 0);
    options.validate().unwrap();
}

#[test]
fn operations_are_dealt_out_with_their_remainder() {
    let mut options = Options::new("dummy".parse().unwrap());
    (options.operations, options.threads) = (11, 4);
    let dealt: Vec<_> = (0..4).map(|thread| options.operations_of(thread).unwrap()).collect();
    assert_eq!(dealt, [3, 3, 3, 2]);
    options.mode = Mode::Time;
    assert_eq!(options.operations_of(0), None);
}

#[test]
fn options_survive_the_way_to_a_child() {
    let mut options = Options::new("./lib.so".parse().unwrap());
    options.set_ycsb(Ycsb::E);
    options.rate = Some(1e5);
    options.tree = "shards=2".parse().unwrap();
    options.value_source = "compressible:0.5".parse().unwrap();
    let json = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<Options>(&json).unwrap(), options);
}
