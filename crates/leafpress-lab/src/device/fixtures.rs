//! Made-up figures for tests of what is written about them: the thesis' SSD, whose latencies are guessed from its
//! throughput.

use super::{Latency, Measurement, Medium, Operation, Options, Probed, Report, Reread, Source, Subject, notes};

/// Requests of `block_bytes`, `queue_depth` in flight, `iops` of them a second for 5 seconds.
pub(super) fn measurement(operation: Operation, block_bytes: u64, queue_depth: u32, iops: f64) -> Measurement {
    let mean_us = f64::from(queue_depth) * 1e6 / iops;
    let operations = (iops * 5.0) as u64;
    let latency = |scale: f64, samples| Latency {
        samples,
        min_us: mean_us * 0.2 * scale,
        mean_us: mean_us * scale,
        p50_us: Some(mean_us * 0.9 * scale),
        p90_us: Some(mean_us * 1.4 * scale),
        p99_us: Some(mean_us * 3.0 * scale),
        p999_us: Some(mean_us * 8.0 * scale),
        p9999_us: Some(mean_us * 12.0 * scale),
        max_us: mean_us * 20.0 * scale,
    };
    Measurement {
        job: None,
        operation,
        block_bytes,
        queue_depth,
        seconds: 5.0,
        operations,
        iops,
        mb_per_s: iops * block_bytes as f64 / 1e6,
        us_per_block: 1e6 / iops,
        latency: latency(1.0, operations),
        random_latency: Some(latency(1.25, operations / 9)),
        submit_us: Some(4.5),
        tenths: vec![operations / 10; 10],
        cores: Some(0.12),
    }
}

/// A local SSD, read with direct I/O.
pub(super) fn probed() -> Probed {
    Probed {
        options: Options::new("/mnt/a<b"),
        subject: Subject::ProbeFile,
        bytes: 1 << 30,
        direct: Ok(()),
        engine: "io_uring".into(),
        no_uring: None,
        hole_bytes: 0,
        medium: Medium {
            file_system: Some("ext4".into()),
            device: Some("sda".into()),
            model: Some("SDSSDA-120G-G26".into()),
            rotational: Some(false),
            write_back: Some(true),
            ..Medium::default()
        },
        reread: Some(Reread {
            blocks: 256,
            block_bytes: 4096,
            first_us: 98.0,
            second_us: 95.0,
        }),
        memory_bytes: Some(16_000_000_000),
    }
}

/// The rates of table 3 of the thesis.
pub(super) fn reads() -> Vec<Measurement> {
    let rates = [
        (4, 9380.0),
        (8, 8642.0),
        (16, 7800.0),
        (32, 5899.0),
        (64, 4437.0),
        (128, 2651.0),
    ];
    rates
        .into_iter()
        .map(|(kib, iops)| measurement(Operation::Read, kib << 10, 4, iops))
        .collect()
}

pub(super) fn report() -> Report {
    let (probed, measurements) = (probed(), reads());
    let notes = notes::of_probe(&probed, &measurements);
    Report {
        source: Source::Probe(Box::new(probed)),
        host: "A CPU, 8 cores".into(),
        measurements,
        notes,
        interrupted: false,
    }
}

/// Reads and writes at two depths on a virtual disk, ended early.
pub(super) fn suspicious() -> Report {
    let mut probed = probed();
    probed.medium.virtual_by = Some("virtio".into());
    probed.medium.device = Some("vda".into());
    probed.reread = Some(Reread {
        second_us: 20.0,
        ..probed.reread.unwrap()
    });
    let mut measurements = Vec::new();
    for operation in [Operation::Read, Operation::Write] {
        for depth in [1, 4] {
            for kib in [4, 8, 16] {
                measurements.push(measurement(operation, kib << 10, depth, 9000.0 * f64::from(depth)));
            }
        }
    }
    let notes = notes::of_probe(&probed, &measurements);
    Report {
        source: Source::Probe(Box::new(probed)),
        measurements,
        notes,
        interrupted: true,
        ..report()
    }
}
