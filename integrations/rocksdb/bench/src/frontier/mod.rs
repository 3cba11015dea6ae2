//! The frontier: throughput against data size for every codec and level, with dictionaries and without.

use leafpress::Codec;
use leafpress::codec::EngineOptions;
use leafpress_lab::LabError;
use leafpress_lab::report::Document;
use leafpress_lab::report::html::{all as together, figure};
use leafpress_lab::report::scatter::pareto;
use maud::{Markup, html};
use serde::Serialize;

use crate::compression::Engine;
use crate::matrix::{NOTES, trade_off};
use crate::report::{shape, tables};
use crate::study::{Access, Study, summary};
use crate::{Compression, Engines};

/// RocksDB's LZ4HC levels of the frontier.
const LZ4HC_LEVELS: [i32; 3] = [3, 5, 9];
/// RocksDB's zstd levels of the frontier.
const ZSTD_LEVELS: [i32; 7] = [-10, -5, -1, 1, 3, 6, 9];
/// Leafpress's codecs of the frontier.
const CODECS: [&str; 17] = [
    "lz4",
    "lz4:hc=3",
    "lz4:hc=5",
    "lz4:hc=9",
    "lz4:fast=4",
    "zstd:-10",
    "zstd:-5",
    "zstd:-1",
    "zstd:1",
    "zstd:3",
    "zstd:6",
    "zstd:9",
    "deflate:1",
    "deflate:6",
    "qpl:software:fixed",
    "qpl:software:dynamic",
    "qpl:hardware:dynamic",
];

/// The results of a frontier.
#[derive(Debug, Clone, Serialize)]
pub struct Frontier {
    /// The machine.
    pub host: String,
    /// Its figures.
    pub study: Study,
}

/// Returns every codec and level of RocksDB and Leafpress that this machine supports; also each with a dictionary of
/// this many bytes, if its codec supports one and the number is not 0.
pub fn all(dictionary_bytes: u64, engines: Engines) -> Vec<Compression> {
    let mut all = Vec::new();
    if engines != Engines::Ours {
        all.push(Compression::NONE);
        all.push(Compression {
            engine: Engine::Lz4,
            dictionary_bytes: 0,
        });
        all.extend(LZ4HC_LEVELS.map(|level| Compression {
            engine: Engine::Lz4Hc(Some(level)),
            dictionary_bytes: 0,
        }));
        all.extend(ZSTD_LEVELS.map(|level| Compression {
            engine: Engine::Zstd(Some(level)),
            dictionary_bytes: 0,
        }));
    }
    if engines != Engines::RocksDb {
        let ours = CODECS.iter().filter(|name| runs_here(name));
        all.extend(ours.map(|name| Compression {
            engine: Engine::Leafpress {
                codec: (*name).to_owned(),
                options: Vec::new(),
            },
            dictionary_bytes: 0,
        }));
    }
    if dictionary_bytes == 0 {
        return all;
    }
    let with = |compression: &Compression| {
        let name = compression.codec();
        let has = name.starts_with("lz4") || name.starts_with("zstd");
        has.then(|| compression.with_dictionary(dictionary_bytes))
    };
    all.iter()
        .flat_map(|compression| std::iter::once(compression.clone()).chain(with(compression)))
        .collect()
}

fn runs_here(name: &str) -> bool {
    let opened = name.parse::<Codec>().map(|codec| codec.open(&EngineOptions::default()));
    matches!(opened, Ok(Ok(_)))
}

/// Returns the numbers of the cells, among those of an access pattern, that no other beats in both size and throughput;
/// the baseline, at 1 and 1, is among the others.
fn best(study: &Study, access: Access) -> Vec<usize> {
    let mut points = vec![(0.0, 0.0)];
    points.extend(study.cells(access).map(|cell| {
        (
            cell.size_change_pct().unwrap_or(f64::INFINITY),
            cell.throughput_change_pct().unwrap_or(f64::NEG_INFINITY),
        )
    }));
    pareto(&points)
}

/// The description of the columns, under the tables.
const CAPTION: &str = "◆ nothing else has as much throughput at as little data: the Pareto line. %: change against \
     the baseline, the median over pairs of runs made directly one after the other; data as loaded.";

/// Returns the description of the runs, in lines.
fn head(frontier: &Frontier) -> Vec<String> {
    let plan = &frontier.study.plan;
    vec![
        frontier.host.clone(),
        shape(&plan.shape),
        format!(
            "{} threads that read, {} that read and write, for each instance · {} pairs of {} s after {} s of warm-up",
            plan.threads(Access::ReadOnly),
            plan.threads(Access::Mixed),
            plan.rounds,
            plan.work.seconds,
            plan.work.warmup_seconds,
        ),
    ]
}

const TRADE_OFF: &str =
    "Throughput against data size; filled: leafpress, rings: RocksDB's own; the dashed line joins what nothing beats";

/// Returns the report.
pub fn document(frontier: &Frontier) -> Document<'_> {
    let study = &frontier.study;
    let mut document = Document::new("Leafpress in RocksDB: the frontier");
    document.head = head(frontier);
    document.troubles = study.troubles();
    document.notes = NOTES.to_vec();
    document.page_only(|| charts(study));
    study.tables(&mut document, |access| {
        best(study, access).into_iter().map(|number| (number, " ◆")).collect()
    });
    document.caption(CAPTION);
    document.tsv("summary", "summary.tsv", move || summary([study]));
    document.tsv("runs", "runs.tsv", || tables::summary(&study.runs));
    document.results(frontier);
    document
}

fn charts(study: &Study) -> Result<Markup, LabError> {
    let mut charts = Vec::new();
    for access in &study.plan.accesses {
        let svg = trade_off(study, *access, true)?;
        charts.extend(svg.map(|svg| html! { h2 { (access) } (figure(TRADE_OFF, &svg)) }));
    }
    Ok(together(&charts))
}
