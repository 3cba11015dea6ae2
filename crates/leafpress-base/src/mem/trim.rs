//! The memory that training a dictionary leaves behind in the program's allocator.
//!
//! zstd's trainer takes some ten megabytes for a moment, more than a tree of a hundred thousand small records holds. glibc keeps
//! them for the thread that trains: by now its threshold for mapping a block by itself has risen above their size, and the end of
//! a thread's arena is given back only when it has grown past twice that.

/// Gives that memory back to the system. Does nothing where the C library is another.
pub fn return_working_memory() {
    return_large_blocks();
    return_freed();
}

/// The same of what is in large pieces, without a look at all of the allocator, which other threads would wait for.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        const PAGE_BYTES: usize = 4096;

        /// The longest block, and two each of halves of it: those below the threshold, whatever that is now, are together longer than what
        /// is left at the arena's end, which is less than twice the threshold.
        const LONGEST_BYTES: usize = 16 << 20;
        const BLOCKS: usize = 18;

        // SAFETY: blocks are allocated, told to the system as not needed by their whole pages, which nobody has written to, and freed.
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

/// Gives what the allocator has free back to the system. Does nothing where the C library is another.
pub fn return_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: it frees what nobody uses.
    unsafe {
        libc::malloc_trim(0);
    }
}
