//! The effect of a trained dictionary on small records: without one, with one that the tree trains by itself, and with
//! one that was trained before and is given.
//!
//! cargo run --release -p leafpress --example dictionary

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Dictionary, Tree};

const RECORDS: u64 = 50_000;

/// Returns a log line: much in common with the others, little redundancy in itself.
fn record(i: u64) -> String {
    let hash = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let path = [
        "/api/v1/users",
        "/api/v1/orders",
        "/static/logo.svg",
        "/login",
        "/health",
    ][(hash >> 8) as usize % 5];
    let agent = ["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64)", "Go-http-client/2.0"][(hash >> 16) as usize % 3];
    format!(
        "10.{}.{}.{} GET {path}/{} HTTP/1.1 {} {} \"{agent}\"",
        hash >> 56,
        (hash >> 48) & 255,
        (hash >> 40) & 255,
        hash % 10_000,
        [200, 200, 200, 304, 404][(hash >> 24) as usize % 5],
        (hash >> 32) % 65_536
    )
}

fn main() -> Result<(), leafpress::TreeError> {
    let codec: Codec = "zstd:1".parse()?;
    let samples: Vec<String> = (0..2_000).map(|i| record(RECORDS + i)).collect();
    let samples: Vec<&[u8]> = samples.iter().map(String::as_bytes).collect();
    let trained = Dictionary::train(codec, &samples, 16 << 10)?;

    for (name, choice) in [
        ("no dictionary", DictionaryChoice::Off),
        ("trained by the tree", DictionaryChoice::Auto),
        ("trained before", DictionaryChoice::Given(trained)),
    ] {
        let tree = Tree::builder().codec(codec).dictionary(choice).build()?;
        for i in 0..RECORDS {
            tree.insert(&i.to_be_bytes(), record(i).as_bytes())?;
        }
        tree.settle().unwrap();
        tree.compact()?;
        assert_eq!(tree.get(&7_u64.to_be_bytes())?.as_deref(), Some(record(7).as_bytes()));
        let stats = tree.stats();
        println!(
            "{name:<20} {:.3} bytes held per user byte, dictionary of {} bytes",
            stats.held_per_user_byte(),
            stats.dictionary_bytes
        );
    }
    Ok(())
}
