//! Values as `bytes::Bytes`, for who hands them on: to a socket, to several tasks.

use std::future::Future;

use bytes::Bytes;

use super::Cache;
use super::error::{CacheError, LoadError};

impl Cache {
    /// The key's value as [`Bytes`], whose clones and slices share one allocation; [`None`] when it is not there.
    ///
    /// It costs what [`Cache::get`] does: one allocation, and decoding or copying the value into it. Nothing in the cache is lent, so that a
    /// value which is kept for long keeps no memory of the cache. The first clone takes a small allocation more.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// cache.insert("user:42", "Ada")?;
    /// assert_eq!(cache.get_bytes("user:42")?.as_deref(), Some(b"Ada".as_slice()));
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get`].
    pub fn get_bytes(&self, key: &(impl AsRef<[u8]> + ?Sized)) -> Result<Option<Bytes>, CacheError> {
        Ok(self.get(key)?.map(Bytes::from))
    }

    /// As [`Cache::get_or_insert_with`], for [`Bytes`]. What was loaded is copied once more, into an allocation of the caller's own.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// let user = cache.get_or_insert_bytes_with("user:42", || "from the database")?;
    /// assert_eq!(user, "from the database");
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Cache::get_or_insert_with`].
    pub fn get_or_insert_bytes_with<V: AsRef<[u8]>>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl FnOnce() -> V,
    ) -> Result<Bytes, CacheError> {
        self.get_or_insert_with(key, load).map(Bytes::from)
    }

    /// As [`Cache::get_or_fetch`], for [`Bytes`].
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
    /// As [`Cache::get_or_fetch`].
    pub async fn get_or_fetch_bytes<V: AsRef<[u8]>, E: Send + Sync + 'static>(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        load: impl Future<Output = Result<V, E>>,
    ) -> Result<Bytes, LoadError<E>> {
        self.get_or_fetch(key, load).await.map(Bytes::from)
    }
}
