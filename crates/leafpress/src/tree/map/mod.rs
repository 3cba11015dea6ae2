//! The public methods of [`Tree`](super::Tree), grouped by purpose.

mod first_last;
mod get;
mod insert;
mod maintain;
mod ranges;
mod update;

pub use update::Update;
