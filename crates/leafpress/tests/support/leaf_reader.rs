//! Reading a leaf: every accessor of its sections is compared with its records, also while one of its frames decodes to
//! corrupted bytes.

use std::collections::BTreeMap;
use std::ops::Bound;

use leafpress::codec::{CodecError, Scratch};
use leafpress::tree::fuzz::{LeafView, Leaves, fingerprint_of};
use leafpress::tree::{MAX_KEY_BYTES, TreeError};

use super::damage::{Damage, Damaging};

/// Longer values are stored outside the frames.
const MAX_INLINE_BYTES: usize = 2048;
/// Number of a leaf's records next to whose keys absent keys are searched for.
const PROBED: usize = if cfg!(miri) { 4 } else { 48 };

/// The expected contents of leaves.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// The records of a leaf in slot order.
type Records = Vec<(Vec<u8>, Vec<u8>)>;
type Slots<'r> = BTreeMap<&'r [u8], usize>;

/// Returns the leaf's records in slot order, by its frames.
fn read(leaf: &LeafView<'_>, scratch: &mut Scratch) -> Records {
    let mut records = Records::new();
    for frame in 0..leaf.frames() {
        let slots = leaf.slots(frame).expect("a frame");
        assert_eq!(slots.start, records.len(), "slots of frame {frame}");
        leaf.visit_frame(frame, scratch, |slot, key, value| {
            assert_eq!(slot, records.len(), "a slot of frame {frame}");
            records.push((key.to_vec(), value.to_vec()));
        })
        .expect("a frame")
        .expect("a whole frame");
        assert_eq!(slots.end, records.len(), "slots of frame {frame}");
    }
    assert_eq!(leaf.count(), records.len());
    assert!(leaf.slots(leaf.frames()).is_none());
    records
}

/// Returns the length of the part of a value that its frame holds.
pub fn inline_len(value: &[u8]) -> usize {
    if value.len() > MAX_INLINE_BYTES { 0 } else { value.len() }
}

/// Returns `None` for an error that corruption may cause.
fn typed<T>(result: Result<T, TreeError>) -> Option<T> {
    match result {
        Ok(read) => Some(read),
        Err(TreeError::Codec(CodecError::Corrupt { .. })) => None,
        Err(other) => panic!("{other:?}"),
    }
}

/// Reads leaves by every accessor.
pub struct Reader<'c> {
    /// One for all reads: remains of one frame must not show in the next.
    scratch: Scratch,
    /// More keys to search for.
    probes: &'c [Vec<u8>],
}

impl<'c> Reader<'c> {
    pub fn new(probes: &'c [Vec<u8>]) -> Self {
        Self {
            scratch: Scratch::default(),
            probes,
        }
    }

    /// Compares the leaves with the records that should be in them.
    pub fn check_leaves(&mut self, leaves: &Leaves, model: &Model) {
        let separators = leaves.separators();
        assert!(separators.is_sorted_by(|a, b| a < b), "separators between leaves");
        assert_eq!(leaves.iter().count(), separators.len() + 1);
        let mut rest = model.iter().peekable();
        for (index, leaf) in leaves.iter().enumerate() {
            let end = separators.get(index);
            let mut expected = Records::new();
            while let Some((key, value)) = rest.next_if(|(key, _)| end.is_none_or(|end| *key < end)) {
                expected.push((key.clone(), value.clone()));
            }
            let records = read(&leaf, &mut self.scratch);
            let mut sorted = records.clone();
            if leaf.is_hashed() {
                sorted.sort();
            }
            assert!(sorted == expected, "the records of leaf {index}");
            check_sections(&leaf, &records);
            self.check_frames(&leaf, &records);
            self.check_lookups(&leaf, &records);
        }
    }

