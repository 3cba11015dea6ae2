//! The settings of a run, in the syntax of RocksDB's options strings.

use crate::options::{Shape, Tuning};

/// Returns the whole options string of an instance, in RocksDB's syntax.
///
/// RocksDB's strings cannot name a secondary cache, so what is passed to RocksDB has `leafpress_block_cache://N`
/// instead of the block cache's options.
pub fn options_string(shape: &Shape, tuning: &Tuning) -> String {
    let cache = match tuning.cache.bytes {
        0 => String::new(),
        _ => format!("{{{}}}", tuning.block_cache()),
    };
    with_block_cache(shape, tuning, &cache)
}

/// Returns the options string with the value of `block_cache`; empty for none.
pub(crate) fn with_block_cache(shape: &Shape, tuning: &Tuning, cache: &str) -> String {
    let filter = match shape.bloom_bits {
        0 => "nullptr".to_owned(),
        bits => format!("bloomfilter:{bits}:false"),
    };
    let version = match (shape.format_version, shape.compression.is_leafpress()) {
        (0, false) => String::new(),
        (0, true) => "format_version=7;".to_owned(),
        (version, _) => format!("format_version={version};"),
    };
    let cache = match cache {
        "" => "no_block_cache=true;".to_owned(),
        // A URI in braces would be passed over: RocksDB takes the braces for a part of the name.
        cache => format!("block_cache={cache};"),
    };
    format!(
        "create_if_missing=true;max_background_jobs={};write_buffer_size={};max_write_buffer_number={};\
         use_direct_reads={};disable_auto_compactions={};max_open_files=-1;\
         block_based_table_factory={{block_size={};filter_policy={filter};{version}{cache}}};{}{}",
        tuning.max_background_jobs,
        tuning.write_buffer_bytes,
        tuning.max_write_buffers,
        tuning.use_direct_reads,
        tuning.disable_auto_compactions,
        shape.block_bytes,
        shape.compression.options_string(),
        tuning.rocksdb_options
    )
}
