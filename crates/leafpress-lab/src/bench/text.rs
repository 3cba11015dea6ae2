//! The report as text: PiBench's layout, line for line, so that scripts that read it go on working; then what PiBench
//! does not have.
//!
//! The lines of the first part are those of PiBench's `src/benchmark.cpp`. The second part repeats none of their
//! labels.

use std::fmt::Write;

use super::{Environment, Law, Load, Mode, Operation, Options, Outcome, Report, Resident};
use crate::core::latency::Latency;

/// The line PiBench writes when the load is skipped.
pub const LOAD_SKIPPED: &str = "Load skipped.\n";
/// The line PiBench writes before the load.
pub const LOAD_STARTED: &str = "Loading started.\n";
/// The line PiBench writes once the load was read back.
pub const LOAD_VERIFIED: &str = "Load verified; benchmark started.\n";

/// Formats `Environment:` and `Benchmark Options:`.
pub fn head(environment: &Environment, options: &Options) -> String {
    let e = environment;
    let mut text = format!(
        "Environment:\n\tTime: {}\n\tCPU: {} * {}\n\tCPU Cache: {}\n\tKernel: {}\n",
        e.time, e.cpus, e.cpu_model, e.cpu_cache, e.kernel
    );
    let o = options;
    let _ = writeln!(text, "Benchmark Options:");
    let _ = writeln!(text, "\tTarget: {}", o.input);
    let _ = writeln!(text, "\t# Records: {}", o.records);
    let _ = writeln!(text, "\t# Threads: {}", o.threads);
    let _ = match o.mode {
        Mode::Operation => writeln!(text, "\t# Operations: {}", o.operations),
        Mode::Time => writeln!(text, "\tDuration (s): {}", general(o.seconds)),
    };
    let _ = writeln!(text, "\tSampling: {} ms", o.sampling_ms);
    let _ = writeln!(text, "\tLatency: {}", general(o.latency_sampling));
    let _ = writeln!(text, "\tKey prefix: {}", o.key_prefix);
    let (mut key_size, mut value_size) = (o.key_size.to_string(), o.value_size.to_string());
    if let Some(shape) = o.key_shape {
        let up_to = if o.fixed_lengths().is_some() { "" } else { "up to " };
        key_size = format!("{up_to}{key_size} ({shape})");
    }
    if let Some(dump) = &o.dump {
        key_size = format!("the records' own, from {dump}");
        value_size = "the records' own".into();
    }
    let _ = writeln!(text, "\tKey size: {key_size}");
    let _ = writeln!(text, "\tValue size: {value_size}");
    let _ = writeln!(text, "\tRandom seed: {}", o.seed);
    for (name, value) in [
        ("Concurrency Control Protocol", o.protocol),
        ("Clock type", o.clock),
        ("Garbage Collector", o.garbage_collector),
    ] {
        let _ = value.map_or(Ok(()), |value| writeln!(text, "\t{name}: {value}"));
    }
    let _ = writeln!(text, "\tKey distribution: {}", distribution(o));
    let _ = writeln!(text, "\tScan size: {}", o.scan_size);
    let r = o.ratios;
    let _ = writeln!(text, "\tOperations ratio:");
    for (name, share) in [
        ("Read", r.read),
        ("Insert", r.insert),
        ("Update", r.update + r.read_modify_write),
        ("Delete", r.remove),
        ("Scan", r.scan),
    ] {
        let _ = writeln!(text, "\t\t{name}: {}", general(share));
    }
    text
}

/// The key distribution as PiBench names it, with its parameter.
pub(super) fn distribution(options: &Options) -> String {
    let skew = options.skew;
    match options.law {
        Law::Uniform => "UNIFORM".into(),
        Law::SelfSimilar => format!("SELFSIMILAR({skew:.6})"),
        Law::Zipfian => format!("ZIPFIAN({skew:.6})"),
        Law::Latest => format!("LATEST({skew:.6})"),
        Law::HotSet => format!("HOTSET({},{})", options.hotset.0, options.hotset.1),
    }
}

/// Formats the line PiBench writes after the load.
pub fn loaded(load: &Load) -> String {
    format!("Loading finished in {} milliseconds\n", general(load.milliseconds))
}