    /// Checks what each frame decodes to, whole and in part.
    fn check_frames(&mut self, leaf: &LeafView<'_>, records: &Records) {
        for frame in 0..leaf.frames() {
            let raw_len = leaf.raw_len(frame).expect("a frame");
            let whole = leaf
                .decode(frame, raw_len, &mut self.scratch)
                .expect("a frame")
                .expect("a whole frame");
            assert_eq!(whole.len(), raw_len, "raw length of frame {frame}");
            let slots = leaf.slots(frame).expect("a frame");
            let values: Vec<u8> = records[slots]
                .iter()
                .filter(|(_, value)| value.len() <= MAX_INLINE_BYTES)
                .flat_map(|(_, value)| value.clone())
                .collect();
            let keys_len = raw_len.checked_sub(values.len()).expect("room for the values");
            assert!(whole[keys_len..] == values, "values in frame {frame}");
            if leaf.is_keyed() {
                let key = &records[leaf.slots(frame).expect("a frame").start].0;
                assert!(
                    whole[..keys_len] == key[leaf.prefix().len()..],
                    "the key in frame {frame}"
                );
            } else {
                // Keys that are stored in the directory are not in the frame.
                assert!(!(leaf.is_packed() || leaf.is_single()) || keys_len == 0);
            }
            for needed in [0, 1, raw_len / 2, raw_len.saturating_sub(1)] {
                let needed = needed.min(raw_len);
                let part = leaf.decode(frame, needed, &mut self.scratch).expect("a frame");
                let part = part.expect("a whole frame");
                assert!(
                    part.len() >= needed && whole.starts_with(&part),
                    "part of frame {frame}"
                );
            }
        }
        for (slot, (_, value)) in records.iter().enumerate() {
            let found = leaf.value(slot, &mut self.scratch).expect("a slot");
            assert!(found.expect("a whole frame") == *value, "the value in slot {slot}");
        }
    }

    /// Checks present keys, and absent keys next to them.
    fn check_lookups(&mut self, leaf: &LeafView<'_>, records: &Records) {
        let slots: Slots<'_> = records.iter().zip(0..).map(|((key, _), slot)| (&**key, slot)).collect();
        for key in slots.keys() {
            self.look_up(leaf, &slots, key);
        }
        let few = |slot: &usize| slot.is_multiple_of(records.len() / PROBED + 1);
        for slot in (0..records.len()).filter(few) {
            for key in neighbours(&records[slot].0) {
                self.look_up(leaf, &slots, &key);
            }
        }
        for key in self.probes.iter().map(Vec::as_slice).chain([&[][..], &[0xff; 1024]]) {
            self.look_up(leaf, &slots, key);
        }
    }

    fn look_up(&mut self, leaf: &LeafView<'_>, slots: &Slots<'_>, key: &[u8]) {
        let slot = slots.get(key).copied();
        let found = leaf.locate(key, &mut self.scratch).expect("whole frames");
        assert_eq!(found.map(|(slot, _)| slot), slot, "where {key:02x?} is");
        if let Some((slot, frame)) = found {
            assert!(leaf.slots(frame).is_some_and(|slots| slots.contains(&slot)));
        }
        if leaf.is_packed() || leaf.count() == 0 {
            assert_eq!(leaf.search_exact(key), Some(found), "where {key:02x?} is, exactly");
        } else {
            assert_eq!(leaf.search_exact(key), None);
        }
        if let Some(searched) = leaf.search_packed(key) {
            // Packed keys are in order: the next one's slot.
            let next = slots.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next();
            let next = next.map_or(leaf.count(), |(_, slot)| *slot);
            assert_eq!(searched, slot.ok_or(next), "where {key:02x?} would be");
        }
        if let Some(frame) = leaf.frame_for(key) {
            let not_above = |frame: usize| leaf.first_key(frame).is_some_and(|first| *first <= *key);
            assert!(frame == 0 || not_above(frame), "the frame for {key:02x?}");
            assert!(
                frame + 1 == leaf.frames() || !not_above(frame + 1),
                "the frame for {key:02x?}"
            );
        }
    }

