//! What RFC 9111 (HTTP caching), RFC 5861 (stale content) and RFC 9110 (validators) say of requests and responses.
//!
//! Storing, age and freshness are decided by `http-cache-semantics`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, SystemTime};

use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HOST,
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LAST_MODIFIED, PRAGMA,
    RANGE, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, request, response};
use http_cache_semantics::{CacheOptions, CachePolicy};

use crate::headers::CACHE_STATUS;
use crate::key::{host, joined, path};
use crate::stored::{Head, Stored};

/// The longest time for which a stale response is kept because a header allows its use.
const MAX_STALE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest lifetime of a record.
pub(crate) const MAX_LIFETIME: Duration = Duration::from_secs(3650 * 24 * 3600);

/// Returns the value of a `Cache-Control` directive: `Some("")` for one without a value.
pub(crate) fn directive<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers
        .get_all(CACHE_CONTROL)
        .iter()
        .filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|part| {
        let (directive, value) = part.split_once('=').unwrap_or((part, ""));
        let is_it = directive.trim().eq_ignore_ascii_case(name);
        is_it.then_some(value.trim().trim_matches('"'))
    })
}

fn has(headers: &HeaderMap, names: &[&str]) -> bool {
    names.iter().any(|name| directive(headers, name).is_some())
}

/// Returns the names of the headers that choose among the variants of a response, in order; [`None`] for `*`.
pub(crate) fn varying(headers: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for line in headers.get_all(VARY) {
        for name in line
            .to_str()
            .ok()?
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            // `*` stands for more than headers.
            names.push(
                HeaderName::from_bytes(name.as_bytes())
                    .ok()
                    .filter(|name| name != "*")?,
            );
        }
    }
    names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    names.dedup();
    Some(names)
}

/// Returns what decides about the use of a response: of the headers only those that do. Since it is stored, those that
/// choose among variants, and credentials, are replaced by their hashes. The method is `GET`, because `HEAD` requests
/// are answered by the responses to it.
pub(crate) fn deciding(request: &request::Parts, names: &[HeaderName]) -> Request<()> {
    let mut deciding = Request::new(());
    if let Ok(uri) = path(request).parse() {
        *deciding.uri_mut() = uri;
    }
    let headers = deciding.headers_mut();
    for name in [AUTHORIZATION].iter().chain(names) {
        if let Some(value) = joined(&request.headers, name) {
            let mut hasher = DefaultHasher::new();
            value.hash(&mut hasher);
            headers.insert(name.clone(), hasher.finish().into());
        }
    }
    let control = joined(&request.headers, &CACHE_CONTROL).map(|control| {
        // No cache need serve what is stale; `http-cache-semantics` would do so even for `no-cache` responses.
        let control = String::from_utf8_lossy(&control).to_ascii_lowercase();
        let kept = control
            .split(',')
            .filter(|part| part.split('=').next().map(str::trim) != Some("max-stale"));
        kept.collect::<Vec<_>>().join(",").into_bytes()
    });
    let pragma = joined(&request.headers, &PRAGMA);
    for (name, value) in [(HOST, Some(host(request))), (CACHE_CONTROL, control), (PRAGMA, pragma)] {
        match value.map(|value| HeaderValue::from_bytes(&value)) {
            Some(Ok(value)) => headers.insert(name, value),
            _ => headers.remove(name),
        };
    }
    deciding
}

/// Returns true if this request may get the response to another one, and other requests the response to this one.
pub(crate) fn may_share(headers: &HeaderMap) -> bool {
    !headers.contains_key(AUTHORIZATION) && !has(headers, &["no-store"]) && !wants_validation(headers)
}

/// Returns true if a request's response depends on more than its target and its headers, or is a part.
pub(crate) fn is_passed(request: &request::Parts) -> bool {
    let headers = &request.headers;
    let length = headers.get(CONTENT_LENGTH);
    let has_body = headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0");
    let conditions = [RANGE, IF_RANGE, IF_MATCH, IF_UNMODIFIED_SINCE];
    let is_read = [Method::GET, Method::HEAD].contains(&request.method);
    !is_read || has_body || conditions.iter().any(|name| headers.contains_key(name))
}

