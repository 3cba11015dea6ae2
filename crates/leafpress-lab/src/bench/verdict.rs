//! Verdict of a benchmark: each of our trees vs another index, or the fastest and the smallest index.

use leafpress::Codec;

use super::compare::per_record;
use super::{Builtin, Comparison, Input, Line, Outcome};
use crate::report::numbers::{mops, three_digits};
use crate::report::verdict::{Noun, against, change, ratio};

impl Comparison {
    /// Compares our trees with the uncompressed one, or with the fastest other index if there is none. Where nothing of
    /// ours can be compared: the fastest, and the one with the least memory.
    pub fn verdicts(&self) -> Vec<String> {
        let workloads = self.workloads();
        let several = workloads.len() > 1;
        let of = |workload: &String| {
            let found = self.of_workload(workload);
            let prefix = if several {
                format!("{workload}: ")
            } else {
                String::new()
            };
            found.into_iter().map(move |verdict| format!("{prefix}{verdict}"))
        };
        workloads.iter().flat_map(of).collect()
    }

    fn of_workload(&self, workload: &str) -> Vec<String> {
        let measured = || self.of(workload).filter(|line| line.median().is_some());
        let raw = measured().find(|line| codec(line) == Some(Codec::None));
        // An index that stores nothing is not compared.
        let others = measured().filter(|line| {
            let is_dummy = matches!(line.options.input, Input::Builtin(Builtin::Dummy));
            codec(line).is_none() && !is_dummy
        });
        let fastest = others.max_by(|one, other| throughput(one).total_cmp(&throughput(other)));
        if let Some(other) = raw.or(fastest) {
            let trees = measured().filter(|line| codec(line).is_some() && !std::ptr::eq(*line, other));
            let verdicts: Vec<String> = trees.filter_map(|line| compared(line, other)).collect();
            if !verdicts.is_empty() {
                return verdicts;
            }
        }
        let Some(fastest) = measured().max_by(|one, other| throughput(one).total_cmp(&throughput(other))) else {
            return Vec::new();
        };
        let sized = measured().filter_map(|line| Some((line, memory(line)?.0)));
        let smallest = sized.min_by(|(_, one), (_, other)| one.total_cmp(other));
        let smallest = smallest
            .map(|(line, _)| line)
            .filter(|line| !std::ptr::eq(*line, fastest));
        let is_alone = measured().nth(1).is_none();
        let fastest = alone(fastest, if is_alone { "" } else { "is the fastest" });
        let smallest = smallest.and_then(|line| alone(line, "uses the least memory"));
        fastest.into_iter().chain(smallest).collect()
    }
}

/// The codec of one of our trees.
fn codec(line: &Line) -> Option<Codec> {
    match line.options.input {
        Input::Builtin(Builtin::Leafpress(codec)) => Some(codec),
        _ => None,
    }
}

fn throughput(line: &Line) -> f64 {
    line.median().map_or(0.0, Outcome::throughput)
}

/// Bytes per record, and their kind.
fn memory(line: &Line) -> Option<(f64, &'static str)> {
    let outcome = line.median()?;
    let held = per_record(outcome, |load| load.held_bytes).map(|bytes| (bytes, "held"));
    held.or_else(|| per_record(outcome, |load| load.resident.bytes()).map(|bytes| (bytes, "resident")))
}

/// The figures of one index; `what` says why it is named.
fn alone(line: &Line, what: &str) -> Option<String> {
    let outcome = line.median()?;
    let name = line.options.input.short_name();
    let subject = if what.is_empty() {
        name
    } else {
        format!("{name} {what}")
    };
    let mut figures = vec![format!("{} Mops/s", mops(outcome.throughput()))];
    let p99 = outcome.latencies.as_ref().and_then(|latencies| latencies.all.as_ref());
    figures.extend(p99.map(|latency| format!("99% within {} us", three_digits(latency.p99_ns as f64 / 1e3))));
    figures.extend(memory(line).map(|(bytes, what)| format!("{bytes:.0} bytes {what} per record")));
    Some(format!("{subject}: {}.", figures.join(", ")))
}

fn compared(line: &Line, other: &Line) -> Option<String> {
    let (mine, theirs) = (line.median()?, other.median()?);
    let held = |outcome| per_record(outcome, |load| load.held_bytes);
    let resident = |outcome| per_record(outcome, |load| load.resident.bytes());
    let memory = ratio(held(mine), held(theirs)).or_else(|| ratio(resident(mine), resident(theirs)));
    let is_reads = line.options.ratios.read >= 1.0;
    let noun = if is_reads {
        "reads per second"
    } else {
        "operations per second"
    };
    let speed = ratio(Some(mine.throughput()), Some(theirs.throughput()));
    against(
        &line.options.input.short_name(),
        &other.options.input.short_name(),
        [
            memory.map(|ratio| change(ratio, Noun::Quantity("memory"))),
            speed.map(|ratio| change(ratio, Noun::Number(noun))),
        ],
    )
}
