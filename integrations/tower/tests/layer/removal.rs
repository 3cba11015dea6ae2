//! What removes stored responses: unsafe requests, and tags.

use std::task::Context;

use http::{HeaderName, Method};
use tower::ServiceExt;

use crate::support::{Cached, Seen, request, response};

/// What was fetched before a request changed its target is not stored after it.
#[tokio::test]
async fn a_response_that_was_fetched_before_a_change_is_not_stored() {
    // Fetched for all, alone, and validated.
    for (headers, first) in [(&[][..], false), (&[("cache-control", "no-cache")], false), (&[], true)] {
        let control = if first { "max-age=1" } else { "max-age=60" };
        let cached = Cached::new(
            |layer| layer,
            move |_, call| response(200, &[("cache-control", control), ("etag", "\"1\"")], format!("{call}")),
        );
        if first {
            cached.get(&[]).await;
            cached.pass(2);
        }
        let held = cached.backend.gate.acquire_many(1000).await.unwrap();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut old = Box::pin(cached.get(headers));
        assert!(old.as_mut().poll(&mut context).is_pending());
        // The change overtakes it.
        let change = tokio::spawn(cached.service.clone().oneshot(request(Method::POST, &[])));
        while cached.calls() < if first { 3 } else { 2 } {
            tokio::task::yield_now().await;
        }
        drop(held);
        change.await.unwrap().unwrap();
        let before = old.await;
        assert_ne!(cached.get(&[]).await.body, before.body, "{headers:?} {first}");
    }
}

/// The service may have made the change that it does not answer.
#[tokio::test]
async fn a_change_without_an_answer_removes_too() {
    let cached = Cached::new(
        |layer| layer,
        |request, call| match *request.method() {
            Method::PUT => Err("timed out"),
            _ => response(200, &[("cache-control", "max-age=60")], format!("{call}")),
        },
    );
    cached.get(&[]).await;
    assert!(cached.send(request(Method::PUT, &[])).await.is_err());
    assert_eq!(cached.get(&[]).await.body, "2");
    let held = cached.backend.gate.acquire_many(1000).await.unwrap();
    let mut put = Box::pin(cached.send(request(Method::PUT, &[])));
    assert!(
        put.as_mut()
            .poll(&mut Context::from_waker(std::task::Waker::noop()))
            .is_pending()
    );
    drop(put);
    drop(held);
    assert_eq!(cached.get(&[]).await.body, "4");
}

#[tokio::test]
async fn only_unsafe_requests_that_succeed_remove() {
    let cached = Cached::new(
        |layer| layer,
        |request, call| {
            let status = if request.headers().contains_key("x-fail") {
                500
            } else {
                200
            };
            response(status, &[("cache-control", "max-age=60")], format!("{call}"))
        },
    );
    cached.get(&[]).await;
    for (method, headers, is_left) in [
        (Method::HEAD, &[][..], true),
        (Method::OPTIONS, &[], true),
        (Method::POST, &[("x-fail", "1")], true),
        (Method::DELETE, &[], false),
    ] {
        cached.send(request(method.clone(), headers)).await.unwrap();
        assert_eq!(
            cached.get(&[]).await.did == "leafpress; hit; ttl=60",
            is_left,
            "{method}"
        );
    }
}

#[tokio::test]
async fn responses_with_a_tag_are_removed_by_it() {
    let name = HeaderName::from_static("surrogate-key");
    let cached = Cached::new(
        |layer| layer.tag_header(name),
        |_, call| {
            let tags = ("surrogate-key", "product-7 category-3,a b c d e f");
            response(200, &[("cache-control", "max-age=60"), tags], format!("{call}"))
        },
    );
    assert_eq!(cached.get(&[]).await.body, "0");
    cached.cache.invalidate_tag("product-8").unwrap();
    assert_eq!(cached.get(&[]).await.body, "0");
    cached.cache.invalidate_tag("category-3").unwrap();
    assert_eq!(cached.get(&[]).await, Seen::new(200, "1", "fwd=miss; stored"));
}
