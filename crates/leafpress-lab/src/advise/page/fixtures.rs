//! A synthetic input in the shape of a real one.

use super::*;
use crate::core::keys::Distribution;
use crate::model::{Access, Overhead, Replacement};

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
    Access::Distribution(Distribution::HotSet {
        keys_pct: 20.0,
        operations_pct: 80.0,
    })
}

/// The thesis's example, with a synthetic suite and device.
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
        cautions: vec!["The data was not measured.".into()],
        host: "A CPU, 2 cores, 4 GB of memory".into(),
        command_line: "leafpress advise debian-packages.txt --memory 15G --data 200G".into(),
        is_decimal: false,
        data_bytes: 200 << 30,
        memory_bytes: 15 << 30,
        page_bytes: 8 << 10,
        access: access(),
        access_bytes: 8 << 10,
        device_us: 463.0,
        reads: [(4, 426.0), (8, 463.0), (16, 513.0)]
            .map(|(kib, us)| BlockReads {
                block_bytes: kib << 10,
                us,
            })
            .to_vec(),
        device_iops: Some(8642.0),
        hit_us: 0.15,
        background_pct: 0.0,
        workers: 1,
        replacement: Replacement::Clock,
        promote_after_hits: 8,
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
            share_pct: 90.0,
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
            hit_off_points: -0.8,
            us_off_pct: 6.7,
            is_off: false,
        }],
        verify_sentences: vec!["Measured: lz4 pays.".into()],
    }
}

