//! Table 3: what fio measured of the thesis's devices, and what follows from it.

use super::{Adder, Figure};

/// KB of a block; reads per second of the hard disk, the SSD and the RAM disk; their MB/s.
const TABLE_3: [(u32, [u32; 3], [u32; 3]); 6] = [
    (4, [551, 9380, 697_351], [2, 36, 2723]),
    (8, [550, 8642, 513_610], [4, 67, 4012]),
    (16, [537, 7800, 332_678], [8, 121, 5197]),
    (32, [489, 5899, 197_465], [15, 184, 6170]),
    (64, [460, 4437, 108_430], [28, 277, 6776]),
    (128, [390, 2651, 57_073], [48, 331, 7133]),
];
const DEVICES: [&str; 3] = ["HDD", "SSD", "RAM"];

/// Reads per second of the SSD with blocks of 8 KB.
pub(super) const SSD_IOPS: f64 = 8642.0;
/// Reads under way at any time: fio's queue depth.
const QUEUE_DEPTH: f64 = 4.0;

pub(super) fn table_3(figures: &mut Vec<Figure>) {
    let mut add = Adder::new(figures, "table 3");
    for (block_kb, iops, megabytes) in TABLE_3 {
        for ((device, iops), published) in DEVICES.iter().zip(iops).zip(megabytes) {
            let computed = f64::from(iops) * f64::from(block_kb) / 1024.0;
            // fio truncates decimals, and computes bandwidth from another clock reading than reads per second.
            let same = (computed.floor() - f64::from(published)).abs() <= 1.0;
            add.said(
                &format!("{device}, {block_kb} KB: {iops} reads/s, in MB/s"),
                &published.to_string(),
                format!("{computed:.1}"),
                same,
                if computed.floor() == f64::from(published) {
                    "decimals cut off"
                } else {
                    "measured apart: 1 MB/s is its resolution"
                },
            );
        }
    }
    let ratios = |faster: usize, slower: usize| {
        let ratios = TABLE_3.map(|(_, iops, _)| f64::from(iops[faster]) / f64::from(iops[slower]));
        (
            ratios.into_iter().fold(f64::INFINITY, f64::min),
            ratios.into_iter().fold(0.0, f64::max),
        )
    };
    for (what, published, (least, most), within) in [
        ("SSD over HDD, reads/s", "5 to 20 times", ratios(1, 0), (5.0, 20.0)),
        ("RAM over SSD, reads/s", "10 to 100 times", ratios(2, 1), (10.0, 100.0)),
    ] {
        let holds = least >= within.0 && most <= within.1;
        add.said(what, published, format!("{least:.1} to {most:.1} times"), holds, "");
    }
    add.place = "chapter 4, disk metrics";
    let (fast, slow) = (1e6 / 9000.0, 1e6 / 8000.0);
    add.printed("8000 reads/s, us per read", "125", " us", slow);
    add.printed("9000 reads/s, us per read", "110", " us", fast)
        .contradicts("rounded down to a ten");
    add.printed("cost of a page fault: SSD, 8 KB", "110", " us", 1e6 / SSD_IOPS)
        .contradicts("1/8642 s is 115.7 us. 110 us, the inverse of 9091 reads/s, is used from there on, and also here");
    add.said(
        "latency of a read, by Little's law",
        "110 us",
        format!("{:.1} us", QUEUE_DEPTH / SSD_IOPS * 1e6),
        false,
        "110 us is inverse throughput at queue depth 4, not latency",
    );
}
