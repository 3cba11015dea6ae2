//! The command line of `leafpress bench`: PiBench's, with our extensions.

mod errors;
mod plan;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};
use leafpress_console::given::Given;
use leafpress_lab::LabError;
use leafpress_lab::bench::{MAX_RECORDS, Options, Ycsb};
use leafpress_lab::core::corpus::RecordFormat;

pub use self::errors::bad_input;
pub use self::plan::Plan;
use crate::failure::Failure;

/// Arguments of `leafpress bench`.
///
/// PiBench writes its long options with underscores; with hyphens they work too.
#[derive(Debug, Args)]
#[command(args_override_self = true, after_help = AFTER_HELP)]
#[command(next_help_heading = "PiBench's options")]
pub struct BenchArgs {
    #[command(flatten)]
    given: Given<Options>,
    #[arg(value_name = "INPUT", help = INPUT_HELP)]
    positional: Option<OsString>,
    /// Same as INPUT
    #[arg(long, value_name = "INPUT", conflicts_with = "positional", display_order = 0)]
    input: Option<OsString>,
    /// Number of records to load [default: 1000000]; or the format of keys and values in --data: jsonl:/POINTER,
    /// csv:COLUMN, stanzas:FIELD, tsv (loads all records unless -n is given)
    #[arg(
        short = 'n', long, value_name = "N|FORMAT", action = ArgAction::Append, value_parser = records,
        allow_negative_numbers = true, display_order = 0
    )]
    records: Vec<RecordsWord>,
    // No docstring: rustdoc would take the brackets for links.
    #[arg(
        long,
        value_name = "DISTRIBUTION",
        display_order = 14,
        help = "Key distribution: UNIFORM, SELFSIMILAR, ZIPFIAN with --skew, or as in other commands uniform, \
                zipfian[:THETA], self-similar[:H], latest[:THETA], hotset[:KEYS_PCT:OPERATIONS_PCT] [default: UNIFORM]"
    )]
    distribution: Option<String>,

    /// With --records FORMAT: file, directory, archive or bundled sample to read the records from [default: packages]
    #[arg(long, value_name = "DATA", help_heading = "Ours", display_order = 4)]
    data: Option<OsString>,
    /// Mix and key choice of a YCSB workload: A to F; several (A,C,E or A..F) make a table
    #[arg(long, value_name = "WORKLOAD", help_heading = "Ours", display_order = 6, value_parser = Ycsb::list)]
    ycsb: Option<std::vec::Vec<Ycsb>>,
    /// Compare several indexes, each in its own process, in one table
    #[arg(
        long, value_name = "INPUT", num_args = 1.., help_heading = "Ours", conflicts_with_all = ["positional", "input"]
    )]
    compare: Vec<OsString>,
    /// Report layout for one index: table, or pibench (line for line) [default: table on a terminal, pibench in files
    /// and pipes]
    #[arg(
        long,
        value_name = "LAYOUT",
        value_enum,
        hide_possible_values = true,
        help_heading = "Ours"
    )]
    report: Option<Layout>,
    /// Write results.json and report.html to this directory
    #[arg(short = 'o', long, value_name = "DIR", help_heading = "Ours", conflicts_with_all = ["json", "html"])]
    pub out: Option<PathBuf>,
    /// Write all results as JSON
    #[arg(long, value_name = "FILE", help_heading = "Ours")]
    pub json: Option<PathBuf>,
    /// Write a page with charts
    #[arg(long, value_name = "FILE", help_heading = "Ours")]
    pub html: Option<PathBuf>,
}

const INPUT_HELP: &str = "\
Path of a shared library written for PiBench (./NAME.so), or a built-in index: leafpress[:CODEC] btreemap skiplist \
treeindex masstree hashmap dummy";

const AFTER_HELP: &str = "\
On a terminal the report is a table. In files and pipes, or with --report pibench, one index has PiBench's layout; \
what PiBench does not have comes after it. docs/commands/bench.md says how the two differ.

  leafpress bench leafpress:zstd:1 -n 1000000 -p 1000000 -r 0.5 -u 0.5 --latency_sampling 1
  leafpress bench ./libstlmap.so -t 2 -r 0.95 -i 0.05
  leafpress bench --compare leafpress:none leafpress:lz4 btreemap masstree --ycsb A,C,E --html compare.html";

/// The report layout for one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// A verdict and tables, as in the other commands.
    Table,
    /// PiBench's layout, line for line, for scripts that parse it.
    Pibench,
}

impl BenchArgs {
    /// Returns the requested layout, or else the default for standard output.
    pub fn layout(&self) -> Layout {
        self.report.unwrap_or(if std::io::stdout().is_terminal() {
            Layout::Table
        } else {
            Layout::Pibench
        })
    }

    /// Checks that a comparison can be printed in this layout.
    pub fn check_layout_of_several(&self) -> Result<(), Failure> {
        match self.report {
            Some(Layout::Pibench) => Err(Failure::bad_input(
                "--report: the PiBench layout requires one index and one workload",
            )),
            _ => Ok(()),
        }
    }
}

/// The value of `--records`: PiBench's number, or the format of a dump.
#[derive(Debug, Clone)]
enum RecordsWord {
    Count(u64),
    Format(RecordFormat),
}

fn records(word: &str) -> Result<RecordsWord, String> {
    if word.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return word.parse().map(RecordsWord::Format).map_err(LabError::reason);
    }
    let count = word.parse().ok().filter(|count| *count <= MAX_RECORDS);
    count
        .map(RecordsWord::Count)
        .ok_or_else(|| format!("it is neither a whole number between 0 and {MAX_RECORDS} nor the format of a dump"))
}
