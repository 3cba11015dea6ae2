//! The kernel in JavaScript gives the numbers of the one in Rust.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::html::SCRIPTS;
use super::browser::{chromium, node, render, run_node, text_of};
use crate::core::keys::Distribution;
use crate::model::{
    Access, BreakEven, CodecCosts, Method, Options, Outcome, Overhead, Point, Replacement, ReuseCurve, Trace, evaluate,
    formulas, raw_memory_for,
};

/// Numbers agree if they are this near, relative to the larger: transcendental functions and the order of sums differ by digits at the end.
const NEAR: f64 = 1e-6;
/// Of a clock: where a hit ratio changes steeply with the length of a round, those digits come to the front.
const NEAR_CLOCK: f64 = 2e-4;

fn laws() -> Vec<Distribution> {
    vec![
        Distribution::Uniform,
        Distribution::HotSet {
            keys_pct: 20.0,
            operations_pct: 80.0,
        },
        // The cold ones are the busier ones.
        Distribution::HotSet {
            keys_pct: 30.0,
            operations_pct: 10.0,
        },
        Distribution::SelfSimilar { h: 0.2 },
        Distribution::Zipfian { theta: 0.6 },
        Distribution::Zipfian { theta: 0.99 },
    ]
}

pub(super) fn trace() -> Access {
    let tier = |pages: f64, rate: f64| formulas::Tier { pages, rate };
    Access::Trace(Arc::new(Trace {
        name: "a trace".into(),
        accesses: 1000,
        pages: 300,
        rate: 1.0,
        first_accesses: 0.3,
        skipped_lines: 0,
        curve: ReuseCurve {
            points: vec![(1.0, 0.1), (20.0, 0.3), (100.0, 0.5), (250.0, 0.7)],
        },
        tiers: vec![tier(10.0, 0.04), tier(90.0, 0.004), tier(200.0, 0.0012)],
    }))
}

/// All laws, replacements, overheads and methods. Laws without steps have many tiers, and a clock over them takes long: they get little data.
fn grid() -> Vec<Options> {
    let mut grid = Vec::new();
    for law in laws() {
        for replacement in [Replacement::Clock, Replacement::Ideal, Replacement::Lru] {
            let stepless = matches!(law, Distribution::SelfSimilar { .. } | Distribution::Zipfian { .. });
            let slow = stepless && replacement == Replacement::Clock;
            for overhead in [Overhead::Pool, Overhead::None] {
                let mut options = Options::new(Method::Corrected);
                options.access = Access::Law(law);
                options.replacement = replacement;
                options.overhead = overhead;
                if slow {
                    options.page_bytes = 65536;
                    options.memory_bytes = 40 * 65536;
                    options.data_bytes = 120 * 65536;
                    options.codecs.truncate(1);
                    options.restore_after = 2;
                }
                if overhead == Overhead::None {
                    options.device_iops = Some(8642.0);
                    options.workers = 16;
                    options.background_pct = 75.0;
                    options.hit_us = 0.0;
                }
                if !slow || (overhead == Overhead::None && law != (Distribution::Zipfian { theta: 0.6 })) {
                    grid.push(options);
                }
            }
        }
        for data_bytes in [200_u64 << 30, 500 << 30, 10 << 30] {
            let mut options = Options::new(Method::AsPublished);
            options.access = Access::Law(law);
            options.data_bytes = data_bytes;
            grid.push(options);
        }
    }
    for replacement in [Replacement::Ideal, Replacement::Lru] {
        let mut options = Options::new(Method::Corrected);
        options.access = trace();
        options.replacement = replacement;
        options.overhead = Overhead::None;
        options.page_bytes = 8192;
        options.memory_bytes = 80 * 8192;
        grid.push(options);
    }
    for (restore_after, memory_bytes) in [(1, 15 << 30), (63, 2 << 30), (8, 1 << 20)] {
        let mut options = Options::new(Method::Corrected);
        options.restore_after = restore_after;
        options.memory_bytes = memory_bytes;
        grid.push(options);
    }
    // All the data fits. A clock with room for everything has rounds of any length, and which of them is found hangs on the last digit.
    let mut options = Options::new(Method::Corrected);
    options.memory_bytes = 300 << 30;
    options.replacement = Replacement::Lru;
    grid.push(options);
    // Nothing shrinks, and nothing is free.
    let mut options = Options::new(Method::Corrected);
    options.codecs = vec![CodecCosts::new("futile", 1.0, 500.0, 400.0)];
    grid.push(options);
    grid
}

/// The options as the script has them.
fn in_javascript(options: &Options) -> Value {
    let access = match &options.access {
        Access::Law(Distribution::HotSet {
            keys_pct,
            operations_pct,
        }) => json!({ "kind": "hotset", "keysPct": keys_pct, "operationsPct": operations_pct }),
        Access::Law(Distribution::SelfSimilar { h }) => json!({ "kind": "self-similar", "h": h }),
        Access::Law(Distribution::Zipfian { theta } | Distribution::Latest { theta }) => {
            json!({ "kind": "zipfian", "theta": theta })
        }
        Access::Law(Distribution::Uniform) => json!({ "kind": "uniform" }),
        Access::Trace(trace) => {
            let tiers = trace
                .tiers
                .iter()
                .map(|tier| json!({ "pages": tier.pages, "rate": tier.rate }));
            json!({ "kind": "trace", "name": trace.name, "pages": trace.pages, "tiers": tiers.collect::<Vec<_>>(), "curve": trace.curve.points })
        }
    };
    let codecs = options.codecs.iter().map(|codec| {
        json!({ "name": codec.name, "ratio": codec.ratio, "compressUs": codec.compress_us, "decompressUs": codec.decompress_us })
    });
    json!({
        "dataBytes": options.data_bytes, "memoryBytes": options.memory_bytes, "pageBytes": options.page_bytes,
        "codecs": codecs.collect::<Vec<_>>(), "access": access, "deviceUs": options.device_us, "deviceIops": options.device_iops,
        "hitUs": options.hit_us, "backgroundPct": options.background_pct, "workers": options.workers, "method": options.method,
        "replacement": options.replacement, "restoreAfter": options.restore_after, "overhead": options.overhead,
    })
}

