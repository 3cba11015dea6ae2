//! Values as `bytes::Bytes`.

use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::{key, noise, small};

#[test]
fn get_bytes_returns_the_values_of_get() {
    let cache = small().build().unwrap();
    for n in 0..100 {
        // `Bytes` can be inserted as well.
        cache.insert(&key(n), &Bytes::from(noise(n, n as usize * 50))).unwrap();
    }
    for n in 0..100 {
        let value = cache.get_bytes(&key(n)).unwrap().unwrap();
        assert_eq!(value, noise(n, n as usize * 50));
        let (clone, start) = (value.clone(), value.as_ptr());
        drop(value);
        assert_eq!(clone.as_ptr(), start, "clones share one allocation");
    }
    assert_eq!(cache.get_bytes("absent").unwrap(), None);
}

#[test]
fn what_is_loaded_is_kept() {
    let cache = small().build().unwrap();
    assert_eq!(cache.get_or_insert_bytes_with("a", || "1").unwrap(), "1");
    assert_eq!(cache.get_or_insert_bytes_with("a", || "2").unwrap(), "1");
    let load = async { Ok::<_, Infallible>(Bytes::from_static(b"3")) };
    let fetched = pin!(cache.get_or_fetch_bytes("b", load)).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(fetched, Poll::Ready(Ok(value)) if value == "3"));
    assert_eq!(cache.get_bytes("b").unwrap().unwrap(), "3");
}
