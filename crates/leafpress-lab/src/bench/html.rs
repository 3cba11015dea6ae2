//! The benchmark's page: one file, readable without a network.

use maud::{Markup, html};
use plotters::style::RGBColor;

use super::compare::per_record;
use super::{Builtin, Comparison, Input, Line, Operation, Options, Outcome, Report, text};
use crate::core::LabError;
use crate::core::resources;
use crate::report::draw::{microseconds, quantile_lines};
use crate::report::html::{self, document, figure, legend, lines, pair, swatch};
use crate::report::numbers::{thousands, three_digits};
use crate::report::over_time::{OverTime, over_time};
use crate::report::palette::colours;
use crate::report::rows::{Bar, rows};
use crate::report::verdict;

const NOTES: [&str; 5] = [
    "Keys, values and the operation are chosen before an operation's clock starts; the cost is included in throughput, not in latency.",
    "In an open loop (<code>--rate</code>) latency counts from the intended start of the operation, so a stall delays the operations \
     behind it, as it would delay requests. In a closed loop the threads wait with the stalled operation, and it counts once.",
    "Every record was read back after the load, and every scan was checked: ascending keys, none before the start, no more than requested.",
    "<b>Resident</b> is the growth of the process over the load. An index smaller than 64M is loaded once more for that figure, in a \
     process without huge pages, which would dominate it. <b>Held</b> is the index's own accounting of its memory.",
    "Latencies are recorded in HDR histograms with three significant digits; those over time have two.",
];

/// The page of one run, or of a comparison.
///
/// # Errors
/// [`LabError::Chart`] when a chart cannot be drawn.
pub fn page(comparison: &Comparison, command_line: &str) -> Result<String, LabError> {
    let inputs = inputs(comparison);
    let hues = colours(inputs.iter().map(|input| codec(input)));
    let style = Styles {
        names: inputs.iter().map(|input| input.short_name()).collect(),
        inputs,
        hues,
    };
    let title = match style.names.as_slice() {
        [one] => format!("Leafpress bench: {one}"),
        _ => "Leafpress bench".into(),
    };
    let workloads = comparison.workloads();
    let sections = workloads.iter().map(|workload| section(comparison, workload, &style));
    let sections = sections.collect::<Result<Vec<_>, _>>()?;
    let body = html! {
        (head(&title, comparison))
        (overview(comparison, &style)?)
        (html::all(&sections))
        (configuration(comparison, command_line))
    };
    Ok(document(&title, &body))
}

/// The indexes and their colours: an index looks the same in every chart.
struct Styles {
    inputs: Vec<Input>,
    names: Vec<String>,
    hues: Vec<RGBColor>,
}

impl Styles {
    fn hue(&self, line: &Line) -> RGBColor {
        let at = self.inputs.iter().position(|input| *input == line.options.input);
        self.hues[at.unwrap_or(0)]
    }

    /// A bar for each index.
    fn bars<'l>(
        &self,
        title: &str,
        figures: impl Iterator<Item = (&'l Line, f64)>,
        text: impl Fn(f64) -> String,
    ) -> Option<Markup> {
        let bars = figures.map(|(line, figure)| {
            let at = self.inputs.iter().position(|input| *input == line.options.input);
            Bar {
                name: &self.names[at.unwrap_or(0)],
                colour: self.hue(line),
                figure,
                text: text(figure),
            }
        });
        rows(title, &bars.collect::<Vec<_>>())
    }

    fn indexes(&self) -> Markup {
        legend(self.hues.iter().copied().zip(self.names.iter().map(String::as_str)))
    }
}

fn inputs(comparison: &Comparison) -> Vec<Input> {
    let mut inputs = Vec::new();
    for line in &comparison.lines {
        if !inputs.contains(&line.options.input) {
            inputs.push(line.options.input.clone());
        }
    }
    inputs
}

/// Our tree's codec, which decides its colour.
fn codec(input: &Input) -> Option<&'static str> {
    // The palette knows codecs by their family, which is sufficient here.
    match input {
        Input::Builtin(Builtin::Leafpress(codec)) => Some(codec.family()),
        _ => None,
    }
}

