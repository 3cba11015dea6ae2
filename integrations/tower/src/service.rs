//! The service: what is done with a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::header::HeaderName;
use http::{Method, Request, Response, StatusCode, request};
use http_body::Body;
use http_cache_semantics::BeforeRequest;
use leafpress::cache::{InsertOptions, LoadError, Moment};
use tower_service::Service;

use crate::body::CacheBody;
use crate::headers;
use crate::key::Target;
use crate::response::{not_modified, with_status, without_body};
use crate::rules;
use crate::shared::{Shared, Validation};
use crate::stored::Stored;
use crate::variants::{Found, Wanted};

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
            _ if self.head.method == Method::HEAD => {
                let shared = Arc::clone(&self.shared);
                let response = self.pass(fwd).await?;
                if let Found::Stored(stored) = found
                    && response.status() == stored.head.status
                    && rules::replaces(response.headers(), &stored)
                {
                    let _ = shared.cache.invalidate(&key);
                }
                Ok(response)
            }
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
                        response.status() == StatusCode::OK && headers::is_known(&head.headers, response.headers());
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
