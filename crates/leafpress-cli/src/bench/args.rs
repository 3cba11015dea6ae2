//! The command line of `leafpress bench`: PiBench's, and what is ours beyond it.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, Args};
use leafpress_lab::LabError;
use leafpress_lab::bench::{
    Builtin, DEFAULT_LATEST_SKEW, Dump, Input, Law, MAX_KEY_BYTES, MAX_OPERATIONS, MAX_RECORDS, MAX_REPEAT,
    MAX_SAMPLING_MS, MAX_SCAN, MAX_SECONDS, MAX_VALUE_BYTES, Mode, Options, Ratios, Ycsb, look_at_records,
};
use leafpress_lab::core::corpus::RecordFormat;
use leafpress_lab::core::keys::KeyShape;
use leafpress_lab::harness::MAX_THREADS;

use super::numbers::{known, number, share, whole};
use crate::failure::Failure;

/// Arguments of `leafpress bench`.
///
/// PiBench writes its long options with underscores; with hyphens they work too.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "PiBench's options")]
pub struct BenchArgs {
    #[arg(value_name = "INPUT", help = INPUT_HELP)]
    positional: Option<String>,
    /// The same as INPUT
    #[arg(long, value_name = "INPUT", conflicts_with = "positional")]
    input: Option<String>,
    /// Number of records to load [default: 1000000]; or take keys and values from --data: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD,
    /// tsv (all its records unless -n says how many)
    #[arg(short = 'n', long, value_name = "N|FORMAT", action = ArgAction::Append, value_parser = records, allow_negative_numbers = true)]
    records: Vec<RecordsWord>,
    /// Number of operations to execute, over all threads
    #[arg(short = 'p', long, default_value_t = 1_000_000, value_parser = whole::<u64>(0, MAX_OPERATIONS), allow_negative_numbers = true)]
    operations: u64,
    /// Number of threads to use
    #[arg(short = 't', long, default_value_t = 1, value_parser = whole::<usize>(1, MAX_THREADS as u64), allow_negative_numbers = true)]
    threads: usize,
    /// Prefix string prepended to every key
    #[arg(
        short = 'f',
        long = "key_prefix",
        alias = "key-prefix",
        default_value = "",
        value_name = "PREFIX",
        hide_default_value = true
    )]
    key_prefix: String,
    /// Size of keys in bytes, without prefix (PiBench's README says 4; PiBench itself takes 8)
    #[arg(
        short = 'k',
        long = "key_size",
        alias = "key-size",
        default_value_t = 8,
        value_name = "BYTES",
        value_parser = whole::<usize>(1, MAX_KEY_BYTES as u64),
        allow_negative_numbers = true
    )]
    key_size: usize,
    /// Size of values in bytes (PiBench's README says 4; PiBench itself takes 8)
    #[arg(
        short = 'v',
        long = "value_size",
        alias = "value-size",
        default_value_t = 8,
        value_name = "BYTES",
        value_parser = whole::<usize>(1, MAX_VALUE_BYTES as u64),
        allow_negative_numbers = true
    )]
    value_size: usize,
    /// Ratio of read operations; all ratios sum to 1 [default: 1]
    #[arg(short = 'r', long = "read_ratio", alias = "read-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    read_ratio: Option<f64>,
    /// Ratio of insert operations [default: 0]
    #[arg(short = 'i', long = "insert_ratio", alias = "insert-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    insert_ratio: Option<f64>,
    /// Ratio of update operations [default: 0]
    #[arg(short = 'u', long = "update_ratio", alias = "update-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    update_ratio: Option<f64>,
    /// Ratio of remove operations [default: 0]
    #[arg(short = 'd', long = "remove_ratio", alias = "remove-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    remove_ratio: Option<f64>,
    /// Ratio of scan operations [default: 0]
    #[arg(short = 's', long = "scan_ratio", alias = "scan-ratio", value_name = "RATIO", value_parser = share(), allow_negative_numbers = true)]
    scan_ratio: Option<f64>,
    /// Number of records of a scan
    #[arg(
        long = "scan_size",
        alias = "scan-size",
        default_value_t = 100,
        value_name = "RECORDS",
        value_parser = whole::<usize>(1, MAX_SCAN as u64),
        allow_negative_numbers = true
    )]
    scan_size: usize,
    /// Sampling window in milliseconds
    #[arg(
        long = "sampling_ms",
        alias = "sampling-ms",
        default_value_t = 1000,
        value_name = "MS",
        value_parser = whole::<u64>(1, MAX_SAMPLING_MS),
        allow_negative_numbers = true
    )]
    sampling_ms: u64,
    /// Key distribution: UNIFORM, SELFSIMILAR, ZIPFIAN, and ours: latest, hotset [default: UNIFORM]
    #[arg(long, value_name = "NAME")]
    distribution: Option<String>,
    /// Skew of the key distribution: over 0 to 0.5 self-similar, 0 to under 1 zipfian and latest [default: 0.2; 0.99 for latest and YCSB]
    #[arg(long, value_name = "SKEW", value_parser = number("over 0 to 0.5 self-similar, 0 to under 1 zipfian and latest"), allow_negative_numbers = true)]
    skew: Option<f64>,
    /// Seed of every random choice
    #[arg(long, default_value_t = 1729, value_parser = whole::<u64>(0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// What ends the run: operation or time [default: operation]
    #[arg(short = 'm', long, value_name = "MODE", ignore_case = true, value_parser = ["operation", "time"])]
    mode: Option<String>,
    /// Length of the run in seconds, in time mode [default: 20]
    #[arg(long, value_name = "SECONDS", value_parser = number(format!("more than 0 and at most {MAX_SECONDS}")), allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Read hardware metrics (by perf events); --pcm=false turns them off [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    pcm: Option<bool>,
    /// Path of a persistent pool, for the wrapper
    #[arg(
        long = "pool_path",
        alias = "pool-path",
        default_value = "",
        value_name = "PATH",
        hide_default_value = true
    )]
    pool_path: String,
    /// Size of a persistent pool in bytes, for the wrapper
    #[arg(long = "pool_size", alias = "pool-size", default_value_t = 0, value_name = "BYTES", value_parser = whole::<u64>(0, u64::MAX), allow_negative_numbers = true)]
    pool_size: u64,
    /// Skip the load: the pool has the records
    #[arg(long = "skip_load", alias = "skip-load", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set)]
    skip_load: Option<bool>,
    /// Share of operations whose latency is measured, 0 to 1
    #[arg(
        long = "latency_sampling",
        alias = "latency-sampling",
        default_value_t = 0.0,
        value_name = "SHARE",
        value_parser = share(),
        allow_negative_numbers = true
    )]
    latency_sampling: f64,
    /// Concurrency control protocol, for wrappers of the fork: 0 Mono, 1 ORWC, 2 OLC
    #[arg(short = 'c', long, value_name = "0|1|2", value_parser = known::<u8>("0, 1 or 2"), allow_negative_numbers = true)]
    protocol: Option<u8>,
    /// Clock, for wrappers of the fork: 0 optimistic, 1 sync, 3 free
    #[arg(short = 'x', long, value_name = "0|1|3", value_parser = known::<u8>("0, 1 or 3"), allow_negative_numbers = true)]
    clock: Option<u8>,
    /// Garbage collector, for wrappers of the fork: 0 off, 1 on
    #[arg(
        short = 'g',
        long = "garbage_collector",
        alias = "garbage-collector",
        value_name = "0|1",
        value_parser = known::<u8>("0 or 1"),
        allow_negative_numbers = true
    )]
    garbage_collector: Option<u8>,

    /// With --records FORMAT: file, directory, archive or bundled sample that has the records [default: packages]
    #[arg(long, value_name = "DATA", help_heading = "Ours")]
    data: Option<String>,
    /// What keys look like: dense (the best case), scattered, text, uuid, path [default: PiBench's, which are scattered]
    #[arg(long = "key_shape", alias = "key-shape", value_name = "SHAPE", help_heading = "Ours")]
    key_shape: Option<String>,
    /// Order in which dense keys and records are loaded: random or sequential [default: random]
    #[arg(
        long = "load_order",
        alias = "load-order",
        value_name = "ORDER",
        help_heading = "Ours"
    )]
    load_order: Option<String>,
    /// Mix and key choice of a YCSB workload: A to F; several (A,C,E or A..F) make a table
    #[arg(long, value_name = "WORKLOAD", help_heading = "Ours")]
    ycsb: Option<String>,
    /// Open loop: this many operations per second are intended, and latency counts from the intended start
    #[arg(long, value_name = "OPS", help_heading = "Ours", value_parser = number("more than 0 and at most 1e9"), allow_negative_numbers = true)]
    rate: Option<f64>,
    /// Of --distribution hotset: percent of keys that are hot, percent of operations that go to them [default: 20,80]
    #[arg(long, value_name = "KEYS,OPERATIONS", help_heading = "Ours")]
    hotset: Option<String>,
    /// Where values come from: pool, compressible:ETA (the share ETA is compressible), corpus:PATH (cuts of a file, directory,
    /// archive, or bundled sample)
    #[arg(
        long = "value_source",
        alias = "value-source",
        default_value = "pool",
        value_name = "SOURCE",
        help_heading = "Ours"
    )]
    value_source: String,
    /// The same work for so long before the run
    #[arg(
        long,
        default_value_t = 0.0,
        value_name = "SECONDS",
        help_heading = "Ours",
        value_parser = number(format!("between 0 and {MAX_SECONDS}")),
        allow_negative_numbers = true
    )]
    warmup: f64,
    /// Pin threads: compact, spread or none
    #[arg(long, default_value = "none", value_name = "HOW", help_heading = "Ours")]
    pin: String,
    /// Do it all so many times; the report is of the median, with the spread
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Ours", value_parser = whole::<usize>(1, MAX_REPEAT as u64), allow_negative_numbers = true)]
    repeat: usize,
    /// Options of our tree: leaf_bytes=, frame_bytes=, landing_bytes=, shards=, background_threads=, watermark_pct=, dictionary=0|1
    #[arg(
        long,
        value_name = "KEY=VALUE,...",
        default_value = "",
        help_heading = "Ours",
        hide_default_value = true
    )]
    tree: String,
    /// Several indexes in turn, each in a process of its own, and one table
    #[arg(long, value_name = "INPUT", num_args = 1.., help_heading = "Ours", conflicts_with_all = ["positional", "input"])]
    compare: Vec<String>,
    /// Write everything as JSON
    #[arg(long, value_name = "FILE", help_heading = "Ours")]
    pub json: Option<PathBuf>,
    /// Write a page with charts
    #[arg(long, value_name = "FILE", help_heading = "Ours")]
    pub html: Option<PathBuf>,
}

