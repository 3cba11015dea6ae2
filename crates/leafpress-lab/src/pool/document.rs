//! The report of one run or several: Tyche's report or the tables, and charts.

use leafpress::Codec;
use maud::{Markup, html};
use plotters::style::RGBColor;

use super::sweep::{Line, Sweep};
use super::{Options, Outcome, Sample, tables, text};
use crate::core::LabError;
use crate::report::document::{Document, Table};
use crate::report::draw::{Bars, Curve, Curves, bars, curves, microseconds, quantile_lines};
use crate::report::html::{figure, legend, legend_and, pair};
use crate::report::numbers::thousands;
use crate::report::over_time::{OverTime, over_time};
use crate::report::palette::colours;
use crate::report::paragraph::wrapped;

const NOTES: [&str; 6] = [
    "A <b>hit</b> is a page that was in the pool, raw or compressed. <b>Microseconds per page</b> is the mean time to \
     get one, hits and misses alike, until it can be read; other work of the workers is not included.",
    "<b>Theory</b> is the hit ratio of Harper's formula (2018) for the memory, its share for compressed pages and the \
     measured compression ratio, with a uniform or a biased choice of pages: a pool that always holds the hottest \
     pages and has no overhead.",
    "<b>Held</b> is the pool's own accounting of all its memory: pages, their rounding, tables, and the state of the \
     adaptive share. <b>Resident</b> is the growth of the process's resident memory since just before the pool was \
     created.",
    "Workers get the pages of a round one by one and hold them until its end. They request the next page when they \
     have the last: a closed loop, as in Tyche.",
    "Updates and deletes go to a scratch copy; the given data is only read.",
    "Each of several runs had its own process.",
];

const MIB: f64 = (1 << 20) as f64;

/// The lines of the memory's chart.
const MEMORY: [&str; 4] = [
    "budget",
    "held, by the pool's accounting",
    "resident growth",
    "compressed space",
];

/// Builds the report of several runs; of one, and one that it is compared with, where `is_alone`. Its tables for
/// programs are `summary.tsv`, a line for each run, and `over_time.tsv`, a line for each window of each run.
pub fn document(sweep: &Sweep, is_alone: bool) -> Document<'_> {
    let styles = Styles::of(sweep);
    let mut document = Document::new(match styles.names.as_slice() {
        [one] => format!("Leafpress pool: {one}"),
        _ => "Leafpress pool".into(),
    });
    document.verdicts = sweep.verdicts();
    document.cautions = sweep.cautions();
    document.notes.extend(NOTES);
    let reports = || sweep.lines.iter().filter_map(|line| line.report.as_ref());
    if let Some(report) = reports().next() {
        document.head = text::common_head(report);
    }
    document.terms = sweep
        .lines
        .last()
        .map_or_else(Vec::new, |line| settings(&line.options).into());
    document.troubles = sweep.troubles();
    document.page_only(|| Ok(checked(sweep)));
    let alone = sweep
        .lines
        .last()
        .and_then(|line| line.report.as_ref())
        .filter(|_| is_alone);
    if let Some(report) = alone {
        document.head = text::head(report);
        document.text_only(text::body(report));
    }
    for (codec, name) in styles.codecs.iter().zip(&styles.names) {
        let rows = tables::rows(sweep.of_codec(*codec));
        if rows.is_empty() {
            continue;
        }
        document.table(Table {
            title: name.clone(),
            hue: Some(styles.hue(*codec)),
            is_page_only: is_alone,
            ..Table::marked(tables::headings(), rows).parts(&tables::PARTS)
        });
        tables::verdict(sweep, *codec)
            .into_iter()
            .for_each(|verdict| document.paragraph(verdict));
    }
    if !is_alone && sweep.lines.len() > 1 {
        let note = "* best of its codec. Theory: hit ratio by Harper's formula for the share, the ratio and a uniform \
                    or biased choice.";
        document.text_only(format!("\n{}", wrapped(note, "", "")));
    }
    document.page_only(|| against_share(sweep, &Styles::of(sweep)));
    document.page_only(|| through_time(sweep, &Styles::of(sweep)));
    // With one run, or one and its uncompressed reference.
    if let [
        Line {
            report: Some(report), ..
        },
    ]
    | [
        _,
        Line {
            report: Some(report), ..
        },
    ] = sweep.lines.as_slice()
    {
        document.page_only(|| Ok(html! { h2 { "Report" } pre { (text::report(report)) } }));
    }
    document.tsv("summary", "summary.tsv", || tables::summary(sweep));
    document.tsv("over time", "over_time.tsv", || tables::over_time(sweep));
    document.results(sweep);
    document
}

/// The codecs and their colours: a codec looks the same in every chart.
struct Styles {
    codecs: Vec<Codec>,
    names: Vec<String>,
    hues: Vec<RGBColor>,
}

