//! A stored response: what is decided by, its headers, and its body behind them.

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_cache_semantics::CachePolicy;
use serde::{Deserialize, Serialize};

/// What is known of a stored response besides its body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    pub policy: CachePolicy,
    #[serde(with = "http_serde::status_code")]
    pub status: StatusCode,
    /// All headers of the response: those of the policy lack the values of repeated headers but the last.
    #[serde(with = "http_serde::header_map")]
    pub headers: HeaderMap,
    pub fresh_until: SystemTime,
}

#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub head: Head,
    pub body: Bytes,
}

impl Stored {
    /// Returns the value of its record: the length of the head, the head, the body.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let head = postcard::to_allocvec(&self.head).ok()?;
        let len = u32::try_from(head.len()).ok()?;
        let mut value = Vec::with_capacity(size_of::<u32>() + head.len() + self.body.len());
        value.extend_from_slice(&len.to_le_bytes());
        value.extend_from_slice(&head);
        value.extend_from_slice(&self.body);
        Some(value)
    }

    /// Returns [`None`] for a value that another version wrote.
    pub(crate) fn decode(value: Vec<u8>) -> Option<Self> {
        let (len, rest) = value.split_first_chunk()?;
        let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
        let head = postcard::from_bytes(rest.get(..len)?).ok()?;
        let body = Bytes::from(value).slice(size_of::<u32>() + len..);
        Some(Self { head, body })
    }
}
