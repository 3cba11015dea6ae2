//! Single-flight loading of missing values.

use std::any::Any;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use super::Cache;
use super::error::{CacheError, LoadError};
use super::inner::Seen;
use super::insert_options::InsertOptions;
use super::listener::RemovalCause;
use super::load_table::{Join, LoadLeader, LoadOutcome, LoadWaiter};
use leafpress_base::mem::room::copied;

impl Cache {
    /// Returns the key's value, or calls `load` and inserts and returns its result.
    ///
    /// One thread loads per key; other threads that miss meanwhile wait for it and get the same value. No lock is held
    /// while `load` runs, so it may use the cache. If the key is written or removed during the load, by any method and
    /// whether it was present or not, the loaded value is returned and not stored. Nor is it stored if it cannot be: a
    /// key or value that is too long, a time to live out of bounds, no memory. If `load` panics, one of the waiting
    /// callers loads. A caller does not wait for a load that needs its own thread (a loader that loads its own key, or
    /// a future that this thread polled last): it loads as well. With
    /// [`CacheBuilder::stale_while_revalidate`](super::CacheBuilder::stale_while_revalidate), other callers get an
    /// expired value instead of waiting, if there is one.
    ///
    /// Do not call this method in an async task: it blocks the executor's thread. Use [`Cache::get_or_fetch`] there.
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let load = || "from the database";
    /// assert_eq!(cache.get_or_insert_with("user:42", load)?, b"from the database");
    /// let again = cache.get_or_insert_with("user:42", || -> &str { unreachable!("it is there") })?;
    /// assert_eq!(again, b"from the database");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get`].
    pub fn get_or_insert_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> V,
    ) -> Result<Vec<u8>, CacheError> {
        let loaded = self.try_get_or_insert_with(key, || Ok::<V, Infallible>(load()));
        loaded.map_err(|error| match error {
            LoadError::Cache(error) => error,
            LoadError::Load(never) => match *never {},
        })
    }

    /// Returns the key's value, or calls the fallible `load` and inserts and returns its result. If `load` fails, all
    /// callers that waited for it get its error, and the next one to miss tries again. Otherwise it behaves as
    /// [`Cache::get_or_insert_with`] does.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use leafpress::cache::LoadError;
    ///
    /// let failed = cache.try_get_or_insert_with("user:42", || Err::<&str, _>("the database is away"));
    /// assert!(matches!(failed, Err(LoadError::Load(error)) if *error == "the database is away"));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`LoadError::Load`] with the error of `load`, or [`LoadError::Cache`].
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    pub fn try_get_or_insert_with<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        self.try_get_or_insert_entry_with(key, || Ok((load()?, InsertOptions::default())))
    }

    /// Returns the key's value, or calls the fallible `load`, which also returns the options of the insertion.
    /// Otherwise it behaves as [`Cache::try_get_or_insert_with`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// use std::time::Duration;
    /// use leafpress::cache::{InsertOptions, LoadError};
    ///
    /// let cache = leafpress::Cache::builder().build()?;
    /// let token = cache.try_get_or_insert_entry_with("token", || {
    ///     Ok::<_, std::io::Error>(("abc", InsertOptions::ttl(Duration::from_secs(300))))
    /// });
    /// assert_eq!(token.unwrap(), b"abc");
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_get_or_insert_entry_with<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> Result<(V, InsertOptions), E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let loaded = self.load_blocking(key.as_ref(), false, || load().map(Some))?;
        // This loader answers with a value, and the answers of others that have none are not taken.
        Ok(loaded.unwrap_or_default())
    }

    /// Returns the key's value, or calls the fallible `load` and inserts and returns its result, if it has one. If it
    /// answers [`None`], all callers of this method that waited for it get [`None`], and nothing is stored: the next
    /// caller to miss asks again, unless the absence is remembered
    /// ([`CacheBuilder::absent_ttl`](super::CacheBuilder::absent_ttl)). Callers of the other methods that waited run
    /// their own loaders. Otherwise it behaves as [`Cache::try_get_or_insert_with`] does.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let absent = cache.try_get_or_insert_option_with("user:1", || Ok::<_, std::io::Error>(None::<&str>));
    /// assert_eq!(absent.unwrap(), None);
    /// let ada = cache.try_get_or_insert_option_with("user:42", || Ok::<_, std::io::Error>(Some("Ada")));
    /// assert_eq!(ada.unwrap().as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    pub fn try_get_or_insert_option_with<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<Vec<u8>>, LoadError<E>> {
        let load = || Ok(load()?.map(|value| (value, InsertOptions::default())));
        self.load_blocking(key.as_ref(), true, load)
    }

    /// `takes_absent`: another caller's answer that there is no value is an answer for this one.
    fn load_blocking<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &[u8],
        takes_absent: bool,
        load: impl FnOnce() -> Result<Option<(V, InsertOptions)>, E>,
    ) -> Result<Option<Vec<u8>>, LoadError<E>> {
        loop {
            let present = self.get(key)?;
            if present.is_some() && !self.core.is_due(key) {
                return Ok(present);
            }
            let lead = match self.core.join_load(key, takes_absent) {
                Join::Lead(lead) => lead,
                // Another caller is loading it anew.
                Join::Wait(_) | Join::Absent if present.is_some() => return Ok(present),
                Join::Absent => return Ok(None),
                Join::Wait(pending) => {
                    if let Some(stale) = self.core.find_stale(key, self.core.times.stale)? {
                        return Ok(Some(stale));
                    }
                    if !pending.is_led_here() {
                        let limit = self.core.times.load_wait;
                        let waited = limit.unwrap_or_default();
                        let outcome = pending.wait(limit).ok_or(CacheError::LoadWait { waited })?;
                        match received(outcome, takes_absent) {
                            Some(result) => return result,
                            None => continue,
                        }
                    }
                    // The loader needs this thread: waiting would deadlock.
                    self.core.loads.take_over(key)
                }
            };
            return match self.again(key)? {
                Some(found) if !self.core.is_due(key) => Ok(Some(self.hand_on(lead, found))),
                present => {
                    let stamp = self.core.stamp();
                    self.finish(lead, stamp, self.core.timed_load(load), present)
                }
            };
        }
    }

    /// Returns the key's value, or awaits the future `load` and inserts and returns its result. It works with any async
    /// runtime.
    ///
    /// Loading is single-flight as in [`Cache::try_get_or_insert_with`], with tasks instead of threads: `load` is
    /// polled by the task that calls this method, and other tasks that miss wait without blocking their threads. A
    /// record on disk is read as by [`Cache::get_async`].
    ///
    /// # Cancel safety
    /// Dropping the returned future is safe at any time. If it was running `load`, `load` is dropped unfinished,
    /// nothing is stored, and one of the waiting callers runs its own loader. If it was waiting for another task's
    /// load, that load continues.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let fetch = async { Ok::<_, std::io::Error>("from the database") };
    /// let user = async { cache.get_or_fetch("user:42", fetch).await };
    /// # let mut user = std::pin::pin!(user);
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(user) = user.as_mut().poll(&mut context) else { panic!("nothing to wait for") };
    /// # assert_eq!(user.expect("it is loaded"), b"from the database");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::try_get_or_insert_with`].
    ///
    /// # Panics
    /// Panics if polling `load` panics; one of the waiting callers then runs its own loader.
    pub async fn get_or_fetch<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let load = async { Ok((load.await?, InsertOptions::default())) };
        self.get_or_fetch_entry(key, load).await
    }

    /// Returns the key's value, or awaits the future `load`, which also returns the options of the insertion. Otherwise
    /// it behaves as [`Cache::get_or_fetch`] does.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use std::time::Duration;
    /// use leafpress::cache::InsertOptions;
    ///
    /// let fetch = async { Ok::<_, std::io::Error>(("from the database", InsertOptions::ttl(Duration::from_secs(60)))) };
    /// let user = async { cache.get_or_fetch_entry("user:42", fetch).await };
    /// # let mut user = std::pin::pin!(user);
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(user) = user.as_mut().poll(&mut context) else { panic!("nothing to wait for") };
    /// # assert_eq!(user.expect("it is loaded"), b"from the database".as_slice());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Cancel safety
    /// As for [`Cache::get_or_fetch`]: a dropped future stores nothing, and a waiting caller takes over.
    ///
    /// # Errors
    /// Returns the errors of [`Cache::try_get_or_insert_entry_with`].
    ///
    /// # Panics
    /// Panics as [`Cache::get_or_fetch`] does.
    pub async fn get_or_fetch_entry<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<(V, InsertOptions), E>>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let load = async { load.await.map(Some) };
        let loaded = self.load_in_task(key.as_ref(), false, load).await?;
        // As in `try_get_or_insert_entry_with`.
        Ok(loaded.unwrap_or_default())
    }

    /// Returns the key's value, or awaits the future `load` and inserts and returns its result, if it has one. An
    /// answer [`None`] is shared and not stored as by [`Cache::try_get_or_insert_option_with`]. Otherwise it behaves as
    /// [`Cache::get_or_fetch`] does.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let fetch = async { Ok::<_, std::io::Error>(None::<&str>) };
    /// let user = async { cache.get_or_fetch_option("user:1", fetch).await };
    /// # let mut user = std::pin::pin!(user);
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(user) = user.as_mut().poll(&mut context) else { panic!("nothing to wait for") };
    /// # assert_eq!(user.expect("it is loaded"), None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Cancel safety
    /// As for [`Cache::get_or_fetch`].
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get_or_fetch`].
    ///
    /// # Panics
    /// Panics as [`Cache::get_or_fetch`] does.
    pub async fn get_or_fetch_option<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<Vec<u8>>, LoadError<E>> {
        let load = async { Ok(load.await?.map(|value| (value, InsertOptions::default()))) };
        self.load_in_task(key.as_ref(), true, load).await
    }

    /// Like [`Cache::load_blocking`], in a task.
    async fn load_in_task<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &[u8],
        takes_absent: bool,
        load: impl Future<Output = Result<Option<(V, InsertOptions)>, E>>,
    ) -> Result<Option<Vec<u8>>, LoadError<E>> {
        loop {
            let present = self.copy_in_task(key, true).await?;
            if present.is_some() && !self.core.is_due(key) {
                return Ok(present);
            }
            let lead = match self.core.join_load(key, takes_absent) {
                Join::Lead(lead) => lead,
                // Another caller is loading it anew.
                Join::Wait(_) | Join::Absent if present.is_some() => return Ok(present),
                Join::Absent => return Ok(None),
                Join::Wait(pending) => match self.core.find_stale(key, self.core.times.stale)? {
                    Some(stale) => return Ok(Some(stale)),
                    None => match received(LoadWaiter::new(pending).await, takes_absent) {
                        Some(result) => return result,
                        None => continue,
                    },
                },
            };
            self.show_load(key)?;
            let present = match self.copy_in_task(key, false).await? {
                Some(found) if !self.core.is_due(key) => return Ok(Some(self.hand_on(lead, found))),
                present => present,
            };
            let mut load = pin!(load);
            let (began, stamp) = (Instant::now(), self.core.stamp());
            let loaded = poll_fn(|context| lead.poll(load.as_mut(), context)).await;
            self.core.note_load(began);
            return self.finish(lead, stamp, loaded, present);
        }
    }

    /// Looks again for a key whose miss, before its load began, has been counted already.
    fn again(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CacheError> {
        self.show_load(key)?;
        Ok(self.core.find(key, copied, &mut Seen::default())?.transpose()?)
    }

    /// From its return on every writer of the key sees the load that the caller leads: see `load_table`.
    fn show_load(&self, key: &[u8]) -> Result<(), CacheError> {
        Ok(self.core.tree.synchronize(key)?)
    }

    /// Ends a load whose value was present already.
    fn hand_on(&self, lead: LoadLeader<'_>, found: Vec<u8>) -> Vec<u8> {
        lead.finish_with_value(&Arc::from(found.as_slice()));
        found
    }

    /// Ends a load, which began with the record `present` if it was near its expiry.
    fn finish<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        lead: LoadLeader<'_>,
        stamp: u64,
        loaded: Result<Option<(V, InsertOptions)>, E>,
        present: Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, LoadError<E>> {
        match loaded {
            Ok(None) => {
                let removed = present.map(|_| self.core.remove_led(&lead)).transpose()?.flatten();
                let key = removed.is_some().then(|| lead.key().to_vec());
                self.core.finish_absent(lead);
                if let (Some(removed), Some(key)) = (removed, key) {
                    self.core.notify_of_led(&key, removed, RemovalCause::Removed);
                }
                Ok(None)
            }
            Ok(Some((value, entry))) => {
                let value: Arc<[u8]> = Arc::from(value.as_ref());
                // A value that cannot be stored is returned all the same.
                let _ = self.core.store_loaded(lead, &value, entry, stamp, present.is_some());
                Ok(Some(value.to_vec()))
            }
            Err(error) => {
                if present.is_some()
                    && let Some(present) = self.peek(lead.key())?
                {
                    // Waiting callers found nothing, and load themselves.
                    drop(lead);
                    return Ok(Some(present));
                }
                if let Some(stale) = self.core.find_stale(lead.key(), self.core.times.stale_if_error)? {
                    return Ok(Some(self.hand_on(lead, stale)));
                }
                let error = Arc::new(error);
                lead.finish_with_error(Arc::clone(&error) as Arc<dyn Any + Send + Sync>);
                Err(LoadError::Load(error))
            }
        }
    }
}

/// Converts the outcome for a caller that waited; [`None`] if the caller has to try again itself.
fn received<E: Send + Sync + 'static>(
    outcome: LoadOutcome,
    takes_absent: bool,
) -> Option<Result<Option<Vec<u8>>, LoadError<E>>> {
    match outcome {
        LoadOutcome::Value(value) => Some(Ok(Some(value.to_vec()))),
        LoadOutcome::Absent => takes_absent.then_some(Ok(None)),
        // The leader's error type may differ from this caller's.
        LoadOutcome::Error(error) => error.downcast().ok().map(|error| Err(LoadError::Load(error))),
        LoadOutcome::Nothing => None,
    }
}
