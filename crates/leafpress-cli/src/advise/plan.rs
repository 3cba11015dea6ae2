//! Advice on what to buy for a number of bytes of records: memory, compression, or an SSD.

use clap::Args;
use leafpress_console::cache;
use leafpress_lab::core::corpus::{RecordFormat, Source};
use leafpress_lab::plan::{self, Options, Prices, Rate, Requests};
use leafpress_lab::{Bytes, LabError};

use super::{AdviseArgs, failure};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// Bytes of a sample with `--quick`.
const QUICK_BYTES: u64 = 8 << 20;

/// Arguments of `leafpress advise --total`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plan of memory and SSD")]
pub struct PlanArgs {
    /// Plan for records of this many bytes of keys and values, of which SAMPLE has some (with --records): compares more
    /// memory, compression and an SSD
    #[arg(
        long,
        value_name = "BYTES",
        allow_hyphen_values = true,
        group = "priced",
        conflicts_with_all = [
            "data", "access_bytes", "block_bytes", "page_bytes", "codecs", "device", "device_json", "fio_json",
            "skip_junk", "verify_shares", "verify_seconds", "workers", "hit_us", "background_pct", "verify", "redis",
            "compute_share_pct", "cores_saved_pct", "cores", "total_cost",
        ]
    )]
    pub(super) total: Option<Bytes>,
    // Not `requires`: clap does not check it together with the other's conflicts.
    /// SSD of a cache's second tier [default: as much as the records need]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    ssd: Option<Bytes>,
    /// Requests per second, as in 50K/s [default: 10K/s]
    #[arg(long, value_name = "OPS_PER_S", allow_hyphen_values = true)]
    ops: Option<Rate>,
    /// Overwrites, in percent of the requests [default: 0]
    #[arg(long, value_name = "PCT", allow_negative_numbers = true)]
    writes: Option<f64>,
    /// Percentage of the requests to be answered without the backend, of those that a cache of all records answers
    /// [default: 100]
    #[arg(long, value_name = "PCT", allow_negative_numbers = true)]
    hit_ratio: Option<f64>,
    /// Cost of a miss at the backend [default: 1000]
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    backend_us: Option<f64>,
    /// Cost of a GB of SSD over the period [default: 0.08]
    #[arg(long, value_name = "COST", allow_negative_numbers = true)]
    ssd_gb_cost: Option<f64>,
}

impl PlanArgs {
    /// Refuses options of a plan where there is none.
    pub(super) fn refuse_without_total(&self) -> Result<(), LabError> {
        let given = [
            ("ssd", self.ssd.is_some()),
            ("ops", self.ops.is_some()),
            ("writes", self.writes.is_some()),
            ("hit-ratio", self.hit_ratio.is_some()),
            ("backend-us", self.backend_us.is_some()),
            ("ssd-gb-cost", self.ssd_gb_cost.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(LabError::option(option, "requires --total (bytes of all records)")),
            None => Ok(()),
        }
    }
}

/// Runs the command.
pub fn run(args: &AdviseArgs, total: Bytes) -> Result<(), Failure> {
    let options = options(args, total)?;
    if let Some(out) = &args.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    if !args.quiet {
        bar.start(0, 1, "reading".into());
    }
    let plan = plan::run(&options, &cancel, &mut |event| {
        if !args.quiet {
            bar.advance(event.share);
            bar.set_text(event.what.into());
        }
    });
    bar.finish();
    let plan = plan.map_err(|error| failure(&error))?;
    output::show(&plan::document(&plan), &crate::command_line(), args.out.as_deref())
}

fn options(args: &AdviseArgs, total: Bytes) -> Result<Options, Failure> {
    let given = &args.plan;
    let [sample] = args.sample.as_slice() else {
        return Err(Failure::bad_input(
            "--total: name exactly one SAMPLE, which has records",
        ));
    };
    let data = Source::named(sample.as_os_str()).map_err(|e| Failure::bad_input(format!("SAMPLE: {e}")))?;
    let Some(format) = args.records.records.as_deref() else {
        return Err(Failure::bad_input(
            "--total: requires --records (the format of the sample: jsonl:/POINTER, csv:COLUMN, stanzas:FIELD, tsv)",
        ));
    };
    let format = cache::parse::<RecordFormat>("records", format)?;
    let Some(Bytes(memory_bytes)) = args.memory else {
        return Err(Failure::bad_input("--total: requires --memory (the memory at hand)"));
    };
    let mut options = Options::new(data, format, total.0, memory_bytes);
    if args.quick {
        options.sample_bytes = QUICK_BYTES;
    }
    if let Some(Bytes(bytes)) = args.sample_bytes {
        options.sample_bytes = bytes;
    }
    options.requests = match (&args.records.trace, args.distribution()) {
        (Some(_), Some(_)) => {
            return Err(Failure::bad_input(
                "--distribution: cannot be used with --trace, which has its own",
            ));
        }
        (Some(path), None) if !path.exists() => {
            return Err(Failure::bad_input(format!(
                "--trace: {} does not exist",
                path.display()
            )));
        }
        (Some(path), None) => Requests::Trace {
            path: path.clone(),
            format: args
                .trace_format
                .as_deref()
                .map(|word| cache::parse("trace-format", word))
                .transpose()?,
        },
        (None, _) if args.trace_format.is_some() => {
            return Err(Failure::bad_input("--trace-format: requires --trace (the requests)"));
        }
        (None, Some(distribution)) => {
            Requests::Distribution(cache::parse("distribution", &distribution.to_string_lossy())?)
        }
        (None, None) => {
            options.assumed.push("distribution");
            options.requests
        }
    };
    options.ssd_bytes = given.ssd.map(|Bytes(bytes)| bytes);
    if given.ssd.is_none() {
        options.assumed.push("ssd");
    }
    let mut assumed = std::mem::take(&mut options.assumed);
    let mut set = |flag: &'static str, value: Option<f64>, option: &mut f64| match value {
        Some(value) => *option = value,
        None => assumed.push(flag),
    };
    set("ops", given.ops.map(|Rate(ops)| ops), &mut options.ops);
    set("writes", given.writes.map(|pct| pct / 100.0), &mut options.writes);
    set("device-us", args.device_us(), &mut options.device_us);
    set("backend-us", given.backend_us, &mut options.backend_us);
    let Prices {
        memory_gib,
        ssd_gb,
        core,
    } = &mut options.prices;
    set("memory-gib-cost", args.cost.memory_gib_cost(), memory_gib);
    set("ssd-gb-cost", given.ssd_gb_cost, ssd_gb);
    set("core-cost", args.cost.core_cost(), core);
    options.assumed = assumed;
    options.need = given.hit_ratio.map_or(options.need, |pct| pct / 100.0);
    options.validate().map_err(|error| failure(&error))?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use leafpress_lab::plan::Requests;

