use std::fs;
use std::path::Path;

use super::super::{Subject, Topic};
use super::*;

/// A probe of a moment.
fn options(path: &Path) -> Options {
    Options {
        block_bytes: vec![4096, 16384],
        seconds: 0.05,
        file_bytes: Some(8 << 20),
        ..Options::new(path)
    }
}

fn run(options: &Options) -> Result<Report, LabError> {
    probe(options, &AtomicBool::new(false), &mut |_| {})
}

/// A directory on a disk, if anything is: this program's.
fn directory() -> tempfile::TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::tempdir_in(program.parent().unwrap()).unwrap()
}

fn probed(report: &Report) -> &Probed {
    match &report.source {
        Source::Probe(probed) => probed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_engine_measures_and_leaves_nothing_behind() {
    let directory = directory();
    for engine in [EngineChoice::Auto, EngineChoice::Threads] {
        let options = Options {
            engine,
            write: true,
            queue_depths: vec![1, 4],
            ..options(directory.path())
        };
        let report = run(&options).unwrap();
        assert_eq!(report.measurements.len(), 2 * 2 * 2);
        for m in &report.measurements {
            assert_eq!(m.operations, m.latency.samples);
            assert_eq!(m.operations, m.tenths.iter().sum::<u64>());
            assert!(m.operations >= 1 && m.iops > 0.0, "{m:?}");
            assert!((m.us_per_block * m.iops / 1e6 - 1.0).abs() < 1e-6, "{m:?}");
            assert!(
                (m.mb_per_s * 1e6 / m.iops / m.block_bytes as f64 - 1.0).abs() < 1e-6,
                "{m:?}"
            );
            let l = &m.latency;
            let rising = [
                Some(l.min_us),
                l.p50_us,
                l.p90_us,
                l.p99_us,
                l.p999_us,
                l.p9999_us,
                Some(l.max_us),
            ];
            assert!(rising.is_sorted() && rising.iter().all(Option::is_some), "{l:?}");
            // One request in nine, of the completed ones.
            let random = m.random_latency.map_or(0, |latency| latency.samples);
            assert!(
                random.abs_diff(m.operations / 9) <= u64::from(m.queue_depth) + 1,
                "{random} of {}",
                m.operations
            );
        }
        assert!(report.find(Operation::Write, 16384, 4).is_some());
        assert_eq!(probed(&report).subject, Subject::ProbeFile);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_file_that_exists_is_only_read() {
    let directory = directory();
    let path = directory.path().join("table.db");
    let content: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&path, &content).unwrap();
    let mut options = options(&path);
    options.file_bytes = None;
    let report = run(&options).unwrap();
    assert_eq!(
        (probed(&report).subject, probed(&report).bytes),
        (Subject::File, content.len() as u64)
    );
    options.write = true;
    let refused = run(&options).unwrap_err();
    assert!(refused.to_string().contains("--write"), "{refused}");
    assert!(fs::read(&path).unwrap() == content);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn reports_holes_in_a_file() {
    let directory = directory();
    let path = directory.path().join("sparse");
    fs::File::create(&path).unwrap().set_len(64 << 20).unwrap();
    let report = run(&options(&path)).unwrap();
    assert!(probed(&report).hole_bytes > 60 << 20);
    assert!(
        report.notes.iter().any(|note| note.topic == Topic::Holes),
        "{:?}",
        report.notes
    );
}

/// Where the kernel does a read within the call that hands it over, as it may from memory, the time of the call is all
/// there is.
#[test]
fn latencies_hold_the_handing_over() {
    let directory = directory();
    let report = run(&options(directory.path())).unwrap();
    for m in &report.measurements {
        let submit_us = m.submit_us.unwrap_or(0.0);
        assert!(m.latency.mean_us >= submit_us, "{:?}, {submit_us}", m.latency);
        assert!(m.latency.max_us >= submit_us, "{:?}, {submit_us}", m.latency);
        assert_eq!(m.wait_us(), m.latency.mean_us);
    }
}

#[test]
fn a_cancelled_probe_keeps_what_had_ended() {
    let directory = directory();
    let options = options(directory.path());
    let cancel = AtomicBool::new(false);
    let report = probe(&options, &cancel, &mut |event| {
        if let Event::Measured(_) = event {
            cancel.store(true, Ordering::Relaxed);
        }
    });
    let report = report.unwrap();
    assert!(report.interrupted && report.measurements.len() == 1);
    let before = probe(&options, &cancel, &mut |_| {});
    assert!(matches!(before, Err(LabError::Cancelled)), "{before:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn reports_targets_that_cannot_be_probed() {
    let directory = directory();
    let path = directory.path().join("short");
    fs::write(&path, [7; 100]).unwrap();
    let message = |path: &Path| run(&options(path)).unwrap_err().to_string();
    assert!(message(&path).contains("100 bytes long"));
    assert!(message(Path::new("/no/such/place")).contains("no such file"));
    assert!(message(Path::new("/dev/null")).contains("neither a directory"));
    let mut large = options(directory.path());
    large.file_bytes = Some(1 << 60);
    let refused = run(&large).unwrap_err();
    let room = matches!(refused, LabError::Device(DeviceError::NoRoom { wanted_bytes, .. }) if wanted_bytes == 1 << 60);
    // A limit on file sizes takes precedence, if there is one.
    assert!(room || refused.to_string().contains("ulimit"), "{refused}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn progress_goes_through_all_pieces() {
    let directory = directory();
    let mut pieces = Vec::new();
    let mut done = 0.0_f64;
    let options = options(directory.path());
    probe(&options, &AtomicBool::new(false), &mut |event| match event {
        Event::Piece { index, total, what } => pieces.push((index, total, what)),
        Event::Progress(share) => done = done.max(share),
        Event::Measured(_) => {}
    })
    .unwrap();
    let numbers: Vec<_> = pieces.iter().map(|(index, total, _)| (*index, *total)).collect();
    assert_eq!(numbers, [(0, 3), (1, 3), (2, 3)]);
    assert!(pieces[0].2.contains("8M") && pieces[2].2.contains("16K"), "{pieces:?}");
    assert!(done > 0.0);
}
