use std::sync::atomic::AtomicBool;

use super::run::PeerSpec;
use super::*;
use crate::core::corpus::Source;
use crate::core::keys::KeyShape;
use crate::eval::Workload;
use crate::eval::dataset::Lengths;

fn config() -> PeersConfig {
    PeersConfig {
        data: Source::Synthetic(0.5),
        keys: 1000,
        seconds: 0.05,
        codecs: vec!["none".into()],
        ..PeersConfig::default()
    }
}

/// Every map under every workload and with keys and values of every kind, single-threaded: `SkipMap` cannot report
/// exactly whether a put was new while others write.
#[test]
fn every_map_is_driven_right() {
    let mut samples = Vec::new();
    for peer in [Peer::Leafpress("lz4".into())].into_iter().chain(Peer::OTHERS) {
        if let Peer::Blocks(_) = peer {
            samples.push((peer, Workload::ReadOnly, config()));
            continue;
        }
        for workload in [Workload::ReadOnly, Workload::Crud, Workload::Scan] {
            samples.push((peer.clone(), workload, config()));
        }
        for key_shape in [KeyShape::Scattered, KeyShape::Text, KeyShape::Uuid] {
            let odd = PeersConfig {
                key_shape,
                key_bytes: 17,
                value_bytes: 100,
                ..config()
            };
            samples.push((peer.clone(), Workload::Crud, odd.clone()));
            let varying = matches!(key_shape, KeyShape::Text | KeyShape::Path);
            if !(peer == Peer::Masstree && varying) {
                samples.push((peer.clone(), Workload::Scan, odd));
            }
        }
    }
    for (peer, workload, config) in samples {
        {
            let mut spec = config.run_of(&peer);
            spec.workload = workload;
            let sample = PeerSpec {
                peer: peer.clone(),
                spec,
            };
            let result = run_sample(&sample, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
            assert_eq!(
                result.mismatches, 0,
                "{peer} {workload} {}: {:?}",
                config.key_shape, result.mismatch_examples
            );
            assert!(result.operations() > 0);
        }
    }
}

/// `bench` and `peers` once had trees of 1 and 8 shards, and so 240 and 296 bytes per record for the same records.
#[cfg(feature = "bench")]
#[test]
fn bench_holds_the_same_records_in_the_same_memory() {
    use crate::bench;
    use crate::core::corpus::RecordFormat;
    use crate::core::keys::mix;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records.jsonl");
    let states = ["active", "closed", "waiting for the customer", "lost"];
    let record = |n: u64| {
        let (mixed, state) = (mix(n), states[n as usize % 4]);
        format!(
            "{{\"id\":\"customer/{n:06}\",\"state\":\"{state}\",\"token\":\"{mixed:016x}\",\"visits\":{}}}\n",
            n * 7 % 1000
        )
    };
    std::fs::write(&path, (0..6000).map(record).collect::<String>()).unwrap();
    let (data, format) = (Source::Path(path), "jsonl:/id".parse::<RecordFormat>().unwrap());
    let never = AtomicBool::new(false);
    for codec in ["none", "zstd:3"] {
        let config = PeersConfig {
            data: data.clone(),
            records: Some(format.clone()),
            keys: 0,
            seconds: 0.01,
            ..PeersConfig::default()
        };
        let peer = Peer::Leafpress(codec.into());
        let mut spec = config.run_of(&peer);
        assert_eq!(spec.base.shards, 1, "as a tree of `bench`, which sets none");
        // A tree chooses its sizes by measured read times, and trains when its thread is scheduled: both vary between
        // runs.
        (spec.base.frame_bytes, spec.base.leaf_bytes) = (Some(1024), Some(16 << 10));
        spec.base.dictionary = false;
        let sample = PeerSpec { spec, peer };
        let of_peers = run_sample(&sample, &never, &mut |_, _| {}).unwrap().loaded.bytes_held;
        let mut options = bench::Options::new(format!("leafpress:{codec}").parse().unwrap());
        options.dump = Some(bench::Dump {
            data: data.clone(),
            format: format.clone(),
            left_out: None,
        });
        options.tree = "frame_bytes=1024,leaf_bytes=16384,dictionary=0".parse().unwrap();
        (options.records, options.operations, options.hardware) = (6000, 1, false);
        let report = bench::run(&options, None, &never, &mut |_| {}).unwrap();
        let of_bench = report.outcomes[0].load.as_ref().unwrap().held_bytes.unwrap();
        // They load in other orders, so leaves split elsewhere.
        let apart = of_peers as f64 / of_bench as f64;
        assert!(
            (0.95..1.05).contains(&apart),
            "{codec}: {of_peers} by peers, {of_bench} by bench"
        );
    }
}

#[test]
fn masstree_is_left_out_where_it_would_be_wrong() {
    let lengths = |least, most| Lengths {
        least,
        most,
        mean: 10.0,
    };
    for (workload, keys, left_out) in [
        (Workload::ReadOnly, lengths(3, 256), false),
        (Workload::ReadOnly, lengths(3, 257), true),
        (Workload::Scan, lengths(36, 36), false),
        (Workload::Scan, lengths(3, 36), true),
    ] {
        assert_eq!(
            Peer::Masstree.fault(workload, &keys).is_some(),
            left_out,
            "{workload} {keys}"
        );
        assert!(Peer::TreeIndex.fault(workload, &keys).is_none());
    }
}

#[test]
fn names_round_trip() {
    for peer in [Peer::Leafpress("zstd:1".into())].into_iter().chain(Peer::OTHERS) {
        assert_eq!(peer.to_string().parse::<Peer>().unwrap(), peer);
    }
    assert!("hashmap".parse::<Peer>().is_err());
}

#[test]
fn the_table_is_relative_to_the_fastest_other() {
    let line = |peer, reads: f64, resident| PeerLine {
        peer,
        operations_per_second_per_core: reads,
        operations_range: (reads, reads),
        read_p99_ns: Some(900.0),
        loads_per_second: reads / 2.0,
        settle_seconds: 1.25,
        resident_bytes_per_record: Some(resident),
        resident_unknown: None,
        bytes_held_per_record: None,
        chosen_codec: None,
    };
    let outcome = PeersOutcome {
        lines: vec![
            line(Peer::Leafpress("lz4".into()), 9e6, 50.0),
            line(Peer::Masstree, 3e6, 200.0),
            line(Peer::SkipMap, 1e6, 180.0),
        ],
        data: "1000 scattered keys of 8 bytes, values of 128 bytes from nci".into(),
        record_bytes: 136.0,
        left_out: vec!["masstree: its keys have at most 256 bytes, and the longest here has 300".into()],
        cautions: vec!["The machine was busy.".into()],
        table: String::new(),
        mismatches: 1,
        failures: vec!["scc::TreeIndex: it fell".into()],
        cancelled: true,
    };
    let table = document::document(&config(), &outcome).text();
    for words in [
        "3.00x",
        "0.33x",
        "0.25x",
        "MISMATCHES: 1",
        "failed: scc::TreeIndex: it fell",
        "cancelled",
        "! The machine was busy.",
        "1000 scattered keys",
        "in random order",
        "136 bytes of key and value",
        "up to 1.2 s here",
        "skipped: masstree",
    ] {
        assert!(table.contains(words), "{words}:\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 130), "{table}");
}
