//! Engines, opened once per process and shared by every manager: their contexts are per thread, and their counters add
//! up.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use leafpress::codec::{Codec, CodecError, Engine, EngineOptions, Lz4Blocks};

/// The level of the decoders and of the fallback: decoding does not depend on it.
const DEFLATE: Codec = Codec::Deflate { level: 1 };

static OPENED: Mutex<Vec<Arc<dyn Engine>>> = Mutex::new(Vec::new());

/// Returns the engine of a codec, opened now if it is not yet.
///
/// # Errors
/// [`CodecError::Unavailable`], with the reason.
pub(crate) fn engine(codec: Codec) -> Result<Arc<dyn Engine>, CodecError> {
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(engine) = opened.iter().find(|engine| engine.codec() == codec) {
        return Ok(Arc::clone(engine));
    }
    let mut options = EngineOptions::default();
    options.lz4_blocks = Lz4Blocks::Standard;
    let engine = codec.open(&options)?;
    opened.push(Arc::clone(&engine));
    Ok(engine)
}

/// Every engine opened so far.
pub(crate) fn opened() -> Vec<Arc<dyn Engine>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The engines that are part of the library.
pub(crate) struct BuiltIn {
    pub(crate) lz4: Arc<dyn Engine>,
    pub(crate) zstd: Arc<dyn Engine>,
    pub(crate) deflate: Arc<dyn Engine>,
}

/// Returns the engines that are part of the library, by which every block can be read.
///
/// # Errors
/// None of them can be unavailable; an error is returned nevertheless.
pub(crate) fn built_in() -> Result<&'static BuiltIn, CodecError> {
    static BUILT_IN: OnceLock<BuiltIn> = OnceLock::new();
    if let Some(found) = BUILT_IN.get() {
        return Ok(found);
    }
    let new = BuiltIn {
        lz4: engine(Codec::Lz4 { acceleration: 1 })?,
        zstd: engine(Codec::Zstd { level: 3 })?,
        deflate: engine(DEFLATE)?,
    };
    Ok(BUILT_IN.get_or_init(|| new))
}

/// An engine, and its fallback.
pub(crate) type Writers = (Arc<dyn Engine>, Option<Arc<dyn Engine>>);

/// Returns a codec's engine, and its fallback, which writes the same blocks when the engine fails. `qpl:auto` without
/// QPL is the fallback itself: it requested any available engine.
pub(crate) fn engine_and_stand_in(codec: Codec) -> Result<Writers, CodecError> {
    use leafpress::codec::QplPath::Auto;
    if !matches!(codec, Codec::Qpl { .. } | Codec::Zlib { .. }) {
        return Ok((engine(codec)?, None));
    }
    let stand_in = Arc::clone(&built_in()?.deflate);
    match engine(codec) {
        Ok(engine) => Ok((engine, Some(stand_in))),
        Err(CodecError::Unavailable { .. }) if matches!(codec, Codec::Qpl { path: Auto, .. }) => Ok((stand_in, None)),
        Err(error) => Err(error),
    }
}

/// Checks that a codec can write here.
///
/// # Errors
/// [`CodecError::Unavailable`], with the reason.
pub(crate) fn check_available(codec: Codec) -> Result<(), CodecError> {
    if codec == Codec::None {
        return Ok(());
    }
    engine_and_stand_in(codec).map(drop)
}
