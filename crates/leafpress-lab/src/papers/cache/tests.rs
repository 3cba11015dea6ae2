use std::sync::atomic::AtomicBool;

use super::*;
use crate::cache::fixtures;
use crate::cache::job::{Task, measure};
use crate::cache::{Measured, Mismatches, Options, Work};
use crate::core::keys::Distribution;
use crate::report::testing::{assert_golden, charts, has_verdict, kept};

fn whole(figure: Figure) -> FigureOptions {
    FigureOptions {
        scale: 1.0,
        ..FigureOptions::new(figure)
    }
}

/// Of each scenario: its name, the working set and the disk in times of its memory, and percent of PUTs.
fn shapes(figure: Figure) -> Vec<(String, f64, f64, f64)> {
    let scenarios = whole(figure).scenarios();
    let shape = |scenario: Scenario| {
        let options = scenario.options;
        let memory = options.memory_bytes as f64;
        let times = |bytes: u64| bytes as f64 / memory;
        let disk = options.disk.as_ref().map_or(0.0, |disk| times(disk.bytes));
        (
            scenario.name,
            times(options.working_set_bytes()),
            disk,
            options.write_pct,
        )
    };
    scenarios.into_iter().map(shape).collect()
}

fn hot_keys(options: &Options) -> Option<f64> {
    match options.distribution() {
        Distribution::HotSet {
            keys_pct,
            operations_pct: 80.0,
        } => Some(keys_pct),
        _ => None,
    }
}

fn engines(figure: Figure) -> Vec<String> {
    let engines = whole(figure).engines();
    engines.iter().map(ToString::to_string).collect()
}