/// A program that works the grid out and hands its results to `give`.
fn program(grid: &[Options], give: &str) -> String {
    let cases: Vec<_> = grid.iter().map(in_javascript).collect();
    format!(
        "\"use strict\";\n{}\nconst cases = {};\nconst results = cases.map((options) => {{\n\
         const model = new Model(options);\nconst outcome = finish(evaluate(model));\n\
         const us = outcome.codecs[0].curve[50].usPerPage;\n\
         return {{ ...outcome, rawMemory: finish(rawMemoryFor(model, us)) }};\n}});\n{give}(JSON.stringify(results));\n",
        SCRIPTS[..3].join("\n"),
        serde_json::to_string(&cases).unwrap()
    )
}

fn near(what: &str, found: &Value, expected: f64) {
    let nearness = if what.contains("Corrected Clock") {
        NEAR_CLOCK
    } else {
        NEAR
    };
    // JSON has no number without bound.
    if expected.is_infinite() {
        return assert!(found.is_null(), "{what}: {found} in JavaScript, without bound in Rust");
    }
    let found = found
        .as_f64()
        .unwrap_or_else(|| panic!("{what}: {found} is no number, it is {expected}"));
    let off = (found - expected).abs();
    assert!(
        off <= nearness * found.abs().max(expected.abs()).max(1e-3),
        "{what}: {found} in JavaScript, {expected} in Rust"
    );
}

fn near_point(what: &str, found: &Value, point: &Point) {
    for (name, expected) in [
        ("share", point.share),
        ("fits", point.fits),
        ("hitRatio", point.hit_ratio),
        ("chanceCompressed", point.chance_compressed),
        ("compressions", point.compressions),
        ("usPerPage", point.us_per_page),
        ("pagesPerSecond", point.pages_per_second),
    ] {
        near(&format!("{what}, {name}"), &found[name], expected);
    }
}

fn compare(what: &str, options: &Options, found: &Value) {
    let outcome: Outcome = evaluate(options).unwrap();
    near_point(&format!("{what}, raw"), &found["raw"], &outcome.raw);
    assert_eq!(found["codecs"].as_array().unwrap().len(), outcome.codecs.len());
    for (codec, found) in outcome.codecs.iter().zip(found["codecs"].as_array().unwrap()) {
        let what = format!("{what}, {}", codec.codec.name);
        assert_eq!(found["curve"].as_array().unwrap().len(), codec.curve.len());
        for (point, found) in codec.curve.iter().zip(found["curve"].as_array().unwrap()) {
            near_point(&format!("{what} at {}", point.share), found, point);
        }
        near_point(&format!("{what}, best"), &found["best"], &codec.best);
        near(&format!("{what}, pays until"), &found["paysUntil"], codec.pays_until);
        let kind = match codec.break_even {
            BreakEven::AtOnce => "at_once",
            BreakEven::Never => "never",
            BreakEven::Share(share) => {
                near(&format!("{what}, break-even"), &found["breakEven"]["share"], share);
                "share"
            }
        };
        assert_eq!(found["breakEven"]["kind"], kind, "{what}");
    }
    let crossings = found["crossings"].as_array().unwrap();
    assert_eq!(crossings.len(), outcome.crossings.len(), "{what}, crossings");
    for (crossing, found) in outcome.crossings.iter().zip(crossings) {
        assert_eq!(found["faster"], crossing.faster);
        near(&format!("{what}, crossing"), &found["share"], crossing.share);
    }
    let us = outcome.codecs[0].curve[50].us_per_page;
    match raw_memory_for(options, us).unwrap() {
        Some(bytes) => near(&format!("{what}, raw memory"), &found["rawMemory"], bytes),
        None => assert!(found["rawMemory"].is_null(), "{what}, raw memory"),
    }
}

#[test]
fn the_kernel_gives_the_models_numbers() {
    let grid = grid();
    let written = if let Some(node) = node() {
        run_node(&node, &program(&grid, "console.log"))
    } else if let Some(chromium) = chromium() {
        let give = "(text) => { document.getElementById(\"results\").textContent = text; }";
        let program = program(&grid, &format!("({give})"));
        let html = format!("<!doctype html><pre id=\"results\"></pre><script>{program}</script>");
        text_of(&render(&chromium, &html, ""), "results")
    } else {
        println!("skipped: no node or chromium");
        return;
    };
    let results: Vec<Value> = serde_json::from_str(&written).unwrap();
    assert_eq!(results.len(), grid.len());
    for (at, (options, found)) in grid.iter().zip(&results).enumerate() {
        let what = format!(
            "case {at}: {:?} {:?} {:?}, {}",
            options.method,
            options.replacement,
            options.overhead,
            options.access.name()
        );
        compare(&what, options, found);
    }
}
