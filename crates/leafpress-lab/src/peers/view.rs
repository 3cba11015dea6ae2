//! The comparison's table for people.

use super::{Peer, PeerLine, PeersConfig, PeersOutcome};
use crate::core::keys::LoadOrder;
use crate::core::resources;
use crate::eval::Workload;
use crate::harness::weigh::RESIDENT;
use crate::report::paragraph::wrapped;
use crate::report::table::{Part, of_parts};
use crate::report::verdict;

/// The table, what its figures are, and what went wrong.
pub(super) fn text(config: &PeersConfig, outcome: &PeersOutcome) -> String {
    let mut text = verdict::text(&outcome.verdicts(config.workload)) + &verdict::cautions(&outcome.cautions);
    let (mut headings, rows) = table(config, outcome);
    // Next to the memory, the reference is clear.
    if let Some(last) = headings.last_mut() {
        *last = "of the\nfastest".into();
    }
    text += &format!("{}\n{}\n", head(config, outcome), of_parts(headings, rows, 1, &PARTS));
    text += &wrapped(&notes(outcome), "", "");
    for trouble in troubles(outcome) {
        text += &format!("{trouble}\n");
    }
    text
}

/// Describes the data and the measurement.
pub(super) fn head(config: &PeersConfig, outcome: &PeersOutcome) -> String {
    format!(
        "{}\nloaded {} by {} thread{}, {} of {} s, {}",
        outcome.data,
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
    )
}

/// Explanation of the figures.
pub(super) fn notes(outcome: &PeersOutcome) -> String {
    let settled = outcome.lines.iter().map(|line| line.settle_seconds).fold(0.0, f64::max);
    format!(
        "A record has {:.0} bytes of key and value. {RESIDENT} All maps use this program's \
         allocator, and keys and values of their real length: inline if all have the same length, else boxed. Between the load \
         and the workload a tree finishes its background work (dictionary, compaction): up to {settled:.1} s here, not included in any \
         figure; memory is measured after it. All figures include choosing keys; every key is checked at the end, and some reads \
         during the run. Compare only within one table: other work on the machine affects figures between runs.",
        outcome.record_bytes
    )
}

/// Failures and missing figures.
pub(super) fn troubles(outcome: &PeersOutcome) -> Vec<String> {
    let left_out = outcome.left_out.iter().map(|left_out| format!("skipped: {left_out}"));
    let failures = outcome.failures.iter().map(|failure| format!("failed: {failure}"));
    let unknown = outcome.lines.iter().filter_map(|line| {
        let why = line.resident_unknown.as_ref()?;
        Some(format!("no resident memory of {}: {why}", line.peer))
    });
    let mut troubles: Vec<String> = left_out.chain(unknown).chain(failures).collect();
    if outcome.mismatches > 0 {
        troubles.push(format!("MISMATCHES: {}", outcome.mismatches));
    }
    if outcome.cancelled {
        troubles.push("cancelled: only finished samples are included".into());
    }
    troubles
}

/// The tables for people.
const PARTS: [Part<'_>; 2] = [
    ("", &[1, 3, 7, 9]),
    (
        "Range of the rounds, latency, loads, memory by its own accounting",
        &[2, 4, 5, 8],
    ),
];

/// Headings and rows of the table.
pub(super) fn table(config: &PeersConfig, outcome: &PeersOutcome) -> (Vec<String>, Vec<Vec<String>>) {
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
        "held\nB/record".into(),
        "memory of\nthe fastest".into(),
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
            bytes(line.bytes_held_per_record),
            ratio(&|line| line.resident_bytes_per_record),
        ]
    });
    (headings, rows.collect())
}
