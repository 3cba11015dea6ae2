//! `leafpress-rocksdb cache`: `leafpress cache` with RocksDB as one more cache.

use clap::Arg;

pub use leafpress_console::cache::{CacheArgs, run};

pub const AFTER_HELP: &str = "\
Each cache runs in a process of its own, in the same memory, measured from outside. docs/cache.md explains work, table and charts,
integrations/rocksdb/docs/bench.md how RocksDB is a cache.

  leafpress-rocksdb cache -m 64M --disk 1G --working-set 256M --engines leafpress,rocksdb
  leafpress-rocksdb cache -m 64M --disk 4G --data packages.txt.zst --records stanzas:Package
  leafpress-rocksdb cache -m 64M --disk 1G --engines rocksdb,rocksdb+lz4,rocksdb+leafpress,rocksdb+none";

/// What can be compared here.
pub fn engines(arg: Arg) -> Arg {
    arg.help(
        "leafpress[:CODEC][@POLICY], rocksdb, rocksdb+lz4, rocksdb+leafpress, rocksdb+none, quick_cache[+CODEC], moka[+CODEC]; behind \
         rocksdb's + is what its secondary cache compresses by, behind another's what values are compressed by, one by one [default: \
         leafpress rocksdb quick_cache quick_cache+zstd:3 moka]",
    )
}
