//! How long a response is fresh, its age, its validation, and what is done with a stale one.

use std::task::Context;

use http::Method;

use crate::support::{Cached, Seen, request, response, seen};

#[tokio::test]
async fn a_response_is_fresh_for_its_time() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| {
            response(
                200,
                &[("cache-control", "max-age=60"), ("link", "<a>"), ("link", "<b>")],
                format!("body {call}"),
            )
        },
    );
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body 0", "fwd=miss; stored"));
    cached.pass(20);
    let hit = cached.send(request(Method::GET, &[])).await.unwrap();
    assert_eq!(hit.headers()["age"], "20");
    assert_eq!(hit.headers()["content-length"], "6");
    // A header may stand there several times.
    assert_eq!(hit.headers().get_all("link").iter().count(), 2);
    assert_eq!(seen(hit).await, Seen::new(200, "body 0", "hit; ttl=40"));
    cached.pass(40);
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body 1", "fwd=miss; stored"));
    // The sender decides as well.
    cached.pass(20);
    assert_eq!(cached.get(&[("cache-control", "max-age=10")]).await.body, "body 2");
    assert_eq!(cached.get(&[("cache-control", "no-cache")]).await.body, "body 3");
    assert_eq!(cached.get(&[("pragma", "no-cache")]).await.body, "body 4");
    assert_eq!(cached.get(&[]).await.body, "body 4");
}

/// The clock of the tests stands at 17:46:40 when they begin.
#[tokio::test]
async fn a_response_has_an_age_when_it_arrives() {
    // The age by `Date`, the age by `Age`, how long the service takes, and the greater of the two with the delay.
    for (date, age, delay, arrives) in [
        ("Sun, 17 Mar 2030 17:46:10 GMT", "0", 0, 30),
        ("Sunday, 17-Mar-30 17:46:10 GMT", "20", 0, 30),
        ("Sun Mar 17 17:46:30 2030", "20", 0, 20),
        ("Sun, 17 Mar 2030 17:46:40 GMT", "20", 7, 27),
        ("Sun, 17 Mar 2030 17:46:10 GMT", "20", 7, 37),
        ("Sun, 17 Mar 2030 17:50:00 GMT", "", 7, 7),
        ("yesterday", "x", 0, 0),
    ] {
        let cached = Cached::new(
            |layer| layer,
            move |_, _| {
                response(
                    200,
                    &[("cache-control", "max-age=60"), ("date", date), ("age", age)],
                    "body",
                )
            },
        );
        let held = cached.backend.gate.acquire_many(1000).await.unwrap();
        let mut first = Box::pin(cached.get(&[]));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(first.as_mut().poll(&mut context).is_pending());
        cached.pass(delay);
        drop(held);
        assert_eq!(first.await, Seen::new(200, "body", "fwd=miss; stored"));
        cached.pass(5);
        let hit = cached.send(request(Method::GET, &[])).await.unwrap();
        assert_eq!(hit.headers()["age"], (arrives + 5).to_string(), "{date} {age} {delay}");
        let did = format!("hit; ttl={}", 60 - arrives - 5);
        assert_eq!(seen(hit).await, Seen::new(200, "body", &did));
        cached.pass(60 - arrives - 5);
        assert!(cached.get(&[]).await.did.starts_with("leafpress; fwd=miss"));
    }
}

/// The age after a validation is that of its response, whatever the stored one said.
#[tokio::test]
async fn a_validation_renews_the_age() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| match call {
            0 => {
                let date = ("date", "Sun, 17 Mar 2030 17:46:40 GMT");
                response(200, &[("cache-control", "max-age=60"), ("etag", "\"1\""), date], "body")
            }
            1 => response(304, &[("etag", "\"1\"")], ""),
            _ => response(304, &[("date", "Sun, 17 Mar 2030 17:48:30 GMT")], ""),
        },
    );
    cached.get(&[]).await;
    for ttl in [60, 50] {
        cached.pass(60);
        assert_eq!(cached.get(&[]).await.did, "leafpress; fwd=stale; fwd-status=304");
        assert_eq!(
            cached.get(&[]).await,
            Seen::new(200, "body", &format!("hit; ttl={ttl}"))
        );
    }
}

#[tokio::test]
async fn a_stale_response_is_validated() {
    for validator in [("etag", "\"v1\""), ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")] {
        let condition = if validator.0 == "etag" {
            "if-none-match"
        } else {
            "if-modified-since"
        };
        let cached = Cached::new(
            |layer| layer,
            move |request, call| match request.headers().get(condition) {
                Some(known) if known == validator.1 && call < 2 => {
                    response(304, &[("cache-control", "max-age=100"), validator, ("x-new", "1")], "")
                }
                Some(_) => response(200, &[("cache-control", "max-age=60"), ("etag", "\"v2\"")], "new"),
                None => response(200, &[("cache-control", "max-age=60"), validator], "old"),
            },
        );
        assert_eq!(cached.get(&[]).await, Seen::new(200, "old", "fwd=miss; stored"));
        cached.pass(61);
        // The sender's own condition is not passed on, and is answered.
        let did = "fwd=stale; fwd-status=304";
        assert_eq!(
            cached.get(&[("if-none-match", "\"other\"")]).await,
            Seen::new(200, "old", did)
        );
        cached.pass(99);
        let hit = cached.send(request(Method::GET, &[])).await.unwrap();
        assert_eq!(hit.headers()["x-new"], "1");
        assert_eq!(seen(hit).await, Seen::new(200, "old", "hit; ttl=1"));
        cached.pass(1);
        assert_eq!(cached.get(&[]).await, Seen::new(200, "new", "fwd=stale; stored"));
        assert_eq!(cached.get(&[]).await, Seen::new(200, "new", "hit; ttl=60"));
        assert_eq!(cached.calls(), 3);
        // It is kept for an hour to be validated.
        cached.pass(3661);
        assert_eq!(cached.get(&[]).await.body, "old");
    }
}

