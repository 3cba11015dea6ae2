//! A web service with a Leafpress cache before a slow backend: what a real one needs, and nothing else.

pub mod backend;
pub mod options;
pub mod server;
pub mod service;
