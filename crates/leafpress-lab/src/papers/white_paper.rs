//! The figures of Intel's white paper on the IAA plugin for RocksDB (2023), section "Total Cost of Ownership", and the
//! results of its arithmetic, which is in [`tco`](crate::model::tco).

use super::thesis::{Figure, Verdict};
use crate::model::tco::{COMPUTE_SHARE, more_service, total_saved};

/// Returns the white paper's figures and the results of its arithmetic.
pub fn figures() -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut add = |what: &str, published: &str, computed: String, agrees: bool, note: &'static str| {
        figures.push(Figure {
            place: "white paper, TCO",
            what: what.to_owned(),
            published: published.to_owned(),
            computed,
            printed: true,
            verdict: if agrees {
                Verdict::Agrees
            } else {
                Verdict::TextDisagrees
            },
            note,
        });
    };
    let pct = |share: f64| format!("{:.1}%", share * 100.0);
    let rounds_to = |share: f64, whole: f64| (share * 100.0).round() == whole;
    let pairs = [(0.47, 0.09, "47%", "9%"), (0.67, 0.15, "67%", "15%")];
    for (saved, total, saved_text, total_text) in pairs {
        let share = total / saved;
        add(
            &format!("compute's share, from {total_text} of the total for {saved_text} of compute"),
            "figure 8, a picture",
            pct(share),
            true,
            "",
        );
        add(
            &format!("total saved, {saved_text} of compute, with that share"),
            total_text,
            pct(total_saved(share, saved)),
            rounds_to(total_saved(share, saved), total * 100.0),
            "",
        );
    }
    for (saved, total, saved_text, total_text) in pairs {
        let computed = total_saved(COMPUTE_SHARE, saved);
        add(
            &format!(
                "total saved, {saved_text} of compute, with one share of {}",
                pct(COMPUTE_SHARE)
            ),
            total_text,
            pct(computed),
            rounds_to(computed, total * 100.0),
            "no one share of compute gives both 9% and 15%",
        );
    }
    add(
        "cost of compute at 67% fewer cores",
        "67% less",
        format!("{} less", pct(1.0 - 0.33)),
        true,
        "",
    );
    for (saved, text) in [(0.47, "47% more service"), (0.67, "67% more service")] {
        add(
            &format!("what the same cores do, {} saved", pct(saved)),
            text,
            format!("{} more", pct(more_service(saved))),
            rounds_to(more_service(saved), saved * 100.0),
            "1 / (1 - saved) - 1: the cores saved do as much again as those that are needed",
        );
    }
    add(
        "cores saved, by 103% more operations per second",
        "67%",
        pct(1.0 - 1.0 / 2.03),
        rounds_to(1.0 - 1.0 / 2.03, 67.0),
        "figure 6 measures cores at equal throughput; it does not follow from the throughput of all cores",
    );
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_figures_disagree_with_their_text_and_none_differs() {
        let figures = figures();
        let disagree = figures.iter().filter(|figure| figure.verdict == Verdict::TextDisagrees);
        assert_eq!(disagree.count(), 5);
        assert!(figures.iter().all(|figure| figure.verdict != Verdict::Differs));
    }
}
