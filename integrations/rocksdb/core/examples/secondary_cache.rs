//! Compares block caches of the same total memory on one database: alone, with RocksDB's CompressedSecondaryCache, and
//! with Leafpress's secondary cache. All run alternately in this process; the figures are medians over the rounds.
//!
//! ```text
//! cargo run --release --workspace --example secondary_cache -- --values calgary.zip --memory 32 --seconds 4 --rounds 5
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use leafpress_lab::core::corpus::{Corpus, Cut};
use leafpress_lab::core::keys::Chooser;
use leafpress_rocksdb::{BlockCache, BlockCacheOptions, PrimaryCache, secondary_cache_statistics};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use rocksdb::{DB, Options, WriteBatch};

/// SplitMix64's finaliser.
fn mix(id: u64) -> u64 {
    let z = id.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

type Outcome<T> = Result<T, Box<dyn Error>>;

const KEY_BYTES: usize = 16;
/// One read in this many is compared with the expected value.
const CHECK_ONE_IN: u64 = 64;

const HELP: &str = "\
options, with their defaults:
  --values SAMPLE|FILE|ZIP  packages   what values are cut from, piece after piece
  --scattered                          from random places instead
  --memory MIB              64         total memory of each cache
  --times N                 4          ratio of data to memory
  --block BYTES             4096       block size
  --value BYTES             256        value length
  --primary-pct PCT         25         of the memory, where there is a secondary cache
  --primary lru|hyper_clock            the block cache; lru
  --compression TYPE        kNoCompression   the database's
  --distribution LAW        zipfian:0.99
  --threads N               2
  --warmup SECONDS          10
  --seconds SECONDS         4          of a round
  --rounds N                5
  --buffered                           reads go through the system's page cache
  --caches A,B,..           none,rocksdb,leafpress:codec=lz4,leafpress:codec=zstd:1   what is behind the block cache; \
  further
                                       options of a leafpress cache with `+`: leafpress:codec=lz4+dictionary=off
  --directory DIR                      where the database is; a temporary one";

struct Arguments(BTreeMap<String, String>);

impl Arguments {
    fn parse() -> Outcome<Self> {
        let mut found = BTreeMap::new();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                return Err(format!("{word}: not an option\n{HELP}").into());
            };
            if name == "help" {
                return Err(HELP.into());
            }
            let known = HELP
                .lines()
                .any(|line| line.trim_start().split(' ').next() == Some(&word));
            if !known {
                return Err(format!("--{name}: no such option\n{HELP}").into());
            }
            let value = if matches!(name, "buffered" | "scattered") {
                String::new()
            } else {
                words.next().ok_or(format!("--{name} wants a value"))?
            };
            found.insert(name.to_owned(), value);
        }
        Ok(Self(found))
    }

    fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).cloned().unwrap_or_else(|| default.to_owned())
    }

    fn number<T: std::str::FromStr>(&self, name: &str, default: T) -> Outcome<T> {
        match self.0.get(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| format!("--{name}: {text} is not a number").into()),
        }
    }
}

/// The data: any key's value can be computed without the database.
struct Data {
    text: Vec<u8>,
    value_bytes: usize,
    keys: u64,
    /// Whether values are from random offsets instead of consecutive ones.
    scattered: bool,
}

impl Data {
    fn key(id: u64) -> [u8; KEY_BYTES] {
        let mut key = [0; KEY_BYTES];
        key[8..].copy_from_slice(&id.to_be_bytes());
        key
    }

    fn value(&self, id: u64) -> &[u8] {
        let places = (self.text.len() - self.value_bytes) as u64;
        let at = if self.scattered {
            mix(id) % places
        } else {
            id * self.value_bytes as u64 % places
        };
        &self.text[at as usize..][..self.value_bytes]
    }
}

/// A database over one cache.
struct Arm {
    name: String,
    db: DB,
    cache: BlockCache,
    throughputs: Vec<f64>,
    /// Results of all rounds.
    reads: f64,
    cpu_seconds: f64,
    latencies: Vec<(f64, f64)>,
    statistics_options: Options,
}

struct Round {
    cpu_seconds: f64,
    reads: f64,
    reads_per_second: f64,
    p50_us: f64,
    p99_us: f64,
}

