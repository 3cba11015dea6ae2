//! Training a file's dictionary from the blocks that RocksDB sampled.

use leafpress::codec::{Codec, Dictionary, Engine};

/// One sampled block in this many is held out of the training, to measure what the dictionary saves on unseen blocks.
const JUDGED: usize = 8;
/// Maximum number of held-out blocks.
const MAX_JUDGED: usize = 64;
/// A dictionary that saves less than one part in this many does not pay for its memory and its time at every read.
const MIN_SAVED: usize = 50;

/// Returns whether a codec can make use of a dictionary.
pub(crate) fn uses_dictionary(codec: Codec) -> bool {
    matches!(codec, Codec::Lz4 { .. } | Codec::Lz4Hc { .. } | Codec::Zstd { .. })
}

/// Returns a dictionary for blocks like the samples, or `None` when there are too few of them or it saves too little.
pub(crate) fn train(engine: &dyn Engine, samples: &[&[u8]], max_bytes: usize) -> Option<Dictionary> {
    let (judges, training): (Vec<_>, Vec<_>) = samples
        .iter()
        .enumerate()
        .partition(|(at, _)| at % JUDGED == JUDGED - 1);
    let training: Vec<&[u8]> = training.into_iter().map(|(_, sample)| *sample).collect();
    let dictionary = Dictionary::train(engine.codec(), &training, max_bytes).ok()?;
    let step = (judges.len() / MAX_JUDGED).max(1);
    let (mut with, mut without) = (0, 0);
    let mut room = Vec::new();
    for (_, sample) in judges.into_iter().step_by(step) {
        with += stored_bytes(engine, sample, Some(&dictionary), &mut room)?;
        without += stored_bytes(engine, sample, None, &mut room)?;
    }
    (with + without / MIN_SAVED < without).then_some(dictionary)
}

/// Returns the stored length of a block: raw unless it shrinks by an eighth, RocksDB's default.
fn stored_bytes(
    engine: &dyn Engine,
    sample: &[u8],
    dictionary: Option<&Dictionary>,
    room: &mut Vec<u8>,
) -> Option<usize> {
    room.resize(sample.len() / 8 * 7, 0);
    let written = engine.compress_into(sample, dictionary, room).ok()?;
    Some(written.unwrap_or(sample.len()))
}