impl Styles {
    fn of(sweep: &Sweep) -> Self {
        let codecs = sweep.codecs();
        let names: Vec<String> = codecs.iter().map(Codec::to_string).collect();
        let hues = colours(names.iter().map(|name| Some(name.as_str())));
        Self { codecs, names, hues }
    }

    fn hue(&self, codec: Codec) -> RGBColor {
        let at = self.codecs.iter().position(|known| *known == codec);
        self.hues[at.unwrap_or(0)]
    }

    fn named(&self) -> impl Iterator<Item = (RGBColor, &str)> {
        self.hues.iter().copied().zip(self.names.iter().map(String::as_str))
    }
}

/// How many pages were compared, if none was wrong.
fn checked(sweep: &Sweep) -> Markup {
    let checks = || {
        sweep
            .lines
            .iter()
            .filter_map(|line| Some(&line.report.as_ref()?.outcome.checks))
    };
    let checked: u64 = checks().map(|checks| checks.checked).sum();
    html! {
        @if checked > 0 && checks().all(|checks| checks.wrong == 0) {
            p.faint { (thousands(checked)) " pages compared with their expected contents, none wrong." }
        }
    }
}

/// Hit ratio and time against the share.
fn against_share(sweep: &Sweep, styles: &Styles) -> Result<Markup, LabError> {
    let fixed = sweep.lines.iter().filter_map(Line::compressed_percent);
    if fixed.clone().min() == fixed.max() {
        return Ok(Markup::default());
    }
    let chart = |name, description: &str, most, theory: bool, of: &dyn Fn(&Line) -> Option<f64>| {
        let (mut lines, mut levels) = (Vec::new(), Vec::new());
        for codec in &styles.codecs {
            let colour = styles.hue(*codec);
            let points = |of: &dyn Fn(&Line) -> Option<f64>| {
                let runs = sweep.of_codec(*codec);
                let mut points: Vec<_> = runs
                    .filter_map(|line| Some((f64::from(line.compressed_percent()?), of(line)?)))
                    .collect();
                points.sort_by(|one, other| one.0.total_cmp(&other.0));
                points
            };
            lines.push(Curve {
                colour,
                points: points(of),
                dashed: false,
                marks: true,
            });
            if theory {
                lines.push(Curve {
                    colour,
                    points: points(&theory_of),
                    dashed: true,
                    marks: false,
                });
            }
            if let Some(line) = sweep.adaptive(*codec)
                && let (Some(figure), Some(report)) = (of(line), &line.report)
            {
                let share = report.outcome.compressed_share() * 100.0;
                levels.push((colour, (share, figure)));
            }
        }
        curves(&Curves {
            name,
            x: ("% of the memory for compressed pages", 0.0, 100.0),
            description,
            most,
            curves: &lines,
            levels: &levels,
        })
    };
    let hits = chart("hit ratio", "hit ratio, %", Some(100.0), true, &|line| {
        Some(line.report.as_ref()?.outcome.hit_ratio() * 100.0)
    })?;
    let time = chart("time", "us per page", None, false, &Line::us_per_page)?;
    let hits = hits.map(|svg| figure("Hit ratio", &svg));
    let time = time.map(|svg| figure("Microseconds per page", &svg));
    let charts: Vec<Markup> = hits.into_iter().chain(time).collect();
    let dashes = "dashed line: the adaptive share, with a triangle at its mean; dots: theory";
    Ok(html! {
        h2 { "By share" }
        (legend_and(styles.named(), dashes))
        (pair(&charts))
    })
}

fn theory_of(line: &Line) -> Option<f64> {
    Some(line.report.as_ref()?.outcome.theory(&line.options)? * 100.0)
}

