//! Keys of records: one for each resource with the names of the headers that choose among its variants, and one for
//! each variant.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::header::{HOST, HeaderName};
use http::{HeaderMap, request};

/// Longer targets are not cached: a cache's keys are bounded.
const MAX_TARGET_BYTES: usize = 900;

/// The resource of a request, as a prefix of keys, and as the tag of its records.
#[derive(Debug, Clone)]
pub(crate) struct Target(Vec<u8>);

impl Target {
    /// Returns [`None`] if the target is too long for a key.
    pub(crate) fn of(request: &request::Parts, namespace: &[u8]) -> Option<Self> {
        let mut target = b"http:".to_vec();
        target.extend_from_slice(namespace);
        target.push(b'\n');
        target.extend_from_slice(&host(request));
        target.extend_from_slice(path(request).as_bytes());
        (target.len() <= MAX_TARGET_BYTES).then_some(Self(target))
    }

    /// The tag of all records of the resource.
    pub(crate) fn tag(&self) -> &[u8] {
        &self.0
    }

    /// Returns the key under which the names are stored. No host or path has a line feed.
    pub(crate) fn key_of_names(&self) -> Vec<u8> {
        [&self.0[..], b"\nvary"].concat()
    }

    /// Returns the key of the variant that a request's headers choose.
    pub(crate) fn key(&self, names: &[HeaderName], headers: &HeaderMap) -> Vec<u8> {
        let mut hasher = DefaultHasher::new();
        for name in names {
            (name.as_str(), joined(headers, name)).hash(&mut hasher);
        }
        [&self.0[..], b"\n", &hasher.finish().to_be_bytes()].concat()
    }
}

/// Returns the host that a request is for, by its URI (HTTP/2, proxies) or its `Host`.
pub(crate) fn host(request: &request::Parts) -> Vec<u8> {
    let host = match request.uri.authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => request.headers.get(HOST).map_or(&b""[..], |host| host.as_bytes()),
    };
    host.to_ascii_lowercase()
}

pub(crate) fn path(request: &request::Parts) -> &str {
    request.uri.path_and_query().map_or("/", |path| path.as_str())
}

/// Returns the values of a header as one, as a recipient may combine them (RFC 9110, 5.3); [`None`] if it is absent.
pub(crate) fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let values: Vec<_> = headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
    (!values.is_empty()).then(|| values.join(&b", "[..]))
}
