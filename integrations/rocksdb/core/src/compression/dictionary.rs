//! Training a file's dictionary from the blocks that RocksDB sampled.

use leafpress::codec::{Codec, Dictionary, Engine};

/// Sampled blocks that are compressed with and without the dictionary, to see what it saves.
const JUDGED_BLOCKS: usize = 64;
/// A dictionary that saves less than one part in this many is not worth its place in memory and its time at every read.
const LEAST_SAVED: usize = 50;

/// A dictionary for blocks like the samples, or `None` when there are too few of them or it saves too little.
pub(crate) fn train(engine: &dyn Engine, samples: &[&[u8]], max_bytes: usize) -> Option<Dictionary> {
    // The last sample may be cut short: RocksDB fills its sample buffer to the byte.
    let dictionary = Dictionary::train(engine.codec(), samples, max_bytes).ok()?;
    saves(engine, samples, &dictionary).then_some(dictionary)
}

/// Whether a codec can make use of a dictionary.
pub(crate) fn uses_dictionary(codec: Codec) -> bool {
    matches!(codec, Codec::Lz4 { .. } | Codec::Zstd { .. })
}

/// Whether some of the samples, spread evenly, become smaller with the dictionary by enough.
fn saves(engine: &dyn Engine, samples: &[&[u8]], dictionary: &Dictionary) -> bool {
    let step = (samples.len() / JUDGED_BLOCKS).max(1);
    let (mut with, mut without) = (0, 0);
    let mut block = Vec::new();
    for sample in samples.iter().step_by(step) {
        for (dictionary, sum) in [(Some(dictionary), &mut with), (None, &mut without)] {
            block.clear();
            match engine.compress(sample, dictionary, &mut block) {
                Ok(written) => *sum += written.min(sample.len()),
                Err(_) => return false,
            }
        }
    }
    with + without / LEAST_SAVED < without
}
