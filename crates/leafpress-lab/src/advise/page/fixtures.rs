//! A made-up input with the shape of a real one.

use super::*;
use crate::keys::Distribution;
use crate::model::{Access, Method, Overhead, Replacement};

fn codec(name: &str, rows: &[(u64, u32, f64, f64, f64)]) -> CodecBlocks {
    let block = |&(kib, threads, ratio, compress_us, decompress_us): &(u64, u32, f64, f64, f64)| BlockCosts {
        block_bytes: kib << 10,
        threads,
        ratio,
        compress_us,
        decompress_us,
    };
    CodecBlocks {
        name: name.to_owned(),
        blocks: rows.iter().map(block).collect(),
    }
}

fn access() -> Access {
    Access::Law(Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    })
}

/// The thesis's example with a suite and a device that are made up.
pub(super) fn input() -> PageInput {
    let device = |kib: u64, iops: f64, mean_us: f64| DeviceRow {
        block_bytes: kib << 10,
        iops,
        mb_per_s: iops * (kib << 10) as f64 / 1e6,
        mean_us,
        p50_us: Some(mean_us * 0.9),
        p99_us: Some(mean_us * 2.5),
    };
    PageInput {
        title: "debian-packages.txt on /var/lib/data".into(),
        sentence: "Compress: zstd:1 on 90% of the memory, pages of 8K.".into(),
        reasons: vec![
            "The pages compress to a third.".into(),
            "A read of the device takes 463 us.".into(),
        ],
        host: "A CPU, 2 cores, 4 GB of memory".into(),
        command_line: "leafpress advise debian-packages.txt --memory 15G --data 200G".into(),
        data_bytes: 200 << 30,
        memory_bytes: 15 << 30,
        page_bytes: 8 << 10,
        access: access(),
        device_us: 463.0,
        device_iops: Some(8642.0),
        hit_us: 0.15,
        background_pct: 0.0,
        workers: 1,
        method: Method::Corrected,
        replacement: Replacement::Clock,
        restore_after: 8,
        overhead: Overhead::Pool,
        codecs: vec![
            codec(
                "lz4",
                &[
                    (4, 1, 1.9, 6.0, 1.1),
                    (8, 1, 2.13, 11.0, 2.0),
                    (16, 1, 2.3, 23.0, 4.0),
                    (8, 2, 2.13, 6.0, 1.2),
                ],
            ),
            codec(
                "zstd:1",
                &[
                    (4, 1, 2.5, 15.0, 5.0),
                    (8, 1, 2.97, 27.0, 9.0),
                    (16, 1, 3.3, 50.0, 16.0),
                ],
            ),
        ],
        threads: 1,
        choice: Some(Choice {
            codec: "zstd:1".into(),
            share_pct: 90,
        }),
        memcpy: vec![CopyCosts {
            block_bytes: 8 << 10,
            us: 0.4,
        }],
        device: vec![
            device(4, 9380.0, 426.0),
            device(8, 8642.0, 463.0),
            device(16, 7800.0, 513.0),
        ],
        device_note: Some("random reads, 4 in flight, direct".into()),
        files: vec![FileRatios {
            name: "packages/main".into(),
            bytes: 1 << 30,
            ratios: vec![FileRatio {
                codec: "lz4".into(),
                block_bytes: 8 << 10,
                ratio: 2.13,
            }],
        }],
        verify: vec![VerifyRow {
            setting: "80/20, 64M of 512M".into(),
            codec: "lz4".into(),
            share: "60".into(),
            predicted_hit_pct: 63.9,
            measured_hit_pct: 63.1,
            predicted_us: 40.5,
            measured_us: 43.2,
        }],
    }
}
