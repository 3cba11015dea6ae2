//! The value of saved cores and memory: options of every command that reports it.

use clap::Args;
use leafpress_lab::LabError;
use leafpress_lab::model::tco::Prices;

/// Whether to compute cost, and the prices.
#[derive(Debug, Args)]
pub struct CostArgs {
    /// Report the value of saved cores and memory
    #[arg(long, help_heading = "Cost", group = "priced")]
    tco: bool,
    /// Compute's percentage of the total cost [default: 20.8, between the 19.1 and 22.4 that Intel's white paper
    /// implies]
    #[arg(
        long,
        value_name = "PCT",
        help_heading = "Cost",
        requires = "tco",
        allow_negative_numbers = true
    )]
    compute_share_pct: Option<f64>,
    /// Percentage of cores saved at equal throughput, as measured [default: by the model]
    #[arg(
        long,
        value_name = "PCT",
        help_heading = "Cost",
        requires = "tco",
        allow_negative_numbers = true
    )]
    cores_saved_pct: Option<f64>,
    /// Cores currently in use
    #[arg(
        long,
        value_name = "N",
        help_heading = "Cost",
        requires = "tco",
        allow_negative_numbers = true
    )]
    cores: Option<f64>,
    /// Cost of a core over the period
    #[arg(
        long,
        value_name = "COST",
        help_heading = "Cost",
        requires = "priced",
        allow_negative_numbers = true
    )]
    core_cost: Option<f64>,
    /// Total cost of ownership over the period
    #[arg(
        long,
        value_name = "COST",
        help_heading = "Cost",
        requires = "tco",
        allow_negative_numbers = true
    )]
    total_cost: Option<f64>,
    /// Cost of a GiB of memory over the period
    #[arg(
        long,
        value_name = "COST",
        help_heading = "Cost",
        requires = "priced",
        allow_negative_numbers = true
    )]
    memory_gib_cost: Option<f64>,
}

// Prices of cores and memory require `--tco`, or an option that a command puts into the group `priced`: one whose
// report has cost anyway.
impl CostArgs {
    /// Returns the cost of a GiB of memory, if it is given.
    pub fn memory_gib_cost(&self) -> Option<f64> {
        self.memory_gib_cost
    }

    /// Returns the cost of a core, if it is given.
    pub fn core_cost(&self) -> Option<f64> {
        self.core_cost
    }

    /// Returns the prices, if cost is requested.
    ///
    /// # Errors
    /// [`LabError::Option`] when a price is out of bounds.
    pub fn prices(&self) -> Result<Option<Prices>, LabError> {
        if !self.tco {
            return Ok(None);
        }
        let default = Prices::default();
        let prices = Prices {
            compute_share: self.compute_share_pct.map_or(default.compute_share, |pct| pct / 100.0),
            cores: self.cores,
            core_cost: self.core_cost,
            total_cost: self.total_cost,
            memory_gib_cost: self.memory_gib_cost,
            cores_saved: self.cores_saved_pct.map(|pct| pct / 100.0),
        };
        prices.validate()?;
        Ok(Some(prices))
    }
}
