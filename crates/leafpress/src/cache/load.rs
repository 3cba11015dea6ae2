//! Getting a value, or loading it: one loader a key.

use std::any::Any;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::Cache;
use super::error::{CacheError, LoadError};
use super::inner::Seen;
use super::load_table::{Join, LoadLeader, LoadOutcome, LoadWaiter};
use super::options::InsertOptions;
use leafpress_base::mem::room::copied;

impl Cache {
    /// The key's value, or else the one that `load` gives, which is inserted.
    ///
    /// One thread loads at a time for a key; others that miss meanwhile wait for it and get the same value. No lock is held while `load`
    /// runs, so that it may use the cache. If the key is written or removed meanwhile, by whatever method and whether it was there or not,
    /// what was loaded is returned, and not stored. Nor is it stored where it cannot be: a key or value that is too long, a time to live out
    /// of bounds, no memory. If `load` panics, one of those who wait loads. A caller does not wait for a load that needs its own thread (a
    /// loader that loads its own key, or a future that this thread polled last): it loads as well. With
    /// [`CacheBuilder::stale_while_revalidate`](super::CacheBuilder::stale_while_revalidate), they need not wait while there is an old value.
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
    /// As [`Cache::get`].
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

    /// As [`Cache::get_or_insert_with`], where `load` may fail: all who waited for it get its error, and the next to miss tries again.
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
    /// [`LoadError::Load`] with what `load` said, or [`LoadError::Cache`].
    pub fn try_get_or_insert_with<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        self.try_get_or_insert_entry_with(key, || Ok((load()?, InsertOptions::default())))
    }

    /// As [`Cache::try_get_or_insert_with`], where `load` says how the value is inserted, too.
    ///
    /// # Errors
    /// As [`Cache::try_get_or_insert_with`].
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
        let key = key.as_ref();
        loop {
            if let Some(found) = self.get(key)? {
                return Ok(found);
            }
            let lead = match self.core.loads.join_or_start(key) {
                Join::Lead(lead) => lead,
                Join::Wait(pending) => {
                    if let Some(stale) = self.core.find_stale(key)? {
                        return Ok(stale);
                    }
                    if !pending.is_led_here() {
                        match received(pending.wait()) {
                            Some(result) => return result,
                            None => continue,
                        }
                    }
                    // The loader needs this thread: a wait would last for ever.
                    self.core.loads.take_over(key)
                }
            };
            return match self.again(key)? {
                Some(found) => Ok(self.hand_on(lead, found)),
                None => self.finish(lead, load()),
            };
        }
    }

    /// The key's value, or else the one that the future `load` gives, which is inserted. It needs no particular runtime.
    ///
    /// What is said of [`Cache::try_get_or_insert_with`] holds, of tasks in place of threads. `load` is polled by the task that calls this.
    /// If that task is dropped meanwhile, one of those who wait polls its own. A record on disk is read by the task itself, which holds up the
    /// executor's thread for that read, and yields after it.
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
    /// As [`Cache::try_get_or_insert_with`].
    pub async fn get_or_fetch<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let load = async { Ok((load.await?, InsertOptions::default())) };
        self.get_or_fetch_entry(key, load).await
    }

    /// As [`Cache::get_or_fetch`], where `load` says how the value is inserted, too.
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
    /// # Errors
    /// As [`Cache::try_get_or_insert_entry_with`].
    pub async fn get_or_fetch_entry<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<(V, InsertOptions), E>>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        let key = key.as_ref();
        loop {
            let mut seen = Seen::default();
            let found = self.core.get_seen(key, copied, &mut seen)?;
            if seen.is_from_disk {
                // A task that reads the disk again and again leaves the executor's thread to others in between.
                yield_once().await;
            }
            if let Some(found) = found {
                return Ok(found.map_err(CacheError::from)?);
            }
            let lead = match self.core.loads.join_or_start(key) {
                Join::Lead(lead) => lead,
                Join::Wait(pending) => match self.core.find_stale(key)? {
                    Some(stale) => return Ok(stale),
                    None => match received(LoadWaiter::new(pending).await) {
                        Some(result) => return result,
                        None => continue,
                    },
                },
            };
            if let Some(found) = self.again(key)? {
                return Ok(self.hand_on(lead, found));
            }
            let mut load = pin!(load);
            let loaded = poll_fn(|context| lead.poll(load.as_mut(), context)).await;
            return self.finish(lead, loaded);
        }
    }

    /// Looks once more for a key that was missed before its load began, and is counted as missed.
    fn again(&self, key: &[u8]) -> Result<Option<Vec<u8>>, CacheError> {
        // From here on every writer of the key knows of the load: see `load_table`.
        self.core.tree.synchronize(key)?;
        Ok(self.core.find(key, copied, &mut Seen::default())?.transpose()?)
    }

    /// Ends a load whose value was there already.
    fn hand_on(&self, lead: LoadLeader<'_>, found: Vec<u8>) -> Vec<u8> {
        lead.finish_with_value(&Arc::from(found.as_slice()));
        found
    }

    fn finish<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        lead: LoadLeader<'_>,
        loaded: Result<(V, InsertOptions), E>,
    ) -> Result<Vec<u8>, LoadError<E>> {
        match loaded {
            Ok((value, entry)) => {
                let value: Arc<[u8]> = Arc::from(value.as_ref());
                // What cannot be stored was loaded all the same.
                let _ = self.core.store_loaded(lead, &value, entry);
                Ok(value.to_vec())
            }
            Err(error) => {
                let error = Arc::new(error);
                lead.finish_with_error(Arc::clone(&error) as Arc<dyn Any + Send + Sync>);
                Err(LoadError::Load(error))
            }
        }
    }
}

/// Lets the executor run other tasks.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The result for a caller that waited; [`None`] when it is to try again itself.
fn received<E: Send + Sync + 'static>(outcome: LoadOutcome) -> Option<Result<Vec<u8>, LoadError<E>>> {
    match outcome {
        LoadOutcome::Value(value) => Some(Ok(value.to_vec())),
        // Whoever led may have had another kind of error.
        LoadOutcome::Error(error) => error.downcast().ok().map(|error| Err(LoadError::Load(error))),
        LoadOutcome::Nothing => None,
    }
}
