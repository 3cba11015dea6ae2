use std::sync::{Arc, Mutex, PoisonError};

use super::fixtures::{input, measured};
use super::grid::Grid;
use super::html::page_with;
use super::*;
use crate::core::LabError;
use crate::model::Options;
use crate::report::testing::kept;

mod browser;
mod driven;
mod nodes;

/// A hostile file name.
const HOSTILE: &str =
    "</script><script>window.harmed = 1</script><img src=x onerror=\"window.harmed=1\">{{host}}&amp;\u{2028}'";

/// A grid takes seconds without optimisation, and most tests have the same one.
fn grid_of(input: &PageInput) -> Arc<Grid> {
    static KNOWN: Mutex<Vec<(String, Arc<Grid>)>> = Mutex::new(Vec::new());
    let options = input.options().unwrap();
    let lengths = input.codecs.iter().flat_map(|codec| &codec.blocks);
    let rooms: Vec<_> = lengths.map(|block| (block.block_bytes, block.ratio)).collect();
    let Options {
        access,
        replacement,
        promote_after_hits,
        overhead,
        data_bytes,
        memory_bytes,
        page_bytes,
        access_bytes,
        ..
    } = &options;
    let key = format!(
        "{access:?} {replacement} {promote_after_hits} {overhead:?} {data_bytes} {memory_bytes} {page_bytes} \
         {access_bytes:?} {rooms:?} {:?} {:?}",
        input.choice, input.reads
    );
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, grid)) = known.iter().find(|(known, _)| *known == key) {
        return Arc::clone(grid);
    }
    let (start, _) = super::start::Start::of(input, &options).unwrap();
    let grid = Arc::new(super::grid::grid(input, &options, &start).unwrap());
    known.push((key, Arc::clone(&grid)));
    grid
}

fn page_of(input: &PageInput) -> String {
    kept(page_with(input, &grid_of(input)).unwrap())
}

