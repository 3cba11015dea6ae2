//! The map that users see: the methods of [`Tree`](super::Tree), a room for each thing that one wants of a map.

mod ends;
mod get;
mod insert;
mod keep;
mod ranges;
mod update;

pub use update::Update;
