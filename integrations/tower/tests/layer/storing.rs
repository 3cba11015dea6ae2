//! Which responses are stored, and which requests they answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use leafpress::Cache;
use leafpress_tower::CacheLayer;
use tower::{Layer, ServiceExt};

use crate::support::{Cached, Seen, request, response, seen};

type Chunks = Vec<Result<Frame<Bytes>, &'static str>>;

/// A body of these frames.
fn frames(chunks: Chunks) -> impl Body<Data = Bytes, Error = &'static str> + Unpin + Send {
    StreamBody::new(Frames(chunks.into_iter()))
}

struct Frames(std::vec::IntoIter<Result<Frame<Bytes>, &'static str>>);

impl futures_core::Stream for Frames {
    type Item = Result<Frame<Bytes>, &'static str>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next())
    }
}

#[tokio::test]
async fn a_conditional_request_of_a_known_response_gets_no_body() {
    let cached = Cached::new(
        |layer| layer,
        |_, _| {
            let modified = ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
            response(
                200,
                &[
                    ("cache-control", "max-age=60"),
                    ("etag", "W/\"1\""),
                    modified,
                    ("content-type", "text/html"),
                ],
                "body",
            )
        },
    );
    cached.get(&[]).await;
    for condition in [
        ("if-none-match", "\"1\""),
        ("if-none-match", "\"0\", W/\"1\""),
        ("if-none-match", "*"),
        ("if-modified-since", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ] {
        let known = cached.send(request(Method::GET, &[condition])).await.unwrap();
        assert!(known.headers().contains_key("etag") && !known.headers().contains_key("content-type"));
        assert_eq!(seen(known).await, Seen::new(304, "", "hit; ttl=60"), "{condition:?}");
    }
    let other = [
        ("if-none-match", "\"2\""),
        ("if-modified-since", "Thu, 01 Jan 2026 00:00:00 GMT"),
    ];
    assert_eq!(cached.get(&other).await, Seen::new(200, "body", "hit; ttl=60"));
    assert_eq!(cached.calls(), 1);
}

#[tokio::test]
async fn a_fresh_response_answers_head_requests() {
    let cached = Cached::new(
        |layer| layer,
        |request, call| {
            let headers = [("cache-control", "max-age=60"), ("etag", "\"1\""), ("vary", "accept")];
            let body = if *request.method() == Method::HEAD {
                String::new()
            } else {
                format!("body {call}")
            };
            response(200, &headers, body)
        },
    );
    let head = async |headers: &[(&str, &str)]| cached.send(request(Method::HEAD, headers)).await.unwrap();
    // The service answers what the cache cannot, and its answer is not stored.
    let only = [("cache-control", "only-if-cached")];
    assert_eq!(seen(head(&only).await).await, Seen::new(504, "", "fwd=miss"));
    assert_eq!(seen(head(&[]).await).await, Seen::new(200, "", "fwd=miss"));
    assert_eq!(seen(head(&[]).await).await, Seen::new(200, "", "fwd=miss"));
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body 2", "fwd=miss; stored"));
    cached.pass(20);
    let hit = head(&only).await;
    for (name, value) in [("content-length", "6"), ("age", "20"), ("etag", "\"1\"")] {
        assert_eq!(hit.headers()[name], value);
    }
    assert_eq!(seen(hit).await, Seen::new(200, "", "hit; ttl=40"));
    let known = head(&[("if-none-match", "\"1\"")]).await;
    assert_eq!(seen(known).await, Seen::new(304, "", "hit; ttl=40"));
    assert_eq!(cached.calls(), 3);
    // Another variant, a sender that wants a validation, and a stale response need the service.
    assert_eq!(
        seen(head(&[("accept", "text/html")]).await).await,
        Seen::new(200, "", "fwd=miss")
    );
    let no_cache = head(&[("cache-control", "no-cache")]).await;
    assert_eq!(seen(no_cache).await, Seen::new(200, "", "fwd=stale"));
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body 2", "hit; ttl=40"));
    cached.pass(41);
    assert_eq!(seen(head(&only).await).await, Seen::new(504, "", "fwd=stale"));
    assert_eq!(seen(head(&[]).await).await, Seen::new(200, "", "fwd=stale"));
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body 6", "fwd=stale; stored"));
}

#[tokio::test]
async fn an_answer_to_head_removes_a_response_that_it_shows_to_be_outdated() {
    // Its etag, its length, and whether a `HEAD` request that the service answers leaves the stored response.
    for (etag, len, stays) in [
        ("\"1\"", Some("6"), true),
        ("W/\"1\"", None, true),
        ("\"2\"", None, false),
        ("\"1\"", Some("7"), false),
    ] {
        let cached = Cached::new(
            |layer| layer,
            move |request, call| {
                let mut headers = vec![("cache-control", "max-age=60")];
                if *request.method() == Method::HEAD {
                    headers.push(("etag", etag));
                    headers.extend(len.map(|len| ("content-length", len)));
                    return response(200, &headers, String::new());
                }
                headers.push(("etag", "\"1\""));
                response(200, &headers, format!("body {call}"))
            },
        );
        assert_eq!(cached.get(&[]).await, Seen::new(200, "body 0", "fwd=miss; stored"));
        let head = request(Method::HEAD, &[("cache-control", "no-cache")]);
        assert_eq!(
            seen(cached.send(head).await.unwrap()).await,
            Seen::new(200, "", "fwd=stale")
        );
        let expected = match stays {
            true => Seen::new(200, "body 0", "hit; ttl=60"),
            false => Seen::new(200, "body 2", "fwd=miss; stored"),
        };
        assert_eq!(cached.get(&[]).await, expected, "{etag} {len:?}");
    }
}

#[tokio::test]
async fn what_may_not_be_stored_is_not() {
    type Case<'c> = (&'c [(&'c str, &'c str)], u16, &'c [(&'c str, &'c str)]);
    let cases: &[Case<'static>] = &[
        (&[], 200, &[]),
        (&[], 200, &[("cache-control", "no-store, max-age=60")]),
        (&[], 200, &[("cache-control", "private, max-age=60")]),
        (&[], 200, &[("cache-control", "max-age=60"), ("vary", "accept, *")]),
        (&[], 200, &[("cache-control", "max-age=60"), ("set-cookie", "id=1")]),
        (&[], 206, &[("cache-control", "max-age=60")]),
        (&[], 500, &[]),
        (&[("authorization", "Basic x")], 200, &[("cache-control", "max-age=60")]),
        (
            &[("cache-control", "no-store")],
            200,
            &[("cache-control", "max-age=60")],
        ),
        (&[("range", "bytes=0-1")], 200, &[("cache-control", "max-age=60")]),
        (&[("if-match", "\"1\"")], 200, &[("cache-control", "max-age=60")]),
        (&[("content-length", "3")], 200, &[("cache-control", "max-age=60")]),
        (
            &[("transfer-encoding", "chunked")],
            200,
            &[("cache-control", "max-age=60")],
        ),
        // Directives have no case, may contradict each other, and may be unreadable.
        (&[], 200, &[("cache-control", "Private, max-age=60")]),
        (
            &[],
            200,
            &[("cache-control", "No-Store"), ("cache-control", "max-age=60")],
        ),
        (
            &[],
            200,
            &[
                ("cache-control", "private, x=\"\u{e9}\""),
                ("expires", "Fri, 31 Dec 9999 23:59:59 GMT"),
            ],
        ),
        (
            &[("authorization", "Basic x")],
            200,
            &[("cache-control", "max-age=60"), ("cache-control", "max-age=30")],
        ),
    ];
    for (conditions, status, answers) in cases {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| response(*status, answers, format!("{call}")),
        );
        for call in 0..3 {
            let seen = cached.get(conditions).await;
            assert_eq!(
                (seen.status, seen.body),
                (*status, call.to_string()),
                "{conditions:?} {answers:?}"
            );
            assert!(!seen.did.contains("stored"), "{}", seen.did);
        }
    }
    // Nor is anything left of credentials, where the response may be stored.
    let cached = Cached::new(
        |layer| layer,
        |_, call| {
            let answers = [
                ("cache-control", "public, max-age=60"),
                ("vary", "cookie, authorization"),
            ];
            response(200, &answers, format!("{call}"))
        },
    );
    let conditions = [
        ("authorization", "Basic secret"),
        ("cookie", "id=secret"),
        ("x-other", "secret"),
    ];
    assert_eq!(cached.get(&conditions).await.body, "0");
    assert_eq!(cached.get(&conditions).await.body, "0");
    assert_eq!(cached.get(&[("cookie", "id=other")]).await.body, "1");
    let records: Vec<_> = cached.cache.range(..).map(Result::unwrap).collect();
    assert_eq!(records.len(), 3);
    let is_secret = |bytes: &[u8]| bytes.windows(6).any(|window| window == b"secret");
    assert!(records.iter().all(|(key, value)| !is_secret(key) && !is_secret(value)));
}

