//! Tests that run under Miri (`make miri`) as well as natively.

mod cache;
mod pool;
mod tree;
mod victim;
