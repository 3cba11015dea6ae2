//! The flags of `leafpress eval`, and how they change a configuration.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use leafpress::codec::{JobCache, StreamCache};
use leafpress_console::words::size;
use leafpress_lab::EvalConfig;
use leafpress_lab::core::corpus::Source;

use super::words::{
    background_family, dictionary, flag, job_cache, layout, list, message, percentage, shard_by_range, stream_cache,
    temperature_rule,
};
use crate::failure::Failure;

/// Arguments of `leafpress eval`. A list is separated by commas or spaces, and the run is the cross product of all
/// lists.
#[derive(Debug, Default, Args)]
#[command(
    args_override_self = true,
    allow_negative_numbers = true,
    after_help = "The variables of the ZipCache evaluation (THREADS_LIST, BTREE_*, RUN_IAA, ...) set the same things; flags win. \
                        See docs/commands/eval.md."
)]
pub struct EvalArgs {
    /// File, directory, zip, gzip or zstd file (opened), bundled sample, or synthetic:SHARE (compressible share, 0 to
    /// 1) [default: the bundled sample `packages`]
    #[arg(long, value_name = "DATA", help_heading = "Data")]
    data: Option<OsString>,
    /// Use an archive's own, compressed bytes instead of opening it
    #[arg(long, help_heading = "Data")]
    raw: bool,
    /// How the data is cut into values: fixed:BYTES, lines, length-prefixed [default: fixed:VALUE_BYTES]
    #[arg(long, value_name = "CUT", help_heading = "Data")]
    cut: Option<String>,
    /// Bytes of a value cut at a fixed size [default: 128]
    #[arg(long, value_name = "BYTES", help_heading = "Data", value_parser = size)]
    value_bytes: Option<usize>,
    /// Use the data's own records, key and value: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT", help_heading = "Data")]
    records: Option<String>,