fn head(title: &str, comparison: &Comparison) -> Markup {
    let is_bad =
        |note: &str| ["failed", "cancelled"].iter().any(|word| note.starts_with(word)) || note.contains("WRONG");
    // The first note explains memory, as the end of the page does.
    let (bad, notes): (Vec<String>, Vec<String>) =
        comparison.notes().into_iter().skip(1).partition(|note| is_bad(note));
    let cautions = [comparison.cautions(), notes].concat();
    html! {
        h1 { (title) }
        (verdict::html(&comparison.verdicts()))
        @if let Some(options) = comparison.lines.first().map(|line| &line.options) {
            p {
                (thousands(options.records)) " records " (options.record()) " · "
                (options.threads) " thread" @if options.threads != 1 { "s" } " · " (resources::host())
            }
        }
        @for note in &bad { p.bad { (note) } }
        (html::cautions(&cautions))
    }
}

/// The complete table: a row per index, grouped by workload if there are several.
fn table(comparison: &Comparison, style: &Styles) -> Markup {
    const LEFT: &str = "text-align:left";
    let mut columns = comparison.columns();
    columns.retain(|column| column.heading != "workload");
    let workloads = comparison.workloads();
    html::scrolled(html! {
        table {
            thead {
                tr {
                    @for column in &columns {
                        th scope="col" style=[(!column.is_figure).then_some(LEFT)] { (lines(&column.heading)) }
                    }
                }
            }
            @for workload in &workloads {
                tbody {
                    @if workloads.len() > 1 {
                        tr { th.faint scope="rowgroup" colspan=(columns.len()) { (workload) } }
                    }
                    @for line in comparison.of(workload) {
                        tr {
                            @for column in &columns {
                                @let text = comparison.cell(column, line);
                                @match column.heading.as_str() {
                                    "index" => th scope="row" style=(LEFT) { (swatch(style.hue(line))) (text) },
                                    _ => td { (text) },
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

/// The table, and throughput and memory of everything.
fn overview(comparison: &Comparison, style: &Styles) -> Result<Markup, LabError> {
    let table = table(comparison, style);
    if comparison.lines.len() < 2 {
        return Ok(table);
    }
    let workloads = comparison.workloads();
    let mut charts = Vec::new();
    // Workloads differ too much to share an axis: scans are a hundredth of reads.
    for workload in &workloads {
        let title = format!("Throughput, {workload}, Mops/s");
        let lines = comparison.of(workload);
        let figures = lines.filter_map(|line| Some((line, line.median()?.throughput() / 1e6)));
        charts.extend(style.bars(&title, figures, three_digits));
    }
    for (title, bytes) in MEMORY {
        // After the load it is the same for all workloads.
        let lines = workloads.iter().take(1).flat_map(|workload| comparison.of(workload));
        let figures = lines.filter_map(|line| Some((line, per_record(line.median()?, bytes)?)));
        charts.extend(style.bars(title, figures, |bytes| format!("{bytes:.0}")));
    }
    Ok(html! {
        (pair(&charts))
        (table)
    })
}

type BytesOf = fn(&super::Load) -> Option<u64>;

const MEMORY: [(&str, BytesOf); 2] = [
    ("Resident memory after the load, bytes per record", |load| {
        load.resident.bytes()
    }),
    ("Memory by the index's own accounting, bytes per record", |load| {
        load.held_bytes
    }),
];

/// Latency, and everything over time, of one workload.
fn section(comparison: &Comparison, workload: &str, style: &Styles) -> Result<Markup, LabError> {
    let lines: Vec<(RGBColor, &Line, &Outcome)> = comparison
        .of(workload)
        .filter_map(|line| Some((style.hue(line), line, line.median()?)))
        .collect();
    let mut charts = Vec::new();
    let mut add = |title: &str, svg: Option<String>| charts.extend(svg.map(|svg| figure(title, &svg)));
    let all: Vec<_> = lines
        .iter()
        .filter_map(|(hue, _, outcome)| Some((*hue, microseconds(outcome.latencies.as_ref()?.all.as_ref()?))))
        .collect();
    add("Latency, all operations", quantile_lines("latency", "latency", &all)?);
    let mut single = None;
    if let [(_, _, outcome)] = lines.as_slice() {
        let (legend, svg) = by_operation(outcome)?;
        add("Latency by operation", svg);
        single = legend;
    }
    let over = |description: &'static str, latency: bool, points: &dyn Fn(&Outcome) -> Vec<(f64, f64)>| {
        let lines: Vec<_> = lines.iter().map(|(hue, _, outcome)| (*hue, points(outcome))).collect();
        over_time(&OverTime {
            name: "time",
            description,
            latency,
            lines: &lines,
        })
    };
    let throughput = over("Mops/s", false, &|outcome| {
        // The last window may be too short.
        let whole = outcome.samples.first().map_or(0.0, |sample| sample.length_ms);
        let samples = outcome
            .samples
            .iter()
            .filter(move |sample| sample.length_ms > whole / 2.0);
        samples
            .map(|sample| (sample.end_ms / 1e3, sample.operations as f64 / sample.length_ms / 1e3))
            .collect()
    })?;
    add("Throughput over time", throughput);
    let p99 = over("p99 latency", true, &|outcome| {
        let windows = outcome
            .latencies
            .as_ref()
            .map_or(&[][..], |latencies| &latencies.windows);
        // Of what ends just after the end, a handful.
        let windows = match windows {
            [whole @ .., before, last] if last.samples < before.samples / 20 => &windows[..=whole.len()],
            all => all,
        };
        windows
            .iter()
            .map(|window| (window.start_ms as f64 / 1e3, window.p99_ns as f64 / 1e3))
            .collect()
    })?;
    add("p99 over time", p99);
    Ok(html! {
        @if !charts.is_empty() {
            h2 { (workload) }
            @if comparison.lines.len() > 1 { (style.indexes()) }
            @if let Some(legend) = single { (legend) }
            (pair(&charts))
        }
    })
}

/// A line for each kind of operation, and in an open loop one of service times.
fn by_operation(outcome: &Outcome) -> Result<(Option<Markup>, Option<String>), LabError> {
    let Some(latencies) = &outcome.latencies else {
        return Ok((None, None));
    };
    let mut named: Vec<_> = latencies
        .by_operation
        .iter()
        .map(|(operation, latency)| (Operation::name(*operation), microseconds(latency)))
        .collect();
    if let Some(service) = &latencies.service {
        named.push((
            "from the actual start (what a closed loop would report)",
            microseconds(service),
        ));
    }
    if named.len() < 2 {
        return Ok((None, None));
    }
    let hues = colours(named.iter().map(|_| None));
    let lines: Vec<_> = hues
        .iter()
        .copied()
        .zip(named.iter().map(|(_, figures)| *figures))
        .collect();
    let legend = legend(hues.iter().copied().zip(named.iter().map(|(name, _)| *name)));
    Ok((
        Some(legend),
        quantile_lines("operations", "latency by operation", &lines)?,
    ))
}

fn configuration(comparison: &Comparison, command_line: &str) -> Markup {
    let first = comparison.lines.iter().find_map(|line| line.report.as_ref());
    html! {
        h2 { "How it was measured" }
        pre { (command_line) }
        @if let Some(report) = first {
            (html::terms(&settings(report)))
            @if let [line] = comparison.lines.as_slice() {
                h3 { "Report of " (line.options.input) }
                pre { (text::whole(report)) }
            }
        }
        (html::notes(&NOTES))
    }
}

fn settings(report: &Report) -> [(&'static str, String); 12] {
    let Report {
        environment, options, ..
    } = report;
    [
        ("time", environment.time.clone()),
        (
            "machine",
            format!(
                "{} x {}, cache {}",
                environment.cpus, environment.cpu_model, environment.cpu_cache
            ),
        ),
        ("kernel", environment.kernel.clone()),
        ("leafpress", env!("CARGO_PKG_VERSION").to_owned()),
        ("length", length(options)),
        (
            "loop",
            options
                .rate
                .map_or_else(|| "closed".into(), |rate| format!("open, {rate} operations per second")),
        ),
        ("key choice", text::distribution(options)),
        ("values", values(report)),
        ("latency sampling", options.latency_sampling.to_string()),
        ("threads are pinned", options.pin.to_string()),
        ("repetitions", options.repeat.to_string()),
        ("seed", options.seed.to_string()),
    ]
}

fn values(report: &Report) -> String {
    let source = &report.options.value_source;
    match &report.sampled {
        Some(sampled) => format!("{source}, {sampled}"),
        None => source.to_string(),
    }
}

fn length(options: &Options) -> String {
    let warmup = match options.warmup_seconds {
        0.0 => String::new(),
        seconds => format!(" after {seconds} s of warm-up"),
    };
    match options.mode {
        super::Mode::Operation => format!("{} operations{warmup}", thousands(options.operations)),
        super::Mode::Time => format!("{} s{warmup}", options.seconds),
    }
}
