//! Ordered keys: prefix scans, pagination, newest first.
//!
//! cargo run --release -p leafpress --example scan

use leafpress::Tree;

fn main() -> Result<(), leafpress::TreeError> {
    // Scans work with any number of shards, whose records are merged in key order.
    let tree = Tree::builder().codec("zstd:1".parse()?).shards(4).build()?;
    for sensor in 0..20 {
        for minute in 0..1_440 {
            let key = format!("sensor-{sensor:02}/{:02}:{:02}", minute / 60, minute % 60);
            tree.insert(
                key.as_bytes(),
                format!("{:.1} C", 15.0 + f64::from(minute % 97) / 10.0).as_bytes(),
            )?;
        }
    }

    // All keys with a prefix: from the prefix to the first key after it.
    let readings = tree.range(&b"sensor-07/"[..]..&b"sensor-070"[..]).count();
    println!("sensor 7 has {readings} readings");

    // A page of five, and the next page from where it ended.
    let mut from = b"sensor-07/09:30".to_vec();
    for page in 1..=2 {
        println!("page {page}");
        for record in tree.range(from.clone().as_slice()..).take(5) {
            let (key, value) = record?;
            println!(
                "  {}  {}",
                String::from_utf8_lossy(&key),
                String::from_utf8_lossy(&value)
            );
            // The least key after `key`.
            from = key;
            from.push(0);
        }
    }

    // The newest three of a sensor: the same range from its other end.
    println!("the last three of sensor 7");
    for record in tree.range(&b"sensor-07/"[..]..&b"sensor-070"[..]).rev().take(3) {
        let (key, value) = record?;
        println!(
            "  {}  {}",
            String::from_utf8_lossy(&key),
            String::from_utf8_lossy(&value)
        );
    }
    Ok(())
}