    use super::*;
    use crate::advise::args::tests::parsed;

    fn planned(words: &str) -> Result<Options, String> {
        let args = parsed(words).map_err(|e| e.to_string())?;
        let total = args.plan.total.ok_or("no total")?;
        options(&args, total).map_err(|failure| format!("{failure:?}"))
    }

    const QUESTION: &str = "characters --records jsonl:/code --total 40G --memory 16G";

    #[test]
    fn the_planners_question_has_defaults_that_are_said() {
        let options = planned(QUESTION).unwrap();
        assert_eq!((options.total_bytes, options.memory_bytes), (40 << 30, 16 << 30));
        assert_eq!((options.ssd_bytes, options.need), (None, 1.0));
        let assumed = ["distribution", "ssd", "ops", "writes", "device-us", "backend-us"];
        assert_eq!(options.assumed[..6], assumed);
        assert_eq!(options.prices, Prices::ASSUMED);
    }

    #[test]
    fn what_is_given_is_used() {
        let more = "--distribution zipfian:1.1 --ssd 200G --ops 50K/s --writes 5 --device-us 80 --backend-us 500 \
                    --hit-ratio 95 --quick --memory-gib-cost 3 --ssd-gb-cost 0.1 --core-cost 20";
        let options = planned(&format!("{QUESTION} {more}")).unwrap();
        assert_eq!(options.requests.to_string(), "zipfian:1.1");
        assert_eq!((options.ssd_bytes, options.ops), (Some(200 << 30), 50_000.0));
        assert_eq!((options.writes, options.need), (0.05, 0.95));
        assert_eq!((options.device_us, options.backend_us), (80.0, 500.0));
        let Prices {
            memory_gib,
            ssd_gb,
            core,
        } = options.prices;
        assert_eq!([memory_gib, ssd_gb, core], [3.0, 0.1, 20.0]);
        assert!(options.assumed.is_empty() && options.sample_bytes == QUICK_BYTES);
        let trace = std::env::current_exe().unwrap();
        let words = format!(
            "{QUESTION} --trace {} --trace-format csv --device-us 80",
            trace.display()
        );
        let of_trace = planned(&words).unwrap();
        assert!(matches!(of_trace.requests, Requests::Trace { format: Some(_), .. }));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (words, expected) in [
            ("characters --total 40G --memory 16G", "--records"),
            ("characters --records jsonl:/code --total 40G", "--memory"),
            ("a b --records tsv --total 40G --memory 16G", "exactly one"),
            ("--trace t --records tsv --total 40G --memory 16G", "exactly one"),
            ("characters --records jsonl --total 40G --memory 16G", "records"),
        ] {
            let error = planned(words).unwrap_err();
            assert!(error.contains(expected), "{words}: {error}");
        }
        for (more, expected) in [
            ("--device /mnt", "--device"),
            ("--data-bytes 1G", "--data-bytes"),
            ("--page-bytes 8K", "--page-bytes"),
            ("--redis redis://a", "--redis"),
            ("--cores 4", "--cores"),
            ("--verify", "--verify"),
            ("--ops many", "50K/s"),
            ("--ops -1", "--ops"),
            ("--ssd 1K", "--ssd"),
            ("--hit-ratio 0", "--hit-ratio"),
            ("--hit-ratio 101", "--hit-ratio"),
            ("--writes 200", "--writes"),
            ("--backend-us -1", "--backend-us"),
            ("--ssd-gb-cost -1", "--ssd-gb-cost"),
            ("--distribution latest", "--distribution"),
            ("--distribution trace:t", "--distribution"),
            ("--distribution uniform --trace t", "--trace"),
            ("--trace /missing", "/missing"),
            ("--trace-format csv", "--trace"),
            ("--sample-bytes 1K", "--sample-bytes"),
        ] {
            let error = planned(&format!("{QUESTION} {more}")).unwrap_err();
            assert!(error.contains(expected), "{more}: {error}");
        }
        let of_pages = parsed("a --device-us 1 --ops 5").unwrap();
        let error = of_pages.plan.refuse_without_total().unwrap_err().to_string();
        assert!(error.contains("--total"), "{error}");
    }
}
