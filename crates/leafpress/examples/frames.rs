//! What a tree of real records holds, and what a random read of it costs, by length of frames, of leaves and of the dictionary.
//!
//! `cargo run --release -p leafpress --example frames -- FILE KEY CODEC [FRAME LEAF DICTIONARY]...`
//!
//! `FILE` has stanzas (paragraphs of `Field: value` lines, `KEY` a field) or, when it ends in `.jsonl`, a JSON object a line (`KEY` one of
//! its members). Lengths are in bytes; `auto` is the tree's choice, and what is asked for without any. Time is the thread's own.

use std::collections::BTreeMap;
use std::error::Error;

use leafpress::{Builder, Codec, Tree};

const READS: usize = 200_000;
/// Random reads are timed so often; the least is printed, since a busy machine only adds.
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, key, codec, lengths @ ..] = args.as_slice() else {
        return Err("usage: frames FILE KEY CODEC [FRAME LEAF DICTIONARY]...".into());
    };
    let text = std::fs::read_to_string(file)?;
    let records = records(&text, key, file.ends_with(".jsonl"));
    let codec: Codec = codec.parse()?;
    let auto = ["auto", "auto", "auto"].map(str::to_owned);
    let lengths = if lengths.is_empty() { &auto[..] } else { lengths };
    for lengths in lengths.chunks_exact(3) {
        let builder = Tree::builder().codec(codec);
        let builder = given(builder, &lengths[0], Builder::frame_bytes)?;
        let builder = given(builder, &lengths[1], Builder::leaf_bytes)?;
        let builder = given(builder, &lengths[2], Builder::dictionary_bytes)?;
        measure(&builder.build()?, &records, &lengths.join(" "))?;
    }
    Ok(())
}

fn given(builder: Builder, length: &str, set: fn(Builder, usize) -> Builder) -> Result<Builder, Box<dyn Error>> {
    Ok(match length {
        "auto" => builder,
        bytes => set(builder, bytes.parse()?),
    })
}

fn records<'t>(text: &'t str, key: &str, json: bool) -> BTreeMap<&'t str, &'t str> {
    let (separator, before, after) = if json {
        ("\n", format!("\"{key}\":"), ',')
    } else {
        ("\n\n", format!("{key}: "), '\n')
    };
    text.split(separator)
        .filter_map(|record| {
            let (_, rest) = record.split_once(&before)?;
            let (key, _) = rest.split_once(after)?;
            Some((key.trim_matches([' ', '"']), record))
        })
        .collect()
}

fn measure(tree: &Tree, records: &BTreeMap<&str, &str>, lengths: &str) -> Result<(), Box<dyn Error>> {
    let mut order: Vec<(&str, &str)> = records.iter().map(|(key, value)| (*key, *value)).collect();
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    (1..order.len()).rev().for_each(|at| order.swap(at, random(at + 1)));
    let start = thread_ns();
    for (key, value) in &order {
        tree.insert(key, value)?;
    }
    let loaded = thread_ns() - start;
    tree.settle()?;
    let mut value = Vec::new();
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let start = thread_ns();
        for _ in 0..READS {
            let (key, expected) = order[random(order.len())];
            assert!(tree.get_into(key, &mut value)? && value.len() == expected.len());
        }
        least = least.min((thread_ns() - start) / READS as u64);
    }
    let stats = tree.stats();
    println!(
        "{lengths:<20} held {:.4} read {least} ns load {} ns/record, {} leaves, {:.1} frames each, dictionary {}, {}",
        stats.held_per_user_byte(),
        loaded / order.len() as u64,
        stats.leaves,
        stats.frames as f64 / stats.leaves as f64,
        stats.dictionary_bytes,
        parts(&stats),
    );
    println!(
        "{:20} frames of {}, leaves of {}: {}",
        "", stats.frame_limit_bytes, stats.leaf_limit_bytes, stats.limits_reason
    );
    for (key, value) in order.iter().step_by(97) {
        assert_eq!(tree.get(key)?.as_deref(), Some(value.as_bytes()));
    }
    Ok(())
}

/// The largest parts of what is held, in parts of the user bytes.
fn parts(stats: &leafpress::Stats) -> String {
    let share = |bytes: u64| bytes as f64 / stats.user_bytes as f64;
    format!(
        "leaves {:.3}, landing {:.3}, free {:.3}",
        share(stats.leaf_bytes),
        share(stats.landing_bytes),
        share(stats.free_bytes)
    )
}

/// This thread's processor time.
fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written where there is room for it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
