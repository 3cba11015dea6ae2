//! The service: what is done with a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AGE, CONTENT_LENGTH, HeaderName, RANGE};
use http::{HeaderValue, Method, Request, Response, StatusCode, request, response};
use http_body::Body;
use http_cache_semantics::BeforeRequest;
use leafpress::cache::InsertOptions;
use tower_service::Service;

use crate::body::{self, CacheBody, Read};
use crate::key::Target;
use crate::layer::{Shared, Validation};
use crate::rules::{self, Plan};
use crate::stored::{Head, Stored};

/// How long requests for a response that cannot be stored do not wait for one another.
const NOT_STORED_FOR: Duration = Duration::from_secs(10);
/// Tags of a record that the tag header gives; one more is its target.
const MAX_TAGS: usize = 7;
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// A service whose responses a [`CacheLayer`](crate::CacheLayer) caches.
#[derive(Clone)]
pub struct CacheService<S> {
    pub(crate) inner: S,
    pub(crate) shared: Arc<Shared>,
}

impl<S: std::fmt::Debug> std::fmt::Debug for CacheService<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CacheService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl<S, Sent, Received> Service<Request<Sent>> for CacheService<S>
where
    S: Service<Request<Sent>, Response = Response<Received>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    Sent: Send + 'static,
    Received: Body<Data = Bytes> + Unpin + Send + 'static,
    Received::Error: Send,
{
    type Response = Response<CacheBody<Received>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Sent>) -> Self::Future {
        // The one that is ready is called; its clone may not be.
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let (head, body) = request.into_parts();
        let asked = Asked {
            shared: Arc::clone(&self.shared),
            inner,
            head,
            body,
        };
        Box::pin(asked.answer())
    }
}

type Answer<Received, Error> = Result<Response<CacheBody<Received>>, Error>;

/// A request, and the service that may be called for it once.
struct Asked<S, Sent> {
    shared: Arc<Shared>,
    inner: S,
    head: request::Parts,
    body: Sent,
}

/// A response of the service, and how it is stored if it is.
struct Fetched<Received: Body> {
    response: Response<CacheBody<Received>>,
    stored: Option<(Stored, Plan)>,
}

/// The loader's answer for those who wait for it, if its response is not for them.
struct NotShared;