#[tokio::test]
async fn a_cache_of_one_user_stores_what_is_private() {
    let cached = Cached::new(CacheLayer::private, |_, call| {
        response(
            200,
            &[
                ("cache-control", "private, max-age=60, s-maxage=0"),
                ("set-cookie", "id=1"),
            ],
            format!("{call}"),
        )
    });
    for _ in 0..3 {
        assert_eq!(cached.get(&[("authorization", "Basic x")]).await.body, "0");
    }
}

#[tokio::test]
async fn hosts_are_kept_apart_and_have_no_case() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| response(200, &[("cache-control", "max-age=60")], format!("{call}")),
    );
    let get = async |uri: &str, host: &str| {
        let request = Request::get(uri).header("host", host).body(()).unwrap();
        seen(cached.send(request).await.unwrap()).await.body
    };
    assert_eq!(get("/page", "example.com").await, "0");
    assert_eq!(get("/page", "EXAMPLE.com").await, "0");
    // As by HTTP/2 and by proxies.
    assert_eq!(get("https://example.com/page", "").await, "0");
    assert_eq!(get("/page", "example.org").await, "1");
    assert_eq!(get("/", "example.com/page").await, "2");
    assert_eq!(get("/page", "example.com").await, "0");
}

/// Layers with one cache on one way, as around a router and one that is merged into it.
#[tokio::test]
async fn a_request_may_pass_two_layers() {
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let backend =
        tower::service_fn(|_: Request<()>| async { response(200, &[("cache-control", "max-age=60")], "body") });
    let layer = CacheLayer::new(cache);
    let service = layer.layer(layer.clone().private().layer(backend));
    for did in ["leafpress; fwd=miss; stored", "leafpress; hit"] {
        let response = service.clone().oneshot(request(Method::GET, &[])).await.unwrap();
        assert!(response.headers()["cache-status"].to_str().unwrap().starts_with(did));
    }
}

