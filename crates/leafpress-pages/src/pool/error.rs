//! Errors of a page pool.

use std::io;
use std::sync::Arc;

use thiserror::Error;

use super::{ParsePolicyError, ParseRawShareError};
use crate::store::PageId;
use leafpress_base::mem::OutOfMemory;
use leafpress_codec::CodecError;

/// An error of a [`PagePool`](super::PagePool). The pool's contents are unchanged: a page that could not be written
/// stays, dirty, until it is written, removed or [discarded](super::PagePool::discard).
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The store has no page with this number.
    #[error("page {page} does not exist")]
    NotFound {
        /// The requested page.
        page: PageId,
    },
    /// Every page in the pool is pinned, so that there is no room for another one.
    #[error("no room for page {page}: {pinned_bytes} of the budget of {budget_bytes} bytes are pinned")]
    PoolFull {
        /// The requested page.
        page: PageId,
        /// Bytes of pinned pages.
        pinned_bytes: usize,
        /// The pool's budget.
        budget_bytes: usize,
    },
    /// The pool or the store does not accept this length of a page.
    #[error("page {page} of {len} bytes: {reason}")]
    PageLength {
        /// The page.
        page: PageId,
        /// The length in bytes.
        len: usize,
        /// The allowed lengths.
        reason: String,
    },
    /// The store failed.
    #[error("cannot {operation} page {page}: {source}")]
    Store {
        /// The page.
        page: PageId,
        /// `read`, `write`, `remove` or `measure`.
        operation: &'static str,
        /// The error of the store.
        source: Arc<io::Error>,
    },
    /// The store cannot accept this page, now or later: it is read-only, or does not support a page of this number or
    /// length. The pool did not accept it.
    #[error("the store cannot take page {page}: {source}")]
    Refused {
        /// The page.
        page: PageId,
        /// The error of the store.
        source: Arc<io::Error>,
    },
    /// The store could not sync what was written. The affected pages that are still in the pool are dirty again.
    #[error("cannot sync the store: {source}")]
    Sync {
        /// The error of the store.
        source: Arc<io::Error>,
    },
    /// A sync failed at an earlier flush, and pages that had been written and evicted by then, or removed, may have
    /// lost that change. Writing, removing or [discarding](super::PagePool::discard) them, and a flush, clear this
    /// error.
    #[error("{} may be lost since a sync failed: {source}", name_lost(.page, .pages, .or_more))]
    Lost {
        /// The first of them that is known.
        page: Option<PageId>,
        /// The number of those known.
        pages: usize,
        /// There were more than the pool could record: this error is permanent.
        or_more: bool,
        /// The store's error of the failed sync.
        source: Arc<io::Error>,
    },
    /// A builder option is out of its bounds.
    #[error("{option}: {reason}")]
    Option {
        /// The name of the builder's method.
        option: &'static str,
        /// The invalid value and the allowed values.
        reason: String,
    },
    /// The codec failed.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The system has no memory left.
    #[error("out of memory: {bytes} bytes were requested")]
    OutOfMemory {
        /// The size of the failed allocation, in bytes.
        bytes: usize,
    },
    /// A thread could not be started.
    #[error("cannot start a background thread: {reason}")]
    Thread {
        /// The error of the system.
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