impl<S, Sent, Received> Asked<S, Sent>
where
    S: Service<Request<Sent>, Response = Response<Received>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    Sent: Send + 'static,
    Received: Body<Data = Bytes> + Unpin + Send + 'static,
    Received::Error: Send,
{
    async fn answer(self) -> Answer<Received, S::Error> {
        let target = Target::of(&self.head);
        let Some(target) = target.filter(|_| self.head.method == Method::GET && !self.head.headers.contains_key(RANGE))
        else {
            return self.pass().await;
        };
        let now = self.shared.now();
        let names = self.shared.names(&target).await;
        let key = target.key(&names, &self.head.headers);
        let found = self.shared.find(&key).await;
        if let Found::Stored(stored) = &found {
            let deciding = rules::deciding(&self.head, &names);
            match stored.head.policy.before_request(&deciding, now) {
                BeforeRequest::Fresh(_) => return Ok(stored.respond(&self.head, now)),
                BeforeRequest::Stale { matches: true, .. } => {
                    let stored = stored.as_ref().clone();
                    return self.with_stale(target, key, stored, now).await;
                }
                BeforeRequest::Stale { matches: false, .. } => {}
            }
        }
        if rules::is_only_if_cached(&self.head.headers) {
            return Ok(without_body(StatusCode::GATEWAY_TIMEOUT, "fwd=miss"));
        }
        match found {
            Found::Nothing if rules::may_share(&self.head.headers) => self.fetch_for_all(&target, key, names).await,
            _ => self.fetch_alone(&target, "fwd=miss").await,
        }
    }

    /// Calls the service for a request that no stored response can answer.
    async fn pass(mut self) -> Answer<Received, S::Error> {
        let (is_unsafe, target) = (!self.head.method.is_safe(), Target::of(&self.head));
        let fwd = if self.head.method == Method::GET {
            "fwd=bypass"
        } else {
            "fwd=method"
        };
        let response = self.inner.call(Request::from_parts(self.head, self.body)).await?;
        let status = response.status();
        if is_unsafe && (status.is_success() || status.is_redirection()) {
            self.shared.forget(target.as_ref());
        }
        Ok(with_status(response.map(CacheBody::passed), fwd))
    }

    /// Answers by a stale response: as it is while a task validates it, or after its validation.
    async fn with_stale(
        self,
        target: Target,
        key: Vec<u8>,
        stored: Stored,
        now: SystemTime,
    ) -> Answer<Received, S::Error> {
        let takes_stale = !rules::wants_validation(&self.head.headers)
            && rules::may_be_stale(&stored.head, now, "stale-while-revalidate");
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| takes_stale);
        let Some(runtime) = runtime else {
            if rules::is_only_if_cached(&self.head.headers) {
                return Ok(without_body(StatusCode::GATEWAY_TIMEOUT, "fwd=stale"));
            }
            return self.validate(&target, &key, stored, None).await;
        };
        let response = stored.respond(&self.head, now);
        if let Some(validation) = self.shared.begin_validation(&key) {
            runtime.spawn(async move { self.validate(&target, &key, stored, Some(validation)).await.map(drop) });
        }
        Ok(response)
    }

    /// Asks the service whether a stored response is still valid. `validation` ends with it.
    async fn validate(
        mut self,
        target: &Target,
        key: &[u8],
        mut stored: Stored,
        validation: Option<Validation>,
    ) -> Answer<Received, S::Error> {
        let asked = self.head.clone();
        let is_conditional = rules::make_conditional(&mut self.head.headers, &stored.head.headers);
        let result = self.inner.call(Request::from_parts(self.head, self.body)).await;
        let now = self.shared.now();
        let may_replace_error = rules::may_be_stale(&stored.head, now, "stale-if-error");
        let answer = match result {
            Err(_) if may_replace_error => Ok(stored.respond(&asked, now)),
            Err(error) => Err(error),
            Ok(response) if may_replace_error && response.status().is_server_error() => Ok(stored.respond(&asked, now)),
            Ok(response) if is_conditional && response.status() == StatusCode::NOT_MODIFIED => {
                rules::update(&mut stored.head.headers, response.into_parts().0.headers);
                self.shared.renew(target, key, &asked, &mut stored, now);
                Ok(with_status(stored.respond(&asked, now), "fwd=stale; fwd-status=304"))
            }
            Ok(response) => {
                let fetched = self.shared.read(&asked, response).await;
                Ok(self.shared.keep(target, &asked, fetched, "fwd=stale"))
            }
        };
        drop(validation);
        answer
    }

    /// Calls the service, and stores the response if it may be.
    async fn fetch_alone(mut self, target: &Target, fwd: &str) -> Answer<Received, S::Error> {
        let asked = self.head.clone();
        let response = self.inner.call(Request::from_parts(self.head, self.body)).await?;
        let fetched = self.shared.read(&asked, response).await;
        Ok(self.shared.keep(target, &asked, fetched, fwd))
    }

    /// Like [`Asked::fetch_alone`], for all requests for the response at once.
    async fn fetch_for_all(self, target: &Target, key: Vec<u8>, names: Vec<HeaderName>) -> Answer<Received, S::Error> {
        let shared = Arc::clone(&self.shared);
        let head = self.head.clone();
        let (mut asked, mut own) = (Some(self), None);
        let load = async {
            let Some(mut this) = asked.take() else {
                return Err(NotShared);
            };
            let (shared, head) = (this.shared, this.head.clone());
            let response = match this.inner.call(Request::from_parts(this.head, this.body)).await {
                Ok(response) => response,
                Err(error) => {
                    own = Some(Err(error));
                    return Err(NotShared);
                }
            };
            let fetched = shared.read(&head, response).await;
            match &fetched.stored {
                Some((stored, plan)) if plan.names == names => {
                    let options = shared.options(target, &stored.head, plan.lifetime);
                    own = Some(Ok(with_status(fetched.response, "fwd=miss; stored")));
                    stored.encode().map(|value| (value, options)).ok_or(NotShared)
                }
                stored => {
                    if stored.is_none() {
                        shared.mark_not_stored(&key);
                    }
                    own = Some(Ok(shared.keep(target, &head, fetched, "fwd=miss")));
                    Err(NotShared)
                }
            }
        };
        let loaded = shared.cache.get_or_fetch_entry(&key, load).await;
        if let Some(own) = own {
            return own;
        }
        let now = shared.now();
        let stored = loaded.ok().and_then(Stored::decode).filter(|stored| {
            let before = stored.head.policy.before_request(&rules::deciding(&head, &names), now);
            matches!(before, BeforeRequest::Fresh(_))
        });
        match (stored, asked) {
            (Some(stored), _) => Ok(with_status(stored.respond(&head, now), "fwd=miss; collapsed")),
            (None, Some(this)) => this.fetch_alone(target, "fwd=miss").await,
            // Does not happen: a loader that has run has left its response.
            (None, None) => Ok(without_body(StatusCode::INTERNAL_SERVER_ERROR, "fwd=miss")),
        }
    }
}