/// The JSON that the script reads.
fn embedded(html: &str) -> serde_json::Value {
    let (_, rest) = html
        .split_once("<script type=\"application/json\" id=\"input\">")
        .unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn hostile() -> PageInput {
    let mut input = input();
    let name = || HOSTILE.to_owned();
    (input.title, input.sentence, input.host, input.command_line) = (name(), name(), name(), name());
    input.reasons = vec![name()];
    input.device_note = Some(name());
    input.codecs[0].name = name();
    input.choice = Some(Choice {
        codec: name(),
        share_pct: 50.0,
    });
    input.files[0].name = name();
    input.files[0].ratios[0].codec = name();
    input.verify[0].setting = name();
    input.verify[0].codec = name();
    input.verify[0].share = name();
    input
}

#[test]
fn it_is_one_document_that_loads_nothing() {
    let html = page_of(&input());
    assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
    assert_eq!(html.matches("<html").count(), 1);
    assert_eq!(html.matches("</body>").count(), 1);
    assert_eq!(html.matches("<script").count(), 2, "the input and the program");
    // The one address in it names the language of SVG.
    let addresses = html.replace("http://www.w3.org/2000/svg", "");
    for word in ["http:", "https:", " src=", "@import", "url(", "<link", "import("] {
        assert!(!addresses.contains(word), "{word}");
    }
    assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    assert!(!html.contains("{{"), "a slot of the template was left empty");
}

#[test]
fn the_recommendation_and_the_tables_need_no_script() {
    let html = page_of(&input());
    let body = html.split_once("<body>").unwrap().1.split_once("<script").unwrap().0;
    for text in [
        "<noscript>",
        "Compress: zstd:1 on 90% of the memory, pages of 8K.",
        "<li>The pages compress to a third.</li>",
        "A CPU, 2 cores",
        "random reads, 4 in flight, direct",
        "Predicted, as the command computed it",
        "8,642",
        "packages/main",
        "80/20, 64M of 512M",
        "--memory 15G --data 200G",
    ] {
        assert!(body.contains(text), "{text}");
    }
}

#[test]
fn cautions_and_reasons_are_shown_separately() {
    let html = page_of(&input());
    let (header, rest) = html.split_once("</header>").unwrap();
    assert!(header.contains("The pages compress to a third.") && !header.contains("The data was not measured."));
    let cautions = rest.split("<section class=\"cautions\">").nth(1).unwrap();
    let cautions = cautions.split("</section>").next().unwrap();
    assert!(cautions.contains("The data was not measured.") && !cautions.contains("compress to a third"));
}

#[test]
fn its_figures_are_the_models() {
    let input = input();
    let outcome = crate::model::evaluate(&input.options().unwrap()).unwrap();
    let point = outcome.codecs[1].curve[90];
    let html = page_of(&input);
    assert!(html.contains(&format!(
        "<data id=\"f-us\" value=\"{}\">{:.0}<",
        point.us_per_page, point.us_per_page
    )));
    assert!(html.contains(&format!(
        "<data id=\"f-hit\" value=\"{}\">{:.1}%<",
        point.hit_ratio,
        point.hit_ratio * 100.0
    )));
}

#[test]
fn shows_a_files_ratios_for_each_block_length() {
    let html = page_of(&measured());
    for text in [
        "Blocks of 4K",
        "<details open><summary>Blocks of 8K",
        "Blocks of 64K",
        ">dickens<",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn the_input_is_embedded() {
    let json = embedded(&page_of(&input()));
    assert_eq!(json["format"], 5);
    assert_eq!(json["within_error"], crate::model::WITHIN_ERROR);
    assert_eq!(json["most_compressed"], crate::model::MAX_COMPRESSED);
    assert_eq!(json["access"], "hotset:20:80");
    assert_eq!(json["grid"]["accesses"][0]["name"], "hotset:20:80");
    assert_eq!(json["memory_bytes"], 15_u64 << 30);
    assert_eq!(json["replacement"], "clock");
    assert_eq!(json["overhead"], "pool");
    assert_eq!(json["codecs"][1]["blocks"][1]["ratio"], 2.97);
    assert_eq!(json["device"][1]["p99_us"], 463.0 * 2.5);
    assert_eq!(json["hues"].as_array().unwrap().len(), 2);
}

#[test]
fn hostile_names_stay_text() {
    let html = page_of(&hostile());
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert!(!html.contains("<img") && html.contains("&lt;img"));
    assert!(
        html.contains("{{host}}"),
        "what is put in is not looked through for slots"
    );
    assert_eq!(embedded(&html)["files"][0]["name"], HOSTILE);
    assert!(!html.contains('\u{2028}') || !html.split("id=\"input\"").nth(1).unwrap().contains('\u{2028}'));
}

#[test]
fn what_was_not_measured_is_absent() {
    let mut bare = input();
    bare.reasons.clear();
    bare.choice = None;
    bare.memcpy.clear();
    bare.device.clear();
    bare.device_note = None;
    bare.device_iops = None;
    bare.files.clear();
    bare.verify.clear();
    let html = page_of(&bare);
    for text in ["Measured: device", "Ratio of each file", "Checked against"] {
        assert!(!html.contains(text), "{text}");
    }
    assert!(html.contains("No compression:"));
}

#[test]
fn what_cannot_be_computed_is_refused() {
    let refused = |change: fn(&mut PageInput), option: &str| {
        let mut input = input();
        change(&mut input);
        match page(&input) {
            Err(LabError::Option { option: found, .. }) => assert_eq!(found, option),
            other => panic!("{option}: {:?}", other.map(|html| html.len())),
        }
    };
    refused(|input| input.codecs.clear(), "codec");
    refused(|input| input.page_bytes = 32 << 10, "codec");
    refused(|input| input.codecs[1].name = "lz4".into(), "codec");
    refused(|input| input.choice.as_mut().unwrap().codec = "brotli".into(), "codec");
    refused(|input| input.choice.as_mut().unwrap().share_pct = 101.0, "share");
    refused(|input| input.device_us = f64::NAN, "device-us");
    refused(|input| input.memory_bytes = 1, "memory");
    refused(|input| input.promote_after_hits = 0, "promote-after-hits");
}
