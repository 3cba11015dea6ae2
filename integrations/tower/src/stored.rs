//! A stored response: what is decided by, its headers, and its body behind them; and the response that is made of it.

use std::time::SystemTime;

use bytes::Bytes;
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, Method, Response, StatusCode, request};
use http_body::Body;
use http_cache_semantics::CachePolicy;
use serde::{Deserialize, Serialize};

use crate::body::CacheBody;
use crate::headers;
use crate::response::{not_modified, with_status};

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

    /// Returns the stored response, or `304 Not Modified` if the request's sender has it. `did` is what was done for
    /// it; [`None`] for a hit.
    pub(crate) fn respond<Received: Body<Data = Bytes>>(
        &self,
        request: &request::Parts,
        now: SystemTime,
        did: Option<&str>,
    ) -> Response<CacheBody<Received>> {
        let head = &self.head;
        let ttl = match head.fresh_until.duration_since(now) {
            Ok(left) => left.as_secs().to_string(),
            Err(since) => format!("-{}", since.duration().as_secs()),
        };
        let hit = format!("hit; ttl={ttl}");
        let did = did.unwrap_or(&hit);
        let is_known = head.status == StatusCode::OK && headers::is_known(&request.headers, &head.headers);
        let mut response = match is_known {
            true => not_modified(&head.headers, did),
            false => {
                let body = if request.method == Method::HEAD {
                    Bytes::new()
                } else {
                    self.body.clone()
                };
                let mut response = Response::new(CacheBody::whole(body));
                *response.status_mut() = head.status;
                *response.headers_mut() = head.headers.clone();
                if head.status != StatusCode::NO_CONTENT {
                    response.headers_mut().insert(CONTENT_LENGTH, self.body.len().into());
                }
                with_status(response, did)
            }
        };
        response
            .headers_mut()
            .insert(AGE, head.policy.age(now).as_secs().into());
        response
    }
}
