//! The options of the ZipCache paper's objects and figures.

use std::path::Path;

use clap::Args;
use leafpress_lab::Bytes;
use leafpress_lab::cache::{EngineSpec, Length, Options, PaperObjects, Work};
use leafpress_lab::papers::cache::{Figure, FigureOptions};

use super::args::{CacheArgs, parse};
use crate::failure::Failure;
use crate::words::list;

/// Arguments of the paper's objects and figures.
#[derive(Debug, Args)]
pub struct PaperArgs {
    /// The ZipCache paper's objects: keys of 16 bytes, values of 64 bytes, half of each zeros. The default. With fig7
    /// to fig14 or fig16, that figure's scenarios in turn, scaled to the memory
    #[arg(
        long,
        value_name = "FIGURE",
        num_args = 0..=1,
        help_heading = "Work",
        conflicts_with_all = ["data", "trace", "cachebench", "records", "cut"]
    )]
    pub paper: Option<Option<Figure>>,
    /// Lengths of the paper's values, each with an equal part of all bytes [default: 64]
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 1..,
        value_delimiter = ',',
        help_heading = "Work",
        conflicts_with_all = ["data", "trace", "cachebench", "records", "cut"]
    )]
    value_bytes: Option<Vec<Bytes>>,
    /// Percentage of each value that does not compress; the rest is zeros [default: 50]
    #[arg(
        long,
        value_name = "PCT",
        allow_negative_numbers = true,
        help_heading = "Work",
        conflicts_with_all = ["data", "trace", "cachebench", "records", "cut"]
    )]
    incompressible: Option<f64>,
}

impl PaperArgs {
    /// Returns the objects. Not validated yet.
    pub fn objects(&self) -> PaperObjects {
        let default = PaperObjects::default();
        let lengths = self.value_bytes.as_ref();
        // A length that does not fit the type is too long for a value, which the check reports.
        let lengths = lengths.map(|all| {
            all.iter()
                .map(|bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX))
                .collect()
        });
        PaperObjects {
            value_bytes: lengths.unwrap_or(default.value_bytes),
            incompressible_pct: self.incompressible.unwrap_or(default.incompressible_pct),
        }
    }
}

impl CacheArgs {
    /// Returns the requested figure, if any, with files under `out`. Not validated yet.
    pub fn figure(&self, out: &Path) -> Result<Option<FigureOptions>, Failure> {
        let Some(Some(figure)) = self.paper.paper else {
            return Ok(None);
        };
        let mut given = Options::new(Work::Paper(self.paper.objects()));
        self.given.set(&mut given);
        for (option, is_given) in [
            ("working-set", given.working_set_bytes.is_some()),
            ("distribution", given.distribution.is_some()),
            ("value-bytes", self.paper.value_bytes.is_some()),
            ("incompressible", self.paper.incompressible.is_some()),
            ("shift-at", given.shift_at.is_some()),
            ("load", given.load),
            ("writes", given.write_pct > 0.0),
            ("disk", self.disk.is_some()),
        ] {
            if is_given {
                let reason = format!("{figure} defines it: omit it with --paper {figure}");
                return Err(Failure::bad_input(format!("--{option}: {reason}")));
            }
        }
        for (option, is_given) in [
            ("ttl", given.ttl_seconds.is_some()),
            ("rate", given.rate.is_some()),
            ("mrc", self.mrc.options().is_some()),
        ] {
            if is_given {
                let reason = format!("the paper's figures have none: omit it with --paper {figure}");
                return Err(Failure::bad_input(format!("--{option}: {reason}")));
            }
        }
        let mut options = FigureOptions::new(figure);
        if let Some(engines) = &self.engines {
            let engines = list(engines);
            let engines = engines.iter().map(|word| parse("engines", word));
            options.engines = Some(engines.collect::<Result<_, _>>()?);
        }
        options.memory_bytes = given.memory_bytes;
        if self.disk_path.is_some() && !options.engines().iter().any(EngineSpec::has_disk) {
            return Err(Failure::bad_input(
                "--disk-path: no listed cache has a disk tier: leafpress has",
            ));
        }
        options.scale = self.scale.unwrap_or(options.scale);
        options.disk_path = self.disk_path.clone().unwrap_or_else(|| out.join("cache.disk"));
        options.threads = given.threads;
        options.warmup_operations = given.warmup_operations;
        options.length = match (self.seconds, self.operations) {
            (Some(seconds), _) => Some(Length::Seconds(seconds)),
            (None, operations) => operations.map(Length::Operations),
        };
        options.backend_us = given.backend_us;
        options.seed = given.seed;
        Ok(Some(options))
    }
}
