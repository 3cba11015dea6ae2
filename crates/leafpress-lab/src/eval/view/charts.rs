//! The charts of an evaluation.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::pivot::{Line, Pivot, Setting, held_per_user_byte};
use crate::core::LabError;
use crate::eval::Workload;
use crate::report::draw::{
    Bars, FONT_SIZE, bars, brief, draw, framed, headroom, ink, labels_across, microseconds, on_axis, plain,
    quantile_lines,
};
use crate::report::palette::colour;
use crate::report::{labels, words};

/// Throughput: a group of bars for each point workload, a bar for each codec. `None` without a point workload.
pub(super) fn throughput(pivot: &Pivot<'_>, setting: &Setting<'_>) -> Result<Option<String>, LabError> {
    let workloads: Vec<_> = setting
        .workloads
        .iter()
        .copied()
        .filter(|w| *w != Workload::Scan)
        .collect();
    let names: Vec<_> = workloads.iter().map(|workload| workload.name()).collect();
    let colours: Vec<_> = setting.lines.iter().map(|line| codec_colour(pivot, line)).collect();
    bars(&Bars {
        name: "throughput",
        size: (1080, 380),
        unit: "Mops/s",
        groups: &names,
        colours: &colours,
        figure: &|group, bar| setting.lines[bar].mops(workloads[group]),
    })
}

/// Throughput of `workload` against memory saved, a labelled point for each codec. `None` when there are not two whose
/// memory is known.
pub(super) fn trade_off(
    pivot: &Pivot<'_>,
    setting: &Setting<'_>,
    workload: Workload,
) -> Result<Option<String>, LabError> {
    let points: Vec<_> = setting
        .lines
        .iter()
        .filter_map(|line| {
            let saved = (1.0 - held_per_user_byte(line.row(workload)?)?) * 100.0;
            Some((line, saved, line.mops(workload)?))
        })
        .collect();
    // A point alone is a row of the table.
    if points.len() < 2 {
        return Ok(None);
    }
    let largest = points.iter().map(|point| point.2).fold(0.0, f64::max);
    let least_saved = points.iter().map(|point| point.1).fold(0.0, f64::min);
    let size = (530, 360);
    let alt_text = words::all(
        &format!("{workload}, Mops/s, vs memory saved"),
        points
            .iter()
            .map(|(line, saved, mops)| format!("{} {} at {saved:.0}%", line.codec, brief(*mops))),
    );
    let svg = draw("trade-off", size, &alt_text, |root, size| {
        let mut chart = framed(root, 58, 46)
            .build_cartesian_2d((least_saved * 1.1 - 4.0).floor()..100.0, 0.0..headroom(largest))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_labels(labels_across(size.0))
            .y_labels(6)
            .x_desc("memory saved, % of user bytes");
        plain(&mut mesh, &format!("{workload}, Mops/s"));
        mesh.x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&on_axis(largest))
            .draw()?;
        let pixels: Vec<_> = points
            .iter()
            .map(|(line, x, y)| (chart.backend_coord(&(*x, *y)), line.codec.as_str()))
            .collect();
        let places = labels::place(&pixels, FONT_SIZE.into(), 6.0, size);
        for (((pixel, label), place), (line, ..)) in pixels.iter().zip(places).zip(&points) {
            root.draw(&Circle::new(*pixel, 6, codec_colour(pivot, line).filled()))?;
            root.draw(&Text::new(
                *label,
                place,
                ink(FONT_SIZE).pos(Pos::new(HPos::Left, VPos::Center)),
            ))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// Which latencies a chart shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Side {
    Read,
    Write,
}

/// Latency against the share of operations that took no longer, a line for each codec. `None` when nothing was
/// measured.
pub(super) fn latency(pivot: &Pivot<'_>, setting: &Setting<'_>, side: Side) -> Result<Option<String>, LabError> {
    let (name, workload) = match side {
        Side::Read => ("read", setting.read_workload()),
        Side::Write => ("write", setting.write_workload()),
    };
    let lines: Vec<_> = setting
        .lines
        .iter()
        .filter_map(|line| {
            let latency = match side {
                Side::Read => line.read_latency(workload),
                Side::Write => line.write_latency(workload),
            };
            Some((codec_colour(pivot, line), microseconds(latency?)))
        })
        .collect();
    let description = workload.map_or_else(String::new, |workload| format!("{name} latency in {workload}"));
    quantile_lines("latency", &description, &lines)
}

pub(super) fn codec_colour(pivot: &Pivot<'_>, line: &Line<'_>) -> RGBColor {
    let index = pivot.codecs.iter().position(|codec| *codec == line.codec);
    colour(&pivot.codecs, index.unwrap_or(0))
}
