//! A module for Valkey and Redis: compressed ordered maps and strings.
//!
//! `api` has the interface with the server in both directions; `store` has the values, independent of a server;
//! `commands` and `persist` connect the two.
#![warn(missing_docs)]
// Modules that need it are allowed to use it by name, at their declaration.
#![deny(unsafe_code, unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[allow(unsafe_code)]
mod alloc;
#[allow(
    unsafe_code,
    missing_docs,
    reason = "it is the server's interface, which the server documents"
)]
mod api;
mod commands;
mod config;
mod events;
mod filter;
mod info;
#[allow(unsafe_code)]
mod load;
mod persist;
mod prefixes;
#[allow(unsafe_code)]
mod store;
mod trainings;
mod upkeep;

#[global_allocator]
static ALLOCATOR: alloc::ServerAllocator = alloc::ServerAllocator;
