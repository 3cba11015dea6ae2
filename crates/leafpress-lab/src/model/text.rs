//! The model for people: the options, a table for each codec, and the conclusions.

use std::fmt::Write;

use super::choice::{MAX_COMPRESSED, WITHIN_ERROR, gain};
use super::tco::{Prices, Savings, YEARS};
use super::thesis::{Figure, Reproduction, Series, Verdict};
use super::{Access, BreakEven, CodecOutcome, Method, Options, Outcome, Overhead, Replacement, Trace, tables};
use crate::core::{Bytes, about};
use crate::report::numbers::{share_of_memory, thousands};
use crate::report::paragraph::wrapped;
use crate::report::table::{Part, of_figures, of_parts};
use crate::report::verdict;

/// All of an outcome.
pub fn report(outcome: &Outcome) -> String {
    let mut text = verdict::text(&[conclusion(outcome)]) + &head(&outcome.options);
    let raw = &outcome.raw;
    let _ = writeln!(
        text,
        "\nWithout compression: {}% of the data cached, {}% hits, {} us per page, {} pages per second\n",
        tables::percent(raw.fits, 2),
        tables::percent(raw.hit_ratio, 2),
        tables::us(raw.us_per_page),
        tables::pages(raw.pages_per_second, 0)
    );
    for codec in &outcome.codecs {
        let _ = writeln!(text, "{}", codec_line(codec));
        text += &tables::for_people(codec);
        let _ = writeln!(text, "{}\n", verdict(outcome, codec));
    }
    for line in crossings(outcome) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// Describes the options, in lines.
pub(super) fn head(options: &Options) -> String {
    let data = match &options.access {
        Access::Law(_) => format!(
            "{} of data in pages of {}",
            Bytes(options.data_bytes),
            Bytes(options.page_bytes)
        ),
        Access::Trace(trace) => trace_line(trace, options),
    };
    let wants = match (options.access_bytes(), options.pages_an_access()) {
        (wants, _) if wants == options.page_bytes => String::new(),
        (wants, 1) => format!(" of {}, each reads a whole page", Bytes(wants)),
        (wants, pages) => format!(" of {}, {pages} pages each", Bytes(wants)),
    };
    let memory = 100.0 * options.memory_bytes as f64 / options.data_bytes().max(1.0);
    let mut text = format!(
        "{data}, {} of memory ({memory:.2}%)\nAccess {}{wants} · device {} us per read · {} worker{}\n",
        Bytes(options.memory_bytes),
        options.access.name(),
        brief(options.device_us),
        options.workers,
        if options.workers == 1 { "" } else { "s" }
    );
    text += &match options.method {
        Method::AsPublished => "Formulas as published: Harper 2018, chapter 4\n".to_owned(),
        Method::Corrected => {
            let overhead = match options.overhead {
                Overhead::Pool => "memory less the pool's overhead",
                Overhead::None => "all memory for pages",
            };
            let background = match options.background_pct {
                0.0 => String::new(),
                pct => format!(" · {pct}% of compressions in the background"),
            };
            let iops = options
                .device_iops
                .map_or_else(String::new, |iops| format!(" · at most {iops} reads/s"));
            format!(
                "Corrected formulas · replacement {} · {overhead} · {} us per hit{background}{iops} · a sixteenth stays raw for pages in transit: \
                 the best share is at most {}%\n",
                replacement(options),
                brief(options.hit_us),
                tables::percent(MAX_COMPRESSED, 1)
            )
        }
    };
    text
}

fn replacement(options: &Options) -> String {
    match options.replacement {
        Replacement::Clock => format!("clock (raw again after {} hits)", options.restore_after),
        other => other.to_string(),
    }
}

fn trace_line(trace: &Trace, options: &Options) -> String {
    let sample = if trace.rate < 1.0 {
        format!(", estimated from {} of the pages", tables::percent(trace.rate, 3) + "%")
    } else {
        String::new()
    };
    let skipped = match trace.skipped_lines {
        0 => String::new(),
        lines => format!("; {} lines skipped as junk", thousands(lines)),
    };
    format!(
        "{} accesses to {} pages of {}{sample}; {}% are first accesses, which always miss{skipped}\nTotal",
        thousands(trace.accesses),
        thousands(trace.pages),
        Bytes(options.page_bytes),
        tables::percent(trace.first_accesses, 2)
    )
}

/// A figure without zeros at its end, two decimals at most.
fn brief(figure: f64) -> String {
    let text = format!("{figure:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A codec and its costs.
pub(super) fn codec_line(codec: &CodecOutcome) -> String {
    let costs = &codec.codec;
    format!(
        "{}: ratio {}, {} us to compress a page, {} us to decode one",
        costs.name, costs.ratio, costs.compress_us, costs.decompress_us
    )
}

/// Break-even and best share of a codec, in a sentence.
pub(super) fn verdict(outcome: &Outcome, codec: &CodecOutcome) -> String {
    let pays = match codec.break_even {
        BreakEven::AtOnce => "pays from the smallest share".to_owned(),
        BreakEven::Share(share) => format!("pays from {}% of the memory", tables::percent(share, 2)),
        BreakEven::Never => {
            return format!(
                "{} does not pay at any share: uncompressed, {} us per page.",
                codec.codec.name,
                tables::us(outcome.raw.us_per_page)
            );
        }
    };
    let until = match codec.pays_until {
        1.0 => "on".to_owned(),
        share => format!("to {}%", tables::percent(share, 2)),
    };
    format!(
        "{} {pays} {until}; best at {}%: {} us per page, {:.1}% less than uncompressed.",
        codec.codec.name,
        share_of_memory(codec.best.share),
        tables::us(codec.best.us_per_page),
        100.0 * gain(&outcome.raw, &codec.best)
    )
}

/// Where codecs change places, a line each.
pub(super) fn crossings(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.crossings.iter().map(|crossing| {
        format!(
            "From {}%, {} is faster than {} ({} us at that share).",
            tables::percent(crossing.share, 2),
            crossing.faster,
            crossing.slower,
            tables::us(crossing.us_per_page)
        )
    });
    lines.collect()
}

/// All of it in one sentence.
pub(super) fn conclusion(outcome: &Outcome) -> String {
    let raw = &outcome.raw;
    match (outcome.recommended(), outcome.best()) {
        (Some(best), _) => format!(
            "Give {}% of the memory to pages compressed by {}: hit ratio {}% vs {}% uncompressed, time per page {} us vs \
             {} us, {:.2} times the throughput.",
            share_of_memory(best.best.share),
            best.codec.name,
            tables::percent(best.best.hit_ratio, 1),
            tables::percent(raw.hit_ratio, 1),
            tables::us(best.best.us_per_page),
            tables::us(raw.us_per_page),
            best.best.pages_per_second / raw.pages_per_second
        ),
        (None, Some(best)) => format!(
            "Compress nothing: {} at {}% would take {:.1}% less time per page, which is within the error of the computation ({}%): {} us \
             vs {} us.",
            best.codec.name,
            share_of_memory(best.best.share),
            100.0 * gain(raw, &best.best),
            tables::percent(WITHIN_ERROR, 0),
            tables::us(best.best.us_per_page),
            tables::us(raw.us_per_page)
        ),
        (None, None) => format!(
            "Compress nothing: {} us per page is the minimum, with a hit ratio of {}%.",
            tables::us(raw.us_per_page),
            tables::percent(raw.hit_ratio, 1)
        ),
    }
}

/// The savings and their value.
pub fn savings(savings: &[Savings], prices: &Prices) -> String {
    const HEADINGS: [&str; 9] = [
        "codec",
        "compressed\n% of memory",
        "cores, compute\nsaved %",
        "total cost\nsaved %",
        "cores\nsaved",
        "compute\nsaved",
        "total\nsaved",
        "raw memory\nsaved",
        "its\ncost",
    ];
    const PARTS: [Part<'_>; 2] = [
        ("", &[1, 2, 3, 7]),
        ("Saved, in the currency of the prices", &[4, 5, 6, 8]),
    ];
    let money = |cost: Option<f64>| cost.map_or_else(|| "NA".into(), |cost| format!("{cost:.2}"));
    let rows = savings.iter().map(|saved| {
        [
            saved.codec.clone(),
            share_of_memory(saved.share),
            tables::percent(saved.worth.cores_saved, 1),
            tables::percent(saved.worth.total_saved, 1),
            money(saved.worth.cores),
            money(saved.worth.compute_cost),
            money(saved.worth.total_cost),
            saved.memory_bytes.map_or_else(|| "any".into(), about),
            money(saved.memory_cost),
        ]
    });
    let table = of_parts(HEADINGS, rows, 1, &PARTS);
    let source = match prices.cores_saved {
        Some(_) => "Cores saved as given.",
        None => {
            "Cores saved at equal throughput, by the model; a worker that waits for the device counts as a core in use. With asynchronous reads, pass \
             the measured figure with --cores-saved-pct."
        }
    };
    let share = tables::percent(prices.share(), 1);
    let notes = [
        source.to_owned(),
        format!(
            "Total saved = {share}% x compute saved. Raw memory saved: the additional memory of an uncompressed cache with the same microseconds per \
             page. Items without a price are not included."
        ),
    ];
    let title = format!("Cost: compute is {share}% of the total cost of ownership over {YEARS} years");
    let notes = notes.map(|note| wrapped(&note, "", "")).concat();
    format!("{}{table}\n{notes}", wrapped(&title, "", ""))
}

/// The thesis's figures with what its formulas give.
pub fn reproduction(reproduction: &Reproduction) -> String {
    let mut text =
        "Harper, \"Viability of Time-Memory Trade-Offs in Large Data Sets\" (2018): published and computed\n"
            .to_owned();
    text += &tables::figures(&reproduction.figures);
    text += "~ the text prints no digits: these follow from the picture, the thesis's formulas and table 4\n";
    text += &notes(&reproduction.figures);
    for series in &reproduction.series {
        text += &self::series(series);
    }
    let _ = writeln!(
        text,
        "\n{} figures: {} agree, {} where the published text disagrees with its own formulas, {} differ.",
        reproduction.figures.len(),
        reproduction.count(Verdict::Agrees),
        reproduction.count(Verdict::TextDisagrees),
        reproduction.count(Verdict::Differs)
    );
    text
}

/// The white paper's figures with what its arithmetic gives.
pub fn white_paper(figures: &[Figure]) -> String {
    let mut text =
        "Intel, \"IAA Plugin for RocksDB Storage Engine\" (2023), total cost of ownership: published and computed\n"
            .to_owned();
    text += &tables::figures(figures);
    text += &notes(figures);
    text
}

/// Where the published text is not what its formulas give.
fn notes(figures: &[Figure]) -> String {
    let mut text = "\nWhere the published text and its own formulas disagree:\n".to_owned();
    for figure in figures.iter().filter(|figure| figure.verdict == Verdict::TextDisagrees) {
        let _ = writeln!(
            text,
            "- {}: {}: published {}, computed {}{}{}",
            figure.place,
            figure.what,
            figure.published,
            figure.computed,
            if figure.note.is_empty() { "" } else { "; " },
            figure.note
        );
    }
    text
}

fn series(series: &Series) -> String {
    let names = series.lines.iter().map(|(name, _)| name.clone());
    let rows = series.shares.iter().enumerate().map(|(at, share)| {
        let figures = series
            .lines
            .iter()
            .map(move |(_, figures)| format!("{:.3}", figures[at]));
        std::iter::once(share.to_string()).chain(figures)
    });
    let table = of_figures(std::iter::once("C %".to_owned()).chain(names), rows, 0);
    format!("\n{}: {} ({})\n{table}\n", series.place, series.what, series.unit)
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
