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

/// Returns the error of an options string.
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

/// Returns a value of about `bytes` bytes that compresses like text.
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

/// Returns the value of a ticker.
pub fn ticker(name: &str) -> u64 {
    let text = leafpress_rocksdb::statistics_text();
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    let line = line.unwrap_or_else(|| panic!("no ticker {name} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Puts records into a database and flushes them: a tenth is noise, the rest text.
pub fn fill(db: &DB, records: std::ops::Range<u64>) {
    for i in records {
        db.put(key(i), value(i)).unwrap();
    }
    db.flush().unwrap();
}

/// Checks that a database has the records of [`fill`].
pub fn check(db: &DB, records: std::ops::Range<u64>) {
    for i in records {
        assert_eq!(
            db.get(key(i)).unwrap().as_deref(),
            Some(value(i).as_slice()),
            "record {i}"
        );
    }
}

/// Returns a key of [`fill`].
pub fn key(i: u64) -> String {
    format!("key{i:09}")
}

/// Returns a value of [`fill`].
pub fn value(i: u64) -> Vec<u8> {
    if i.is_multiple_of(10) {
        noise(i, 200)
    } else {
        text(i, 300)
    }
}

/// What a file's properties say: the schema, the types of its blocks as numbers in base 16, and the compressor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileCompression {
    pub level: i32,
    pub column_family: String,
    pub types: String,
    pub compressor: String,
}

/// Returns the compression of every file of a database, whose properties are read from the files themselves.
pub fn compressions(db: &DB) -> Vec<FileCompression> {
    let read = |file: rocksdb::LiveFile| {
        let bytes = std::fs::read(db.path().join(file.name.trim_start_matches('/'))).unwrap();
        FileCompression {
            level: file.level,
            column_family: file.column_family_name,
            types: between(&bytes, b"leafpress_rocksdb_v1;"),
            compressor: between(&bytes, b"_compressor="),
        }
    };
    db.live_files().unwrap().into_iter().map(read).collect()
}

/// What stands behind `start` up to the next semicolon; empty without it.
fn between(bytes: &[u8], start: &[u8]) -> String {
    let Some(at) = bytes.windows(start.len()).rposition(|window| window == start) else {
        return String::new();
    };
    let rest = &bytes[at + start.len()..];
    let end = rest.iter().position(|byte| *byte == b';').unwrap_or(0);
    String::from_utf8_lossy(&rest[..end]).into_owned()
}

/// What the newest `OPTIONS` file says behind `compression_manager=`, of the default column family.
pub fn manager_in_options_file(directory: &Path) -> String {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-"))
        .collect();
    files.sort();
    let text = std::fs::read_to_string(files.last().unwrap()).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("compression_manager="));
    line.unwrap_or_else(|| panic!("no manager in\n{text}")).to_owned()
}

/// Runs one of the tests that are not tests by themselves in a process of its own and returns what it printed.
pub fn child(test: &str, environment: &[(&str, &str)]) -> String {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--ignored", "--test-threads=1"])
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{test}: {}: {text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Returns whether a codec can run here.
fn available(codec: &str) -> bool {
    let codecs = leafpress::codec::Codec::list();
    codecs
        .into_iter()
        .any(|found| found.codec.to_string() == codec && found.engine.is_ok())
}

/// Returns whether there is a libqpl.
pub fn has_qpl() -> bool {
    let found = available("qpl:software:dynamic");
    if !found {
        println!("skipped: no libqpl");
    }
    found
}

/// Returns whether there is a zlib.
pub fn has_zlib() -> bool {
    let found = available("zlib:1");
    if !found {
        println!("skipped: no zlib");
    }
    found
}