#[tokio::test]
async fn namespaces_are_kept_apart() {
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let layer = CacheLayer::new(cache);
    for name in ["one", "two"] {
        let backend = tower::service_fn(move |_: Request<()>| {
            std::future::ready(response(200, &[("cache-control", "max-age=60")], name))
        });
        let service = layer.clone().namespace(name).layer(backend);
        for _ in 0..2 {
            let response = service.clone().oneshot(request(Method::GET, &[])).await.unwrap();
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), name);
        }
    }
}

#[tokio::test]
async fn a_senders_condition_fills_the_cache_for_all() {
    let cached = Cached::new(
        |layer| layer,
        |request, call| match request.headers().get("if-none-match") {
            Some(_) => response(304, &[("etag", "\"1\"")], ""),
            None => response(
                200,
                &[("cache-control", "max-age=60"), ("etag", "\"1\"")],
                format!("{call}"),
            ),
        },
    );
    let known = [("if-none-match", "\"1\"")];
    assert_eq!(cached.get(&known).await, Seen::new(304, "", "fwd=miss; stored"));
    assert_eq!(cached.get(&[]).await, Seen::new(200, "0", "hit; ttl=60"));
    // What is not stored is answered by the same rules.
    let cached = Cached::new(
        |layer| layer,
        |_, _| response(200, &[("cache-control", "no-store"), ("etag", "\"1\"")], "body"),
    );
    assert_eq!(cached.get(&known).await, Seen::new(304, "", "fwd=miss"));
    assert_eq!(cached.get(&[]).await, Seen::new(200, "body", "fwd=miss"));
}

