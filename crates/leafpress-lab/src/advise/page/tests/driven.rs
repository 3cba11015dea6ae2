//! The page in a browser: what a reader moves, and what the page then says.

use super::super::fixtures::{input, measured};
use super::super::html::US_OFF;
use super::super::*;
use super::browser::{chromium, render, text_of};
use super::{hostile, page_of};
use crate::core::keys::Distribution;
use crate::model::{Access, Options, Point, Replacement, evaluate, raw_memory_for};

/// Runs before the page's own scripts: keeps what goes wrong in them.
const WATCH: &str = "<script>window.failures = []; addEventListener('error', (event) => failures.push(event.message)); \
    addEventListener('securitypolicyviolation', (event) => failures.push(`refused ${event.blockedURI}`));</script>";

/// Runs after the scripts: performs an action, and records the visible state when everything is recomputed.
fn probe(what: &str) -> String {
    format!(
        "<script>\n{what}\nconst look = setInterval(() => {{\n\
         if (document.documentElement.dataset.computed !== 'yes') return;\n\
         clearInterval(look);\n\
         setTimeout(() => {{\nconst found = document.createElement('pre');\nfound.id = 'probe';\n\
         const figure = (id) => document.getElementById(id).value;\n\
         found.textContent = JSON.stringify({{ hash: location.hash, hit: figure('f-hit'), us: figure('f-us'), pages: \
         figure('f-pages'), worth: figure('f-memory'), conclusion: document.getElementById('conclusion').textContent, \
         failures, harmed: window.harmed ?? 0,\n\
         charts: [...document.querySelectorAll('figure:not([hidden]) .drawing svg')].length,\n\
         wide: document.documentElement.scrollWidth > document.documentElement.clientWidth }});\n\
         document.body.append(found);\n}}, 1000);\n}}, 20);\n</script>"
    )
}

/// The visible state after `what` was done to a page at `hash`; `None` without a browser.
fn driven(input: &PageInput, hash: &str, what: &str) -> Option<(serde_json::Value, String)> {
    let Some(chromium) = chromium() else {
        println!("skipped: no chromium");
        return None;
    };
    let html = page_of(input)
        .replacen("<body>", &format!("<body>{WATCH}"), 1)
        .replacen("</body>", &format!("{}</body>", probe(what)), 1);
    let dom = render(&chromium, &html, hash);
    let found: serde_json::Value = serde_json::from_str(&text_of(&dom, "probe")).unwrap();
    assert_eq!(found["failures"], serde_json::json!([]));
    // Numbers that are none end up in coordinates.
    for word in ["NaN", "Infinity", "undefined"] {
        // A hidden chart has no drawing.
        let drawn = dom
            .split("class=\"drawing\"><svg")
            .skip(1)
            .filter_map(|rest| rest.split("</svg>").next());
        for drawing in drawn {
            assert!(!drawing.contains(word), "{word} in {drawing}");
        }
    }
    Some((found, dom))
}

fn move_slider(id: &str, value: &str) -> String {
    format!(
        "{{ const slider = document.getElementById('{id}'); slider.value = '{value}'; \
         slider.dispatchEvent(new Event('input', {{ bubbles: true }})); }}"
    )
}

fn choose(id: &str, value: &str) -> String {
    format!(
        "{{ const select = document.getElementById('{id}'); select.value = '{value}'; \
         select.dispatchEvent(new Event('change', {{ bubbles: true }})); }}"
    )
}

/// A key's value in an address, or its initial value.
fn in_hash_or(found: &serde_json::Value, key: &str, first: f64) -> f64 {
    let hash = found["hash"].as_str().unwrap();
    if hash.contains(&format!("{key}=")) {
        in_hash(found, key)
    } else {
        first
    }
}

/// A key's value in an address.
fn in_hash(found: &serde_json::Value, key: &str) -> f64 {
    let hash = found["hash"].as_str().unwrap();
    let word = hash
        .trim_start_matches('#')
        .split('&')
        .find_map(|word| word.strip_prefix(&format!("{key}=")));
    word.unwrap_or_else(|| panic!("no {key} in {hash}")).parse().unwrap()
}

fn assert_shows(found: &serde_json::Value, options: &Options, codec: usize, share: usize) -> Point {
    assert_shows_compared_with(found, options, options, codec, share)
}

