//! Interleavings of those who load a value with those who change it. See `tree.rs` for how to run them.

use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::explore::explore;
use leafpress::Cache;
use leafpress::codec::Codec;

fn cache() -> Arc<Cache> {
    Arc::new(Cache::builder().memory(8 << 20).codec(Codec::None).build().unwrap())
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value.try_into().unwrap())
}

#[test]
fn a_removal_wins_over_a_load() {
    explore(|| {
        let (cache, backend) = (cache(), Arc::new(AtomicU64::new(1)));
        let loaders: Vec<_> = (0..2)
            .map(|_| {
                let (cache, backend) = (Arc::clone(&cache), Arc::clone(&backend));
                thread::spawn(move || {
                    let value = cache.get_or_insert_with("key", || backend.load(Ordering::SeqCst).to_le_bytes());
                    number(&value.unwrap())
                })
            })
            .collect();
        backend.store(2, Ordering::SeqCst);
        cache.remove("key").unwrap();
        // Whatever was loaded before is not there now, nor comes back.
        let found = |cache: &Cache| cache.get_with("key", number).unwrap();
        assert!(found(&cache).is_none_or(|found| found == 2));
        loaders
            .into_iter()
            .for_each(|loader| assert!(loader.join().unwrap() > 0));
        assert!(found(&cache).is_none_or(|found| found == 2));
    });
}

#[test]
fn all_who_miss_get_what_one_loads() {
    explore(|| {
        let (cache, loads) = (cache(), Arc::new(AtomicU64::new(0)));
        let loaders: Vec<_> = (0..3)
            .map(|_| {
                let (cache, loads) = (Arc::clone(&cache), Arc::clone(&loads));
                thread::spawn(move || {
                    let value =
                        cache.get_or_insert_with("key", || (loads.fetch_add(1, Ordering::SeqCst) + 7).to_le_bytes());
                    number(&value.unwrap())
                })
            })
            .collect();
        for loader in loaders {
            assert_eq!(loader.join().unwrap(), 7);
        }
        assert_eq!(loads.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn a_load_that_fails_leaves_those_who_wait_one_that_does_not() {
    explore(|| {
        let cache = cache();
        let fails = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || cache.try_get_or_insert_with("key", || Err::<Vec<u8>, _>("no")).is_ok())
        };
        let works = {
            let cache = Arc::clone(&cache);
            thread::spawn(move || {
                cache
                    .try_get_or_insert_with("key", || Ok::<_, u32>(b"x".to_vec()))
                    .unwrap()
            })
        };
        fails.join().unwrap();
        // An error of another kind than his own is no error of his.
        assert_eq!(works.join().unwrap(), b"x");
    });
}
