//! Reading many pages at once, ahead of need.

use std::io;
use std::ops::ControlFlow;

use super::PoolError;
use super::counts::Count;
use super::frames::Frame;
use super::inner::{BATCH_PAGES, PoolInner, operate, room_for, store_error};
use super::waiters::InHand;
use crate::store::PageId;
use crate::store::PageRead;

impl PoolInner {
    /// Reads the absent pages in batches; returns their number.
    pub(super) fn prefetch(&self, pages: &[PageId]) -> Result<usize, PoolError> {
        let mut read = 0;
        for batch in pages.chunks(BATCH_PAGES) {
            let (mut loading, mut in_hand) = (room_for(batch.len())?, room_for(batch.len())?);
            let (mut reads, mut results) = (room_for(batch.len())?, room_for(batch.len())?);
            let mut outcome = ControlFlow::Continue(());
            for &page in batch {
                match self.begin_prefetch(page) {
                    Ok(Begun::Loading(prepared)) => loading.push(prepared),
                    Ok(Begun::Nothing) => {}
                    Ok(Begun::NoRoom) => break,
                    // More than there is room for at once.
                    Err(PoolError::PoolFull { .. }) if !loading.is_empty() => break,
                    Err(error) => {
                        outcome = ControlFlow::Break(error);
                        break;
                    }
                }
            }
            // Not earlier: a thread that gathers a batch has to find room for it, and must not make others wait for it
            // meanwhile.
            in_hand.extend(loading.iter().map(|_| self.waiters.take_in_hand()));
            reads.extend(loading.iter_mut().map(|one: &mut Loading<'_>| PageRead {
                page: one.page,
                into: one.frame.bytes_mut(),
                result: Ok(()),
            }));
            self.read_batch(reads, &mut results);
            let failed = self.finish_prefetch(loading, results, in_hand, &mut read);
            if let Some(error) = outcome.break_value().or(failed) {
                return Err(error);
            }
        }
        Ok(read)
    }

    /// Makes room for an absent page. Pages that the store does not have are skipped.
    fn begin_prefetch(&self, page: PageId) -> Result<Begun<'_>, PoolError> {
        let (hash, shard) = self.shard(page);
        let number = {
            let mut locked = shard.lock();
            if locked.is_busy(page) || locked.get(hash, page, &self.entries).is_some() {
                return Ok(Begun::Nothing);
            }
            self.begin_loading(&mut locked, page, hash)?
        };
        let room = self
            .page_bytes(page)
            .and_then(|len| Ok((self.frame_to_read(page, len)?, len)));
        match room {
            Ok((Some(frame), len)) => Ok(Begun::Loading(Loading {
                number,
                page,
                hash,
                frame,
                len,
            })),
            Ok((None, _)) => {
                self.end_loading(number, hash, shard);
                Ok(Begun::NoRoom)
            }
            Err(error) => {
                self.end_loading(number, hash, shard);
                match error {
                    PoolError::NotFound { .. } => Ok(Begun::Nothing),
                    error => Err(error),
                }
            }
        }
    }

    /// Reads a batch; the outcomes go to `results`, which has capacity for them.
    fn read_batch(&self, mut reads: Vec<PageRead<'_>>, results: &mut Vec<io::Result<()>>) {
        let whole = operate(|| {
            if !reads.is_empty() {
                self.store.read_batch(&mut reads);
            }
            Ok(())
        });
        results.extend(reads.into_iter().map(|read| match &whole {
            Ok(()) => read.result,
            Err(error) => Err(io::Error::other(error.to_string())),
        }));
    }

    /// Publishes the pages that were read, and returns the first error.
    fn finish_prefetch(
        &self,
        loading: Vec<Loading<'_>>,
        results: Vec<io::Result<()>>,
        in_hand: Vec<InHand<'_>>,
        read: &mut usize,
    ) -> Option<PoolError> {
        let mut failed = None;
        for ((one, result), in_hand) in loading.into_iter().zip(results).zip(in_hand) {
            let shard = self.index.shard(one.hash);
            match result {
                Ok(()) => {
                    drop(self.publish(one.number, one.hash, one.frame, shard, in_hand));
                    self.counts.add(Count::Prefetched, 1);
                    self.counts.add(Count::StoreReadBytes, one.len as u64);
                    *read += 1;
                }
                Err(error) => {
                    self.frames.free(one.frame);
                    drop(in_hand);
                    self.end_loading(one.number, one.hash, shard);
                    if error.kind() != io::ErrorKind::NotFound {
                        failed.get_or_insert(store_error(one.page, "read", error));
                    }
                }
            }
        }
        failed
    }
}

/// A page that is being prefetched.
struct Loading<'f> {
    number: u32,
    page: PageId,
    hash: u64,
    frame: Frame<'f>,
    len: usize,
}

/// The outcome of beginning a prefetch.
enum Begun<'f> {
    Loading(Loading<'f>),
    /// It is present, or the store does not have it.
    Nothing,
    /// Dirty pages that cannot be written take the room.
    NoRoom,
}
