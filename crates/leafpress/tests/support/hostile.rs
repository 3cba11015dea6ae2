//! An engine that returns wrong bytes, as bad memory or a faulty device would, and operations on a tree above it.
//!
//! Permitted reactions of a tree to wrong bytes: an error, or records decoded from them. Forbidden ones: a panic, or
//! losing or changing a record of a frame that was always decoded correctly.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leafpress::codec::{Codec, CodecError, Dictionary, Engine, Scratch};
use leafpress::tree::{DictionaryChoice, TreeError};
use leafpress::{Layout, Tree};

use super::keys::KeyShape;

/// A corruption of a decoded block.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The byte at this offset modulo the length is XORed with this mask.
    Flip(u16, u8),
    /// Bytes from this offset modulo the length on are replaced by these.
    Splice(u16, Vec<u8>),
    /// The bytes before the first value, where a frame's last keys are stored, are replaced by these.
    BeforeValues(Vec<u8>),
    /// The bytes of another block, truncated or padded.
    Other(u16),
    /// This many bytes more or fewer than requested.
    Length(i8),
    /// An error.
    Refused,
}

/// When faults are injected.
#[derive(Debug, Clone)]
pub struct Plan {
    pub fault: Fault,
    /// Number of blocks that are decoded correctly before the first fault.
    pub after: u8,
    /// Of the later blocks, one of `one_in` is corrupted, always the same ones.
    pub one_in: u8,
}

#[derive(Debug, Default)]
struct State {
    /// Raw bytes of every block; a compressed block is its number in this list.
    raws: Vec<Vec<u8>>,
    plan: Option<Plan>,
    /// Numbers of the records whose frames were decoded wrongly.
    suspects: BTreeSet<u16>,
    faults: u64,
}

/// The engine: a compressed block is the number of its raw bytes, which the engine keeps.
#[derive(Debug, Default)]
pub struct Hostile(Mutex<State>);

/// [`Hostile`] with the trait's own `decode`.
#[derive(Debug)]
struct Decompressing<'e>(&'e Hostile);

const BLOCK_BYTES: usize = 4;
static ZEROS: [u8; 1 << 17] = [0; 1 << 17];

impl Hostile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn raw(&self, block: &[u8]) -> Result<(usize, Vec<u8>), CodecError> {
        let number = block
            .try_into()
            .map_or(usize::MAX, |bytes| u32::from_le_bytes(bytes) as usize);
        let raw = self
            .raws
            .get(number)
            .cloned()
            .ok_or_else(|| corrupt("an unknown block"))?;
        Ok((number, raw))
    }

    /// Returns the fault for the decoding of this block now.
    fn strike(&mut self, number: usize, raw: &[u8]) -> Option<Fault> {
        let plan = self.plan.as_mut()?;
        if plan.after > 0 {
            plan.after -= 1;
            return None;
        }
        if !number.is_multiple_of(usize::from(plan.one_in.max(1))) {
            return None;
        }
        let fault = plan.fault.clone();
        self.faults += 1;
        self.suspects.extend(numbers_in(raw));
        Some(fault)
    }
}

fn corrupt(reason: &'static str) -> CodecError {
    CodecError::Corrupt {
        codec: "hostile",
        reason: reason.into(),
    }
}

impl Engine for Hostile {
    fn codec(&self) -> Codec {
        Codec::Lz4 { acceleration: 1 }
    }

    fn compress(&self, raw: &[u8], _: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let mut state = self.state();
        out.extend_from_slice(&(state.raws.len() as u32).to_le_bytes());
        state.raws.push(raw.to_vec());
        Ok(BLOCK_BYTES)
    }

    fn decompress(&self, block: &[u8], _: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        let mut state = self.state();
        let (number, mut found) = state.raw(block)?;
        match state.strike(number, &found) {
            Some(Fault::Flip(at, mask)) if !found.is_empty() => {
                let at = usize::from(at) % found.len();
                found[at] ^= mask;
            }
            Some(Fault::Splice(at, bytes)) if !found.is_empty() => {
                let at = usize::from(at) % found.len();
                for (target, byte) in found[at..].iter_mut().zip(bytes) {
                    *target = byte;
                }
            }
            Some(Fault::BeforeValues(bytes)) => {
                let values = found
                    .windows(MARK.len())
                    .position(|bytes| bytes == MARK)
                    .unwrap_or_default();
                if let Some(at) = values.checked_sub(bytes.len()) {
                    found[at..values].copy_from_slice(&bytes);
                }
            }
            Some(Fault::Other(other)) => {
                let len = found.len();
                found = state.raws[usize::from(other) % state.raws.len()].clone();
                found.resize(len, 0);
            }
            Some(Fault::Length(_) | Fault::Refused) => return Err(corrupt("injected by the test")),
            _ => {}
        }
        if raw.len() != found.len() {
            return Err(corrupt("another length"));
        }
        raw.copy_from_slice(&found);
        Ok(())
    }

