use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use leafpress::cache::Policy;
use leafpress_pages::pool::PolicyKind;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::super::workload::Workload;
use super::super::{EngineSpec, Length, Options, Outcome, Work, document, fixtures};
use super::curves::sizes;
use super::miniatures::Miniatures;
use super::shards::Shards;
use super::*;
use crate::core::keys::{Chooser, Distribution, mix};
use crate::report::testing::{charts, has_verdict, kept};

/// Bytes of a key's record: 50 to 1000, and a few large ones.
fn bytes(key: u64) -> u64 {
    match mix(key) % 100 {
        0 => 20_000,
        other => 50 + other * 10,
    }
}

/// Requests by Zipf's law, and of each `scans` th one of a scan over rarely requested keys.
fn requests(count: u64, keys: u64, scans: Option<u64>) -> Vec<u64> {
    let chooser = Chooser::new(Distribution::Zipfian { theta: 0.99 }, keys, 7);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let drawn = (0..count).map(|at| match scans {
        Some(every) if at % every == 0 => keys + at / every % (2 * keys),
        _ => chooser.read(&mut rng),
    });
    drawn.collect()
}

/// Simulates an LRU cache of this many bytes; returns its hit ratio after the first `warmup` requests.
fn played(requests: &[u64], warmup: usize, capacity: u64) -> f64 {
    let (mut order, mut last) = (std::collections::BTreeMap::new(), HashMap::new());
    let (mut held, mut hits) = (0, 0);
    for (now, key) in requests.iter().enumerate() {
        if let Some(before) = last.insert(*key, now) {
            order.remove(&before);
            hits += usize::from(now >= warmup);
        } else {
            held += bytes(*key);
        }
        order.insert(now, *key);
        while held > capacity {
            let Some((_, oldest)) = order.pop_first() else { break };
            last.remove(&oldest);
            held -= bytes(oldest);
        }
    }
    hits as f64 / (requests.len() - warmup) as f64
}

fn estimated(requests: &[u64], warmup: usize, sizes: &[u64], sampling: Sampling) -> (Vec<f64>, usize) {
    let mut shards = Shards::<1>::new(sizes, sampling);
    for (at, key) in requests.iter().enumerate() {
        shards.access(*key, at >= warmup, || [bytes(*key)]);
    }
    let [ratios] = shards.hit_ratios();
    (ratios, shards.keys())
}

fn mean_difference(one: &[f64], other: &[f64]) -> f64 {
    one.iter()
        .zip(other)
        .map(|(one, other)| (one - other).abs())
        .sum::<f64>()
        / one.len() as f64
}

#[test]
fn all_keys_give_the_hit_ratios_of_a_simulated_lru_cache() {
    for scans in [None, Some(3)] {
        let (requests, warmup) = (requests(300_000, 50_000, scans), 100_000);
        let sizes = sizes(1 << 20, 5e7);
        let (ratios, _) = estimated(&requests, warmup, &sizes, Sampling::Rate(1.0));
        for (size, ratio) in sizes.iter().zip(ratios).step_by(6) {
            let exact = played(&requests, warmup, *size);
            // A large record makes room for more than itself, which a stack does not know.
            assert!(
                (ratio - exact).abs() < 0.002,
                "{scans:?} {size}: {ratio} is not {exact}"
            );
        }
    }
}

#[test]
fn samples_are_near_the_whole() {
    for scans in [None, Some(3)] {
        let (requests, warmup) = (requests(1_500_000, 400_000, scans), 500_000);
        let sizes = sizes(4 << 20, 4e8);
        let (exact, all) = estimated(&requests, warmup, &sizes, Sampling::Rate(1.0));
        for sampling in [
            Sampling::Rate(0.1),
            MrcOptions::default().sampling,
            Sampling::Keys(1 << 15),
            // As many as a cache that gives advice samples.
            Sampling::Keys(1 << 13),
        ] {
            let (ratios, keys) = estimated(&requests, warmup, &sizes, sampling);
            let off = mean_difference(&ratios, &exact);
            println!("scans {scans:?}, {sampling:?}: {keys} of {all} keys, mean absolute error {off:.4}");
            assert!(
                off <= 0.02,
                "{scans:?} {sampling:?}: {off}: {ratios:?} is not {exact:?}"
            );
            if let Sampling::Keys(most) = sampling {
                assert!(keys as u64 <= most && keys as u64 > most - 10, "{keys}");
            }
        }
    }
}

