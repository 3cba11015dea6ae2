//! Interleavings of a few threads, chosen by a model checker: `make shuttle`.
#![cfg(shuttle)]

mod cache;
mod explore;
mod interleavings;
mod pool;
mod reclaim;
mod shortcuts;
mod tree;
