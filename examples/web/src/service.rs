//! What is answered to whom.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use leafpress::Cache;
use leafpress::cache::{CacheError, LoadError, MAX_KEY_BYTES};
use metrics_exporter_prometheus::PrometheusHandle;

use crate::backend::{Backend, NoSuchObject};

/// What the handlers share.
#[derive(Clone)]
pub struct Service {
    pub cache: Cache,
    pub backend: Arc<Backend>,
    pub metrics: PrometheusHandle,
}

impl Service {
    pub fn router(self) -> Router {
        Router::new()
            .route("/object/{key}", get(read).put(write).delete(remove))
            .route("/metrics", get(metrics))
            .route("/stats", get(stats))
            .with_state(self)
    }
}

/// Why a request was not done.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, self.1 + "\n").into_response()
    }
}

impl From<CacheError> for Refused {
    fn from(error: CacheError) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

impl From<LoadError<NoSuchObject>> for Refused {
    fn from(error: LoadError<NoSuchObject>) -> Self {
        match error {
            // Not kept: the next request queries the backend again.
            LoadError::Load(none) => Self(StatusCode::NOT_FOUND, none.to_string()),
            LoadError::Cache(error) => error.into(),
        }
    }
}

/// Returns a key that the cache takes.
fn checked(key: String) -> Result<String, Refused> {
    if key.len() <= MAX_KEY_BYTES {
        return Ok(key);
    }
    let reason = format!("keys are {MAX_KEY_BYTES} bytes long at most");
    Err(Refused(StatusCode::URI_TOO_LONG, reason))
}

/// However many ask for a key that is not there, the backend is asked once.
///
/// A hit in memory waits for nothing. A hit on disk is read by a thread of the cache, so that other requests go on.
async fn read(State(service): State<Service>, Path(key): Path<String>) -> Result<Bytes, Refused> {
    let key = checked(key)?;
    let load = service.backend.load(&key);
    Ok(service.cache.get_or_fetch_bytes(&key, load).await?)
}

/// Writes to the backend first, then removes the key from the cache: with two concurrent writers the cache could
/// otherwise keep one value and the backend the other. A load in progress is not kept either.
async fn write(State(service): State<Service>, Path(key): Path<String>, value: Bytes) -> Result<StatusCode, Refused> {
    let key = checked(key)?;
    service.backend.store(&key, Some(value.to_vec())).await;
    service.cache.remove(&key)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove(State(service): State<Service>, Path(key): Path<String>) -> Result<StatusCode, Refused> {
    let key = checked(key)?;
    service.backend.store(&key, None).await;
    service.cache.remove(&key)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Runs what visits every leaf where it keeps no other request waiting.
async fn aside<R: Send + 'static>(what: impl FnOnce() -> R + Send + 'static) -> Result<R, Refused> {
    let done = tokio::task::spawn_blocking(what).await;
    done.map_err(|error| Refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

async fn metrics(State(service): State<Service>) -> Result<impl IntoResponse, Refused> {
    let page = aside(move || {
        service.cache.publish_metrics();
        service.metrics.render()
    });
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], page.await?))
}

async fn stats(State(service): State<Service>) -> Result<impl IntoResponse, Refused> {
    let loads = service.backend.loads();
    let stats = aside(move || service.cache.stats()).await?;
    let disk = stats.disk.as_ref();
    let fields = [
        ("hits", stats.hits),
        ("hits_on_disk", stats.disk_hits),
        ("misses", stats.misses),
        ("backend_loads", loads),
        ("records", stats.records),
        ("user_bytes", stats.user_bytes),
        ("bytes_held", stats.bytes_held),
        ("memory_bytes", stats.memory_bytes),
        ("disk_records", disk.map_or(0, |disk| disk.records)),
        ("disk_used_bytes", disk.map_or(0, |disk| disk.used_bytes)),
    ];
    let fields = fields.map(|(name, value)| format!("\"{name}\":{value}"));
    let page = format!("{{{},\"hit_ratio\":{:.4}}}\n", fields.join(","), stats.hit_ratio());
    Ok(([(CONTENT_TYPE, "application/json")], page))
}