#[test]
fn small_caches_are_near_large_ones() {
    for scans in [None, Some(3)] {
        let requests = requests(600_000, 100_000, scans);
        let sizes: Vec<u64> = (18..26).map(|bits| 1 << bits).collect();
        let of_rate = |rate| {
            let mut caches = Miniatures::<1>::new(PolicyKind::S3Fifo, &sizes, rate).unwrap();
            for (at, key) in requests.iter().enumerate() {
                caches.access(*key, at >= 200_000, || [bytes(*key)]);
            }
            let [ratios] = caches.hit_ratios();
            ratios
        };
        let (whole, small) = (of_rate(1.0), of_rate(0.1));
        let off = mean_difference(&whole, &small);
        println!("scans {scans:?}: mean absolute error of miniatures {off:.4}");
        assert!(off <= 0.02, "{scans:?}: {off}: {small:?} is not {whole:?}");
    }
}

#[test]
fn without_accesses_all_hit_ratios_are_zero() {
    let shards = Shards::<2>::new(&[1, 2], Sampling::Keys(1000));
    assert_eq!(shards.hit_ratios(), [vec![0.0, 0.0], vec![0.0, 0.0]]);
    let mut none_sampled = Shards::<1>::new(&[1, 2], Sampling::Rate(1e-12));
    none_sampled.access(1, true, || [1]);
    assert_eq!(none_sampled.keys(), 0);
}

#[test]
fn sizes_have_the_memory_among_them_and_go_to_where_all_fits() {
    for (memory, all) in [(64 << 20, 1e9), (64 << 20, 5e6), (4 << 20, 1e13), (1 << 40, 1.0)] {
        let sizes = sizes(memory, all);
        assert!((10..=62).contains(&sizes.len()), "{memory} {all}: {sizes:?}");
        assert!(sizes.is_sorted_by(|one, other| one < other), "{sizes:?}");
        assert!(*sizes.last().unwrap() as f64 >= all, "{sizes:?}");
        assert!(
            (memory as f64) > all || all > 1e12 || sizes.contains(&memory),
            "{sizes:?}"
        );
    }
}

fn curves() -> HitCurves {
    let hits = |at: i32| HitRatios {
        lru: 0.1 * f64::from(at),
        lru_compressed: (0.1 * f64::from(at + 2)).min(0.8),
        s3_fifo: 0.1 * f64::from(at) + 0.03,
        s3_fifo_compressed: (0.1 * f64::from(at + 2) + 0.03).min(0.8),
    };
    HitCurves {
        warmup_requests: 2000,
        requests: 1_000_000,
        sampled_keys: 65_536,
        rate: 0.0123,
        miniature_rate: 0.0098,
        entry_bytes: 64,
        held: Held {
            engine: EngineSpec::Leafpress(None, Policy::default()),
            memory_bytes: 64 << 20,
            records: 1000,
            user_bytes: 800_000,
            bytes_held: 250_000,
            empty_bytes: 0,
            evicted: 10,
        },
        points: (0..8)
            .map(|at| SizePoint {
                memory_bytes: 16 << 20 << at,
                hits: hits(at),
            })
            .collect(),
    }
}

#[test]
fn memory_and_hits_are_read_off_a_curve() {
    let curves = curves();
    let mib = f64::from(1 << 20);
    for (curve, memory, hits) in [
        (Curve::Lru, 64.0, 0.2),
        (Curve::Lru, 64.0 * 2_f64.sqrt(), 0.25),
        (Curve::LruCompressed, 64.0, 0.4),
    ] {
        let (got, needed) = (curves.hit_ratio(curve, memory * mib), curves.memory_for(curve, hits));
        assert!((got - hits).abs() < 1e-9, "{curve:?} {memory}: {got}");
        assert!(
            (needed.unwrap() / mib - memory).abs() < 1e-6,
            "{curve:?} {hits}: {needed:?}"
        );
    }
    assert_eq!(curves.hit_ratio(Curve::Lru, 1e15), 0.7000000000000001);
    assert_eq!(curves.memory_for(Curve::Lru, 0.75), None);
    // Nothing is reported for caches smaller than those simulated.
    assert_eq!(curves.memory_for(Curve::LruCompressed, 0.01), Some(16.0 * mib));
    assert_eq!(curves.hit_ratio(Curve::LruCompressed, 8.0 * mib), 0.1);
    let none = HitCurves {
        points: Vec::new(),
        ..curves
    };
    assert_eq!(
        (none.hit_ratio(Curve::Lru, 1e6), none.memory_for(Curve::Lru, 0.1)),
        (0.0, None)
    );
}

