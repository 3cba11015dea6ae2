//! The background task that trains dictionaries and adapts the share.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::inner::VictimInner;
use super::locked_shard::Sampled;
use super::read::copy_of;
use super::work_queue::Work;
use leafpress_base::sync::runtime::{self, Next, Task, TaskHandle};
use leafpress_base::sync::worker::Health;
use leafpress_codec::Scratch;

impl VictimInner {
    /// Trains a dictionary for a family from the blocks held; returns true if that was due.
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
                // A damaged block, or one for which there is no memory, is left out of the sample.
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

/// A cache's task of the upkeep runtime.
struct Background(Arc<VictimInner>);

impl Task for Background {
    fn work(&mut self) -> Next {
        let did_work = match self.0.work.next() {
            None => return Next::Idle(None),
            Some(Work::Train(family)) => self.0.train(family),
            Some(Work::Adapt) => {
                self.0.adapt();
                true
            }
        };
        if did_work {
            Next::Again
        } else {
            Next::Idle(Some(Duration::ZERO))
        }
    }

    fn health(&self) -> &Health {
        &self.0.health
    }

    fn give_up(&mut self) {
        self.0.work.stop();
    }
}

/// Starts the task, which ends when the handle is dropped.
pub(super) fn start(core: &Arc<VictimInner>) -> io::Result<TaskHandle> {
    runtime::start(Background(Arc::clone(core)), Some(&core.work.task))
}
