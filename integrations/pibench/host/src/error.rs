//! What can go wrong with a wrapper.

use std::path::PathBuf;

use thiserror::Error;

/// Why a wrapper could not be loaded.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The dynamic loader refused the file.
    #[error("cannot load {}: {reason}", .path.display())]
    Open {
        /// The file, as it was named.
        path: PathBuf,
        /// What `dlopen` said.
        reason: String,
    },
    /// The library has no `create_tree`.
    #[error("{} is not a PiBench wrapper, as it exports no create_tree: {reason}", .path.display())]
    NoCreateTree {
        /// The file, as it was named.
        path: PathBuf,
        /// What `dlsym` said.
        reason: String,
    },
    /// `create_tree` returned null.
    #[error(
        "create_tree of {} made no tree: it returned null for keys of {key_size} and values of {value_size} bytes",
        .path.display()
    )]
    NullTree {
        /// The file, as it was named.
        path: PathBuf,
        /// [`TreeOptions::key_size`](crate::TreeOptions::key_size).
        key_size: usize,
        /// [`TreeOptions::value_size`](crate::TreeOptions::value_size).
        value_size: usize,
    },
    /// `create_tree` threw.
    #[error("create_tree of {} threw {what}", .path.display())]
    Threw {
        /// The file, as it was named.
        path: PathBuf,
        /// The exception's type and its text.
        what: String,
    },
    /// What `create_tree` returned has too few virtual methods.
    #[error(
        "create_tree of {} returned an object that is not a PiBench tree: its class has {methods} virtual methods, \
         and a tree has at least 7",
        .path.display()
    )]
    NotATree {
        /// The file, as it was named.
        path: PathBuf,
        /// The virtual methods that were found, destructors included.
        methods: usize,
    },
    /// It cannot be determined which of PiBench's interfaces the wrapper was compiled for.
    #[error(
        "cannot determine which interface {} was compiled for: PiBench's newer branches have bulk_load before find, \
         and the loader sees no names of the tree's methods; compile it without -fvisibility=hidden, with the tree's \
         class outside of anonymous namespaces",
        .path.display()
    )]
    UnknownInterface {
        /// The file, as it was named.
        path: PathBuf,
    },
    /// The options of one fork of PiBench were given to a wrapper that was compiled for another branch.
    #[error(
        "{} was compiled for a branch of PiBench that has bulk_load and no --protocol, --clock and \
         --garbage_collector: leave these options out",
        .path.display()
    )]
    ForkOptions {
        /// The file, as it was named.
        path: PathBuf,
    },
    /// There is no C++ shim in this build.
    #[error(
        "cannot load {}: this build has no PiBench host, because no working C++20 compiler was found when it was \
         built ({reason}); install g++ or clang++, run `cargo clean -p leafpress-pibench-host` and build again",
        .path.display()
    )]
    NoHost {
        /// The file, as it was named.
        path: PathBuf,
        /// What was wrong with the compiler.
        reason: &'static str,
    },
}

/// Why a call to a wrapper's tree failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// The method threw.
    #[error("the wrapper's {method} threw {what}")]
    Threw {
        /// The method.
        method: &'static str,
        /// The exception's type and its text.
        what: String,
    },
    /// A scan returned a negative number of records.
    #[error("the wrapper's scan returned {count} records")]
    NegativeCount {
        /// What it returned.
        count: i32,
    },
    /// A scan returned more records than requested.
    #[error("the wrapper's scan returned {count} records where {requested} were requested")]
    TooMany {
        /// What it returned.
        count: usize,
        /// The number of records requested.
        requested: usize,
    },
    /// A scan returned records but not where they are.
    #[error("the wrapper's scan returned {count} records and set values_out to {address:#x}, where there is no memory")]
    NoValues {
        /// What it returned.
        count: usize,
        /// Where it said they are; 0 when it did not set `values_out`.
        address: usize,
    },
    /// The buffer for the value is too short: a bug of the caller.
    #[error("a value has {value_size} bytes and the buffer for it {buffer_bytes}")]
    ShortBuffer {
        /// [`TreeOptions::value_size`](crate::TreeOptions::value_size).
        value_size: usize,
        /// The buffer's length.
        buffer_bytes: usize,
    },
    /// More records were requested than the interface can count: a bug of the caller.
    #[error(
        "a scan of {requested} records is longer than PiBench's interface allows ({})",
        i32::MAX
    )]
    ScanTooLong {
        /// The number of records requested.
        requested: usize,
    },
    /// There is no memory for the records of a scan.
    #[error("out of memory: {count} records of {record_bytes} bytes")]
    OutOfMemory {
        /// Number of records.
        count: usize,
        /// Bytes of one.
        record_bytes: usize,
    },
}
