//! From the first request to the last: the cache is built before the one, and closed after the other.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use leafpress::Cache;
use leafpress::cache::{CacheError, Disk};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::backend::Backend;
use crate::options::Options;
use crate::service::Service;

/// How long requests that are under way may take once the service is to end.
const MAX_SHUTDOWN: Duration = Duration::from_secs(5);
/// Seconds, from a hit in memory to a slow backend.
const BUCKETS: [f64; 10] = [1e-7, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 0.1, 1.0];

/// Why the service ended other than it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("metrics: {0}")]
    Metrics(String),
}

/// Returns the process's recorder, which all services in it share.
fn recorder() -> Result<PrometheusHandle, ServeError> {
    static INSTALLED: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let builder = PrometheusBuilder::new().set_buckets(&BUCKETS);
        let recorder = builder.map_err(|error| error.to_string())?.build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
        Ok(handle)
    });
    installed.clone().map_err(ServeError::Metrics)
}

fn open(options: &Options) -> Result<Cache, CacheError> {
    let builder = Cache::builder().name(&options.name).memory(options.memory_bytes);
    match &options.disk {
        Some(path) => builder.disk(Disk::file(path, options.disk_bytes)),
        None => builder,
    }
    .build()
}

/// Serves until `stop` is there, then closes the cache, so that the next process that opens its file has the same
/// records.
pub fn serve(
    options: &Options,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let service = Service {
        metrics: recorder()?,
        backend: Arc::new(Backend::new(options.latency)),
        cache: open(options)?,
    };
    let cache = service.cache.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    listener.set_nonblocking(true)?;
    let served = runtime.block_on(serve_until(service, listener, stop));
    runtime.shutdown_timeout(MAX_SHUTDOWN);
    cache.close()?;
    Ok(served?)
}

async fn serve_until(
    service: Service,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let metrics = service.metrics.clone();
    // Times that nobody asks for would gather.
    let upkeep = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            metrics.run_upkeep();
        }
    });
    let (stopping, stopped) = tokio::sync::oneshot::channel();
    let stop = async move {
        stop.await;
        let _ = stopping.send(());
    };
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let serving = axum::serve(listener, service.router()).with_graceful_shutdown(stop);
    let too_late = async {
        // Without an answer the service has ended by itself.
        if stopped.await.is_ok() {
            tokio::time::sleep(MAX_SHUTDOWN).await;
        } else {
            std::future::pending::<()>().await;
        }
    };
    let served = tokio::select! {
        served = serving.into_future() => served,
        () = too_late => Ok(()),
    };
    upkeep.abort();
    served
}
