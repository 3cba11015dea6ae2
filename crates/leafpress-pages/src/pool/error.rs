//! What can go wrong in a page pool.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use super::{ParsePolicyError, ParseRawShareError};
use crate::store::PageId;
use leafpress_base::mem::OutOfMemory;
use leafpress_codec::CodecError;

/// An error of a [`PagePool`](super::PagePool). What the pool held it still holds: a page that could not be written stays, dirty, until it is
/// written, removed or [discarded](super::PagePool::discard).
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The store has no page of this number.
    #[error("page {page} does not exist")]
    NotFound {
        /// The page asked for.
        page: PageId,
    },
    /// Everything in the pool is pinned, so that there is no room for another page.
    #[error("no room for page {page}: {pinned_bytes} of the budget of {budget_bytes} bytes are pinned")]
    PoolFull {
        /// The page asked for.
        page: PageId,
        /// Bytes of pages that are pinned.
        pinned_bytes: usize,
        /// The pool's budget.
        budget_bytes: usize,
    },
    /// A page's length is not one that the pool or the store takes.
    #[error("page {page} of {len} bytes: {reason}")]
    PageLength {
        /// The page.
        page: PageId,
        /// Its length in bytes.
        len: usize,
        /// What is allowed.
        reason: String,
    },
    /// The store failed.
    #[error("cannot {operation} page {page}: {source}")]
    Store {
        /// The page.
        page: PageId,
        /// `read`, `write`, `remove` or `measure`.
        operation: &'static str,
        /// What the store said.
        source: Arc<io::Error>,
    },
    /// The store cannot take this page, and would not after a while either: it is read-only, or has no place for a page of this number
    /// or length. The pool did not take it.
    #[error("the store cannot take page {page}: {source}")]
    Refused {
        /// The page.
        page: PageId,
        /// What the store said.
        source: Arc<io::Error>,
    },
    /// The store could not make lasting what was written. The pages that are still in the pool are dirty again.
    #[error("cannot sync the store: {source}")]
    Sync {
        /// What the store said.
        source: Arc<io::Error>,
    },
    /// A sync failed at an earlier flush, and pages that had been written and had left the pool by then, or had been removed, may have
    /// lost that. Writing, removing or [discarding](super::PagePool::discard) them, and a flush, end this error.
    #[error("{} may be lost since a sync failed: {source}", name_lost(.page, .pages, .or_more))]
    Lost {
        /// The first of them, as far as they are known.
        page: Option<PageId>,
        /// How many are known.
        pages: usize,
        /// There were more than the pool could note: this error stays.
        or_more: bool,
        /// What the store said when it failed to sync.
        source: Arc<io::Error>,
    },
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The builder method.
        option: &'static str,
        /// What was wrong and what is allowed.
        reason: String,
    },
    /// The codec failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The system gave no memory.
    #[error("out of memory: {bytes} bytes were asked for")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a background thread: {reason}")]
    Thread {
        /// What the system said.
        reason: String,
    },
}

impl From<ParsePolicyError> for PoolError {
    fn from(error: ParsePolicyError) -> Self {
        Self::Option {
            option: "policy",
            reason: error.to_string(),
        }
    }
}

impl From<ParseRawShareError> for PoolError {
    fn from(error: ParseRawShareError) -> Self {
        Self::Option {
            option: "share",
            reason: error.to_string(),
        }
    }
}

fn name_lost(page: &Option<PageId>, pages: &usize, or_more: &bool) -> String {
    match (page, pages, or_more) {
        (Some(page), 1, false) => format!("page {page}"),
        (Some(page), 2.., false) => format!("{pages} pages, the first of them {page},"),
        _ => String::from("pages"),
    }
}

impl From<OutOfMemory> for PoolError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory { bytes: error.bytes }
    }
}