    fn decode<'s>(
        &self,
        block: &[u8],
        dictionary: Option<&Dictionary>,
        raw_len: usize,
        needed: usize,
        scratch: &'s mut Scratch,
    ) -> Result<&'s [u8], CodecError> {
        {
            let mut state = self.state();
            if let Some(&Plan {
                fault: Fault::Length(more),
                ..
            }) = state.plan.as_ref()
            {
                let (number, raw) = state.raw(block)?;
                if state.strike(number, &raw).is_some() {
                    let wanted_len = if more < 0 { needed } else { raw_len };
                    return Ok(&ZEROS[..wanted_len.saturating_add_signed(more.into()).min(ZEROS.len())]);
                }
            }
        }
        Decompressing(self).decode(block, dictionary, raw_len, needed, scratch)
    }
}

impl Engine for Decompressing<'_> {
    fn codec(&self) -> Codec {
        self.0.codec()
    }

    fn compress(&self, raw: &[u8], dictionary: Option<&Dictionary>, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.0.compress(raw, dictionary, out)
    }

    fn decompress(&self, block: &[u8], dictionary: Option<&Dictionary>, raw: &mut [u8]) -> Result<(), CodecError> {
        self.0.decompress(block, dictionary, raw)
    }
}

/// Marks a record's number in its value.
const MARK: [u8; 2] = [0xA5, 0xC3];
/// Length of a value with its number.
const MARKED_BYTES: usize = MARK.len() + 2;
/// Longer values are stored outside the frames, which then do not show their numbers.
const MAX_INLINE_BYTES: usize = 2048;

fn value(number: u16, version: u8, len: usize) -> Vec<u8> {
    let mut value = [MARK, number.to_be_bytes()].concat();
    value.resize(len.max(MARKED_BYTES), version);
    value.truncate(len);
    value
}

fn numbers_in(raw: &[u8]) -> impl Iterator<Item = u16> {
    let marked = raw.windows(MARKED_BYTES).filter(|bytes| bytes.starts_with(&MARK));
    marked.map(|bytes| u16::from_be_bytes([bytes[2], bytes[3]]))
}

/// One operation. Keys are numbers that a [`KeyShape`] turns into bytes.
#[derive(Debug, Clone)]
pub enum Step {
    /// Inserts `count` keys from the first on, with values of this length.
    Put {
        first: u16,
        count: u8,
        len: u16,
    },
    Insert(u16, u16),
    Update(u16, u16),
    /// Removes `count` keys from the first on.
    Remove {
        first: u16,
        count: u8,
    },
    Get(u16),
    Contains(u16),
    /// Scans from a key on, or downwards from it.
    Scan {
        from: u16,
        back: bool,
    },
    Compact,
    Settle,
    Validate,
    Stats,
    /// Decoding is faulty as planned from now on, or correct again.
    Plan(Option<Plan>),
}

/// The options that affect the contents of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub layout: Layout,
    pub frame_bytes: usize,
    /// Whether the blocks of one-record frames hold the keys.
    pub keyed: bool,
    pub landing_bytes: usize,
    pub shape: KeyShape,
    /// Whether leaves are warm and cold, and records hot. Not with sub-pages.
    pub has_temperatures: bool,
}

struct Run {
    tree: Tree,
    engine: Arc<Hostile>,
    shape: KeyShape,
    keyed: bool,
    /// The records inserted into the tree, with the keys' numbers.
    inserted: BTreeMap<Vec<u8>, (u16, Vec<u8>)>,
    version: u8,
}

/// Executes the steps, then makes decoding correct again and checks the contents.
pub fn check(options: Options, steps: &[Step]) {
    let engine = Arc::new(Hostile::default());
    let has_temperatures = options.has_temperatures && options.layout == Layout::Ordered;
    let codec = if has_temperatures {
        Codec::Auto { level: 1 }
    } else {
        Codec::None
    };
    let tree = Tree::builder()
        .codec(codec)
        .engine(engine.clone())
        .dictionary(DictionaryChoice::Off)
        .leaf_bytes(1024)
        .layout(options.layout)
        .frame_bytes(options.frame_bytes)
        .keys_in_blocks(options.keyed)
        .landing_bytes(options.landing_bytes)
        .build()
        .expect("options within bounds");
    let mut run = Run {
        tree,
        engine,
        shape: options.shape,
        // With temperatures the frame length is that of cold leaves.
        keyed: options.keyed && options.layout == Layout::Ordered && (has_temperatures || options.frame_bytes == 1),
        inserted: BTreeMap::new(),
        version: 0,
    };
    for step in steps {
        run.apply(step);
    }
    run.engine.state().plan = None;
    run.whole("at the end");
    match run.tree.compact() {
        // The only key of a keyed leaf may have been decoded wrongly, with its fingerprint, when the leaf was split:
        // then its record is out of the leaf's range, and the leaf stays unchanged.
        Err(error) if run.keyed && run.engine.state().faults > 0 => drop(typed::<()>(Err(error))),
        compacted => compacted.expect("a compaction of what was written from checked frames"),
    }
    run.whole("after a compaction");
}

