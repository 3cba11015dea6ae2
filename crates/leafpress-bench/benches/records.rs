//! What a tree of real records holds, and what loads, overwrites and reads of it cost, by length of frames, of leaves
//! and of the dictionary; compared with a `BTreeMap` under a lock.
//!
//! `cargo bench -p leafpress-bench --bench records -- FILE KEY CODEC [FRAME LEAF DICTIONARY]...`
//!
//! `FILE` has stanzas (paragraphs of `Field: value` lines, `KEY` a field) or, when it ends in `.jsonl`, a JSON object a
//! line (`KEY` one of its members); without arguments it is the bundled package index. Lengths are in bytes; `auto` is
//! the tree's choice, and what is requested without any. Loads and overwrites are in random order. Time is the thread's
//! own.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::RwLock;

use leafpress::{Codec, Tree, TreeBuilder};

const READS: usize = 200_000;
/// Random reads are timed so often; the least is printed, since a busy machine only adds.
const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let (text, key, codec, lengths) = match args.as_slice() {
        [] => (
            String::from_utf8_lossy(&leafpress_bench::sample()).into_owned(),
            "Filename",
            "lz4",
            &[][..],
        ),
        [file, key, codec, lengths @ ..] => (std::fs::read_to_string(file)?, key.as_str(), codec.as_str(), lengths),
        _ => return Err("usage: records FILE KEY CODEC [FRAME LEAF DICTIONARY]...".into()),
    };
    let records = records(&text, key, args.first().is_some_and(|file| file.ends_with(".jsonl")));
    let order = shuffled(&records);
    map(&order);
    let codec: Codec = codec.parse()?;
    let auto = ["auto", "auto", "auto"].map(str::to_owned);
    let lengths = if lengths.is_empty() { &auto[..] } else { lengths };
    for lengths in lengths.chunks_exact(3) {
        let builder = Tree::builder().codec(codec);
        let builder = with_length(builder, &lengths[0], TreeBuilder::frame_bytes)?;
        let builder = with_length(builder, &lengths[1], TreeBuilder::leaf_bytes)?;
        let builder = with_length(builder, &lengths[2], TreeBuilder::dictionary_bytes)?;
        measure(&builder.build()?, &order, &lengths.join(" "))?;
    }
    Ok(())
}

fn with_length(
    builder: TreeBuilder,
    length: &str,
    set: fn(TreeBuilder, usize) -> TreeBuilder,
) -> Result<TreeBuilder, Box<dyn Error>> {
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

/// Returns the records in random order.
fn shuffled<'t>(records: &BTreeMap<&'t str, &'t str>) -> Vec<(&'t str, &'t str)> {
    let mut order: Vec<_> = records.iter().map(|(key, value)| (*key, *value)).collect();
    let mut random = fastrand::Rng::with_seed(1);
    random.shuffle(&mut order);
    order
}

/// Each record's key with another's value.
fn others<'t>(order: &[(&'t str, &'t str)]) -> Vec<(&'t str, &'t str)> {
    let mut others: Vec<_> = order
        .iter()
        .zip(order.iter().cycle().skip(order.len() / 2))
        .map(|(record, other)| (record.0, other.1))
        .collect();
    fastrand::Rng::with_seed(2).shuffle(&mut others);
    others
}

/// Nanoseconds a step.
fn timed<I: ExactSizeIterator>(items: I, mut step: impl FnMut(I::Item)) -> u64 {
    let (count, start) = (items.len() as u64, thread_ns());
    items.for_each(&mut step);
    (thread_ns() - start) / count
}

fn map(order: &[(&str, &str)]) {
    let map = RwLock::new(BTreeMap::<Box<str>, Box<str>>::new());
    let insert = |(key, value): &(&str, &str)| {
        map.write().expect("no panic").insert((*key).into(), (*value).into());
    };
    let load = timed(order.iter(), insert);
    let overwrite = timed(others(order).iter(), insert);
    let mut value = String::new();
    let read = timed(order.iter(), |(key, _)| {
        value.clear();
        value.push_str(&map.read().expect("no panic")[*key]);
    });
    println!(
        "{:<20} load {load}, overwrite {overwrite}, read {read} ns",
        "RwLock<BTreeMap>"
    );
}

fn measure(tree: &Tree, order: &[(&str, &str)], lengths: &str) -> Result<(), Box<dyn Error>> {
    let put = |(key, value): &(&str, &str)| {
        tree.insert(key, value).expect("memory");
    };
    let load = timed(order.iter(), put);
    tree.settle()?;
    let settled_first = tree.stats().held_per_user_byte();
    let mut value = Vec::new();
    let mut least = u64::MAX;
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..ROUNDS {
        let start = thread_ns();
        for _ in 0..READS {
            let (key, expected) = order[random.usize(..order.len())];
            assert!(tree.get_into(key, &mut value)? && value.len() == expected.len());
        }
        least = least.min((thread_ns() - start) / READS as u64);
    }
    let stats = tree.stats();
    println!(
        "{lengths:<20} load {load}, read {least} ns, held {:.4} a user byte, {} leaves, {:.1} frames each, dictionary \
         {}, {}",
        stats.held_per_user_byte(),
        stats.leaves,
        stats.frames as f64 / stats.leaves as f64,
        stats.dictionary_bytes,
        parts(&stats),
    );
    println!(
        "{:20} frames of {}, leaves of {}: {}",
        "", stats.frame_limit_bytes, stats.leaf_limit_bytes, stats.limits_reason
    );
    if !stats.temperature_reason.is_empty() {
        println!(
            "{:20} settled {settled_first:.4}; {} hot records, {} warm leaves, {} cold: {}",
            "", stats.hot_records, stats.warm_leaves, stats.cold_leaves, stats.temperature_reason
        );
    }
    for (key, value) in order.iter().step_by(97) {
        assert_eq!(tree.get(key)?.as_deref(), Some(value.as_bytes()));
    }
    let mut most = 0;
    let mut overwrites = 0;
    for records in others(order).chunks(order.len().div_ceil(50)) {
        overwrites += timed(records.iter(), put) * records.len() as u64;
        most = tree.stats().bytes_held.max(most);
    }
    let overwrite = overwrites / order.len() as u64;
    tree.settle()?;
    let after = tree.stats();
    let per_byte = |count: fn(&leafpress::TreeStats) -> u64| {
        (count(&after) - count(&stats)) as f64 / (after.put_bytes - stats.put_bytes) as f64
    };
    let settled = after.held_per_user_byte();
    let most = most as f64 / stats.user_bytes as f64;
    println!(
        "{:20} overwrite {overwrite} ns, {most:.3} held at most meanwhile, {settled:.3} settled; a byte put: {:.2} \
         copied, {:.2} compressed",
        "",
        per_byte(|stats| stats.copied_bytes),
        per_byte(|stats| stats.compressed_bytes),
    );
    Ok(())
}

/// Returns the largest parts of what is held, in parts of the user bytes.
fn parts(stats: &leafpress::TreeStats) -> String {
    let share = |bytes: u64| bytes as f64 / stats.user_bytes as f64;
    format!(
        "leaves {:.3}, landing {:.3}, free {:.3}",
        share(stats.leaf_bytes),
        share(stats.landing_bytes),
        share(stats.free_bytes)
    )
}

/// Returns this thread's processor time.
fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is written if there is room for it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
