//! What the services of a layer store and find: variants, their names and tags, and the renewal of a stored response.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{HeaderName, SET_COOKIE};
use http::{HeaderValue, Response, request, response};
use http_body::Body;
use http_cache_semantics::BeforeRequest;
use leafpress::cache::{CacheUpdate, InsertOptions, Moment};

use crate::body::{self, CacheBody, Read};
use crate::headers::CACHE_STATUS;
use crate::key::Target;
use crate::response::with_status;
use crate::rules::{self, MAX_LIFETIME, Plan};
use crate::shared::Shared;
use crate::stored::{Head, Stored};

/// How long requests for a response that cannot be stored do not wait for one another.
const NOT_STORED_FOR: Duration = Duration::from_secs(10);
/// Tags of a record that the tag header gives; one more is its target.
const MAX_TAGS: usize = 7;

/// What a response is stored for.
pub(crate) struct Wanted<'a> {
    pub target: &'a Target,
    /// The request, as its sender made it.
    pub head: &'a request::Parts,
    pub began: Moment,
    /// The time when the service was called.
    pub requested_at: SystemTime,
}

/// A response of the service, and how it is stored if it is.
pub(crate) struct Fetched<Received: Body> {
    pub response: Response<CacheBody<Received>>,
    pub stored: Option<(Stored, Plan)>,
}

/// What the cache has for a key.
pub(crate) enum Found {
    Stored(Box<Stored>),
    /// The response cannot be stored.
    NotStored,
    Nothing,
}

impl Shared {
    /// Returns the known names of the headers that choose among the variants of a resource.
    pub(crate) async fn names(&self, target: &Target) -> Vec<HeaderName> {
        let names = self.cache.get_async(&target.key_of_names()).await.ok().flatten();
        let names = names.unwrap_or_default();
        let names = names.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        names.filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
    }

    pub(crate) async fn find(&self, key: &[u8]) -> Found {
        match self.cache.get_async(key).await {
            Ok(Some(value)) => Stored::decode(value).map_or(Found::NotStored, |stored| Found::Stored(Box::new(stored))),
            // A cache that fails has nothing.
            Ok(None) | Err(_) => Found::Nothing,
        }
    }

    /// Returns the stored response that a request chooses, and whether it is fresh.
    pub(crate) async fn current(&self, target: &Target, request: &request::Parts) -> Option<(Box<Stored>, bool)> {
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

    pub(crate) async fn has_fresh(&self, target: &Target, request: &request::Parts) -> bool {
        let current = self.current(target, request).await;
        current.is_some_and(|(_, is_fresh)| is_fresh)
    }

    pub(crate) fn mark_not_stored(&self, key: &[u8]) {
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
    pub(crate) fn options(&self, wanted: &Wanted<'_>, head: &Head, lifetime: Duration) -> InsertOptions {
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
    pub(crate) async fn read<Received: Body<Data = Bytes> + Unpin>(
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
    pub(crate) fn keep<Received: Body<Data = Bytes>>(
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
    pub(crate) fn renewed<Received: Body<Data = Bytes>>(
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
