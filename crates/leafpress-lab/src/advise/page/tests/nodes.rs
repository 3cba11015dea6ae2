//! Interpolation between the nodes of the grid is close to the model.

use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde_json::{Value, json};

use super::super::fixtures::{input, measured};
use super::super::html::{SCRIPTS, US_OFF};
use super::super::*;
use super::browser::{chromium, node, render, run_node, text_of};
use super::{embedded, page_of};
use crate::core::keys::{Distribution, unit};
use crate::model::{Access, MAX_COMPRESSED, Model, Options, Replacement, ReuseCurve, Trace, evaluate, formulas};

/// Tolerance of hit ratios where everything just fits: elsewhere nine in ten are within a fifth of a percent.
const HIT_OFF: f64 = 0.05;

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
            points: (1..=300)
                .map(|pages| (f64::from(pages), 0.7 * (1.0 - (-f64::from(pages) / 60.0).exp())))
                .collect(),
        },
        tiers: vec![tier(10.0, 0.02), tier(90.0, 0.005), tier(200.0, 0.00175)],
    }))
}

/// The script's results for the cases: `[access, replacement, memory, data, page, codec, share]` each.
fn read(html: &str, cases: &[Value]) -> Option<Vec<Value>> {
    let program = format!(
        "\"use strict\";\n{}\nconst input = {};\nconst grid = new Grid(input.grid);\nconst cases = {};\n\
         const results = cases.map((options) => {{\n\
         const model = new Model(options, grid);\nconst codec = options.codecs[0];\n\
         const point = options.share > 0 ? model.point(codec, options.share) : model.raw(options.memoryBytes);\n\
         const best = options.mostCompressed ? model.evaluate(codec, model.raw(options.memoryBytes)).best.share : \
         null;\n\
         return {{ ...point, best }};\n}});\n",
        SCRIPTS[0],
        embedded(html),
        serde_json::to_string(cases).unwrap()
    );
    let written = if let Some(node) = node() {
        run_node(&node, &format!("{program}console.log(JSON.stringify(results));"))
    } else if let Some(chromium) = chromium() {
        let give = "document.getElementById(\"results\").textContent = JSON.stringify(results);";
        let html = format!("<!doctype html><pre id=\"results\"></pre><script>{program}{give}</script>");
        text_of(&render(&chromium, &html, ""), "results")
    } else {
        println!("skipped: no node or chromium");
        return None;
    };
    Some(serde_json::from_str(&written).unwrap())
}

/// Caches at random between the nodes, under an access of the page.
fn compare(input: &PageInput, access: &Access, cases: usize) {
    // Pages as long as what an access wants, longer and shorter ones.
    let lengths = match access {
        Access::Distribution(_) => input.lengths(),
        Access::Trace(_) => vec![input.page_bytes],
    };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let base_options = input.options().unwrap();
    let mut options: Vec<(Options, usize, f64)> = Vec::new();
    for _ in 0..cases {
        let mut options_of = base_options.clone();
        options_of.access = access.clone();
        let any = |rng: &mut Xoshiro256PlusPlus| lengths[(rng.next_u64() % lengths.len() as u64) as usize];
        options_of.page_bytes = any(&mut rng);
        options_of.access_bytes = Some(any(&mut rng));
        options_of.codecs = PageInput {
            page_bytes: options_of.page_bytes,
            ..input.clone()
        }
        .options()
        .unwrap()
        .codecs;
        let times = |rng: &mut Xoshiro256PlusPlus, decades: f64| 10_f64.powf((unit(rng) * 2.0 - 1.0) * decades);
        options_of.memory_bytes = ((base_options.memory_bytes as f64 * times(&mut rng, 1.0)) as u64).max(65536);
        if let Access::Distribution(_) = access {
            options_of.data_bytes = (base_options.data_bytes as f64 * times(&mut rng, 1.0)) as u64;
        }
        options_of.replacement = if rng.next_u64() % 4 == 0 {
            Replacement::Ideal
        } else {
            base_options.replacement
        };
        let share = [0.0, unit(&mut rng)][usize::from(rng.next_u64() % 8 > 0)];
        options.push((
            options_of,
            (rng.next_u64() % base_options.codecs.len() as u64) as usize,
            share,
        ));
    }
    let queries = options.iter().map(|(options, codec, share)| {
        let codec = &options.codecs[*codec];
        json!({
            "access": access.name(), "replacement": options.replacement, "memoryBytes": options.memory_bytes,
            "dataBytes": options.data_bytes(), "pageBytes": options.page_bytes, "accessBytes": options.access_bytes(),
            "share": share,
            "codecs": [{ "ratio": codec.ratio, "compressUs": codec.compress_us, "decompressUs": codec.decompress_us }],
            "deviceUs": options.device_us, "deviceIops": options.device_iops, "hitUs": options.hit_us,
            "backgroundPct": options.background_pct, "workers": options.workers,
        })
    });
    let Some(found) = read(&page_of(input), &queries.collect::<Vec<_>>()) else {
        return;
    };
    assert_eq!(found.len(), options.len());
    let (mut worst_hit, mut worst_us) = (0.0_f64, 0.0_f64);
    for ((options, codec, share), found) in options.iter().zip(&found) {
        let model = Model::of(options).unwrap();
        let point = match *share > 0.0 {
            true => model.point(&options.codecs[*codec], *share),
            false => model.raw(options.memory_bytes as f64),
        };
        let figure = |name: &str| found[name].as_f64().unwrap_or_else(|| panic!("{name} in {found}"));
        let hit = (figure("hitRatio") - point.hit_ratio).abs();
        // Missing hits become reads, whose cost is added.
        let us = (figure("usPerPage") - point.us_per_page).abs() - HIT_OFF * options.device_us;
        let us = us.max(0.0) / point.us_per_page;
        (worst_hit, worst_us) = (worst_hit.max(hit), worst_us.max(us));
        let what = || {
            format!(
                "{} of {} in pages of {} {} memory {} data {} share {share:.3}: hit {} for {}, us {} for {}",
                access.name(),
                options.access_bytes(),
                options.page_bytes,
                options.replacement,
                options.memory_bytes,
                options.data_bytes,
                found["hitRatio"],
                point.hit_ratio,
                found["usPerPage"],
                point.us_per_page
            )
        };
        assert!(hit <= HIT_OFF && us <= US_OFF, "{}", what());
    }
    println!(
        "{}: hit ratios are off by {worst_hit:.5}, microseconds by {worst_us:.5} at most",
        access.name()
    );
}

