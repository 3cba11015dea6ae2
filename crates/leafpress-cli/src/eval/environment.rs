//! Applies the environment variables of the ZipCache evaluation to a configuration.
//!
//! They act as in its script, so that its command lines work with `leafpress eval` instead of the script.
//! An empty variable counts as unset, as in a shell script's `${NAME:-default}`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

use crate::failure::Failure;
use leafpress_console::usage::message;
use leafpress_console::words::list;
use leafpress_lab::core::corpus::Source;
use leafpress_lab::eval::words::{background_family, flag, job_cache, percentage, stream_cache};
use leafpress_lab::{EvalConfig, LabError};

/// The data file of the evaluation's script.
const SILESIA: &str = "SilesiaCorpus/samba.zip";
/// Values of `BTREE_USE_SILESIA=0` are synthetic; this share of each is compressible.
const SYNTHETIC_SHARE: f64 = 0.5;

/// All variables, for the documentation's test and the report's command line.
pub const VARIABLES: [&str; 32] = [
    "BG_SWEEP_VALUES",
    "BTREE_BG_CODEC",
    "BTREE_BG_COMPACTION",
    "BTREE_BG_LANDING_HIGH_WATERMARK_PCT",
    "BTREE_BG_THREADS",
    "BTREE_CODEC_FILTER",
    "BTREE_DURATION_SEC",
    "BTREE_KEY_SPACE",
    "BTREE_LANDING_BUFFER_BYTES",
    "BTREE_LATENCY_SAMPLES_PER_THREAD",
    "BTREE_MEASURE_LATENCY",
    "BTREE_QPL_JOB_CACHE",
    "BTREE_QPL_MODE",
    "BTREE_QPL_PATH",
    "BTREE_SHARDS",
    "BTREE_THREADS",
    "BTREE_USE_SILESIA",
    "BTREE_VALUE_BYTES",
    "BTREE_ZLIB_STREAM_CACHE",
    "COLLECT_CPU",
    "IAA_CODECS",
    "LANDING_LIST",
    "RUN_BG_SWEEP",
    "RUN_IAA",
    "RUN_QPL_DYNAMIC",
    "RUN_ZLIB_ACCEL",
    "SOFTWARE_CODECS",
    "THREADS_LIST",
    "ZLIB_ACCEL_CODECS",
    "ZLIB_ACCEL_SO",
    // Not in the evaluation's document: locations of files.
    "LEAFPRESS_DATA",
    "LEAFPRESS_QPL",
];

/// Settings taken from the environment.
#[derive(Debug, Default)]
pub struct Applied {
    /// The variable that set an option (by its flag's name), for error messages.
    pub origins: BTreeMap<&'static str, &'static str>,
    /// The meaning of the word `qpl`: `BTREE_QPL_PATH` and `BTREE_QPL_MODE`.
    pub qpl: Option<String>,
    /// Notes for standard error.
    pub notes: Vec<String>,
}

/// Variables by name, so that tests need not modify the process's own.
pub struct Environment<'l> {
    lookup: &'l dyn Fn(&str) -> Option<OsString>,
}

impl<'l> Environment<'l> {
    pub fn new(lookup: &'l dyn Fn(&str) -> Option<OsString>) -> Self {
        Self { lookup }
    }

