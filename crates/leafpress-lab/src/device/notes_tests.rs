use super::super::fixtures::{self, measurement};
use super::*;

fn topics(probed: &Probed, measurements: &[Measurement]) -> Vec<Topic> {
    of_probe(probed, measurements)
        .into_iter()
        .map(|note| note.topic)
        .collect()
}

/// The topics of the fixture after a change.
fn changed(change: impl FnOnce(&mut Probed, &mut Vec<Measurement>)) -> Vec<Topic> {
    let (mut probed, mut measurements) = (fixtures::probed(), fixtures::reads());
    change(&mut probed, &mut measurements);
    topics(&probed, &measurements)
}

#[test]
fn an_honest_disk_has_no_note() {
    assert_eq!(changed(|_, _| {}), []);
}

#[test]
fn notes_what_hides_the_device() {
    let page_cache = changed(|p, _| p.direct = Err("not supported by the file system".into()));
    assert_eq!(page_cache, [Topic::PageCache]);
    let memory = changed(|p, _| {
        p.direct = Err("in memory".into());
        (p.medium.file_system, p.medium.device) = (Some("tmpfs".into()), None);
    });
    assert_eq!(memory, [Topic::Memory]);
    let remote = changed(|p, _| (p.medium.file_system, p.medium.device) = (Some("nfs4".into()), None));
    assert_eq!(remote, [Topic::Remote]);
    let overlay = changed(|p, _| (p.medium.file_system, p.medium.device) = (Some("overlay".into()), None));
    assert_eq!(overlay, [Topic::UnknownDisk]);
    assert_eq!(changed(|p, _| p.medium.virtual_machine = true), [Topic::UnknownDisk]);
    assert_eq!(
        changed(|p, _| p.medium.virtual_by = Some("virtio".into())),
        [Topic::VirtualDisk]
    );
    let file = changed(|p, _| p.medium.backing_file = Some("/images/a".into()));
    assert_eq!(file, [Topic::UnknownDisk]);
    assert_eq!(changed(|p, _| p.hole_bytes = p.bytes / 2), [Topic::Holes]);
    assert_eq!(
        changed(|p, _| p.no_uring = Some("Operation not permitted".into())),
        [Topic::Engine]
    );
}

#[test]
fn caches_show_in_what_they_do() {
    let again = changed(|p, _| {
        if let Some(reread) = &mut p.reread {
            reread.second_us = 20.0;
        }
    });
    assert_eq!(again, [Topic::Reread]);
    // On fast devices the difference is noise.
    let noise = changed(|p, _| {
        if let Some(reread) = &mut p.reread {
            (reread.first_us, reread.second_us) = (12.0, 6.0);
        }
    });
    assert_eq!(noise, []);
    let quick = |p50: f64| {
        changed(move |_, m| {
            if let Some(random) = &mut m[0].random_latency {
                random.p50_us = Some(p50);
            }
        })
    };
    assert_eq!(quick(2.0), [Topic::TooQuick]);
    assert_eq!(quick(20.0), [Topic::TooQuick]);
    assert_eq!(quick(60.0), []);
}

#[test]
fn notes_limits_and_changes_of_the_rate() {
    let equal = changed(|_, m| {
        for (at, one) in m.iter_mut().take(3).enumerate() {
            one.iops = 5000.0 + at as f64;
        }
    });
    assert_eq!(equal, [Topic::Limit]);
    // A disk that turns: table 3 of the thesis.
    let hdd = changed(|_, m| {
        for (one, iops) in m.iter_mut().zip([551.0, 550.0, 545.0]) {
            one.iops = iops;
        }
    });
    assert_eq!(hdd, []);
    let fell = changed(|_, m| m[2].tenths = vec![2000, 2000, 2000, 500, 500, 500, 500, 500, 500, 500]);
    assert_eq!(fell, [Topic::Unsteady]);
    let text = |seconds: f64| {
        let (probed, mut measurements) = (fixtures::probed(), fixtures::reads());
        measurements[1].seconds = seconds;
        of_probe(&probed, &measurements).pop().map(|note| note.text)
    };
    assert!(text(60.0).is_some_and(|text| text.contains("60.0 s instead of 5")));
    assert_eq!(text(5.9), None);
    assert_eq!(changed(|_, m| m[1].cores = Some(0.97)), [Topic::Processor]);
    assert_eq!(changed(|_, m| m[1].operations = 20), [Topic::Few]);
}

#[test]
fn notes_writes_into_a_cache() {
    let writes = |write_back| {
        changed(move |p, m| {
            p.medium.write_back = Some(write_back);
            m.push(measurement(Operation::Write, 4096, 4, 20_000.0));
        })
    };
    assert_eq!(writes(true), [Topic::WriteCache]);
    assert_eq!(writes(false), []);
}

#[test]
fn a_note_is_one_line() {
    for note in fixtures::suspicious().notes {
        assert!(!note.text.contains('\n') && !note.text.contains("  "), "{}", note.text);
    }
}
