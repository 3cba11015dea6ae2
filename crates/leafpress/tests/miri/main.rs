//! What runs under Miri as well as by itself: `make miri`.

mod pool;
mod tree;
mod victim;
