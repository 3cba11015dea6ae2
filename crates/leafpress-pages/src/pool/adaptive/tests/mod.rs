//! Tests of the adaptive share as a whole.

mod full_size;
mod limits;
mod miniatures;
mod shares;

use super::*;
use crate::tuner::Model as _;
use full_size::{FullSize, PAGE_BYTES, World, hash};

/// 500 frames for 4000 pages.
const WORLD: World = World {
    pages: 4_000,
    budget_bytes: 500 * (PAGE_BYTES + full_size::TABLE_BYTES),
    ratio: 2.8,
    read_ns: 110_000,
    compress_ns: 12_000,
    decompress_ns: 3_000,
    hot: (0.0, 0.0),
    policy: PolicyKind::Clock,
};

/// Four fifths of the accesses go to a fifth of the pages.
const HOT: (f64, f64) = (0.2, 0.8);
