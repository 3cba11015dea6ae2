//! A service whose answers a test determines, behind the layer, and what a test sees of its responses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use leafpress::Cache;
use leafpress::cache::{Clock, ManualClock};
use leafpress_tower::{CacheBody, CacheLayer, CacheService};
use tower::{Layer, Service, ServiceExt};

pub type Answers = dyn Fn(&Request<()>, usize) -> Result<Response<Full<Bytes>>, &'static str> + Send + Sync;

/// A service that answers by a function of the request and the number of calls before.
#[derive(Clone)]
pub struct Backend {
    pub answers: Arc<Answers>,
    pub calls: Arc<AtomicUsize>,
    /// Requests wait until this is released.
    pub gate: Arc<tokio::sync::Semaphore>,
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

pub struct Cached {
    pub service: CacheService<Backend>,
    pub cache: Cache,
    pub clock: Arc<ManualClock>,
    pub backend: Backend,
}

/// What a test looks at of a response.
#[derive(Debug, PartialEq)]
pub struct Seen {
    pub status: u16,
    pub body: String,
    pub did: String,
}

impl Seen {
    pub fn new(status: u16, body: &str, did: &str) -> Self {
        Self {
            status,
            body: body.to_owned(),
            did: format!("leafpress; {did}"),
        }
    }
}

impl Cached {
    pub fn new(
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

    pub async fn send(&self, request: Request<()>) -> Result<Response<CacheBody<Full<Bytes>>>, &'static str> {
        self.service.clone().oneshot(request).await
    }

    pub async fn get(&self, headers: &[(&str, &str)]) -> Seen {
        seen(self.send(request(Method::GET, headers)).await.unwrap()).await
    }

    pub fn calls(&self) -> usize {
        self.backend.calls.load(Ordering::SeqCst)
    }

    pub fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

pub async fn seen(response: Response<CacheBody<Full<Bytes>>>) -> Seen {
    let did = response.headers()["cache-status"].to_str().unwrap().to_owned();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Seen { status, body, did }
}

pub fn request(method: Method, headers: &[(&str, &str)]) -> Request<()> {
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
pub fn response(
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
