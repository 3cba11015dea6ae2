//! Trained dictionaries: shared, immutable, reference-counted.

use std::sync::Arc;

/// A trained dictionary. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Dictionary {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u32,
    bytes: Box<[u8]>,
}

impl Dictionary {
    /// A dictionary from bytes the caller trained or chose.
    pub fn from_bytes(id: u32, bytes: impl Into<Box<[u8]>>) -> Self {
        Self {
            inner: Arc::new(Inner {
                id,
                bytes: bytes.into(),
            }),
        }
    }

    /// The dictionary's number.
    pub fn id(&self) -> u32 {
        self.inner.id
    }

    /// The dictionary's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.inner.bytes
    }
}
