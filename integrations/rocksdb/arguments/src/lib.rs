//! The command line of `leafpress-rocksdb`: what it takes, and nothing of what it does.
#![warn(missing_docs)]
// The doc comment of an argument is its help, which is printed verbatim.
#![allow(rustdoc::broken_intra_doc_links)]

mod bench;
mod caches;
mod frontier;
mod matrix;
mod shared;

use clap::{Arg, Parser, Subcommand};
use leafpress_console::cache::CacheArgs;
/// The subcommand under which a run of `cache` is started in its own process.
pub use leafpress_lab::CHILD_SUBCOMMAND as CACHE_CHILD_SUBCOMMAND;

pub use self::bench::BenchArgs;
pub use self::caches::CachesArgs;
pub use self::frontier::{FrontierArgs, Whose};
pub use self::matrix::MatrixArgs;
pub use self::shared::{DataArgs, OutputArgs, RoundsArgs, RunArgs, SizesArgs, StudyArgs, TuningArgs};

/// The subcommand under which a run is started in its own process.
pub const CHILD_SUBCOMMAND: &str = "__run";

/// RocksDB with and without Leafpress: db_bench's workloads, the white paper's matrix, the frontier of codecs, and
/// caches.
#[derive(Debug, Parser)]
#[command(name = "leafpress-rocksdb", version, about, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run db_bench's benchmarks of the same names, or YCSB's workloads, on one compression
    Bench(Box<BenchArgs>),
    /// Run the white paper's whole set against zstd: throughput, p99, data size, CPU saved at equal throughput, cost
    Matrix(Box<MatrixArgs>),
    /// Draw throughput against data size for every codec and level, with dictionaries and without
    Frontier(Box<FrontierArgs>),
    /// Compare block caches and secondary caches at the same total memory
    Caches(Box<CachesArgs>),
    /// Compare caches as `leafpress cache` does, with RocksDB among them: on the paper's objects, your records, or a
    /// trace
    #[command(after_help = AFTER_HELP, mut_arg("engines", engines))]
    Cache(Box<CacheArgs>),
    /// One run of `cache` in its own process; what to do comes on standard input
    #[command(name = CACHE_CHILD_SUBCOMMAND, hide = true)]
    CacheRun,
    /// One run in its own process; what to do comes on standard input
    #[command(name = CHILD_SUBCOMMAND, hide = true)]
    Run,
}

const AFTER_HELP: &str = "Each cache runs in a process of its own, in the same memory, measured from outside. \
docs/commands/cache.md explains work, table and charts,
integrations/rocksdb/docs/bench.md how RocksDB is a cache.

  leafpress-rocksdb cache -m 64M --disk 1G --working-set 256M --engines leafpress,rocksdb
  leafpress-rocksdb cache -m 64M --disk 4G --data packages.txt.zst --records stanzas:Package
  leafpress-rocksdb cache -m 64M --disk 1G --engines rocksdb,rocksdb+lz4,rocksdb+leafpress,rocksdb+none";

/// What can be compared here.
fn engines(arg: Arg) -> Arg {
    arg.help(
        "leafpress[:CODEC][@POLICY], rocksdb, rocksdb+lz4, rocksdb+leafpress, rocksdb+none, quick_cache[+CODEC], \
         moka[+CODEC]; behind rocksdb's + is what its secondary cache compresses by, behind another's what values are \
         compressed by, one by one [default: leafpress rocksdb quick_cache quick_cache+zstd:3 moka]",
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_whole() {
        Cli::command().debug_assert();
    }

    /// Names that db_bench has, or that this command had, and letters that `leafpress` has.
    #[test]
    fn every_spelling_is_taken() {
        let bench =
            "--value_src_data_file unicode --data-size 64M --duration 1 --warmup 1 --verify --key-size 1K -t 2 -o out";
        let bench = [vec!["leafpress-rocksdb", "bench"], bench.split(' ').collect()].concat();
        let Command::Bench(args) = Cli::try_parse_from(bench).unwrap().command else {
            panic!("another command");
        };
        assert_eq!((args.run.data.key_size, args.threads, args.seconds), (1024, 2, 1.0));
        assert_eq!((args.run.data.data, args.check_values), ("unicode".into(), true));
        let caches = [
            "leafpress-rocksdb",
            "caches",
            "-m",
            "1.5G",
            "--secondary_pct",
            "50",
            "-d",
            "2",
            "--warmup-seconds",
            "1",
        ];
        let Command::Caches(args) = Cli::try_parse_from(caches).unwrap().command else {
            panic!("another command");
        };
        assert_eq!(
            (args.memory.0, args.secondary_pct, args.rounds.seconds),
            (3 << 29, 50.0, Some(2.0))
        );
        let frontier = ["leafpress-rocksdb", "frontier", "--codecs", "rocksdb", "--dict", "4K"];
        assert!(Cli::try_parse_from(frontier).is_ok());
    }

    #[test]
    fn reports_invalid_sizes() {
        for (flag, size) in [
            ("--key_size", "16X"),
            ("--value_size", "-1"),
            ("--block_size", "99999999T"),
        ] {
            let error = Cli::try_parse_from(["leafpress-rocksdb", "bench", &format!("{flag}={size}")]).unwrap_err();
            assert!(error.to_string().contains(flag), "{error}");
        }
    }
}