/// What the cache has for a key.
enum Found {
    Stored(Box<Stored>),
    /// The response cannot be stored.
    NotStored,
    Nothing,
}

impl Shared {
    /// Returns the names of the headers that choose among the variants of a resource, as far as they are known.
    async fn names(&self, target: &Target) -> Vec<HeaderName> {
        let names = self.cache.get_async(&target.key_of_names()).await.ok().flatten();
        let names = names.unwrap_or_default();
        let names = names.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        names.filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
    }

    async fn find(&self, key: &[u8]) -> Found {
        match self.cache.get_async(key).await {
            Ok(Some(value)) => Stored::decode(value).map_or(Found::NotStored, |stored| Found::Stored(Box::new(stored))),
            // A cache that fails has nothing.
            Ok(None) | Err(_) => Found::Nothing,
        }
    }

    fn mark_not_stored(&self, key: &[u8]) {
        let _ = self.cache.insert_entry(key, "", InsertOptions::ttl(NOT_STORED_FOR));
    }

    /// Removes all stored responses of a target.
    fn forget(&self, target: Option<&Target>) {
        if let Some(target) = target {
            let _ = self.cache.invalidate_tag(target.tag());
        }
    }

    fn plan(&self, request: &request::Parts, response: &response::Parts, now: SystemTime) -> Option<Plan> {
        rules::plan(request, response, now, !self.is_private, self.keeps_stale)
    }

    /// The options of the insertion of a response.
    fn options(&self, target: &Target, head: &Head, lifetime: Duration) -> InsertOptions {
        let mut options = InsertOptions::ttl(lifetime).tag(target.tag());
        if let Some(name) = &self.tag_header {
            let lines = head.headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
            let tags = lines
                .flat_map(|line| line.split([',', ' ']))
                .filter(|tag| !tag.is_empty());
            options = tags.take(MAX_TAGS).fold(options, |options, tag| options.tag(tag));
        }
        options
    }

    /// Reads a response as far as it is to be stored.
    async fn read<Received: Body<Data = Bytes> + Unpin>(
        &self,
        asked: &request::Parts,
        response: Response<Received>,
    ) -> Fetched<Received> {
        let (mut head, body) = response.into_parts();
        let now = self.now();
        let Some(plan) = self.plan(asked, &head, now) else {
            return Fetched {
                response: Response::from_parts(head, CacheBody::passed(body)),
                stored: None,
            };
        };
        match body::read(body, self.max_body_bytes).await {
            Read::Passed(body) => Fetched {
                response: Response::from_parts(head, body),
                stored: None,
            },
            Read::Whole(body) => {
                rules::remove_hop_by_hop(&mut head.headers);
                let stored = Stored {
                    head: Head {
                        policy: plan.policy.clone(),
                        status: head.status,
                        headers: head.headers.clone(),
                        fresh_until: now + plan.fresh,
                    },
                    body: body.clone(),
                };
                Fetched {
                    response: Response::from_parts(head, CacheBody::whole(body)),
                    stored: Some((stored, plan)),
                }
            }
        }
    }

