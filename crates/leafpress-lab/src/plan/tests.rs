use std::sync::atomic::AtomicBool;

use leafpress::Cache;
use leafpress_pages::pool::{PolicyKind, PolicySimulation};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::alternatives::{Question, cheapest};
use super::sample::{filled, of_records, user_bytes};
use super::*;
use crate::cache::{EngineSpec, Held, HitCurves};
use crate::core::corpus::{RecordFormat, Records, Source};
use crate::core::keys::{Chooser, Distribution, mix};

static GO_ON: AtomicBool = AtomicBool::new(false);
const GIB: u64 = 1 << 30;

fn characters() -> (Source, RecordFormat) {
    (Source::Sample("characters".into()), "jsonl:/code".parse().unwrap())
}

/// Figures of a sample whose records have 500 bytes, and take a fourth of them.
fn sampled() -> Sampled {
    let time = |us| Time {
        mean_us: us,
        p99_us: 2.0 * us,
    };
    Sampled {
        records: 100_000,
        found: 100_000,
        left_out: None,
        record_bytes: 500.0,
        tree_bytes: 125.0,
        error: 0.02,
        tree_fixed_bytes: 1e6,
        codec: "zstd:3".into(),
        held: Held {
            engine: EngineSpec::Leafpress(None, leafpress::cache::Policy::default()),
            memory_bytes: 32 << 20,
            records: 200_000,
            user_bytes: 100_000_000,
            bytes_held: 26_000_000,
            empty_bytes: 500_000,
            evicted: 1000,
        },
        disk_bytes: 100.0,
        page_ratio: 3.0,
        times: Times {
            raw: time(0.3),
            compressed: time(2.0),
            insert_us: 8.0,
            spill_us: 5.0,
            page_encode_us: 20.0,
            page_decode_us: 4.0,
        },
    }
}

fn options(memory: u64) -> Options {
    let (data, format) = characters();
    Options::new(data, format, 40 * GIB, memory)
}

fn hits(distribution: Distribution, records: f64) -> Hits {
    Hits::of_distribution(distribution, records, &GO_ON, &mut |_| {}).unwrap()
}

fn of(all: &[Alternative], kind: Kind) -> &Alternative {
    all.iter().find(|one| one.kind == kind).unwrap()
}

#[test]
fn rates_are_as_people_write_them() {
    for (text, rate) in [
        ("50K/s", 5e4),
        ("50000", 5e4),
        ("1.5M", 1.5e6),
        ("7/s", 7.0),
        ("2k", 2e3),
    ] {
        assert_eq!(text.parse(), Ok(Rate(rate)), "{text}");
    }
    for text in ["", "K", "/s", "fast", "1e400", "NaN", "5G"] {
        assert!(text.parse::<Rate>().unwrap_err().contains("50K/s"), "{text}");
    }
}

/// Few objects that stand for many records give the hits of a cache with all records.
#[test]
fn hits_are_those_of_all_records() {
    let records = 100_000;
    for distribution in [
        Distribution::Zipfian { theta: 0.99 },
        Distribution::Zipfian { theta: 0.7 },
        Distribution::HOT_SET,
        Distribution::Uniform,
    ] {
        let projected = hits(distribution, records as f64);
        for share in [0.05, 0.4] {
            let capacity = (records as f64 * share) as u64;
            let mut cache = PolicySimulation::new(PolicyKind::S3Fifo, capacity).unwrap();
            let chooser = Chooser::new(distribution, records, 7);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
            let (before, counted) = (500_000, 200_000);
            let found: u64 = (0..before + counted)
                .map(|number| u64::from(cache.access(chooser.read(&mut rng), 1) && number >= before))
                .sum();
            let (found, projected) = (found as f64 / f64::from(counted), projected.at(share));
            assert!(
                (projected / found - 1.0).abs() < 0.1 && (projected - found).abs() < 0.03,
                "{distribution}, {share}: {projected} and {found}"
            );
        }
    }
}

#[test]
fn a_curve_is_read_both_ways() {
    let hits = hits(Distribution::Zipfian { theta: 0.99 }, 8e7);
    assert!(hits.at(1.0) == 1.0 && hits.at(2.0) == 1.0 && hits.at(0.0) == 0.0);
    for share in [0.002, 0.05, 0.4, 0.9] {
        let there_and_back = hits.share_for(hits.at(share));
        assert!((there_and_back / share - 1.0).abs() < 0.01, "{share}: {there_and_back}");
    }
    assert_eq!(hits.share_for(2.0), 1.0);
}

/// Shares that are too small to be simulated have the popularity of the hottest records.
#[test]
fn a_small_cache_has_the_hottest_records() {
    let records = 1e11;
    let hits = hits(Distribution::Zipfian { theta: 0.99 }, records);
    let hottest = |share| crate::model::mass_of_hottest(Distribution::Zipfian { theta: 0.99 }, records, share);
    for share in [1e-4, 1e-6, 1e-9] {
        let part = hits.at(share) / hottest(share);
        assert!((0.8..=1.0).contains(&part), "{share}: {part}");
        assert!((hits.share_for(hits.at(share)) / share - 1.0).abs() < 0.01);
    }
}