    /// Codecs, as in none,lz4,zstd:1,deflate:1,zlib:1,qpl:software:fixed (see `leafpress codecs`)
    #[arg(short = 'c', long, value_name = "LIST", num_args = 1.., help_heading = "Work")]
    codecs: Option<Vec<String>>,
    /// read_only, write_only, read_write_8_2, read_write_5_5, read_write_2_8, scan, crud, hotset [default: the first
    /// five]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Work")]
    workloads: Option<Vec<String>>,
    /// Numbers of worker threads [default: 1 and the number of cores]
    #[arg(short = 't', long, value_name = "LIST", num_args = 1.., help_heading = "Work")]
    threads: Option<Vec<String>>,
    /// Length of each timed run [default: 5]
    #[arg(short = 'd', long, help_heading = "Work")]
    seconds: Option<f64>,
    /// Run the workload this long before the timed window [default: 0]
    #[arg(long, value_name = "SECONDS", help_heading = "Work")]
    warmup_seconds: Option<f64>,
    /// Number of keys [default: 50000; with --records all there are]
    #[arg(long, value_name = "N", help_heading = "Work")]
    keys: Option<u64>,
    /// Shape of the keys: dense (the best case), scattered, text, uuid, path [default: dense]
    #[arg(long, value_name = "SHAPE", help_heading = "Work")]
    key_shape: Option<String>,
    /// Bytes of a dense or scattered key [default: 8]
    #[arg(long, value_name = "BYTES", help_heading = "Work", value_parser = size)]
    key_bytes: Option<usize>,
    /// Order in which keys are loaded: sequential or random [default: sequential]
    #[arg(long, alias = "key-order", value_name = "ORDER", help_heading = "Work")]
    load_order: Option<String>,
    // Not a documentation comment: rustdoc takes the brackets for links.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        help_heading = "Work",
        help = "Distribution of keys: uniform, zipfian[:THETA], self-similar[:H], latest[:THETA], \
                hotset[:KEYS_PCT:OPERATIONS_PCT] [default: uniform]"
    )]
    distribution: Option<String>,
    /// Operations after which the hot set moves, in the workload hotset [default: 1000000]
    #[arg(long, value_name = "OPERATIONS", help_heading = "Work")]
    shift_at: Option<u64>,
    /// Records per scan [default: 100]
    #[arg(long, value_name = "N", help_heading = "Work")]
    scan_records: Option<usize>,
    /// Point reads per call to the tree; the call's latency counts for each [default: 1]
    #[arg(long, value_name = "N", help_heading = "Work")]
    reads_per_call: Option<usize>,
    /// Seed of every random choice [default: 1]
    #[arg(long, help_heading = "Work")]
    seed: Option<u64>,

    /// Shards of the tree [default: 1]
    #[arg(long, value_name = "N", help_heading = "Tree")]
    shards: Option<usize>,
    /// How keys are assigned to shards: hash or range [default: hash]
    #[arg(long, value_name = "CHOICE", help_heading = "Tree")]
    shard_by: Option<String>,
    /// Bytes of a landing buffer, or auto: as the records need [default: auto]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Tree")]
    landing_bytes: Option<Vec<String>>,
    /// User bytes at which a leaf splits [default: the tree chooses]
    #[arg(long, value_name = "BYTES", help_heading = "Tree", value_parser = size)]
    leaf_bytes: Option<usize>,
    /// Raw bytes at which a frame is closed; 1 makes every record a frame [default: the tree chooses]
    #[arg(long, value_name = "BYTES", help_heading = "Tree", value_parser = size)]
    frame_bytes: Option<usize>,
    /// ordered, or hashed:N for N sub-pages per leaf [default: ordered]
    #[arg(long, help_heading = "Tree")]
    layout: Option<String>,
    /// How the codec auto detects cold leaves: costs[:SLOWDOWN_PCT], deviation[:FACTOR] (the ZipCache paper's) or
    /// deviation:auto[:SLOWDOWN_PCT] [default: costs:50]
    #[arg(long, value_name = "RULE", help_heading = "Tree")]
    temperature: Option<String>,
    /// Trained dictionary: auto or off [default: auto]
    #[arg(long, value_name = "CHOICE", help_heading = "Tree")]
    dictionary: Option<String>,
    /// Maximum size of a trained dictionary
    #[arg(long, value_name = "BYTES", help_heading = "Tree", value_parser = size)]
    dictionary_bytes: Option<usize>,

    /// Background compaction: off, on, or both to sweep [default: off]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Background compaction")]
    background: Option<Vec<String>>,
    /// Background compaction threads [default: 1]
    #[arg(long, value_name = "N", help_heading = "Background compaction")]
    background_threads: Option<usize>,
    /// Fill percentage of a landing buffer at which its leaf is queued for background compaction [default: 75]
    #[arg(long, value_name = "PCT", help_heading = "Background compaction")]
    watermark_pct: Option<String>,
    /// Restrict background compaction to a codec family: all, none, lz4, zstd, deflate, zlib, qpl [default: all]
    #[arg(long, value_name = "FAMILY", help_heading = "Background compaction")]
    background_codec: Option<String>,

    /// Cache QPL jobs: thread or none [default: thread]
    #[arg(long, value_name = "CHOICE", help_heading = "Accelerators")]
    job_cache: Option<String>,
    /// Cache zlib streams: thread or none [default: thread]
    #[arg(long, value_name = "CHOICE", help_heading = "Accelerators")]
    stream_cache: Option<String>,
    /// Also run QPL on an IAA device
    #[arg(long, help_heading = "Accelerators")]
    iaa: bool,
    /// Codecs of the IAA runs [default: qpl]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Accelerators")]
    iaa_codecs: Option<Vec<String>>,
    /// Include dynamic Huffman tables in the IAA runs: on or off [default: on]
    #[arg(long, value_name = "ON|OFF", num_args = 0..=1, default_missing_value = "on", help_heading = "Accelerators")]
    qpl_dynamic: Option<String>,
    /// Also run zlib under Intel zlib-accel
    #[arg(long, help_heading = "Accelerators")]
    zlib_accel: bool,
    /// Path of libzlib-accel.so; implies --zlib-accel
    #[arg(long, value_name = "PATH", help_heading = "Accelerators")]
    zlib_accel_so: Option<PathBuf>,
    /// Codecs of the zlib-accel runs [default: zlib_accel, which is zlib:1]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Accelerators")]
    zlib_accel_codecs: Option<Vec<String>>,

    /// Record latencies: on or off [default: on]
    #[arg(long, value_name = "ON|OFF", help_heading = "Measurement")]
    measure_latency: Option<String>,
    /// Latency samples per thread, spread over the whole run; 0 records every operation [default: 100000]
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    latency_samples_per_thread: Option<usize>,
    /// Record CPU seconds, memory and context switches: on or off [default: on]
    #[arg(long, value_name = "ON|OFF", help_heading = "Measurement")]
    collect_cpu: Option<String>,

    /// Directory for summary.tsv, results.json, report.html and logs [default: leafpress-results/eval/TIMESTAMP]
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

