use std::sync::Arc;

use super::super::fixtures::{options, published};
use super::super::{Access, Options, Trace, TraceOptions, read_trace};
use super::*;

#[track_caller]
fn assert_near(one: f64, other: f64, by: f64) {
    assert!((one - other).abs() <= by, "{one} is not {other}");
}

#[test]
fn published_formulas_are_the_theses() {
    let outcome = published();
    assert_near(outcome.raw.us_per_page, 77.0, 1e-9);
    let lz4 = &outcome.codecs[0];
    // 3 us x HR x P + 112 us x (1 - HR), by hand at C = 50%.
    let hits = 0.8 * 0.075 * (0.5 + 0.5 * 2.13) / 0.2;
    let chance = 0.5 * 2.13 / (0.5 + 0.5 * 2.13);
    let half = lz4.points[2];
    assert_near(half.hit_ratio, hits, 1e-12);
    assert_near(half.chance_compressed, chance, 1e-12);
    assert_near(half.us_per_page, 3.0 * hits * chance + 112.0 * (1.0 - hits), 1e-9);
    // A cache that compresses nothing is charged for compression all the same.
    assert_near(lz4.points[0].us_per_page, 78.4, 1e-9);
}

#[test]
fn nothing_is_charged_where_nothing_is_compressed() {
    for replacement in [Replacement::Clock, Replacement::Lru, Replacement::Ideal] {
        let outcome = evaluate(&options("20,80", replacement)).unwrap();
        for codec in &outcome.codecs {
            assert_eq!(codec.points[0].us_per_page, outcome.raw.us_per_page);
            assert_eq!(codec.points[0].compressions, 0.0);
        }
    }
}

#[test]
fn hot_hits_land_on_raw_pages() {
    let mut requested = options("20,80", Replacement::Ideal);
    requested.data_bytes = 50 << 30;
    // 15 of 50 GB: the raw half is 15% of the data, all of it hot.
    let outcome = evaluate(&requested).unwrap();
    let half = outcome.codecs[0].points[5];
    let fits = 0.15 * (1.0 + 2.13);
    assert_near(half.fits, fits, 1e-12);
    let hits = 0.8 + 0.2 * (fits - 0.2) / 0.8;
    assert_near(half.hit_ratio, hits, 1e-12);
    assert_near(half.chance_compressed, 1.0 - 0.6 / hits, 1e-12);
    let us = 0.15 + (hits - 0.6) * 1.0 + (1.0 - hits) * (2.0 + requested.device_us);
    assert_near(half.us_per_page, us, 1e-9);
    assert!(half.chance_compressed < chance_compressed(0.5, 2.13));
}

#[test]
fn an_lru_cache_compresses_one_page_for_each_it_restores() {
    let outcome = evaluate(&options("zipfian", Replacement::Lru)).unwrap();
    let point = outcome.codecs[1].points[6];
    assert_near(
        point.compressions,
        1.0 - point.hit_ratio + point.hit_ratio * point.chance_compressed,
        1e-9,
    );
}

#[test]
fn without_cost_it_pays_at_once_and_without_a_gain_never() {
    let mut requested = options("uniform", Replacement::Ideal);
    requested.codecs = vec![
        CodecCosts::new("free", 2.0, 0.0, 0.0),
        CodecCosts::new("costly", 1.0, 5.0, 5.0),
    ];
    let outcome = evaluate(&requested).unwrap();
    assert_eq!(outcome.codecs[0].break_even, BreakEven::AtOnce);
    assert_eq!(outcome.codecs[1].break_even, BreakEven::Never);
    assert_eq!(outcome.codecs[1].best, outcome.raw);
    assert_eq!(outcome.best().map(|best| best.codec.name.as_str()), Some("free"));
    assert!(outcome.crossings.is_empty(), "{:?}", outcome.crossings);
    requested.codecs.remove(0);
    assert!(evaluate(&requested).unwrap().best().is_none());
}

