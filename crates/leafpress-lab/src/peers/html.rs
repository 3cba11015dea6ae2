//! The comparison's page: one file, readable without a network.

use maud::html;

use super::{Peer, PeerLine, PeersConfig, PeersOutcome, view};
use crate::core::LabError;
use crate::eval::Workload;
use crate::report::html::{cautions, document, figure, lines, row, table};
use crate::report::palette::colours;
use crate::report::scatter::{Point, Scatter, scatter};
use crate::report::verdict;

/// The page: the chart of throughput against memory, and the table.
///
/// # Errors
/// [`LabError::Chart`] when it cannot be drawn.
pub(super) fn page(config: &PeersConfig, outcome: &PeersOutcome) -> Result<String, LabError> {
    let verdicts = outcome.verdicts(config.workload);
    let (headings, rows) = view::table(config, outcome);
    let (bad, faint): (Vec<String>, Vec<String>) = view::troubles(outcome)
        .into_iter()
        .partition(|trouble| !["left out", "no resident"].iter().any(|word| trouble.starts_with(word)));
    let body = html! {
        h1 { "Leafpress vs other maps" }
        (verdict::html(&verdicts))
        (cautions(&outcome.cautions))
        p { (lines(&view::head(config, outcome))) }
        @for trouble in &bad { p.bad { (trouble) } }
        @if let Some(svg) = frontier(config, outcome)? {
            (figure("Throughput vs memory", &svg))
            p.faint {
                "Up and to the left is better; the line is the Pareto frontier. Memory is the growth of the process over the load, \
                 for all maps."
            }
        }
        (table(headings, rows.iter().map(|cells| row(cells))))
        p.faint { (view::notes(outcome)) }
        @for trouble in &faint { p.faint { (trouble) } }
    };
    Ok(document("Leafpress peers", &body))
}

fn frontier(config: &PeersConfig, outcome: &PeersOutcome) -> Result<Option<String>, LabError> {
    let codec = |line: &PeerLine| match &line.peer {
        Peer::Leafpress(codec) => Some(codec.clone()),
        _ => None,
    };
    let codecs: Vec<_> = outcome.lines.iter().map(codec).collect();
    let hues = colours(codecs.iter().map(Option::as_deref));
    let points = outcome.lines.iter().zip(hues).filter_map(|(line, colour)| {
        let resident = line.resident_bytes_per_record?;
        Some(Point {
            label: line.peer.to_string(),
            colour,
            at: (
                resident / outcome.record_bytes.max(1.0),
                line.operations_per_second_per_core / 1e6,
            ),
            hollow: !line.peer.is_ours(),
        })
    });
    let points: Vec<_> = points.collect();
    let y = match config.workload {
        Workload::ReadOnly => "Mreads/s per core".to_owned(),
        workload => format!("{workload}, Mops/s per core"),
    };
    scatter(&Scatter {
        name: "frontier",
        size: (1080, 460),
        x: "resident bytes per byte of keys and values",
        y: &y,
        points: &points,
        pareto: true,
    })
}