#[test]
fn laws_with_steps_are_read_as_the_model_has_them() {
    for access in ["uniform", "hotset:20:80", "hotset:10:90"] {
        compare(&input(), &Access::parse(access).unwrap(), 200);
    }
}

#[test]
fn laws_without_steps_are_read_as_the_model_has_them() {
    // Of little data: a clock over many tiers takes long.
    let little = PageInput {
        access: Access::Distribution(Distribution::SelfSimilar { h: 0.2 }),
        data_bytes: 120 << 23,
        memory_bytes: 40 << 23,
        ..input()
    };
    compare(&little, &little.access, 30);
}

#[test]
fn a_trace_is_read_as_the_model_has_it() {
    let input = PageInput {
        access: trace(),
        replacement: Replacement::Lru,
        overhead: crate::model::Overhead::None,
        memory_bytes: 80 * 8192,
        ..input()
    };
    compare(&input, &input.access, 100);
}

/// The page's best share has the command's bound, though 100% would take less time by the formulas.
#[test]
fn the_page_recommends_no_share_that_the_command_does_not() {
    let input = PageInput {
        access: Access::parse("uniform").unwrap(),
        device_us: 2000.0,
        ..input()
    };
    let options = input.options().unwrap();
    let outcome = evaluate(&options).unwrap();
    let curve = &outcome.codecs[0].curve;
    assert!(curve[100].us_per_page < outcome.codecs[0].best.us_per_page);
    assert_eq!(outcome.codecs[0].best.share, MAX_COMPRESSED);
    let page = page_of(&input);
    let codec = &options.codecs[0];
    let queries = json!({
        "access": options.access.name(), "replacement": options.replacement, "memoryBytes": options.memory_bytes,
        "dataBytes": options.data_bytes(), "pageBytes": options.page_bytes, "accessBytes": options.access_bytes(),
            "share": 0.5,
        "codecs": [{ "ratio": codec.ratio, "compressUs": codec.compress_us, "decompressUs": codec.decompress_us }],
        "deviceUs": options.device_us, "deviceIops": options.device_iops, "hitUs": options.hit_us,
        "backgroundPct": options.background_pct, "workers": options.workers,
        "mostCompressed": embedded(&page)["most_compressed"],
    });
    let Some(found) = read(&page, &[queries]) else { return };
    assert_eq!(found[0]["best"], MAX_COMPRESSED);
}

#[test]
fn every_length_of_pages_and_ratio_has_its_room() {
    let json = embedded(&page_of(&measured()));
    let rooms = json["grid"]["rooms"].as_array().unwrap();
    let of = |page: u64| rooms.iter().filter(|room| room["page_bytes"] == page).count();
    assert!(of(8192) >= 4 && of(4096) == of(65536), "raw pages and each codec");
}
