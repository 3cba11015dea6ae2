//! Values as `bytes::Bytes`, for callers that share them: with a socket, or among several tasks.

use std::future::Future;

use bytes::Bytes;

use super::Cache;
use super::error::{CacheError, LoadError};

impl Cache {
    /// Returns the key's value as [`Bytes`], whose clones and slices share one allocation, or [`None`] if the key is
    /// absent.
    ///
    /// It costs as much as [`Cache::get`]: one allocation, and decoding or copying the value into it. The bytes do not
    /// refer to the cache, so a value that is kept for long holds none of its memory. The first clone makes one more
    /// small allocation.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.insert("user:42", "Ada")?;
    /// assert_eq!(cache.get_bytes("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get`].
    pub fn get_bytes(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Bytes>, CacheError> {
        Ok(self.get(key)?.map(Bytes::from))
    }

    /// Returns the key's value as [`Bytes`], or [`None`] if the key is absent, and never blocks an executor's thread
    /// for a device: see [`Cache::get_async`].
    ///
    /// # Cancel safety
    /// Dropping the future is safe at any time. A read that has not begun is not made.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// # cache.insert("user:42", "Ada")?;
    /// # let ada = async {
    /// assert_eq!(cache.get_bytes_async("user:42").await?.as_deref(), Some(b"Ada".as_slice()));
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
    pub async fn get_bytes_async(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Bytes>, CacheError> {
        Ok(self.get_async(key).await?.map(Bytes::from))
    }

    /// Returns the key's value as [`Bytes`], or loads it as [`Cache::get_or_insert_with`] does. A loaded value is
    /// copied once more, into an allocation of the caller's own.
    ///
    /// # Panics
    /// Panics if `load` panics; one of the waiting callers then loads.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let user = cache.get_or_insert_bytes_with("user:42", || "from the database")?;
    /// assert_eq!(user, "from the database");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get_or_insert_with`].
    pub fn get_or_insert_bytes_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> V,
    ) -> Result<Bytes, CacheError> {
        self.get_or_insert_with(key, load).map(Bytes::from)
    }

    /// Returns the key's value as [`Bytes`], or loads it as [`Cache::get_or_fetch`] does.
    ///
    /// # Cancel safety
    /// As for [`Cache::get_or_fetch`]: a dropped future stores nothing, and a waiting caller takes over.
    ///
    /// # Panics
    /// Panics if polling `load` panics; a waiting caller takes over.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let fetch = async { Ok::<_, std::io::Error>("from the database") };
    /// let user = async { cache.get_or_fetch_bytes("user:42", fetch).await };
    /// # let mut user = std::pin::pin!(user);
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # let std::task::Poll::Ready(user) = user.as_mut().poll(&mut context) else { panic!("nothing to wait for") };
    /// # assert_eq!(user.expect("it is loaded"), b"from the database".as_slice());
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Cache::get_or_fetch`].
    pub async fn get_or_fetch_bytes<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<Bytes, LoadError<E>> {
        self.get_or_fetch(key, load).await.map(Bytes::from)
    }
}
