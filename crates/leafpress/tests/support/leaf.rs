//! Leaves compressed from arbitrary records and compacted with arbitrary changes, without a tree, and read after each
//! step.

use std::collections::BTreeMap;
use std::sync::Arc;

use leafpress::codec::{Codec, Engine, EngineOptions};
use leafpress::tree::fuzz::Leaves;
use leafpress::tree::{DictionaryChoice, MAX_KEY_BYTES};
use leafpress::{Layout, Tree};

use super::config::given_dictionary;
use super::damage::{Damage, Damaging};
use super::hostile::Hostile;
use super::keys::KeyShape;
use super::leaf_reader::{Model, Reader, inline_len};
use super::values::Value;

/// A leaf is compacted with the contents of its landing buffer, of at most this size, and one more write. An entry
/// takes `ENTRY_BYTES` in addition to its key and its value.
const MAX_LANDING_BYTES: usize = 16 << 10;
const ENTRY_BYTES: usize = 9;

/// How numbers are turned into keys.
#[derive(Debug, Clone)]
pub enum Keys {
    Shape(KeyShape),
    /// A prefix and the last bytes of `base + step * n`.
    Numbers {
        prefix: Vec<u8>,
        bytes: u8,
        base: u64,
        step: u64,
    },
}

impl Keys {
    fn key(&self, n: u16) -> Vec<u8> {
        match self {
            Keys::Shape(shape) => shape.key(n),
            Keys::Numbers {
                prefix,
                bytes,
                base,
                step,
            } => {
                let number = base.wrapping_add(step.wrapping_mul(n.into())).to_be_bytes();
                [prefix, &number[8 - usize::from(*bytes).min(8)..]].concat()
            }
        }
    }
}

/// Records of consecutive numbers, each value `longer` bytes longer than the previous one.
#[derive(Debug, Clone)]
pub struct Run {
    pub first: u16,
    pub count: u16,
    pub value: Value,
    pub longer: u16,
}

impl Run {
    fn numbers(&self) -> impl Iterator<Item = u16> {
        let first = self.first;
        (0..self.count).map(move |i| first.wrapping_add(i))
    }

    fn records<'r>(&'r self, keys: &'r Keys) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + 'r {
        self.numbers().zip(0u32..).map(|(number, i)| {
            let len = self.value.len + u32::from(self.longer) * i;
            let value = Value {
                // Most of them fit into a frame.
                len: if self.longer > 0 { len % 4096 } else { len },
                seed: self.value.seed.wrapping_add(number),
                ..self.value
            };
            (keys.key(number), value.bytes())
        })
    }
}

/// Changes with which a leaf is compacted.
#[derive(Debug, Clone)]
pub struct Round {
    pub puts: Vec<Run>,
    /// The values of these are ignored.
    pub removes: Vec<Run>,
    /// Whether every frame is recompressed.
    pub anew: bool,
}

/// The codec of the frames.
#[derive(Debug, Clone, Copy)]
pub enum Coder {
    Codec(Codec),
    /// Blocks of four bytes: every longer frame has to be decoded.
    Numbers,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub layout: Layout,
    pub leaf_bytes: usize,
    pub frame_bytes: usize,
    pub coder: Coder,
    pub dictionary: bool,
    /// Whether the blocks of one-record frames hold the keys.
    pub keyed: bool,
    pub keys: Keys,
    pub runs: Vec<Run>,
    /// Records of other keys.
    pub others: Vec<(Vec<u8>, Value)>,
    pub rounds: Vec<Round>,
    /// More keys to search for.
    pub probes: Vec<Vec<u8>>,
    /// Corruptions of one frame each, by its number among all.
    pub damages: Vec<(u16, Damage)>,
}

/// Compresses the records, compacts the leaves with the changes, and reads them after each step; then reads them
/// corrupted.
pub fn check(case: &Case) {
    let mut model: Model = case.runs.iter().flat_map(|run| run.records(&case.keys)).collect();
    for (key, value) in &case.others {
        model.insert(key[..key.len().min(MAX_KEY_BYTES)].to_vec(), value.bytes());
    }
    let engine: Arc<dyn Engine> = match case.coder {
        Coder::Numbers => Arc::new(Hostile::default()),
        Coder::Codec(codec) => codec.open(&EngineOptions::default()).expect("a codec compiled in"),
    };
    let engine = Arc::new(Damaging::new(engine));
    let records: Vec<(&[u8], &[u8])> = model.iter().map(|(key, value)| (&**key, &**value)).collect();
    let mut leaves = Leaves::build(tree(case, engine.clone()), &records).expect("records that are within bounds");
    let packed = case.layout == Layout::Ordered && alike(&records);
    let keyed = case.keyed && !packed && case.layout == Layout::Ordered && case.frame_bytes == 1;
    assert!(
        leaves
            .iter()
            .all(|leaf| leaf.is_packed() == packed && leaf.is_keyed() == keyed),
        "the form"
    );
    let mut reader = Reader::new(&case.probes);
    reader.check_leaves(&leaves, &model);
    for round in &case.rounds {
        compact(&mut leaves, round, &case.keys, &mut model);
        reader.check_leaves(&leaves, &model);
    }
    for (number, damage) in &case.damages {
        reader.check_damaged(&leaves, &engine, *number, damage);
    }
    reader.check_leaves(&leaves, &model);
}

fn tree(case: &Case, engine: Arc<Damaging>) -> Tree {
    let dictionary = match case.coder {
        Coder::Codec(codec) if case.dictionary && engine.supports_dictionary() => {
            DictionaryChoice::Given(given_dictionary(codec))
        }
        _ => DictionaryChoice::Off,
    };
    Tree::builder()
        .engine(engine)
        .layout(case.layout)
        .leaf_bytes(case.leaf_bytes)
        .frame_bytes(case.frame_bytes)
        .keys_in_blocks(case.keyed)
        .dictionary(dictionary)
        .build()
        .expect("options within bounds")
}

fn compact(leaves: &mut Leaves, round: &Round, keys: &Keys, model: &mut Model) {
    let mut changes: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
    for run in &round.removes {
        changes.extend(run.numbers().map(|number| (keys.key(number), None)));
    }
    for run in &round.puts {
        changes.extend(run.records(keys).map(|(key, value)| (key, Some(value))));
    }
    // From the back: leaves that split do not move those before them.
    for index in (0..leaves.separators().len() + 1).rev() {
        let mut landed = 0;
        let here: Vec<(&[u8], Option<&[u8]>)> = changes
            .iter()
            .filter(|(key, _)| leaves.leaf_for(key) == index)
            .map(|(key, value)| (&**key, value.as_deref()))
            .take_while(|(key, value)| {
                let fits = landed <= MAX_LANDING_BYTES;
                landed += ENTRY_BYTES + key.len() + value.map_or(0, inline_len);
                fits
            })
            .collect();
        leaves
            .compact(index, &here, round.anew)
            .expect("changes that are within bounds");
        for (key, value) in here {
            match value {
                Some(value) => model.insert(key.to_vec(), value.to_vec()),
                None => model.remove(key),
            };
        }
    }
}

/// Returns whether keys have one length and differ in their last eight bytes only.
fn alike(records: &[(&[u8], &[u8])]) -> bool {
    let Some((first, _)) = records.first() else {
        return true;
    };
    let same = &first[..first.len().saturating_sub(8)];
    records
        .iter()
        .all(|(key, _)| key.len() == first.len() && key.starts_with(same))
}