/// Formats the lines from `Run time:` to `Latencies`: PiBench's part of what was measured.
pub fn results(outcome: &Outcome) -> String {
    let per_second = |operations| outcome.per_second(operations);
    let total = outcome.total();
    let mut text = format!("\tRun time: {:.4} milliseconds\n", outcome.run_milliseconds);
    let _ = writeln!(text, "Results:\n\tOperations: {}", total.completed);
    let _ = writeln!(text, "\tThroughput:");
    let _ = writeln!(text, "\t- Completed: {:.4} ops/s", per_second(total.completed));
    let _ = writeln!(text, "\t- Succeeded: {:.4} ops/s", per_second(total.succeeded));
    let _ = writeln!(text, "\tBreakdown:");
    for operation in [
        Operation::Insert,
        Operation::Read,
        Operation::Update,
        Operation::Remove,
        Operation::Scan,
    ] {
        let mut counts = outcome.of(operation);
        if operation == Operation::Update {
            // PiBench has no line for an update that reads before.
            let both = outcome.of(Operation::ReadModifyWrite);
            counts.completed += both.completed;
            counts.succeeded += both.succeeded;
        }
        let name = operation.name();
        let _ = writeln!(text, "\t- {name} completed: {:.4} ops/s", per_second(counts.completed));
        let _ = writeln!(text, "\t- {name} succeeded: {:.4} ops/s", per_second(counts.succeeded));
    }
    if let Some(hardware) = &outcome.hardware {
        let _ = writeln!(text, "PCM Metrics:");
        let _ = writeln!(text, "\tL3 misses: {}", hardware.l3_misses);
        let _ = writeln!(text, "\tDRAM Reads (bytes): {}", hardware.dram_read_bytes);
        let _ = writeln!(text, "\tDRAM Writes (bytes): {}", hardware.dram_write_bytes);
        let _ = writeln!(text, "\tNVM Reads (bytes): {}", hardware.nvm_read_bytes);
        let _ = writeln!(text, "\tNVM Writes (bytes): {}", hardware.nvm_write_bytes);
    }
    let _ = writeln!(text, "Samples:");
    for sample in &outcome.samples {
        let _ = writeln!(text, "\t{}", sample.operations);
    }
    if let Some(latencies) = &outcome.latencies {
        let all = latencies.all.as_ref();
        let observed = all.map_or(0, |all| all.samples);
        let _ = writeln!(text, "Latencies ({observed} operations observed):");
        for (name, ns) in all.map(quantiles).into_iter().flatten() {
            let _ = writeln!(text, "\t{name}: {ns}");
        }
    }
    text
}

