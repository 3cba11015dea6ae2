//! Tests of the victim cache, one module per behaviour.

mod admission;
mod background_panics;
mod bit_flips;
mod blocks;
mod faults;
mod fill;
mod model;
mod share;
