//! Tests of the page pool and its stores, one module per behaviour.

#[path = "../../../leafpress/tests/support/alone.rs"]
mod alone;
mod ending_threads;
mod flush;
mod limits;
mod model;
mod owned;
mod panicking_store;
mod races;
mod removed;
mod store_directory;
mod store_errors;
mod store_faulty;
mod store_full_disk;
mod store_model;
mod store_round_trip;
mod store_short_page;
mod store_support;
mod store_sync;
mod store_without_uring;
mod support;
mod system_calls;
mod threads;
mod unwritable;