fn quantiles(latency: &Latency) -> [(&'static str, u64); 8] {
    [
        ("min", latency.min_ns),
        ("50%", latency.p50_ns),
        ("90%", latency.p90_ns),
        ("99%", latency.p99_ns),
        ("99.9%", latency.p999_ns),
        ("99.99%", latency.p9999_ns),
        ("99.999%", latency.p99999_ns),
        ("max", latency.max_ns),
    ]
}

/// Formats the extensions to PiBench's report: latencies by operation and over time, memory, CPU time, checks,
/// repetitions.
pub fn extras(report: &Report, outcome: &Outcome) -> String {
    let mut text = String::new();
    latencies(&mut text, report, outcome);
    if report.options.ratios.scan > 0.0 {
        let errors = &outcome.scan_errors;
        let scans = outcome.of(Operation::Scan).completed;
        let _ = writeln!(
            text,
            "Scan check:\n\tRecords returned: {}\n\tWrong scans: {} of {scans}\n\t\ttoo many records {}, keys not \
             ascending {}\n\t\tfirst key before the start {}",
            outcome.scanned_records, errors.scans, errors.too_many, errors.not_ascending, errors.before_start
        );
    }
    if outcome.load.as_ref().is_some_and(|load| load.in_bulk) {
        text.push_str("Load: in the order of the keys, in bulk (Tree::extend)\n");
    }
    memory(&mut text, outcome);
    processor(&mut text, outcome);
    if let Some(spread) = report.throughput().filter(|_| report.outcomes.len() > 1) {
        let _ = writeln!(text, "Repetitions (ops/s; the report above is the median's):");
        for outcome in &report.outcomes {
            let _ = writeln!(text, "\t{:.4}", outcome.throughput());
        }
        let _ = writeln!(
            text,
            "\tMedian {:.4}\n\tMinimum {:.4}, maximum {:.4}\n\tRange {:.1}% of the median",
            spread.median,
            spread.least,
            spread.most,
            spread.range_pct()
        );
    }
    text
}

fn latencies(text: &mut String, report: &Report, outcome: &Outcome) {
    let Some(latencies) = &outcome.latencies else { return };
    let line = |name: &str, latency: &Latency| {
        let figures = quantiles(latency).map(|(name, ns)| format!("{name} {ns}"));
        let (low, high) = figures.split_at(4);
        format!(
            "\t{name}: observed {}, mean {:.0}\n\t\t{}\n\t\t{}\n",
            latency.samples,
            latency.mean_ns,
            low.join(", "),
            high.join(", ")
        )
    };
    if let Some(rate) = report.options.rate {
        let _ = writeln!(
            text,
            "Open loop:\n\tIntended: {} ops/s\n\tAchieved: {:.4} ops/s\n\tAll latencies count from the intended start.",
            general(rate),
            outcome.throughput()
        );
    }
    if !latencies.by_operation.is_empty() {
        text.push_str("Operation latencies (ns):\n");
        for (operation, latency) in &latencies.by_operation {
            text.push_str(&line(operation.name(), latency));
        }
    }
    if let Some(service) = &latencies.service {
        text.push_str("Service times (ns, from the actual start):\n");
        text.push_str(&line("All", service));
    }
    if !latencies.windows.is_empty() {
        text.push_str("Over time (ms from the start: observed, 50%, 99%, max in ns):\n");
        for window in &latencies.windows {
            let _ = writeln!(
                text,
                "\t{}: {} {} {} {}",
                window.start_ms, window.samples, window.p50_ns, window.p99_ns, window.max_ns
            );
        }
    }
}

fn memory(text: &mut String, outcome: &Outcome) {
    let Some(load) = outcome.load.as_ref().filter(|load| load.records > 0) else {
        return;
    };
    let per_record = |bytes: u64| bytes as f64 / load.records as f64;
    text.push_str("Memory after the load (bytes per record):\n");
    let _ = match &load.resident {
        Resident::Growth(bytes) => writeln!(text, "\tResident growth: {:.1}", per_record(*bytes)),
        Resident::Unknown(why) => writeln!(text, "\tResident growth: unknown, {why}"),
    };
    if let Some(bytes) = load.held_bytes {
        let _ = writeln!(text, "\tHeld by its own accounting: {:.1}", per_record(bytes));
    }
    if load.wrong_values > 0 {
        let _ = writeln!(
            text,
            "Read-back:\n\tWrong values: {} of {}",
            load.wrong_values, load.records
        );
    }
}

fn processor(text: &mut String, outcome: &Outcome) {
    let cpu = &outcome.cpu;
    let _ = writeln!(
        text,
        "Processor:\n\tUser seconds: {:.4}\n\tSystem seconds: {:.4}\n\tCores busy: {:.2}\n\tContext switches: {} \
         voluntary\n\t\t{} involuntary",
        cpu.user_seconds,
        cpu.system_seconds,
        outcome.cores(),
        cpu.voluntary_switches,
        cpu.involuntary_switches
    );
    if let Some(hardware) = &outcome.hardware {
        let _ = writeln!(
            text,
            "\tInstructions: {}\n\tCycles: {}",
            hardware.instructions, hardware.cycles
        );
    }
}

/// Formats the complete report, as in a file.
pub fn whole(report: &Report) -> String {
    let Some(outcome) = report.median() else {
        return head(&report.environment, &report.options);
    };
    let mut text = head(&report.environment, &report.options);
    match &outcome.load {
        None => text.push_str(LOAD_SKIPPED),
        Some(load) => {
            text.push_str(LOAD_STARTED);
            text.push_str(&loaded(load));
            text.push_str(LOAD_VERIFIED);
        }
    }
    text + &results(outcome) + &extras(report, outcome)
}

/// A number as formatted by C++ streams: six significant digits, no trailing zeros, an exponent when it is small or
/// large.
fn general(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits.to_owned()
        }
    };
    if (-4..6).contains(&exponent) {
        let decimals = usize::try_from(5 - exponent).unwrap_or(0);
        trimmed(&format!("{number:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
    }
}

#[cfg(test)]
#[path = "text_tests.rs"]
pub(super) mod tests;