/// The same, if raw pages have their own options.
fn assert_shows_compared_with(
    found: &serde_json::Value,
    options: &Options,
    raw: &Options,
    codec: usize,
    share: usize,
) -> Point {
    let point = evaluate(options).unwrap().codecs[codec].curve[share];
    let worth = raw_memory_for(raw, point.us_per_page).unwrap();
    for (name, expected) in [
        ("hit", point.hit_ratio),
        ("us", point.us_per_page),
        ("pages", point.pages_per_second),
        ("worth", worth.unwrap()),
    ] {
        let shown: f64 = found[name].as_str().unwrap().parse().unwrap();
        // It is read between nodes: see the tests of the grid.
        let off = if name == "worth" { 0.1 } else { 1.5 * US_OFF };
        assert!(
            (shown / expected - 1.0).abs() < off,
            "{name}: the page shows {shown}, the model {expected}"
        );
    }
    point
}

/// The figures that a page without a script shows.
fn written(html: &str) -> Vec<String> {
    let slots = ["f-hit", "f-us", "f-pages", "f-memory"].map(|id| format!("<data id=\"{id}\" value=\""));
    let shown = slots.iter().map(|slot| {
        let rest = html.split(slot.as_str()).nth(1).unwrap();
        rest.split_once('>').unwrap().1.split('<').next().unwrap().to_owned()
    });
    shown.collect()
}

/// The command's own figures, to the last digit: tiles, sentence and slider say one thing.
#[test]
fn it_begins_with_the_commands_figures_and_near_them_has_near_ones() {
    let mut input = input();
    // The recommended maximum is not a whole percentage.
    input.choice.as_mut().unwrap().share_pct = 100.0 * crate::model::MAX_COMPRESSED;
    let Some((found, dom)) = driven(&input, "", "") else {
        return;
    };
    assert_eq!(written(&dom), written(&page_of(&input)));
    assert!(
        found["conclusion"]
            .as_str()
            .unwrap()
            .contains("zstd:1 on 93.8% of the memory"),
        "{found}"
    );
    let start = |name: &str| found[name].as_str().unwrap().parse::<f64>().unwrap();
    // A step so small that the grid still gives the initial figures.
    let (near, _) = driven(&input, "#device=463.0001", "").unwrap();
    for name in ["hit", "us", "pages", "worth"] {
        let figure = near[name].as_str().unwrap().parse::<f64>().unwrap();
        assert!(
            (figure / start(name) - 1.0).abs() < 1e-4,
            "{name}: {figure} vs {}",
            start(name)
        );
    }
}

#[test]
fn it_begins_with_the_recommendation() {
    let input = input();
    let Some((found, dom)) = driven(&input, "", "") else {
        return;
    };
    assert_shows(&found, &input.options().unwrap(), 1, 90);
    assert_eq!(found["hash"], "");
    assert_eq!(found["charts"], 12);
    assert_eq!(found["wide"], false);
    assert_eq!(dom.matches("role=\"img\"").count(), 12);
}

#[test]
fn more_codecs_and_threads_are_more_lines() {
    let input = measured();
    let Some((found, dom)) = driven(&input, "#share=60&codec=zstd%3A3", "") else {
        return;
    };
    assert_shows(&found, &input.options().unwrap(), 2, 60);
    assert_eq!(found["charts"], 11, "nothing was verified");
    assert!(dom.contains("zstd:3, 2 threads"));
}

#[test]
fn a_measured_trace_is_one_of_the_accesses() {
    let input = PageInput {
        access: super::nodes::trace(),
        replacement: Replacement::Lru,
        memory_bytes: 80 * 8192,
        ..input()
    };
    let Some((found, dom)) = driven(&input, "#share=50", "") else {
        return;
    };
    assert_shows(&found, &input.options().unwrap(), 1, 50);
    assert!(dom.contains(">trace a trace</option>"));
}

/// The page's width changes all the while, and the computation comes back after every step, so that charts are drawn at
/// every stage.
#[test]
fn charts_are_drawn_whatever_is_known_so_far() {
    let resize = "let narrow = false, clock = 0;
        performance.now = () => clock += 1000;
        const resizing = setInterval(() => {
            if (document.documentElement.dataset.computed === 'yes') clearInterval(resizing);
            narrow = !narrow;
            document.querySelector('main').style.width = narrow ? '700px' : '';
        }, 5);";
    let Some((found, _)) = driven(&input(), "#share=50", resize) else {
        return;
    };
    assert!(found["charts"].as_u64().unwrap() > 5, "{found}");
}

