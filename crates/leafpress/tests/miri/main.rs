//! What runs under Miri as well as by itself: `scripts/sanitize miri`.

mod pool;
mod tree;
