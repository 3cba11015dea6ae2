//! A cache with typed keys and values, through serde.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{CacheError, LoadError};
use super::{Cache, CacheUpdate, InsertOptions};

/// A [`Cache`] with keys and values of serde types, stored in the format of [postcard](https://docs.rs/postcard).
///
/// ```
/// # fn main() -> Result<(), leafpress::CacheError> {
/// use leafpress::cache::{Cache, TypedCache};
///
/// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug)]
/// struct User {
///     name: String,
///     visits: u64,
/// }
///
/// let users: TypedCache<u64, User> = TypedCache::new(Cache::builder().memory(16 << 20).build()?);
/// let ada = users.get_or_insert_with(&7, || User { name: "Ada".into(), visits: 1 })?;
/// assert_eq!(users.get(&7)?, Some(ada));
/// # Ok(())
/// # }
/// ```
///
/// A value that does not decode as `V`, such as one that another version of the program left on disk, counts as absent
/// and is removed. postcard does not record types, so bytes that happen to decode as a `V` are accepted: a program
/// whose types change should use another file.
///
/// A clone is another handle of the same cache, as of [`Cache`].
pub struct TypedCache<K: ?Sized, V> {
    cache: Cache,
    of: PhantomData<fn(&K) -> V>,
}

impl<K: ?Sized, V> Clone for TypedCache<K, V> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            of: PhantomData,
        }
    }
}

impl<K: ?Sized, V> fmt::Debug for TypedCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedCache").field(&self.cache).finish()
    }
}

fn encoded<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CacheError> {
    postcard::to_allocvec(value).map_err(|error| CacheError::Encoding {
        reason: error.to_string(),
    })
}

/// Encodes what a loader returned. A failure is an error of the cache, not of the loader.
fn encoded_load<V: Serialize, E>(loaded: Result<V, E>) -> Result<Vec<u8>, LoadError<E>> {
    let value = loaded.map_err(|error| LoadError::Load(Arc::new(error)))?;
    encoded(&value).map_err(LoadError::Cache)
}

fn decoded_load<V: DeserializeOwned, E>(bytes: &[u8]) -> Result<V, LoadError<E>> {
    postcard::from_bytes(bytes).map_err(|error| {
        LoadError::Cache(CacheError::Encoding {
            reason: error.to_string(),
        })
    })
}

fn flattened<E>(error: LoadError<LoadError<E>>) -> LoadError<E> {
    match error {
        LoadError::Cache(error) => LoadError::Cache(error),
        LoadError::Load(error) => LoadError::clone(&error),
    }
}

impl<K: Serialize + ?Sized, V: Serialize + DeserializeOwned> TypedCache<K, V> {
    /// Wraps a cache of bytes. All its records should have these types.
    #[must_use]
    pub fn new(cache: Cache) -> Self {
        Self { cache, of: PhantomData }
    }

    /// Returns the underlying cache of bytes, for its budget, its statistics, and [`Cache::close`].
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Inserts or replaces a record.
    ///
    /// # Errors
    /// Returns [`CacheError::Encoding`] for what serde or postcard refuse, and the errors of [`Cache::insert`].
    pub fn insert(&self, key: &K, value: &V) -> Result<(), CacheError> {
        self.cache.insert(&encoded(key)?, &encoded(value)?)
    }

