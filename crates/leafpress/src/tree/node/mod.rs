//! Nodes: leaves, inner nodes, landing buffers and large values, their encoding and accessors.

pub(crate) mod decoder;
#[allow(unsafe_code)]
pub(crate) mod descent_step;
pub(crate) mod fraction;
pub(crate) mod frame_keys;
pub(crate) mod hash_bits;
#[allow(unsafe_code)]
pub(crate) mod inner;
#[allow(unsafe_code)]
pub(crate) mod key_array;
pub(crate) mod key_order;
#[allow(unsafe_code)]
pub(crate) mod landing;
#[allow(unsafe_code)]
pub(crate) mod large;
pub(crate) mod layout;
#[allow(unsafe_code)]
pub(crate) mod leaf;
#[allow(unsafe_code)]
pub(crate) mod packed;
pub(crate) mod partition;
#[allow(unsafe_code)]
mod rank;
#[allow(unsafe_code)]
mod unpublished;
