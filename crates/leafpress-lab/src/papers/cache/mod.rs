//! The ZipCache paper's figures (MEMSYS 2024, arXiv 2411.03174) on this machine: each a list of scenarios that are run
//! in turn, all of them scaled to the memory that is given, and one table of our results and the paper's.

mod charts;
mod document;
mod figures;
mod outcome;
mod run;
mod scenario;
mod table;
mod tsv;
mod verdict;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::cache::workload::{MAX_WORKING_SET_KEYS, check_scale};
use crate::cache::{EngineSpec, Length};
use crate::core::words::{serde_as_text, words};
use crate::core::{Bytes, LabError};
use crate::report::numbers::thousands;

pub use document::document as figure_document;
pub use outcome::{FigureOutcome, ScenarioOutcome};
pub use run::{run_figure, run_figure_with};
pub use scenario::Scenario;
use tsv::{over_time, summary};

/// A figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Far more than fits: hits and throughput.
    Fig7,
    /// All fits into memory and disk: throughput by locality.
    Fig8,
    /// Figure 9: read latency.
    Fig9,
    /// Figure 10: writes alone, and reads alone.
    Fig10,
    /// Bytes written to the disk, by length of values.
    Fig11,
    /// Hot leaves kept uncompressed, and not.
    Fig12,
    /// Other keys become hot.
    Fig13,
    /// Values that compress well, and not at all.
    Fig14,
    /// Objects of three lengths together.
    Fig16,
}

words!(Figure, "paper",
    "unknown figure `{}`; known: fig7 fig8 fig9 fig10 fig11 fig12 fig13 fig14 fig16, or no figure for the paper's \
     objects alone":
    Fig7 "fig7", Fig8 "fig8", Fig9 "fig9", Fig10 "fig10", Fig11 "fig11", Fig12 "fig12", Fig13 "fig13",
    Fig14 "fig14", Fig16 "fig16");
serde_as_text!(Figure);

impl Figure {
    /// All that there are.
    pub const ALL: [Self; 9] = [
        Self::Fig7,
        Self::Fig8,
        Self::Fig9,
        Self::Fig10,
        Self::Fig11,
        Self::Fig12,
        Self::Fig13,
        Self::Fig14,
        Self::Fig16,
    ];
}

/// A figure, and how it is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FigureOptions {
    /// Which.
    pub figure: Figure,
    /// The caches; `None` selects the figure's own.
    pub engines: Option<Vec<EngineSpec>>,
    /// The paper's DRAM here, in bytes, before it is scaled: its 64 GB, and in figure 7 its 128 GB.
    pub memory_bytes: u64,
    /// Factor of the memory, and with it of working sets, disk and operations: more than 0 and at most 1.
    pub scale: f64,
    /// The file or device of the tier on a disk.
    #[serde(with = "crate::core::paths")]
    pub disk_path: PathBuf,
    /// Threads that ask.
    pub threads: usize,
    /// Operations before the measured ones, when all is loaded; `None` is the figure's.
    pub warmup_operations: Option<u64>,
    /// For how long each scenario is measured; `None` is the figure's.
    pub length: Option<Length>,
    /// Microseconds that a miss is charged with.
    pub backend_us: f64,
    /// Seed of every random choice.
    pub seed: u64,
}

impl FigureOptions {
    /// Creates a figure in 64 MiB, or in a quarter of that where it has many scenarios: minutes.
    pub fn new(figure: Figure) -> Self {
        Self {
            figure,
            engines: None,
            memory_bytes: 64 << 20,
            scale: figure.default_scale(),
            disk_path: "cache.disk".into(),
            threads: 2,
            warmup_operations: None,
            length: None,
            backend_us: 1000.0,
            seed: 1,
        }
    }

    /// Returns the caches that are run.
    pub fn engines(&self) -> Vec<EngineSpec> {
        self.engines.clone().unwrap_or_else(|| self.figure.engines())
    }

    /// Checks all that can be checked before anything is run.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        check_scale(self.scale)?;
        for scenario in self.scenarios() {
            let options = &scenario.options;
            options.validate().map_err(|e| self.explained(e))?;
            let keys = (options.working_set_bytes() as f64 / scenario.record_bytes()) as u64;
            if keys > MAX_WORKING_SET_KEYS {
                let (memory, scale, name) = (Bytes(self.memory_bytes), self.scale, &scenario.name);
                let most = thousands(MAX_WORKING_SET_KEYS);
                let keys = thousands(keys);
                return Err(LabError::option(
                    "memory",
                    format!("{memory} times --scale {scale} makes {keys} keys of `{name}`, more than {most}"),
                ));
            }
        }
        Ok(())
    }

    /// A memory that is out of bounds follows from two options.
    fn explained(&self, error: LabError) -> LabError {
        match error {
            LabError::Option {
                option: "memory",
                reason,
            } => LabError::option(
                "memory",
                format!(
                    "{} times --scale {}, as {} requires: {reason}",
                    Bytes(self.memory_bytes),
                    self.scale,
                    self.figure
                ),
            ),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