const INPUT_HELP: &str = "\
Path of a shared library written for PiBench (./NAME.so), or a built-in index: leafpress[:CODEC] btreemap skiplist treeindex \
masstree hashmap dummy";

const AFTER_HELP: &str = "\
The report on standard output has PiBench's layout; what PiBench does not have comes after it. docs/bench.md says how the two differ.

  leafpress bench leafpress:zstd:1 -n 1000000 -p 1000000 -r 0.5 -u 0.5 --latency_sampling 1
  leafpress bench ./libstlmap.so -t 2 -r 0.95 -i 0.05
  leafpress bench --compare leafpress:none leafpress:lz4 btreemap masstree --ycsb A,C,E --html compare.html";

/// What is to be run.
#[derive(Debug)]
pub enum Plan {
    /// One index, one workload: PiBench's report.
    One(Box<Options>),
    /// Several of either: a table.
    Several(Vec<Options>),
}

impl BenchArgs {
    /// The runs that the arguments ask for, checked.
    pub fn plan(&self) -> Result<Plan, Failure> {
        self.runs().map_err(|e| bad_input(&e))
    }

    fn runs(&self) -> Result<Plan, LabError> {
        let inputs: Vec<Input> = if self.compare.is_empty() {
            let input = self.positional.as_deref().or(self.input.as_deref());
            let input = input
                .ok_or_else(|| option_error("input", "none is given: name an index, or several with --compare"))?;
            vec![input.parse()?]
        } else {
            let words = self.compare.iter().map(String::as_str);
            words.map(str::parse).collect::<Result<_, _>>()?
        };
        let workloads = match self.ycsb.as_deref().map(Ycsb::list).transpose()? {
            Some(workloads) => workloads.into_iter().map(Some).collect(),
            None => vec![None],
        };
        let mut runs = Vec::new();
        for workload in &workloads {
            for input in &inputs {
                let options = self.options(input.clone(), *workload)?;
                if runs.contains(&options) {
                    return Err(option_error("compare", format!("{input} is there twice")));
                }
                runs.push(options);
            }
        }
        if let (true, [_]) = (self.compare.is_empty(), runs.as_slice()) {
            return Ok(Plan::One(Box::new(runs.remove(0))));
        }
        Ok(Plan::Several(runs))
    }

