//! Values out of bounds are refused, with the allowed range in the message.

use std::time::Duration;

use leafpress::cache::{InsertOptions, MAX_KEY_BYTES, MAX_VALUE_BYTES, MIN_MEMORY_BYTES};
use leafpress::{Cache, CacheError};

use crate::small;

fn option_of(error: &CacheError) -> &'static str {
    match error {
        CacheError::Option { option, .. } => option,
        other => panic!("{other}"),
    }
}

#[test]
fn options_out_of_their_bounds_are_named() {
    let error = Cache::builder().memory(MIN_MEMORY_BYTES - 1).build().unwrap_err();
    assert_eq!(option_of(&error), "memory");
    assert!(error.to_string().contains(&MIN_MEMORY_BYTES.to_string()), "{error}");
    let error = small().time_to_idle(Duration::from_millis(999)).build().unwrap_err();
    assert_eq!(option_of(&error), "time_to_idle");
    let too_long = Duration::from_secs(11 * 366 * 24 * 3600);
    for ttl in [Duration::ZERO, Duration::from_micros(999), too_long] {
        assert_eq!(option_of(&small().default_ttl(ttl).build().unwrap_err()), "default_ttl");
        let cache = small().build().unwrap();
        let error = cache.insert_entry("key", "value", InsertOptions::ttl(ttl)).unwrap_err();
        assert_eq!(option_of(&error), "ttl");
        assert!(cache.is_empty());
    }
    let cache = small().build().unwrap();
    for to_idle in [Duration::from_millis(999), too_long] {
        let entry = InsertOptions::default().time_to_idle(to_idle);
        let error = cache.insert_entry("key", "value", entry).unwrap_err();
        assert_eq!(option_of(&error), "time_to_idle");
    }
    assert_eq!(option_of(&cache.set_memory(1).unwrap_err()), "memory");
    assert_eq!(cache.memory(), 4 << 20);
}

#[test]
fn keys_and_values_have_their_lengths() {
    let cache = small().build().unwrap();
    cache.insert("", "").unwrap();
    assert_eq!(cache.get("").unwrap(), Some(Vec::new()));
    let longest = vec![7; MAX_KEY_BYTES];
    cache.insert(&longest, "x").unwrap();
    assert_eq!(cache.get(&longest).unwrap().unwrap(), b"x");
    let len = MAX_KEY_BYTES + 1;
    let error = cache.insert(&vec![7; len], "x").unwrap_err();
    assert!(
        matches!(error, CacheError::KeyTooLong { len: reported } if reported == len),
        "{error}"
    );
    let len = MAX_VALUE_BYTES + 1;
    let error = cache.insert("key", &vec![0; len]).unwrap_err();
    assert!(
        matches!(error, CacheError::ValueTooLong { len: reported } if reported == len),
        "{error}"
    );
}

#[test]
fn a_value_that_is_too_large_for_the_memory_is_not_kept_nor_is_what_it_replaces() {
    let cache = small().build().unwrap();
    cache.insert("key", "old").unwrap();
    cache.insert("key", &vec![1; 1 << 20]).unwrap();
    assert_eq!(cache.get("key").unwrap(), None);
    assert_eq!(cache.stats().too_large, 1);
    cache.insert("key", &vec![1; 400 << 10]).unwrap();
    assert_eq!(cache.get("key").unwrap(), Some(vec![1; 400 << 10]));
}

#[test]
fn the_largest_value_is_kept_where_there_is_room_for_it() {
    let cache = Cache::builder().memory(1 << 30).build().unwrap();
    let value = vec![5; MAX_VALUE_BYTES];
    cache.insert("large", &value).unwrap();
    assert!(cache.get_with("large", |found| found == value).unwrap().unwrap());
}
