//! Responses that the layer makes or marks.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body;

use crate::body::CacheBody;
use crate::headers::{self, CACHE_STATUS};

/// Adds the `Cache-Status` of this cache (RFC 9211), behind those of caches nearer to the origin.
pub(crate) fn with_status<B>(mut response: Response<B>, status: &str) -> Response<B> {
    if let Ok(status) = HeaderValue::try_from(format!("leafpress; {status}")) {
        response.headers_mut().append(CACHE_STATUS, status);
    }
    response
}

/// Returns a `304 Not Modified` for a response with these headers.
pub(crate) fn not_modified<B: Body<Data = Bytes>>(headers: &HeaderMap, status: &str) -> Response<CacheBody<B>> {
    let mut response = without_body(StatusCode::NOT_MODIFIED, status);
    response.headers_mut().extend(headers::of_not_modified(headers));
    response
}

/// Returns a response of this status without a body.
pub(crate) fn without_body<B: Body<Data = Bytes>>(status: StatusCode, did: &str) -> Response<CacheBody<B>> {
    let mut response = Response::new(CacheBody::whole(Bytes::new()));
    *response.status_mut() = status;
    with_status(response, did)
}