    fn options(&self, input: Input, workload: Option<Ycsb>) -> Result<Options, LabError> {
        let mut options = Options::new(input);
        options.records = self.count().unwrap_or(options.records);
        options.operations = self.operations;
        options.threads = self.threads;
        options.key_prefix.clone_from(&self.key_prefix);
        options.key_size = self.key_size;
        options.value_size = self.value_size;
        options.scan_size = self.scan_size;
        options.sampling_ms = self.sampling_ms;
        options.seed = self.seed;
        options.hardware = self.pcm.unwrap_or(true);
        options.pool_path.clone_from(&self.pool_path);
        options.pool_size = self.pool_size;
        options.skip_load = self.skip_load.unwrap_or(false);
        options.latency_sampling = self.latency_sampling;
        options.protocol = self.protocol;
        options.clock = self.clock;
        options.garbage_collector = self.garbage_collector;
        options.rate = self.rate;
        options.value_source = self.value_source.parse()?;
        options.warmup_seconds = self.warmup;
        options.pin = self.pin.parse()?;
        options.repeat = self.repeat;
        options.tree = self.tree.parse()?;
        if self
            .mode
            .as_deref()
            .is_some_and(|mode| mode.eq_ignore_ascii_case("time"))
        {
            options.mode = Mode::Time;
        }
        options.seconds = self.seconds.unwrap_or(options.seconds);
        self.set_mix(&mut options, workload)?;
        self.set_key_choice(&mut options, workload)?;
        self.set_keys(&mut options)?;
        options.validate()?;
        Ok(options)
    }