fn objects(options: &Options) -> &crate::cache::PaperObjects {
    match &options.work {
        Work::Paper(objects) => objects,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_figure_has_scenarios_of_different_names_that_can_be_run() {
    for figure in Figure::ALL {
        let options = FigureOptions::new(figure);
        options.validate().unwrap();
        assert_eq!(figure.to_string().parse::<Figure>().unwrap(), figure);
        let mut names: Vec<_> = options.scenarios().into_iter().map(|one| one.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!((names.len(), all > 0), (all, true), "{figure}");
        for scenario in options.scenarios() {
            assert!(
                scenario.options.load && scenario.options.backend_us == 1000.0,
                "{figure}"
            );
        }
    }
}

#[test]
fn figure_7_requests_far_more_than_fits() {
    // 6 TB with 64 or 128 GB of DRAM, and 0.5 or 1 TB of SSD.
    let expected = [
        ("64 GB, 0.5 TB", 96.0, 8.0),
        ("64 GB, 1 TB", 96.0, 16.0),
        ("128 GB, 0.5 TB", 48.0, 4.0),
        ("128 GB, 1 TB", 48.0, 8.0),
    ];
    let expected = expected.map(|(name, set, disk)| (name.to_owned(), set, disk, 50.0));
    assert_eq!(shapes(Figure::Fig7), expected);
    let papers: Vec<_> = whole(Figure::Fig7).scenarios().iter().map(|one| one.paper).collect();
    assert_eq!(papers, [None, None, None, Some("hits 69.7%")]);
}

#[test]
fn in_figures_8_to_10_all_fits_into_memory_and_disk() {
    for (figure, scenarios) in [(Figure::Fig8, 16), (Figure::Fig9, 4), (Figure::Fig10, 8)] {
        let shapes = shapes(figure);
        assert_eq!(shapes.len(), scenarios, "{figure}");
        for (at, (name, set, disk, _)) in shapes.iter().enumerate() {
            assert_eq!(*set, [16.0, 8.0, 4.0, 2.0][at % 4], "{figure} {name}");
            assert!(disk > set && name.contains(&format!("1:{set}")), "{figure} {name}");
        }
        assert_eq!(&engines(figure)[..3], ["leafpress", "leafpress@page", "quick_cache"]);
    }
    let by_locality: Vec<_> = whole(Figure::Fig8)
        .scenarios()
        .iter()
        .map(|one| hot_keys(&one.options))
        .collect();
    let expected = [Some(8.0), Some(20.0), Some(64.0), None];
    assert!(by_locality.chunks(4).zip(expected).all(|(four, one)| four == [one; 4]));
    let puts: Vec<_> = shapes(Figure::Fig10).into_iter().map(|shape| shape.3).collect();
    assert_eq!(puts, [100.0, 100.0, 100.0, 100.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn other_figures_are_of_objects_codecs_and_a_move() {
    let lengths = |figure: Figure| {
        let scenarios = whole(figure).scenarios();
        let lengths = scenarios.iter().map(|one| objects(&one.options).value_bytes.clone());
        lengths.collect::<Vec<_>>()
    };
    assert_eq!(lengths(Figure::Fig11), [[32], [64], [128]]);
    assert_eq!(lengths(Figure::Fig16), [[64, 256, 2048]]);
    let etas = whole(Figure::Fig14).scenarios();
    let etas: Vec<_> = etas
        .iter()
        .map(|one| (objects(&one.options).incompressible_pct, one.paper))
        .collect();
    let expected = [
        (100.0, Some("DRAM hits 26.4%")),
        (70.0, None),
        (50.0, None),
        (30.0, Some("DRAM hits 73.6%")),
    ];
    assert_eq!(etas, expected);
    assert_eq!(engines(Figure::Fig12), ["leafpress:auto", "leafpress:lz4"]);
    let puts: Vec<_> = shapes(Figure::Fig12).into_iter().map(|shape| shape.3).collect();
    assert_eq!(puts, [70.0, 30.0]);
    let moved = &whole(Figure::Fig13).scenarios()[0].options;
    assert_eq!((moved.shift_at, hot_keys(moved)), (Some(4_000_000), Some(8.0)));
}

#[test]
fn a_scale_shrinks_memory_working_set_and_operations_alike() {
    let half = FigureOptions {
        scale: 0.5,
        ..whole(Figure::Fig13)
    };
    let (one, other) = (
        &whole(Figure::Fig13).scenarios()[0].options,
        &half.scenarios()[0].options,
    );
    assert_eq!(one.memory_bytes, 2 * other.memory_bytes);
    assert_eq!(one.working_set_bytes(), 2 * other.working_set_bytes());
    assert_eq!(one.shift_at, other.shift_at.map(|at| 2 * at));
    assert_eq!(one.length, Some(Length::Operations(12_000_000)));
    assert_eq!(other.length, Some(Length::Operations(6_000_000)));
}

#[test]
fn mistakes_are_named() {
    let message = |options: FigureOptions| options.validate().unwrap_err().to_string();
    let of = |memory_bytes: u64, scale: f64| FigureOptions {
        memory_bytes,
        scale,
        ..FigureOptions::new(Figure::Fig8)
    };
    for (options, words) in [
        (of(64 << 20, 0.0), &["scale", "0"][..]),
        (of(64 << 20, 2.0), &["scale", "2"]),
        (of(64 << 20, 0.01), &["memory", "64M", "--scale 0.01", "4M"]),
        (of(1 << 50, 1.0), &["memory", "this machine"]),
        (
            FigureOptions {
                length: Some(Length::Operations(10)),
                ..FigureOptions::new(Figure::Fig13)
            },
            &["shift-at", "10"],
        ),
        (
            FigureOptions {
                engines: Some(Vec::new()),
                ..FigureOptions::new(Figure::Fig8)
            },
            &["engines", "empty"],
        ),
    ] {
        let refusal = message(options);
        assert!(
            words.iter().all(|word| refusal.contains(word)),
            "{words:?} in {refusal}"
        );
    }
    let unknown = "fig15".parse::<Figure>().unwrap_err().to_string();
    assert!(unknown.contains("fig15") && unknown.contains("fig16"), "{unknown}");
}

/// A figure in the least memory, run in this process.
fn small(figure: Figure) -> FigureOutcome {
    let directory = tempfile::tempdir().unwrap();
    let options = FigureOptions {
        memory_bytes: 4 << 20,
        scale: 1.0,
        disk_path: directory.path().join("disk"),
        warmup_operations: Some(8000),
        length: Some(Length::Operations(20_000)),
        ..FigureOptions::new(figure)
    };
    let scenario = |mut one: Scenario| {
        // As many operations as a test has time for.
        one.options.shift_at = one.options.shift_at.map(|_| 10_000);
        let mut outcome = fixtures::outcome();
        outcome.lines.truncate(1);
        let engine = one.options.engines[0];
        let task = Task {
            options: one.options.clone(),
            engine,
            capacity_bytes: one.options.memory_bytes,
        };
        outcome.lines[0].engine = engine;
        outcome.lines[0].measured = Some(measure(&task, &AtomicBool::new(false), &mut |_, _| {}).unwrap());
        outcome.options = one.options;
        ScenarioOutcome {
            name: one.name,
            paper: one.paper.map(str::to_owned),
            outcome,
        }
    };
    FigureOutcome {
        scenarios: options.scenarios().into_iter().map(scenario).collect(),
        wanted_runs: options.scenarios().len(),
        options,
        cancelled: false,
    }
}

fn measured(figure: &FigureOutcome) -> Vec<&Measured> {
    let lines = figure.scenarios.iter().flat_map(|one| &one.outcome.lines);
    lines.filter_map(|line| line.measured.as_ref()).collect()
}

#[test]
fn a_small_figure_runs_to_its_end_with_right_values() {
    let figure = small(Figure::Fig14);
    let hits: Vec<f64> = measured(&figure).iter().filter_map(|m| m.memory_hit_ratio()).collect();
    for one in measured(&figure) {
        assert_eq!((one.operations(), &one.mismatches), (20_000, &Mismatches::default()));
        let read = one.read_latency.as_ref().unwrap();
        assert_eq!(read.samples, one.hits + one.misses);
        // All was loaded, and fits: the memory and the disk together answer nearly all, unless the machine is so busy
        // that the disk falls behind, and records that leave memory are dropped.
        assert!(
            one.hit_ratio().unwrap() > 0.6 && one.disk_hit_ratio().unwrap() > 0.03,
            "{one:?}"
        );
    }
    assert!(
        hits.len() == 4 && hits[0] < hits[3],
        "what compresses stays in memory: {hits:?}"
    );
}

#[test]
fn distinguishes_reads_of_each_length() {
    let figure = small(Figure::Fig16);
    let one = measured(&figure)[0];
    let samples: Vec<u64> = one
        .latency_by_length
        .iter()
        .flatten()
        .map(|latency| latency.samples)
        .collect();
    assert_eq!(samples.iter().sum::<u64>(), one.hits + one.misses);
    // As many bytes of each length: the shorter, the more of them.
    let of_all = |at: usize| samples[at] as f64 / samples.iter().sum::<u64>() as f64;
    assert!(
        (of_all(0) - 0.754).abs() < 0.03 && (of_all(2) - 0.029).abs() < 0.02,
        "{samples:?}"
    );
    assert_eq!(one.mismatches, Mismatches::default());
    let report = figure_document(&figure).text();
    assert!(report.contains("p50 of") && report.contains("2K"), "{report}");
}

#[test]
fn a_move_of_the_hot_keys_is_seen() {
    let figure = small(Figure::Fig13);
    let (one, options) = (measured(&figure)[0], &figure.scenarios[0].outcome.options);
    let moved = one.moved(options).unwrap();
    // Which of the two is longer depends on the machine's load.
    assert!(moved.worst_ns > 0.0 && moved.before_ns > 0.0, "{moved:?}");
    assert_eq!(one.mismatches, Mismatches::default());
    let report = figure_document(&figure).text();
    assert!(report.contains("mean us") && report.contains("back after"), "{report}");
    assert!(
        figure_document(&figure)
            .page("leafpress")
            .unwrap()
            .contains("while the hot keys move")
    );
}

/// A figure nobody measured, interrupted in its second scenario.
fn interrupted() -> FigureOutcome {
    let options = FigureOptions {
        engines: Some(fixtures::outcome().options.engines),
        ..FigureOptions::new(Figure::Fig8)
    };
    let scenario = |one: Scenario| ScenarioOutcome {
        name: one.name,
        paper: one.paper.map(str::to_owned),
        outcome: crate::cache::Outcome {
            options: one.options,
            ..fixtures::outcome()
        },
    };
    let mut scenarios: Vec<_> = options.scenarios().into_iter().take(2).map(scenario).collect();
    scenarios[1].outcome.lines.truncate(2);
    FigureOutcome {
        scenarios,
        wanted_runs: 64,
        options,
        cancelled: true,
    }
}

#[test]
fn a_figure_is_reported_as_measured() {
    let figure = interrupted();
    let report = figure_document(&figure).text();
    assert!(report.lines().all(|line| line.chars().count() <= 150), "{report}");
    assert_golden("papers/golden/figure.txt", &report);
    assert!(report.contains("interrupted: 6 of 64 runs finished"));
    let lines = summary(&figure);
    let scenarios: Vec<_> = lines.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    let (first, second) = ("strong 1:16", "strong 1:8");
    assert_eq!(scenarios, ["scenario", first, first, first, second, second]);
    let columns: Vec<_> = lines.lines().map(|line| line.split('\t').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{columns:?}");
}

#[test]
fn a_page_has_the_table_the_paper_and_the_troubles() {
    let page = kept(
        figure_document(&interrupted())
            .page("leafpress cache --paper fig8")
            .unwrap(),
    );
    for part in [
        "Figure 8 of the ZipCache paper",
        "DRAM hits +36.3 points",
        "16 threads on a machine with 384 GB and a drive with built-in compression",
        "strong 1:16: failed: foyer",
        "interrupted: 6 of 64",
        "Hit ratio of the memory",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(charts(&page), 3);
    assert!(has_verdict(&page), "{page}");
}

#[test]
fn results_read_back() {
    let figure = interrupted();
    let text = serde_json::to_string(&figure).unwrap();
    assert_eq!(serde_json::from_str::<FigureOutcome>(&text).unwrap(), figure);
}
