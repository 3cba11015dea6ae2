//! Advice for the data of a running Redis or Valkey server.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use leafpress_lab::keyspace::{self, Address, Options, PASSWORD_VARIABLES, SampleSize};
use leafpress_lab::{Bytes, LabError};

use super::{AdviseArgs, failure};
use crate::failure::Failure;
use crate::progress::Bar;
use crate::{interrupt, output};

/// What a GiB of memory costs in a month: a memory-optimised instance (r7g) of a large cloud on demand, 2025.
const MEMORY_GIB_COST: f64 = 4.9;

/// Arguments of `leafpress advise --redis`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Redis or Valkey")]
pub struct KeyspaceArgs {
    /// Survey the keys of this server, or of its cluster, with commands that only read:
    /// redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, unix:///PATH. Without a database: all. Without a
    /// password: that of REDISCLI_AUTH or VALKEYCLI_AUTH
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = [
            "sample", "data", "memory", "access_bytes", "block_bytes", "page_bytes", "codecs", "device", "device_us",
            "device_json", "fio_json", "access", "trace_format", "skip_junk", "workers", "hit_us", "background_pct",
            "quick", "verify", "trace", "records",
        ]
    )]
    pub redis: Option<String>,
    // Not `requires`: clap does not check it together with the other's conflicts.
    /// Certificate authority of the server (PEM), instead of the system's
    #[arg(long, value_name = "FILE")]
    redis_ca: Option<PathBuf>,
    /// Keys to look at: random ones, or all [default: 5000]
    #[arg(long, value_name = "N|all")]
    sample_keys: Option<SampleSize>,
    /// Percentage of a core that the server may spend on the survey [default: 1]
    #[arg(long, value_name = "PCT", allow_negative_numbers = true)]
    server_cpu_pct: Option<f64>,
}

impl KeyspaceArgs {
    /// Refuses options of a survey where there is none.
    pub(super) fn refuse_without_server(&self) -> Result<(), LabError> {
        let given = [
            ("redis-ca", self.redis_ca.is_some()),
            ("sample-keys", self.sample_keys.is_some()),
            ("server-cpu-pct", self.server_cpu_pct.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(LabError::option(option, "requires --redis (the server to survey)")),
            None => Ok(()),
        }
    }

    fn address(&self, url: &str) -> Result<Address, Failure> {
        let password = PASSWORD_VARIABLES.iter().find_map(|name| std::env::var(name).ok());
        let root_cert = match &self.redis_ca {
            Some(path) => Some(
                std::fs::read(path)
                    .map_err(|error| Failure::bad_input(format!("--redis-ca {}: {error}", path.display())))?,
            ),
            None => None,
        };
        Address::parse(url, password.as_deref(), root_cert).map_err(|error| failure(&error))
    }
}

/// Runs the command.
pub fn run(args: &AdviseArgs, url: &str) -> Result<(), Failure> {
    let given = &args.keyspace;
    let mut options = Options::new(given.address(url)?);
    options.keys = given.sample_keys.unwrap_or(options.keys);
    options.cpu_share = given.server_cpu_pct.map_or(options.cpu_share, |pct| pct / 100.0);
    if let Some(Bytes(bytes)) = args.sample_bytes {
        options.value_bytes = bytes;
    }
    let prices = args.cost.prices().map_err(|error| failure(&error))?;
    options.memory_gib_cost = prices.map(|prices| prices.memory_gib_cost.unwrap_or(MEMORY_GIB_COST));
    options.validate().map_err(|error| failure(&error))?;
    if let Some(out) = &args.out {
        output::make_directory("out", out)?;
    }
    let cancel = interrupt::flag()?;
    let mut bar = Bar::new();
    if !args.quiet {
        bar.start(0, 1, format!("connecting to {}", options.address.name()));
    }
    let survey = keyspace::run(&options, &cancel, &mut |event| {
        if !args.quiet {
            bar.advance(event.share);
            bar.set_text(event.what);
        }
    });
    bar.finish();
    let survey = survey.map_err(|error| match error {
        LabError::Cancelled => Failure::Interrupted("interrupted: no key had been looked at".into()),
        error => failure(&error),
    })?;
    let command_line = output::command_line(
        crate::COMMAND,
        without_urls(std::env::args_os(), &options.address.name()),
    );
    let report = keyspace::document(&survey);
    let printed = output::show(&report, &command_line, args.out.as_deref());
    drop(report);
    match survey.failure {
        Some(failure) => Err(Failure::failed(failure)),
        None if survey.is_interrupted => Err(Failure::Interrupted(format!(
            "interrupted: {} keys had been looked at",
            survey.sampled
        ))),
        None => printed,
    }
}

/// Replaces the URLs among the words of a command line: they may have passwords in them, and the report is for others.
fn without_urls(words: impl Iterator<Item = OsString>, name: &str) -> impl Iterator<Item = OsString> {
    let mut is_url = false;
    words.map(move |word| {
        let is_of_flag = std::mem::replace(&mut is_url, word == "--redis");
        match word.to_str() {
            _ if is_of_flag => name.into(),
            Some(text) if text.starts_with("--redis=") => format!("--redis={name}").into(),
            _ => word,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_every_form_are_replaced() {
        let words = [
            "leafpress",
            "advise",
            "--redis",
            "redis://:it's@a",
            "--redis=redis://:it's@b",
            "--tco",
        ];
        let words = without_urls(words.into_iter().map(OsString::from), "c:6379");
        assert_eq!(
            output::command_line("leafpress", words),
            "leafpress advise --redis c:6379 --redis=c:6379 --tco"
        );
    }
}
