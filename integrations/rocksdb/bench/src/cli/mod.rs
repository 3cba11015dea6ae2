//! The command line: arguments in, the library's runs, tables and files out.

pub mod args;
pub mod bench;
pub mod caches;
pub mod failure;
pub mod frontier;
pub mod matrix;
pub mod reporter;
pub mod scratch;
pub mod study;
