//! Keys and values of user-defined types.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use leafpress::cache::{CacheError, Disk, LoadError, TypedCache};
use leafpress::store::MemoryStore;
use serde::{Deserialize, Serialize};

use crate::small;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct User {
    name: String,
    visits: u64,
    friends: Vec<u32>,
}

fn user(n: u64) -> User {
    User {
        name: format!("user {n}"),
        visits: n * n,
        friends: (0..n as u32 % 20).collect(),
    }
}

#[test]
fn what_is_put_in_comes_out() {
    let users: TypedCache<(u32, String), User> = TypedCache::new(small().build().unwrap());
    for n in 0..1000 {
        users.insert(&(n as u32, "eu".to_owned()), &user(n)).unwrap();
    }
    for n in 0..1000 {
        let key = (n as u32, "eu".to_owned());
        assert_eq!(users.get(&key).unwrap(), Some(user(n)));
        assert!(users.contains_key(&key).unwrap() && users.remove(&key).unwrap());
        assert_eq!(users.get(&key).unwrap(), None);
    }
}

#[test]
fn one_loads_for_all_and_errors_are_the_loaders() {
    let users: TypedCache<u64, User> = TypedCache::new(small().build().unwrap());
    let loads = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..200 {
                    let found = users.get_or_insert_with(&n, || {
                        loads.fetch_add(1, Ordering::Relaxed);
                        user(n)
                    });
                    assert_eq!(found.unwrap(), user(n));
                }
            });
        }
    });
    assert_eq!(loads.into_inner(), 200);
    let failed = users.try_get_or_insert_with(&1000, || Err::<User, _>("no such user"));
    assert!(matches!(failed, Err(LoadError::Load(reason)) if *reason == "no such user"));
    assert_eq!(
        users.try_get_or_insert_with(&1000, || Ok::<_, ()>(user(3))).unwrap(),
        user(3)
    );
}

/// A type that serde cannot serialize.
#[derive(Debug, Deserialize)]
struct Odd;

impl Serialize for Odd {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("odd"))
    }
}

#[test]
fn what_is_of_another_type_is_not_there() {
    let store = std::sync::Arc::new(MemoryStore::new(4096).unwrap());
    let open = || small().disk(Disk::store(store.clone(), 8 << 20)).build().unwrap();
    let numbers: TypedCache<str, u8> = TypedCache::new(open());
    numbers.insert("key", &255).unwrap();
    numbers.cache().close().unwrap();
    // A byte does not decode as a user.
    let users: TypedCache<str, User> = TypedCache::new(open());
    assert_eq!(users.get("key").unwrap(), None);
    assert!(!users.cache().contains_key(&[3, b'k', b'e', b'y']).unwrap());
    assert_eq!(users.get_or_insert_with("key", || user(1)).unwrap(), user(1));
    let odd: TypedCache<str, Odd> = TypedCache::new(small().build().unwrap());
    assert!(matches!(odd.insert("key", &Odd), Err(CacheError::Encoding { .. })));
    let loaded = odd.try_get_or_insert_with("key", || Ok::<_, ()>(Odd));
    assert!(matches!(loaded, Err(LoadError::Cache(CacheError::Encoding { .. }))));
}
