//! The flags of `leafpress eval`, and how they change a configuration.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use leafpress_console::given::Given;
use leafpress_console::usage::message;
use leafpress_console::words::list;
use leafpress_lab::eval::words::flag;
use leafpress_lab::{EvalConfig, LabError};

use crate::failure::Failure;

/// Arguments of `leafpress eval`. A list is separated by commas or spaces, and the run is the cross product of all
/// lists.
#[derive(Debug, Args)]
#[command(
    args_override_self = true,
    allow_negative_numbers = true,
    after_help = "The variables of the ZipCache evaluation (THREADS_LIST, BTREE_*, RUN_IAA, ...) set the same things; \
                        flags win. See docs/commands/eval.md."
)]
pub struct EvalArgs {
    #[command(flatten)]
    pub given: Given<EvalConfig>,

    /// Codecs, as in none,lz4,zstd:1,deflate:1,zlib:1,qpl:software:fixed (see `leafpress codecs`)
    #[arg(short = 'c', long, value_name = "LIST", num_args = 1.., help_heading = "Work", display_order = 0)]
    codecs: Vec<String>,
    /// read_only, write_only, read_write_8_2, read_write_5_5, read_write_2_8, scan, crud, hotset [default: the first
    /// five]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Work", display_order = 1)]
    workloads: Vec<String>,
    /// Numbers of worker threads [default: 1 and the number of cores]
    #[arg(short = 't', long, value_name = "LIST", num_args = 1.., help_heading = "Work", display_order = 2)]
    threads: Vec<String>,
    /// Bytes of a landing buffer, or auto: as the records need [default: auto]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Tree", display_order = 17)]
    landing_bytes: Vec<String>,
    /// Background compaction: off, on, or both to sweep [default: off]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Background compaction", display_order = 16)]
    background: Vec<String>,
    /// Codecs of the IAA runs [default: qpl]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Accelerators", display_order = 25)]
    iaa_codecs: Vec<String>,
    /// Codecs of the zlib-accel runs [default: zlib_accel, which is zlib:1]
    #[arg(long, value_name = "LIST", num_args = 1.., help_heading = "Accelerators")]
    zlib_accel_codecs: Vec<String>,

    /// Directory for summary.tsv, results.json, report.html and logs [default: leafpress-results/eval/TIMESTAMP]
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

impl EvalArgs {
    /// Applies every given flag to `config`.
    pub fn apply(&self, config: &mut EvalConfig) -> Result<(), Failure> {
        let (iaa, zlib_accel) = (config.iaa, config.zlib_accel);
        self.given.set(config);
        config.iaa |= iaa;
        config.zlib_accel |= zlib_accel || self.given.has("zlib-accel-so");
        set_list("codecs", &self.codecs, &mut config.codecs)?;
        set_list("workloads", &self.workloads, &mut config.workloads)?;
        set_list("threads", &self.threads, &mut config.threads)?;
        set_list("landing-bytes", &self.landing_bytes, &mut config.landing_bytes)?;
        if self.given.has("background") {
            config.background = parsed("background", &self.background, |word| {
                flag(word).map_err(LabError::reason)
            })?;
        }
        set_list("iaa-codecs", &self.iaa_codecs, &mut config.iaa_codecs)?;
        set_list(
            "zlib-accel-codecs",
            &self.zlib_accel_codecs,
            &mut config.zlib_accel_codecs,
        )
    }
}

/// Sets a list that was given.
fn set_list<T: FromStr<Err: Display>>(option: &str, words: &[String], field: &mut Vec<T>) -> Result<(), Failure> {
    if words.is_empty() {
        return Ok(());
    }
    *field = parsed(option, words, |word| word.parse().map_err(|e: T::Err| e.to_string()))?;
    if field.is_empty() {
        return Err(Failure::bad_input(format!("--{option}: the list is empty")));
    }
    Ok(())
}

fn parsed<T>(option: &str, words: &[String], parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Failure> {
    let refused = |word: &str, reason: String| Failure::bad_input(message(&format!("--{option}"), word, &reason));
    let words = list(words);
    words
        .iter()
        .map(|word| parse(word).map_err(|reason| refused(word, reason)))
        .collect()
}
