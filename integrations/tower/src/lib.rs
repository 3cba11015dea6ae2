//! An HTTP response cache as a [tower] layer: RFC 9111 on a [`leafpress::Cache`], compressed, in memory and on disk.
//!
//! The layer answers `GET` and `HEAD` requests from stored responses to `GET` while they are fresh, validates stale
//! ones by `ETag` or `Last-Modified`, keeps the variants that `Vary` names apart, and answers conditional requests by
//! `304 Not Modified`. Requests for a response that is being fetched or validated wait for it. A request with an unsafe
//! method (`POST`, `PUT`, `DELETE`, `PATCH`) removes the responses of its target, unless its answer is an error; so
//! does an answer to `HEAD` that shows a stored response to be outdated. What a response allows is done:
//! `stale-while-revalidate` in a task, `stale-if-error`. Each response says in `Cache-Status` (RFC 9211) what was done.
//!
//! ```
//! use axum::{Router, http::header::CACHE_CONTROL, routing::get};
//! use leafpress_tower::CacheLayer;
//!
//! let cache = leafpress::Cache::builder().memory(64 << 20).build()?;
//! let page = || async { ([(CACHE_CONTROL, "max-age=60, stale-while-revalidate=600")], "<html>") };
//! let app: Router = Router::new().route("/", get(page)).layer(CacheLayer::new(cache));
//! # Ok::<(), leafpress::CacheError>(())
//! ```
//!
//! # Limits
//! Requests other than `GET` and `HEAD`, those with a body, `Range`, `If-Match` or `If-Unmodified-Since`, and targets
//! over 900 bytes pass the layer; so do requests that have passed another one. `max-stale` of a request is ignored.
//! Bodies are collected before they are sent on, up to [`CacheLayer::max_body_bytes`]; longer ones and those with
//! trailers are passed on and not stored. Responses that set cookies are stored in a shared cache only if they are
//! `public`. Of a request its target is stored, and hashes of the headers that choose among responses. With `s-maxage`
//! a shared cache must validate what is stale, so `stale-while-revalidate` has no effect. Requests with credentials,
//! `no-store`, `no-cache`, `max-age` or `min-fresh` are sent one by one, as are those that validate a response which is
//! never fresh.
//!
//! [tower]: https://docs.rs/tower

mod body;
mod headers;
mod key;
mod layer;
mod response;
mod rules;
mod service;
mod shared;
mod stored;
mod variants;

pub use body::CacheBody;
pub use layer::CacheLayer;
pub use service::CacheService;
