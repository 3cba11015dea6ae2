//! A cache whose keys and values are types of the program's, by serde.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{CacheError, LoadError};
use super::{Cache, CacheUpdate, InsertOptions};

/// A [`Cache`] of keys and values of types that serde knows, which it holds in [postcard](https://docs.rs/postcard)'s format.
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
/// A value that is no `V`, as one that another version of the program left on disk may be, is not there, and is removed. postcard does not
/// write types down, so what happens to be bytes of a `V` is taken for one: a program whose types change should name another file.
pub struct TypedCache<K: ?Sized, V> {
    cache: Cache,
    of: PhantomData<fn(&K) -> V>,
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

impl<K: Serialize + ?Sized, V: Serialize + DeserializeOwned> TypedCache<K, V> {
    /// The same cache with keys and values of these types. All that is in it should be of them.
    #[must_use]
    pub fn new(cache: Cache) -> Self {
        Self { cache, of: PhantomData }
    }

    /// The cache of bytes: its budget, its statistics.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The cache of bytes, to close it.
    #[must_use]
    pub fn into_cache(self) -> Cache {
        self.cache
    }

    /// Inserts or replaces.
    ///
    /// # Errors
    /// [`CacheError::Encoding`] for what serde or postcard refuse; as [`Cache::insert`].
    pub fn insert(&self, key: &K, value: &V) -> Result<(), CacheError> {
        self.cache.insert(&encoded(key)?, &encoded(value)?)
    }

    /// The same for a record that expires.
    ///
    /// # Errors
    /// As [`TypedCache::insert`] and [`Cache::insert_entry`].
    pub fn insert_entry(&self, key: &K, value: &V, entry: InsertOptions) -> Result<(), CacheError> {
        self.cache.insert_entry(&encoded(key)?, &encoded(value)?, entry)
    }

    /// The key's value; [`None`] when it is not there.
    ///
    /// # Errors
    /// [`CacheError::Encoding`] for a key that cannot be encoded; as [`Cache::get`].
    pub fn get(&self, key: &K) -> Result<Option<V>, CacheError> {
        let key = encoded(key)?;
        match self.cache.get_with(&key, |bytes| postcard::from_bytes(bytes).ok())? {
            Some(None) => {
                // What was put in its place meanwhile stays.
                self.cache.update_with(&key, |bytes| match bytes {
                    Some(bytes) if postcard::from_bytes::<V>(bytes).is_err() => CacheUpdate::<&[u8]>::Remove,
                    _ => CacheUpdate::Keep,
                })?;
                Ok(None)
            }
            found => Ok(found.flatten()),
        }
    }

    /// Whether the key is there. It counts as a read.
    ///
    /// # Errors
    /// As [`TypedCache::get`].
    pub fn contains_key(&self, key: &K) -> Result<bool, CacheError> {
        self.cache.contains_key(&encoded(key)?)
    }

    /// Removes the key; whether it was there.
    ///
    /// # Errors
    /// As [`TypedCache::get`] and [`Cache::remove`].
    pub fn remove(&self, key: &K) -> Result<bool, CacheError> {
        self.cache.remove(&encoded(key)?)
    }

    /// Has `update` say what becomes of the key's record: see [`Cache::update_with`]. A value that is no `V` is not there.
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
    /// As [`TypedCache::insert`]; the record is then as it was.
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
            let (said, bytes) = match bytes {
                Ok(bytes) => (Ok(update), bytes),
                Err(error) => (Err(error), CacheUpdate::Keep),
            };
            answer = said;
            bytes
        })?;
        answer
    }

    /// The key's value, or else the one that `load` gives, which is inserted: see [`Cache::get_or_insert_with`].
    ///
    /// # Errors
    /// As [`TypedCache::insert`].
    pub fn get_or_insert_with(&self, key: &K, load: impl FnOnce() -> V) -> Result<V, CacheError> {
        let loaded = self.try_get_or_insert_with(key, || Ok::<V, std::convert::Infallible>(load()));
        loaded.map_err(|error| match error {
            LoadError::Cache(error) => error,
            LoadError::Load(never) => match *never {},
        })
    }

    /// The same where `load` may fail: see [`Cache::try_get_or_insert_with`].
    ///
    /// # Errors
    /// As [`TypedCache::insert`]; [`LoadError::Load`] with what `load` said.
    pub fn try_get_or_insert_with<E: Send + Sync + 'static>(
        &self,
        key: &K,
        load: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, LoadError<E>> {
        if let Some(found) = self.get(key)? {
            return Ok(found);
        }
        let key = encoded(key)?;
        // What cannot be encoded is an error of the cache's, and not of the loader's.
        let loaded = self.cache.try_get_or_insert_with(&key, || {
            let value = load().map_err(|error| LoadError::Load(Arc::new(error)))?;
            encoded(&value).map_err(LoadError::Cache)
        });
        let bytes = loaded.map_err(|error| match error {
            LoadError::Cache(error) => LoadError::Cache(error),
            LoadError::Load(error) => LoadError::clone(&error),
        })?;
        postcard::from_bytes(&bytes).map_err(|error| {
            LoadError::Cache(CacheError::Encoding {
                reason: error.to_string(),
            })
        })
    }
}
