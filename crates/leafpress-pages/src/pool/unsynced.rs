//! What the store was given and has not made lasting yet.
//!
//! A write that returned is in the caches of the system; a sync makes it last. When a sync fails the system says so once and forgets: a
//! later one that succeeds says nothing of what was lost before. So the pool remembers, and takes back its trust in those writes itself.
//!
//! Time is cut into rounds; a flush ends one just before it syncs. A page in the pool has the round of its last write in its entry
//! ([`State::unsynced_round_is_odd`]), and is dirty again when the sync of that round fails. A page that left
//! the pool before that sync, or was removed, is noted here, because nobody could write it again: it may be lost, and every flush says
//! so until the page is written again, removed again or discarded, and synced.
//!
//! Two rounds are all that can be told apart in an entry: the present one, and the one before while its sync is under way.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use super::PoolError;
use super::entry::State;
use crate::store::PageId;
use leafpress_base::sync::{AtomicU64, Mutex, MutexGuard};

/// Pages that are noted by number: one for so many bytes of the budget, within bounds.
const BYTES_A_PAGE: usize = 8192;
const MIN_NOTED: usize = 64;
const MAX_NOTED: usize = 1 << 16;

/// What the store has of a page that the pool cannot write again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It was written or removed in this round, and lasts once that is synced.
    Waits(u64),
    /// A sync failed after it was written: it may be lost.
    Lost,
    /// It may be lost, but was written or removed again in this round: all is well once that is synced.
    Mended(u64),
}

#[derive(Default)]
struct Gone {
    pages: HashMap<PageId, Fate>,
    /// The last round in which there was a page too many to be noted.
    unnoted: u64,
    /// Whether pages that were not noted may be lost: nothing mends that.
    unnoted_lost: bool,
    /// What the last sync that failed said.
    error: Option<Arc<io::Error>>,
}

/// The rounds of a pool, and the pages that left it unsynced.
///
/// `gone` is taken under a shard of the index, and no other lock under it.
pub(super) struct Unsynced {
    /// Held by the one flush at a time, during the store's work too: before any other lock.
    flushing: Mutex<()>,
    /// The round that writes are in, from 1 on.
    round: AtomicU64,
    /// The last round whose writes last, or whose pages were told that they may not. Changed under `gone`'s lock.
    settled: AtomicU64,
    /// Syncs that failed.
    failures: AtomicU64,
    gone: Mutex<Gone>,
    /// Pages in `gone`, for those who look without the lock.
    noted: AtomicUsize,
    bytes: AtomicUsize,
    max_noted: usize,
}

impl Unsynced {
    pub(super) fn new(budget_bytes: usize) -> Self {
        Self {
            flushing: Mutex::new(()),
            round: AtomicU64::new(1),
            settled: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            gone: Mutex::new(Gone::default()),
            noted: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            max_noted: (budget_bytes / BYTES_A_PAGE).clamp(MIN_NOTED, MAX_NOTED),
        }
    }

    /// Waits until no other flush is under way. A flush that began beside one whose sync fails has to know of that.
    pub(super) fn begin_flush(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock()
    }

    /// The round that a write which has just returned belongs to.
    pub(super) fn round(&self) -> u64 {
        self.round.load(SeqCst)
    }

    /// Ends the round, and returns it: the sync that follows covers it.
    pub(super) fn end_round(&self) -> u64 {
        self.round.fetch_add(1, SeqCst)
    }

    /// Syncs that failed. A write during which one did may be among what was lost.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(SeqCst)
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Pages that may be lost, as far as they are noted.
    pub(super) fn lost_pages(&self) -> usize {
        if self.noted.load(SeqCst) == 0 {
            return 0;
        }
        self.gone.lock().lost().count()
    }

    /// A page with this state leaves the pool; its shard is locked.
    pub(super) fn leaves(&self, page: PageId, state: State) {
        let Some(is_odd) = state.unsynced_round_is_odd() else {
            return;
        };
        let mut gone = self.gone.lock();
        let now = self.round();
        let round = if now % 2 == u64::from(is_odd) { now } else { now - 1 };
        if round > self.settled.load(SeqCst) {
            self.note(&mut gone, page, Fate::Waits(round));
        }
    }

