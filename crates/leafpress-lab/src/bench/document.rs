//! The report of a comparison, or of one run.

use maud::{Markup, html};
use plotters::style::RGBColor;

use super::compare::per_record;
use super::{Builtin, Comparison, Input, Line, Mode, Operation, Options, Outcome, Report, Resident, text};
use crate::core::LabError;
use crate::core::latency::Latency;
use crate::core::resources;
use crate::harness::resident_memory::RESIDENT;
use crate::report::document::{Document, Table};
use crate::report::draw::{microseconds, quantile_lines};
use crate::report::html::{figure, legend, pair};
use crate::report::numbers::{thousands, three_digits};
use crate::report::over_time::{OverTime, over_time};
use crate::report::palette::colours;
use crate::report::rows::{Bar, rows};

const NOTES: [&str; 5] = [
    "Keys, values and the operation are chosen before an operation's clock starts; the cost is included in throughput, \
     not in latency.",
    "In an open loop (<code>--rate</code>) latency counts from the intended start of the operation, so a stall delays \
     the operations behind it, as it would delay requests. In a closed loop the threads wait with the stalled \
     operation, and it counts once.",
    "Every record was read back after the load, and every scan was checked: ascending keys, none before the start, no \
     more than requested.",
    "<b>Resident</b> is the growth of the process over the load. An index smaller than 64M is loaded once more for \
     that figure, in a process without huge pages, which would dominate it. <b>Held</b> is the index's own accounting \
     of its memory.",
    "Latencies are recorded in HDR histograms with three significant digits; those over time have two.",
];

/// Note on the other memory figure.
const HELD: &str = "Held: the index's own accounting, which only Leafpress has. Both in bytes per record.";

/// The tables for people: their names, and the headings of their columns.
const PARTS: [(&str, &[&str]); 2] = [
    (
        "",
        &[
            "Mops/s",
            "range",
            "of the\nfastest",
            "p99\nus",
            "resident\nB/record",
            "held\nB/record",
        ],
    ),
    (
        "Other times and the CPU",
        &["p50\nus", "p99.9\nus", "max\nus", "load\ns", "cores\nbusy"],
    ),
];

/// Builds the report of one run, or of a comparison.
pub fn document(comparison: &Comparison) -> Document<'_> {
    let style = Styles::new(comparison);
    let mut document = Document::new(match style.names.as_slice() {
        [one] => format!("Leafpress bench: {one}"),
        _ => "Leafpress bench".into(),
    });
    document.verdicts = comparison.verdicts();
    document.cautions = comparison.cautions();
    document.head = comparison.lines.first().map(head).into_iter().collect();
    (document.troubles, document.remarks) = notes(comparison);
    document.notes = NOTES.to_vec();
    let first = comparison.lines.iter().find_map(|line| line.report.as_ref());
    document.terms = first.map(settings).map_or_else(Vec::new, Vec::from);
    document.table(table(comparison, &style));
    document.caption(match comparison.lines.as_slice() {
        [_] => format!("{RESIDENT} {HELD}"),
        _ => format!("Each index ran in its own process. {RESIDENT} {HELD}"),
    });
    document.page_only(move || {
        let sections = comparison.workloads().into_iter();
        let sections = sections.map(|workload| section(comparison, &workload, &style));
        let sections = sections.collect::<Result<Vec<_>, _>>()?;
        Ok(html! {
            (overview(comparison, &style))
            @for section in &sections { (section) }
            @if let ([line], Some(report)) = (comparison.lines.as_slice(), first) {
                h3 { "Report of " (line.options.input) }
                pre { (text::whole(report)) }
            }
        })
    });
    document
}

/// What all runs of a comparison share, in a line.
fn head(Line { options, .. }: &Line) -> String {
    format!(
        "{} records {}{}, {}, {} thread{}, {}",
        options.records,
        options.record(),
        match options.dump {
            Some(_) => String::new(),
            None => format!(" ({})", options.value_source),
        },
        match options.mode {
            Mode::Operation => format!("{} operations", options.operations),
            Mode::Time => format!("{} s", options.seconds),
        },
        options.threads,
        if options.threads == 1 { "" } else { "s" },
        resources::host()
    )
}

/// The indexes and their colours: an index looks the same in every chart.
struct Styles {
    inputs: Vec<Input>,
    names: Vec<String>,
    hues: Vec<RGBColor>,
}

impl Styles {
    fn new(comparison: &Comparison) -> Self {
        let mut inputs = Vec::new();
        for line in &comparison.lines {
            if !inputs.contains(&line.options.input) {
                inputs.push(line.options.input.clone());
            }
        }
        Self {
            names: inputs.iter().map(Input::short_name).collect(),
            hues: colours(inputs.iter().map(codec)),
            inputs,
        }
    }

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

/// Our tree's codec, which decides its colour.
fn codec(input: &Input) -> Option<&'static str> {
    // The palette knows codecs by their family, which is sufficient here.
    match input {
        Input::Builtin(Builtin::Leafpress(codec)) => Some(codec.family()),
        _ => None,
    }
}

