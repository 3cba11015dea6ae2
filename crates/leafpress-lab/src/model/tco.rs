//! The value of saved cores and memory: the arithmetic of Intel's white paper on the IAA plugin for RocksDB (2023),
//! section "Total Cost of Ownership", with every price an input.
//!
//! Cores saved at equal throughput lower the *cost of compute* in the same proportion; the *total cost of ownership*
//! (servers, network, racks, power, over four years) falls by that saving times the share of compute in it. The paper
//! shows that share in a picture (figure 8, after a page of CERN's of 2017) and does not print it. It prints that 47%
//! to 67% of compute saved are 9% to 15% of the total, which is a share of 19.1% by the first pair and 22.4% by the
//! second: no one share gives both. [`COMPUTE_SHARE`] lies between.

use serde::Serialize;

use super::{CodecOutcome, Outcome, raw_memory_for};
use crate::core::LabError;

/// The share of compute in the total cost of ownership: the mean of what the white paper's two pairs of figures imply.
pub const COMPUTE_SHARE: f64 = (0.09 / 0.47 + 0.15 / 0.67) / 2.0;

/// Years of operation that the white paper's total cost is over.
pub const YEARS: u32 = 4;

const GIB: f64 = (1_u64 << 30) as f64;

/// Returns the share of cores saved at equal throughput, if each page takes `after` instead of `before` microseconds of
/// a core. Negative values mean that more are needed.
pub fn cores_saved(before_us: f64, after_us: f64) -> f64 {
    if before_us > 0.0 {
        1.0 - after_us / before_us
    } else {
        0.0
    }
}

/// Returns how much more the same cores do when so large a share of them would do for the same: `1 / (1 - saved) - 1`.
pub fn more_service(saved: f64) -> f64 {
    1.0 / (1.0 - saved).max(1e-9) - 1.0
}

/// Returns the share of the total cost that is saved: compute's share of it times the share of compute that is saved.
pub fn total_saved(compute_share: f64, compute_saved: f64) -> f64 {
    compute_share * compute_saved
}

/// Prices, in any one currency, over the same time ([`YEARS`] in the paper). The default has none but the paper's share
/// of compute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Prices {
    /// Share of compute in the total cost, over 0 to 1; given both costs, it follows from them.
    pub compute_share: f64,
    /// Cores in use.
    pub cores: Option<f64>,
    /// Cost of a core.
    pub core_cost: Option<f64>,
    /// Total cost of ownership.
    pub total_cost: Option<f64>,
    /// Cost of a GiB of memory.
    pub memory_gib_cost: Option<f64>,
    /// The share of cores saved, measured elsewhere; `None` takes it from the model.
    pub cores_saved: Option<f64>,
}

impl Default for Prices {
    fn default() -> Self {
        Self {
            compute_share: COMPUTE_SHARE,
            cores: None,
            core_cost: None,
            total_cost: None,
            memory_gib_cost: None,
            cores_saved: None,
        }
    }
}

impl Prices {
    /// Checks all bounds.
    ///
    /// # Errors
    /// [`LabError::Option`] with the name of the option on the command line.
    pub fn validate(&self) -> Result<(), LabError> {
        let refuse = |option, reason: String| Err(LabError::option(option, reason));
        if !(self.compute_share > 0.0 && self.compute_share <= 1.0) {
            return refuse("compute-share-pct", "must be greater than 0 and at most 100".into());
        }
        for (option, figure) in [
            ("cores", self.cores),
            ("core-cost", self.core_cost),
            ("total-cost", self.total_cost),
            ("memory-gib-cost", self.memory_gib_cost),
        ] {
            if figure.is_some_and(|figure| !(figure > 0.0 && figure <= 1e15)) {
                return refuse(option, "must be greater than 0 and at most 1e15".into());
            }
        }
        if self.cores_saved.is_some_and(|saved| !(-100.0..1.0).contains(&saved)) {
            return refuse(
                "cores-saved-pct",
                "must be less than 100; negative values mean that more cores are needed".into(),
            );
        }
        if self.cores.is_some() != self.core_cost.is_some() && (self.core_cost.is_some() || self.total_cost.is_none()) {
            let (has, lacks) = if self.cores.is_some() {
                ("cores", "core-cost")
            } else {
                ("core-cost", "cores")
            };
            return refuse(has, format!("requires --{lacks}"));
        }
        if let (Some(compute), Some(total)) = (self.compute_from_cores(), self.total_cost)
            && compute > total
        {
            return refuse(
                "total-cost",
                format!("{total} is less than the cost of the cores, {compute}"),
            );
        }
        Ok(())
    }

