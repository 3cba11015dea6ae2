//! Batches of reads and writes of a file.

use std::os::unix::fs::FileExt;

use super::extent::Change;
use super::file::FileStore;
use super::{PageRead, PageWrite};
use crate::io::aligned::AlignedBuffer;
use crate::io::transfer::Transfer;
use crate::mem::OutOfMemory;
use crate::mem::room::room_for;

/// Maximum bytes of copy buffers used concurrently in a batch.
const MAX_COPIED_BYTES: usize = 4 << 20;

impl FileStore {
    /// Executes all reads, as many concurrently as there is memory for copy buffers, or one by one where there is not
    /// even memory for a list of them; the errors do not name the file.
    pub(super) fn read_together(&self, reads: &mut [PageRead<'_>]) {
        let mut done = 0;
        while let Some(rest) = reads.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_some(rest) {
                Ok(count) => done += count,
                Err(OutOfMemory { .. }) => {
                    for read in rest {
                        read.result = self.read_one(read.page, read.into);
                    }
                    return;
                }
            }
        }
    }

    /// Executes the first of these reads, at least one; returns how many. An error is returned before any is executed.
    fn read_some(&self, reads: &mut [PageRead<'_>]) -> Result<usize, OutOfMemory> {
        let (places, count) = self.places(reads)?;
        let (now, _) = reads.split_at_mut(count);
        self.read_places(now, places)?;
        Ok(count)
    }

    /// Determines offsets and copy buffers of the first reads; invalid ones get their result set. Also returns the
    /// number of reads processed, at least one.
    fn places(&self, reads: &mut [PageRead<'_>]) -> Result<(Vec<(usize, Place)>, usize), OutOfMemory> {
        let mut copied_bytes = 0;
        let mut places = room_for(reads.len())?;
        for (index, read) in reads.iter_mut().enumerate() {
            if copied_bytes >= MAX_COPIED_BYTES {
                return Ok((places, index));
            }
            let place = self.place(read.page, read.into).and_then(|offset| {
                let copy = self.copy_buffer(read.into)?;
                Ok(Place { offset, copy })
            });
            match place {
                Ok(place) => {
                    copied_bytes += place.copy.as_ref().map_or(0, |copy| copy.bytes().len());
                    places.push((index, place));
                }
                Err(e) => read.result = Err(e),
            }
        }
        Ok((places, reads.len()))
    }

    /// Executes the reads that have a place, which are in the reads' order.
    fn read_places(&self, reads: &mut [PageRead<'_>], mut places: Vec<(usize, Place)>) -> Result<(), OutOfMemory> {
        let (_, granule) = self.channel();
        let (mut transfers, mut outcomes) = (room_for(places.len())?, room_for(places.len())?);
        let mut unplaced = places.iter_mut().peekable();
        for (index, read) in reads.iter_mut().enumerate() {
            let Some((_, place)) = unplaced.next_if(|(placed, _)| *placed == index) else {
                continue;
            };
            let needed = read.into.len();
            let target = match &mut place.copy {
                Some(copy) => copy.bytes_mut(),
                None => &mut *read.into,
            };
            transfers.push(Transfer::read(target, place.offset, needed, granule));
        }
        self.run(&mut transfers);
        outcomes.extend(transfers.into_iter().map(Transfer::into_outcome));
        for ((index, place), outcome) in places.into_iter().zip(outcomes) {
            let Some(read) = reads.get_mut(index) else { continue };
            let needed = read.into.len();
            if let Some(copy) = &place.copy {
                read.into.copy_from_slice(&copy.bytes()[..needed]);
            }
            read.result = self.or_through_cache(outcome, || self.file.read_exact_at(read.into, place.offset));
        }
        Ok(())
    }

    /// Executes all writes, those that need no copy concurrently; the errors do not name the file.
    pub(super) fn write_together(&self, writes: &mut [PageWrite<'_>]) {
        if let Err(OutOfMemory { .. }) = self.try_write_together(writes) {
            for write in writes {
                write.result = self.write_one(write.page, write.bytes);
            }
        }
    }

    /// Returns an error before any write is executed.
    fn try_write_together(&self, writes: &mut [PageWrite<'_>]) -> Result<(), OutOfMemory> {
        let (_, granule) = self.channel();
        let truncate = |end| self.file.set_len(end);
        let mut transfers = room_for(writes.len())?;
        let mut together: Vec<(usize, u64, Change)> = room_for(writes.len())?;
        let mut alone = room_for(writes.len())?;
        for (index, write) in writes.iter_mut().enumerate() {
            let takes_unchanged = self
                .method
                .direct
                .as_ref()
                .is_none_or(|direct| direct.takes(write.bytes));
            if !takes_unchanged {
                alone.push(index);
                continue;
            }
            let prepared = self.place_to_write(write.page, write.bytes.len()).and_then(|offset| {
                let change = self.extent.prepare(write.page, offset, write.bytes.len(), truncate)?;
                Ok((offset, change))
            });
            match prepared {
                Ok((offset, change)) => {
                    transfers.push(Transfer::write(write.bytes, offset, granule));
                    together.push((index, offset, change));
                }
                Err(e) => write.result = Err(e),
            }
        }
        {
            let _others = self.neighbours.read();
            self.run(&mut transfers);
        }
        let outcomes = transfers.into_iter().map(Transfer::into_outcome);
        for ((index, offset, change), outcome) in together.into_iter().zip(outcomes) {
            let Some(write) = writes.get_mut(index) else { continue };
            let outcome = self.or_through_cache(outcome, || self.write_through_cache(offset, write.bytes));
            write.result = self.settle_write(write.page, change, outcome);
        }
        for index in alone {
            if let Some(write) = writes.get_mut(index) {
                write.result = self.write_one(write.page, write.bytes);
            }
        }
        Ok(())
    }

    /// Runs the transfers through a ring if there are several, and what the ring leaves undone one by one.
    fn run(&self, transfers: &mut [Transfer<'_>]) {
        let (file, _) = self.channel();
        // A single transfer gains nothing from a ring.
        if let (Some(rings), 2..) = (&self.method.rings, transfers.len()) {
            rings.run(file, transfers);
        }
        for transfer in transfers {
            transfer.run(file);
        }
    }
}

/// Offset and copy buffer of a read.
struct Place {
    offset: u64,
    /// Buffer to copy through.
    copy: Option<AlignedBuffer>,
}
