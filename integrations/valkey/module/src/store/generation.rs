//! Generations: one tree each, found by a number that fits into a value's pointer, and dropped whole with the last
//! value.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use leafpress::{Codec, Tree, TreeError};

use super::settings::TreeSettings;

/// Maximum of concurrent generations: as many as values can name.
pub const SLOTS: usize = 1 << 11;
/// Maximum of values in the life of a generation: as many as strings can name.
pub const IDS: u64 = 1 << 36;

/// Set if values only count down, since the tree is dropped as a whole.
const CLOSED: u64 = 1 << 63;
/// Set if a value may be in another database than the generation's.
const IS_SHARED: u64 = 1 << 62;
/// Set while many values are freed together: they are removed in steps.
const IS_EMPTIED: u64 = 1 << 61;
const FLAGS: u64 = CLOSED | IS_SHARED | IS_EMPTIED;

static TABLE: [AtomicPtr<Generation>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static SERIALS: AtomicU64 = AtomicU64::new(1);

/// A tree and the counts of its values.
pub struct Generation {
    tree: Tree,
    codec: Codec,
    slot: u16,
    serial: u64,
    /// The reference count, as an `Arc`'s, and the flags.
    state: AtomicU64,
    next_id: AtomicU64,
    counts: Counts,
}

/// Totals of the values of a generation, without those that wait to be removed.
#[derive(Debug, Default)]
pub struct Counts {
    /// Of maps.
    pub maps: KindCounts,
    /// Of strings.
    pub texts: KindCounts,
}

/// Totals of the values of one kind.
#[derive(Debug, Default)]
pub struct KindCounts {
    /// Values.
    pub keys: AtomicU64,
    /// Records.
    pub records: AtomicU64,
    /// Bytes of fields and values.
    pub user_bytes: AtomicU64,
}

impl KindCounts {
    /// Counts more records.
    pub fn add(&self, records: u64, user_bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.user_bytes.fetch_add(user_bytes, Ordering::Relaxed);
    }

    /// Counts fewer records.
    pub fn subtract(&self, records: u64, user_bytes: u64) {
        self.records.fetch_sub(records, Ordering::Relaxed);
        self.user_bytes.fetch_sub(user_bytes, Ordering::Relaxed);
    }
}

/// A counted reference to a generation, which keeps it alive.
pub struct Hold {
    slot: u16,
}

impl Hold {
    /// Makes a new generation.
    pub fn create(settings: &TreeSettings) -> Result<Self, TreeError> {
        let tree = settings.build()?;
        let mut generation = Box::new(Generation {
            tree,
            codec: settings.codec,
            slot: 0,
            serial: SERIALS.fetch_add(1, Ordering::Relaxed),
            state: AtomicU64::new(1),
            next_id: AtomicU64::new(0),
            counts: Counts::default(),
        });
        for (slot, entry) in TABLE.iter().enumerate() {
            if entry.load(Ordering::Relaxed).is_null() {
                generation.slot = slot as u16;
                let raw = Box::into_raw(generation);
                match entry.compare_exchange(std::ptr::null_mut(), raw, Ordering::AcqRel, Ordering::Relaxed) {
                    Ok(_) => return Ok(Self { slot: slot as u16 }),
                    // SAFETY: it was not published, and is owned here again.
                    Err(_) => generation = unsafe { Box::from_raw(raw) },
                }
            }
        }
        Err(TreeError::Option {
            option: "generations",
            reason: format!(
                "there are {SLOTS} trees already. Each database has one, and each change of leafpress.codec or \
                 leafpress.dictionary-bytes, LP.DICT IMPORT or FORGET, and each flush begins a new one; an older one \
                 ends with the last of its values, which is shortly after a flush. Delete old values, or restart the \
                 server, which loads a database into one tree"
            ),
        })
    }

    /// Takes back a hold that [`Hold::into_slot`] released.
    ///
    /// # Safety
    /// Each `into_slot` is taken back at most once.
    pub unsafe fn from_slot(slot: u16) -> Self {
        Self { slot }
    }

    /// Returns the generation's number, which keeps the hold.
    pub fn into_slot(self) -> u16 {
        std::mem::ManuallyDrop::new(self).slot
    }
}

impl std::ops::Deref for Hold {
    type Target = Generation;

    #[inline]
    fn deref(&self) -> &Generation {
        let generation = TABLE[usize::from(self.slot)].load(Ordering::Acquire);
        // SAFETY: the entry is the generation's while anyone holds it, and so does this.
        unsafe { &*generation }
    }
}

impl Clone for Hold {
    fn clone(&self) -> Self {
        self.state.fetch_add(1, Ordering::Relaxed);
        Self { slot: self.slot }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let before = self.state.fetch_sub(1, Ordering::AcqRel);
        if before & !FLAGS == 1 {
            let generation = TABLE[usize::from(self.slot)].swap(std::ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: this was the last hold, and a generation without holds is never held again.
            drop(unsafe { Box::from_raw(generation) });
        }
    }
}

impl Generation {
    /// Returns its tree.
    #[inline]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns its tree's codec.
    pub fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the number that distinguishes it from all earlier and later ones.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Returns the counts of its values.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns a number for a new value; `None` if all were given.
    pub fn new_id(&self) -> Option<u64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        (id < IDS).then_some(id)
    }

    /// Closes it: its values are not removed individually any more; the tree is dropped when all are freed.
    pub fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }

    /// Returns whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Notes that one of its values is in another database now, and may outlive the others.
    pub fn share(&self) {
        self.state.fetch_or(IS_SHARED, Ordering::AcqRel);
    }

    /// Returns whether a value may be in another database than the generation's.
    pub fn is_shared(&self) -> bool {
        self.state.load(Ordering::Acquire) & IS_SHARED != 0
    }

    /// Sets whether a database is being emptied that has values of it: these are removed in steps then.
    pub fn set_emptied(&self, is_emptied: bool) {
        match is_emptied {
            true => self.state.fetch_or(IS_EMPTIED, Ordering::AcqRel),
            false => self.state.fetch_and(!IS_EMPTIED, Ordering::AcqRel),
        };
    }

    /// Returns whether freed values are removed in steps only.
    pub fn is_emptied(&self) -> bool {
        self.state.load(Ordering::Acquire) & IS_EMPTIED != 0
    }

    /// Returns its reference count.
    pub fn holds(&self) -> u64 {
        self.state.load(Ordering::Acquire) & !FLAGS
    }
}
