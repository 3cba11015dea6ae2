//! Options of an insertion.

use std::time::Duration;

use super::error::CacheError;
use super::expiry::{MIN_IDLE, check_time, checked_ttl};
use super::record_tags::{MAX_TAGS, Tags};
use super::tags::Moment;

/// Options of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct InsertOptions {
    /// The record's time to live; [`None`] for the default of the cache, [`Duration::MAX`] for none.
    pub ttl: Option<Duration>,
    /// The record's time to idle; [`None`] for that of the cache, [`Duration::MAX`] for none.
    pub time_to_idle: Option<Duration>,
    pub(super) tags: Tags,
    pub(super) since: Option<Moment>,
}

impl InsertOptions {
    /// Returns options with a time to live, between 1 ms and 10 years. The record may expire up to 1 ms early, and is
    /// never returned after its time. With [`Duration::MAX`] it has no time to live, whatever the cache's default.
    #[must_use]
    pub fn ttl(ttl: Duration) -> Self {
        Self {
            ttl: Some(ttl),
            ..Self::default()
        }
    }

    /// Sets the record's time to idle, from 1 second to 10 years, which replaces that of the cache
    /// ([`CacheBuilder::time_to_idle`](super::CacheBuilder::time_to_idle)): the record expires when it was neither read
    /// nor written for this long, or up to an eighth of the time earlier. With [`Duration::MAX`] it does not expire by
    /// idleness. It takes 12 bytes. Updates that keep the record's times keep it.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use std::time::Duration;
    /// use leafpress::cache::InsertOptions;
    ///
    /// // At most a day, and half an hour without a request.
    /// let session = InsertOptions::ttl(Duration::from_secs(24 * 3600)).time_to_idle(Duration::from_secs(1800));
    /// cache.insert_entry("session:7", "open", session)?;
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn time_to_idle(mut self, time: Duration) -> Self {
        self.time_to_idle = Some(time);
        self
    }

    /// Says that the value was made from this moment on ([`Cache::moment`](super::Cache::moment)), and not when it is
    /// inserted: if one of the record's tags was invalidated since, the record is absent, since what it was made from
    /// may be outdated. Loaders need not say it.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use leafpress::cache::InsertOptions;
    ///
    /// let began = cache.moment();
    /// let page = "made of product 7";
    /// // Meanwhile another thread changes the product.
    /// cache.invalidate_tag("product:7")?;
    /// cache.insert_entry("/shop/7", page, InsertOptions::default().tag("product:7").since(began))?;
    /// assert_eq!(cache.get("/shop/7")?, None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn since(mut self, moment: Moment) -> Self {
        self.since = Some(moment);
        self
    }

    /// Checks the bounds.
    pub(super) fn check(&self) -> Result<(), CacheError> {
        checked_ttl(self.ttl)?;
        let idle = self.time_to_idle.filter(|time| *time != Duration::MAX);
        idle.map_or(Ok(()), |time| check_time("time_to_idle", time, MIN_IDLE))?;
        if self.tags.has_too_many() {
            return Err(CacheError::Option {
                option: "tags",
                reason: format!("a record has at most {MAX_TAGS} tags"),
            });
        }
        Ok(())
    }

    /// Adds a tag: any bytes, of which the record has a hash of 6 bytes.
    /// [`Cache::invalidate_tag`](super::Cache::invalidate_tag) invalidates all records with a tag. A record may have 8
    /// tags; the insertion of one with more is refused.
    ///
    /// ```
    /// # let cache = leafpress::Cache::builder().memory(8 << 20).build()?;
    /// use leafpress::cache::InsertOptions;
    ///
    /// let page = InsertOptions::default().tag("product:7").tag("category:3");
    /// cache.insert_entry("/shop/7", "<html>", page)?;
    /// cache.invalidate_tag("product:7")?;
    /// assert_eq!(cache.get("/shop/7")?, None);
    /// # Ok::<(), leafpress::CacheError>(())
    /// ```
    #[must_use]
    pub fn tag(mut self, tag: impl AsRef<[u8]>) -> Self {
        self.tags.add(tag.as_ref());
        self
    }
}
