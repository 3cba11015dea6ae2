//! What landed on a leaf whose latch is held, as a compaction takes it.

use crate::mem::OutOfMemory;
use crate::mem::room::{TryGrow, room_for};
use crate::tree::node::landing::{Change, Entry, Landing, newest_by_key};
use crate::tree::node::large::{DeadLarge, Large};
use crate::tree::node::leaf::Leaf;

/// The changes in the leaf's landing buffer and one more, newest of each key, in key order. Large values that were superseded
/// are dead.
pub(crate) fn landed_changes<'a, 'g: 'a>(
    leaf: Leaf<'g>,
    more: Option<Entry<'a>>,
    dead: &mut Vec<DeadLarge>,
) -> Result<Vec<Entry<'a>>, OutOfMemory> {
    let mut entries = match leaf.landing_locked() {
        Some(landing) => landing.read_all()?,
        None => room_for(usize::from(more.is_some()))?,
    };
    entries.extend(more);
    let mut noted = Ok(());
    newest_by_key(&mut entries, |entry| {
        if let Change::PutLarge(large) = entry.change
            && noted.is_ok()
        {
            noted = dead.try_push(large.dead());
        }
    });
    noted.map(|()| entries)
}

/// The large values that a leaf and its landing buffer own.
pub(crate) fn owned_large<'g>(leaf: Leaf<'g>) -> impl Iterator<Item = Large<'g>> {
    let in_leaf = leaf.larges_owned();
    let landed = leaf.landing_locked().into_iter().flat_map(Landing::iter);
    in_leaf.chain(landed.filter_map(|entry| match entry.change {
        Change::PutLarge(large) => Some(large),
        _ => None,
    }))
}
