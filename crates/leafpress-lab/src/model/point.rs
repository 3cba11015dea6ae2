//! What the model computes for a codec at a share of the memory.

use serde::Serialize;

/// The model at one share.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The share of the memory for compressed pages, 0 to 1.
    pub share: f64,
    /// The share of the data's pages that are cached, 0 to 1.
    pub fits: f64,
    /// The hit ratio, 0 to 1.
    pub hit_ratio: f64,
    /// The chance that a hit is on a compressed page, 0 to 1.
    pub chance_compressed: f64,
    /// Pages compressed for one access.
    pub compressions: f64,
    /// Microseconds per page.
    pub us_per_page: f64,
    /// Pages per second.
    pub pages_per_second: f64,
}
