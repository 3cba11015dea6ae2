//! A tree does not evict: a key that was written and not removed since is present.

use leafpress::tree::Update;
use leafpress::{Tree, TreeBuilder};

use crate::log::{ALL_KEYS, What};
use crate::rounds::{KEYS, Subject, Worker, explore};
use crate::value::{number, value};

struct Plain(Tree);

fn name(key: u32) -> [u8; 8] {
    // Leaves room for neighbours between the keys, and spreads them over many leaves.
    (u64::from(key) << 20).to_be_bytes()
}

impl Plain {
    fn new(round: u64) -> Self {
        let codecs = ["lz4", "trial", "none", "zstd:1", "onpair", "auto"];
        let builder = TreeBuilder::default().codec(codecs[round as usize % codecs.len()].parse().unwrap());
        Self(builder.build().unwrap())
    }

    fn read(&self, worker: &mut Worker<'_>, key: u32) {
        let begin = worker.log.begin();
        match self.0.get(&name(key)).unwrap() {
            Some(found) => worker.log.note(key, begin, What::Read(number(key, &found))),
            // A tree does not evict, so the key was absent at some moment of the operation.
            None => worker.log.note(key, begin, What::Remove),
        }
    }

    fn write(&self, worker: &mut Worker<'_>, key: u32) {
        let (fresh, len) = (worker.log.fresh(), worker.len());
        let new = value(key, fresh, len);
        let begin = worker.log.begin();
        let of = |found: Option<&[u8]>| found.map(|found| number(key, found));
        match worker.random.u8(..6) {
            0 => {
                let old = self.0.swap(&name(key), &new).unwrap();
                worker.log.note_consumed(key, begin, of(old.as_deref()));
                worker.log.note(key, begin, What::Write(fresh));
            }
            1 => {
                if self.0.insert_if_absent(&name(key), &new).unwrap() {
                    worker.log.note(key, begin, What::Remove);
                    worker.log.note(key, begin, What::Write(fresh));
                }
            }
            2 => {
                if self.0.replace(&name(key), &new).unwrap() {
                    worker.log.note(key, begin, What::Write(fresh));
                }
            }
            3 => {
                let old = self.0.get(&name(key)).unwrap();
                if self.0.compare_and_swap(&name(key), old.as_deref(), Some(&new)).unwrap() {
                    worker.log.note_consumed(key, begin, of(old.as_deref()));
                    worker.log.note(key, begin, What::Write(fresh));
                }
            }
            4 => {
                let (mut seen, mut answered) = (None, begin);
                let log = &worker.log;
                self.0
                    .update_with(&name(key), |found| {
                        seen = of(found);
                        answered = log.tick();
                        Update::Put(&new)
                    })
                    .unwrap();
                worker.log.note_consumed(key, begin, seen);
                worker.log.note(key, answered, What::Write(fresh));
            }
            _ => {
                self.0.insert(&name(key), &new).unwrap();
                worker.log.note(key, begin, What::Write(fresh));
            }
        }
    }
}

impl Subject for Plain {
    fn step(&self, worker: &mut Worker<'_>) {
        let key = worker.key();
        match worker.random.u16(..1000) {
            0..450 => self.read(worker, key),
            450..500 => {
                let keys: Vec<u32> = (0..8).map(|_| worker.key()).collect();
                let names: Vec<_> = keys.iter().map(|key| name(*key)).collect();
                let begin = worker.log.begin();
                let found = self.0.get_many(&names).unwrap();
                for (key, found) in keys.into_iter().zip(found) {
                    let what = found.map_or(What::Remove, |found| What::Read(number(key, &found)));
                    worker.log.note(key, begin, what);
                }
            }
            500..505 => {
                let begin = worker.log.begin();
                for record in self.0.range(name(key)..name(key + 30)) {
                    let (found, bytes) = record.unwrap();
                    let found: [u8; 8] = found.as_slice().try_into().unwrap();
                    let key = (u64::from_be_bytes(found) >> 20) as u32;
                    worker.log.note(key, begin, What::Read(number(key, &bytes)));
                }
            }
            505..560 => {
                let begin = worker.log.begin();
                let old = self.0.take(&name(key)).unwrap();
                worker.log.note_consumed(key, begin, old.map(|old| number(key, &old)));
                worker.log.note(key, begin, What::Remove);
            }
            560..620 => {
                let begin = worker.log.begin();
                self.0.remove(&name(key)).unwrap();
                worker.log.note(key, begin, What::Remove);
            }
            620 => {
                let begin = worker.log.begin();
                self.0.clear().unwrap();
                worker.log.note(ALL_KEYS, begin, What::Remove);
            }
            _ => self.write(worker, key),
        }
    }

    fn end(&self, worker: &mut Worker<'_>) {
        (0..KEYS).for_each(|key| self.read(worker, key));
        self.0.validate().unwrap();
    }
}

#[test]
fn plain_tree() {
    explore("tree", 3, Plain::new);
}
