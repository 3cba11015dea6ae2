//! Page stores: the storage that a pool's pages are read from and written to.
//!
//! [`FileStore`], [`MemoryStore`] and the trait [`PageStore`] are shared with the disk tier of `leafpress::Cache`;
//! [`DirectoryStore`] uses the files of a directory as pages.

mod directory;
mod directory_contents;
mod directory_options;

pub use directory::DirectoryStore;
pub use directory_options::DirectoryOptions;
pub use leafpress_base::store::*;
