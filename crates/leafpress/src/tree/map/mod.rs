//! The map that users see: the methods of [`Tree`](super::Tree), a room for each thing that one wants of a map.

mod first_last;
mod get;
mod insert;
mod maintain;
mod ranges;
mod update;

pub use update::Update;
