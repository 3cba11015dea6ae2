//! The layer and its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderName;
use leafpress::Cache;
use leafpress::cache::{Clock, SystemClock};
use tower_layer::Layer;

use crate::service::CacheService;
use crate::shared::Shared;

/// A [tower layer](Layer) that caches HTTP responses in a [`Cache`].
///
/// The cache may be used for other records too: the layer's keys begin with `http:`. Clones share the cache.
///
/// ```
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use leafpress_tower::CacheLayer;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
/// let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
/// let backend = service_fn(|_: Request<()>| async {
///     let response = Response::builder().header("cache-control", "max-age=60");
///     response.body(Full::new(bytes::Bytes::from("hello")))
/// });
/// let service = CacheLayer::new(cache).layer(backend);
/// let request = || Request::get("http://example.com/").body(()).expect("a request");
/// let first = service.clone().oneshot(request()).await.expect("a response");
/// assert_eq!(first.headers()["cache-status"], "leafpress; fwd=miss; stored");
/// let second = service.oneshot(request()).await.expect("a response");
/// let status = second.headers()["cache-status"].to_str().unwrap_or_default();
/// assert!(status.starts_with("leafpress; hit; ttl="));
/// # Ok::<(), leafpress::CacheError>(())
/// # }).expect("a cache");
/// ```
#[derive(Clone)]
pub struct CacheLayer {
    shared: Arc<Shared>,
}

impl fmt::Debug for CacheLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheLayer")
            .field("is_private", &self.shared.is_private)
            .field("max_body_bytes", &self.shared.max_body_bytes)
            .field("keeps_stale", &self.shared.keeps_stale)
            .field("tag_header", &self.shared.tag_header)
            .finish_non_exhaustive()
    }
}

impl CacheLayer {
    /// Returns a layer that stores responses in `cache`: as a shared cache, bodies up to 1 MiB, stale responses that
    /// can be validated for an hour.
    #[must_use]
    pub fn new(cache: Cache) -> Self {
        Self {
            shared: Arc::new(Shared {
                cache,
                clock: Arc::new(SystemClock::default()),
                is_private: false,
                max_body_bytes: 1 << 20,
                keeps_stale: Duration::from_secs(3600),
                tag_header: None,
                namespace: Vec::new(),
                validating: Arc::default(),
            }),
        }
    }

    /// Makes it the cache of one user, for clients: it stores responses that are `private` or to requests with
    /// credentials, and ignores `s-maxage`.
    #[must_use]
    pub fn private(self) -> Self {
        self.with(|shared| shared.is_private = true)
    }

    /// Sets the length of the longest body that is stored, in bytes. Default 1 MiB. Bodies up to this length are
    /// collected in memory before they are sent on.
    #[must_use]
    pub fn max_body_bytes(self, bytes: usize) -> Self {
        self.with(|shared| shared.max_body_bytes = bytes)
    }

    /// Sets how long a response with an `ETag` or `Last-Modified` is kept after it has become stale, to be validated.
    /// Default one hour.
    #[must_use]
    pub fn keep_stale(self, time: Duration) -> Self {
        self.with(|shared| shared.keeps_stale = time)
    }

    /// Names the header of responses that has their tags, separated by commas or spaces, as `Cache-Tag` or
    /// `Surrogate-Key`: [`Cache::invalidate_tag`] removes all responses with a tag. The first seven are used. The
    /// header is sent on.
    #[must_use]
    pub fn tag_header(self, name: HeaderName) -> Self {
        self.with(|shared| shared.tag_header = Some(name))
    }

    /// Sets a prefix of the layer's keys, of up to 100 bytes. Layers with one cache need different ones if their
    /// services answer the same targets differently: each router that is nested in another (`axum::Router::nest`) sees
    /// targets without the prefix of its routes.
    #[must_use]
    pub fn namespace(self, name: impl AsRef<[u8]>) -> Self {
        self.with(|shared| shared.namespace = name.as_ref().to_vec())
    }

    /// Sets the clock by which responses age, for tests. It should be that of the cache.
    #[must_use]
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.with(|shared| shared.clock = clock)
    }

    fn with(self, set: impl FnOnce(&mut Shared)) -> Self {
        let old = &self.shared;
        let mut shared = Shared {
            cache: old.cache.clone(),
            clock: Arc::clone(&old.clock),
            tag_header: old.tag_header.clone(),
            namespace: old.namespace.clone(),
            validating: Arc::clone(&old.validating),
            ..*old.as_ref()
        };
        set(&mut shared);
        Self {
            shared: Arc::new(shared),
        }
    }
}

impl<S> Layer<S> for CacheLayer {
    type Service = CacheService<S>;

    fn layer(&self, inner: S) -> CacheService<S> {
        CacheService {
            inner,
            shared: Arc::clone(&self.shared),
        }
    }
}
