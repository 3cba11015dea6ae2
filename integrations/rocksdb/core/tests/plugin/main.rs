//! The compression plugin against the real RocksDB: one behaviour a file, one program for all, since linking RocksDB
//! takes longer than the tests.

mod bad_options;
mod bit_flips;
mod block_sizes;
mod concurrent;
mod deflate_family;
mod dictionary;
mod faulty_engine;
mod killed;
mod levels_and_families;
mod options;
mod options_file;
mod round_trip;
mod statistics;
mod support;
mod switched;
mod unregistered;
