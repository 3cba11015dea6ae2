//! Interleavings of a few threads under a model checker: `make shuttle`.
#![cfg(shuttle)]

mod cache;
mod explore;
mod interleavings;
mod pool;
mod reclaim;
mod shortcuts;
mod tree;