    fn get(&self, name: &'static str) -> Result<Option<String>, Failure> {
        match (self.lookup)(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(value)) if value.trim().is_empty() => Ok(None),
            Some(Ok(value)) => Ok(Some(value.trim().to_owned())),
            Some(Err(_)) => Err(Failure::bad_input(format!("{name}: not UTF-8"))),
        }
    }

    fn read<T>(&self, name: &'static str, read: impl Fn(&str) -> Result<T, LabError>) -> Result<Option<T>, Failure> {
        self.get(name)?
            .map(|value| read(&value).map_err(|e| Failure::bad_input(message(name, &value, &e.reason()))))
            .transpose()
    }

    fn list<T: FromStr<Err: Display>>(&self, name: &'static str) -> Result<Option<Vec<T>>, Failure> {
        self.read(name, |value| {
            let items = list(&[value])
                .iter()
                .map(|word| parse(word))
                .collect::<Result<Vec<T>, _>>()?;
            if items.is_empty() {
                Err(refused("the list is empty"))
            } else {
                Ok(items)
            }
        })
    }

    /// Applies the variables to `config`.
    pub fn apply(&self, config: &mut EvalConfig) -> Result<Applied, Failure> {
        let mut applied = Applied::default();
        self.apply_data(config, &mut applied)?;
        self.apply_codecs(config, &mut applied)?;
        self.apply_background(config, &mut applied)?;

        let origins = &mut applied.origins;
        let mut set = |option, variable| origins.insert(option, variable);
        // A list of the script takes precedence over the single value that the script sets for each run.
        for variable in ["BTREE_THREADS", "THREADS_LIST"] {
            if let Some(threads) = self.list(variable)? {
                config.threads = threads;
                set("threads", variable);
            }
        }
        for variable in ["BTREE_LANDING_BUFFER_BYTES", "LANDING_LIST"] {
            if let Some(sizes) = self.list(variable)? {
                config.landing_bytes = sizes;
                set("landing-bytes", variable);
            }
        }
        if let Some(seconds) = self.read("BTREE_DURATION_SEC", parse)? {
            config.seconds = seconds;
            set("seconds", "BTREE_DURATION_SEC");
        }
        if let Some(keys) = self.read("BTREE_KEY_SPACE", parse)? {
            config.keys = keys;
            set("keys", "BTREE_KEY_SPACE");
        }
        if let Some(bytes) = self.read("BTREE_VALUE_BYTES", parse)? {
            config.value_bytes = bytes;
            set("value-bytes", "BTREE_VALUE_BYTES");
        }
        if let Some(shards) = self.read("BTREE_SHARDS", parse)? {
            config.shards = shards;
            set("shards", "BTREE_SHARDS");
        }
        if let Some(cache) = self.read("BTREE_QPL_JOB_CACHE", job_cache)? {
            config.job_cache = cache;
        }
        if let Some(cache) = self.read("BTREE_ZLIB_STREAM_CACHE", stream_cache)? {
            config.stream_cache = cache;
        }
        if let Some(on) = self.read("BTREE_MEASURE_LATENCY", flag)? {
            config.measure_latency = on;
        }
        if let Some(samples) = self.read("BTREE_LATENCY_SAMPLES_PER_THREAD", parse)? {
            config.latency_samples_per_thread = samples;
            set("latency-samples-per-thread", "BTREE_LATENCY_SAMPLES_PER_THREAD");
        }
        if let Some(on) = self.read("COLLECT_CPU", flag)? {
            config.collect_cpu = on;
        }
        Ok(applied)
    }

    /// `BTREE_USE_SILESIA=1` is the script's default: samba of the Silesia corpus, at the script's path.
    fn apply_data(&self, config: &mut EvalConfig, applied: &mut Applied) -> Result<(), Failure> {
        match self.read("BTREE_USE_SILESIA", flag)? {
            None => {}
            Some(false) => {
                config.data = Source::Synthetic(SYNTHETIC_SHARE);
                applied.origins.insert("data", "BTREE_USE_SILESIA");
            }
            Some(true) if Path::new(SILESIA).is_file() => {
                config.data = Source::Path(SILESIA.into());
                applied.origins.insert("data", "BTREE_USE_SILESIA");
            }
            Some(true) => applied.notes.push(format!(
                "note: BTREE_USE_SILESIA=1, but {SILESIA} does not exist: values come from {} (use --data for another \
                 file)",
                config.data
            )),
        }
        Ok(())
    }

    fn apply_codecs(&self, config: &mut EvalConfig, applied: &mut Applied) -> Result<(), Failure> {
        let path = self.read("BTREE_QPL_PATH", |word| one_of(word, &["software", "hardware", "auto"]))?;
        let mode = self.read("BTREE_QPL_MODE", |word| one_of(word, &["fixed", "dynamic"]))?;
        if path.is_some() || mode.is_some() {
            let path = path.unwrap_or_else(|| "software".into());
            let mode = mode.unwrap_or_else(|| "fixed".into());
            applied.qpl = Some(format!("qpl:{path}:{mode}"));
        }
        for variable in ["SOFTWARE_CODECS", "BTREE_CODEC_FILTER"] {
            if let Some(codecs) = self.list::<String>(variable)? {
                config.codecs = codecs;
                if config.codecs == ["all"] {
                    config.codecs = ["lz4", "qpl", "zlib_accel"].map(String::from).to_vec();
                }
                applied.origins.insert("codecs", variable);
            }
        }
        if let Some(on) = self.read("RUN_IAA", flag)? {
            config.iaa = on;
        }
        if let Some(codecs) = self.list("IAA_CODECS")? {
            config.iaa_codecs = codecs;
            applied.origins.insert("iaa-codecs", "IAA_CODECS");
        }
        if let Some(on) = self.read("RUN_QPL_DYNAMIC", flag)? {
            config.qpl_dynamic = on;
        }
        if let Some(on) = self.read("RUN_ZLIB_ACCEL", flag)? {
            config.zlib_accel = on;
            applied.origins.insert("zlib-accel-so", "ZLIB_ACCEL_SO");
        }
        if let Some(codecs) = self.list("ZLIB_ACCEL_CODECS")? {
            config.zlib_accel_codecs = codecs;
            applied.origins.insert("zlib-accel-codecs", "ZLIB_ACCEL_CODECS");
        }
        if let Some(path) = self.get("ZLIB_ACCEL_SO")? {
            config.zlib_accel_so = Some(path.into());
            applied.origins.insert("zlib-accel-so", "ZLIB_ACCEL_SO");
        }
        Ok(())
    }

    fn apply_background(&self, config: &mut EvalConfig, applied: &mut Applied) -> Result<(), Failure> {
        if let Some(on) = self.read("BTREE_BG_COMPACTION", flag)? {
            config.background = vec![on];
        }
        let sweep = self.read("BG_SWEEP_VALUES", |value| {
            list(&[value])
                .iter()
                .map(|word| flag(word))
                .collect::<Result<Vec<_>, _>>()
        })?;
        if self.read("RUN_BG_SWEEP", flag)? == Some(true) {
            config.background = sweep.unwrap_or_else(|| vec![false, true]);
            applied.origins.insert("background", "BG_SWEEP_VALUES");
        }
        if let Some(threads) = self.read("BTREE_BG_THREADS", parse)? {
            config.background_threads = threads;
            applied.origins.insert("background-threads", "BTREE_BG_THREADS");
        }
        if let Some(pct) = self.read("BTREE_BG_LANDING_HIGH_WATERMARK_PCT", percentage)? {
            config.landing_compaction_pct = pct;
            applied
                .origins
                .insert("landing-compaction-pct", "BTREE_BG_LANDING_HIGH_WATERMARK_PCT");
        }
        if let Some(family) = self.read("BTREE_BG_CODEC", background_family)? {
            config.background_codec = family;
            applied.origins.insert("background-codec", "BTREE_BG_CODEC");
        }
        Ok(())
    }
}

fn parse<T: FromStr<Err: Display>>(word: &str) -> Result<T, LabError> {
    word.parse().map_err(refused)
}

/// An error of a variable's value.
fn refused(reason: impl Display) -> LabError {
    LabError::option("", reason.to_string())
}

fn one_of(word: &str, known: &[&str]) -> Result<String, LabError> {
    if known.contains(&word) {
        Ok(word.into())
    } else {
        Err(refused(format!("use one of: {}", known.join(" "))))
    }
}