/// Everything over time, of the adaptive runs; of the only run if there is just one.
fn through_time(sweep: &Sweep, styles: &Styles) -> Result<Markup, LabError> {
    let adaptive = sweep.codecs().into_iter().filter_map(|codec| sweep.adaptive(codec));
    let mut lines: Vec<&Line> = adaptive.collect();
    if lines.is_empty() {
        lines.extend(sweep.lines.first());
    }
    let runs: Vec<(RGBColor, &Line, &Outcome)> = lines
        .into_iter()
        .filter_map(|line| Some((styles.hue(line.options.codec), line, &line.report.as_ref()?.outcome)))
        .collect();
    let Some((_, first, outcome)) = runs.first() else {
        return Ok(Markup::default());
    };
    let over = |description: &'static str, of: &dyn Fn(&Sample) -> Option<f64>| {
        let line = |outcome: &Outcome| {
            let samples = whole_windows(&outcome.samples);
            samples
                .filter_map(|sample| Some((sample.at_seconds, of(sample)?)))
                .collect()
        };
        let lines: Vec<_> = runs.iter().map(|(hue, _, outcome)| (*hue, line(outcome))).collect();
        over_time(&OverTime {
            name: "time",
            description,
            latency: false,
            lines: &lines,
        })
    };
    let mut charts = Vec::new();
    let mut add = |title: &str, svg: Option<String>| charts.extend(svg.map(|svg| figure(title, &svg)));
    add(
        "Share for compressed pages over time",
        over("% of the memory", &|sample| Some(100.0 - sample.held.raw_percent))?,
    );
    add(
        "Hit ratio over time",
        over("hit ratio, %", &|sample| Some(sample.hit_ratio()? * 100.0))?,
    );
    add(
        "Pages over time",
        over("thousand pages per second", &|sample| {
            Some(sample.acquisitions as f64 / sample.length_seconds / 1e3)
        })?,
    );
    add(
        "Read from the device over time",
        over("MB/s", &|sample| {
            Some(sample.store_read_bytes as f64 / sample.length_seconds / 1e6)
        })?,
    );
    let quantiles: Vec<_> = runs
        .iter()
        .filter_map(|(hue, _, outcome)| Some((*hue, microseconds(outcome.acquire.as_ref()?))))
        .collect();
    add("Latency of a page", quantile_lines("latency", "latency", &quantiles)?);
    let mut memory = Vec::new();
    for (_, line, outcome) in &runs {
        let chart = memory_over_time(line, outcome)?;
        memory.extend(chart.map(|svg| figure(&text::name(&line.options), &svg)));
    }
    if let [(hue, _, outcome)] = runs.as_slice() {
        let space = bars(&Bars {
            name: "memory",
            size: (530, 300),
            unit: "memory at the end, M",
            groups: &["raw", "compressed", "tables", "ghosts"],
            colours: &[*hue],
            figure: &|group, _| {
                let held = &outcome.held;
                let spaces = [
                    held.raw_space_bytes,
                    held.compressed_space_bytes,
                    held.table_bytes,
                    held.ghost_bytes,
                ];
                (held.bytes_held > 0).then(|| spaces[group] as f64 / MIB)
            },
        })?;
        memory.extend(space.map(|svg| figure("Memory by use", &svg)));
    }
    let what = match (runs.len(), first.compressed_percent()) {
        (1, _) => text::name(&first.options),
        _ => "adaptive share".into(),
    };
    let drawn = styles.codecs.iter().zip(styles.hues.iter().zip(&styles.names));
    let drawn = drawn
        .filter(|(codec, _)| runs.iter().any(|(_, line, _)| line.options.codec == **codec))
        .map(|(_, (hue, name))| (*hue, name.as_str()));
    let warmup = format!("the first {:.1} s are the warm-up", outcome.warmup_seconds);
    Ok(html! {
        h2 { "Over time: " (what) }
        (legend_and(drawn, &warmup))
        (pair(&charts))
        h3 { "Memory vs the budget" }
        (legend(memory_hues().into_iter().zip(MEMORY)))
        (pair(&memory))
    })
}

/// The windows that are long enough to be meaningful.
fn whole_windows(samples: &[Sample]) -> impl Iterator<Item = &Sample> {
    let longest = samples.iter().map(|sample| sample.length_seconds).fold(0.0, f64::max);
    samples
        .iter()
        .filter(move |sample| sample.length_seconds > longest / 4.0)
}

fn memory_hues() -> Vec<RGBColor> {
    colours(MEMORY.iter().map(|_| None))
}

fn memory_over_time(line: &Line, outcome: &Outcome) -> Result<Option<String>, LabError> {
    let over = |of: &dyn Fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
        let samples = outcome.samples.iter();
        samples
            .filter_map(|sample| Some((sample.at_seconds, of(sample)? / MIB)))
            .collect()
    };
    let budget = line.options.budget_bytes as f64 / MIB;
    let end = outcome.samples.last().map_or(0.0, |sample| sample.at_seconds);
    let figures = [
        vec![(0.0, budget), (end, budget)],
        over(&|sample| Some(sample.held.bytes_held as f64)),
        over(&|sample| sample.resident_bytes.map(|bytes| bytes as f64)),
        over(&|sample| Some(sample.held.compressed_space_bytes as f64)),
    ];
    let lines: Vec<_> = memory_hues().into_iter().zip(figures).collect();
    over_time(&OverTime {
        name: "memory",
        description: "memory, M",
        latency: false,
        lines: &lines,
    })
}

fn settings(o: &Options) -> [(&'static str, String); 8] {
    let default = |value: Option<usize>| value.map_or_else(|| "the pool's default".to_owned(), |n| n.to_string());
    [
        ("policy", o.policy.to_string()),
        ("workers", o.workers.to_string()),
        ("background threads", default(o.background_threads)),
        (
            "promoted after",
            format!("{} hits", default(o.promote_after_hits.map(usize::from))),
        ),
        ("measured time", format!("{} s", o.seconds)),
        ("warm-up", o.warmup.to_string()),
        ("compared", o.verify.to_string()),
        ("seed", o.seed.to_string()),
    ]
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
