//! Nodes: leaves, inner nodes, landing buffers and large values, as bytes and as what stands in them.

pub(crate) mod frame_keys;
pub(crate) mod inner;
pub(crate) mod key_array;
pub(crate) mod landing;
pub(crate) mod large;
pub(crate) mod layout;
pub(crate) mod leaf;
pub(crate) mod packed;
pub(crate) mod partition;
mod rank;
pub(crate) mod step;
pub(crate) mod unpublished;