#[tokio::test]
async fn variants_are_kept_apart() {
    let cached = Cached::new(
        |layer| layer,
        |request, call| {
            let language = request
                .headers()
                .get("accept-language")
                .map_or("none", |value| value.to_str().unwrap());
            let body = format!("{language} {call}");
            response(
                200,
                &[
                    ("cache-control", "max-age=60"),
                    ("vary", "Accept-Language"),
                    ("vary", "accept"),
                ],
                body,
            )
        },
    );
    let (german, french) = ([("accept-language", "de")], [("accept-language", "fr")]);
    assert_eq!(cached.get(&german).await.body, "de 0");
    assert_eq!(cached.get(&french).await.body, "fr 1");
    assert_eq!(cached.get(&[]).await.body, "none 2");
    for _ in 0..2 {
        assert_eq!(cached.get(&german).await, Seen::new(200, "de 0", "hit; ttl=60"));
        assert_eq!(cached.get(&french).await, Seen::new(200, "fr 1", "hit; ttl=60"));
        assert_eq!(cached.get(&[]).await, Seen::new(200, "none 2", "hit; ttl=60"));
    }
    assert_eq!(
        cached
            .get(&[("accept-language", "de"), ("accept", "text/html")])
            .await
            .body,
        "de 3"
    );
    // An unsafe request that succeeds removes all.
    let post = cached.send(request(Method::POST, &[])).await.unwrap();
    assert_eq!(seen(post).await.did, "leafpress; fwd=method");
    assert_eq!(cached.get(&german).await.body, "de 5");
    assert_eq!(cached.get(&french).await.body, "fr 6");
}

/// Numbers that are too large to calculate with, and text that is not a number.
#[tokio::test]
async fn hostile_headers_do_no_harm() {
    const MOST: &str = "18446744073709551615";
    let cases: &[&[(&str, &str)]] = &[
        &[(
            "cache-control",
            "max-age=18446744073709551615, stale-while-revalidate=18446744073709551615",
        )],
        &[(
            "cache-control",
            "max-age=99999999999999999999999999, stale-if-error=99999999999999999999999999",
        )],
        &[("cache-control", "s-maxage=18446744073709551615"), ("age", MOST)],
        &[("cache-control", "max-age=60"), ("age", MOST), ("etag", "\"1\"")],
        &[("cache-control", "max-age=60"), ("age", "-1")],
        &[
            ("expires", "Fri, 31 Dec 9999 23:59:59 GMT"),
            ("date", "Thu, 01 Jan 1960 00:00:00 GMT"),
        ],
        &[("expires", "0"), ("last-modified", "Thu, 01 Jan 1600 00:00:00 GMT")],
        &[
            ("cache-control", "public"),
            ("last-modified", "Fri, 31 Dec 9999 23:59:59 GMT"),
            ("etag", ""),
        ],
        &[
            ("cache-control", "=,=\"\",,max-age=\"60\"\";="),
            ("vary", ",,\u{7f},a b"),
            ("connection", ",\u{1}x,close"),
        ],
        &[
            ("cache-control", "max-age=60"),
            ("warning", "113 - x"),
            ("vary", "accept"),
        ],
    ];
    for headers in cases {
        let cached = Cached::new(
            |layer| layer,
            move |_, call| {
                let mut response = Response::builder().status(if call % 3 == 2 { 304 } else { 200 });
                for (name, value) in *headers {
                    response = match http::HeaderValue::from_bytes(value.as_bytes()) {
                        Ok(value) => response.header(*name, value),
                        Err(_) => response,
                    };
                }
                Ok(response.body(Full::new(Bytes::from("body"))).unwrap())
            },
        );
        for control in [
            "max-stale",
            "max-age=18446744073709551615, min-fresh=18446744073709551615",
            "max-stale=18446744073709551615",
        ] {
            for seconds in [0, 1, 100, 10_000_000_000] {
                cached.pass(seconds);
                let seen = cached
                    .get(&[("cache-control", control), ("if-none-match", "\"1")])
                    .await;
                assert!(seen.status == 200 || seen.status == 304, "{headers:?} {seen:?}");
                cached.get(&[]).await;
            }
        }
    }
}

