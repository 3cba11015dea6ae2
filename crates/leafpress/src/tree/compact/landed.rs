//! The landing buffer of a latched leaf, as the input of a compaction.

use crate::tree::node::landing::{Change, LandedWrite, Landing, newest_by_key};
use crate::tree::node::large::{DeadLarge, Large};
use crate::tree::node::leaf::Leaf;
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::TryGrow;

/// Returns the changes in the leaf's landing buffer and `more`, the newest of each key, in key order. `more` is one
/// change, or several of different keys. Superseded large values are added to the dead ones.
pub(crate) fn landed_changes<'a, 'g: 'a>(
    leaf: Leaf<'g>,
    more: &[LandedWrite<'a>],
    dead: &mut Vec<DeadLarge>,
) -> Result<Vec<LandedWrite<'a>>, OutOfMemory> {
    let mut entries = match leaf.landing_locked() {
        Some(landing) => landing.read_all()?,
        None => Vec::new(),
    };
    let (one, several) = match more {
        [one] => (Some(*one), &[][..]),
        several => (None, several),
    };
    entries.try_extend(one)?;
    let mut noted = Ok(());
    let mut note = |entry: LandedWrite<'_>| {
        if let Change::PutLarge(large) = entry.change
            && noted.is_ok()
        {
            noted = dead.try_push(large.dead());
        }
    };
    newest_by_key(&mut entries, &mut note);
    let landed = entries.len();
    for entry in several {
        match entries[..landed].binary_search_by(|landed| landed.by_key(entry)) {
            Ok(at) => note(std::mem::replace(&mut entries[at], *entry)),
            Err(_) => entries.try_push(*entry)?,
        }
    }
    if !several.is_empty() {
        entries.sort_unstable_by(LandedWrite::by_key);
    }
    noted.map(|()| entries)
}

/// Returns how many records of a latched leaf have an empty value.
pub(crate) fn empty_values_in(leaf: Leaf<'_>) -> Result<u64, OutOfMemory> {
    let sections = leaf.sections();
    let in_leaf = (0..leaf.count()).filter(|&slot| leaf.value_len(&sections, slot) == 0);
    let mut empty = in_leaf.count() as u64;
    for entry in landed_changes(leaf, &[], &mut Vec::new())? {
        let slot = entry.slot.map(usize::from);
        empty -= u64::from(slot.is_some_and(|slot| leaf.value_len(&sections, slot) == 0));
        empty += u64::from(entry.change.value_len() == Some(0));
    }
    Ok(empty)
}

/// Returns the large values that a leaf and its landing buffer own.
pub(crate) fn owned_large<'g>(leaf: Leaf<'g>) -> impl Iterator<Item = Large<'g>> {
    let in_leaf = leaf.larges_owned();
    let landed = leaf.landing_locked().into_iter().flat_map(Landing::iter);
    in_leaf.chain(landed.filter_map(|entry| match entry.change {
        Change::PutLarge(large) => Some(large),
        _ => None,
    }))
}