impl EvalArgs {
    /// Applies every given flag to `config`, and returns their options.
    pub fn apply(&self, config: &mut EvalConfig) -> Result<Vec<&'static str>, Failure> {
        let mut given = Vec::new();
        let mut set = Setter { given: &mut given };
        if let Some(word) = &self.data {
            let data = Source::named(word);
            let data =
                data.map_err(|e| Failure::bad_input(message("--data", &word.to_string_lossy(), &e.to_string())))?;
            set.value("data", Some(data), &mut config.data);
        }
        if self.raw {
            config.raw = true;
        }
        if let Some(cut) = &self.cut {
            config.cut = Some(parse("cut", cut)?);
        }
        set.value("value-bytes", self.value_bytes, &mut config.value_bytes);
        if let Some(records) = &self.records {
            config.records = Some(parse("records", records)?);
        }
        set.parsed("key-shape", self.key_shape.as_ref(), &mut config.key_shape)?;
        set.words("codecs", self.codecs.as_ref(), &mut config.codecs)?;
        set.list("workloads", self.workloads.as_ref(), &mut config.workloads)?;
        set.list("threads", self.threads.as_ref(), &mut config.threads)?;
        set.value("seconds", self.seconds, &mut config.seconds);
        set.value("warmup-seconds", self.warmup_seconds, &mut config.warmup_seconds);
        set.value("keys", self.keys, &mut config.keys);
        set.value("key-bytes", self.key_bytes, &mut config.key_bytes);
        set.parsed("load-order", self.load_order.as_ref(), &mut config.load_order)?;
        set.parsed("distribution", self.distribution.as_ref(), &mut config.distribution)?;
        set.value("shift-at", self.shift_at, &mut config.shift_at);
        set.value("scan-records", self.scan_records, &mut config.scan_records);
        set.value("reads-per-call", self.reads_per_call, &mut config.reads_per_call);
        set.with(
            "temperature",
            self.temperature.as_ref(),
            temperature_rule,
            &mut config.temperature,
        )?;
        set.value("seed", self.seed, &mut config.seed);
        set.value("shards", self.shards, &mut config.shards);
        set.with(
            "shard-by",
            self.shard_by.as_ref(),
            shard_by_range,
            &mut config.shard_by_range,
        )?;
        set.list("landing-bytes", self.landing_bytes.as_ref(), &mut config.landing_bytes)?;
        set.value("leaf-bytes", self.leaf_bytes.map(Some), &mut config.leaf_bytes);
        set.value("frame-bytes", self.frame_bytes.map(Some), &mut config.frame_bytes);
        set.with("layout", self.layout.as_ref(), layout, &mut config.hashed_sub_pages)?;
        set.with(
            "dictionary",
            self.dictionary.as_ref(),
            dictionary,
            &mut config.dictionary,
        )?;
        set.value(
            "dictionary-bytes",
            self.dictionary_bytes.map(Some),
            &mut config.dictionary_bytes,
        );
        if let Some(words) = &self.background {
            set.given.push("background");
            config.background = list(words)
                .iter()
                .map(|word| at("background", word, flag(word)))
                .collect::<Result<_, _>>()?;
        }
        set.value(
            "background-threads",
            self.background_threads,
            &mut config.background_threads,
        );
        set.with(
            "watermark-pct",
            self.watermark_pct.as_ref(),
            percentage,
            &mut config.watermark_pct,
        )?;
        set.with(
            "background-codec",
            self.background_codec.as_ref(),
            |word| Ok(background_family(word)),
            &mut config.background_codec,
        )?;
        self.apply_accelerators(config, &mut set)?;
        set.with(
            "measure-latency",
            self.measure_latency.as_ref(),
            flag,
            &mut config.measure_latency,
        )?;
        set.value(
            "latency-samples-per-thread",
            self.latency_samples_per_thread,
            &mut config.latency_samples_per_thread,
        );
        set.with("collect-cpu", self.collect_cpu.as_ref(), flag, &mut config.collect_cpu)?;
        Ok(given)
    }

    fn apply_accelerators(&self, config: &mut EvalConfig, set: &mut Setter<'_>) -> Result<(), Failure> {
        set.with::<JobCache>("job-cache", self.job_cache.as_ref(), job_cache, &mut config.job_cache)?;
        set.with::<StreamCache>(
            "stream-cache",
            self.stream_cache.as_ref(),
            stream_cache,
            &mut config.stream_cache,
        )?;
        config.iaa |= self.iaa;
        set.words("iaa-codecs", self.iaa_codecs.as_ref(), &mut config.iaa_codecs)?;
        set.with("qpl-dynamic", self.qpl_dynamic.as_ref(), flag, &mut config.qpl_dynamic)?;
        config.zlib_accel |= self.zlib_accel || self.zlib_accel_so.is_some();
        set.value(
            "zlib-accel-so",
            self.zlib_accel_so.clone().map(Some),
            &mut config.zlib_accel_so,
        );
        set.words(
            "zlib-accel-codecs",
            self.zlib_accel_codecs.as_ref(),
            &mut config.zlib_accel_codecs,
        )
    }
}

