//! The command as a user runs it, one subject a module.

mod advise;
mod bad_input;
mod bench;
mod bench_bad_input;
mod bench_wrapper;
mod cache;
mod codecs;
mod command;
mod common;
mod device;
mod doctor;
mod eval;
mod interrupt;
mod messages;
mod model;
mod narrow;
mod paths;
mod plan;
mod pool;
mod records;
mod suite;