/// Removes the conditions that a stored response can answer.
pub(crate) fn make_unconditional(headers: &mut HeaderMap) {
    headers.remove(IF_NONE_MATCH);
    headers.remove(IF_MODIFIED_SINCE);
}

/// Returns true if a request takes no stale response.
pub(crate) fn wants_validation(headers: &HeaderMap) -> bool {
    has(headers, &["no-cache", "max-age", "min-fresh"]) || headers.contains_key(PRAGMA)
}

pub(crate) fn is_only_if_cached(headers: &HeaderMap) -> bool {
    has(headers, &["only-if-cached"])
}

/// What is to be done with a response.
pub(crate) struct Plan {
    pub policy: CachePolicy,
    pub names: Vec<HeaderName>,
    pub fresh: Duration,
    /// How long its record lives: as long as the response may be used, also to be validated.
    pub lifetime: Duration,
}

/// Returns how a response is stored, or [`None`] if it is not. It was requested at `requested_at`, and arrived `now`.
pub(crate) fn plan(
    request: &request::Parts,
    response: &response::Parts,
    requested_at: SystemTime,
    now: SystemTime,
    is_shared: bool,
    keeps_stale: Duration,
) -> Option<Plan> {
    let headers = &response.headers;
    let names = varying(headers)?;
    let is_readable = headers.get_all(CACHE_CONTROL).iter().all(|line| line.to_str().is_ok());
    let options = CacheOptions {
        shared: is_shared,
        ..CacheOptions::default()
    };
    let mut decides = Response::new(());
    *decides.status_mut() = response.status;
    *decides.headers_mut() = headers.clone();
    let age = initial_age(headers, requested_at, now);
    decides.headers_mut().insert(AGE, age.as_secs().into());
    // Directives have no case; `http-cache-semantics` knows them in lower case.
    if let Some(control) = joined(headers, &CACHE_CONTROL) {
        let control = HeaderValue::from_bytes(&control.to_ascii_lowercase()).ok()?;
        decides.headers_mut().insert(CACHE_CONTROL, control);
    }
    let policy = CachePolicy::new_options(&deciding(request, &names), &decides, now, options);
    // What one user's response sets is not for others, unless it says so.
    let is_of_one_user = is_shared && headers.contains_key(SET_COOKIE) && directive(headers, "public").is_none();
    // `http-cache-semantics` takes directives that contradict each other for a permission.
    let is_authorized = is_shared
        && request.headers.contains_key(AUTHORIZATION)
        && !has(headers, &["public", "must-revalidate", "s-maxage"]);
    let is_part = response.status == StatusCode::PARTIAL_CONTENT;
    if !policy.is_storable() || !is_readable || is_part || is_of_one_user || is_authorized {
        return None;
    }
    let fresh = policy.time_to_live(now).min(MAX_LIFETIME);
    let can_be_validated = headers.contains_key(ETAG) || headers.contains_key(LAST_MODIFIED);
    let stale = [
        stale_time(headers, "stale-while-revalidate", is_shared),
        stale_time(headers, "stale-if-error", is_shared),
        if can_be_validated { keeps_stale } else { Duration::ZERO },
    ];
    let lifetime = fresh.saturating_add(stale.into_iter().max()?).min(MAX_LIFETIME);
    let is_kept = lifetime >= Duration::from_millis(1);
    is_kept.then_some(Plan {
        policy,
        names,
        fresh,
        lifetime,
    })
}

/// Returns the age of a response when it arrived (RFC 9111, 4.2.3), bounded so that it can be calculated with.
fn initial_age(headers: &HeaderMap, requested_at: SystemTime, now: SystemTime) -> Duration {
    let since = |time| now.duration_since(time).unwrap_or_default();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let age = text(AGE).unwrap_or_default().trim();
    // Too many digits are a great age (RFC 9111, 1.2.2), and what is not a number is ignored.
    let is_number = !age.is_empty() && age.bytes().all(|digit| digit.is_ascii_digit());
    let seconds = if is_number { age.parse().unwrap_or(u64::MAX) } else { 0 };
    let corrected = Duration::from_secs(seconds).saturating_add(since(requested_at));
    let date = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    date.map_or(Duration::ZERO, since).max(corrected).min(MAX_LIFETIME)
}