    fn compute_from_cores(&self) -> Option<f64> {
        Some(self.cores? * self.core_cost?)
    }

    /// Returns the share of compute in the total cost: from both costs where both are given.
    pub fn share(&self) -> f64 {
        match (self.compute_from_cores(), self.total_cost) {
            (Some(compute), Some(total)) => compute / total,
            _ => self.compute_share,
        }
    }

    /// Returns the cost of compute, where it is known or follows.
    pub fn compute_cost(&self) -> Option<f64> {
        self.compute_from_cores()
            .or_else(|| Some(self.total_cost? * self.compute_share))
    }

    /// Returns the total cost, where it is known or follows.
    pub fn whole_cost(&self) -> Option<f64> {
        self.total_cost
            .or_else(|| Some(self.compute_from_cores()? / self.compute_share))
    }
}

/// The value of saved cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoreSavings {
    /// The share of cores saved at equal throughput, and of the cost of compute.
    pub cores_saved: f64,
    /// The share of the total cost saved.
    pub total_saved: f64,
    /// Cores saved.
    pub cores: Option<f64>,
    /// Cost of compute saved.
    pub compute_cost: Option<f64>,
    /// Total cost saved.
    pub total_cost: Option<f64>,
}

/// Computes the value of a share of cores saved at equal throughput, at these prices.
pub fn of_cores(saved: f64, prices: &Prices) -> CoreSavings {
    let total = total_saved(prices.share(), saved);
    CoreSavings {
        cores_saved: saved,
        total_saved: total,
        cores: prices.cores.map(|cores| cores * saved),
        compute_cost: prices.compute_cost().map(|cost| cost * saved),
        total_cost: prices.whole_cost().map(|cost| cost * total),
    }
}

/// Savings of a codec at its best share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Savings {
    /// The codec.
    pub codec: String,
    /// The share of the memory for compressed pages that is best.
    pub share: f64,
    /// The value of the saved cores.
    #[serde(flatten)]
    pub worth: CoreSavings,
    /// Bytes of memory that a cache without compression would need in addition for the same microseconds per page;
    /// `None` when none is as fast.
    pub memory_bytes: Option<f64>,
    /// The cost of that memory.
    pub memory_cost: Option<f64>,
}

/// Computes the savings of each codec of an outcome at its best share.
///
/// Cores are those of the model's workers: one that waits for the device is counted as in use, as in the thesis. Where
/// reads are asynchronous a core does not wait, and compression costs cores; give what was measured as
/// [`Prices::cores_saved`] then.
///
/// # Errors
/// [`LabError::Option`] when a price is out of its bounds.
pub fn savings(outcome: &Outcome, prices: &Prices) -> Result<Vec<Savings>, LabError> {
    prices.validate()?;
    outcome
        .codecs
        .iter()
        .map(|codec| of_codec(outcome, codec, prices))
        .collect()
}

fn of_codec(outcome: &Outcome, codec: &CodecOutcome, prices: &Prices) -> Result<Savings, LabError> {
    let options = &outcome.options;
    let modelled = match codec.best.share > 0.0 {
        true => cores_saved(1.0 / outcome.raw.pages_per_second, 1.0 / codec.best.pages_per_second),
        false => 0.0,
    };
    let saved = prices.cores_saved.unwrap_or(modelled);
    let needed = raw_memory_for(options, codec.best.us_per_page)?;
    let memory_bytes = match codec.best.share > 0.0 {
        true => needed.map(|needed| (needed - options.memory_bytes as f64).max(0.0)),
        false => Some(0.0),
    };
    Ok(Savings {
        codec: codec.codec.name.clone(),
        share: codec.best.share,
        worth: of_cores(saved, prices),
        memory_bytes,
        memory_cost: memory_bytes
            .zip(prices.memory_gib_cost)
            .map(|(bytes, cost)| bytes / GIB * cost),
    })
}

#[cfg(test)]
#[path = "tco_tests.rs"]
mod tests;
