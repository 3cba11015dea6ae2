//! Scans are in key order, from either end, and return values as they were inserted; and several reads in one call.

use std::sync::Arc;
use std::time::Duration;

use leafpress::cache::{InsertOptions, ManualClock};

use crate::small;

#[test]
fn a_prefix_is_found_in_order_from_either_end() {
    let cache = small().build().unwrap();
    for n in 0..1000 {
        cache.insert(&format!("user:{n:04}"), &format!("name {n}")).unwrap();
        cache.insert(&format!("order:{n:04}"), "x").unwrap();
    }
    let names = |records: Vec<leafpress::Record>| -> Vec<String> {
        records
            .into_iter()
            .map(|(_, value)| String::from_utf8(value).unwrap())
            .collect()
    };
    let all: Vec<_> = cache.prefix("user:").map(Result::unwrap).collect();
    assert_eq!(names(all), (0..1000).map(|n| format!("name {n}")).collect::<Vec<_>>());
    let last: Vec<_> = cache.prefix("user:").rev().take(2).map(Result::unwrap).collect();
    assert_eq!(names(last), ["name 999", "name 998"]);
    let some: Vec<_> = cache.range("user:0010".."user:0012").map(Result::unwrap).collect();
    assert_eq!(names(some), ["name 10", "name 11"]);
    assert_eq!(cache.range("z"..).count(), 0);
}

#[test]
fn many_reads_in_one_call_give_what_single_ones_do() {
    let clock = Arc::new(ManualClock::new(Duration::from_secs(2_000_000_000)));
    let cache = small().clock(clock.clone()).build().unwrap();
    for n in 0..100 {
        let entry = if n % 3 == 0 {
            InsertOptions::ttl(Duration::from_secs(2))
        } else {
            InsertOptions::default()
        };
        cache
            .insert_entry(&format!("{n}"), &format!("value {n}"), entry)
            .unwrap();
    }
    clock.advance(Duration::from_secs(3));
    let keys: Vec<_> = (0..120).map(|n| n.to_string()).collect();
    let expected: Vec<_> = (0..120)
        .map(|n| (n < 100 && n % 3 > 0).then(|| format!("value {n}").into_bytes()))
        .collect();
    assert_eq!(cache.get_many(&keys).unwrap(), expected);
    let mut seen = Vec::new();
    cache
        .get_many_with(&keys, |index, value| seen.push((index, value.map(<[u8]>::to_vec))))
        .unwrap();
    assert_eq!(seen, expected.into_iter().enumerate().collect::<Vec<_>>());
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (2 * 66, 2 * 54));
}
