//! The thesis's arithmetic outside its model.

use super::{Adder, Figure};

const KB: f64 = 1024.0;

/// Chapters 2 and 3.
pub(super) fn before_the_model(figures: &mut Vec<Figure>) {
    let mut add = Adder::new(figures, "chapter 2, indexing");
    add.printed("100 MB in blocks of 4 KB", "25000", " blocks", 100.0 * KB / 4.0)
        .contradicts("with its own powers of 2 it is 25600; 25000 is 10^8 over 4000");
    add.printed("full scan on average, N/2", "12500", " blocks", 25_000.0 / 2.0);
    add.place = "chapter 2, AME";
    add.printed("10 GB at a factor of 1.5", "15", " GB", 10.0 * 1.5);
    add.place = "chapter 2, video";
    for (rate, published) in [(60.0, "17"), (100.0, "10"), (144.0, "7")] {
        add.printed(
            &format!("{rate} frames/s, ms per frame"),
            published,
            " ms",
            1000.0 / rate,
        );
    }
    add.place = "chapter 3, ratios";
    add.printed("20,000 bytes to 5,000", "4", ":1", 20_000.0 / 5_000.0);
    add.printed("20,000 bytes to 2,000", "10", ":1", 20_000.0 / 2_000.0);
    add.place = "chapter 3, search";
    add.printed(
        "8 GB in buffers of 8 KB, millions",
        "1",
        "",
        8.0 * KB * KB * KB / (8.0 * KB) / 1e6,
    );
    add.printed("comparisons among 1,000,000", "20", "", 1e6_f64.log2().ceil());
    add.printed("comparisons among 2,000,000", "21", "", 2e6_f64.log2().ceil());
}

/// Chapter 4: figure 6b and data rates.
pub(super) fn codecs(figures: &mut Vec<Figure>) {
    let mut add = Adder::new(figures, "figure 6b");
    let ratios = [
        1.58, 1.94, 1.83, 6.06, 1.42, 1.92, 2.39, 3.93, 6.52, 2.08, 2.80, 1.07, 2.06, 4.35, 1.01, 2.63, 2.69, 2.70,
        10.49, 1.99, 2.70, 4.08, 6.14, 10.32, 3.56, 3.96, 1.36, 3.40, 7.72, 1.40, 2.76, 2.76, 2.80, 11.69, 1.96, 2.87,
        4.03, 6.52, 12.23, 3.39, 4.25, 1.30, 3.39, 8.35, 1.37,
    ];
    let least = ratios.into_iter().fold(f64::INFINITY, f64::min);
    let most = ratios.into_iter().fold(0.0, f64::max);
    add.printed("least ratio of a file", "1.01", "", least);
    add.printed("greatest ratio of a file", "12.23", "", most);
    add.place = "chapter 4, data rate";
    add.printed("zstd, 66 us of CPU on 8 threads", "8", " us", 66.0 / 8.0);
    add.printed("lz4, 17 us of CPU on 8 threads", "2", " us", 17.0 / 8.0)
        .noted("bulk wall time over pages: the latency of one caller's page is the CPU time");
    add.said(
        "zstd, compress over decode",
        "2 to 3 times",
        format!("{:.2} (1 thread), {:.2} (8)", 39.0 / 12.0, 8.0 / 3.0),
        39.0 / 12.0 <= 3.0,
        "39 us over 12 us with one thread is more than 3",
    );
    add.said(
        "lz4, compress over decode",
        "2 to 3 times",
        format!("{:.2} (8 threads)", 2.0 / 1.0),
        true,
        "",
    );
}

/// Chapter 4: the silver bullet.
pub(super) fn accelerators(figures: &mut Vec<Figure>) {
    let mut add = Adder::new(figures, "chapter 4, silver bullet");
    let bytes_per_second = 4e9 / 8.0;
    add.printed("4 Gbit/s in KB/s", "500000", " KB/s", bytes_per_second / KB)
        .contradicts("powers of 10 here, against its own convention: 488281 KB/s");
    add.printed(
        "4 Gbit/s in pages of 8 KB",
        "62500",
        " /s",
        bytes_per_second / (8.0 * KB),
    )
    .contradicts("61035 pages of 8192 bytes");
    add.printed(
        "us per page at that rate",
        "16",
        " us",
        8.0 * KB / bytes_per_second * 1e6,
    );
    add.printed("75 mW for 90 W, power saved", "99.9", "%", (1.0 - 0.075 / 90.0) * 100.0);
    add.printed("80 Gbit/s, ns per page", "800", " ns", 8.0 * KB * 8.0 / 80.0)
        .contradicts("a page of 8000 bytes; 8192 take 819 ns");
}
