//! Verdict of a run vs one without compression, and its caveats.

use leafpress::Codec;

use super::sweep::{Line, Sweep};
use super::{Outcome, Report};
use crate::core::about;
use crate::harness::machine_load;
use crate::report::numbers::{percent, thousands};

impl Sweep {
    /// The uncompressed run that a codec's runs are compared with: the one in its own table, if there is one.
    fn baseline(&self, codec: Codec) -> Option<&Outcome> {
        let raw = self.lines.iter().filter(|line| line.compressed_percent() == Some(0));
        let of_whom = |line: &&Line| match line.options.codec {
            own if own == codec => 0,
            Codec::None => 1,
            _ => 2,
        };
        let line = raw.filter(|line| line.report.is_some()).min_by_key(of_whom)?;
        line.report.as_ref().map(|report| &report.outcome)
    }

    /// Formats the gain of each codec at its best, a sentence each; its own figures if there is no uncompressed run.
    pub fn verdicts(&self) -> Vec<String> {
        let of_each = |describe: &dyn Fn(Codec) -> Option<String>| {
            self.codecs().into_iter().filter_map(describe).collect::<Vec<_>>()
        };
        let gains = of_each(&|codec| self.verdict(codec, self.baseline(codec)?));
        match gains.is_empty() {
            false => gains,
            true => of_each(&|codec| self.alone(codec)),
        }
    }

    fn alone(&self, codec: Codec) -> Option<String> {
        let runs = self
            .of_codec(codec)
            .filter_map(|line| Some((line, line.us_per_page()?)));
        let (line, us) = runs.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let outcome = &line.report.as_ref()?.outcome;
        let what = match line.compressed_percent() {
            Some(0) => "without compression".to_owned(),
            _ => format!("{codec}, {} of the memory compressed", share(line, outcome)),
        };
        Some(format!(
            "{what}: {us:.2} us per page, {}% hits, {} pages per second.",
            percent(outcome.hit_ratio(), 1),
            thousands(outcome.throughput().round() as u64)
        ))
    }

    fn verdict(&self, codec: Codec, raw: &Outcome) -> Option<String> {
        let compressing = self.of_codec(codec).filter(|line| line.compressed_percent() != Some(0));
        let best = compressing.filter_map(|line| Some((line, line.us_per_page()?)));
        let (line, us) = best.min_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let (report, raw_us) = (line.report.as_ref()?, raw.us_per_page()?);
        let change = us / raw_us.max(1e-9) - 1.0;
        let word = if change > 0.0 { "more" } else { "less" };
        Some(format!(
            "{codec}, {} of the memory compressed: {}% {word} time per page than without compression ({us:.2} us, \
             {raw_us:.2} without); {}% hits, {}% without.",
            share(line, &report.outcome),
            percent(change.abs(), 0),
            percent(report.outcome.hit_ratio(), 1),
            percent(raw.hit_ratio(), 1)
        ))
    }

    /// Returns the caveats of the figures.
    pub fn cautions(&self) -> Vec<String> {
        let reports = || self.lines.iter().filter_map(|line| line.report.as_ref());
        let busiest = reports()
            .filter_map(|report| report.outcome.other_cores)
            .reduce(f64::max);
        let busy = machine_load::caution(busiest, "hit ratios");
        // The runs of a sweep have one budget; of the one that is most over it the table has the same figure.
        let most = reports().max_by_key(|report| report.outcome.most_resident_bytes());
        let over = most.and_then(over_budget);
        busy.into_iter().chain(over).collect()
    }
}

/// The share of the memory for compressed pages.
fn share(line: &Line, outcome: &Outcome) -> String {
    match line.compressed_percent() {
        Some(percent) => format!("{percent}%"),
        None => format!("{}% (found)", percent(outcome.compressed_share(), 0)),
    }
}