/// The records of a trace are as many as its curve says.
#[test]
fn a_trace_has_its_own_hits() {
    let point = |memory_bytes, hit_ratio| crate::cache::SizePoint {
        memory_bytes,
        hits: crate::cache::HitRatios {
            lru: 0.0,
            lru_compressed: 0.0,
            s3_fifo: hit_ratio,
            s3_fifo_compressed: 0.0,
        },
    };
    let curves = HitCurves {
        warmup_requests: 0,
        requests: 1000,
        sampled_keys: 1000,
        rate: 1.0,
        miniature_rate: 1.0,
        entry_bytes: 64,
        held: sampled().held,
        points: vec![point(8 << 20, 0.4), point(16 << 20, 0.6), point(32 << 20, 0.8)],
    };
    let keys = (32 << 20) / (436 + 64);
    let hits = Hits::of_trace(&curves, keys, 436.0);
    for (share, expected) in [(1.0, 0.8), (0.5, 0.6), (0.25, 0.4), (0.125, 0.2)] {
        assert!((hits.at(share) - expected).abs() < 0.01, "{share}: {}", hits.at(share));
    }
}

#[test]
fn the_alternatives_of_the_planners_question() {
    let (options, sampled) = (options(16 * GIB), sampled());
    let hits = hits(Distribution::Zipfian { theta: 0.99 }, 40.0 * GIB as f64 / 500.0);
    let question = Question::new(&options, &sampled, &hits);
    let all = question.alternatives();
    let (tree, raw) = (of(&all, Kind::Tree), of(&all, Kind::UncompressedEnough));
    // A fourth of 40 GiB, and all of it with 64 bytes for each 500.
    assert!((tree.memory_bytes / GIB as f64 - 10.0).abs() < 0.01);
    assert!((raw.memory_bytes / GIB as f64 - 45.12).abs() < 0.01);
    assert_eq!(cheapest(&all).unwrap().kind, Kind::Tree);
    let (now, cache) = (of(&all, Kind::Uncompressed), of(&all, Kind::Cache));
    assert!(!now.is_enough && cache.is_enough && tree.is_enough && raw.is_enough);
    // Memory has all of the records.
    assert!(all.iter().all(|one| one.kind != Kind::CacheAndSsd));
    assert!(now.memory_hits > 0.8 && now.memory_hits < 1.0 && cache.memory_hits == 1.0);
    assert!(now.time.mean_us > 50.0 && now.time.p99_us > 1000.0 && tree.time.p99_us == 4.0);
    let money = |one: &Alternative| one.cost.memory;
    assert!((money(tree) - 10.0 * 4.9).abs() < 0.1 && (money(raw) - 45.12 * 4.9).abs() < 0.1);
    // 2 us at 10,000 requests per second.
    assert!((tree.cores - 0.02).abs() < 1e-6);
}

#[test]
fn with_less_memory_an_ssd_pays() {
    let (mut options, sampled) = (options(2 * GIB), sampled());
    let hits = hits(Distribution::Zipfian { theta: 0.99 }, 40.0 * GIB as f64 / 500.0);
    let of_none = Question::new(&options, &sampled, &hits).alternatives();
    let best = cheapest(&of_none).unwrap();
    assert!(
        best.ssd_bytes > 0.0 && best.memory_bytes <= 2.0 * GIB as f64,
        "{best:?}"
    );
    let ssd = of(&of_none, Kind::CacheAndSsd);
    assert!(ssd.ssd_hits > 0.05 && ssd.ssd_bytes_per_day == 0.0 && ssd.is_enough);
    // An SSD that is too small for all records leaves some requests to the backend, and each miss is written to it.
    options.ssd_bytes = Some(2 * GIB);
    options.writes = 0.01;
    let all = Question::new(&options, &sampled, &hits).alternatives();
    let small = of(&all, Kind::CacheAndSsd);
    assert!(!small.is_enough && small.backend_share() > 0.0 && small.ssd_hits < ssd.ssd_hits);
    let written = (small.backend_share() + 0.01) * 1e4 * 86400.0 * 100.0 * 2.9;
    assert!((small.ssd_bytes_per_day / written - 1.0).abs() < 1e-6);
    // The pages of all records need 40 GiB.
    assert!(all.iter().all(|one| one.kind != Kind::PagePool));
    // Fewer requests have to be answered: less memory is enough.
    options.need = 0.9;
    let all = Question::new(&options, &sampled, &hits).alternatives();
    let raw = of(&all, Kind::UncompressedEnough);
    assert!(raw.is_enough && (raw.memory_hits - 0.9).abs() < 0.01 && raw.memory_bytes < 45.0 * GIB as f64);
}