fn run(arm: &Arm, data: &Data, chooser: &Chooser, threads: u64, seconds: f64, seed: u64) -> Outcome<Round> {
    let (stop, wrong) = (AtomicBool::new(false), AtomicU64::new(0));
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let mut all: Vec<u32> = Vec::new();
    std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (stop, wrong) = (&stop, &wrong);
            move || {
                let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed * 1000 + thread);
                let mut latencies = Vec::new();
                while !stop.load(Relaxed) {
                    let id = chooser.read(&mut rng);
                    let begun = Instant::now();
                    let value = arm.db.get_pinned(Data::key(id));
                    latencies.push(u32::try_from(begun.elapsed().as_nanos()).unwrap_or(u32::MAX));
                    let is_due = (latencies.len() as u64).is_multiple_of(CHECK_ONE_IN);
                    let is_right = matches!(&value, Ok(Some(value)) if !is_due || **value == *data.value(id));
                    wrong.fetch_add(u64::from(!is_right), Relaxed);
                }
                latencies
            }
        };
        let workers: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Relaxed);
        for worker in workers {
            all.extend(worker.join().unwrap_or_default());
        }
    });
    let (elapsed, used) = (start.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    if wrong.load(Relaxed) > 0 {
        return Err(format!("{}: {} reads were wrong", arm.name, wrong.load(Relaxed)).into());
    }
    let reads_per_second = all.len() as f64 / elapsed;
    all.sort_unstable();
    let at = |pct: usize| all.get(all.len() * pct / 100).map_or(0.0, |ns| f64::from(*ns) / 1000.0);
    Ok(Round {
        cpu_seconds: used,
        reads: all.len() as f64,
        reads_per_second,
        p50_us: at(50),
        p99_us: at(99),
    })
}

/// Returns the CPU time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn load(path: &std::path::Path, table: &str, compression: &str, data: &Data) -> Outcome<u64> {
    let text = format!(
        "compression={compression};compression_per_level=;bottommost_compression=kDisableCompressionOption;{table}"
    );
    let mut options = Options::default().get_options_from_string(text)?;
    options.create_if_missing(true);
    options.set_write_buffer_size(32 << 20);
    let db = DB::open(&options, path)?;
    let mut id = 0;
    while id < data.keys {
        let mut batch = WriteBatch::default();
        for id in id..(id + 1000).min(data.keys) {
            batch.put(Data::key(id), data.value(id));
        }
        db.write(batch)?;
        id += 1000;
    }
    db.flush()?;
    db.compact_range::<&[u8], &[u8]>(None, None);
    drop(db);
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "sst") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

fn ticker(options: &Options, name: &str) -> f64 {
    let text = options.get_statistics().unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} COUNT : ")));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
        .unwrap_or(0.0)
}

fn main() {
    if let Err(error) = compare() {
        eprintln!("{error}");
        std::process::exit(2);
    }
}