/// The curves of the other tests' caches.
fn outcome() -> Outcome {
    let mut outcome = fixtures::outcome();
    outcome.mrc = Some(curves());
    outcome
}

#[test]
fn curves_are_a_table_a_chart_and_a_file() {
    let with_caches = outcome();
    let text = document(&with_caches).text();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.lines().all(|line| line.chars().count() <= 130), "{text}");
    for part in [
        "leafpress of 64M, full",
        "LRU at 64M: 40.0% hits compressed, 20.0% uncompressed. To reach 40.0%: 64M compressed, 256M \
         uncompressed.",
    ] {
        assert!(flat.contains(part), "no `{part}` in\n{text}");
    }
    let page = kept(document(&with_caches).page("leafpress cache --mrc").unwrap());
    // Eight of the caches, and the curves.
    assert_eq!(charts(&page), 9, "{}", page.len());
    for part in [
        "Hit ratio by memory",
        "4.0 times",
        "quick_cache+zstd:3",
        "S3-FIFO, compressed",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let tsv = tsv(&curves());
    assert_eq!(tsv.lines().count(), 9, "{tsv}");
    assert!(
        tsv.contains("\n33554432\t0.90000\t0.70000\t0.87000\t0.67000\n"),
        "{tsv}"
    );
}

#[test]
fn curves_alone_have_no_table_of_caches() {
    let mut alone = outcome();
    alone.options.engines.clear();
    alone.lines.clear();
    let text = document(&alone).text();
    assert!(
        !text.contains("Mops/s") && !text.contains("threads") && text.contains("S3-FIFO at 64M: 43.0% hits compressed"),
        "{text}"
    );
    let page = document(&alone).page("leafpress cache --mrc").unwrap();
    assert!(has_verdict(&page), "{page}");
    assert!(
        !page.contains("Mops/s") && !page.contains("Capacity") && page.contains("Hit ratio by memory"),
        "{page}"
    );
}

#[test]
fn a_work_is_gone_through_once() {
    let options = Options {
        engines: Vec::new(),
        memory_bytes: 4 << 20,
        working_set_bytes: Some(16 << 20),
        mrc: Some(MrcOptions {
            sampling: Sampling::Rate(0.2),
            ..MrcOptions::default()
        }),
        write_pct: 10.0,
        warmup_operations: Some(300_000),
        length: Some(Length::Operations(300_000)),
        ..Options::new(Work::Paper(crate::cache::PaperObjects::default()))
    };
    options.validate().unwrap();
    let workload = Workload::load(&options).unwrap();
    let run = |cancel| {
        let mut last = 0.0;
        let curves = run(
            &workload,
            &options,
            &options.mrc.unwrap(),
            &AtomicBool::new(cancel),
            &mut |done| {
                assert!((last..=1.0).contains(&done), "{done} behind {last}");
                last = done;
            },
        );
        curves.map(|curves| (curves, last))
    };
    let (curves, last) = run(false).unwrap();
    assert!(last > 0.8, "{last}");
    let smallest = curves.points.first().unwrap().memory_bytes;
    assert_eq!(smallest, leafpress::cache::MIN_MEMORY_BYTES, "no cache is smaller");
    assert!(curves.held.empty_bytes > 0);
    assert!(
        curves.held.evicted > 0 && (0.4..1.2).contains(&curves.held.per_byte()),
        "{:?}",
        curves.held
    );
    // A fifth of the hot fifth, all of which was requested, and of half of the others.
    let asked_for = workload.keys() as f64 * (0.2 + 0.8 * 0.51);
    assert!(
        (curves.sampled_keys as f64 / asked_for - 0.2).abs() < 0.01,
        "{curves:?}"
    );
    let at = |curve, bytes: u64| curves.hit_ratio(curve, bytes as f64);
    // Four fifths of the reads go to a fifth of the keys, which 4 MiB hold when compressed.
    assert!(
        at(Curve::LruCompressed, 4 << 20) > at(Curve::Lru, 4 << 20) + 0.05,
        "{curves:?}"
    );
    assert!(
        at(Curve::S3FifoCompressed, 4 << 20) > at(Curve::S3Fifo, 4 << 20) + 0.05,
        "{curves:?}"
    );
    for curve in Curve::ALL {
        assert!(at(curve, 64 << 20) > 0.85, "{curve:?}: {curves:?}");
    }
    assert!(matches!(run(true), Err(LabError::Cancelled)));
}
