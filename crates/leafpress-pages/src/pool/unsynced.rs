//! Pages that were written to the store and are not synced yet.
//!
//! The data of a write that returned is in the caches of the system; a sync makes it durable. The system reports a
//! failed sync once: a later successful one does not report what was lost before. So the pool keeps track of the
//! affected writes itself, and marks them dirty again.
//!
//! Time is divided into rounds; a flush ends one just before it syncs. A page in the pool has the round of its last
//! write in its entry ([`PageState::unsynced_round_is_odd`]), and becomes dirty again when the sync of that round
//! fails. A page that was evicted or removed before that sync is recorded here, because the pool cannot write it again:
//! it may be lost, and every flush reports that until the page is written again, removed again or discarded, and
//! synced.
//!
//! An entry can distinguish two rounds: the current one, and the previous one while its sync is in progress.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

use super::PoolError;
use super::entry::PageState;
use crate::store::PageId;
use leafpress_base::sync::{AtomicU64, Mutex, MutexGuard};

/// Pages recorded individually: one for this many bytes of the budget, within bounds.
const BYTES_A_PAGE: usize = 8192;
const MIN_NOTED: usize = 64;
const MAX_NOTED: usize = 1 << 16;

/// The state of a page in the store that the pool cannot write again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It was written or removed in this round, and is durable once that is synced.
    Waits(u64),
    /// A sync failed after it was written: it may be lost.
    Lost,
    /// It may be lost, but was written or removed again in this round: it is repaired once that is synced.
    Repaired(u64),
}

#[derive(Default)]
struct Gone {
    pages: HashMap<PageId, Fate>,
    /// The last round in which a page could not be recorded.
    unnoted: u64,
    /// Whether pages that were not recorded may be lost: this is permanent.
    unnoted_lost: bool,
    /// The error of the last failed sync.
    error: Option<Arc<io::Error>>,
}

/// The rounds of a pool, and the pages that were evicted unsynced.
///
/// `gone` is taken under a shard of the index, and no other lock under it.
pub(super) struct Unsynced {
    /// Held by the single flush in progress, during the store's work too: before any other lock.
    flushing: Mutex<()>,
    /// The current round of writes, from 1 on.
    round: AtomicU64,
    /// The last round whose writes are durable, or whose pages were marked after a failed sync. Changed under `gone`'s
    /// lock.
    settled: AtomicU64,
    /// Number of failed syncs.
    failures: AtomicU64,
    gone: Mutex<Gone>,
    /// Number of pages in `gone`, for readers without the lock.
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

    /// Waits until no other flush is in progress. A flush that overlaps one whose sync fails has to report that.
    pub(super) fn begin_flush(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock()
    }

    /// The round of a write that has just returned.
    pub(super) fn round(&self) -> u64 {
        self.round.load(SeqCst)
    }

    /// Ends and returns the round: the following sync covers it.
    pub(super) fn end_round(&self) -> u64 {
        self.round.fetch_add(1, SeqCst)
    }

    /// Number of failed syncs. A write during which it changed may be among the lost ones.
    pub(super) fn failures(&self) -> u64 {
        self.failures.load(SeqCst)
    }

    /// Memory held, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Number of recorded pages that may be lost.
    pub(super) fn lost_pages(&self) -> usize {
        if self.noted.load(SeqCst) == 0 {
            return 0;
        }
        self.gone.lock().lost().count()
    }

    /// Records a page with this state that is evicted; its shard is locked.
    pub(super) fn leaves(&self, page: PageId, state: PageState) {
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

    /// Records that the store removed a page, whose shard is locked. `failures` is the number of failed syncs before.
    pub(super) fn removed(&self, page: PageId, failures: u64) {
        let mut gone = self.gone.lock();
        let fate = match gone.pages.get(&page) {
            _ if self.failures() != failures => Fate::Lost,
            Some(Fate::Lost | Fate::Repaired(_)) => Fate::Repaired(self.round()),
            Some(Fate::Waits(_)) | None => Fate::Waits(self.round()),
        };
        self.note(&mut gone, page, fate);
    }

    /// Records that the store has a newer version of a page, whose shard is locked, and that is in the pool.
    pub(super) fn written(&self, page: PageId) {
        if self.noted.load(SeqCst) == 0 {
            return;
        }
        let mut gone = self.gone.lock();
        match gone.pages.get_mut(&page) {
            // From here on the page's entry has the state.
            Some(Fate::Waits(_)) => {
                gone.pages.remove(&page);
                self.publish(&mut gone);
            }
            Some(fate) => *fate = Fate::Repaired(self.round()),
            None => {}
        }
    }

    /// Forgets a page. Returns true if it may be lost.
    pub(super) fn discarded(&self, page: PageId) -> bool {
        let mut gone = self.gone.lock();
        let may_be_lost = matches!(gone.pages.get(&page), Some(Fate::Lost | Fate::Repaired(_)));
        if may_be_lost {
            gone.pages.remove(&page);
            self.publish(&mut gone);
        }
        may_be_lost
    }

    /// Records a successful sync up to this round; what was lost before stays lost.
    pub(super) fn succeeded(&self, round: u64) {
        let mut gone = self.gone.lock();
        self.settled.store(round, SeqCst);
        gone.pages.retain(|_, fate| match *fate {
            Fate::Waits(of) | Fate::Repaired(of) => of > round,
            Fate::Lost => true,
        });
        if gone.unnoted <= round {
            gone.unnoted = 0;
        }
        self.publish(&mut gone);
    }

    /// Records a failed sync. Pages in the pool have to be marked dirty next. Then [`Unsynced::lose_gone`] has to be
    /// called.
    pub(super) fn failed(&self) {
        self.failures.fetch_add(1, SeqCst);
    }

    /// Completes a failed sync of this round, after all pages in the pool were marked. Everything written until now may
    /// be lost.
    pub(super) fn lose_gone(&self, round: u64, error: Arc<io::Error>) {
        let mut gone = self.gone.lock();
        self.settled.store(round, SeqCst);
        gone.pages.values_mut().for_each(|fate| *fate = Fate::Lost);
        gone.unnoted_lost |= std::mem::take(&mut gone.unnoted) > 0;
        gone.error = Some(error);
    }

    /// Returns the error of pages that may be lost since an earlier flush.
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
        // Updated in place: an insertion reserves room before it looks up the key, and a full table would have to grow.
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
        // The table itself takes one byte per slot.
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
