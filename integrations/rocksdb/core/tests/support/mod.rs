//! What the tests share.
#![allow(dead_code, reason = "each test uses a part")]

use std::path::Path;

use rocksdb::{DB, Options};

/// Options from an options string, with Leafpress registered; the database is made if there is none.
pub fn options(text: &str) -> Options {
    leafpress_rocksdb::register();
    let mut options = Options::default().get_options_from_string(text).unwrap();
    options.create_if_missing(true);
    options
}

/// Options with a compression manager.
pub fn leafpress(manager: &str) -> Options {
    options(&format!("compression_manager={{id=leafpress;{manager}}}"))
}

/// The error of an options string.
pub fn error(text: &str) -> String {
    leafpress_rocksdb::register();
    match Options::default().get_options_from_string(text) {
        Ok(_) => panic!("{text:?} was taken"),
        Err(error) => error.into_string(),
    }
}

/// Opens a database.
pub fn open(path: &Path, manager: &str) -> DB {
    DB::open(&leafpress(manager), path).unwrap()
}

/// A value of about so many bytes that shrinks like text.
pub fn text(seed: u64, bytes: usize) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "leaf ", "press ", "page ", "cache ", "index ", "record ", "frame ", "window ", "block ", "0017", "=>", "\n",
    ];
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state = step(state);
        out.extend_from_slice(WORDS[(state >> 33) as usize % WORDS.len()].as_bytes());
    }
    out.truncate(bytes);
    out
}

/// Bytes that do not shrink.
pub fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut out = Vec::with_capacity(bytes + 8);
    while out.len() < bytes {
        state = step(state);
        out.extend_from_slice(&(state >> 7).wrapping_mul(0xD6E8_FEB8_6659_FD93).to_le_bytes());
    }
    out.truncate(bytes);
    out
}

fn step(state: u64) -> u64 {
    let mut x = state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    x
}

/// The value of a ticker.
pub fn ticker(name: &str) -> u64 {
    let text = leafpress_rocksdb::statistics_text();
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no ticker {name} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
