//! The command line of `leafpress suite`.

use std::path::PathBuf;

use clap::Args;
use leafpress::Codec;
use leafpress_lab::suite::{self, Options, QUICK_BYTES};
use leafpress_lab::{Bytes, LabError};

use crate::eval::words;
use crate::failure::Failure;

/// Arguments of `leafpress suite`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct SuiteArgs {
    /// Files, directories (searched to their depth) and archives (zip, gzip and zstd are opened); or a bundled sample's name
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Only these codecs, with commas between [default: all that run here, but for none]
    #[arg(short = 'c', long, value_name = "LIST")]
    codecs: Option<String>,
    /// Lengths of blocks, with commas between [default: 4K,8K,16K,32K,64K, those that the data has]
    #[arg(short = 'b', long, value_name = "LIST")]
    block_bytes: Option<String>,
    /// Numbers of threads, with commas between [default: 1 and the number of CPUs]
    #[arg(short = 't', long, value_name = "LIST")]
    threads: Option<String>,
    /// Passes that are measured; the best and the median are reported [default: 3]
    #[arg(short = 'n', long, value_name = "N")]
    passes: Option<usize>,
    /// Take so many bytes of all files together, in pieces evenly spread over them, as in 500M [default: all]
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<Bytes>,
    /// Take so many bytes of each file, in pieces evenly spread over it [default: all]
    #[arg(long, value_name = "BYTES")]
    max_file_bytes: Option<Bytes>,
    /// One pass over a sample of 8M, unless --passes or --max-bytes say otherwise
    #[arg(long)]
    quick: bool,
    /// Take an archive's own, compressed bytes instead of opening it
    #[arg(long)]
    raw: bool,
    /// Write summary.tsv, overall.tsv, suite_wide_Nt.tsv, results.json and report.html there
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Say nothing but the report
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "\
docs/suite.md explains the report, the files and how it is measured.

  leafpress suite /data/tables --out result
  leafpress suite dump.zip -c lz4,zstd:1,zstd:3 -b 8K -t 1
  leafpress suite /data --max-bytes 500M --quick";

impl SuiteArgs {
    /// What the arguments ask for, checked as far as that goes without the data.
    pub fn options(&self) -> Result<Options, Failure> {
        let options = self.parse().map_err(|e| failure(&e))?;
        options.validate().map_err(|e| failure(&e))?;
        Ok(options)
    }

    fn parse(&self) -> Result<Options, LabError> {
        let mut options = Options::new(self.paths.clone());
        options.raw = self.raw;
        options.codecs = self.codecs.as_deref().map(codecs).transpose()?;
        options.block_bytes = self.block_bytes.as_deref().map(suite::block_bytes).transpose()?;
        if let Some(text) = &self.threads {
            options.threads = suite::threads(text)?;
        }
        if self.quick {
            (options.passes, options.max_bytes) = (1, Some(QUICK_BYTES));
        }
        options.passes = self.passes.unwrap_or(options.passes);
        options.max_bytes = self.max_bytes.map(|Bytes(bytes)| bytes).or(options.max_bytes);
        options.max_file_bytes = self.max_file_bytes.map(|Bytes(bytes)| bytes);
        Ok(options)
    }
}

fn codecs(text: &str) -> Result<Vec<Codec>, LabError> {
    let codec = |word: &String| {
        word.parse::<Codec>().map_err(|e| LabError::Option {
            option: "codecs",
            reason: e.to_string(),
        })
    };
    words::list(&[text]).iter().map(codec).collect()
}

/// An error of the laboratory as this command reports it.
pub fn failure(error: &LabError) -> Failure {
    match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: nothing was measured yet".into()),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } => Failure::bad_input(format!("{source_name}: {reason}")),
        e => Failure::failed(e.to_string()),
    }
}

#[cfg(test)]
#[path = "args_tests.rs"]
mod tests;
