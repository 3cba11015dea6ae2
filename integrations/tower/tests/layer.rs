//! The layer before services that say how their responses may be cached.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, StreamBody};
use leafpress::Cache;
use leafpress::cache::{Clock, ManualClock};
use leafpress_tower::{CacheBody, CacheLayer, CacheService};
use tower::{Layer, Service, ServiceExt};

type Answers = dyn Fn(&Request<()>, usize) -> Result<Response<Full<Bytes>>, &'static str> + Send + Sync;

/// A service that answers by a function of the request and the number of calls before.
#[derive(Clone)]
struct Backend {
    answers: Arc<Answers>,
    calls: Arc<AtomicUsize>,
    /// Requests wait until this is released.
    gate: Arc<tokio::sync::Semaphore>,
}

impl Service<Request<()>> for Backend {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let call = this.calls.fetch_add(1, Ordering::SeqCst);
            let _passed = this.gate.acquire().await;
            (this.answers)(&request, call)
        })
    }
}

struct Cached {
    service: CacheService<Backend>,
    cache: Cache,
    clock: Arc<ManualClock>,
    backend: Backend,
}

/// What a test looks at of a response.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    body: String,
    did: String,
}

impl Seen {
    fn new(status: u16, body: &str, did: &str) -> Self {
        Self {
            status,
            body: body.to_owned(),
            did: format!("leafpress; {did}"),
        }
    }
}

impl Cached {
    fn new(
        set: impl FnOnce(CacheLayer) -> CacheLayer,
        answers: impl Fn(&Request<()>, usize) -> Result<Response<Full<Bytes>>, &'static str> + Send + Sync + 'static,
    ) -> Self {
        let clock = Arc::new(ManualClock::new(Duration::from_secs(1_900_000_000)));
        let cache = Cache::builder().memory(8 << 20).clock(clock.clone()).build().unwrap();
        let backend = Backend {
            answers: Arc::new(answers),
            calls: Arc::default(),
            gate: Arc::new(tokio::sync::Semaphore::new(1000)),
        };
        let layer = set(CacheLayer::new(cache.clone()).clock(Arc::clone(&clock) as Arc<dyn Clock>));
        Self {
            service: layer.layer(backend.clone()),
            cache,
            clock,
            backend,
        }
    }

    async fn send(&self, request: Request<()>) -> Result<Response<CacheBody<Full<Bytes>>>, &'static str> {
        self.service.clone().oneshot(request).await
    }

    async fn get(&self, headers: &[(&str, &str)]) -> Seen {
        seen(self.send(request(Method::GET, headers)).await.unwrap()).await
    }

    fn calls(&self) -> usize {
        self.backend.calls.load(Ordering::SeqCst)
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

async fn seen(response: Response<CacheBody<Full<Bytes>>>) -> Seen {
    let did = response.headers()["cache-status"].to_str().unwrap().to_owned();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Seen { status, body, did }
}

fn request(method: Method, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder()
        .method(method)
        .uri("/page?a=1")
        .header("host", "example.com");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// Returns a response with these headers.
fn response(
    status: u16,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Result<Response<Full<Bytes>>, &'static str> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Ok(response.body(Full::new(body.into())).unwrap())
}

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

/// Numbers that are too large to calculate with, and what is no number.
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
