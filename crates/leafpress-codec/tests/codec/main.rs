//! Tests of the codecs, one module per behaviour.

mod compress_into;
mod deflate_family;
mod hostile_input;
mod lz4_family;
mod lz4_short;
mod names;
mod none;
mod onpair;
mod qpl;
mod qpl_busy;
mod round_trip;
mod sealed;
mod support;
mod zlib_preload;