/// Returns how long a stale response may be used by `stale-while-revalidate` or `stale-if-error`.
fn stale_time(headers: &HeaderMap, name: &str, is_shared: bool) -> Duration {
    // These demand a validation.
    let of_shared = is_shared && has(headers, &["proxy-revalidate", "s-maxage"]);
    if of_shared || has(headers, &["no-cache", "must-revalidate"]) {
        return Duration::ZERO;
    }
    let seconds = directive(headers, name).and_then(|value| value.parse().ok());
    seconds.map_or(Duration::ZERO, Duration::from_secs).min(MAX_STALE)
}

/// Returns true if a stale response may be used now by `stale-while-revalidate` or `stale-if-error`.
pub(crate) fn may_be_stale(head: &Head, now: SystemTime, name: &str, is_shared: bool) -> bool {
    head.fresh_until + stale_time(&head.headers, name, is_shared) > now
}

/// Returns true if a response was stale already when it arrived.
pub(crate) fn is_never_fresh(head: &Head) -> bool {
    // Before its arrival a response has the age that it arrives with.
    head.policy.time_to_live(SystemTime::UNIX_EPOCH).is_zero()
}

/// Returns true if a `304 Not Modified` is about another response than the stored one (RFC 9111, 4.3.4).
pub(crate) fn is_of_another(fresh: &HeaderMap, stored: &HeaderMap) -> bool {
    let etag = |headers: &HeaderMap| {
        let etag = headers.get(ETAG)?.as_bytes();
        Some(etag.strip_prefix(b"W/").unwrap_or(etag).to_vec())
    };
    let fresh = etag(fresh);
    fresh.is_some() && fresh != etag(stored)
}

/// Returns true if the response to a `HEAD` request shows that the stored one is not current (RFC 9111, 4.3.5).
pub(crate) fn replaces(headers: &HeaderMap, stored: &Stored) -> bool {
    let len = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    is_of_another(headers, &stored.head.headers) || len.is_some_and(|len| len != stored.body.len())
}

/// Replaces the conditions of a request by the validators of a stored response; returns false if it has none.
pub(crate) fn make_conditional(request: &mut HeaderMap, stored: &HeaderMap) -> bool {
    let pairs = [(IF_NONE_MATCH, ETAG), (IF_MODIFIED_SINCE, LAST_MODIFIED)];
    let mut is_conditional = false;
    for (condition, validator) in pairs {
        request.remove(&condition);
        if let Some(value) = stored.get(validator) {
            request.insert(condition, value.clone());
            is_conditional = true;
        }
    }
    is_conditional
}

/// Removes the headers that belong to one connection (RFC 9111, 3.1).
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<_> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|line| line.to_str().ok().map(str::to_owned))
        .collect();
    for name in named.iter().flat_map(|line| line.split(',')) {
        headers.remove(name.trim());
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    for name in [
        "keep-alive",
        "proxy-connection",
        "proxy-authenticate",
        "proxy-authentication-info",
    ] {
        headers.remove(name);
    }
}

/// Updates stored headers by those of a `304 Not Modified` (RFC 9111, 3.2).
pub(crate) fn update(stored: &mut HeaderMap, mut fresh: HeaderMap) {
    remove_hop_by_hop(&mut fresh);
    // Cookies are the sender's alone.
    for name in [
        CONTENT_LENGTH,
        CONTENT_ENCODING,
        CONTENT_RANGE,
        SET_COOKIE,
        CACHE_STATUS,
    ] {
        fresh.remove(name);
    }
    // The age is that of the new response, also if that has no date.
    stored.remove(AGE);
    stored.remove(DATE);
    for name in fresh.keys() {
        stored.remove(name);
    }
    for (name, value) in &fresh {
        stored.append(name, value.clone());
    }
}
