//! The victim cache, one behaviour a module.

mod admission;
mod background_panics;
mod bit_flips;
mod blocks;
mod faults;
mod fill;
mod model;
mod share;
