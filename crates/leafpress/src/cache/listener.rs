//! Telling a program which records leave, and why.

/// Why a record left a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RemovalCause {
    /// It made room for others.
    Evicted,
    /// Its time was over.
    Expired,
    /// It was removed by its key.
    Removed,
    /// Its key was inserted again.
    Replaced,
}

/// Is told of records that leave, with the key and the value they had. It is called by the thread that had them leave, with no lock held.
///
/// [`Cache::clear`](super::Cache::clear) tells of none.
pub type Listener = dyn Fn(&[u8], &[u8], RemovalCause) + Send + Sync;
