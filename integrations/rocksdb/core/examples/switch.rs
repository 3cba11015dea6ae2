//! Converts an existing database to Leafpress: it reads the database's `OPTIONS` file, sets the codec of each column
//! family, and writes every file again by compaction. No other process may have the database open.
//!
//! `cargo run --release --workspace --example switch -- DATABASE [OPTIONS]`, as in
//! `... --example switch -- /srv/db "codec=zstd:3;dictionary_bytes=16K"`; the options `off` convert it back.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use leafpress_rocksdb::CompressionOptions;
use rocksdb::{BottommostLevelCompaction, Cache, CompactOptions, DB, Env, Options};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, text) = match arguments.as_slice() {
        [path] => (path, "codec=zstd:3"),
        [path, text] => (path, text.as_str()),
        _ => {
            eprintln!("switch DATABASE [OPTIONS]");
            return ExitCode::from(2);
        }
    };
    match switch(path.as_ref(), text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("switch: {error}");
            ExitCode::FAILURE
        }
    }
}

fn switch(path: &Path, text: &str) -> Result<(), Box<dyn std::error::Error>> {
    leafpress_rocksdb::register();
    let manager = match text {
        "off" => "nullptr".to_owned(),
        text => text.parse::<CompressionOptions>()?.to_string(),
    };
    let cache = Cache::new_lru_cache(32 << 20);
    // The program's own merge operators and comparators are not in the file and must be set here.
    let (options, families) = Options::load_latest(path, Env::new()?, false, cache)?;
    let db = DB::open_cf_descriptors(&options, path, families)?;
    let before = bytes(&db)?;
    let start = Instant::now();
    let mut everything = CompactOptions::default();
    everything.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
    for name in DB::list_cf(&options, path)? {
        let family = db.cf_handle(&name).ok_or("a column family is gone")?;
        db.set_options_cf(
            family,
            &[
                // Files name their compression manager since format 7.
                ("block_based_table_factory", "{format_version=7;}"),
                ("compression_manager", &manager),
            ],
        )?;
        db.flush_cf(family)?;
        db.compact_range_cf_opt(family, None::<&[u8]>, None::<&[u8]>, &everything);
        println!("{name}: {manager}");
    }
    println!(
        "{before} bytes of files became {} in {:.1} s",
        bytes(&db)?,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Bytes of all files.
fn bytes(db: &DB) -> Result<usize, rocksdb::Error> {
    Ok(db.live_files()?.iter().map(|file| file.size).sum())
}
