//! The assignment of incoming records to runs and to the shards' batches.

use crate::tree::bulk::batch::Batch;
use crate::tree::bulk::helper_threads::{DismissOnDrop, HelperThreads};
use crate::tree::error::{MAX_KEY_BYTES, MAX_VALUE_BYTES, TreeError};
use crate::tree::inner::TreeInner;
use leafpress_base::mem::room::{TryGrow, collected};
use leafpress_base::sync::threads;

/// Bytes of the batches of all shards together.
const BATCHES_BYTES: usize = 8 << 20;
/// Maximum bytes of a batch: a larger one is no faster per byte, and holds a guard for longer.
const MAX_BATCH_BYTES: usize = 512 << 10;
/// Maximum bytes of a run's beginning that are kept to train a dictionary, in a tree that has none yet.
const HEAD_BYTES: usize = 8 << 20;

/// The required order of the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Keys ascend; the tree is new.
    Ascending,
    /// Any order; if a key is repeated, the later record wins.
    Any,
}

/// Loads `records` into the tree, and returns how many of their keys are new.
///
/// # Errors
/// As [`Loader::push`]. In a tree with one shard the records before the one that the error concerns are in the tree.
pub(crate) fn load<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    core: &TreeInner,
    order: Order,
    records: impl IntoIterator<Item = (K, V)>,
) -> Result<u64, TreeError> {
    let helpers = HelperThreads::new(core);
    // The model checker has threads of its own.
    if core.load_threads <= 1 || cfg!(shuttle) {
        return take_all(Loader::new(core, order, &helpers, &mut || {})?, order, records);
    }
    threads::scope(|scope| {
        let _dismissed = DismissOnDrop(&helpers);
        let mut wanted = core.load_threads - 1;
        let mut start_helpers = || {
            // Done once; fewer helpers are used if the system provides no more threads.
            for number in 0..std::mem::take(&mut wanted) {
                let name = format!("leafpress-load-{number}");
                if scope.spawn(&name, || helpers.work()).is_err() {
                    break;
                }
                helpers.helper_started();
            }
        };
        take_all(Loader::new(core, order, &helpers, &mut start_helpers)?, order, records)
    })
}

fn take_all<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    mut loader: Loader<'_>,
    order: Order,
    records: impl IntoIterator<Item = (K, V)>,
) -> Result<u64, TreeError> {
    for (key, value) in records {
        if let Err(error) = loader.push(key.as_ref(), value.as_ref()) {
            if order == Order::Any {
                // The records before the failed one are to be in the tree; the first error is the one returned.
                let _ = loader.finish();
            }
            return Err(error);
        }
    }
    loader.finish()
}

/// Loads records into the tree.
struct Loader<'l> {
    core: &'l TreeInner,
    order: Order,
    helpers: &'l HelperThreads<'l>,
    /// Starts the helper threads.
    start_helpers: &'l mut dyn FnMut(),
    /// The run's first records, in batches like those of a shard, until there are enough. Never empty.
    head: Vec<Batch>,
    /// Bytes in `head`, and bytes that are enough.
    head_bytes: usize,
    enough_bytes: usize,
    /// Whether the run was long enough: records are routed to their shard's batch.
    is_long: bool,
    /// One batch per shard.
    batches: Vec<Batch>,
    batch_bytes: usize,
    /// The run's last key, if there is a run.
    last: Option<Vec<u8>>,
    /// Allocation of the previous run's last key.
    key_room: Vec<u8>,
    taken: usize,
    new: u64,
}

impl<'l> Loader<'l> {
    fn new(
        core: &'l TreeInner,
        order: Order,
        helpers: &'l HelperThreads<'l>,
        start_helpers: &'l mut dyn FnMut(),
    ) -> Result<Self, TreeError> {
        let leaf_bytes = core.settings.now().leaf_bytes;
        Ok(Self {
            core,
            order,
            helpers,
            start_helpers,
            head: collected([Batch::default()])?,
            head_bytes: 0,
            enough_bytes: 0,
            is_long: false,
            batches: Vec::new(),
            batch_bytes: (BATCHES_BYTES / core.shards.len()).clamp(2 * leaf_bytes, MAX_BATCH_BYTES),
            last: None,
            key_room: Vec::new(),
            taken: 0,
            new: 0,
        })
    }