#[test]
fn a_worse_ratio_needs_more() {
    let (options, sampled) = (options(16 * GIB), sampled());
    let hits = hits(Distribution::Uniform, 40.0 * GIB as f64 / 500.0);
    let question = Question::new(&options, &sampled, &hits);
    let worse = Question {
        inflation: 1.25,
        ..question.clone()
    };
    let (before, after) = (question.alternatives(), worse.alternatives());
    let memory = |all: &[Alternative]| of(all, Kind::Tree).memory_bytes;
    assert!((memory(&after) / memory(&before) - 1.25).abs() < 0.001);
    assert_eq!(of(&before, Kind::Uncompressed), of(&after, Kind::Uncompressed));
}

/// Sessions in JSON, of seeded random contents.
fn sessions(count: u64) -> Records {
    let mut lines = String::new();
    for id in 0..count {
        let word = |part: u64| mix(id.wrapping_mul(8) ^ part);
        lines += &format!(
            "{{\"id\":\"{:016x}\",\"user\":{},\"locale\":\"en-US\",\"roles\":[\"viewer\",\"editor\"],\
             \"theme\":\"dark\",\"cart\":\
             [{{\"sku\":\"P-{:05}\",\"quantity\":{}}}],\"expires\":{}}}\n",
            word(1),
            word(2) % 100_000_000,
            word(3) % 100_000,
            word(4) % 5,
            1_763_000_000 + word(5) % 10_000_000
        );
    }
    Records::from_parts("sessions", vec![lines.into_bytes()], &"jsonl:/id".parse().unwrap()).unwrap()
}

/// A tenth of the records tells the memory of all. With one codec: which one a tree chooses depends on times.
#[test]
fn memory_is_that_of_ten_times_the_sample() {
    let all = sessions(40_000);
    let count = all.keys.len();
    let bytes_per_byte = |records: &Records| {
        let ids = 0..records.keys.len();
        let codec = Some(leafpress::Codec::Zstd { level: 1 });
        let tree = filled(records, ids.clone(), codec, &GO_ON).unwrap();
        of_records(&tree.stats()) / user_bytes(records, ids)
    };
    let measured = bytes_per_byte(&all);
    let sample = all.take_runs(count / 10);
    assert!((count / 10).abs_diff(sample.keys.len()) < 64);
    let projected = bytes_per_byte(&sample);
    assert!(
        (projected / measured - 1.0).abs() < 0.1,
        "{projected} and {measured} bytes for each"
    );
}

/// The hits of a cache are those that are projected from a sample of its records: within 5% on a machine that is not
/// busy. The codecs that both choose depend on the time that each takes.
#[test]
fn a_cache_does_what_is_projected() {
    let (data, format) = characters();
    let records = Records::load(&data, &format).unwrap();
    let distribution = Distribution::Zipfian { theta: 0.99 };
    let (copies, memory) = (5, 4 << 20);
    let count = records.keys.len() * copies;
    let total = user_bytes(&records, 0..records.keys.len()) * copies as f64;
    let mut options = Options::new(data, format, total as u64, memory);
    options.sample_bytes = 1 << 20;
    let plan = run(&options, &GO_ON, &mut |_| {}).unwrap();
    let cache = Cache::builder().memory(memory).build().unwrap();
    let chooser = Chooser::new(distribution, count, 3);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let (before, counted) = (150_000, 100_000);
    let (mut found, mut value) = (0, Vec::new());
    for number in 0..before + counted {
        let id = chooser.read(&mut rng);
        let (record, copy) = (id % records.keys.len(), id / records.keys.len());
        let key = [records.keys.get(record), &[b'#', b'0' + copy as u8]].concat();
        match cache.get_into(&key, &mut value).unwrap() {
            true => found += u64::from(number >= before),
            false => cache.insert(&key, records.values.get(record)).unwrap(),
        }
    }
    let measured = found as f64 / f64::from(counted);
    let projected = of(&plan.alternatives, Kind::Cache).memory_hits;
    assert!(
        (projected / measured - 1.0).abs() < 0.15,
        "hits: {projected} projected, {measured} measured; {:?}",
        plan.sampled
    );
}

#[test]
fn the_answer_comes_first_and_is_a_paragraph() {
    let (options, sampled) = (options(16 * GIB), sampled());
    let records = 40.0 * GIB as f64 / 500.0;
    let hits = hits(Distribution::Zipfian { theta: 0.99 }, records);
    let question = Question::new(&options, &sampled, &hits);
    let alternatives = question.alternatives();
    let worse = Question {
        inflation: 1.25,
        ..question.clone()
    };
    let plan = Plan {
        records,
        raw_bytes: records * question.raw_bytes(),
        trace: None,
        cases: vec![Case {
            what: "a ratio 20% worse".into(),
            alternatives: worse.alternatives(),
        }],
        alternatives,
        options: options.clone(),
        hits: hits.clone(),
        sampled: sampled.clone(),
    };
    let document = document(&plan);
    assert_eq!(document.verdicts.len(), 1);
    let text = document.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.starts_with("Compress: a Tree holds all of the 40G of records in 10G (±2.0%)"),
        "{text}"
    );
    for part in [
        "16G",
        "$",
        "20% worse",
        "uncompressed, more memory",
        "Tree *",
        "page pool on SSD",
        "What if",
    ] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    assert!(document.page("leafpress advise").unwrap().contains("What if"));
}