#[test]
fn sliders_change_the_figures_to_the_models() {
    let input = input();
    let moves = [
        move_slider("r-memory", "24"),
        move_slider("r-data", "-10"),
        move_slider("r-device", "-30"),
        move_slider("r-share", "35"),
        choose("s-access", "hotset:10:90"),
        choose("s-codec", "lz4"),
    ];
    let Some((found, _)) = driven(&input, "", &moves.concat()) else {
        return;
    };
    let mut options = input.options().unwrap();
    options.memory_bytes = in_hash(&found, "memory") as u64;
    options.data_bytes = in_hash(&found, "data") as u64;
    options.device_us = in_hash(&found, "device");
    options.access = Access::Distribution(Distribution::HotSet {
        keys_pct: 10.0,
        operations_pct: 90.0,
    });
    assert!(options.memory_bytes > 2 * input.memory_bytes && options.data_bytes < input.data_bytes);
    assert!(options.device_us < input.device_us && in_hash(&found, "share") == 35.0);
    assert_shows(&found, &options, 0, 35);
    let conclusion = found["conclusion"].as_str().unwrap();
    assert!(
        conclusion.starts_with("lz4 on 35") && conclusion.contains(" us per page"),
        "{conclusion}"
    );
}

/// Figures and sentence change in one step: a reader never sees a mix of old and new.
#[test]
fn figures_and_sentence_change_together() {
    let look = "window.seen = [document.getElementById('f-us').textContent, \
                document.getElementById('conclusion').textContent];";
    let what = [
        move_slider("r-share", "35"),
        choose("s-codec", "lz4"),
        look.to_owned(),
        "document.documentElement.dataset.seen = JSON.stringify(window.seen);".to_owned(),
    ];
    let Some((_, dom)) = driven(&input(), "", &what.concat()) else {
        return;
    };
    let seen = dom.split("data-seen=\"").nth(1).and_then(|rest| rest.split('"').next());
    let seen = seen.unwrap().replace("&quot;", "\"");
    let seen: Vec<String> = serde_json::from_str(&seen).unwrap();
    let sentence = format!("lz4 on 35% of the memory: {} us per page", seen[0]);
    assert!(seen[1].starts_with(&sentence), "{seen:?}");
}

#[test]
fn an_address_brings_a_what_if_back() {
    let input = input();
    let hash = "#codec=lz4&share=40&access=hotset%3A10%3A90&page=4096&device=110&junk=1&memory=none&workers=x";
    let Some((found, _)) = driven(&input, hash, "") else {
        return;
    };
    let mut options = PageInput {
        page_bytes: 4096,
        access: Access::parse("10,90").unwrap(),
        ..input
    }
    .options()
    .unwrap();
    options.device_us = 110.0;
    assert_shows(&found, &options, 0, 40);
}

#[test]
fn another_page_size_takes_the_figures_measured_with_it() {
    let input = input();
    let what = [choose("s-page", "16384"), choose("s-replacement", "ideal")].concat();
    let Some((found, _)) = driven(&input, "", &what) else {
        return;
    };
    let mut options = PageInput {
        page_bytes: 16384,
        replacement: Replacement::Ideal,
        ..input.clone()
    }
    .options()
    .unwrap();
    options.device_us = in_hash(&found, "device");
    options.device_iops = Some(in_hash(&found, "iops"));
    assert!(
        (options.device_us - 513.0).abs() < 0.01,
        "what the device took for such blocks"
    );
    // Pages of 8K are faster without compression: everything is set against those.
    let raw = PageInput {
        replacement: Replacement::Ideal,
        ..input
    };
    assert_shows_compared_with(&found, &options, &raw.options().unwrap(), 1, 90);
}

/// Blocks longer than an access, and accesses longer than a block, at the command's own figures for them.
#[test]
fn an_access_may_want_less_than_a_page_and_more() {
    let input = input();
    for (page, wants) in [(16384, 4096), (4096, 16384)] {
        let Some((found, dom)) = driven(&input, &format!("#page={page}&wants={wants}&codec=lz4&share=60"), "") else {
            return;
        };
        let mut options = PageInput {
            page_bytes: page,
            access_bytes: wants,
            ..input.clone()
        }
        .options()
        .unwrap();
        options.device_us = in_hash_or(&found, "device", input.device_us);
        options.device_iops = Some(in_hash_or(&found, "iops", 8642.0));
        let point = evaluate(&options).unwrap().codecs[0].curve[60];
        for (name, expected) in [("hit", point.hit_ratio), ("us", point.us_per_page)] {
            let shown: f64 = found[name].as_str().unwrap().parse().unwrap();
            assert!(
                (shown / expected - 1.0).abs() < 1.5 * US_OFF,
                "{name} of {wants} in {page}: the page shows {shown}, the model {expected}"
            );
        }
        let says = if wants > page {
            "an access needs 16K, i.e. 4 pages"
        } else {
            "an access needs 4K"
        };
        assert!(text_of(&dom, "values").contains(says));
    }
}

#[test]
fn hostile_names_do_no_harm() {
    let Some((found, _)) = driven(&hostile(), "#codec=%3Cimg%20src%3Dx%20onerror%3Dharmed%3D1%3E", "") else {
        return;
    };
    assert_eq!(found["harmed"], 0);
}
