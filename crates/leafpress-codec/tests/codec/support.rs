//! Helpers shared by the codec tests.
#![allow(dead_code)]

use std::sync::{Arc, OnceLock};

use fastrand::Rng;
use leafpress_codec::Codec;
use leafpress_codec::{CodecError, Dictionary, Engine, EngineOptions};

/// Names of all codecs, some with several settings.
pub const NAMES: [&str; 27] = [
    "none",
    "lz4",
    "lz4:fast=7",
    "lz4:hc=2",
    "lz4:hc=9",
    "lz4:hc=12",
    "zstd:1",
    "zstd:3",
    "zstd:-5",
    "zstd:9",
    "zstd:16",
    "onpair",
    "onpair:14",
    "onpair:16",
    "onpair:huffman",
    "deflate:1",
    "deflate:6",
    "deflate:12",
    "zlib:1",
    "zlib:6",
    "zlib:9",
    "qpl:software:fixed",
    "qpl:software:dynamic",
    "qpl:hardware:fixed",
    "qpl:hardware:dynamic",
    "qpl:auto:fixed",
    "qpl:auto:dynamic",
];

/// Opens the engines that can run here.
pub fn engines() -> Vec<Arc<dyn Engine>> {
    NAMES
        .iter()
        .filter_map(|name| {
            let codec: Codec = name.parse().unwrap();
            match codec.open(&EngineOptions::default()) {
                Ok(engine) => Some(engine),
                Err(CodecError::Unavailable { reason, .. }) => {
                    let libqpl = codec.family() == "qpl" && reason.starts_with("libqpl was not found");
                    eprintln!("skipped: {}", if libqpl { "no libqpl" } else { &reason });
                    None
                }
                Err(error) => panic!("{name}: {error}"),
            }
        })
        .collect()
}

/// `size` bytes: 0 random, 1 text-like, 2 all equal, 3 noise with far repeats.
pub fn sample(kind: usize, size: usize, seed: u64) -> Vec<u8> {
    const WORDS: [&str; 12] = [
        "leaf",
        "press",
        "page ",
        "record=",
        "value;",
        "0000",
        "tree",
        "Version: ",
        "key-",
        "\n",
        "dictionary ",
        "1.2.3",
    ];
    let mut random = Rng::with_seed(seed);
    let mut bytes = Vec::with_capacity(size + 16);
    while bytes.len() < size {
        match kind {
            0 => bytes.extend_from_slice(&random.u64(..).to_le_bytes()),
            1 => bytes.extend_from_slice(WORDS[random.usize(..WORDS.len())].as_bytes()),
            2 => bytes.push(b'x'),
            _ if bytes.len() > 5000 && random.usize(..3) == 0 => {
                let from = random.usize(..bytes.len() - 100);
                bytes.extend_from_within(from..from + 50);
            }
            _ => bytes.extend_from_slice(&random.u64(..).to_le_bytes()),
        }
    }
    bytes.truncate(size);
    bytes
}

/// No dictionary, trained ones, raw content ones, a tiny one, one past LZ4's 64 KiB.
pub fn dictionaries() -> Vec<Option<Dictionary>> {
    static ALL: OnceLock<Vec<Option<Dictionary>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let samples: Vec<Vec<u8>> = (0..2000).map(|i| sample(1, 128, i)).collect();
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        vec![
            None,
            Some(Dictionary::train(Codec::Zstd { level: 1 }, &samples, 8 << 10).unwrap()),
            Some(Dictionary::train(Codec::Lz4 { acceleration: 1 }, &samples, 16 << 10).unwrap()),
            Some(Dictionary::from_bytes(7, sample(1, 70_000, 1))),
            Some(Dictionary::from_bytes(8, sample(3, 65_536, 2))),
            Some(Dictionary::from_bytes(9, b"tree".to_vec())),
            Some(Dictionary::from_bytes(10, Vec::new())),
        ]
    })
    .clone()
}

/// The dictionaries that a codec takes: those of `onpair` are its own, as long as possible and short ones.
pub fn dictionaries_for(codec: Codec) -> Vec<Option<Dictionary>> {
    if codec.family() != "onpair" {
        return dictionaries();
    }
    static TRAINED: OnceLock<Vec<(Codec, Dictionary)>> = OnceLock::new();
    let trained = TRAINED.get_or_init(|| {
        let samples: Vec<Vec<u8>> = (0..2000).map(|i| sample(1, 128, i)).collect();
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        let names = NAMES.iter().filter(|name| name.starts_with("onpair"));
        let each = names.flat_map(|name| [2 << 10, 1 << 20].map(|bytes| (name.parse().unwrap(), bytes)));
        each.map(|(codec, bytes)| (codec, Dictionary::train(codec, &samples, bytes).unwrap()))
            .collect()
    });
    let own = trained
        .iter()
        .filter(|(of, _)| *of == codec)
        .map(|(_, dictionary)| Some(dictionary.clone()));
    [None, Some(Dictionary::from_bytes(10, Vec::new()))]
        .into_iter()
        .chain(own)
        .collect()
}

/// Bytes that end directly before an inaccessible page: an access past them ends the process.
pub struct Guarded {
    map: *mut u8,
    map_len: usize,
    start: usize,
    len: usize,
}

impl From<&[u8]> for Guarded {
    fn from(bytes: &[u8]) -> Self {
        // SAFETY: the call only returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let room = bytes.len().div_ceil(page).max(1) * page;
        let map_len = room + page;
        // SAFETY: a new private mapping, whose last page is made inaccessible.
        let map = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map = libc::mmap(std::ptr::null_mut(), map_len, access, flags, -1, 0);
            assert_ne!(map, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(map.byte_add(room), page, libc::PROT_NONE), 0);
            map.cast::<u8>()
        };
        let mut guarded = Self {
            map,
            map_len,
            start: room - bytes.len(),
            len: bytes.len(),
        };
        guarded.bytes_mut().copy_from_slice(bytes);
        guarded
    }
}

impl Guarded {
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has `len` accessible bytes from `start` on.
        unsafe { std::slice::from_raw_parts(self.map.add(self.start), self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `len` accessible bytes from `start` on; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.map.add(self.start), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: unmaps what was mapped, once.
        unsafe { libc::munmap(self.map.cast(), self.map_len) };
    }
}
