//! A typed cache, which adds operations to those of a cache.

use std::sync::Arc;

use leafpress::Cache;
use leafpress::cache::{CacheUpdate, Disk, TypedCache};
use leafpress::store::MemoryStore;
use leafpress_base::bytes::put_leb128;

use crate::log::What;
use crate::rounds::{Subject, Worker, explore};

/// A value: its key and its number.
type Pair = (u32, u64);

struct Typed(TypedCache<u32, Pair>);

fn of(key: u32, (found, number): Pair) -> u64 {
    assert_eq!(found, key, "another key's value");
    number
}

impl Typed {
    fn new(round: u64) -> Self {
        let mut builder = Cache::builder().memory(4 << 20);
        if !round.is_multiple_of(2) {
            builder = builder.disk(Disk::store(Arc::new(MemoryStore::new(4096).unwrap()), 8 << 20));
        }
        Self(TypedCache::new(builder.build().unwrap()))
    }
}

impl Subject for Typed {
    fn step(&self, worker: &mut Worker<'_>) {
        let key = worker.key();
        let kind = worker.random.u16(..1000);
        let (begin, fresh) = (worker.log.begin(), worker.log.fresh());
        match kind {
            0..400 => {
                if let Some(found) = self.0.get(&key).unwrap() {
                    worker.log.note(key, begin, What::Read(of(key, found)));
                }
            }
            400..600 => {
                self.0.insert(&key, &(key, fresh)).unwrap();
                worker.log.note(key, begin, What::Write(fresh));
            }
            600..700 => {
                self.0.remove(&key).unwrap();
                worker.log.note(key, begin, What::Remove);
            }
            700..800 => {
                let (mut seen, mut answered) = (None, begin);
                let (log, removes) = (&worker.log, worker.random.bool());
                self.0
                    .update_with(&key, |found| {
                        seen = found.map(|found| of(key, found));
                        answered = log.tick();
                        if removes {
                            CacheUpdate::Remove
                        } else {
                            CacheUpdate::Put((key, fresh))
                        }
                    })
                    .unwrap();
                worker.log.note_consumed(key, begin, seen);
                let what = if removes { What::Remove } else { What::Write(fresh) };
                worker.log.note(key, answered, what);
            }
            800..810 => {
                // Bytes that do not decode to this type: a read removes them.
                self.0.cache().insert(&postcard_of(key), &[0xff; 3]).unwrap();
                worker.log.note(key, begin, What::Remove);
            }
            810..815 => self.0.cache().spill().unwrap(),
            _ => {
                let (mut loaded, log) = (None, &worker.log);
                let load = || {
                    loaded = Some(log.tick());
                    std::thread::yield_now();
                    (key, fresh)
                };
                // Other threads may have inserted bytes that do not decode meanwhile.
                let Ok(found) = self.0.get_or_insert_with(&key, load) else {
                    return;
                };
                match loaded {
                    Some(at) => worker.log.note_until(key, begin, at, What::Load(fresh)),
                    None => worker.log.note(key, begin, What::Read(of(key, found))),
                }
            }
        }
    }
}

/// Encodes a key as postcard does.
fn postcard_of(key: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_leb128(&mut bytes, key as usize);
    bytes
}

#[test]
fn typed_cache() {
    explore("typed cache", 2, Typed::new);
}