/// Nobody gets a response unasked that has to be validated, whatever its sender would take.
#[tokio::test]
async fn what_has_to_be_validated_is() {
    for control in ["no-cache", "max-age=0, must-revalidate", "s-maxage=0", "max-age=0"] {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| response(200, &[("cache-control", control), ("etag", "\"1\"")], format!("{call}")),
        );
        for call in 0..3 {
            let seen = cached.get(&[("cache-control", "max-stale")]).await;
            assert_eq!(seen.body, call.to_string(), "{control}");
            cached.pass(1);
        }
    }
}

#[tokio::test]
async fn a_stale_response_goes_when_another_may_not_be_stored() {
    for (status, headers) in [
        (404, &[("cache-control", "no-store")]),
        (200, &[("cache-control", "private")]),
    ] {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| match call {
                0 => response(
                    200,
                    &[("cache-control", "max-age=1, stale-while-revalidate=1000")],
                    "old",
                ),
                _ => response(status, headers, "new"),
            },
        );
        cached.get(&[]).await;
        cached.pass(10);
        while cached.get(&[]).await.body == "old" {
            tokio::task::yield_now().await;
        }
        assert_eq!(cached.get(&[]).await.status, status);
    }
}

#[tokio::test]
async fn a_validation_stores_no_cookie_and_no_other_response() {
    for (etag, body) in [("\"1\"", "0"), ("\"2\"", "2")] {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| match call {
                1 => response(304, &[("set-cookie", "id=1"), ("etag", etag)], ""),
                _ => response(
                    200,
                    &[("cache-control", "public, max-age=60"), ("etag", "\"1\"")],
                    format!("{call}"),
                ),
            },
        );
        cached.get(&[]).await;
        cached.pass(61);
        let validated = cached.send(request(Method::GET, &[])).await.unwrap();
        assert_eq!(validated.headers().contains_key("set-cookie"), etag == "\"1\"");
        assert_eq!(seen(validated).await.body, "0");
        let next = cached.send(request(Method::GET, &[])).await.unwrap();
        assert!(!next.headers().contains_key("set-cookie"));
        assert_eq!(seen(next).await.body, body);
    }
}

#[tokio::test]
async fn a_stale_response_serves_while_a_task_validates_it() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| {
            response(
                200,
                &[("cache-control", "max-age=60, stale-while-revalidate=30")],
                format!("{call}"),
            )
        },
    );
    cached.get(&[]).await;
    cached.pass(70);
    // Its response is held back, and nobody waits for it.
    let held = cached.backend.gate.acquire_many(1000).await.unwrap();
    for _ in 0..3 {
        assert_eq!(cached.get(&[]).await, Seen::new(200, "0", "hit; ttl=-10"));
    }
    drop(held);
    while cached.get(&[]).await.body == "0" {
        tokio::task::yield_now().await;
    }
    assert_eq!(cached.get(&[]).await, Seen::new(200, "1", "hit; ttl=60"));
    assert_eq!(cached.calls(), 2, "one validates");
    // A sender that wants no stale response waits; so does one that comes too late.
    cached.pass(70);
    assert_eq!(cached.get(&[("cache-control", "no-cache")]).await.body, "2");
    cached.pass(91);
    assert_eq!(cached.get(&[]).await.body, "3");
}

#[tokio::test]
async fn a_stale_response_serves_if_the_service_fails() {
    for (control, serves) in [
        ("max-age=60, stale-if-error=300", true),
        ("max-age=60, stale-if-error=300, must-revalidate", false),
        ("max-age=60", false),
    ] {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| match call {
                0 => response(200, &[("cache-control", control), ("etag", "\"1\"")], "0"),
                1 => response(503, &[], "unavailable"),
                _ => Err("the connection was refused"),
            },
        );
        cached.get(&[]).await;
        cached.pass(100);
        let failed = cached.get(&[]).await;
        assert_eq!(
            (failed.status, failed.body == "0"),
            if serves { (200, true) } else { (503, false) }
        );
        assert_eq!(
            cached.send(request(Method::GET, &[])).await.is_ok(),
            serves,
            "{control}"
        );
        cached.pass(300);
        assert!(cached.send(request(Method::GET, &[])).await.is_err());
    }
}

#[tokio::test]
async fn only_if_cached_does_not_call_the_service() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| {
            response(
                200,
                &[("cache-control", "max-age=60"), ("etag", "\"1\"")],
                format!("{call}"),
            )
        },
    );
    let only = [("cache-control", "only-if-cached")];
    assert_eq!(cached.get(&only).await, Seen::new(504, "", "fwd=miss"));
    cached.get(&[]).await;
    assert_eq!(cached.get(&only).await, Seen::new(200, "0", "hit; ttl=60"));
    cached.pass(61);
    assert_eq!(cached.get(&only).await, Seen::new(504, "", "fwd=stale"));
    assert_eq!(cached.calls(), 1);
}
