//! Histories of concurrent operations on a cache, a victim cache, a page pool or a tree are recorded and checked, key
//! by key. No read may return a value that was replaced or removed before the read began: see `zones`.
//!
//! Each test runs a fixed number of rounds. With `LEAFPRESS_HISTORY_SECONDS` it runs rounds for that long instead:
//! `make history`.

mod cache;
#[allow(dead_code)]
#[path = "../support/keys.rs"]
mod keys;
mod log;
mod pool;
mod rounds;
#[path = "../support/tasks.rs"]
mod tasks;
mod tree;
mod typed;
mod value;
mod victim;
mod zones;
