//! What runs under Miri as well as by itself: `make miri`.

mod cache;
mod pool;
mod tree;
mod victim;
