//! The web service: see README.md.

use std::net::TcpListener;
use std::process::ExitCode;

use leafpress_example_web::options::{Options, USAGE};
use leafpress_example_web::server::serve;
use tokio::signal::unix::{SignalKind, signal};

/// Ctrl-C, or what a supervisor sends.
async fn stop_signal() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        let _ = tokio::signal::ctrl_c().await;
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // The cache's log: failures, and its background work on request.
    let level = if std::env::var_os("VERBOSE").is_some() {
        tracing_subscriber::filter::LevelFilter::DEBUG
    } else {
        tracing_subscriber::filter::LevelFilter::WARN
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .init();
    let served = TcpListener::bind(options.listen)
        .map_err(Into::into)
        .and_then(|listener| {
            println!("listening on http://{}", listener.local_addr()?);
            serve(&options, listener, stop_signal())
        });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