    /// Takes a record.
    ///
    /// # Errors
    /// [`TreeError::KeyTooLong`], [`TreeError::ValueTooLong`], [`TreeError::Unsorted`]: for this record. Others: for
    /// this one or an earlier one.
    fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        if key.len() > MAX_KEY_BYTES {
            return Err(TreeError::KeyTooLong { len: key.len() });
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(TreeError::ValueTooLong { len: value.len() });
        }
        if self.last.as_ref().is_some_and(|last| last.as_slice() >= key) {
            if self.order == Order::Ascending {
                return Err(TreeError::Unsorted { index: self.taken });
            }
            self.end_run()?;
        }
        if self.last.is_none() {
            self.begin_run();
        }
        if self.is_long {
            self.route(key, value)?;
        } else {
            self.keep(key, value)?;
            if self.head_bytes >= self.enough_bytes {
                self.go_long()?;
            }
        }
        if let Some(last) = &mut self.last {
            last.clear();
            last.try_append(key)?;
        }
        self.taken += 1;
        Ok(())
    }

    /// Ends the run, and returns how many keys were new.
    ///
    /// # Errors
    /// As [`Loader::push`].
    fn finish(&mut self) -> Result<u64, TreeError> {
        self.end_run()?;
        Ok(self.new)
    }

    fn begin_run(&mut self) {
        self.last = Some(std::mem::take(&mut self.key_room));
        self.is_long = false;
        self.enough_bytes = if self.core.lacks_dictionary() {
            HEAD_BYTES
        } else {
            self.short_bytes()
        };
    }

    /// Returns the size below which a run is inserted record by record: it would leave a nearly empty leaf.
    fn short_bytes(&self) -> usize {
        match self.order {
            Order::Ascending => 0,
            Order::Any => self.core.settings.now().leaf_bytes / 2,
        }
    }

    /// Returns the size below which the part of a long run that falls into one leaf's range is inserted record by
    /// record.
    fn least_bytes(&self) -> usize {
        self.short_bytes() / 4
    }

    fn end_run(&mut self) -> Result<(), TreeError> {
        if let Some(mut last) = self.last.take() {
            last.clear();
            self.key_room = last;
        }
        if self.is_long {
            return self.flush();
        }
        if self.head_bytes == 0 && self.head[0].is_empty() {
            return Ok(());
        }
        if self.head_bytes >= self.short_bytes() {
            self.go_long()?;
            return self.flush();
        }
        // The head is no longer than a batch.
        let head = &mut self.head[0];
        let inserted = self.core.insert_each(head, 0..head.len());
        head.clear();
        self.head_bytes = 0;
        self.new += inserted?;
        Ok(())
    }

    /// Adds a record to the head.
    fn keep(&mut self, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        let settings = &self.core.settings.now();
        let mut last = self.head.len() - 1;
        if self.head[last].is_full_before(key, value, self.batch_bytes, settings) {
            let batch = self.spare();
            self.head.try_push(batch)?;
            last += 1;
        }
        self.head[last].push(key, value, settings)?;
        self.head_bytes += key.len() + value.len();
        Ok(())
    }

    /// Switches to a long run: its first records are routed to their shards.
    fn go_long(&mut self) -> Result<(), TreeError> {
        if self.batches.is_empty() {
            self.batches.try_room(self.core.shards.len())?;
            self.batches.resize_with(self.core.shards.len(), Batch::default);
        }
        let empty = collected([Batch::default()])?;
        self.is_long = true;
        self.head_bytes = 0;
        let head = std::mem::replace(&mut self.head, empty);
        self.core.train_ahead(&head);
        if head.len() > 1 {
            (self.start_helpers)();
        }
        for batch in head {
            if let [own] = self.batches.as_mut_slice() {
                // The last batch continues to be filled.
                let full = std::mem::replace(own, batch);
                if !full.is_empty() {
                    self.helpers.submit(0, full, self.least_bytes())?;
                }
                continue;
            }
            for (key, value) in batch.records(0..batch.len()) {
                self.route(key, value)?;
            }
            self.helpers.take_back(batch);
        }
        Ok(())
    }

    /// Adds a record to its shard's batch; a full batch is first put into the tree.
    fn route(&mut self, key: &[u8], value: &[u8]) -> Result<(), TreeError> {
        let shard = self.core.shard_index(key);
        let settings = &self.core.settings.now();
        if self.batches[shard].is_full_before(key, value, self.batch_bytes, settings) {
            (self.start_helpers)();
            self.hand(shard)?;
        }
        self.batches[shard].push(key, value, settings)
    }

    /// Puts a shard's batch into the tree, by a helper or directly.
    fn hand(&mut self, shard: usize) -> Result<(), TreeError> {
        let spare = self.spare();
        let batch = std::mem::replace(&mut self.batches[shard], spare);
        self.helpers.submit(shard, batch, self.least_bytes())
    }

    /// Returns an empty batch with reserved room.
    fn spare(&self) -> Batch {
        let mut batch = self.helpers.spare();
        batch.reserve(self.batch_bytes + self.core.settings.now().leaf_bytes);
        batch
    }

    /// Puts all remaining batches into the tree, and waits for them.
    fn flush(&mut self) -> Result<(), TreeError> {
        self.is_long = false;
        let mut first_error = None;
        for shard in 0..self.batches.len() {
            if self.batches[shard].is_empty() {
                continue;
            }
            let batch = std::mem::replace(&mut self.batches[shard], self.helpers.spare());
            if let Err(error) = self.helpers.submit(shard, batch, self.least_bytes()) {
                first_error.get_or_insert(error);
            }
        }
        let placed = self.helpers.wait();
        self.new += self.helpers.take_new();
        first_error.map_or(placed, Err)
    }
}
