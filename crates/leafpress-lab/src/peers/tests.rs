use super::*;

fn config() -> PeersConfig {
    PeersConfig {
        data: Source::Synthetic(0.5),
        keys: 3000,
        seconds: 0.1,
        codecs: vec!["none".into()],
        ..PeersConfig::default()
    }
}

/// Every map under every workload, single-threaded: `SkipMap` cannot tell exactly whether a put was new while others write.
#[test]
fn every_map_is_driven_right() {
    for peer in [Peer::Leafpress("lz4".into())].into_iter().chain(Peer::OTHERS) {
        for workload in [Workload::ReadOnly, Workload::Crud, Workload::Scan] {
            let mut spec = spec_of(&config(), &peer);
            spec.workload = workload;
            let sample = PeerSpec {
                peer: peer.clone(),
                spec,
            };
            let result = run_sample(&sample, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
            assert_eq!(
                result.mismatches, 0,
                "{peer} {workload}: {:?}",
                result.mismatch_examples
            );
            assert!(result.operations() > 0);
        }
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
fn medians_are_in_the_middle() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
    assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
}

#[test]
fn the_table_is_relative_to_the_fastest_other() {
    let line = |peer, reads: f64, resident| PeerLine {
        peer,
        reads_per_second_per_core: reads,
        reads_range: (reads, reads),
        read_p99_ns: 900.0,
        resident_bytes_per_record: resident,
        bytes_held_per_record: None,
    };
    let outcome = PeersOutcome {
        lines: vec![
            line(Peer::Leafpress("lz4".into()), 9e6, 50.0),
            line(Peer::Masstree, 3e6, 200.0),
            line(Peer::SkipMap, 1e6, 180.0),
        ],
        table: String::new(),
        mismatches: 1,
        failures: vec!["scc::TreeIndex: it fell".into()],
        cancelled: true,
    };
    let table = table(&config(), &outcome);
    for words in [
        "3.00x",
        "0.33x",
        "0.25x",
        "MISMATCHES: 1",
        "failed: scc::TreeIndex: it fell",
        "cancelled",
    ] {
        assert!(table.contains(words), "{words}:\n{table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 130), "{table}");
}