    /// How many records there are to be, if that was told.
    fn count(&self) -> Option<u64> {
        let mut counts = self.records.iter().filter_map(|word| match word {
            RecordsWord::Count(count) => Some(*count),
            RecordsWord::Format(_) => None,
        });
        counts.next_back()
    }

    fn set_keys(&self, options: &mut Options) -> Result<(), LabError> {
        if let Some(order) = &self.load_order {
            options.load_order = order.parse().map_err(|e| underscored(e, "load_order"))?;
        }
        if let Some(shape) = &self.key_shape {
            let shape: KeyShape = shape.parse().map_err(|e| underscored(e, "key_shape"))?;
            if !shape.has_key_bytes() && self.key_size != Options::DEFAULT_KEY_SIZE {
                return Err(option_error(
                    "key_size",
                    format!("{shape} keys have lengths of their own: leave it out, or use dense or scattered keys"),
                ));
            }
            options.set_key_shape(shape);
        }
        let mut formats = self.records.iter().filter_map(|word| match word {
            RecordsWord::Format(format) => Some(format),
            RecordsWord::Count(_) => None,
        });
        let Some(format) = formats.next_back() else {
            if self.data.is_some() {
                return Err(option_error(
                    "data",
                    "goes with --records FORMAT; values alone come from --value_source",
                ));
            }
            return Ok(());
        };
        for (option, given) in [
            ("key_size", self.key_size != Options::DEFAULT_KEY_SIZE),
            ("value_size", self.value_size != Options::DEFAULT_VALUE_SIZE),
            ("value_source", self.value_source != "pool"),
        ] {
            if given {
                return Err(option_error(
                    option,
                    format!("keys and values are the records' own: leave it out with --records {format}"),
                ));
            }
        }
        options.dump = Some(Dump {
            data: self.data.as_deref().unwrap_or("packages").parse()?,
            format: format.clone(),
            left_out: None,
        });
        look_at_records(options, self.count().is_none())
    }

    fn set_mix(&self, options: &mut Options, workload: Option<Ycsb>) -> Result<(), LabError> {
        let given = [
            self.read_ratio,
            self.insert_ratio,
            self.update_ratio,
            self.remove_ratio,
            self.scan_ratio,
        ];
        if let Some(workload) = workload {
            if given.iter().any(Option::is_some) {
                return Err(option_error(
                    "ycsb",
                    format!("{workload} is a mix of its own: leave the ratios out"),
                ));
            }
            options.set_ycsb(workload);
            return Ok(());
        }
        let [read, insert, update, remove, scan] = given.map(|share| share.unwrap_or(0.0));
        options.ratios = Ratios {
            read: self.read_ratio.map_or(1.0, |_| read),
            insert,
            update,
            remove,
            scan,
            ..Ratios::NONE
        };
        Ok(())
    }

