//! The command line of the curves.

use clap::Args;
use leafpress_lab::Bytes;
use leafpress_lab::cache::{MrcOptions, Sampling};

/// Arguments of `leafpress cache --mrc`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Miss-ratio curves")]
pub struct MrcArgs {
    /// Compute miss-ratio curves (hits of all cache sizes) from one pass over the work, uncompressed and compressed.
    /// Runs only the caches of --engines
    #[arg(long)]
    mrc: bool,
    /// Sample at most N keys (SHARDS with a fixed size) [default: 65536]
    #[arg(long, value_name = "N", requires = "mrc", conflicts_with = "mrc_rate")]
    mrc_keys: Option<u64>,
    /// Sample this fraction of the keys, above 0 to 1 (SHARDS with a fixed rate)
    #[arg(long, value_name = "RATE", requires = "mrc", allow_negative_numbers = true)]
    mrc_rate: Option<f64>,
    /// Overhead of an entry in an uncompressed cache, next to its key and value [default: 64]
    #[arg(long, value_name = "BYTES", requires = "mrc")]
    mrc_overhead: Option<Bytes>,
}

impl MrcArgs {
    /// Returns the curves' options, if requested. Not validated yet.
    pub fn options(&self) -> Option<MrcOptions> {
        let default = MrcOptions::default();
        self.mrc.then(|| MrcOptions {
            sampling: match (self.mrc_rate, self.mrc_keys) {
                (Some(rate), _) => Sampling::Rate(rate),
                (None, Some(keys)) => Sampling::Keys(keys),
                (None, None) => default.sampling,
            },
            entry_bytes: self.mrc_overhead.map_or(default.entry_bytes, |Bytes(bytes)| bytes),
        })
    }
}