/// Figures of a quick suite over five files of the Silesia corpus and a quick probe of a virtual disk, on two cores of
/// an AMD EPYC that was running other work. The recommendation is the model's for them, for an assumed 15G of memory,
/// 200G of data and 80/20 access; the command line is synthetic.
pub(super) fn measured() -> PageInput {
    let codecs = vec![
        codec(
            "lz4",
            &[
                (4, 1, 2.072, 7.01, 1.92),
                (8, 1, 2.247, 10.80, 2.51),
                (16, 1, 2.444, 21.53, 4.71),
                (32, 1, 2.634, 43.14, 9.23),
                (64, 1, 2.781, 84.23, 18.08),
                (4, 2, 2.072, 3.69, 1.00),
                (8, 2, 2.247, 6.88, 1.57),
                (16, 2, 2.444, 14.14, 2.94),
                (32, 2, 2.634, 25.56, 5.71),
                (64, 2, 2.781, 49.64, 10.65),
            ],
        ),
        codec(
            "zstd:1",
            &[
                (4, 1, 3.023, 11.78, 5.16),
                (8, 1, 3.338, 19.43, 7.98),
                (16, 1, 3.689, 35.67, 13.34),
                (32, 1, 3.967, 58.42, 22.58),
                (64, 1, 4.205, 111.87, 39.96),
                (4, 2, 3.023, 7.77, 3.44),
                (8, 2, 3.338, 12.56, 5.37),
                (16, 2, 3.689, 23.62, 9.09),
                (32, 2, 3.967, 39.46, 14.53),
                (64, 2, 4.205, 91.17, 28.95),
            ],
        ),
        codec(
            "zstd:3",
            &[
                (4, 1, 3.025, 18.86, 5.94),
                (8, 1, 3.339, 26.63, 8.43),
                (16, 1, 3.681, 46.10, 14.61),
                (32, 1, 4.070, 79.11, 23.10),
                (64, 1, 4.350, 150.31, 41.09),
                (4, 2, 3.025, 9.84, 3.71),
                (8, 2, 3.339, 16.29, 5.90),
                (16, 2, 3.681, 30.61, 10.06),
                (32, 2, 4.070, 54.21, 15.65),
                (64, 2, 4.350, 160.95, 41.06),
            ],
        ),
    ];
    let memcpy = [(4, 0.238), (8, 0.402), (16, 0.714), (32, 1.320), (64, 2.811)];
    let device = [
        (4, 41360.0, 169.4, 96.6, 85.3, 141.0),
        (8, 28892.0, 236.7, 138.0, 123.0, 202.0),
        (16, 25694.0, 421.0, 155.0, 134.0, 265.0),
        (32, 22174.0, 726.6, 180.0, 168.0, 233.0),
        (64, 15556.0, 1019.5, 257.0, 238.0, 328.0),
        (128, 10488.0, 1374.7, 381.0, 347.0, 502.0),
    ];
    let files = [
        ("dickens", 10192446, 4, [1.319, 2.002, 2.009]),
        ("dickens", 10192446, 8, [1.397, 2.112, 2.118]),
        ("dickens", 10192446, 16, [1.468, 2.212, 2.217]),
        ("dickens", 10192446, 32, [1.530, 2.231, 2.338]),
        ("dickens", 10192446, 64, [1.577, 2.282, 2.425]),
        ("mr", 9970564, 4, [1.721, 2.674, 2.662]),
        ("mr", 9970564, 8, [1.751, 2.767, 2.762]),
        ("mr", 9970564, 16, [1.780, 2.841, 2.832]),
        ("mr", 9970564, 32, [1.807, 2.834, 2.901]),
        ("mr", 9970564, 64, [1.827, 2.842, 2.930]),
        ("nci", 33553445, 4, [3.649, 6.412, 6.293]),
        ("nci", 33553445, 8, [4.100, 7.545, 7.368]),
        ("nci", 33553445, 16, [4.584, 8.678, 8.454]),
        ("nci", 33553445, 32, [4.989, 9.690, 9.564]),
        ("nci", 33553445, 64, [5.301, 10.294, 10.175]),
        ("osdb", 10085684, 4, [1.177, 1.369, 1.382]),
        ("osdb", 10085684, 8, [1.295, 1.525, 1.538]),
        ("osdb", 10085684, 16, [1.479, 1.767, 1.773]),
        ("osdb", 10085684, 32, [1.715, 2.036, 2.102]),
        ("osdb", 10085684, 64, [1.922, 2.312, 2.410]),
        ("xml", 5345280, 4, [2.561, 3.780, 3.911]),
        ("xml", 5345280, 8, [2.936, 4.459, 4.639]),
        ("xml", 5345280, 16, [3.282, 5.121, 5.338]),
        ("xml", 5345280, 32, [3.554, 5.729, 5.995]),
        ("xml", 5345280, 64, [3.787, 6.181, 6.474]),
    ];
    let mut input = input();
    input.codecs = codecs;
    let copy = |(kib, us): (u64, f64)| CopyCosts {
        block_bytes: kib << 10,
        us,
    };
    input.memcpy = memcpy.into_iter().map(copy).collect();
    let row = |(kib, iops, mb_per_s, mean_us, p50_us, p99_us): (u64, f64, f64, f64, f64, f64)| DeviceRow {
        block_bytes: kib << 10,
        iops,
        mb_per_s,
        mean_us,
        p50_us: Some(p50_us),
        p99_us: Some(p99_us),
    };
    input.device = device.into_iter().map(row).collect();
    input.files.clear();
    for (name, bytes, kib, ratios) in files {
        let ratios = input.codecs.iter().zip(ratios).map(|(codec, ratio)| FileRatio {
            codec: codec.name.clone(),
            block_bytes: kib << 10,
            ratio,
        });
        let ratios: Vec<_> = ratios.collect();
        match input.files.last_mut().filter(|file| file.name == name) {
            Some(file) => file.ratios.extend(ratios),
            None => input.files.push(FileRatios {
                name: name.to_owned(),
                bytes,
                ratios,
            }),
        }
    }
    input.verify.clear();
    input.verify_sentences.clear();
    input.title = "silesia (dickens, mr, nci, osdb, xml) on vda".into();
    input.host = "AMD EPYC, 2 cores".into();
    input.device_note =
        Some("vda, a virtual disk: direct reads through io_uring, 4 in flight, 88.9% sequential".into());
    input.command_line =
        "leafpress advise silesia/ --device /tmp --memory 15G --data-bytes 200G --distribution 20,80".into();
    input.device_us = 138.0;
    input.device_iops = Some(28892.0);
    recommend(&mut input);
    input
}

/// Fills in the model's recommendation.
fn recommend(input: &mut PageInput) {
    input.choice = None;
    let outcome = crate::model::evaluate(&input.options().unwrap()).unwrap();
    let best = outcome.best().unwrap();
    let (codec, share_pct) = (best.codec.name.clone(), best.best.share * 100.0);
    input.sentence = format!(
        "Compress {share_pct}% of the 15G of memory with {codec}: {:.1} us per page instead of {:.1}.",
        best.best.us_per_page, outcome.raw.us_per_page
    );
    input.reasons = vec![
        format!("Pages of 8K compress {:.2} to 1 with {codec}.", best.codec.ratio),
        format!(
            "{:.1}% of the reads hit instead of {:.1}%; a read of the device takes 138 us, decoding a page {:.1} us.",
            best.best.hit_ratio * 100.0,
            outcome.raw.hit_ratio * 100.0,
            best.codec.decompress_us
        ),
    ];
    input.choice = Some(Choice { codec, share_pct });
}
