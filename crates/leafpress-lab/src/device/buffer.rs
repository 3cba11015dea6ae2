//! Buffers of direct I/O in ordinary pages, filled with bytes that nothing can compress or find twice.

use std::io;

use memmap2::MmapMut;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Block size at which devices and file systems deduplicate.
const SECTOR: usize = 512;

/// A page-aligned mapping: no device or file system requires more alignment. They stay
/// where they are while the buffer lives, moved or not.
///
/// The pages are ordinary ones, as fio's and most programs' are. In a huge page, which an allocator may have at hand, a
/// block's memory is contiguous and the disk gets one descriptor instead of one for every 4 KiB: on a virtual disk
/// reads of 128 KiB were twice as quick.
pub(super) struct Buffer(MmapMut);

impl Buffer {
    /// `len` zeroes, at least one.
    ///
    /// # Errors
    /// The system's error, if out of memory.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let mut map = MmapMut::map_anon(len)?;
        // A system without huge pages refuses, and has none.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::NoHugePage);
        // So that the first request does not wait for the pages.
        map.fill(0);
        Ok(Self(map))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Random bytes all over.
    pub(super) fn fill(&mut self, random: &mut Xoshiro256PlusPlus) {
        random.fill_bytes(self.bytes_mut());
    }

    /// Changes every sector, in far less time than [`Buffer::fill`].
    pub(super) fn stamp(&mut self, random: &mut Xoshiro256PlusPlus) {
        for sector in self.bytes_mut().chunks_mut(SECTOR) {
            if let Some(head) = sector.first_chunk_mut::<8>() {
                *head = random.next_u64().to_le_bytes();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn a_buffer_is_aligned_and_a_stamp_changes_every_sector() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        for len in [512, 4096, 128 << 10] {
            let mut buffer = Buffer::new(len).unwrap();
            assert_eq!((buffer.bytes().as_ptr().addr() % 4096, buffer.bytes().len()), (0, len));
            buffer.fill(&mut random);
            let before = buffer.bytes().to_vec();
            buffer.stamp(&mut random);
            let changed = buffer.bytes().chunks(SECTOR).zip(before.chunks(SECTOR));
            assert!(changed.into_iter().all(|(now, then)| now != then));
        }
        assert!(Buffer::new(1 << 60).is_err());
    }
}
