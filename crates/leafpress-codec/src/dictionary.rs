//! Trained dictionaries: shared, immutable, reference-counted.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

#[cfg(feature = "lz4")]
use super::lz4::dictionary::Lz4Compression;
#[cfg(feature = "lz4")]
use super::lz4::ffi as lz4_ffi;
#[cfg(feature = "lz4")]
use super::lz4::short::History;
use super::onpair::OnPairTables;
#[cfg(feature = "zstd")]
use super::zstd::dictionary::{ZstdCompression, ZstdDecompression};
#[cfg(feature = "zstd")]
use super::zstd::ffi::{CompressionTables, DecompressionTables, Prepared};
use super::{Codec, CodecError};
use leafpress_base::mem::OutOfMemory;
use leafpress_base::mem::room::copied;

/// A trained or given dictionary. Clones share it.
///
/// The tables that a codec needs are built at the dictionary's first use, once for all threads.
#[derive(Clone)]
pub struct Dictionary {
    inner: Arc<DictionaryInner>,
}

/// A reference that does not keep a dictionary alive.
pub(super) struct WeakDictionary(Weak<DictionaryInner>);

impl WeakDictionary {
    /// Returns the dictionary if it is still alive.
    pub(super) fn upgrade(&self) -> Option<Dictionary> {
        Some(Dictionary {
            inner: self.0.upgrade()?,
        })
    }
}

struct DictionaryInner {
    id: u32,
    /// Unique in this process, so that a thread's buffer can identify the dictionary whose bytes it holds. Never 0.
    serial: u64,
    codec: Option<Codec>,
    #[cfg(feature = "lz4")]
    lz4: Lz4Compression,
    #[cfg(feature = "zstd")]
    zstd_compression: ZstdCompression,
    #[cfg(feature = "zstd")]
    zstd_decompression: ZstdDecompression,
    onpair: OnPairTables,
    bytes: Box<[u8]>,
}

static SERIALS: AtomicU64 = AtomicU64::new(1);

impl Dictionary {
    /// Returns a dictionary with bytes that the caller trained or chose.
    pub fn from_bytes(id: u32, bytes: impl Into<Box<[u8]>>) -> Self {
        Self::new(None, id, bytes)
    }

    /// Returns a dictionary that was trained for `codec`, if that is known.
    pub(super) fn new(codec: Option<Codec>, id: u32, bytes: impl Into<Box<[u8]>>) -> Self {
        Self {
            inner: Arc::new(DictionaryInner {
                id,
                serial: SERIALS.fetch_add(1, Ordering::Relaxed),
                codec,
                #[cfg(feature = "lz4")]
                lz4: Lz4Compression::default(),
                #[cfg(feature = "zstd")]
                zstd_compression: ZstdCompression::default(),
                #[cfg(feature = "zstd")]
                zstd_decompression: ZstdDecompression::default(),
                onpair: OnPairTables::default(),
                bytes: bytes.into(),
            }),
        }
    }

    pub(super) fn downgrade(&self) -> WeakDictionary {
        WeakDictionary(Arc::downgrade(&self.inner))
    }

    /// Returns a dictionary of the same bytes, id and codec that shares no memory with this one.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`].
    pub fn copy(&self) -> Result<Self, OutOfMemory> {
        Ok(Self::new(self.inner.codec, self.inner.id, copied(self.bytes())?))
    }

    /// Returns the codec that [`Dictionary::train`] trained the dictionary for; `None` if it is unknown.
    #[inline]
    pub fn codec(&self) -> Option<Codec> {
        self.inner.codec
    }

    /// Returns the number of clones of this dictionary.
    pub fn sharers(&self) -> usize {
        Arc::strong_count(&self.inner)
    }

    /// Returns the dictionary's id.
    pub fn id(&self) -> u32 {
        self.inner.id
    }

    /// Returns the dictionary's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.inner.bytes
    }

    /// Builds the decompression tables of a codec now, so that [`Dictionary::held_bytes`] includes them and the first
    /// block does not wait for them.
    ///
    /// # Errors
    /// Returns [`CodecError::Failed`] if the codec refuses the dictionary's bytes.
    pub fn prepare_to_read(&self, codec: Codec) -> Result<(), CodecError> {
        match codec {
            #[cfg(feature = "zstd")]
            Codec::Zstd { .. } if !self.bytes().is_empty() => self.zstd_decompression().map(drop),
            Codec::OnPair { .. } | Codec::OnPairHuffman if !self.bytes().is_empty() => {
                self.inner.onpair.prepare_to_read(codec, self.bytes())
            }
            _ => Ok(()),
        }
    }

    /// Returns the memory that this dictionary holds, in bytes: its bytes and the tables built so far.
    pub fn held_bytes(&self) -> usize {
        let inner = &self.inner;
        // An `Arc` keeps two counts before its value.
        let own = size_of::<DictionaryInner>() + 2 * size_of::<usize>() + inner.bytes.len() + inner.onpair.held_bytes();
        #[cfg(feature = "lz4")]
        let own = own + inner.lz4.held_bytes();
        #[cfg(feature = "zstd")]
        let own = own + inner.zstd_compression.held_bytes() + inner.zstd_decompression.held_bytes();
        own
    }

    /// Returns a number that is unique in this process; never 0, and below 2^63.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.inner.serial
    }

    /// Returns the tables of `onpair`.
    #[inline]
    pub(super) fn onpair(&self) -> &OnPairTables {
        &self.inner.onpair
    }

    #[cfg(feature = "lz4")]
    /// Returns the tables of the encoder of short LZ4 blocks, if the dictionary supports them.
    #[inline]
    pub(super) fn lz4_short(&self) -> Option<History<'_>> {
        self.inner.lz4.short(&self.inner.bytes)
    }

    #[cfg(feature = "lz4")]
    /// Returns the tables of LZ4's fast encoder.
    #[inline]
    pub(super) fn lz4_fast(&self) -> Result<lz4_ffi::Attached<'_, lz4_ffi::Stream>, CodecError> {
        self.inner.lz4.fast(&self.inner.bytes)
    }

    #[cfg(feature = "lz4")]
    /// Returns the tables of LZ4's slow encoders for a level.
    #[inline]
    pub(super) fn lz4_high(&self, level: i32) -> Result<lz4_ffi::Attached<'_, lz4_ffi::HighStream>, CodecError> {
        self.inner.lz4.high(&self.inner.bytes, level)
    }

    #[cfg(feature = "zstd")]
    /// Returns zstd's compression tables for a level.
    #[inline]
    pub(super) fn zstd_compression(&self, level: i32) -> Result<Prepared<'_, CompressionTables>, CodecError> {
        self.inner.zstd_compression.get(&self.inner.bytes, level)
    }

    #[cfg(feature = "zstd")]
    /// Returns zstd's decompression tables.
    #[inline]
    pub(super) fn zstd_decompression(&self) -> Result<Prepared<'_, DecompressionTables>, CodecError> {
        self.inner.zstd_decompression.get(&self.inner.bytes)
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary")
            .field("id", &self.inner.id)
            .field("bytes", &self.inner.bytes.len())
            .finish_non_exhaustive()
    }
}

/// Whether zstd's header with the entropy tables is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ZstdHeader {
    Kept,
    CutOff,
}

/// The operation named in errors of training.
pub(super) const TRAINING: &str = "dictionary training";