#[tokio::test]
async fn a_closed_or_damaged_cache_is_passed() {
    let cached = Cached::new(
        |layer| layer,
        |_, call| response(200, &[("cache-control", "max-age=60")], format!("{call}")),
    );
    cached.get(&[]).await;
    // What another version wrote, or somebody else.
    for value in [&b"\x03"[..], b"\xff\xff\xff\xff", b"\x04\0\0\0abcd body"] {
        for record in cached.cache.range(..).collect::<Vec<_>>() {
            cached.cache.insert(&record.unwrap().0, value).unwrap();
        }
        let calls = cached.calls().to_string();
        assert_eq!(cached.get(&[]).await, Seen::new(200, &calls, "fwd=miss; stored"));
    }
    cached.cache.close().unwrap();
    let calls = cached.calls().to_string();
    assert_eq!(cached.get(&[]).await, Seen::new(200, &calls, "fwd=miss"));
}

#[tokio::test]
async fn bodies_that_are_not_stored_are_passed_whole() {
    let data = |bytes: &'static [u8]| Ok(Frame::data(Bytes::from_static(bytes)));
    let trailers = || {
        Ok(Frame::trailers(
            [(HeaderName::from_static("x-sum"), "1".parse().unwrap())]
                .into_iter()
                .collect(),
        ))
    };
    type Make = Box<dyn Fn() -> Chunks + Send + Sync>;
    let cases: [(Make, &str, bool, bool); 4] = [
        (
            Box::new(move || vec![data(b"1234"), data(b"5678")]),
            "12345678",
            false,
            true,
        ),
        (
            Box::new(move || vec![data(b"1234"), data(b"56789"), data(b"0")]),
            "1234567890",
            false,
            false,
        ),
        (Box::new(move || vec![data(b"1234"), trailers()]), "1234", false, false),
        (Box::new(move || vec![data(b"1234"), Err("reset")]), "1234", true, false),
    ];
    for (make, whole, fails, is_stored) in cases {
        let make = Arc::new(Mutex::new(make));
        let backend = tower::service_fn(move |_: Request<()>| {
            let body = frames(make.lock().unwrap()());
            async move {
                Ok::<_, Infallible>(
                    Response::builder()
                        .header("cache-control", "max-age=60")
                        .body(body)
                        .unwrap(),
                )
            }
        });
        let cache = Cache::builder().memory(8 << 20).build().unwrap();
        let service = CacheLayer::new(cache).max_body_bytes(8).layer(backend);
        for call in 0..2 {
            let response = service.clone().oneshot(request(Method::GET, &[])).await.unwrap();
            let did = response.headers()["cache-status"].to_str().unwrap().to_owned();
            let mut body = response.into_body();
            let (mut read, mut failed, mut has_trailers) = (Vec::new(), false, false);
            while let Some(frame) = body.frame().await {
                match frame.map(Frame::into_data) {
                    Ok(Ok(data)) => read.extend_from_slice(&data),
                    Ok(Err(_)) => has_trailers = true,
                    Err(_) => failed = true,
                }
            }
            assert_eq!((read.as_slice(), failed), (whole.as_bytes(), fails));
            assert_eq!(has_trailers, whole == "1234" && !fails);
            assert_eq!(did.contains("stored") || did.contains("hit"), is_stored, "{call} {did}");
        }
    }
}

#[tokio::test]
async fn it_is_a_layer_of_axum() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let page = move || {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move { ([("cache-control", "max-age=60")], format!("page {call}")) }
    };
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    let app = axum::Router::new()
        .route("/", axum::routing::get(page))
        .layer(CacheLayer::new(cache));
    for _ in 0..3 {
        let response = app
            .clone()
            .oneshot(Request::new(axum::body::Body::empty()))
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let body = axum::body::to_bytes(response.into_body(), 100).await.unwrap();
        assert_eq!(body, "page 0");
    }
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
