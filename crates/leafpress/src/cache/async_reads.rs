//! Reads by async tasks, which block no thread of an executor.

use super::Cache;
use super::counters::{Count, Outcome};
use super::error::CacheError;
use super::get_many::has_damage;
use super::inner::{CacheInner, Seen};
use super::observer::Observer;
use leafpress_base::mem::room::{copied, room_for};

/// Result of a look-up that reads no device.
enum Looked<R> {
    Known(Option<R>),
    /// The key is not in memory and may be on disk.
    MayBeOnDisk,
}

impl Cache {
    /// Returns a copy of the key's value, or [`None`] if the key is absent, and never blocks the executor's thread for
    /// a device. It works with any async runtime.
    ///
    /// A key in memory is found at the first poll, and so is the absence of a key, unless a filter of the disk tier
    /// takes it for present (a few in 100). Other keys are read by threads of the cache (`leafpress-read`, at most
    /// four), which read the keys of concurrent tasks in batches. Without a disk tier the future is always ready at
    /// once.
    ///
    /// # Cancel safety
    /// Dropping the future is safe at any time. A read that has not begun is not made.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # let ada = async {
    /// assert_eq!(cache.get_async("user:42").await?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// # };
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(read) = std::pin::pin!(ada).poll(&mut context) else { panic!("it is in memory") };
    /// # read?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get`].
    pub async fn get_async(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Vec<u8>>, CacheError> {
        self.copy_in_task(key.as_ref(), true).await
    }

    /// Calls `read` with the key's value and returns its result, or [`None`] if the key is absent. A value in memory is
    /// not copied, as by [`Cache::get_with`]. Otherwise it behaves as [`Cache::get_async`] does.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # let ada = async {
    /// assert_eq!(cache.get_with_async("user:42", |value| value.len()).await?, Some(3));
    /// # Ok::<(), leafpress::CacheError>(())
    /// # };
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(read) = std::pin::pin!(ada).poll(&mut context) else { panic!("it is in memory") };
    /// # read?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Cancel safety
    /// As for [`Cache::get_async`].
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get`].
    pub async fn get_with_async<R>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>, CacheError> {
        self.get_in_task(key.as_ref(), read, true).await
    }

    /// Returns copies of the values of several keys, in the order of `keys`, with [`None`] for absent keys: see
    /// [`Cache::get_many`]. The keys that may be on disk are all queued at once for the threads that
    /// [`Cache::get_async`] describes. The values are not a snapshot of one moment.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # let users = async {
    /// let values = cache.get_many_async(&["user:42", "user:1"]).await?;
    /// assert_eq!(values, [Some(b"Ada".to_vec()), None]);
    /// # Ok::<(), leafpress::CacheError>(())
    /// # };
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(read) = std::pin::pin!(users).poll(&mut context) else { panic!("in memory") };
    /// # read?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Cancel safety
    /// As for [`Cache::get_async`].
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get`].
    pub async fn get_many_async<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, CacheError> {
        if !self.has_disk() {
            return self.get_many(keys);
        }
        let mut values = room_for(keys.len())?;
        values.resize_with(keys.len(), || None);
        let mut memory = Ok(());
        let on_disk = self
            .core
            .get_many_off_device(keys, |index, value| match copied(value) {
                Ok(value) => values[index] = Some(value),
                Err(error) => memory = Err(error),
            })?;
        memory?;
        let mut reads = room_for(on_disk.len())?;
        for index in on_disk {
            let read = self.lifetime.readers.read(&self.core, keys[index].as_ref(), true)?;
            reads.push((index, read));
        }
        for (index, read) in reads {
            values[index] = match read.await {
                Some(value) => value,
                None => self.get(keys[index].as_ref())?,
            };
        }
        Ok(values)
    }

    /// Returns a copy of the value. `is_counted`: the read counts as a hit or miss.
    pub(super) async fn copy_in_task(&self, key: &[u8], is_counted: bool) -> Result<Option<Vec<u8>>, CacheError> {
        Ok(self.get_in_task(key, copied, is_counted).await?.transpose()?)
    }

