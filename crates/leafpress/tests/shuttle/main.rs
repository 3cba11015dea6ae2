//! Interleavings of a few threads under a model checker: `make shuttle`.
#![cfg(shuttle)]

mod cache;
mod explore;
mod interleavings;
mod keyed;
#[path = "../support/onpair.rs"]
mod onpair;
mod pool;
mod reclaim;
mod shortcuts;
mod tree;