    /// Reads a leaf one of whose frames decodes to corrupted bytes.
    pub fn check_damaged(&mut self, leaves: &Leaves, engine: &Damaging, number: u16, damage: &Damage) {
        let frames = leaves.iter().map(|leaf| leaf.frames()).sum::<usize>();
        let Some(mut number) = usize::from(number).checked_rem(frames) else {
            return;
        };
        for leaf in leaves.iter() {
            if number < leaf.frames() {
                let records = read(&leaf, &mut self.scratch);
                let block = leaf.block(number).expect("a frame");
                // Frames with identical blocks are corrupted alike.
                let damaged: Vec<Option<Damaged>> = (0..leaf.frames())
                    .map(|frame| {
                        let raw_len = leaf.raw_len(frame)?;
                        let struck = leaf.block(frame) == Some(block) && block.len() != raw_len;
                        let raw = leaf.decode(frame, raw_len, &mut self.scratch)?.expect("a whole frame");
                        struck.then(|| Damaged {
                            raw: damage.done_to(&raw),
                            raw_len,
                        })
                    })
                    .collect();
                engine.strike(Some((block, damage)));
                for (frame, damaged) in damaged.iter().enumerate() {
                    self.visit_damaged(&leaf, &records, frame, damaged.as_ref());
                    self.find_damaged(&leaf, &records, frame, damaged.as_ref());
                }
                engine.strike(None);
                return;
            }
            number -= leaf.frames();
        }
    }

    /// Visits all of a frame's records at once.
    fn visit_damaged(&mut self, leaf: &LeafView<'_>, records: &Records, frame: usize, damaged: Option<&Damaged>) {
        let slots = leaf.slots(frame).expect("a frame");
        let mut visited = Records::new();
        let result = leaf
            .visit_frame(frame, &mut self.scratch, |_, key, value| {
                visited.push((key.to_vec(), value.to_vec()));
            })
            .expect("a frame");
        let Some(damaged) = damaged else {
            result.expect("a whole frame");
            assert!(visited == records[slots], "frame {frame}, which is whole");
            return;
        };
        let done = typed(result).is_some();
        assert!(visited.is_sorted_by(|a, b| a.0 < b.0), "keys of frame {frame}");
        for (slot, (key, value)) in slots.clone().zip(&visited) {
            assert!(key.len() <= MAX_KEY_BYTES && key.starts_with(leaf.prefix()));
            let (right_key, right_value) = &records[slot];
            assert!(!leaf.is_packed() || key == right_key, "a key that was not decoded");
            assert!(leaf.is_packed() || leaf.fingerprint(slot) == Some(fingerprint_of(key)));
            assert!(leaf.is_hashed() || leaf.is_keyed() || slot != slots.start || key == right_key);
            assert!(value.len() == right_value.len(), "the value's length");
        }
        if !done {
            return;
        }
        let raw = damaged.raw.as_deref().expect("no error was requested");
        assert_eq!(raw.len(), damaged.raw_len, "a frame of another length was taken");
        assert_eq!(visited.len(), slots.len());
        if let (Some((last, _)), Some(next), false) = (visited.last(), leaf.first_key(frame + 1), leaf.is_keyed()) {
            assert!(*last < next, "the last key of frame {frame}");
        }
        let mut values = raw.iter().rev();
        for (_, value) in visited
            .iter()
            .rev()
            .filter(|(_, value)| value.len() <= MAX_INLINE_BYTES)
        {
            assert!(
                value.iter().rev().eq(values.by_ref().take(value.len())),
                "a value that was decoded"
            );
        }
    }

    /// Searches each of a frame's records individually.
    fn find_damaged(&mut self, leaf: &LeafView<'_>, records: &Records, frame: usize, damaged: Option<&Damaged>) {
        let slots = leaf.slots(frame).expect("a frame");
        let lens =
            |slots: std::ops::Range<usize>| records[slots].iter().map(|(_, value)| inline_len(value)).sum::<usize>();
        for slot in slots.clone() {
            let (key, value) = &records[slot];
            let found = leaf.locate(key, &mut self.scratch);
            let read = leaf.value(slot, &mut self.scratch).expect("a slot");
            let Some(damaged) = damaged else {
                assert_eq!(found.expect("a whole frame"), Some((slot, frame)));
                assert!(read.expect("a whole frame") == *value);
                continue;
            };
            let in_directory = leaf.is_packed() || slot == slots.start && !leaf.is_hashed() && !leaf.is_keyed();
            match typed(found) {
                found if in_directory => assert_eq!(found, Some(Some((slot, frame)))),
                Some(Some((place, of))) => {
                    assert!(of == frame && slots.contains(&place));
                    assert_eq!(leaf.fingerprint(place), Some(fingerprint_of(key)));
                }
                Some(None) | None => {}
            }
            if value.len() > MAX_INLINE_BYTES {
                assert!(read.expect("a value outside the frame") == *value);
                continue;
            }
            let end = damaged.raw_len - lens(slot + 1..slots.end);
            let enough = |raw: &&Vec<u8>| raw.len() >= end && raw.len() <= damaged.raw_len;
            let there = damaged.raw.as_ref().filter(enough);
            let expected = there.map(|raw| &raw[end - value.len()..end]);
            assert!(typed(read).as_deref() == expected, "a value that was decoded");
        }
    }
}

