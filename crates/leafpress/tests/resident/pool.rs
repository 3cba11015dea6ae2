//! The pool's budget bounds the growth of resident memory, whatever the pages, the shares and the changes.

use std::io;

use crate::resident_bytes;
use leafpress::store::{PageId, PageStore};
use leafpress_pages::PagePool;
use leafpress_pages::pool::RawShare;

/// A quarter is incompressible, and the rest compressible.
fn fill(id: PageId, bytes: &mut [u8]) {
    let quarter = bytes.len() / 4;
    fastrand::Rng::with_seed(id).fill(&mut bytes[..quarter]);
    bytes[quarter..].fill(id as u8);
}

/// Pages that are generated when read, and so take no memory.
struct Made {
    page_bytes: fn(PageId) -> usize,
}

const PAGES: PageId = 60_000;

impl PageStore for Made {
    fn len(&self) -> u64 {
        PAGES
    }

    fn max_page_bytes(&self) -> usize {
        16 << 10
    }

    fn page_bytes(&self, page: PageId) -> io::Result<usize> {
        Ok((self.page_bytes)(page))
    }

    fn read(&self, id: PageId, into: &mut [u8]) -> io::Result<()> {
        fill(id, into);
        Ok(())
    }

    fn write(&self, _: PageId, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: PageId) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn resident_growth_stays_within_the_budget() {
    crate::alone("pool::resident_growth_stays_within_the_budget", measured);
}

fn measured() {
    let lengths: [fn(PageId) -> usize; 3] = [|_| 4096, |id| 512 + (id as usize * 7919) % 12_000, |_| 600];
    for page_bytes in lengths {
        // A first pool makes the allocations for the life of the process.
        let run = |budget_bytes: usize| {
            // Memory that an earlier pool left with the allocator would be reused, and hide the growth.
            // SAFETY: no pointer is passed; glibc takes its own locks.
            unsafe { libc::malloc_trim(0) };
            let before = resident_bytes();
            let pool = PagePool::builder(Made { page_bytes })
                .memory(budget_bytes)
                .share(RawShare::Fixed { raw_percent: 40 })
                .build()
                .unwrap();
            let mut random = fastrand::Rng::with_seed(1);
            let mut page = vec![0; 16 << 10];
            let mut check = |budget: usize, full: bool| {
                for _ in 0..30_000 {
                    let id = random.u64(0..PAGES);
                    if random.u32(0..10) == 0 {
                        let bytes = &mut page[..page_bytes(id)];
                        fill(id, bytes);
                        pool.write(id, bytes).unwrap();
                    } else {
                        pool.get(id).unwrap();
                    }
                }
                let grown = resident_bytes().saturating_sub(before);
                let stats = pool.stats();
                assert!(stats.bytes_held <= budget, "{stats:?}");
                // Stacks and codec contexts are not part of the pool.
                let others = 3 << 19;
                assert!(grown < budget + budget / 10 + others, "{grown} of {budget}: {stats:?}");
                assert!(!full || grown * 100 > stats.bytes_held * 85, "{grown}: {stats:?}");
                assert!(!full || stats.bytes_held * 10 > budget * 8, "{stats:?}");
            };
            check(budget_bytes, budget_bytes > 2 << 20);
            pool.set_memory(budget_bytes / 2).unwrap();
            check(budget_bytes / 2, budget_bytes > 2 << 20);
            drop(pool);
            resident_bytes().saturating_sub(before)
        };
        run(1 << 20);
        let left = run(10 << 20);
        assert!(left < 2 << 20, "{left} bytes stay when the pool is gone");
    }
}