#[test]
fn break_even_and_crossings_are_where_curves_meet() {
    for replacement in [Replacement::Clock, Replacement::Lru, Replacement::Ideal] {
        let mut requested = options("20,80", replacement);
        requested.device_us = 60.0;
        requested.codecs = vec![
            CodecCosts::new("a", 1.8, 6.0, 1.0),
            CodecCosts::new("b", 2.8, 15.0, 4.0),
        ];
        let outcome = evaluate(&requested).unwrap();
        let model = Model::new(&requested);
        let us = |codec: usize, share: f64| model.point(&requested.codecs[codec], share).us_per_page;
        for codec in 0..2 {
            let BreakEven::Share(share) = outcome.codecs[codec].break_even else {
                panic!("{replacement}: {:?}", outcome.codecs[codec].break_even);
            };
            assert_near(us(codec, share), outcome.raw.us_per_page, 1e-4);
            assert!(us(codec, share + 0.01) < outcome.raw.us_per_page, "{replacement}");
        }
        let [crossing] = outcome.crossings.as_slice() else {
            panic!("{replacement}: {:?}", outcome.crossings);
        };
        assert_eq!(crossing.faster, "b", "{replacement}");
        assert_near(us(0, crossing.share), us(1, crossing.share), 1e-4);
    }
}

#[test]
fn the_memory_that_a_raw_cache_needs_makes_it_as_fast() {
    for replacement in [Replacement::Clock, Replacement::Ideal] {
        let requested = options("20,80", replacement);
        let outcome = evaluate(&requested).unwrap();
        let wanted = outcome.codecs[1].best.us_per_page;
        let needed = raw_memory_for(&requested, wanted).unwrap().unwrap();
        assert!(needed > requested.memory_bytes as f64);
        let more = Options {
            memory_bytes: needed as u64,
            ..requested.clone()
        };
        assert_near(evaluate(&more).unwrap().raw.us_per_page, wanted, 0.01);
        assert_eq!(raw_memory_for(&requested, 0.0).unwrap(), None);
    }
}

#[test]
fn the_pools_overhead_costs_pages() {
    let mut requested = options("uniform", Replacement::Clock);
    let whole = evaluate(&requested).unwrap();
    requested.overhead = Overhead::Pool;
    let less = evaluate(&requested).unwrap();
    let of = |outcome: &Outcome| outcome.codecs[1].points[5].hit_ratio;
    assert!(of(&less) < of(&whole) && of(&less) > 0.95 * of(&whole));
}

fn traced(pages: impl Iterator<Item = u64>) -> Arc<Trace> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let text: String = pages.map(|page| format!("{page}\n")).collect();
    std::fs::write(&path, text).unwrap();
    let cancel = std::sync::atomic::AtomicBool::new(false);
    Arc::new(read_trace(&path, TraceOptions::default(), &cancel, &mut |_| {}).unwrap())
}

#[test]
fn a_trace_has_its_own_hits() {
    let mut requested = options("uniform", Replacement::Lru);
    // A loop over 100 pages: LRU hits nothing with 60, and everything once 100 fit compressed.
    requested.access = Access::Trace(traced((0..10_000).map(|access| access % 100)));
    (requested.page_bytes, requested.memory_bytes) = (8192, 60 * 8192);
    requested.data_bytes = requested.data_bytes() as u64;
    assert_eq!(requested.data_bytes, 100 * 8192);
    let outcome = evaluate(&requested).unwrap();
    assert_eq!(outcome.raw.hit_ratio, 0.0);
    let zstd = &outcome.codecs[1];
    assert_near(zstd.points[10].hit_ratio, 0.99, 1e-9);
    assert_eq!(zstd.points[10].chance_compressed, 1.0);
    // The best cache of 60 pages would have kept some of them.
    requested.replacement = Replacement::Ideal;
    assert_near(evaluate(&requested).unwrap().raw.hit_ratio, 0.6, 1e-9);
    requested.replacement = Replacement::Clock;
    let message = evaluate(&requested).unwrap_err().to_string();
    assert!(
        message.starts_with("replacement: ") && message.contains("lru"),
        "{message}"
    );
}

