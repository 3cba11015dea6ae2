//! A victim cache: a refused insertion removes the older block of its key.

use leafpress_pages::victim::{Insertion, NewBlock, OnHit, RawShare, VictimCache};

use crate::log::What;
use crate::rounds::{KEYS, Subject, Worker, explore};
use crate::value::{number, value};

struct Victim(VictimCache);

impl Victim {
    fn new(round: u64) -> Self {
        let codecs = ["lz4", "none", "zstd:1"];
        let share = match round % 4 {
            0 => RawShare::Fixed { raw_percent: 0 },
            1 => RawShare::Fixed { raw_percent: 40 },
            _ => RawShare::Adaptive,
        };
        let builder = VictimCache::builder()
            .memory(2 << 20)
            .codec(codecs[round as usize % 3].parse().unwrap())
            .dictionary_bytes(if round.is_multiple_of(2) { 0 } else { 4096 })
            .share(share);
        Self(builder.build().unwrap())
    }

    fn insert(&self, worker: &mut Worker<'_>, key: u32, begin: u64) {
        let fresh = worker.log.fresh();
        let len = match worker.random.u8(..) {
            0..4 => 0,
            4..6 => 1_200_000,
            6..8 => 300_000,
            _ => worker.len(),
        };
        let block = if len == 0 { Vec::new() } else { value(key, fresh, len) };
        let name = key.to_be_bytes();
        let inserted = if worker.random.u8(..) < 30 {
            let fails = worker.random.u8(..) < 100;
            let mut new = NewBlock::new(block.len());
            new.force = worker.random.bool();
            let fill = |raw: &mut [u8]| {
                raw.copy_from_slice(&block);
                if fails { Err(()) } else { Ok(()) }
            };
            matches!(self.0.insert_with(&name, &new, fill), Ok(Insertion::Inserted))
        } else {
            self.0.insert(&name, &block) == Insertion::Inserted
        };
        let what = if inserted { What::Write(fresh) } else { What::Remove };
        worker.log.note(key, begin, what);
    }
}

impl Subject for Victim {
    fn step(&self, worker: &mut Worker<'_>) {
        let (key, begin) = (worker.key(), worker.log.begin());
        let name = key.to_be_bytes();
        match worker.random.u8(..100) {
            0..45 => {
                if let Some(found) = self.0.get(&name) {
                    worker.log.note(key, begin, What::Read(number(key, &found)));
                }
            }
            45..50 => {
                let read = |found: leafpress_pages::victim::FoundBlock<'_>| Ok::<_, ()>(number(key, found.bytes));
                let on_hit = if worker.random.bool() {
                    OnHit::Promote
                } else {
                    OnHit::Keep
                };
                if let Some(Ok(found)) = self.0.read(&name, on_hit, read) {
                    worker.log.note(key, begin, What::Read(found));
                }
            }
            50..58 => {
                let found = self.0.take(&name).map(|found| number(key, &found));
                worker.log.note_consumed(key, begin, found);
                worker.log.note(key, begin, What::Remove);
            }
            58..66 => {
                self.0.remove(&name);
                worker.log.note(key, begin, What::Remove);
            }
            66..99 => self.insert(worker, key, begin),
            _ => self.0.set_memory(worker.random.usize(1..4) << 20),
        }
    }

    fn end(&self, worker: &mut Worker<'_>) {
        for key in 0..KEYS {
            let begin = worker.log.begin();
            if let Some(found) = self.0.get(&key.to_be_bytes()) {
                worker.log.note(key, begin, What::Read(number(key, &found)));
            }
        }
        self.0.validate().unwrap();
    }
}

#[test]
fn victim_cache() {
    explore("victim cache", 6, Victim::new);
}