/// What a corrupted frame decodes to.
struct Damaged {
    raw: Option<Vec<u8>>,
    /// Length of the original raw bytes.
    raw_len: usize,
}

/// Checks counts, lengths, keys and blocks: all that a leaf knows without decoding.
fn check_sections(leaf: &LeafView<'_>, records: &Records) {
    let inline: usize = records.iter().map(|(key, value)| key.len() + inline_len(value)).sum();
    assert_eq!(leaf.inline_bytes(), inline);
    let large = |slot: &usize| records[*slot].1.len() > MAX_INLINE_BYTES;
    assert_eq!(leaf.large_slots(), (0..records.len()).filter(large).collect::<Vec<_>>());
    assert!(!leaf.is_single() || leaf.frames() == records.len() && !leaf.is_hashed());
    for (slot, (key, value)) in records.iter().enumerate() {
        assert!(key.starts_with(leaf.prefix()));
        assert_eq!(leaf.value_len(slot), Some(value.len()), "the length in slot {slot}");
        assert_eq!(leaf.is_large(slot), large(&slot));
        assert_eq!(leaf.packed_key(slot), leaf.is_packed().then(|| key.clone()));
        let print = (!leaf.is_packed()).then(|| fingerprint_of(key));
        assert_eq!(leaf.fingerprint(slot), print, "the fingerprint in slot {slot}");
    }
    let (mut separators, mut data) = (Vec::new(), Vec::new());
    for frame in 0..leaf.frames() {
        let slots = leaf.slots(frame).expect("a frame");
        let (block, start) = leaf.blocks(frame..frame + 1).expect("a frame");
        assert_eq!(usize::from(start[0]), data.len(), "where frame {frame} starts");
        assert_eq!(leaf.block(frame), Some(block));
        data.extend_from_slice(block);
        if leaf.is_hashed() {
            assert!(records[slots].is_sorted_by(|a, b| a.0 < b.0), "keys of frame {frame}");
            continue;
        }
        let first = leaf.first_key(frame).expect("a frame");
        assert!(first == records[slots.start].0, "the first key of frame {frame}");
        if !leaf.is_packed() && !leaf.is_keyed() {
            let separator = &first[leaf.prefix().len()..];
            assert_eq!(leaf.separators(frame..frame + 1), Some(separator));
            separators.extend_from_slice(separator);
        }
    }
    if leaf.frames() > 0 {
        let all = 0..leaf.frames();
        assert_eq!(leaf.blocks(all.clone()).map(|(blocks, _)| blocks), Some(&*data));
        let separated = !leaf.is_packed() && !leaf.is_hashed() && !leaf.is_keyed();
        assert_eq!(leaf.separators(all), separated.then_some(&*separators));
    }
}

/// Returns keys around `key`: the next ones above and below, longer and shorter ones.
fn neighbours(key: &[u8]) -> Vec<Vec<u8>> {
    let mut neighbours = vec![[key, &[0]].concat(), [key, &[0xff]].concat(), [&[0], key].concat()];
    if let Some((last, rest)) = key.split_last() {
        neighbours.push(rest.to_vec());
        neighbours.push([rest, &[last.wrapping_add(1)]].concat());
        neighbours.push([rest, &[last.wrapping_sub(1)]].concat());
        neighbours.push([rest, &[last.wrapping_sub(1), 0xff]].concat());
        neighbours.push(key[key.len() / 2..].to_vec());
        let mut other = key.to_vec();
        other[key.len() / 2] ^= 1;
        neighbours.push(other);
    }
    neighbours
}