#[allow(clippy::too_many_lines, reason = "a program from top to bottom")]
fn compare() -> Outcome<()> {
    let arguments = Arguments::parse()?;
    let memory = arguments.number("memory", 64_usize)? << 20;
    let times: f64 = arguments.number("times", 4.0)?;
    let block: usize = arguments.number("block", 4096)?;
    let value_bytes: usize = arguments.number("value", 256)?;
    let primary_pct: usize = arguments.number("primary-pct", 25)?;
    let (threads, rounds): (u64, u64) = (arguments.number("threads", 2)?, arguments.number("rounds", 5)?);
    let (warmup, seconds): (f64, f64) = (arguments.number("warmup", 10.0)?, arguments.number("seconds", 4.0)?);
    let corpus = Corpus::load(
        &arguments.text("values", "packages").parse()?,
        Cut::Fixed(4096),
        false,
        1,
    )?;
    let text: Vec<u8> = (0..corpus.count()).flat_map(|at| corpus.get(at).to_vec()).collect();
    let keys = (memory as f64 * times / (KEY_BYTES + value_bytes) as f64) as u64;
    let scattered = arguments.0.contains_key("scattered");
    let data = Data {
        text,
        value_bytes,
        keys,
        scattered,
    };
    let chooser = Chooser::new(arguments.text("distribution", "zipfian:0.99").parse()?, keys, 7);

    leafpress_rocksdb::register();
    let temporary = tempfile::tempdir()?;
    let path = arguments
        .0
        .get("directory")
        .map_or(temporary.path().join("db"), PathBuf::from);
    let table =
        format!("block_size={block};format_version=6;index_type=kBinarySearch;filter_policy=bloomfilter:10:false");
    let compression = arguments.text("compression", "kNoCompression");
    let plain = format!("block_based_table_factory={{{table}}}");
    let sst_bytes = load(&path, &plain, &compression, &data)?;
    println!(
        "{keys} keys of {KEY_BYTES} and {value_bytes} bytes, blocks of {block}, {:.0} MiB of files ({compression}), \
         memory {} MiB",
        sst_bytes as f64 / 1048576.0,
        memory >> 20
    );

    let primary = match arguments.text("primary", "lru").as_str() {
        "lru" => PrimaryCache::Lru,
        "hyper_clock" => PrimaryCache::HyperClock,
        other => return Err(format!("--primary: {other} is neither lru nor hyper_clock").into()),
    };
    let caches = arguments.text("caches", "none,rocksdb,leafpress:codec=lz4,leafpress:codec=zstd:1");
    let mut arms = Vec::new();
    for name in caches.split(',') {
        let mut options = BlockCacheOptions::new(memory * primary_pct / 100);
        let rest = memory - options.capacity_bytes;
        options.primary = primary;
        options.secondary = match name.split_once(':').unwrap_or((name, "")) {
            ("none", _) => {
                options.capacity_bytes = memory;
                None
            }
            ("rocksdb", "") => Some(format!(
                "compressed_secondary_cache://capacity={rest};compression_type=kLZ4Compression"
            )),
            ("rocksdb", kind) => Some(format!(
                "compressed_secondary_cache://capacity={rest};compression_type={kind}"
            )),
            ("leafpress", further) => Some(format!(
                "leafpress_secondary_cache://capacity={rest};name={};{}",
                arms.len(),
                further.replace('+', ";")
            )),
            _ => return Err(format!("--caches: {name} is none of none, rocksdb, leafpress:...").into()),
        };
        let cache = BlockCache::new(&options)?;
        let mut statistics_options = Options::default().get_options_from_string(cache.table_options(&table))?;
        statistics_options.enable_statistics();
        if !arguments.0.contains_key("buffered") {
            statistics_options.set_use_direct_reads(true);
        }
        let db = DB::open_for_read_only(&statistics_options, &path, false)?;
        arms.push(Arm {
            name: name.to_owned(),
            db,
            cache,
            throughputs: Vec::new(),
            reads: 0.0,
            cpu_seconds: 0.0,
            latencies: Vec::new(),
            statistics_options,
        });
    }
    for arm in &arms {
        run(arm, &data, &chooser, threads, warmup, 1)?;
    }
    let counts = |arm: &Arm| {
        let of = |name: &str| ticker(&arm.statistics_options, name);
        let device = of("rocksdb.last.level.read.count") + of("rocksdb.non.last.level.read.count");
        (of("rocksdb.secondary.cache.hits"), device)
    };
    let before: Vec<_> = arms.iter().map(counts).collect();
    for round in 0..rounds {
        for arm in &mut arms {
            let measured = run(arm, &data, &chooser, threads, seconds, 2 + round)?;
            arm.throughputs.push(measured.reads_per_second);
            arm.reads += measured.reads;
            arm.cpu_seconds += measured.cpu_seconds;
            arm.latencies.push((measured.p50_us, measured.p99_us));
        }
    }
    let of = |name: &str| {
        arms.iter()
            .find(|arm| arm.name == name)
            .map(|arm| median(arm.throughputs.clone()))
    };
    let (alone, compressed) = (of("none"), of("rocksdb"));
    println!(
        "{:<44} {:>10} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "cache", "reads/s", "x alone", "x rocks", "p50 us", "p99 us", "second %", "device %", "CPU us", "primary"
    );
    for (arm, before) in arms.iter().zip(before) {
        let reads = median(arm.throughputs.clone());
        let after = counts(arm);
        let share = |part: fn(&(f64, f64)) -> f64| (part(&after) - part(&before)) / arm.reads * 100.0;
        println!(
            "{:<44} {:>10.0} {:>8.2} {:>8.2} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>7.1} M",
            arm.name,
            reads,
            reads / alone.unwrap_or(f64::NAN),
            reads / compressed.unwrap_or(f64::NAN),
            median(arm.latencies.iter().map(|l| l.0).collect()),
            median(arm.latencies.iter().map(|l| l.1).collect()),
            share(|counts| counts.0),
            share(|counts| counts.1),
            arm.cpu_seconds / arm.reads * 1e6,
            arm.cache.usage_bytes() as f64 / 1048576.0,
        );
    }
    for each in secondary_cache_statistics() {
        let s = each.stats;
        println!(
            "leafpress {}: held {:.1} of {:.1} MiB, {} entries ({} compressed), {:.2} raw bytes a byte held, {:.2} a \
             byte stored; {} hits of {} lookups, {} taken, {} inserted, {} rejected, {} no room, {} evicted, {} \
             corrupt; {} dictionaries, {} KiB; share {:.0}% raw ({} entries, {:.1} MiB), {} raw hits, {} compressed \
             later, {} restored, {} returned, decode {:.1} us, compress {:.1} us, miss {:.1} us, deciding {:.0} ms",
            each.options,
            s.bytes_held as f64 / 1048576.0,
            s.budget_bytes as f64 / 1048576.0,
            s.entries,
            s.compressed_entries,
            s.ratio(),
            s.raw_bytes as f64 / s.stored_bytes.max(1) as f64,
            s.hits,
            s.lookups,
            s.taken,
            s.inserted,
            s.rejected,
            s.no_room,
            s.evicted,
            s.corrupt,
            s.dictionary_versions,
            s.dictionary_bytes >> 10,
            s.raw_share_pct,
            s.kept_raw_entries,
            s.kept_raw_bytes as f64 / 1048576.0,
            s.raw_hits,
            s.compressed_later,
            s.restored,
            s.returned,
            s.decode_ns as f64 / 1000.0,
            s.compress_ns as f64 / 1000.0,
            s.miss_ns as f64 / 1000.0,
            s.deciding_ns as f64 / 1e6
        );
    }
    Ok(())
}