/// What failed, and what else there is to say of the runs.
fn notes(comparison: &Comparison) -> (Vec<String>, Vec<String>) {
    let (mut troubles, mut remarks) = (Vec::new(), Vec::new());
    for line in &comparison.lines {
        let name = format!("{} in {}", line.options.input.short_name(), line.options.workload());
        troubles.extend(line.failures.iter().map(|failure| format!("failed: {name}: {failure}")));
        let Some(outcome) = line.median() else { continue };
        let total = outcome.total();
        if total.succeeded < total.completed {
            let share = total.succeeded as f64 / total.completed as f64 * 100.0;
            remarks.push(format!("{name}: {share:.2}% of the operations succeeded"));
        }
        if let Some(Resident::Unknown(why)) = outcome.load.as_ref().map(|load| &load.resident) {
            remarks.push(format!("{name}: no resident memory: {why}"));
        }
        if outcome.scan_errors.scans > 0 {
            let example = outcome.scan_errors.example.as_deref().unwrap_or_default();
            troubles.push(format!("WRONG SCANS: {name}: {}; {example}", outcome.scan_errors.scans));
        }
        if let Some(load) = outcome.load.as_ref().filter(|load| load.wrong_values > 0) {
            troubles.push(format!(
                "{name}: {} records were read back with a wrong value",
                load.wrong_values
            ));
        }
    }
    if comparison.cancelled {
        troubles.push("cancelled: only finished runs are included".into());
    }
    (troubles, remarks)
}

/// A row for each run, grouped by workloads if there are several.
fn table(comparison: &Comparison, style: &Styles) -> Table {
    let columns = comparison.columns();
    let workloads = comparison.workloads();
    let is_grouped = workloads.len() > 1;
    let headings = is_grouped.then_some("workload").into_iter();
    let mut table = Table {
        is_grouped,
        ..Table::new(headings.chain(columns.iter().map(|column| column.heading)), [])
    };
    for workload in &workloads {
        for line in comparison.of(workload) {
            let cells = columns.iter().map(|column| column.cell(line, comparison));
            table.row(is_grouped.then(|| workload.clone()).into_iter().chain(cells));
            table.hues.push(style.hue(line));
        }
    }
    let parts = PARTS.map(|(name, headings)| {
        let at = (1..columns.len()).filter(|at| headings.contains(&columns[*at].heading));
        (name, at.collect::<Vec<usize>>())
    });
    table.parts(&parts.each_ref().map(|(name, columns)| (*name, columns.as_slice())))
}

/// Throughput and memory of several indexes.
fn overview(comparison: &Comparison, style: &Styles) -> Markup {
    if comparison.lines.len() < 2 {
        return Markup::default();
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
    pair(&charts)
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
        Mode::Operation => format!("{} operations{warmup}", thousands(options.operations)),
        Mode::Time => format!("{} s{warmup}", options.seconds),
    }
}

impl Comparison {
    /// Columns that have a figure somewhere.
    fn columns(&self) -> Vec<Column> {
        let all = [
            Column::words("index", |line, _| Some(line.options.input.short_name())),
            Column::figure("Mops/s", |outcome| Some(outcome.throughput() / 1e6), 3),
            Column::words("range", |line, _| {
                let report = line.report.as_ref().filter(|report| report.outcomes.len() > 1)?;
                report.throughput().map(|spread| format!("{:.1}%", spread.range_pct()))
            }),
            Column::words("of the\nfastest", |line, comparison| {
                if comparison.lines.len() == 1 {
                    return None;
                }
                let mine = line.median()?.throughput();
                let workload = line.options.workload();
                let fastest = comparison
                    .of(&workload)
                    .filter_map(|line| Some(line.median()?.throughput()));
                let fastest = fastest.reduce(f64::max).filter(|fastest| *fastest > 0.0)?;
                Some(format!("{:.0}%", mine / fastest * 100.0))
            }),
            Column::figure("p50\nus", |outcome| latency(outcome, |l| l.p50_ns), 2),
            Column::figure("p99\nus", |outcome| latency(outcome, |l| l.p99_ns), 2),
            Column::figure("p99.9\nus", |outcome| latency(outcome, |l| l.p999_ns), 2),
            Column::figure("max\nus", |outcome| latency(outcome, |l| l.max_ns), 0),
            Column::figure("cores\nbusy", |outcome| Some(outcome.cores()), 2),
            Column::figure("load\ns", |outcome| Some(outcome.load.as_ref()?.milliseconds / 1e3), 2),
            Column::figure(
                "resident\nB/record",
                |outcome| per_record(outcome, |load| load.resident.bytes()),
                0,
            ),
            Column::figure(
                "held\nB/record",
                |outcome| per_record(outcome, |load| load.held_bytes),
                0,
            ),
        ];
        all.into_iter()
            .filter(|column| {
                column.heading == "index" || self.lines.iter().any(|line| (column.text)(line, self).is_some())
            })
            .collect()
    }
}

fn latency(outcome: &Outcome, quantile: impl Fn(&Latency) -> u64) -> Option<f64> {
    Some(quantile(outcome.latencies.as_ref()?.all.as_ref()?) as f64 / 1e3)
}

type CellText = Box<dyn Fn(&Line, &Comparison) -> Option<String>>;

/// A column of the table.
struct Column {
    heading: &'static str,
    text: CellText,
}

impl Column {
    fn words(heading: &'static str, text: impl Fn(&Line, &Comparison) -> Option<String> + 'static) -> Self {
        Self {
            heading,
            text: Box::new(text),
        }
    }

    fn figure(heading: &'static str, figure: impl Fn(&Outcome) -> Option<f64> + 'static, decimals: usize) -> Self {
        Self::words(heading, move |line, _| {
            figure(line.median()?).map(|figure| format!("{figure:.decimals$}"))
        })
    }

    fn cell(&self, line: &Line, comparison: &Comparison) -> String {
        (self.text)(line, comparison).unwrap_or_else(|| "-".into())
    }
}
