//! Returning the memory that dictionary training leaves in the program's allocator.
//!
//! zstd's trainer takes some ten megabytes temporarily, more than a tree of a hundred thousand small records holds.
//! glibc keeps them for the thread that trains: by then its threshold for mapping a block separately has risen above
//! their size, and the end of a thread's arena is returned only when it has grown past twice that.

/// Returns that memory to the system. Does nothing with other C libraries.
pub fn return_working_memory() {
    return_large_blocks();
    return_freed();
}

/// Returns only large free blocks, without the scan of the whole allocator that other threads would wait for.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        const PAGE_BYTES: usize = 4096;

        /// The longest block, and two each of its successive halves: those below the threshold, whatever that is now,
        /// are together longer than the rest at the arena's end, which is less than twice the threshold.
        const LONGEST_BYTES: usize = 16 << 20;
        const BLOCKS: usize = 18;

        // SAFETY: only whole pages of blocks that were allocated here, never written, are advised away before the
        // blocks are freed.
        unsafe {
            let blocks: [_; BLOCKS] = std::array::from_fn(|number| {
                let bytes = LONGEST_BYTES >> (number / 2);
                let block = libc::malloc(bytes);
                if !block.is_null() {
                    let front = block.cast::<u8>().align_offset(PAGE_BYTES);
                    let pages = (bytes - front) & !(PAGE_BYTES - 1);
                    libc::madvise(block.byte_add(front), pages, libc::MADV_DONTNEED);
                }
                block
            });
            for block in blocks {
                libc::free(block);
            }
        }
    }
}

/// Returns the allocator's free memory to the system. Does nothing with other C libraries.
pub fn return_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: the call only releases memory that is free.
    unsafe {
        libc::malloc_trim(0);
    }
}
