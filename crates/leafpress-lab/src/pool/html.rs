//! The page of a run, or of several beside each other: one file, readable without a network.

use leafpress::Codec;
use plotters::style::RGBColor;

use super::sweep::{Line, Sweep};
use super::{Outcome, Sample, tables, text};
use crate::core::LabError;
use crate::report::draw::{Bars, Curve, Curves, OverTime, bars, curves, microseconds, over_time, quantile_lines};
use crate::report::html::{document, escape, figure};
use crate::report::palette::{colours, css};

const NOTES: [&str; 6] = [
    "A <b>hit</b> is a page that was in the pool, raw or compressed. <b>Microseconds per page</b> is the mean time of getting one, hits and \
     misses alike, until it can be read; what the workers do besides is not in it.",
    "<b>Theory</b> is the hit ratio of Harper's formula (2018) for the memory, its share for compressed pages and the compression ratio \
     measured, with a uniform or a biased choice of pages: a pool that always held the hottest pages and needed no memory for itself.",
    "<b>Held</b> is the pool's own account of all its memory: pages, what their rounding wastes, tables, and what the adaptive share \
     follows. <b>Resident</b> is the growth of the process's resident memory since just before the pool was made.",
    "Workers get the pages of a round one by one and hold them until its end. They start the next page when they have the last: \
     a closed loop, as Tyche's.",
    "Updates and deletes go to a scratch copy; the data that was given is only read.",
    "Each of several runs had a process of its own.",
];

const MIB: f64 = (1 << 20) as f64;

/// The lines of the memory's chart.
const MEMORY: [&str; 4] = [
    "budget",
    "held by the pool's account",
    "resident growth",
    "compressed space",
];

/// The page.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(sweep: &Sweep, command_line: &str) -> Result<String, LabError> {
    let codecs = sweep.codecs();
    let names: Vec<String> = codecs.iter().map(Codec::to_string).collect();
    let hues = colours(names.iter().map(|name| Some(name.as_str())));
    let styles = Styles { codecs, names, hues };
    let title = match styles.names.as_slice() {
        [one] => format!("Leafpress pool: {one}"),
        _ => "Leafpress pool".into(),
    };
    let mut body = head(&title, sweep);
    body += &tables_of(sweep, &styles);
    body += &against_share(sweep, &styles)?;
    body += &through_time(sweep, &styles)?;
    body += &how(sweep, command_line);
    Ok(document(&title, &body))
}

/// The codecs and their colours: a codec looks the same in every chart.
struct Styles {
    codecs: Vec<Codec>,
    names: Vec<String>,
    hues: Vec<RGBColor>,
}

impl Styles {
    fn hue(&self, codec: Codec) -> RGBColor {
        let at = self.codecs.iter().position(|known| *known == codec);
        self.hues[at.unwrap_or(0)]
    }

    fn legend(&self, more: &str) -> String {
        legend(
            self.hues.iter().copied().zip(self.names.iter().map(String::as_str)),
            more,
        )
    }
}

fn swatch(hue: RGBColor) -> String {
    format!("<span class=\"swatch\" style=\"background:{}\"></span>", css(hue))
}

fn legend<'n>(entries: impl Iterator<Item = (RGBColor, &'n str)>, more: &str) -> String {
    let entries: String = entries
        .map(|(hue, name)| format!("<span>{}{}</span>", swatch(hue), escape(name)))
        .collect();
    format!("<div class=\"legend\">{entries}<span class=\"faint\">{more}</span></div>\n")
}

fn head(title: &str, sweep: &Sweep) -> String {
    let mut html = format!("<h1>{}</h1>\n", escape(title));
    if let Some(report) = sweep.lines.iter().find_map(|line| line.report.as_ref()) {
        let common = text::common_head(&report.options, &report.outcome, &report.host);
        let lines: Vec<_> = common.lines().map(escape).collect();
        html += &format!("<p>{}</p>\n", lines.join("<br>"));
    }
    for trouble in sweep.troubles() {
        html += &format!("<p class=\"bad\">{}</p>\n", escape(&trouble));
    }
    let reports = sweep.lines.iter().filter_map(|line| line.report.as_ref());
    let checked: u64 = reports.map(|report| report.outcome.checks.checked).sum();
    let wrong = sweep.lines.iter().filter_map(|line| line.report.as_ref());
    if checked > 0 && wrong.map(|report| report.outcome.checks.wrong).sum::<u64>() == 0 {
        let checked = crate::report::numbers::thousands(checked);
        html += &format!("<p class=\"faint\">{checked} pages compared with what they must hold, none wrong.</p>\n");
    }
    html
}