    /// The store removed a page, whose shard is locked. `failures` are those that there were before.
    pub(super) fn removed(&self, page: PageId, failures: u64) {
        let mut gone = self.gone.lock();
        let fate = match gone.pages.get(&page) {
            _ if self.failures() != failures => Fate::Lost,
            Some(Fate::Lost | Fate::Mended(_)) => Fate::Mended(self.round()),
            Some(Fate::Waits(_)) | None => Fate::Waits(self.round()),
        };
        self.note(&mut gone, page, fate);
    }

    /// The store has a newer version of a page, whose shard is locked, and the page is in the pool.
    pub(super) fn written(&self, page: PageId) {
        if self.noted.load(SeqCst) == 0 {
            return;
        }
        let mut gone = self.gone.lock();
        match gone.pages.get_mut(&page) {
            // From here on the page's entry knows.
            Some(Fate::Waits(_)) => {
                gone.pages.remove(&page);
                self.publish(&mut gone);
            }
            Some(fate) => *fate = Fate::Mended(self.round()),
            None => {}
        }
    }

    /// Nobody wants to know of a page any more. Returns whether it may be lost.
    pub(super) fn discarded(&self, page: PageId) -> bool {
        let mut gone = self.gone.lock();
        let may_be_lost = matches!(gone.pages.get(&page), Some(Fate::Lost | Fate::Mended(_)));
        if may_be_lost {
            gone.pages.remove(&page);
            self.publish(&mut gone);
        }
        may_be_lost
    }

    /// Up to this round everything lasts that was not lost before.
    pub(super) fn succeeded(&self, round: u64) {
        let mut gone = self.gone.lock();
        self.settled.store(round, SeqCst);
        gone.pages.retain(|_, fate| match *fate {
            Fate::Waits(of) | Fate::Mended(of) => of > round,
            Fate::Lost => true,
        });
        if gone.unnoted <= round {
            gone.unnoted = 0;
        }
        self.publish(&mut gone);
    }

    /// A sync failed. Pages in the pool have to be told next: they are dirty again. Then [`Unsynced::lose_gone`] has to be called.
    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, SeqCst);
    }

    /// The sync of this round failed with `error`, and all pages in the pool know. What was written until now may be lost.
    pub(super) fn lose_gone(&self, round: u64, error: Arc<io::Error>) {
        let mut gone = self.gone.lock();
        self.settled.store(round, SeqCst);
        gone.pages.values_mut().for_each(|fate| *fate = Fate::Lost);
        gone.unnoted_lost |= std::mem::take(&mut gone.unnoted) > 0;
        gone.error = Some(error);
    }

    /// What a flush has to say of pages that may be lost since an earlier one.
    pub(super) fn lost(&self) -> Result<(), PoolError> {
        let gone = self.gone.lock();
        let first = gone.lost().min();
        match &gone.error {
            Some(source) if gone.unnoted_lost || first.is_some() => Err(PoolError::Lost {
                page: first,
                pages: gone.lost().count(),
                or_more: gone.unnoted_lost,
                source: source.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn note(&self, gone: &mut Gone, page: PageId, fate: Fate) {
        // Not inserted over what is there: an insertion looks for room before it looks for the key, and a full table would have to grow.
        if let Some(noted) = gone.pages.get_mut(&page) {
            *noted = fate;
        } else if gone.pages.len() < self.max_noted && gone.pages.try_reserve(1).is_ok() {
            gone.pages.insert(page, fate);
        } else if fate == Fate::Lost {
            gone.unnoted_lost = true;
        } else {
            gone.unnoted = self.round();
        }
        self.publish(gone);
    }

    fn publish(&self, gone: &mut Gone) {
        if gone.pages.is_empty() {
            gone.pages = HashMap::new();
        }
        self.noted.store(gone.pages.len(), SeqCst);
        // A byte a place is the table's own.
        let place_bytes = size_of::<(PageId, Fate)>() + 1;
        self.bytes.store(gone.pages.capacity() * 8 / 7 * place_bytes, Relaxed);
    }
}

impl Gone {
    fn lost(&self) -> impl Iterator<Item = PageId> {
        let may_be_lost = |(&page, fate): (&PageId, &Fate)| (!matches!(fate, Fate::Waits(_))).then_some(page);
        self.pages.iter().filter_map(may_be_lost)
    }
}
