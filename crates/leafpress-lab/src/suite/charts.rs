//! The charts of the page: the thesis' figures 6 to 9 in kind, on this data and machine.

use maud::Markup;
use plotters::style::RGBColor;

use super::phrases::{codecs_of, common_setting, in_words};
use super::{MEMCPY, Report, Row};
use crate::core::{Bytes, LabError};
use crate::report::draw::{Bars, bars};
use crate::report::html::figure;
use crate::report::palette::colours;
use crate::report::scatter::{Point, Scatter, scatter};
use crate::report::stepped_lines::{Ladder, LadderLine, ladder};

/// Maximum files in a chart; more cannot be distinguished.
const MAX_FILES: usize = 16;

/// The colours of memcpy and the codecs, in order: a codec looks the same in every chart.
pub(super) fn hues(report: &Report) -> Vec<(RGBColor, &str)> {
    let names = codecs_of(report, true);
    let hues = colours(names.iter().map(|name| Some(*name)));
    hues.into_iter().zip(names).collect()
}

fn steps(report: &Report) -> (Vec<usize>, Vec<String>) {
    let mut lengths = report.block_bytes.clone();
    lengths.sort_unstable();
    let names = lengths.iter().map(|length| Bytes(*length as u64).to_string());
    let names = names.collect();
    (lengths, names)
}

type Of = fn(&Row) -> f64;

/// A chart of one figure of all files over the lengths of blocks.
fn over_lengths(
    report: &Report,
    threads: usize,
    (title, unit, with_memcpy, durations): (&str, &str, bool, bool),
    of: Of,
) -> Result<Option<Markup>, LabError> {
    let (lengths, names) = steps(report);
    let lines: Vec<LadderLine> = hues(report)
        .into_iter()
        .filter(|(_, codec)| with_memcpy || *codec != MEMCPY)
        .map(|(hue, codec)| {
            let figures = lengths.iter().map(|length| report.row(codec, *length, threads).map(of));
            (hue, figures.collect(), codec == MEMCPY)
        })
        .collect();
    let svg = ladder(&Ladder {
        name: "block length",
        steps: &names,
        description: "block length, bytes",
        unit,
        durations,
        lines: &lines,
    })?;
    Ok(svg.map(|svg| figure(title, &svg)))
}

/// Ratio against the time to decode a block: which codec to take.
pub(super) fn trade_off(report: &Report) -> Result<Option<Markup>, LabError> {
    let Some((block_bytes, threads)) = common_setting(report) else {
        return Ok(None);
    };
    let row = |codec| report.row(codec, block_bytes, threads);
    let codecs = hues(report).into_iter().filter(|(_, codec)| *codec != MEMCPY);
    let points = codecs.filter_map(|(colour, codec)| {
        let row = row(codec)?;
        Some(Point {
            label: codec.to_owned(),
            colour,
            at: (row.decompress.us, row.ratio),
            hollow: false,
        })
    });
    let points: Vec<Point> = points.collect();
    if points.len() < 2 {
        return Ok(None);
    }
    let svg = scatter(&Scatter {
        name: "ratio and time",
        size: (1080, 420),
        x: "us to decode a block",
        y: "ratio",
        points: &points,
        pareto: true,
    })?;
    let title = format!(
        "Ratio vs time, blocks of {}, {}: up and to the left is better",
        Bytes(block_bytes as u64),
        in_words(threads)
    );
    Ok(svg.map(|svg| figure(&title, &svg)))
}

/// Ratio over the lengths of blocks: figure 7d.
pub(super) fn ratio(report: &Report) -> Result<Vec<Markup>, LabError> {
    let Some((_, threads)) = common_setting(report) else {
        return Ok(Vec::new());
    };
    let chart = over_lengths(report, threads, ("Ratio, all files", "ratio", false, false), |row| {
        row.ratio
    })?;
    Ok(chart.into_iter().collect())
}

