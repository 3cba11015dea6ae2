//! A page pool: no read returns a page older than a completed update, and neither does the store after a flush.

use std::sync::Arc;

use leafpress::store::{FaultyStore, MemoryStore, Operation, PageId};
use leafpress_pages::PagePool;
use leafpress_pages::pool::PoolError;

use crate::log::What;
use crate::rounds::{Subject, Worker, explore};
use crate::value::{number, value};

const PAGES: u32 = 400;
/// Operations of the store that fail occasionally.
const OPERATIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Remove];

struct Pool {
    pool: PagePool,
    store: Arc<FaultyStore<MemoryStore>>,
    fails: bool,
}

impl Pool {
    fn new(round: u64) -> Self {
        let store = Arc::new(FaultyStore::new(MemoryStore::new(16_384).unwrap()));
        let codecs = ["lz4", "none", "zstd:1"];
        Self {
            pool: Self::open(&store, codecs[round as usize % 3]),
            store,
            fails: round.is_multiple_of(2),
        }
    }

    fn open(store: &Arc<FaultyStore<MemoryStore>>, codec: &str) -> PagePool {
        let builder = PagePool::builder(Arc::clone(store)).memory(1 << 20);
        builder.codec(codec.parse().unwrap()).build().unwrap()
    }

    fn read(pool: &PagePool, worker: &mut Worker<'_>, key: u32) {
        let begin = worker.log.begin();
        let page = PageId::from(key);
        let found = if worker.random.bool() {
            pool.get(page).map(|found| number(key, &found))
        } else {
            pool.get_owned(page).map(|found| number(key, &found))
        };
        match found {
            Ok(found) => worker.log.note(key, begin, What::Read(found)),
            Err(error) => assert!(!matches!(error, PoolError::Codec { .. }), "{error}"),
        }
    }
}

impl Subject for Pool {
    fn step(&self, worker: &mut Worker<'_>) {
        let key = worker.key() % PAGES;
        match worker.random.u8(..200) {
            0..110 => Self::read(&self.pool, worker, key),
            110..185 => {
                let (fresh, len) = (worker.log.fresh(), worker.len().min(16_384));
                let begin = worker.log.begin();
                // A failed update leaves the page unchanged.
                if self.pool.write(PageId::from(key), &value(key, fresh, len)).is_ok() {
                    worker.log.note(key, begin, What::Write(fresh));
                } else {
                    worker.log.note_until(key, begin, u64::MAX, What::Write(fresh));
                }
            }
            185..192 => {
                let begin = worker.log.begin();
                if self.pool.remove(PageId::from(key)).is_ok() {
                    worker.log.note(key, begin, What::Remove);
                }
            }
            192..194 => {
                let pages: Vec<PageId> = (0..16).map(|_| PageId::from(worker.random.u32(..PAGES))).collect();
                let _ = self.pool.prefetch(&pages);
            }
            194..196 => _ = self.pool.flush(),
            196..198 if self.fails => {
                for operation in OPERATIONS {
                    self.store.fail_every(operation, worker.random.u64(..3) * 20);
                }
            }
            _ => self.pool.set_memory(worker.random.usize(400..1600) << 10).unwrap(),
        }
    }

    fn end(&self, worker: &mut Worker<'_>) {
        for operation in OPERATIONS {
            self.store.fail_every(operation, 0);
        }
        self.pool.flush().unwrap();
        let again = Self::open(&self.store, "lz4");
        for key in 0..PAGES {
            Self::read(&self.pool, worker, key);
            // Checks the contents of the store.
            Self::read(&again, worker, key);
        }
    }
}

#[test]
fn page_pool() {
    explore("page pool", 4, Pool::new);
}
