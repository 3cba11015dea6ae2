//! Codecs and dictionaries applied to RocksDB's data blocks: bytes, and microseconds per block, compared to zstd:3.
//!
//! `cargo run --release -p leafpress --example rocksdb_frontier -- CODECS DICTIONARY_KIB BLOCK_BYTES VALUE_BYTES
//! FILE...` where each of the first four is a comma-separated list. Values are cut from each file one after another,
//! repeatedly, until a table file is full; with `--scattered` before the other arguments, at random positions.
//!
//! - *size*: compared to zstd:3 without a dictionary. The dictionary is trained on blocks of the table itself, as
//!   RocksDB does, and its size is included.
//! - *unseen*: like *size*, but dictionary and blocks come from different parts of the file, each used once; the size
//!   of the dictionary is not included. A file shorter than the table is repeated in it, so that *size* favours a
//!   dictionary; *unseen* does not.
//! - *decode*: one dictionary serves every block. *apart*: 24 dictionaries in random order, as when each table file has
//!   its own.
//!
//! Times are the thread's CPU time, medians of several passes.

mod blocks;

use std::hint::black_box;

use blocks::{halves, scattered_values, spread, values};
use leafpress::Codec;
use leafpress::codec::{CodecError, Dictionary, Engine, EngineOptions};

const TABLE_BYTES: usize = 64 << 20;
const MEASURED_BLOCKS: usize = 600;
const MEASURED_UNSEEN_BLOCKS: usize = 300;
/// Extents of the file that are used either for training or for measuring, never for both.
const EXTENT_BYTES: usize = 16 << 10;
/// RocksDB recommends 100 times the dictionary for `zstd_max_train_bytes`.
const SAMPLE_BYTES_PER_DICTIONARY_BYTE: usize = 100;
const DICTIONARIES_APART: usize = 24;
const PASSES: usize = 5;

type Error = Box<dyn std::error::Error>;

