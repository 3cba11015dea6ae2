//! Requests for one response at the same time: one calls the service, the others wait for it.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::Full;

use crate::support::{Cached, Seen, request, response, seen};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_one_response_wait_for_the_first() {
    type Headers = &'static [(&'static str, &'static str)];
    const PLAIN: Headers = &[("cache-control", "max-age=60")];
    const VARIES: Headers = &[("cache-control", "max-age=60"), ("vary", "accept")];
    for (headers, calls) in [(PLAIN, 1), (VARIES, 1), (&[], 20)] {
        let cached = Arc::new(Cached::new(|layer| layer, move |_, _| response(200, headers, "body")));
        let held = cached.backend.gate.acquire_many(1000).await.unwrap();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let cached = Arc::clone(&cached);
                tokio::spawn(async move { cached.get(&[]).await })
            })
            .collect();
        while cached.calls() == 0 {
            tokio::task::yield_now().await;
        }
        drop(held);
        for task in tasks {
            let seen = task.await.unwrap();
            assert_eq!((seen.status, seen.body.as_str()), (200, "body"));
        }
        assert_eq!(cached.calls(), calls);
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_the_others_to_fetch() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| response(200, &[("cache-control", "max-age=60")], format!("{call}")),
    );
    let held = cached.backend.gate.acquire_many(1000).await.unwrap();
    let mut first = Box::pin(cached.get(&[]));
    let mut second = Box::pin(cached.get(&[]));
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert_eq!(cached.calls(), 1);
    drop(first);
    drop(held);
    assert_eq!(second.await, Seen::new(200, "1", "fwd=miss; stored"));
}

/// Two requests for one stale response while the service holds back its answers.
#[tokio::test]
async fn requests_for_one_stale_response_wait_for_its_validation() {
    type Answer = fn(usize) -> Result<Response<Full<Bytes>>, &'static str>;
    const SAME: Answer = |_| response(304, &[("etag", "\"1\"")], "");
    const NEW: Answer = |_| response(200, &[("cache-control", "max-age=60")], "new");
    const NOT_STORED: Answer = |call| response(404, &[("cache-control", "no-store")], format!("gone {call}"));
    const UNAVAILABLE: Answer = |call| response(503, &[], format!("unavailable {call}"));
    const REFUSED: Answer = |_| Err("the connection was refused");
    const SERVES: &str = "max-age=60, stale-if-error=300";
    let stale = "hit; ttl=-1";
    // How the response may be used, the answer to its validation, how many requests the service gets at first and in
    // the end, and what the senders see.
    for (control, answer, at_first, in_the_end, all) in [
        (
            "max-age=60",
            SAME,
            1,
            1,
            ["200 old fwd=stale; fwd-status=304", "200 old fwd=stale; collapsed"],
        ),
        (
            "max-age=60",
            NEW,
            1,
            1,
            ["200 new fwd=stale; stored", "200 new fwd=stale; collapsed"],
        ),
        (
            "max-age=60",
            NOT_STORED,
            1,
            2,
            ["404 gone 1 fwd=stale", "404 gone 2 fwd=stale"],
        ),
        (
            "max-age=60",
            UNAVAILABLE,
            1,
            2,
            ["503 unavailable 1 fwd=stale", "503 unavailable 2 fwd=stale"],
        ),
        ("max-age=60", REFUSED, 1, 2, ["refused", "refused"]),
        (
            SERVES,
            UNAVAILABLE,
            1,
            1,
            [&format!("200 old {stale}"), &format!("200 old {stale}")],
        ),
        (
            SERVES,
            REFUSED,
            1,
            1,
            [&format!("200 old {stale}"), &format!("200 old {stale}")],
        ),
        (
            SERVES,
            NOT_STORED,
            1,
            2,
            ["404 gone 1 fwd=stale", "404 gone 2 fwd=stale"],
        ),
        // One that is never fresh would be validated by each of them all the same.
        (
            "max-age=0",
            SAME,
            2,
            2,
            ["200 old fwd=stale; fwd-status=304", "200 old fwd=stale; fwd-status=304"],
        ),
    ] {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| match call {
                0 => response(200, &[("cache-control", control), ("etag", "\"1\"")], "old"),
                _ => answer(call),
            },
        );
        cached.get(&[]).await;
        cached.pass(61);
        let held = cached.backend.gate.acquire_many(1000).await.unwrap();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut senders: Vec<_> = (0..2)
            .map(|_| Box::pin(cached.send(request(Method::GET, &[]))))
            .collect();
        for sender in &mut senders {
            assert!(sender.as_mut().poll(&mut context).is_pending());
        }
        assert_eq!(cached.calls(), 1 + at_first, "{all:?}");
        drop(held);
        for (sender, expected) in senders.into_iter().zip(all) {
            let answer = match sender.await {
                Ok(response) => seen(response).await,
                Err(_) => Seen::new(0, "", ""),
            };
            let did = answer.did.trim_start_matches("leafpress; ");
            let answer = match answer.status {
                0 => "refused".to_owned(),
                status => format!("{status} {} {did}", answer.body),
            };
            assert_eq!(answer, expected, "{control}");
        }
        assert_eq!(cached.calls(), 1 + in_the_end, "{all:?}");
    }
}

#[tokio::test]
async fn a_validation_that_is_dropped_leaves_the_others_to_validate() {
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
    cached.get(&[]).await;
    cached.pass(61);
    let held = cached.backend.gate.acquire_many(1000).await.unwrap();
    let mut first = Box::pin(cached.get(&[]));
    let mut second = Box::pin(cached.get(&[]));
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert_eq!(cached.calls(), 2);
    drop(first);
    drop(held);
    assert_eq!(second.await, Seen::new(200, "2", "fwd=stale; stored"));
}

#[tokio::test]
async fn errors_of_the_service_are_each_senders_own() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| match call {
            0 => Err("the connection was refused"),
            _ => response(200, &[("cache-control", "max-age=60")], "body"),
        },
    );
    assert_eq!(
        cached.send(request(Method::GET, &[])).await.unwrap_err(),
        "the connection was refused"
    );
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body", "fwd=miss; stored"));
}
