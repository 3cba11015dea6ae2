//! Headers of the responses that the layer makes: `Cache-Status`, and those of a `304 Not Modified` and when it is due.

use http::HeaderMap;
use http::header::{
    CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    VARY,
};

/// What a cache did for a response (RFC 9211).
pub(crate) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Returns true if a request's conditions say that its sender has the stored response (RFC 9110, 13.1.2 and 13.1.3).
pub(crate) fn is_known(request: &HeaderMap, stored: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let etag = stored.get(ETAG).and_then(|etag| etag.to_str().ok()).map(weak);
        let known = request
            .get_all(IF_NONE_MATCH)
            .iter()
            .filter_map(|line| line.to_str().ok());
        let mut known = known.flat_map(|line| line.split(',').map(|etag| weak(etag.trim())));
        return known.any(|known| known == "*" || Some(known) == etag);
    }
    // The date that the response itself gave: others need no parsing, they are answered in full.
    let since = request.get(IF_MODIFIED_SINCE);
    since.is_some() && since == stored.get(LAST_MODIFIED)
}

fn weak(etag: &str) -> &str {
    etag.strip_prefix("W/").unwrap_or(etag)
}

/// Leaves the headers that a `304 Not Modified` has (RFC 9110, 15.4.5).
pub(crate) fn of_not_modified(headers: &HeaderMap) -> HeaderMap {
    let kept = [
        CACHE_CONTROL,
        CONTENT_LOCATION,
        DATE,
        ETAG,
        EXPIRES,
        VARY,
        LAST_MODIFIED,
    ];
    let kept = headers.iter().filter(|(name, _)| kept.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}