fn tables_of(sweep: &Sweep, styles: &Styles) -> String {
    let heading = |text: &&str| format!("<th>{}</th>", escape(text).replace('\n', "<br>"));
    let header: String = tables::headings().iter().map(heading).collect();
    let mut html = String::new();
    for (codec, name) in styles.codecs.iter().zip(&styles.names) {
        let rows = tables::rows(sweep.of_codec(*codec));
        if rows.is_empty() {
            continue;
        }
        let mut body = String::new();
        for row in rows {
            let mut cells = row.iter();
            let first = cells.next().map_or("", |cell| cell.text.as_str());
            body += &format!("<tr><th scope=\"row\">{}</th>", escape(first));
            for cell in cells {
                let class = if cell.best { " class=\"best\"" } else { "" };
                body += &format!("<td{class}>{}</td>", escape(&cell.text));
            }
            body += "</tr>\n";
        }
        html += &format!(
            "<h3>{}{}</h3>\n<div class=\"scroll\"><table><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table></div>\n",
            swatch(styles.hue(*codec)),
            escape(name)
        );
        if let Some(verdict) = tables::verdict(sweep, *codec) {
            html += &format!("<p>{}</p>\n", escape(&verdict));
        }
    }
    html
}

/// Hit ratio and time against the share.
fn against_share(sweep: &Sweep, styles: &Styles) -> Result<String, LabError> {
    let fixed = sweep.lines.iter().filter_map(Line::compressed_percent);
    if fixed.clone().min() == fixed.max() {
        return Ok(String::new());
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
    let hits = hits.map_or_else(String::new, |svg| figure("Hit ratio", &svg));
    let time = time.map_or_else(String::new, |svg| figure("Microseconds per page", &svg));
    let legend = styles.legend("dashes across: the adaptive share, at its mean share a triangle; dots: theory");
    Ok(format!(
        "<h2>Against the share</h2>\n{legend}<div class=\"pair\">{hits}{time}</div>\n"
    ))
}

fn theory_of(line: &Line) -> Option<f64> {
    Some(line.report.as_ref()?.outcome.theory(&line.options)? * 100.0)
}

/// Everything over time, of the adaptive runs; of the only run where there is no other.
fn through_time(sweep: &Sweep, styles: &Styles) -> Result<String, LabError> {
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
        return Ok(String::new());
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
    let mut charts = String::new();
    let mut add = |title: &str, svg: Option<String>| {
        charts += &svg.map_or_else(String::new, |svg| figure(title, &svg));
    };
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
    add("Getting a page", quantile_lines("latency", "latency", &quantiles)?);
    let mut memory = String::new();
    for (_, line, outcome) in &runs {
        let chart = memory_over_time(line, outcome)?;
        memory += &chart.map_or_else(String::new, |svg| figure(&text::name(&line.options), &svg));
    }
    if let [(hue, _, outcome)] = runs.as_slice() {
        let space = bars(&Bars {
            name: "memory",
            size: (530, 300),
            unit: "MiB at the end",
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
        memory += &space.map_or_else(String::new, |svg| figure("What holds it", &svg));
    }
    let what = match (runs.len(), first.compressed_percent()) {
        (1, _) => text::name(&first.options),
        _ => "adaptive share".into(),
    };
    let drawn = styles.codecs.iter().zip(styles.hues.iter().zip(&styles.names));
    let drawn = drawn
        .filter(|(codec, _)| runs.iter().any(|(_, line, _)| line.options.codec == **codec))
        .map(|(_, (hue, name))| (*hue, name.as_str()));
    let marks = legend(memory_hues().into_iter().zip(MEMORY), "");
    Ok(format!(
        "<h2>Over time: {}</h2>\n{}<div class=\"pair\">{charts}</div>\n<h3>Memory against the budget</h3>\n{marks}<div class=\"pair\">{memory}</div>\n",
        escape(&what),
        legend(
            drawn,
            &format!("the first {:.1} s are the warm-up", outcome.warmup_seconds)
        )
    ))
}

/// The windows that are long enough to tell something.
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
        description: "MiB",
        latency: false,
        lines: &lines,
    })
}

fn how(sweep: &Sweep, command_line: &str) -> String {
    let mut html = format!("<h2>How it was measured</h2>\n<pre>{}</pre>\n", escape(command_line));
    if let [line] = sweep.lines.as_slice()
        && let Some(report) = &line.report
    {
        html += &format!("<h3>Report</h3>\n<pre>{}</pre>\n", escape(&text::report(report)));
    }
    if let Some(line) = sweep.lines.first() {
        let o = &line.options;
        let default = |value: Option<usize>| value.map_or_else(|| "the pool's default".to_owned(), |n| n.to_string());
        let entries = [
            ("leafpress", env!("CARGO_PKG_VERSION").to_owned()),
            ("policy", o.policy.to_string()),
            ("workers", o.workers.to_string()),
            ("background threads", default(o.background_threads)),
            (
                "restore after",
                format!("{} hits", default(o.restore_after.map(usize::from))),
            ),
            ("measured time", format!("{} s", o.seconds)),
            ("warm-up", o.warmup.to_string()),
            ("compared", o.verify.to_string()),
            ("seed", o.seed.to_string()),
        ];
        let entries: String = entries
            .iter()
            .map(|(term, value)| format!("<dt>{term}</dt><dd>{}</dd>", escape(value)))
            .collect();
        html += &format!("<dl>{entries}</dl>\n");
    }
    let notes: String = NOTES.iter().map(|note| format!("<li>{note}</li>\n")).collect();
    html + &format!("<ul>{notes}</ul>\n")
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