/// Why more is resident than the budget, if more is.
pub(super) fn over_budget(report: &Report) -> Option<String> {
    let budget = report.options.budget_bytes as f64;
    let resident = report.outcome.most_resident_bytes()? as f64;
    let held = report.outcome.held.bytes_held as f64;
    (resident > budget && resident > held).then(|| {
        format!(
            "With {} the process grew by {}% of the budget, though the pool held {}% of it: the other {} are thread \
             stacks, codec contexts, and memory cached by the allocator. They do not depend on the budget, so they \
             matter with a small one.",
            report.options.codec,
            percent(resident / budget, 0),
            percent(held / budget, 0),
            about(resident - held)
        )
    })
}

#[cfg(test)]
mod tests {
    use leafpress_pages::pool::RawShare;

    use super::super::fixtures;
    use super::*;

    fn sweep(reports: impl IntoIterator<Item = Report>) -> Sweep {
        let lines = reports.into_iter().flat_map(|report| Sweep::of(report).lines);
        Sweep {
            lines: lines.collect(),
            cancelled: false,
        }
    }

    #[test]
    fn reports_a_gain_only_with_an_uncompressed_run() {
        let lz4 = || fixtures::report(fixtures::LZ4, RawShare::Fixed { raw_percent: 40 });
        let alone = sweep([lz4()]).verdicts().join("\n");
        assert!(
            alone.starts_with("lz4, 60% of the memory compressed: 1.50 us per page, 80.0% hits"),
            "{alone}"
        );
        let raw = fixtures::report(Codec::None, RawShare::Fixed { raw_percent: 100 });
        let sentences = sweep([raw, lz4()]).verdicts();
        let [verdict] = sentences.as_slice() else {
            panic!("{sentences:?}")
        };
        assert!(
            verdict.starts_with("lz4, 60% of the memory compressed: 92% less time per page"),
            "{verdict}"
        );
        assert!(verdict.contains("1.50 us, 19.50 without"), "{verdict}");
    }

    #[test]
    fn compares_a_codec_with_the_raw_run_of_its_own_table() {
        let zstd: Codec = "zstd:1".parse().unwrap();
        let runs = [fixtures::LZ4, zstd].map(|codec| {
            [100, 40].map(|raw_percent| {
                let mut report = fixtures::report(codec, RawShare::Fixed { raw_percent });
                if let Some(acquire) = report.outcome.acquire.as_mut().filter(|_| codec == zstd) {
                    acquire.mean_ns *= 2.0;
                }
                report
            })
        });
        let sweep = sweep(runs.into_iter().flatten());
        for (codec, sentences) in [fixtures::LZ4, zstd].into_iter().zip(sweep.verdicts()) {
            let own = sweep.of_codec(codec).find(|line| line.compressed_percent() == Some(0));
            let raw_us = own.and_then(Line::us_per_page).unwrap();
            assert!(sentences.contains(&format!("{raw_us:.2} without")), "{sentences}");
        }
    }

    #[test]
    fn reports_other_work_and_memory_past_the_budget() {
        let mut raw = fixtures::report(Codec::None, RawShare::Fixed { raw_percent: 100 });
        raw.options.budget_bytes = 65_000_000;
        for sample in &mut raw.outcome.samples {
            sample.resident_bytes = sample.resident_bytes.map(|bytes| bytes - 1);
        }
        let mut report = fixtures::report(fixtures::LZ4, RawShare::Adaptive);
        report.outcome.other_cores = Some(0.01);
        assert!(sweep([report.clone()]).cautions().is_empty());
        report.outcome.other_cores = Some(crate::core::resources::cores() as f64);
        report.options.budget_bytes = 65_000_000;
        // Of several runs the one that grew most, with its name.
        let sentences = sweep([raw, report]).cautions().join("\n");
        assert!(
            sentences.contains("The machine was busy")
                && sentences.contains("With lz4 the process grew by 101% of the budget"),
            "{sentences}"
        );
    }
}