    async fn get_in_task<R>(
        &self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> R,
        is_counted: bool,
    ) -> Result<Option<R>, CacheError> {
        let core = &self.core;
        let began = Observer::begin_get();
        let (mut read, mut seen) = (Some(read), Seen::default());
        let found = match core.look_off_device(key, &mut read, &mut seen)? {
            Looked::Known(found) => found,
            Looked::MayBeOnDisk => {
                let Some(read) = read else { return Ok(None) };
                let Some(value) = self.lifetime.readers.read(core, key, is_counted)?.await else {
                    // Without a reader: it blocks.
                    return match is_counted {
                        true => core.get(key, read),
                        false => core.find(key, read, &mut seen),
                    };
                };
                core.observer.end_get(began, Outcome::of(value.is_some(), true));
                return Ok(value.map(|value| read(&value)));
            }
        };
        let outcome = Outcome::of(found.is_some(), seen.is_from_disk);
        if is_counted {
            core.counters.add(outcome.count(), 1);
            core.sample_read(key, found.is_some());
        }
        core.observer.end_get(began, outcome);
        if seen.wants_touch {
            core.queue_read(key);
        }
        Ok(found)
    }
}

impl CacheInner {
    /// Looks a key up where that takes no read of a device. `read` is left if it was not called.
    fn look_off_device<R>(
        &self,
        key: &[u8],
        read: &mut Option<impl FnOnce(&[u8]) -> R>,
        seen: &mut Seen,
    ) -> Result<Looked<R>, CacheError> {
        let found = match self.find_in_memory(key, read, seen) {
            Ok(Some(Some(found))) => Some(found),
            Ok(None) => match &self.disk {
                Some(disk) if disk.may_read_device(disk.hash(key), key) => return Ok(Looked::MayBeOnDisk),
                Some(_) => self.find_on_disk(key, read.take(), seen)?,
                None => self.absent()?,
            },
            // Expired or damaged.
            _ => read.take().map_or(Ok(None), |read| self.find(key, read, seen))?,
        };
        Ok(Looked::Known(found))
    }

    /// Calls `read` with the index and value of each key that is in memory, counts those and the absent ones, and
    /// returns the indices of the keys that may be on disk.
    fn get_many_off_device<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut read: impl FnMut(usize, &[u8]),
    ) -> Result<Vec<usize>, CacheError> {
        self.check_open()?;
        let mut left = room_for(keys.len())?;
        let Some(disk) = self.disk.as_ref().filter(|_| self.queued_reads.get().is_none()) else {
            // Each key alone: a record may only seem expired until queued reads are applied.
            for (index, key) in keys.iter().enumerate() {
                let (key, mut seen) = (key.as_ref(), Seen::default());
                match self.look_off_device(key, &mut Some(|value: &[u8]| read(index, value)), &mut seen)? {
                    Looked::MayBeOnDisk => left.push(index),
                    Looked::Known(found) => {
                        let outcome = Outcome::of(found.is_some(), seen.is_from_disk);
                        self.counters.add(outcome.count(), 1);
                        self.sample_read(key, found.is_some());
                    }
                }
                if seen.wants_touch {
                    self.queue_read(key);
                }
            }
            return Ok(left);
        };
        let (mut next, mut hits, mut misses) = (0, 0, 0);
        let mut absent = room_for(keys.len())?;
        let result = self.tree.get_many_with(keys, |index, stored| {
            // Records that cannot be decoded are skipped: their own read removes them.
            left.extend(std::mem::replace(&mut next, index + 1)..index);
            match stored.map(|stored| self.unexpired(keys[index].as_ref(), stored)) {
                Some(Some(value)) => {
                    hits += 1;
                    self.sample_read(keys[index].as_ref(), true);
                    read(index, value);
                }
                Some(None) => {
                    misses += 1;
                    self.sample_read(keys[index].as_ref(), false);
                }
                None => absent.push(index),
            }
        });
        has_damage(result)?;
        left.extend(next..keys.len());
        for index in absent {
            let key = keys[index].as_ref();
            match disk.may_have(disk.hash(key), key) {
                true => left.push(index),
                false => {
                    misses += 1;
                    self.sample_read(key, false);
                }
            }
        }
        self.counters.add(Count::MemoryHits, hits);
        self.counters.add(Count::Misses, misses);
        Ok(left)
    }
}