/// Sets fields from flags and records which flags were given.
struct Setter<'g> {
    given: &'g mut Vec<&'static str>,
}

impl Setter<'_> {
    fn value<T>(&mut self, option: &'static str, value: Option<T>, field: &mut T) {
        if let Some(value) = value {
            self.given.push(option);
            *field = value;
        }
    }

    fn with<T>(
        &mut self,
        option: &'static str,
        word: Option<&String>,
        parse: impl Fn(&str) -> Result<T, String>,
        field: &mut T,
    ) -> Result<(), Failure> {
        let value = word.map(|word| at(option, word, parse(word))).transpose()?;
        self.value(option, value, field);
        Ok(())
    }

    fn parsed<T>(&mut self, option: &'static str, word: Option<&String>, field: &mut T) -> Result<(), Failure>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let value = word.map(|word| parse(option, word)).transpose()?;
        self.value(option, value, field);
        Ok(())
    }

    fn list<T>(&mut self, option: &'static str, words: Option<&Vec<String>>, field: &mut Vec<T>) -> Result<(), Failure>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(words) = words else { return Ok(()) };
        let values = list(words)
            .iter()
            .map(|word| parse(option, word))
            .collect::<Result<Vec<T>, _>>()?;
        if values.is_empty() {
            return Err(Failure::bad_input(format!("--{option}: the list is empty")));
        }
        self.value(option, Some(values), field);
        Ok(())
    }

    fn words(
        &mut self,
        option: &'static str,
        words: Option<&Vec<String>>,
        field: &mut Vec<String>,
    ) -> Result<(), Failure> {
        self.list(option, words, field)
    }
}

fn parse<T>(option: &'static str, word: &str) -> Result<T, Failure>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    word.parse::<T>()
        .map_err(|e| Failure::bad_input(super::words::message(&format!("--{option}"), word, &e.to_string())))
}

fn at<T>(option: &'static str, word: &str, result: Result<T, String>) -> Result<T, Failure> {
    result.map_err(|reason| Failure::bad_input(super::words::message(&format!("--{option}"), word, &reason)))
}
