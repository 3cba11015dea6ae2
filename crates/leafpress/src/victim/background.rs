//! The thread that trains dictionaries and decides on the share.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::core::Core;
use super::padded::Sampled;
use super::read::copy_of;
use super::wake::Work;
use crate::codec::Scratch;
use crate::sync::worker::{Health, Worker, Workers};

impl Core {
    /// Trains a dictionary for a family from the blocks that are held; whether that was due.
    fn train(&self, family: usize) -> bool {
        if !self.dictionaries.begin(family) {
            return false;
        }
        let each = self.dictionaries.sample_bytes().div_ceil(self.shards.len());
        let (mut blocks, mut scratch) = (Vec::new(), Scratch::default());
        for shard in &self.shards {
            let mut sampled = Sampled::new(shard);
            shard.0.lock().sample(family as u8, each, &mut sampled.pins);
            while let Some(pinned) = sampled.next() {
                // One that is not what it was, or that there is no memory for, is no sample.
                let raw = self.raw_bytes(&pinned, &mut scratch).ok().and_then(copy_of);
                if let Some(raw) = raw.filter(|_| blocks.try_reserve(1).is_ok()) {
                    blocks.push(raw);
                }
            }
        }
        self.dictionaries.train(family, self.codec, &*self.engine, &blocks);
        true
    }
}

/// What the thread runs.
struct Background(Arc<Core>);

impl Worker for Background {
    fn work(&mut self) -> ControlFlow<()> {
        loop {
            let did_work = match self.0.wake.next() {
                None => return ControlFlow::Break(()),
                Some(Work::Train(family)) => self.0.train(family),
                Some(Work::Adapt) => {
                    self.0.adapt();
                    true
                }
            };
            if did_work {
                return ControlFlow::Continue(());
            }
        }
    }

    fn health(&self) -> &Health {
        &self.0.health
    }

    fn give_up(&mut self) {
        self.0.wake.stop();
    }
}

/// The thread, stopped when this is dropped.
pub(super) struct Thread {
    core: Arc<Core>,
    workers: Workers,
}

impl Thread {
    pub(super) fn start(core: &Arc<Core>) -> io::Result<Self> {
        let mut workers = Workers::default();
        workers.start("leafpress-victim".to_owned(), Background(Arc::clone(core)))?;
        Ok(Self {
            core: Arc::clone(core),
            workers,
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.core.wake.stop();
        self.workers.join();
    }
}
