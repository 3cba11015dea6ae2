//! The service: what is done with a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{AGE, CONTENT_LENGTH, HeaderName, SET_COOKIE};
use http::{HeaderValue, Method, Request, Response, StatusCode, request, response};
use http_body::Body;
use http_cache_semantics::BeforeRequest;
use leafpress::cache::{CacheUpdate, InsertOptions, LoadError, Moment};
use tower_service::Service;

use crate::body::{self, CacheBody, Read};
use crate::key::Target;
use crate::rules::{self, CACHE_STATUS, MAX_LIFETIME, Plan};
use crate::shared::{Shared, Validation};
use crate::stored::{Head, Stored};

/// How long requests for a response that cannot be stored do not wait for one another.
const NOT_STORED_FOR: Duration = Duration::from_secs(10);
/// Tags of a record that the tag header gives; one more is its target.
const MAX_TAGS: usize = 7;

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
        let exchange = Exchange {
            shared: Arc::clone(&self.shared),
            inner,
            began: self.shared.cache.moment(),
            head,
            body,
        };
        Box::pin(exchange.answer())
    }
}

type Answer<Received, Error> = Result<Response<CacheBody<Received>>, Error>;

/// Marks a request that a layer has seen. Another one on its way would wait for the load that the first one leads.
#[derive(Clone)]
struct IsCached;

/// A request that is handled, and the service that may be called for it once.
struct Exchange<S, Sent> {
    shared: Arc<Shared>,
    inner: S,
    head: request::Parts,
    body: Sent,
    /// The moment before the service was called.
    began: Moment,
}

/// What a response is stored for.
struct Wanted<'a> {
    target: &'a Target,
    /// The request, as its sender made it.
    head: &'a request::Parts,
    began: Moment,
    /// The time when the service was called.
    requested_at: SystemTime,
}

/// A response of the service, and how it is stored if it is.
struct Fetched<Received: Body> {
    response: Response<CacheBody<Received>>,
    stored: Option<(Stored, Plan)>,
}

/// The loader's result for the requests that wait for it, if its response is not for them.
struct NotShared;

/// The result of a fetch for all requests for a response.
enum ForAll<Received: Body, S, Sent, Error> {
    Answered(Answer<Received, Error>),
    /// Another request fetched a response that is not for this one.
    NotForThis(Exchange<S, Sent>),
}