    fn set_key_choice(&self, options: &mut Options, workload: Option<Ycsb>) -> Result<(), LabError> {
        if let Some(name) = &self.distribution {
            options.law = Law::named(name)?;
        }
        if let Some(hotset) = &self.hotset {
            if options.law != Law::HotSet {
                return Err(option_error("hotset", "goes with --distribution hotset"));
            }
            options.hotset = percentages(hotset)?;
        }
        match self.skew {
            Some(skew) => options.skew = skew,
            None if workload.is_none() && options.law == Law::Latest => options.skew = DEFAULT_LATEST_SKEW,
            // A YCSB workload with a self-similar choice has that law's own default.
            None if options.law == Law::SelfSimilar => options.skew = 0.2,
            None => {}
        }
        Ok(())
    }

    /// What is accepted but has no effect on these runs, in words.
    pub fn notes(&self, runs: &[&Options]) -> Vec<String> {
        let time = self
            .mode
            .as_deref()
            .is_some_and(|mode| mode.eq_ignore_ascii_case("time"));
        let mut notes = Vec::new();
        if self.seconds.is_some() && !time {
            notes.push("note: --seconds has no effect without --mode time".to_owned());
        }
        if self.rate.is_some() && self.latency_sampling == 0.0 {
            notes.push("note: --rate without --latency_sampling measures no latency".to_owned());
        }
        let ours = |run: &&Options| matches!(run.input, Input::Builtin(Builtin::Leafpress(_)));
        if !self.tree.is_empty() && !runs.iter().any(ours) {
            notes.push("note: --tree has no effect without leafpress among the indexes".to_owned());
        }
        notes
    }
}

/// What `--records` can be: PiBench's number, or the format of a dump.
#[derive(Debug, Clone)]
enum RecordsWord {
    Count(u64),
    Format(RecordFormat),
}

fn records(word: &str) -> Result<RecordsWord, String> {
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return word.parse().map(RecordsWord::Format).map_err(|e| match e {
            LabError::Option { reason, .. } => reason,
            e => e.to_string(),
        });
    }
    let count = word.parse().ok().filter(|count| *count <= MAX_RECORDS);
    count
        .map(RecordsWord::Count)
        .ok_or_else(|| format!("it is neither a whole number between 0 and {MAX_RECORDS} nor the format of a dump"))
}

/// The error of an option that other commands write with a hyphen.
fn underscored(error: LabError, name: &'static str) -> LabError {
    match error {
        LabError::Option { reason, .. } => option_error(name, reason),
        e => e,
    }
}

fn percentages(text: &str) -> Result<(f64, f64), LabError> {
    let numbers = text.split_once(',').and_then(|(keys, operations)| {
        Some((f64::from_str(keys.trim()).ok()?, f64::from_str(operations.trim()).ok()?))
    });
    numbers.ok_or_else(|| {
        option_error(
            "hotset",
            format!("`{text}`: use KEYS,OPERATIONS in percent, as in 20,80"),
        )
    })
}

fn option_error(option: &'static str, reason: impl Into<String>) -> LabError {
    LabError::Option {
        option,
        reason: reason.into(),
    }
}

/// An error of the laboratory as this command reports it.
pub fn bad_input(error: &LabError) -> Failure {
    match error {
        LabError::Option {
            option: "input",
            reason,
        } => Failure::bad_input(format!("INPUT: {reason}")),
        LabError::Option { option: "data", reason } if !reason.starts_with("goes with") => {
            Failure::bad_input(format!("--value_source: {reason}"))
        }
        LabError::Option { option: "cut", reason } => Failure::bad_input(format!("--value_size: {reason}")),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } if reason.contains("(--records ") => {
            Failure::bad_input(format!("--data {source_name}: {reason}"))
        }
        LabError::Data { source_name, reason } => Failure::bad_input(format!("--value_source {source_name}: {reason}")),
        LabError::Tree(leafpress::Error::Codec(e)) => {
            Failure::bad_input(format!("INPUT: {e}; `leafpress codecs` lists what runs here"))
        }
        e => Failure::failed(e.to_string()),
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