/// Returns `None` for an error that wrong bytes may cause.
fn typed<T>(result: Result<T, TreeError>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(TreeError::Codec(CodecError::Corrupt { .. }) | TreeError::Invalid(_)) => None,
        Err(other) => panic!("{other:?}"),
    }
}

impl Run {
    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Put { first, count, len } => {
                for i in 0..u16::from(count) {
                    self.write(first.wrapping_add(i), len, |tree, key, value| {
                        tree.insert(key, value).map(|_| true)
                    });
                }
            }
            Step::Insert(number, len) => self.write(number, len, Tree::insert_if_absent),
            Step::Update(number, len) => self.write(number, len, Tree::replace),
            Step::Remove { first, count } => {
                for i in 0..u16::from(count) {
                    let key = self.shape.key(first.wrapping_add(i));
                    if typed(self.tree.remove(&key)).is_some() {
                        self.inserted.remove(&key);
                    }
                }
            }
            Step::Get(number) => self.get(&self.shape.key(number)),
            Step::Contains(number) => {
                let key = self.shape.key(number);
                let found = typed(self.tree.contains_key(&key));
                assert!(found != Some(false) || !self.is_sure(&key), "{key:02x?} is missing");
            }
            Step::Scan { from, back } => {
                let key = self.shape.key(from);
                let (mut records, mut last): (usize, Option<Vec<u8>>) = (0, None);
                let mut range = if back {
                    self.tree.range(..=key.as_slice())
                } else {
                    self.tree.range(key.as_slice()..)
                };
                while let Some(Some((key, _))) = (if back { range.next_back() } else { range.next() }).map(typed) {
                    let ordered = last.is_none_or(|last| if back { key < last } else { key > last });
                    assert!(ordered, "{key:02x?} is out of order");
                    last = Some(key);
                    records += 1;
                    assert!(records < 1 << 20, "a scan without end");
                }
            }
            Step::Compact => drop(typed(self.tree.compact())),
            Step::Settle => self.tree.settle().expect("failures leave leaves unchanged"),
            Step::Validate => drop(typed(self.tree.validate())),
            Step::Stats => {
                let _ = self.tree.stats();
            }
            Step::Plan(ref plan) => self.engine.state().plan = plan.clone(),
        }
    }

    fn write(&mut self, number: u16, len: u16, write: impl Fn(&Tree, &[u8], &[u8]) -> Result<bool, TreeError>) {
        self.version = self.version.wrapping_add(1);
        let (key, value) = (self.shape.key(number), value(number, self.version, len.into()));
        // Key shapes may give one key to several numbers: the frame may hold it under an earlier one.
        let was = self.engine.state().suspects.remove(&number);
        if typed(write(&self.tree, &key, &value)) == Some(true) {
            self.inserted.insert(key, (number, value));
        } else if was {
            self.engine.state().suspects.insert(number);
        }
    }

    /// Returns whether the tree must know the key's value: its frame has never been decoded wrongly.
    fn is_sure(&self, key: &[u8]) -> bool {
        let state = self.engine.state();
        self.inserted.get(key).is_some_and(|(number, value)| {
            let marked = (MARKED_BYTES..=MAX_INLINE_BYTES).contains(&value.len());
            state.faults == 0 || marked && !state.suspects.contains(number)
        })
    }

    fn get(&self, key: &[u8]) {
        let Some(found) = typed(self.tree.get(key)) else {
            return assert!(!self.is_sure(key), "{key:02x?} cannot be read");
        };
        match self.inserted.get(key) {
            Some((_, value)) => assert!(
                !self.is_sure(key) || found.as_ref() == Some(value),
                "{key:02x?} has another value"
            ),
            None => assert!(
                found.is_none() || self.engine.state().faults > 0,
                "{key:02x?} was never inserted"
            ),
        }
    }

    /// Checks that nothing that was decoded correctly is missing, and that all records are readable.
    fn whole(&self, when: &str) {
        for key in self.inserted.keys() {
            self.get(key);
        }
        let up = self.tree.range(..).collect::<Result<Vec<_>, _>>();
        let down = self.tree.range(..).rev().collect::<Result<Vec<_>, _>>();
        // A key of a block that was decoded wrongly, but has its fingerprint, may have misled insertions of others into
        // its leaf: scans may fail until a compaction sorts them.
        if self.keyed && self.engine.state().faults > 0 {
            drop((typed(up), typed(down), typed(self.tree.validate())));
            let _ = self.tree.stats();
            return;
        }
        let (up, mut down) = (up.expect(when), down.expect(when));
        down.reverse();
        assert!(up == down, "{when}: the two ends of a scan do not agree");
        assert!(up.is_sorted_by(|a, b| a.0 < b.0), "{when}: a scan is out of order");
        let scanned: BTreeMap<_, _> = up.into_iter().collect();
        for (key, (_, value)) in &self.inserted {
            assert!(
                !self.is_sure(key) || scanned.get(key) == Some(value),
                "{when}: {key:02x?}"
            );
        }
        let whole = typed(self.tree.validate()).is_some();
        assert!(
            whole || self.engine.state().faults > 0,
            "{when}: an invariant is broken"
        );
        let _ = self.tree.stats();
    }
}