impl<S, Sent, Received> Exchange<S, Sent>
where
    S: Service<Request<Sent>, Response = Response<Received>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    Sent: Send + 'static,
    Received: Body<Data = Bytes> + Unpin + Send + 'static,
    Received::Error: Send,
{
    async fn answer(mut self) -> Answer<Received, S::Error> {
        if self.head.extensions.insert(IsCached).is_some() {
            let response = self.inner.call(Request::from_parts(self.head, self.body)).await?;
            return Ok(response.map(CacheBody::passed));
        }
        let target = Target::of(&self.head, &self.shared.namespace);
        let Some(target) = target.filter(|_| !rules::is_passed(&self.head)) else {
            let fwd = if self.head.method == Method::GET {
                "fwd=bypass"
            } else {
                "fwd=method"
            };
            return self.pass(fwd).await;
        };
        let now = self.shared.now();
        let names = self.shared.names(&target).await;
        let key = target.key(&names, &self.head.headers);
        let found = self.shared.find(&key).await;
        let mut fwd = "fwd=miss";
        if let Found::Stored(stored) = &found {
            let deciding = rules::deciding(&self.head, &names);
            match stored.head.policy.before_request(&deciding, now) {
                BeforeRequest::Fresh(_) => return Ok(stored.respond(&self.head, now, None)),
                // The response to `HEAD` has no body that could replace the stale one.
                BeforeRequest::Stale { matches: true, .. } if self.head.method == Method::HEAD => fwd = "fwd=stale",
                BeforeRequest::Stale { matches: true, .. } => {
                    let stored = stored.as_ref().clone();
                    return self.with_stale(target, key, stored, now).await;
                }
                BeforeRequest::Stale { matches: false, .. } => {}
            }
        }
        if rules::is_only_if_cached(&self.head.headers) {
            return Ok(without_body(StatusCode::GATEWAY_TIMEOUT, fwd));
        }
        match found {
            _ if self.head.method == Method::HEAD => self.pass(fwd).await,
            Found::Nothing if rules::may_share(&self.head.headers) => self.fetch_for_all(&target, names).await,
            _ => self.fetch_alone(&target, fwd).await,
        }
    }

    /// Calls the service for a request whose response is not stored.
    async fn pass(mut self, fwd: &str) -> Answer<Received, S::Error> {
        // Also if the service fails, or the sender leaves: the change may have been made.
        let mut change = Change {
            target: Target::of(&self.head, &self.shared.namespace).filter(|_| !self.head.method.is_safe()),
            shared: Arc::clone(&self.shared),
        };
        let response = self.inner.call(Request::from_parts(self.head, self.body)).await?;
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            change.target = None;
        }
        drop(change);
        Ok(with_status(response.map(CacheBody::passed), fwd))
    }

    /// Answers by a stale response: at once while a task validates it, or after its validation.
    async fn with_stale(
        self,
        target: Target,
        key: Vec<u8>,
        stored: Stored,
        now: SystemTime,
    ) -> Answer<Received, S::Error> {
        let takes_stale = !rules::wants_validation(&self.head.headers)
            && rules::may_be_stale(&stored.head, now, "stale-while-revalidate", !self.shared.is_private);
        let runtime = tokio::runtime::Handle::try_current().ok();
        let Some(runtime) = runtime.filter(|_| takes_stale) else {
            if rules::is_only_if_cached(&self.head.headers) {
                return Ok(without_body(StatusCode::GATEWAY_TIMEOUT, "fwd=stale"));
            }
            return self.validate_for_all(&target, &key, stored, None).await;
        };
        let response = stored.respond(&self.head, now, None);
        if let Some(validation) = self.shared.begin_validation(&key) {
            runtime.spawn(async move {
                let validated = self.validate_for_all(&target, &key, stored, Some(validation));
                validated.await.map(drop)
            });
        }
        Ok(response)
    }

    /// Like [`Exchange::validate`], for all requests that find the stale response at once.
    async fn validate_for_all(
        self,
        target: &Target,
        key: &[u8],
        stored: Stored,
        validation: Option<Validation>,
    ) -> Answer<Received, S::Error> {
        // Others would wait in vain for a response that is fresh for nobody.
        if !rules::may_share(&self.head.headers) || rules::is_never_fresh(&stored.head) {
            return self.validate(target, key, stored, validation).await;
        }
        let (shared, head) = (Arc::clone(&self.shared), self.head.clone());
        let (mut exchange, mut own) = (Some((self, validation)), None);
        // What is loaded is stored under the response's own key, and nothing under this one.
        let load = async {
            // Another request may have validated the response since.
            if !shared.has_fresh(target, &head).await
                && let Some((this, validation)) = exchange.take()
            {
                own = Some(this.validate(target, key, stored.clone(), validation).await);
            }
            Err::<(Vec<u8>, InsertOptions), _>(NotShared)
        };
        let loaded = shared.cache.get_or_fetch_entry(&[key, b"\nstale"].concat(), load).await;
        if let Some(own) = own {
            return own;
        }
        if let (Err(LoadError::Load(_)), Some((found, is_fresh))) = (loaded, shared.current(target, &head).await) {
            let now = shared.now();
            if is_fresh {
                return Ok(found.respond(&head, now, Some("fwd=stale; collapsed")));
            }
            // A validation that leaves the response as it was has failed.
            let is_as_it_was = found.head.fresh_until == stored.head.fresh_until;
            if is_as_it_was && rules::may_be_stale(&found.head, now, "stale-if-error", !shared.is_private) {
                return Ok(found.respond(&head, now, None));
            }
        }
        match exchange {
            Some((this, validation)) => this.validate(target, key, stored, validation).await,
            // Does not happen: a loader that has run has left its response.
            None => Ok(without_body(StatusCode::INTERNAL_SERVER_ERROR, "fwd=stale")),
        }
    }

    /// Validates a stored response with the service. `validation` ends with it.
    async fn validate(
        mut self,
        target: &Target,
        key: &[u8],
        stored: Stored,
        validation: Option<Validation>,
    ) -> Answer<Received, S::Error> {
        let (original, began) = (self.head.clone(), self.began);
        let shared = self.shared;
        let wanted = Wanted {
            target,
            head: &original,
            began,
            requested_at: shared.now(),
        };
        let is_conditional = rules::make_conditional(&mut self.head.headers, &stored.head.headers);
        let result = self.inner.call(Request::from_parts(self.head, self.body)).await;
        let now = shared.now();
        let serves_stale = rules::may_be_stale(&stored.head, now, "stale-if-error", !shared.is_private);
        let answer = match result {
            Err(_) if serves_stale => Ok(stored.respond(&original, now, None)),
            Err(error) => Err(error),
            Ok(response) if serves_stale && response.status().is_server_error() => {
                Ok(stored.respond(&original, now, None))
            }
            Ok(response) if is_conditional && response.status() == StatusCode::NOT_MODIFIED => {
                Ok(shared.renewed(&wanted, key, stored, response.into_parts().0, now))
            }
            Ok(response) => {
                let is_error = response.status().is_server_error();
                let fetched = shared.read(&wanted, response).await;
                if fetched.stored.is_none() && !is_error {
                    // It is replaced by one that may not be stored.
                    let _ = shared.cache.invalidate(key);
                }
                Ok(shared.keep(&wanted, fetched, "fwd=stale"))
            }
        };
        drop(validation);
        answer
    }

    /// Calls the service, and stores the response if it may be.
    async fn fetch_alone(mut self, target: &Target, fwd: &str) -> Answer<Received, S::Error> {
        let (original, began) = (self.head.clone(), self.began);
        let wanted = Wanted {
            target,
            head: &original,
            began,
            requested_at: self.shared.now(),
        };
        let response = self.inner.call(Request::from_parts(self.head, self.body)).await?;
        let fetched = self.shared.read(&wanted, response).await;
        Ok(self.shared.keep(&wanted, fetched, fwd))
    }

    /// Like [`Exchange::fetch_alone`], for all requests for the response at once.
    async fn fetch_for_all(self, target: &Target, mut names: Vec<HeaderName>) -> Answer<Received, S::Error> {
        let mut exchange = self;
        // Once more when the names are known.
        for _ in 0..2 {
            match exchange.try_for_all(target, &names).await {
                ForAll::Answered(answer) => return answer,
                ForAll::NotForThis(this) => exchange = this,
            }
            // The first response to a target determines the headers by which its variants are chosen.
            let known = exchange.shared.names(target).await;
            if known == names {
                break;
            }
            names = known;
        }
        exchange.fetch_alone(target, "fwd=miss").await
    }

    async fn try_for_all(self, target: &Target, names: &[HeaderName]) -> ForAll<Received, S, Sent, S::Error> {
        let key = target.key(names, &self.head.headers);
        let shared = Arc::clone(&self.shared);
        let head = self.head.clone();
        let (mut exchange, mut own) = (Some(self), None);
        let load = async {
            // Another request may have stored the response under other names since.
            if shared.names(target).await != names {
                return Err(NotShared);
            }
            let Some(mut this) = exchange.take() else {
                return Err(NotShared);
            };
            let (shared, head, began) = (this.shared, this.head.clone(), this.began);
            let wanted = Wanted {
                target,
                head: &head,
                began,
                requested_at: shared.now(),
            };
            // The response is for others too.
            rules::make_unconditional(&mut this.head.headers);
            let response = match this.inner.call(Request::from_parts(this.head, this.body)).await {
                Ok(response) => response,
                Err(error) => {
                    own = Some(Err(error));
                    return Err(NotShared);
                }
            };
            let fetched = shared.read(&wanted, response).await;
            match &fetched.stored {
                Some((stored, plan)) if plan.names == names => {
                    let options = shared.options(&wanted, &stored.head, plan.lifetime);
                    own = Some(Ok(stored.respond(&head, shared.now(), Some("fwd=miss; stored"))));
                    stored.encode().map(|value| (value, options)).ok_or(NotShared)
                }
                Some((stored, _)) => {
                    let response = stored.respond(&head, shared.now(), Some("fwd=miss; stored"));
                    shared.keep(&wanted, fetched, "fwd=miss");
                    own = Some(Ok(response));
                    Err(NotShared)
                }
                None => {
                    shared.mark_not_stored(&key);
                    let response = fetched.response;
                    let is_known =
                        response.status() == StatusCode::OK && rules::is_known(&head.headers, response.headers());
                    own = Some(Ok(match is_known {
                        true => not_modified(response.headers(), "fwd=miss"),
                        false => with_status(response, "fwd=miss"),
                    }));
                    Err(NotShared)
                }
            }
        };
        let loaded = shared.cache.get_or_fetch_entry(&key, load).await;
        if let Some(own) = own {
            return ForAll::Answered(own);
        }
        let now = shared.now();
        let stored = loaded.ok().and_then(Stored::decode).filter(|stored| {
            let before = stored.head.policy.before_request(&rules::deciding(&head, names), now);
            matches!(before, BeforeRequest::Fresh(_))
        });
        match (stored, exchange) {
            (Some(stored), _) => ForAll::Answered(Ok(stored.respond(&head, now, Some("fwd=miss; collapsed")))),
            (None, Some(this)) => ForAll::NotForThis(this),
            // Does not happen: a loader that has run has left its response.
            (None, None) => ForAll::Answered(Ok(without_body(StatusCode::INTERNAL_SERVER_ERROR, "fwd=miss"))),
        }
    }
}

