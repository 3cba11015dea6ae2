//! The report of a comparison.

use maud::html;

use super::{Peer, PeerLine, PeersConfig, PeersOutcome};
use crate::core::keys::LoadOrder;
use crate::core::{LabError, resources};
use crate::eval::Workload;
use crate::harness::resident_memory::RESIDENT;
use crate::report::Part;
use crate::report::document::{Document, Table};
use crate::report::html::figure;
use crate::report::palette::colours;
use crate::report::scatter::{Point, Scatter, scatter};
use crate::report::verdict;

/// The report.
pub(super) fn document<'r>(config: &'r PeersConfig, outcome: &'r PeersOutcome) -> Document<'r> {
    let mut document = Document::new("Leafpress vs other maps");
    document.verdicts = outcome.verdicts(config.workload);
    document.cautions.clone_from(&outcome.cautions);
    document.head = head(config, outcome);
    let left_out = outcome.left_out.iter().map(|left_out| format!("skipped: {left_out}"));
    let unknown = outcome.lines.iter().filter_map(|line| {
        let why = line.resident_unknown.as_ref()?;
        Some(format!("no resident memory of {}: {why}", line.peer))
    });
    document.remarks = left_out.chain(unknown).collect();
    let failures = outcome.failures.iter().map(|failure| format!("failed: {failure}"));
    let mismatches = (outcome.mismatches > 0).then(|| format!("MISMATCHES: {}", outcome.mismatches));
    let cancelled = outcome
        .cancelled
        .then(|| "cancelled: only finished samples are included".into());
    document.troubles = failures.chain(mismatches).chain(cancelled).collect();
    document.page_only(|| {
        Ok(html! {
            @if let Some(svg) = frontier(config, outcome)? {
                (figure("Throughput vs memory", &svg))
                p.faint {
                    "Up and to the left is better; the line is the Pareto frontier. Memory is the growth of the \
                     process over the load, for all maps."
                }
            }
        })
    });
    document.table(table(config, outcome));
    document.caption(notes(outcome));
    document
}

/// Describes the data and the measurement.
fn head(config: &PeersConfig, outcome: &PeersOutcome) -> Vec<String> {
    let how = format!(
        "loaded {} by {} thread{}, {} of {} s, {}",
        match config.load_order {
            LoadOrder::Random => "in random order",
            LoadOrder::Sequential =>
                "in the order of the keys (trees in bulk, by Tree::extend; the others record by record)",
        },
        config.threads,
        if config.threads == 1 { "" } else { "s" },
        match config.rounds {
            1 => "one round".to_owned(),
            rounds => format!("medians of {rounds} rounds"),
        },
        config.seconds,
        resources::host(),
    );
    vec![outcome.data.clone(), how]
}

/// Explanation of the figures.
fn notes(outcome: &PeersOutcome) -> String {
    let settled = outcome.lines.iter().map(|line| line.settle_seconds).fold(0.0, f64::max);
    let chosen = outcome.lines.iter().filter_map(|line| {
        let chosen = line.chosen_codec.as_ref()?;
        Some(format!("{} chose {chosen}. ", line.peer))
    });
    format!(
        "{}A record has {:.0} bytes of key and value. {RESIDENT} All maps use this program's allocator, and keys and \
         values of their real length: inline if all have the same length, else boxed. Between the load and the \
         workload a tree finishes its background work (dictionary, compaction): up to {settled:.1} s here, not \
         included in any figure; memory is measured after it. All figures include choosing keys; every key is checked \
         at the end, and some reads during the run. Compare only within one table: other work on the machine affects \
         figures between runs.",
        chosen.collect::<String>(),
        outcome.record_bytes
    )
}

/// The tables for people.
const PARTS: [Part<'_>; 2] = [
    ("", &[1, 3, 7, 8]),
    (
        "Range of the rounds, latency, loads, memory by its own accounting",
        &[2, 4, 5, 9],
    ),
];

fn table(config: &PeersConfig, outcome: &PeersOutcome) -> Table {
    let others = || {
        let lines = outcome.lines.iter();
        lines.filter(|line| !line.peer.is_ours())
    };
    let fastest = outcome.fastest_other();
    // Blocks are built after the load.
    let loads = others().filter(|line| !matches!(line.peer, Peer::Blocks(_)));
    let fastest_load = loads.map(|line| line.loads_per_second).reduce(f64::max);
    let what = match config.workload {
        Workload::ReadOnly => "Mreads/s".to_owned(),
        workload => format!("{workload}\nMops/s"),
    };
    let headings = vec![
        "map".to_owned(),
        format!("{what}\nper core"),
        "least-most".into(),
        "of the\nfastest".into(),
        "read\np99 us".into(),
        "loads\nM/s".into(),
        "of the\nfastest".into(),
        "resident\nB/record".into(),
        "of the\nfastest".into(),
        "held\nB/record".into(),
    ];
    let rows = outcome.lines.iter().map(|line| {
        let ratio = |figure: &dyn Fn(&PeerLine) -> Option<f64>| {
            let ratio = fastest.and_then(|fastest| verdict::ratio(figure(line), figure(fastest)));
            ratio.map_or_else(|| "NA".into(), |ratio| format!("{ratio:.2}x"))
        };
        let bytes = |figure: Option<f64>| figure.map_or_else(|| "NA".into(), |bytes| format!("{bytes:.0}"));
        let load = |figure: &dyn Fn(&PeerLine) -> String| match line.peer {
            Peer::Blocks(_) => "NA".to_owned(),
            _ => figure(line),
        };
        let (least, most) = line.operations_range;
        vec![
            line.peer.to_string(),
            format!("{:.2}", line.operations_per_second_per_core / 1e6),
            format!("{:.2}-{:.2}", least / 1e6, most / 1e6),
            ratio(&|line| Some(line.operations_per_second_per_core)),
            line.read_p99_ns
                .map_or_else(|| "NA".into(), |p99| format!("{:.2}", p99 / 1e3)),
            load(&|line| format!("{:.2}", line.loads_per_second / 1e6)),
            load(&|line| {
                fastest_load.map_or_else(|| "NA".into(), |best| format!("{:.2}x", line.loads_per_second / best))
            }),
            bytes(line.resident_bytes_per_record),
            ratio(&|line| line.resident_bytes_per_record),
            bytes(line.bytes_held_per_record),
        ]
    });
    Table::new(headings, rows).parts(&PARTS)
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
