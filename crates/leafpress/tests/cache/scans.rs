//! Scans are in key order, from either end, and see values as they were put in.

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