/// A request that may change its target: when it ends, all stored responses of the target are removed.
struct Change {
    target: Option<Target>,
    shared: Arc<Shared>,
}

impl Drop for Change {
    fn drop(&mut self) {
        if let Some(target) = &self.target {
            let _ = self.shared.cache.invalidate_tag(target.tag());
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
    /// Returns the known names of the headers that choose among the variants of a resource.
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

    /// Returns the stored response that a request chooses, and whether it is fresh.
    async fn current(&self, target: &Target, request: &request::Parts) -> Option<(Box<Stored>, bool)> {
        let names = self.names(target).await;
        let Found::Stored(stored) = self.find(&target.key(&names, &request.headers)).await else {
            return None;
        };
        match stored
            .head
            .policy
            .before_request(&rules::deciding(request, &names), self.now())
        {
            BeforeRequest::Fresh(_) => Some((stored, true)),
            BeforeRequest::Stale { matches, .. } => matches.then_some((stored, false)),
        }
    }

    async fn has_fresh(&self, target: &Target, request: &request::Parts) -> bool {
        let current = self.current(target, request).await;
        current.is_some_and(|(_, is_fresh)| is_fresh)
    }

    fn mark_not_stored(&self, key: &[u8]) {
        let _ = self.cache.insert_entry(key, "", InsertOptions::ttl(NOT_STORED_FOR));
    }

    fn plan(&self, wanted: &Wanted<'_>, response: &response::Parts, now: SystemTime) -> Option<Plan> {
        rules::plan(
            wanted.head,
            response,
            wanted.requested_at,
            now,
            !self.is_private,
            self.keeps_stale,
        )
    }

    /// The options of the insertion of a response.
    fn options(&self, wanted: &Wanted<'_>, head: &Head, lifetime: Duration) -> InsertOptions {
        let mut options = InsertOptions::ttl(lifetime)
            .tag(wanted.target.tag())
            .since(wanted.began);
        if let Some(name) = &self.tag_header {
            let lines = head.headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
            let tags = lines
                .flat_map(|line| line.split([',', ' ']))
                .filter(|tag| !tag.is_empty());
            options = tags.take(MAX_TAGS).fold(options, |options, tag| options.tag(tag));
        }
        options
    }

    /// Reads a response if it is to be stored.
    async fn read<Received: Body<Data = Bytes> + Unpin>(
        &self,
        wanted: &Wanted<'_>,
        response: Response<Received>,
    ) -> Fetched<Received> {
        let (mut head, body) = response.into_parts();
        let now = self.now();
        let Some(plan) = self.plan(wanted, &head, now) else {
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
                let mut headers = head.headers.clone();
                headers.remove(CACHE_STATUS);
                let stored = Stored {
                    head: Head {
                        policy: plan.policy.clone(),
                        status: head.status,
                        headers,
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
        wanted: &Wanted<'_>,
        fetched: Fetched<Received>,
        fwd: &str,
    ) -> Response<CacheBody<Received>> {
        let is_stored = fetched
            .stored
            .is_some_and(|(stored, plan)| self.store(wanted, &stored, &plan));
        match is_stored {
            true => with_status(fetched.response, &format!("{fwd}; stored")),
            false => with_status(fetched.response, fwd),
        }
    }

    /// Stores a response, and the names by which its variants are found.
    fn store(&self, wanted: &Wanted<'_>, stored: &Stored, plan: &Plan) -> bool {
        let target = wanted.target;
        let Some(value) = stored.encode() else { return false };
        let options = self.options(wanted, &stored.head, plan.lifetime);
        let names: Vec<&str> = plan.names.iter().map(HeaderName::as_str).collect();
        let key = target.key(&plan.names, &wanted.head.headers);
        let named = match names.is_empty() {
            true => self.cache.invalidate(&target.key_of_names()),
            false => {
                // They outlive the variant: others are found by them.
                let mut options = options;
                options.ttl = Some(MAX_LIFETIME);
                self.cache
                    .insert_entry(&target.key_of_names(), &names.join(","), options)
            }
        };
        named
            .and_then(|()| self.cache.insert_entry(&key, &value, options))
            .is_ok()
    }

    /// Returns a stored response that is still valid, and stores it again as such.
    fn renewed<Received: Body<Data = Bytes>>(
        &self,
        wanted: &Wanted<'_>,
        key: &[u8],
        mut stored: Stored,
        fresh: response::Parts,
        now: SystemTime,
    ) -> Response<CacheBody<Received>> {
        let did = "fwd=stale; fwd-status=304";
        let cookies: Vec<HeaderValue> = fresh.headers.get_all(SET_COOKIE).iter().cloned().collect();
        if rules::is_of_another(&fresh.headers, &stored.head.headers) {
            // The service has another one, of which it did not send the body.
            let _ = self.cache.invalidate(key);
            return stored.respond(wanted.head, now, Some(did));
        }
        let was_fresh_until = stored.head.fresh_until;
        rules::update(&mut stored.head.headers, fresh.headers);
        let mut response = Response::new(());
        *response.status_mut() = stored.head.status;
        *response.headers_mut() = stored.head.headers.clone();
        match self.plan(wanted, &response.into_parts().0, now) {
            None => _ = self.cache.invalidate(key),
            Some(plan) => {
                stored.head.policy = plan.policy.clone();
                stored.head.fresh_until = now + plan.fresh;
                if wanted.target.key(&plan.names, &wanted.head.headers) != key {
                    self.store(wanted, &stored, &plan);
                } else if let Some(value) = stored.encode() {
                    let options = self.options(wanted, &stored.head, plan.lifetime);
                    // A response that another request has stored meanwhile is newer.
                    let _ = self.cache.update_with(key, |found| {
                        let found = found.and_then(|found| Stored::decode(found.to_vec()));
                        match found.is_some_and(|found| found.head.fresh_until == was_fresh_until) {
                            true => CacheUpdate::PutWith(value.as_slice(), options),
                            false => CacheUpdate::Keep,
                        }
                    });
                }
            }
        }
        let mut response = stored.respond(wanted.head, now, Some(did));
        for cookie in cookies {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
        response
    }
}

impl Stored {
    /// Returns the stored response, or `304 Not Modified` if the request's sender has it. `did` is what was done for
    /// it; [`None`] for a hit.
    fn respond<Received: Body<Data = Bytes>>(
        &self,
        request: &request::Parts,
        now: SystemTime,
        did: Option<&str>,
    ) -> Response<CacheBody<Received>> {
        let head = &self.head;
        let ttl = match head.fresh_until.duration_since(now) {
            Ok(left) => left.as_secs().to_string(),
            Err(since) => format!("-{}", since.duration().as_secs()),
        };
        let hit = format!("hit; ttl={ttl}");
        let did = did.unwrap_or(&hit);
        let is_known = head.status == StatusCode::OK && rules::is_known(&request.headers, &head.headers);
        let mut response = match is_known {
            true => not_modified(&head.headers, did),
            false => {
                let body = if request.method == Method::HEAD {
                    Bytes::new()
                } else {
                    self.body.clone()
                };
                let mut response = Response::new(CacheBody::whole(body));
                *response.status_mut() = head.status;
                *response.headers_mut() = head.headers.clone();
                if head.status != StatusCode::NO_CONTENT {
                    response.headers_mut().insert(CONTENT_LENGTH, self.body.len().into());
                }
                with_status(response, did)
            }
        };
        response
            .headers_mut()
            .insert(AGE, head.policy.age(now).as_secs().into());
        response
    }
}

/// Adds the `Cache-Status` of this cache (RFC 9211), behind those of caches nearer to the origin.
fn with_status<B>(mut response: Response<B>, status: &str) -> Response<B> {
    if let Ok(status) = HeaderValue::try_from(format!("leafpress; {status}")) {
        response.headers_mut().append(CACHE_STATUS, status);
    }
    response
}

/// Returns a `304 Not Modified` for a response with these headers.
fn not_modified<B: Body<Data = Bytes>>(headers: &http::HeaderMap, status: &str) -> Response<CacheBody<B>> {
    let mut response = without_body(StatusCode::NOT_MODIFIED, status);
    response.headers_mut().extend(rules::of_not_modified(headers));
    response
}

fn without_body<B: Body<Data = Bytes>>(status: StatusCode, did: &str) -> Response<CacheBody<B>> {
    let mut response = Response::new(CacheBody::whole(Bytes::new()));
    *response.status_mut() = status;
    with_status(response, did)
}
