//! Advice for a cache of records, from a trace of its requests: hit ratio by memory size, compressed and uncompressed.

use std::path::PathBuf;

use clap::Args;
use leafpress_console::cache;
use leafpress_lab::Bytes;
use leafpress_lab::cache::{MrcOptions, Options, Work};
use leafpress_lab::core::corpus::{RecordFormat, Source};

use super::AdviseArgs;
use crate::failure::Failure;
use crate::output;

/// Arguments of `leafpress advise --trace`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Records")]
pub struct RecordsArgs {
    /// Requests of a record cache, instead of pages: predict the hit ratio by memory size, compressed and uncompressed.
    /// Values are made from the sample (exactly one)
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "data", "access_bytes", "block_bytes", "page_bytes", "codecs", "device", "device_json", "fio_json",
            "skip_junk", "workers", "hit_us", "background_pct", "verify", "tco",
        ]
    )]
    pub trace: Option<PathBuf>,
    /// Use the sample's own records as values: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv
    // Not `requires`: clap does not check it together with the other's conflicts.
    #[arg(long, value_name = "FORMAT")]
    pub(super) records: Option<String>,
}

/// The default memory.
const DEFAULT_MEMORY_BYTES: u64 = 64 << 20;

/// Runs the command.
pub fn run(args: &AdviseArgs, trace: &std::path::Path) -> Result<(), Failure> {
    let options = options(args, trace)?;
    let out = args.out.clone().unwrap_or_else(|| output::default_directory("advise"));
    cache::run_comparison(&options, crate::COMMAND, &out)
}

/// Refuses options that go with a trace only in a plan.
fn refuse_what_a_plan_takes(args: &AdviseArgs) -> Result<(), Failure> {
    let given = [
        ("sample-bytes", args.sample_bytes.is_some()),
        ("device-us", args.device_us().is_some()),
        ("distribution", args.distribution().is_some()),
        ("quick", args.quick),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::bad_input(format!(
            "--{option}: cannot be used with --trace without --total"
        ))),
        None => Ok(()),
    }
}

fn options(args: &AdviseArgs, trace: &std::path::Path) -> Result<Options, Failure> {
    refuse_what_a_plan_takes(args)?;
    let records = args.records.records.as_deref();
    let records = records
        .map(|word| cache::parse::<RecordFormat>("records", word))
        .transpose()?;
    let (data, records) = match args.sample.as_slice() {
        [] => (
            Source::Sample("packages".into()),
            Some(records.unwrap_or_else(|| RecordFormat::Stanzas("Package".into()))),
        ),
        [one] => {
            let source = Source::named(one.as_os_str());
            (source.map_err(|e| Failure::bad_input(format!("SAMPLE: {e}")))?, records)
        }
        _ => {
            return Err(Failure::bad_input(
                "--trace: values are made from one sample: name exactly one",
            ));
        }
    };
    let format = args.trace_format.as_deref();
    let mut options = Options::new(Work::Trace {
        path: trace.to_path_buf(),
        format: format.map(|word| cache::parse("trace-format", word)).transpose()?,
        requests: None,
        data,
        records,
    });
    options.engines.clear();
    options.mrc = Some(MrcOptions::default());
    options.memory_bytes = args.memory.map_or(DEFAULT_MEMORY_BYTES, |Bytes(bytes)| bytes);
    Ok(options)
}

#[cfg(test)]
mod tests {
    use leafpress_lab::cache::Work;

    use super::options;
    use crate::advise::args::tests::parsed;

    #[test]
    fn a_trace_needs_neither_sample_nor_device() {
        let args = parsed("--trace t.lis --memory 1G --trace-format arc").unwrap();
        let options = options(&args, "t.lis".as_ref()).unwrap();
        assert!(options.engines.is_empty() && options.mrc.is_some());
        assert_eq!(options.memory_bytes, 1 << 30);
        assert!(matches!(
            options.work,
            Work::Trace {
                format: Some(_),
                records: Some(_),
                ..
            }
        ));
    }

    #[test]
    fn rejects_page_options_together_with_a_trace() {
        for more in ["--device /mnt", "--page-bytes 4K", "--verify", "--data 1G"] {
            let error = parsed(&format!("--trace t.lis {more}")).unwrap_err().to_string();
            assert!(
                error.contains("--trace") && error.contains("cannot be used with"),
                "{error}"
            );
        }
        for more in ["--distribution 20,80", "--device-us 5", "--quick", "--sample-bytes 8M"] {
            let args = parsed(&format!("--trace t.lis {more}")).unwrap();
            assert!(options(&args, "t.lis".as_ref()).is_err(), "{more}");
        }
        let two = parsed("a b --trace t.lis").unwrap();
        assert!(options(&two, "t.lis".as_ref()).is_err());
        let of_no_trace = parsed("a --device-us 1 --records tsv").unwrap().options(None);
        assert!(of_no_trace.unwrap_err().to_string().contains("--trace"));
        let bad = parsed("--trace t.lis --trace-format u64le").unwrap();
        assert!(options(&bad, "t.lis".as_ref()).is_err());
    }
}
