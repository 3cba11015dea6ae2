//! How our codecs compare with RocksDB's own in the same program: file size, time to write, random reads without a
//! block cache. Rounds alternate between the two sides; medians are printed.
//!
//! `cargo run --release --workspace --example parity [FILE [BLOCK_BYTES [VALUE_BYTES [ROUNDS [ONLY]]]]]`

use std::path::Path;
use std::time::Instant;

use rocksdb::{DB, Options};

const RECORDS: usize = 200_000;
const READS: usize = 100_000;

struct Side {
    name: &'static str,
    options: &'static str,
    write_s: Vec<f64>,
    reads_per_s: Vec<f64>,
    bytes: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    leafpress_rocksdb::register();
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "../../README.md".to_owned());
    let block_bytes: usize = arguments.next().unwrap_or_else(|| "16384".to_owned()).parse()?;
    let value_bytes: usize = arguments.next().unwrap_or_else(|| "256".to_owned()).parse()?;
    let rounds: usize = arguments.next().unwrap_or_else(|| "7".to_owned()).parse()?;
    let only = arguments.next().unwrap_or_default();
    let source = std::fs::read(file)?;
    let mut sides: Vec<Side> = [
        ("built-in lz4", "compression=kLZ4Compression"),
        ("leafpress lz4", "compression_manager={id=leafpress;codec=lz4}"),
        ("built-in zstd", "compression=kZSTD"),
        ("leafpress zstd:3", "compression_manager={id=leafpress;codec=zstd:3}"),
        (
            "built-in zstd dictionary",
            "compression=kZSTD;compression_opts={max_dict_bytes=16384;zstd_max_train_bytes=819200}",
        ),
        (
            "leafpress zstd:3 dictionary",
            "compression_manager={id=leafpress;codec=zstd:3;dictionary_bytes=16K}",
        ),
        (
            "leafpress lz4 dictionary",
            "compression_manager={id=leafpress;codec=lz4;dictionary_bytes=16K}",
        ),
        (
            "leafpress deflate:1",
            "compression_manager={id=leafpress;codec=deflate:1}",
        ),
    ]
    .into_iter()
    .filter(|(name, _)| name.contains(&only))
    .map(|(name, options)| Side {
        name,
        options,
        write_s: Vec::new(),
        reads_per_s: Vec::new(),
        bytes: 0,
    })
    .collect();
    let directory = tempfile::tempdir()?;
    for round in 0..rounds {
        for (at, side) in sides.iter_mut().enumerate() {
            let path = directory.path().join(at.to_string());
            let _ = std::fs::remove_dir_all(&path);
            measure(side, &path, &source, block_bytes, value_bytes, round)?;
        }
    }
    println!("{:28} {:>10} {:>10} {:>12}", "", "file MB", "write s", "reads/s");
    for side in &mut sides {
        println!(
            "{:28} {:10.2} {:10.3} {:12.0}",
            side.name,
            side.bytes as f64 / 1e6,
            median(&mut side.write_s),
            median(&mut side.reads_per_s)
        );
    }
    Ok(())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(
    side: &mut Side,
    path: &Path,
    source: &[u8],
    block_bytes: usize,
    value_bytes: usize,
    round: usize,
) -> Result<(), rocksdb::Error> {
    let text = format!(
        "{};create_if_missing=true;disable_auto_compactions=true;write_buffer_size=256M;\
         block_based_table_factory={{block_size={block_bytes};no_block_cache=true}}",
        side.options
    );
    let options = Options::default().get_options_from_string(text)?;
    let db = DB::open(&options, path)?;
    let key = |i: usize| format!("{i:016}");
    for i in 0..RECORDS {
        let at = (i * value_bytes) % (source.len() - value_bytes);
        db.put(key(i), &source[at..at + value_bytes])?;
    }
    let start = Instant::now();
    db.flush()?;
    side.write_s.push(start.elapsed().as_secs_f64());
    side.bytes = db.live_files()?.iter().map(|file| file.size as u64).sum();
    let mut state = 0x9E37_79B9_u64 + round as u64;
    let start = Instant::now();
    for _ in 0..READS {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let i = (state >> 33) as usize % RECORDS;
        assert!(db.get_pinned(key(i))?.is_some());
    }
    side.reads_per_s.push(READS as f64 / start.elapsed().as_secs_f64());
    Ok(())
}