/// Returns the CPU time of this thread in microseconds.
fn cpu_us() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes of a `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Returns the median over several passes of `work`'s microseconds, divided by `count`.
fn median_us(count: usize, mut work: impl FnMut() -> Result<(), CodecError>) -> Result<f64, CodecError> {
    let mut passes = Vec::new();
    for _ in 0..PASSES {
        let start = cpu_us();
        work()?;
        passes.push((cpu_us() - start) / count as f64);
    }
    passes.sort_by(f64::total_cmp);
    Ok(passes[PASSES / 2])
}

/// Blocks of a table and the measured ones among them, seen by the dictionary or not.
struct Data {
    table: Vec<Vec<u8>>,
    training: Vec<Vec<u8>>,
    unseen: Vec<Vec<u8>>,
}

impl Data {
    fn new(file: &[u8], scattered: bool, block_bytes: usize, value_bytes: usize) -> Self {
        let cut = |file: &[u8], total_bytes: usize| {
            if scattered {
                blocks::blocks(scattered_values(file, value_bytes, total_bytes), block_bytes)
            } else {
                blocks::blocks(values(file, value_bytes, total_bytes), block_bytes)
            }
        };
        let [training, unseen] = halves(file, EXTENT_BYTES).map(|half| cut(&half, half.len()));
        Self {
            table: cut(file, TABLE_BYTES),
            training,
            unseen,
        }
    }

    fn measured(&self) -> Vec<&[u8]> {
        spread(self.table.len(), MEASURED_BLOCKS)
            .map(|i| self.table[i].as_slice())
            .collect()
    }
}

/// Trains a dictionary from at most half of `blocks`.
fn train(codec: Codec, blocks: &[Vec<u8>], kib: usize) -> Result<Option<Dictionary>, CodecError> {
    if kib == 0 {
        return Ok(None);
    }
    let block_bytes = blocks.iter().map(Vec::len).sum::<usize>() / blocks.len();
    let count = ((kib << 10) * SAMPLE_BYTES_PER_DICTIONARY_BYTE / block_bytes).min(blocks.len());
    let samples: Vec<&[u8]> = spread(blocks.len(), count).map(|i| blocks[i].as_slice()).collect();
    Dictionary::train(codec, &samples, kib << 10).map(Some)
}

fn compressed_bytes(engine: &dyn Engine, dictionary: Option<&Dictionary>, raws: &[&[u8]]) -> Result<usize, CodecError> {
    let mut out = Vec::new();
    let mut sum = 0;
    for raw in raws {
        out.clear();
        sum += engine.compress(raw, dictionary, &mut out)?;
    }
    Ok(sum)
}

/// A row of the table.
struct Line {
    bytes: f64,
    unseen_bytes: f64,
    encode_us: f64,
    decode_us: f64,
    apart_us: Option<f64>,
}

fn measure(codec: Codec, kib: usize, data: &Data) -> Result<Line, CodecError> {
    let engine = codec.open(&EngineOptions::default())?;
    let engine = &*engine;
    let raws = data.measured();
    let dictionary = train(codec, &data.table, kib)?;
    let dictionary = dictionary.as_ref();
    let mut out = Vec::new();
    let mut ends = Vec::new();
    let encode_us = median_us(raws.len(), || {
        out.clear();
        ends.clear();
        for raw in &raws {
            engine.compress(raw, dictionary, &mut out)?;
            ends.push(out.len());
        }
        Ok(())
    })?;
    let mut from = 0;
    let blocks: Vec<(&[u8], &[u8])> = raws
        .iter()
        .zip(&ends)
        .map(|(raw, &end)| (&out[std::mem::replace(&mut from, end)..end], *raw))
        .collect();
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    fastrand::Rng::with_seed(3).shuffle(&mut order);
    let one: Vec<Option<&Dictionary>> = vec![dictionary];
    let decode_us = decode(engine, &blocks, &order, &one)?;
    let apart_us = dictionary
        .map(|dictionary| {
            let copies: Vec<Dictionary> = (0..DICTIONARIES_APART)
                .map(|_| Dictionary::from_bytes(dictionary.id(), dictionary.bytes()))
                .collect();
            let copies: Vec<Option<&Dictionary>> = copies.iter().map(Some).collect();
            decode(engine, &blocks, &order, &copies)
        })
        .transpose()?;
    let stored = dictionary.map_or(0, |d| d.bytes().len()) as f64 * raws.len() as f64 / data.table.len() as f64;
    let unseen: Vec<&[u8]> = spread(data.unseen.len(), MEASURED_UNSEEN_BLOCKS)
        .map(|i| data.unseen[i].as_slice())
        .collect();
    let trained_apart = train(codec, &data.training, kib)?;
    Ok(Line {
        bytes: (out.len() as f64 + stored) / raws.len() as f64,
        unseen_bytes: compressed_bytes(engine, trained_apart.as_ref(), &unseen)? as f64 / unseen.len() as f64,
        encode_us,
        decode_us,
        apart_us,
    })
}

/// Returns the microseconds for a block, decoded with any of `dictionaries` and copied to RocksDB's buffer.
fn decode(
    engine: &dyn Engine,
    blocks: &[(&[u8], &[u8])],
    order: &[usize],
    dictionaries: &[Option<&Dictionary>],
) -> Result<f64, CodecError> {
    let mut wanted = vec![0; blocks.iter().map(|(_, raw)| raw.len()).max().unwrap_or(0)];
    let mut random = fastrand::Rng::with_seed(5);
    median_us(blocks.len(), || {
        for &i in order {
            let (block, raw) = blocks[i];
            let wanted = &mut wanted[..raw.len()];
            engine.decompress(block, dictionaries[random.usize(..dictionaries.len())], wanted)?;
            assert!(black_box(&*wanted).first() == raw.first());
        }
        Ok(())
    })
}

fn list<T: std::str::FromStr>(list: &str) -> Result<Vec<T>, T::Err> {
    list.split(',').map(str::parse).collect()
}

fn main() -> Result<(), Error> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let scattered = args.first().is_some_and(|first| first == "--scattered");
    args.drain(..usize::from(scattered));
    let [codecs, dictionaries, block_bytes, value_bytes, files @ ..] = args.as_slice() else {
        return Err(
            "usage: rocksdb_frontier [--scattered] CODECS DICTIONARY_KIB BLOCK_BYTES VALUE_BYTES FILE...".into(),
        );
    };
    for file in files {
        let bytes = std::fs::read(file)?;
        let name = file.rsplit('/').next().unwrap_or(file);
        for block_bytes in list::<usize>(block_bytes)? {
            for value_bytes in list::<usize>(value_bytes)? {
                println!("\n{name}, blocks of {block_bytes}, values of {value_bytes}\n");
                let data = Data::new(&bytes, scattered, block_bytes, value_bytes);
                table(&data, &list(codecs)?, &list(dictionaries)?)?;
            }
        }
    }
    Ok(())
}

fn table(data: &Data, codecs: &[Codec], dictionaries: &[usize]) -> Result<(), Error> {
    println!("| codec | dict KiB | size pct | unseen pct | decode us | of zstd:3 | apart us | encode us | of zstd:3 |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for &codec in codecs {
        let has_dictionary = codec.open(&EngineOptions::default())?.supports_dictionary();
        for &kib in dictionaries.iter().filter(|&&kib| kib == 0 || has_dictionary) {
            let measured = measure(codec, kib, data)?;
            // The baseline is measured with every row, so that a busy machine slows both.
            let base = measure(Codec::Zstd { level: 3 }, 0, data)?;
            println!(
                "| {codec} | {kib} | {:+.1} | {:+.1} | {:.1} | {:.2} | {} | {:.0} | {:.2} |",
                100.0 * (measured.bytes / base.bytes - 1.0),
                100.0 * (measured.unseen_bytes / base.unseen_bytes - 1.0),
                measured.decode_us,
                measured.decode_us / base.decode_us,
                measured.apart_us.map_or("".to_owned(), |us| format!("{us:.1}")),
                measured.encode_us,
                measured.encode_us / base.encode_us,
            );
        }
    }
    Ok(())
}
