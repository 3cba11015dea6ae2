//! The command line of `leafpress suite`.

use std::path::PathBuf;

use clap::Args;
use leafpress::{Codec, CodecError};
use leafpress_console::words::list;
use leafpress_lab::core::corpus::RecordFormat;
use leafpress_lab::suite::{self, Options, QUICK_BYTES, records};
use leafpress_lab::{Bytes, LabError};

use crate::failure::Failure;

/// Arguments of `leafpress suite`.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
pub struct SuiteArgs {
    /// Files, directories (searched recursively) and archives (zip, gzip and zstd are opened); or the name of a bundled
    /// sample
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Measure the records of one PATH, each alone and in frames: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    #[arg(long, value_name = "FORMAT")]
    records: Option<RecordFormat>,
    /// Only these codecs, separated by commas [default: all that run here except none and, without --records, those
    /// that need a dictionary]
    #[arg(short = 'c', long, value_name = "LIST", value_parser = codecs)]
    codecs: Option<std::vec::Vec<Codec>>,
    /// Block sizes, separated by commas [default: 4K,8K,16K,32K,64K, those that the data has]; with --records
    /// frame sizes [default: 4K,16K]
    #[arg(short = 'b', long, value_name = "LIST", value_parser = suite::block_bytes)]
    block_bytes: Option<std::vec::Vec<usize>>,
    /// With --records: size of a trained dictionary, 0 for none [default: 32K]
    #[arg(long, value_name = "BYTES", value_parser = Bytes::parse_usize)]
    dictionary_bytes: Option<usize>,
    /// Numbers of threads, separated by commas [default: 1 and the number of CPUs; with --records 1]
    #[arg(short = 't', long, value_name = "LIST", value_parser = suite::threads)]
    threads: Option<std::vec::Vec<usize>>,
    /// Measured passes; the best and the median are reported [default: 3]
    #[arg(short_alias = 'n', long, value_name = "N")]
    passes: Option<usize>,
    /// Sample at most N bytes of all files together, in pieces evenly spread over them, as in 500M [default: all]
    #[arg(long, value_name = "BYTES", value_parser = Bytes::parse_u64)]
    max_bytes: Option<u64>,
    /// Sample at most N bytes of each file, in pieces evenly spread over it [default: all]
    #[arg(long, value_name = "BYTES", value_parser = Bytes::parse_u64)]
    max_file_bytes: Option<u64>,
    /// Run one pass over a sample of 8M, unless --passes or --max-bytes is given
    #[arg(long)]
    quick: bool,
    /// Measure an archive's own, compressed bytes instead of opening it
    #[arg(long)]
    raw: bool,
    /// Write summary.tsv, overall.tsv, suite_wide_Nt.tsv (with --records records.tsv), results.json and report.html to
    /// this directory
    #[arg(short = 'o', long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print only the report
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

const AFTER_HELP: &str = "\
docs/commands/suite.md explains the report, the files and how it is measured.

  leafpress suite /data/tables --out result
  leafpress suite dump.zip -c lz4,zstd:1,zstd:3 -b 8K -t 1
  leafpress suite /data --max-bytes 500M --quick
  leafpress suite users.jsonl.gz --records jsonl:/user/id --out result";

/// The requested measurement.
#[derive(Debug)]
pub enum Request {
    /// Files in blocks.
    Files(Options),
    /// Records.
    Records(records::Options),
}

impl SuiteArgs {
    /// Returns the requested measurement, validated as far as possible without the data.
    pub fn request(&self) -> Result<Request, Failure> {
        let request = match &self.records {
            None => self.files().map(Request::Files),
            Some(format) => self.of_records(format).map(Request::Records),
        };
        let request = request.map_err(|e| failure(&e))?;
        let checked = match &request {
            Request::Files(options) => options.validate(),
            Request::Records(options) => options.validate(),
        };
        checked.map_err(|e| failure(&e))?;
        Ok(request)
    }

    fn files(&self) -> Result<Options, LabError> {
        if self.dictionary_bytes.is_some() {
            return Err(LabError::option(
                "dictionary-bytes",
                "requires --records: blocks of files are compressed without one",
            ));
        }
        let mut options = Options::new(self.paths.clone());
        options.raw = self.raw;
        options.codecs.clone_from(&self.codecs);
        options.block_bytes.clone_from(&self.block_bytes);
        options.threads = self.threads.clone().unwrap_or(options.threads);
        (options.passes, options.max_bytes) = self.extent(options.passes);
        options.max_file_bytes = self.max_file_bytes;
        Ok(options)
    }

    fn of_records(&self, format: &RecordFormat) -> Result<records::Options, LabError> {
        let [path] = self.paths.as_slice() else {
            let reason = format!(
                "{} PATHs are given, and it takes one: use a directory for several dumps",
                self.paths.len()
            );
            return Err(LabError::option("records", reason));
        };
        if self.raw {
            return Err(LabError::option(
                "raw",
                "an archive's own bytes are not records: omit it with --records",
            ));
        }
        if self.max_file_bytes.is_some() {
            return Err(LabError::option(
                "max-file-bytes",
                "records are sampled by --max-bytes: omit it with --records",
            ));
        }
        let mut options = records::Options::new(path.clone(), format.clone());
        options.codecs.clone_from(&self.codecs);
        options.frame_bytes = self.block_bytes.clone().unwrap_or(options.frame_bytes);
        options.dictionary_bytes = self.dictionary_bytes.unwrap_or(options.dictionary_bytes);
        options.threads = self.threads.clone().unwrap_or(options.threads);
        (options.passes, options.max_bytes) = self.extent(options.passes);
        Ok(options)
    }

    /// Number of passes and bytes, with `passes` as the default.
    fn extent(&self, passes: usize) -> (usize, Option<u64>) {
        let (passes, most) = if self.quick {
            (1, Some(QUICK_BYTES))
        } else {
            (passes, None)
        };
        (self.passes.unwrap_or(passes), self.max_bytes.or(most))
    }
}

fn codecs(text: &str) -> Result<Vec<Codec>, LabError> {
    let codec = |word: &String| {
        word.parse()
            .map_err(|e: CodecError| LabError::option("codecs", e.to_string()))
    };
    list(&[text]).iter().map(codec).collect()
}

/// Converts an error of the laboratory to this command's report.
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
