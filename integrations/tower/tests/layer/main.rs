//! The layer before services that say how their responses may be cached.

mod freshness;
mod removal;
mod shared_requests;
mod storing;
mod support;
