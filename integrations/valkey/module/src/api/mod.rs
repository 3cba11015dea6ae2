//! The safe interface with the server, in both directions.

pub mod acl;
pub mod allocator;
pub mod command;
pub mod config;
pub mod context;
pub mod datatype;
pub mod failure;
pub mod filter;
pub mod guard;
pub mod hooks;
pub mod info;
pub mod io;
pub mod key;
pub mod native;
pub mod output;
pub mod raw;
pub mod string;
pub mod table;
pub mod twin;

pub use context::Context;
pub use failure::Failure;
pub use key::Key;
pub use string::{OwnedStr, Str};
