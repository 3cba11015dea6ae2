//! The command line of the curves.

use clap::Args;
use leafpress_lab::Bytes;
use leafpress_lab::cache::{MrcOptions, Sampling};

/// Arguments of `leafpress cache --mrc`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Hits by memory")]
pub struct MrcArgs {
    /// Hits of caches of all sizes from one pass over the work, records as they are and compressed. Runs no cache but those of --engines
    #[arg(long)]
    mrc: bool,
    /// Look at most at so many keys (SHARDS with a fixed size) [default: 65536]
    #[arg(long, value_name = "N", requires = "mrc", conflicts_with = "mrc_rate")]
    mrc_keys: Option<u64>,
    /// Look at this share of the keys, over 0 to 1 (SHARDS with a fixed rate)
    #[arg(long, value_name = "RATE", requires = "mrc", allow_negative_numbers = true)]
    mrc_rate: Option<f64>,
    /// What an entry takes beside its key and value in a cache that does not compress [default: 64]
    #[arg(long, value_name = "BYTES", requires = "mrc")]
    mrc_overhead: Option<Bytes>,
}

impl MrcArgs {
    /// What the curves are made with, if they are asked for. Not yet checked.
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