    /// Stores what is to be stored, and returns the response.
    fn keep<Received: Body<Data = Bytes>>(
        &self,
        target: &Target,
        asked: &request::Parts,
        fetched: Fetched<Received>,
        fwd: &str,
    ) -> Response<CacheBody<Received>> {
        let is_stored = fetched
            .stored
            .is_some_and(|(stored, plan)| self.store(target, asked, &stored, &plan));
        match is_stored {
            true => with_status(fetched.response, &format!("{fwd}; stored")),
            false => with_status(fetched.response, fwd),
        }
    }

    /// Stores a response, and the names by which its variants are found.
    fn store(&self, target: &Target, asked: &request::Parts, stored: &Stored, plan: &Plan) -> bool {
        let Some(value) = stored.encode() else { return false };
        let options = self.options(target, &stored.head, plan.lifetime);
        let names: Vec<&str> = plan.names.iter().map(HeaderName::as_str).collect();
        let key = target.key(&plan.names, &asked.headers);
        let named = match names.is_empty() {
            true => self.cache.invalidate(&target.key_of_names()),
            false => self
                .cache
                .insert_entry(&target.key_of_names(), &names.join(","), options),
        };
        named
            .and_then(|()| self.cache.insert_entry(&key, &value, options))
            .is_ok()
    }

    /// Stores a response again that was validated.
    fn renew(&self, target: &Target, key: &[u8], asked: &request::Parts, stored: &mut Stored, now: SystemTime) {
        let mut response = Response::new(());
        *response.status_mut() = stored.head.status;
        *response.headers_mut() = stored.head.headers.clone();
        match self.plan(asked, &response.into_parts().0, now) {
            Some(plan) => {
                stored.head.policy = plan.policy.clone();
                stored.head.fresh_until = now + plan.fresh;
                self.store(target, asked, stored, &plan);
            }
            None => _ = self.cache.invalidate(key),
        }
    }
}

impl Stored {
    /// Returns the stored response, or `304 Not Modified` if the request's sender has it.
    fn respond<Received: Body<Data = Bytes>>(
        &self,
        request: &request::Parts,
        now: SystemTime,
    ) -> Response<CacheBody<Received>> {
        let head = &self.head;
        let is_known = head.status == StatusCode::OK && rules::is_known(&request.headers, &head.headers);
        let mut response = match is_known {
            true => {
                let mut response = Response::new(CacheBody::whole(Bytes::new()));
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                *response.headers_mut() = rules::of_not_modified(&head.headers);
                response
            }
            false => {
                let mut response = Response::new(CacheBody::whole(self.body.clone()));
                *response.status_mut() = head.status;
                *response.headers_mut() = head.headers.clone();
                response.headers_mut().insert(CONTENT_LENGTH, self.body.len().into());
                response
            }
        };
        response
            .headers_mut()
            .insert(AGE, head.policy.age(now).as_secs().into());
        let ttl = match head.fresh_until.duration_since(now) {
            Ok(left) => left.as_secs().to_string(),
            Err(since) => format!("-{}", since.duration().as_secs()),
        };
        with_status(response, &format!("hit; ttl={ttl}"))
    }
}

/// Adds the `Cache-Status` of this cache (RFC 9211), behind those of caches nearer to the origin.
fn with_status<B>(mut response: Response<B>, status: &str) -> Response<B> {
    let before = response
        .headers()
        .get(CACHE_STATUS)
        .and_then(|before| before.to_str().ok());
    // What this cache said of the stored response is outdated.
    let before = before.filter(|before| !before.starts_with("leafpress; hit"));
    let status = match before {
        Some(before) => format!("{before}, leafpress; {status}"),
        None => format!("leafpress; {status}"),
    };
    if let Ok(status) = HeaderValue::try_from(status) {
        response.headers_mut().insert(CACHE_STATUS, status);
    }
    response
}

fn without_body<B: Body<Data = Bytes>>(status: StatusCode, fwd: &str) -> Response<CacheBody<B>> {
    let mut response = Response::new(CacheBody::whole(Bytes::new()));
    *response.status_mut() = status;
    with_status(response, fwd)
}
