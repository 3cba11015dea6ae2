//! The command line of `leafpress model`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use leafpress_lab::core::paths::behind;
use leafpress_lab::model::{Access, Junk, Method, Options, Overhead, Replacement, Sampling, TraceFormat, TraceOptions};
use leafpress_lab::{LabError, model, pool};

use leafpress_console::cost::CostArgs;
use leafpress_console::given::Given;

/// Arguments of `leafpress model`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "Data and memory")]
pub struct ModelArgs {
    #[command(flatten)]
    given: Given<Options>,
    /// Percentages of the memory for compressed pages to show in tables
    #[arg(long, value_name = "LIST", default_value = "0,10,..,100", value_parser = pool::shares)]
    shares: std::vec::Vec<u8>,

    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long = "distribution",
        alias = "access",
        value_name = "DISTRIBUTION",
        help_heading = "Access",
        help = "Access distribution of pages: uniform, X,Y (the hot X% of the pages get Y% of the accesses), \
                zipfian[:THETA], self-similar[:H], or trace:FILE with one page number per line, which defines the data \
                [default: 20,80]"
    )]
    access: Option<OsString>,
    /// Format of a page trace: text (one decimal number per line) or u64le (8 bytes per number, little-endian)
    /// [default: text]
    #[arg(long, value_name = "FORMAT", help_heading = "Access")]
    trace_format: Option<TraceFormat>,
    /// Fraction of the pages to sample, as in 0.01, or auto: all in files up to 512 MiB [default: auto]
    #[arg(long, value_name = "SHARE", help_heading = "Access")]
    trace_sample: Option<Sampling>,
    /// Skip lines that are not page numbers, up to 1% of all lines, and count them
    #[arg(long, help_heading = "Access")]
    skip_junk: bool,

    /// Use formulas that charge only actual events (the default)
    #[arg(long, help_heading = "Formulas", conflicts_with = "as_published")]
    corrected: bool,
    /// Use exactly the formulas of the thesis
    #[arg(
        long, help_heading = "Formulas",
        conflicts_with_all = [
            "access_bytes", "replacement", "overhead", "promote_after_hits", "device_iops", "background_pct", "hit_us",
        ]
    )]
    as_published: bool,
    /// How pages are placed: clock (as the pool), lru, or ideal (the hottest raw, the next compressed) [default: clock;
    /// lru with a trace]
    #[arg(long, value_name = "KIND", help_heading = "Formulas")]
    replacement: Option<Replacement>,
    /// Hits after which a compressed page becomes raw again, 1 to 63, with clock
    #[arg(long, value_name = "HITS", default_value_t = 8, help_heading = "Formulas")]
    promote_after_hits: u8,
    /// Memory that holds no pages: pool (the pool's own overhead) or none
    #[arg(long, value_name = "WHOSE", default_value_t = Overhead::Pool, help_heading = "Formulas")]
    overhead: Overhead,
    /// Compare every figure the thesis publishes with its formulas; exit 1 if one differs
    #[arg(long, help_heading = "Formulas", exclusive = true)]
    pub reproduce_thesis: bool,
    /// Compare the white paper's cost figures with its arithmetic
    #[arg(long, help_heading = "Formulas", exclusive = true)]
    pub reproduce_white_paper: bool,

    #[command(flatten)]
    pub cost: CostArgs,

    /// Print only the table for programs (summary.tsv)
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub tsv: bool,
    /// Print only the JSON (results.json)
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Write summary.tsv, results.json and report.html to this directory
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
Sizes: 15GiB and 15G are 15 x 2^30 bytes, 15GB is 15 x 10^9. What is printed is computed, not measured: \
docs/commands/model.md has the formulas.

  leafpress model --data-bytes 2TB --memory 64GiB --device-us 90 --distribution zipfian:0.99 --codec-costs \
  lz4=2.1,14,2.2
  leafpress model --distribution trace:pages.txt --memory 1GiB --out result
  leafpress model --as-published --distribution 20,80
  leafpress model --tco --total-cost 1000000 --memory-gib-cost 40
  leafpress model --reproduce-thesis";

impl ModelArgs {
    fn trace_of_pages(&self) -> Option<&OsStr> {
        behind(self.access.as_deref()?, "trace:")
    }

    /// Returns the file of page numbers to read, and its format.
    pub fn trace(&self) -> Result<Option<(PathBuf, TraceOptions)>, LabError> {
        let Some(path) = self.trace_of_pages() else {
            let given = [
                ("trace-format", self.trace_format.is_some()),
                ("trace-sample", self.trace_sample.is_some()),
                ("skip-junk", self.skip_junk),
            ];
            return match given.into_iter().find(|(_, is_given)| *is_given) {
                Some((option, _)) => Err(LabError::option(
                    option,
                    "no trace is given: name one with --distribution trace:FILE",
                )),
                None => Ok(None),
            };
        };
        let options = TraceOptions {
            format: self.trace_format.unwrap_or(TraceFormat::Text),
            sampling: self.trace_sample.unwrap_or(Sampling::Auto),
            junk: if self.skip_junk { Junk::Skip } else { Junk::Refuse },
        };
        Ok(Some((PathBuf::from(path), options)))
    }

    /// Returns the model's options, validated except for the trace.
    pub fn options(&self, trace: Option<Arc<model::Trace>>) -> Result<Options, LabError> {
        let method = if self.as_published {
            Method::AsPublished
        } else {
            Method::Corrected
        };
        let mut options = Options::new(method);
        self.given.set(&mut options);
        options.shares.clone_from(&self.shares);
        match &self.access {
            // It was read already, or its options are checked before it is.
            Some(_) if self.trace_of_pages().is_some() => {
                let given = ["data-bytes", "access-bytes"]
                    .into_iter()
                    .find(|option| self.given.has(option));
                if let Some(option) = given {
                    return Err(LabError::option(option, "it follows from the trace: omit it"));
                }
            }
            Some(access) => options.access = Access::parse(&access.to_string_lossy())?,
            None => {}
        }
        let usual = self.trace_of_pages().map_or(options.replacement, |_| Replacement::Lru);
        options.replacement = self.replacement.unwrap_or(usual);
        if self.trace_of_pages().is_some() && options.replacement == Replacement::Clock {
            return Err(LabError::option(
                "replacement",
                "a trace determines the hits of an LRU cache, not of a clock: use lru, or ideal",
            ));
        }
        options.promote_after_hits = self.promote_after_hits;
        options.overhead = self.overhead;
        if let Some(trace) = trace {
            options.access = Access::Trace(trace);
            options.data_bytes = options.data_bytes() as u64;
        }
        Ok(options)
    }
}
