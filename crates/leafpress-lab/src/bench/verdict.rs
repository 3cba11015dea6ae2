//! What a comparison of indexes came to, in a line for each of our trees.

use leafpress::Codec;

use super::compare::per_record;
use super::{Builtin, Comparison, Input, Line, Outcome};
use crate::report::verdict::{self, Noun, against, change, ratio};

impl Comparison {
    /// Our trees beside the one that compresses nothing, or beside the fastest other index where there is none.
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

    /// The verdicts as lines of text.
    pub fn verdict_text(&self) -> String {
        verdict::text(&self.verdicts())
    }

    fn of_workload(&self, workload: &str) -> Vec<String> {
        let codec = |line: &Line| match line.options.input {
            Input::Builtin(Builtin::Leafpress(codec)) => Some(codec),
            _ => None,
        };
        let throughput = |line: &Line| line.median().map_or(0.0, Outcome::throughput);
        let measured = || self.of(workload).filter(|line| line.median().is_some());
        let raw = measured().find(|line| codec(line) == Some(Codec::None));
        // What stores nothing is no index to be compared with.
        let others = measured().filter(|line| {
            let is_dummy = matches!(line.options.input, Input::Builtin(Builtin::Dummy));
            codec(line).is_none() && !is_dummy
        });
        let fastest = others.max_by(|one, other| throughput(one).total_cmp(&throughput(other)));
        let Some(other) = raw.or(fastest) else {
            return Vec::new();
        };
        let trees = measured().filter(|line| codec(line).is_some() && !std::ptr::eq(*line, other));
        let verdict = |line| beside(line, other);
        trees.filter_map(verdict).collect()
    }
}

fn beside(line: &Line, other: &Line) -> Option<String> {
    let (mine, theirs) = (line.median()?, other.median()?);
    let held = |outcome| per_record(outcome, |load| load.held_bytes);
    let resident = |outcome| per_record(outcome, |load| load.resident_growth_bytes);
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