#[test]
fn reports_options_out_of_bounds() {
    type Change = fn(&mut Options);
    let changes: [(&str, Change); 16] = [
        ("data-bytes", |o| o.data_bytes = 0),
        ("data-bytes", |o| o.data_bytes = u64::MAX),
        ("memory", |o| o.memory_bytes = 0),
        ("memory", |o| (o.memory_bytes, o.page_bytes) = (1 << 20, 1 << 21)),
        ("page-bytes", |o| o.page_bytes = 0),
        ("codec-costs", |o| o.codecs.clear()),
        ("codec-costs", |o| o.codecs[1].name = o.codecs[0].name.clone()),
        ("codec-costs", |o| o.codecs[0].ratio = 0.5),
        ("codec-costs", |o| o.codecs[0].compress_us = f64::NAN),
        ("device-us", |o| o.device_us = -1.0),
        ("hit-us", |o| o.hit_us = f64::INFINITY),
        ("device-iops", |o| o.device_iops = Some(0.0)),
        ("background-pct", |o| o.background_pct = 101.0),
        ("promote-after-hits", |o| o.promote_after_hits = 0),
        ("workers", |o| o.workers = 0),
        ("shares", |o| o.shares = vec![50, 10]),
    ];
    for (option, change) in changes {
        let mut requested = options("uniform", Replacement::Clock);
        change(&mut requested);
        let message = evaluate(&requested).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{option}: ")), "{option}: {message}");
    }
}

#[test]
fn laws_and_codecs_are_read_as_people_write_them() {
    for (text, name) in [
        ("uniform", "uniform"),
        ("even", "uniform"),
        ("20,80", "hotset:20:80"),
        (" 20, 80 ", "hotset:20:80"),
        ("hotset:10:90", "hotset:10:90"),
        ("zipfian", "zipfian:0.99"),
        ("self-similar:0.1", "self-similar:0.1"),
    ] {
        assert_eq!(Access::parse(text).unwrap().name(), name);
    }
    for text in ["", "latest", "0,80", "20,101", "20,80,1", "zipfian:0", "pareto"] {
        let message = Access::parse(text).unwrap_err().to_string();
        assert!(
            message.starts_with("distribution: ") && message.contains("20,80"),
            "{message}"
        );
    }
    let codec: CodecCosts = "zstd:1=2.97,8,3".parse().unwrap();
    assert_eq!(codec, CodecCosts::new("zstd:1", 2.97, 8.0, 3.0));
    assert_eq!(codec.to_string().parse::<CodecCosts>().unwrap(), codec);
    for text in [
        "",
        "lz4",
        "lz4=2",
        "lz4=2,1",
        "lz4=2,1,1,1",
        "=2,1,1",
        "lz4=0.5,1,1",
        "lz4=2,-1,1",
        "lz4=nan,1,1",
    ] {
        let message = text.parse::<CodecCosts>().unwrap_err().to_string();
        assert!(message.starts_with("codec-costs: "), "{message}");
    }
}

#[test]
fn reports_the_share_at_which_a_codec_stops_paying() {
    let mut requested = options("zipfian", Replacement::Clock);
    (requested.device_us, requested.codecs) = (90.0, vec![CodecCosts::new("lz4", 2.1, 14.0, 2.2)]);
    (requested.data_bytes, requested.memory_bytes) = (2 << 40, 64 << 30);
    let outcome = evaluate(&requested).unwrap();
    let codec = &outcome.codecs[0];
    // Without a raw page every hit is decoded.
    assert!(codec.points[10].us_per_page > outcome.raw.us_per_page);
    assert!(
        codec.pays_until > codec.best.share && codec.pays_until < 1.0,
        "{codec:?}"
    );
    let until = Model::new(&requested).point(&codec.codec, codec.pays_until);
    assert_near(until.us_per_page, outcome.raw.us_per_page, 1e-3);
    assert!(
        super::super::document(&outcome, None)
            .text()
            .contains(&format!(" to {:.2}%; best at", codec.pays_until * 100.0))
    );
    let free = evaluate(&options("uniform", Replacement::Ideal)).unwrap();
    assert_eq!(free.codecs[0].pays_until, 1.0);
}
