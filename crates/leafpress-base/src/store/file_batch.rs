//! Many pages of a file at once.

use std::os::unix::fs::FileExt;

use super::extent::Change;
use super::file::FileStore;
use super::{PageRead, PageWrite};
use crate::io::aligned::AlignedBuffer;
use crate::io::transfer::Transfer;
use crate::mem::OutOfMemory;
use crate::mem::room::room_for;

/// Bytes of buffers that are copied through, at once in a batch.
const MAX_COPIED_BYTES: usize = 4 << 20;

impl FileStore {
    /// Reads all, as many at once as there is memory to copy through, one by one where there is not even memory for a list of them; the errors are without the file's path.
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

    /// Reads the first of these, at least one; returns how many. The error comes before any is read.
    fn read_some(&self, reads: &mut [PageRead<'_>]) -> Result<usize, OutOfMemory> {
        let (places, count) = self.places(reads)?;
        let (now, _) = reads.split_at_mut(count);
        self.read_places(now, places)?;
        Ok(count)
    }

    /// Where the first of the reads start, and what they are copied through; those that cannot be have their result. Also tells how many
    /// of the reads that were, at least one.
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

    /// Runs the reads that have a place, which are in their order.
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

    /// Writes all, at once those that need no copy; the errors are without the file's path.
    pub(super) fn write_together(&self, writes: &mut [PageWrite<'_>]) {
        if let Err(OutOfMemory { .. }) = self.try_write_together(writes) {
            for write in writes {
                write.result = self.write_one(write.page, write.bytes);
            }
        }
    }

    /// The error comes before any is written.
    fn try_write_together(&self, writes: &mut [PageWrite<'_>]) -> Result<(), OutOfMemory> {
        let (_, granule) = self.channel();
        let truncate = |end| self.file.set_len(end);
        let mut transfers = room_for(writes.len())?;
        let mut together: Vec<(usize, u64, Change)> = room_for(writes.len())?;
        let mut alone = room_for(writes.len())?;
        for (index, write) in writes.iter_mut().enumerate() {
            let as_it_is = self
                .method
                .direct
                .as_ref()
                .is_none_or(|direct| direct.takes(write.bytes));
            if !as_it_is {
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

    /// Through a ring if there are some to run, and what that leaves undone one by one.
    fn run(&self, transfers: &mut [Transfer<'_>]) {
        let (file, _) = self.channel();
        // One alone gains nothing from a ring.
        if let (Some(rings), 2..) = (&self.method.rings, transfers.len()) {
            rings.run(file, transfers);
        }
        for transfer in transfers {
            transfer.run(file);
        }
    }
}

/// Where a read starts.
struct Place {
    offset: u64,
    /// What it is copied through.
    copy: Option<AlignedBuffer>,
}
