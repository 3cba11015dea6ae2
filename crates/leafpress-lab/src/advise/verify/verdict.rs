//! Conclusions of a verification, in sentences.

use super::{Comparison, Verification};
use crate::advise::narrative::{percent, us};
use crate::model::WITHIN_ERROR;

/// A codec's best run, and the run without compression.
struct Measured<'v> {
    codec: &'v str,
    raw: &'v Comparison,
    best: &'v Comparison,
}

impl<'v> Measured<'v> {
    /// `None` when nothing can be compared.
    fn of(verification: &'v Verification, codec: &'v str) -> Option<Self> {
        let runs = || verification.comparisons.iter().filter(|one| one.codec == codec);
        let raw = runs().find(|one| one.share_pct == Some(0))?;
        let compressing = runs().filter(|one| one.share > 0.0);
        let best = compressing.min_by(|one, other| one.us_per_page.total_cmp(&other.us_per_page))?;
        Some(Self { codec, raw, best })
    }

    fn gain(&self) -> f64 {
        1.0 - self.best.us_per_page / self.raw.us_per_page.max(1e-9)
    }

    fn predicted_gain(&self) -> f64 {
        1.0 - self.best.predicted.us_per_page / self.raw.predicted.us_per_page.max(1e-9)
    }

    fn sentence(&self) -> String {
        let (gain, predicted) = (self.gain(), self.predicted_gain());
        let pays = (gain >= WITHIN_ERROR, predicted >= WITHIN_ERROR);
        let judged = match pays {
            (true, true) => "confirms that it pays",
            (false, false) => "confirms that it does not pay",
            (false, true) => "does NOT confirm that it pays",
            (true, false) => "does NOT confirm that it does not pay",
        };
        format!(
            "Measured: {} with {}% of the memory, {} us per page; uncompressed, {} us: {}. This {judged} ({} \
             predicted).",
            self.codec,
            percent(self.best.share, 0),
            us(self.best.us_per_page),
            us(self.raw.us_per_page),
            less_or_more(gain),
            less_or_more(predicted)
        )
    }
}

fn less_or_more(gain: f64) -> String {
    let word = if gain < 0.0 { "more" } else { "less" };
    format!("{}% {word}", percent(gain.abs(), 1))
}

/// A sentence for each codec: its gain, and whether that confirms the advice; and which of several is the fastest.
pub(in crate::advise) fn sentences(verification: &Verification) -> Vec<String> {
    let mut codecs: Vec<&str> = verification.comparisons.iter().map(|one| one.codec.as_str()).collect();
    codecs.dedup();
    let measured = codecs.iter().filter_map(|codec| Measured::of(verification, codec));
    let mut measured: Vec<Measured> = measured.collect();
    let mut sentences: Vec<String> = measured.iter().map(Measured::sentence).collect();
    measured.sort_by(|one, other| one.best.us_per_page.total_cmp(&other.best.us_per_page));
    if let [first, second, ..] = measured.as_slice() {
        let more = second.best.us_per_page / first.best.us_per_page.max(1e-9) - 1.0;
        sentences.push(format!(
            "Fastest: {}; {} takes {}% longer{}.",
            first.codec,
            second.codec,
            percent(more, 1),
            if more < WITHIN_ERROR {
                ", which is within the error"
            } else {
                ""
            }
        ));
    }
    if sentences.is_empty() && !verification.comparisons.is_empty() {
        sentences.push(
            "No gain was measured: that requires a run with share 0 and one with another share (--verify-shares)."
                .into(),
        );
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::Cold;
    use crate::model::Point;

    /// Runs of `(codec, share in percent, predicted us, measured us)`.
    fn verification(runs: &[(&str, u8, f64, f64)]) -> Verification {
        let run = |&(codec, share_pct, predicted_us, measured_us): &(&str, u8, f64, f64)| Comparison {
            codec: codec.into(),
            share_pct: Some(share_pct),
            share: f64::from(share_pct) / 100.0,
            device_us: 110.0,
            codec_us: Cold {
                compress_us: 10.0,
                decompress_us: 2.0,
            },
            predicted: Point {
                share: f64::from(share_pct) / 100.0,
                fits: 0.5,
                hit_ratio: 0.5,
                chance_compressed: 0.5,
                compressions: 0.5,
                us_per_page: predicted_us,
                pages_per_second: 1e6 / predicted_us,
            },
            hit_ratio: 0.5,
            us_per_page: measured_us,
            pages_per_second: 1e6 / measured_us,
        };
        Verification {
            pages: 1000,
            block_bytes: 8192,
            memory_bytes: 1 << 20,
            access: "uniform".into(),
            device_us: 110,
            hit_us: 0.2,
            seconds: 1.0,
            comparisons: runs.iter().map(run).collect(),
            failures: Vec::new(),
            interrupted: false,
        }
    }

    #[test]
    fn a_gain_is_confirmed_or_not() {
        let said = |raw, best| sentences(&verification(&[("lz4", 0, 100.0, raw), ("lz4", 60, 60.0, best)])).join(" ");
        assert_eq!(
            said(110.0, 66.0),
            "Measured: lz4 with 60% of the memory, 66.0 us per page; uncompressed, 110 us: 40.0% less. This confirms \
             that it pays (40.0% less predicted)."
        );
        assert!(
            said(100.0, 98.0).contains("2.0% less. This does NOT confirm that it pays"),
            "{}",
            said(100.0, 98.0)
        );
        assert!(
            said(100.0, 120.0).contains("20.0% more. This does NOT confirm"),
            "{}",
            said(100.0, 120.0)
        );
    }

    #[test]
    fn names_the_fastest_of_two_and_reports_too_few_runs() {
        let both = [
            ("lz4", 0, 100.0, 100.0),
            ("lz4", 60, 60.0, 66.0),
            ("zstd:1", 0, 100.0, 100.0),
            ("zstd:1", 60, 61.0, 60.0),
        ];
        let said = sentences(&verification(&both)).join("\n");
        assert!(said.contains("Fastest: zstd:1; lz4 takes 10.0% longer."), "{said}");
        let said = sentences(&verification(&both[1..2])).join("\n");
        assert!(said.contains("No gain was measured"), "{said}");
        assert!(sentences(&verification(&[])).is_empty());
    }
}
