//! Operations that do not read the disk.

use std::sync::Arc;

use leafpress::cache::Disk;
use leafpress::store::MemoryStore;

use crate::{key, noise, small};

#[test]
fn distinguishes_records_in_memory_from_those_on_disk() {
    let store = Arc::new(MemoryStore::new(4096).unwrap());
    let cache = small().disk(Disk::store(store, 64 << 20)).build().unwrap();
    for n in 0..100 {
        cache.insert(&key(n), &noise(n, 100)).unwrap();
    }
    assert_eq!(cache.get_in_memory_with(&key(5), <[u8]>::len).unwrap(), Some(100));
    cache.spill().unwrap();
    let before = cache.stats();
    assert_eq!(cache.get_in_memory_with(&key(5), <[u8]>::len).unwrap(), None);
    assert_eq!(cache.get_in_memory_with(&key(500), <[u8]>::len).unwrap(), None);
    let after = cache.stats();
    assert_eq!(
        (after.hits, after.misses),
        (before.hits, before.misses),
        "it counts nothing"
    );
    assert_eq!(after.disk.unwrap().lookups, before.disk.unwrap().lookups);
    assert_eq!(cache.get(&key(5)).unwrap().map(|value| value.len()), Some(100));
    assert_eq!(
        cache.get_in_memory_with(&key(5), <[u8]>::len).unwrap(),
        Some(100),
        "it came back"
    );
    assert!(cache.has_disk() && cache.bytes_held() == cache.stats().bytes_held);
    cache.remove(&key(5)).unwrap();
    assert_eq!(cache.get_in_memory_with(&key(5), <[u8]>::len).unwrap(), None);
}
