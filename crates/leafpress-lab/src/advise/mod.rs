//! Whether compression pays for some data, on a device, in some memory.

pub mod page;