/// Microseconds per block over the lengths of blocks, for a number of threads: figures 8 and 9.
pub(super) fn times(report: &Report, threads: usize) -> Result<Vec<Markup>, LabError> {
    let words = in_words(threads);
    let title = format!("Compression, {words}");
    let compression = over_lengths(report, threads, (&title, "wall time per block", true, true), |row| {
        row.compress.us
    })?;
    let title = format!("Decompression, {words}");
    let decompression = over_lengths(report, threads, (&title, "wall time per block", true, true), |row| {
        row.decompress.us
    })?;
    Ok(compression.into_iter().chain(decompression).collect())
}

/// Colours and their names.
type Legend = Vec<(RGBColor, String)>;

/// Ratio of each file over the lengths of blocks, a chart for each codec: figures 7a to 7c.
pub(super) fn ratio_by_file(report: &Report) -> Result<(Legend, Vec<Markup>), LabError> {
    let Some((_, threads)) = common_setting(report) else {
        return Ok(Default::default());
    };
    let (lengths, names) = steps(report);
    if report.files.len() < 2 || report.files.len() > MAX_FILES || lengths.len() < 2 {
        return Ok(Default::default());
    }
    let file_hues = colours(report.files.iter().map(|_| None));
    let mut charts = Vec::new();
    for codec in codecs_of(report, false) {
        let lines = report
            .files
            .iter()
            .zip(&file_hues)
            .enumerate()
            .map(|(at, (file, hue))| {
                let figures = lengths.iter().map(|length| {
                    let mut rows = file.rows.iter();
                    rows.find(|row| (row.codec.as_str(), row.block_bytes, row.threads) == (codec, *length, threads))
                        .map(|row| row.ratio)
                });
                // There are eight hues: further files are dashed.
                (*hue, figures.collect(), at >= 8)
            });
        let svg = ladder(&Ladder {
            name: "ratio by file",
            steps: &names,
            description: "block length, bytes",
            unit: "ratio",
            durations: false,
            lines: &lines.collect::<Vec<_>>(),
        })?;
        charts.extend(svg.map(|svg| figure(&format!("Ratio by file, {codec}"), &svg)));
    }
    let names = report.files.iter().map(|file| last_part(&file.file).to_owned());
    Ok((file_hues.into_iter().zip(names).collect(), charts))
}

/// Ratio and times by file, with blocks of one size: figures 6b and 9.
pub(super) fn by_file(report: &Report) -> Result<Vec<Markup>, LabError> {
    let Some((block_bytes, threads)) = common_setting(report) else {
        return Ok(Vec::new());
    };
    if report.files.len() < 2 || report.files.len() > MAX_FILES {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = report.files.iter().map(|file| last_part(&file.file)).collect();
    let figures: [(&str, &str, bool, Of); 3] = [
        ("Ratio", "ratio", false, |row| row.ratio),
        ("Compression", "us per block", true, |row| row.compress.us),
        ("Decompression", "us per block", true, |row| row.decompress.us),
    ];
    let mut charts = Vec::new();
    for (title, unit, with_memcpy, of) in figures {
        let shown: Vec<_> = hues(report)
            .into_iter()
            .filter(|(_, codec)| with_memcpy || *codec != MEMCPY)
            .collect();
        let hues: Vec<RGBColor> = shown.iter().map(|(hue, _)| *hue).collect();
        let svg = bars(&Bars {
            name: "files",
            size: (1080, 320),
            unit,
            groups: &names,
            colours: &hues,
            figure: &|file, bar| {
                let mut rows = report.files[file].rows.iter();
                let wanted = (shown[bar].1, block_bytes, threads);
                rows.find(|row| (row.codec.as_str(), row.block_bytes, row.threads) == wanted)
                    .map(of)
            },
        })?;
        let title = format!(
            "{title} by file, blocks of {}, {}",
            Bytes(block_bytes as u64),
            in_words(threads)
        );
        charts.extend(svg.map(|svg| figure(&title, &svg)));
    }
    Ok(charts)
}

/// A file's name without the directories above it.
fn last_part(name: &str) -> &str {
    name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name)
}
