//! Compression statistics of this process, as text like RocksDB's `Statistics::ToString`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::engines;

macro_rules! tickers {
    ($($ticker:ident => $name:literal,)*) => {
        /// The counters.
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum Ticker {
            $($ticker,)*
        }

        /// Their names, in the order of [`Ticker`].
        const NAMES: &[&str] = &[$($name,)*];
    };
}

tickers! {
    CompressBlocks => "leafpress.compress.blocks",
    CompressRawBytes => "leafpress.compress.raw.bytes",
    CompressStoredBytes => "leafpress.compress.stored.bytes",
    CompressRejected => "leafpress.compress.rejected",
    CompressBypassed => "leafpress.compress.bypassed",
    CompressErrors => "leafpress.compress.errors",
    CompressTakenOver => "leafpress.compress.taken.over.by.software",
    VerifyBlocks => "leafpress.verify.blocks",
    VerifyMismatches => "leafpress.verify.mismatches",
    DecompressBlocks => "leafpress.decompress.blocks",
    DecompressStoredBytes => "leafpress.decompress.stored.bytes",
    DecompressRawBytes => "leafpress.decompress.raw.bytes",
    DecompressCorrupt => "leafpress.decompress.corrupt",
    DecompressErrors => "leafpress.decompress.errors",
    DecompressTakenOver => "leafpress.decompress.taken.over.by.software",
    DictionaryTrained => "leafpress.dictionary.trained",
    DictionaryTrainedBytes => "leafpress.dictionary.trained.bytes",
    DictionaryDeclined => "leafpress.dictionary.declined",
    DictionaryReused => "leafpress.dictionary.reused.by.another.file",
    DictionaryOutgrown => "leafpress.dictionary.outgrown",
    DictionaryPrepared => "leafpress.dictionary.prepared",
    DictionaryShared => "leafpress.dictionary.prepared.before",
}

/// Threads that count at once without sharing cache lines.
const SHARDS: usize = 32;

/// One shard's counts, on cache lines of their own.
#[repr(align(128))]
struct Shard([AtomicU64; NAMES.len()]);

static COUNTS: [Shard; SHARDS] = [const { Shard([const { AtomicU64::new(0) }; NAMES.len()]) }; SHARDS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: usize = NEXT.fetch_add(1, Relaxed) % SHARDS;
}

/// Adds to counts.
#[inline]
pub(crate) fn count<const N: usize>(added: [(Ticker, u64); N]) {
    let shard = MINE.try_with(|mine| *mine).unwrap_or(0);
    for (ticker, n) in added {
        COUNTS[shard].0[ticker as usize].fetch_add(n, Relaxed);
    }
}

/// Returns the counts of this process, summed over databases: a line `name COUNT : n` for each ticker, then the counts
/// of each engine that was used. Names may be added; they do not change.
pub fn statistics_text() -> String {
    let mut text = String::new();
    let mut line = |name: &str, n: u64| {
        let _ = writeln!(text, "{name} COUNT : {n}");
    };
    for (at, name) in NAMES.iter().enumerate() {
        line(name, COUNTS.iter().map(|shard| shard.0[at].load(Relaxed)).sum());
    }
    for engine in engines::opened() {
        let counters = engine.counters();
        if counters.compress_calls + counters.decompress_calls == 0 {
            continue;
        }
        let name = format!("leafpress.engine.{}", engine.codec());
        for (ticker, n) in [
            ("compress.calls", counters.compress_calls),
            ("compress.micros", counters.compress_ns / 1000),
            ("decompress.calls", counters.decompress_calls),
            ("decompress.micros", counters.decompress_ns / 1000),
            ("errors", counters.errors),
            ("hardware.calls", counters.hardware_calls),
            ("software.calls", counters.software_calls),
            ("software.fallbacks", counters.fallbacks),
        ] {
            line(&format!("{name}.{ticker}"), n);
        }
    }
    text
}