    /// Inserts or replaces a record with options of its own, such as a time to live.
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::insert`] and [`Cache::insert_entry`].
    pub fn insert_entry(&self, key: &K, value: &V, entry: InsertOptions) -> Result<(), CacheError> {
        self.cache.insert_entry(&encoded(key)?, &encoded(value)?, entry)
    }

    /// Returns the key's value, or [`None`] if the key is absent.
    ///
    /// # Errors
    /// Returns [`CacheError::Encoding`] for a key that cannot be encoded, and the errors of [`Cache::get`].
    pub fn get(&self, key: &K) -> Result<Option<V>, CacheError> {
        let key = encoded(key)?;
        let found = self.cache.get_with(&key, |bytes| postcard::from_bytes(bytes).ok())?;
        self.unless_undecodable(&key, found)
    }

    /// Returns the key's value, or [`None`] if the key is absent, and never blocks an executor's thread for a device:
    /// see [`Cache::get_async`].
    ///
    /// # Cancel safety
    /// As for [`Cache::get_async`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::get`].
    pub async fn get_async(&self, key: &K) -> Result<Option<V>, CacheError> {
        let key = encoded(key)?;
        let decode = |bytes: &[u8]| postcard::from_bytes(bytes).ok();
        let found = self.cache.get_with_async(&key, decode).await?;
        self.unless_undecodable(&key, found)
    }

    /// Removes a value that failed to decode, and nothing that was written meanwhile.
    fn unless_undecodable(&self, key: &[u8], found: Option<Option<V>>) -> Result<Option<V>, CacheError> {
        if let Some(None) = found {
            self.cache.update_with(key, |bytes| match bytes {
                Some(bytes) if postcard::from_bytes::<V>(bytes).is_err() => CacheUpdate::<&[u8]>::Remove,
                _ => CacheUpdate::Keep,
            })?;
        }
        Ok(found.flatten())
    }

    /// Returns the key's value, or [`None`] if the key is absent, without an effect on the cache: see [`Cache::peek`].
    /// A value that does not decode as `V` counts as absent, and stays.
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::get`].
    pub fn peek(&self, key: &K) -> Result<Option<V>, CacheError> {
        let found = self
            .cache
            .peek_with(&encoded(key)?, |bytes| postcard::from_bytes(bytes).ok())?;
        Ok(found.flatten())
    }

    /// Returns what is left of the record's time to live: see [`Cache::ttl`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::get`].
    pub fn ttl(&self, key: &K) -> Result<Option<Duration>, CacheError> {
        self.cache.ttl(&encoded(key)?)
    }

    /// Sets the record's time to live and returns true if the key is present: see [`Cache::expire`].
    ///
    /// # Errors
    /// Returns [`CacheError::Encoding`] for a key that cannot be encoded, and the errors of [`Cache::expire`].
    pub fn expire(&self, key: &K, ttl: Option<Duration>) -> Result<bool, CacheError> {
        self.cache.expire(&encoded(key)?, ttl)
    }

    /// Returns true if the key is present. Counts as a read.
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::get`].
    pub fn contains_key(&self, key: &K) -> Result<bool, CacheError> {
        self.cache.contains_key(&encoded(key)?)
    }

    /// Removes the key and returns true if it was present.
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::get`] and [`Cache::remove`].
    pub fn remove(&self, key: &K) -> Result<bool, CacheError> {
        self.cache.remove(&encoded(key)?)
    }

    /// Removes the records for which `keep` returns false, and returns their number: see [`Cache::retain`]. Records
    /// that do not decode as `K` and `V` are removed too.
    ///
    /// # Errors
    /// Returns the errors of [`Cache::retain`].
    ///
    /// # Panics
    /// Panics if `keep` panics: see [`Cache::retain`].
    pub fn retain(&self, mut keep: impl FnMut(K, V) -> bool) -> Result<u64, CacheError>
    where
        K: DeserializeOwned,
    {
        self.cache.retain(|key, value| {
            let record = postcard::from_bytes(key).and_then(|key| Ok((key, postcard::from_bytes(value)?)));
            record.is_ok_and(|(key, value)| keep(key, value))
        })
    }

    /// Updates the key's record atomically by the result of `update`: see [`Cache::update_with`]. A value that does not
    /// decode as `V` counts as absent.
    ///
    /// ```
    /// # fn main() -> Result<(), leafpress::CacheError> {
    /// use leafpress::cache::{Cache, CacheUpdate, TypedCache};
    ///
    /// let scores: TypedCache<str, u64> = TypedCache::new(Cache::builder().memory(16 << 20).build()?);
    /// scores.update_with("ada", |score| CacheUpdate::Put(score.unwrap_or(0) + 5))?;
    /// assert_eq!(scores.get("ada")?, Some(5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::insert`]; the record is then unchanged.
    ///
    /// # Panics
    /// Panics if `update` panics; the record is then unchanged.
    pub fn update_with(
        &self,
        key: &K,
        mut update: impl FnMut(Option<V>) -> CacheUpdate<V>,
    ) -> Result<CacheUpdate<V>, CacheError> {
        let mut answer = Ok(CacheUpdate::Keep);
        self.cache.update_with(&encoded(key)?, |bytes| {
            let update = update(bytes.and_then(|bytes| postcard::from_bytes(bytes).ok()));
            let bytes = match &update {
                CacheUpdate::Put(value) => encoded(value).map(CacheUpdate::Put),
                CacheUpdate::PutWith(value, entry) => encoded(value).map(|value| CacheUpdate::PutWith(value, *entry)),
                CacheUpdate::Remove => Ok(CacheUpdate::Remove),
                CacheUpdate::Keep => Ok(CacheUpdate::Keep),
            };
            let (returned, bytes) = match bytes {
                Ok(bytes) => (Ok(update), bytes),
                Err(error) => (Err(error), CacheUpdate::Keep),
            };
            answer = returned;
            bytes
        })?;
        answer
    }

    /// Returns the key's value, or calls `load` and inserts and returns its result: see [`Cache::get_or_insert_with`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::insert`].
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    pub fn get_or_insert_with(&self, key: &K, load: impl FnOnce() -> V) -> Result<V, CacheError> {
        let loaded = self.try_get_or_insert_with(key, || Ok::<V, std::convert::Infallible>(load()));
        loaded.map_err(|error| match error {
            LoadError::Cache(error) => error,
            LoadError::Load(never) => match *never {},
        })
    }

    /// Returns the key's value, or calls the fallible `load` and inserts and returns its result: see
    /// [`Cache::try_get_or_insert_with`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::insert`], and [`LoadError::Load`] with the error of `load`.
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    pub fn try_get_or_insert_with<E: Send + Sync + 'static>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        if let Some(found) = self.get(key)? {
            return Ok(found);
        }
        let load = || encoded_load(load());
        let loaded = self.cache.try_get_or_insert_with(&encoded(key)?, load);
        decoded_load(&loaded.map_err(flattened)?)
    }

    /// Returns the key's value, or calls the fallible `load` and inserts and returns its result, if it has one: see
    /// [`Cache::try_get_or_insert_option_with`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::try_get_or_insert_with`].
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    pub fn try_get_or_insert_option_with<E: Send + Sync + 'static>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, LoadError<E>> {
        if let Some(found) = self.get(key)? {
            return Ok(Some(found));
        }
        let load = || load().transpose().map(encoded_load).transpose();
        let loaded = self.cache.try_get_or_insert_option_with(&encoded(key)?, load);
        let loaded = loaded.map_err(flattened)?;
        loaded.map(|bytes| decoded_load(&bytes)).transpose()
    }

    /// Returns the key's value, or awaits the future `load` and inserts and returns its result: see
    /// [`Cache::get_or_fetch`].
    ///
    /// # Cancel safety
    /// As for [`Cache::get_or_fetch`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::try_get_or_insert_with`].
    pub async fn get_or_fetch<E: Send + Sync + 'static>(
        &self,
        key: &K,
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<V, LoadError<E>> {
        if let Some(found) = self.get_async(key).await? {
            return Ok(found);
        }
        let load = async { encoded_load(load.await) };
        let loaded = self.cache.get_or_fetch(&encoded(key)?, load).await;
        decoded_load(&loaded.map_err(flattened)?)
    }

    /// Returns the key's value, or awaits the future `load` and inserts and returns its result, if it has one: see
    /// [`Cache::get_or_fetch_option`].
    ///
    /// # Cancel safety
    /// As for [`Cache::get_or_fetch`].
    ///
    /// # Errors
    /// Returns the errors of [`TypedCache::try_get_or_insert_with`].
    pub async fn get_or_fetch_option<E: Send + Sync + 'static>(
        &self,
        key: &K,
        load: impl Future<Output = Result<Option<V>, E>>,
    ) -> Result<Option<V>, LoadError<E>> {
        if let Some(found) = self.get_async(key).await? {
            return Ok(Some(found));
        }
        let load = async { load.await.transpose().map(encoded_load).transpose() };
        let loaded = self.cache.get_or_fetch_option(&encoded(key)?, load).await;
        let loaded = loaded.map_err(flattened)?;
        loaded.map(|bytes| decoded_load(&bytes)).transpose()
    }
}
