//! Methods applied to blocks: a codec's engine, or memcpy.

use std::sync::Arc;

use leafpress::codec::{Availability, Engine, EngineOptions};
use leafpress::{Codec, CodecError, Dictionary};
use serde::Serialize;

use crate::core::LabError;

/// The name of the floor in reports.
pub const MEMCPY: &str = "memcpy";

/// A default codec that is not available here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// The codec.
    pub codec: String,
    /// Why it cannot run, and what to do.
    pub reason: String,
}

/// A codec that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// The codec.
    pub codec: String,
    /// The implementation: see [`leafpress::codec::Engine::engine_name`].
    pub engine: &'static str,
    /// The library behind it and its version, if known.
    pub provided_by: Option<String>,
}

/// A method applied to blocks.
#[derive(Debug, Clone)]
pub(super) enum Method {
    /// The floor: no compression can be faster than moving the bytes.
    Memcpy,
    /// A codec, with an optional dictionary.
    Engine(Arc<dyn Engine>, Option<Dictionary>),
}

impl Method {
    pub(super) fn name(&self) -> String {
        match self {
            Self::Memcpy => MEMCPY.to_owned(),
            Self::Engine(engine, _) => engine.codec().to_string(),
        }
    }

    /// Length of its dictionary; 0 without one.
    pub(super) fn dictionary_bytes(&self) -> u64 {
        match self {
            Self::Engine(_, Some(dictionary)) => dictionary.bytes().len() as u64,
            _ => 0,
        }
    }

    /// Assumed total cost of a pass before the first measurement.
    pub(super) fn guess_ns_per_byte(&self) -> f64 {
        let family = match self {
            Self::Memcpy => return 1.0,
            Self::Engine(engine, _) => engine.codec().family(),
        };
        match family {
            "none" => 1.0,
            "lz4" => 4.0,
            "zstd" => 8.0,
            "deflate" => 16.0,
            _ => 30.0,
        }
    }

    /// Writes the stored form of a block into the empty `out`. A block that does not shrink, or for which the codec
    /// returned nothing, is stored raw: its length is then that of its raw bytes.
    ///
    /// # Errors
    /// The codec's error.
    #[inline]
    pub(super) fn compress(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        if let Self::Engine(engine, dictionary) = self {
            let length = engine
                .compress(raw, dictionary.as_ref(), out)
                .map_err(|e| e.to_string())?;
            if out.len() != length {
                return Err(format!("it returned length {length} and wrote {} bytes", out.len()));
            }
            if (1..raw.len()).contains(&length) {
                return Ok(());
            }
            out.clear();
        }
        out.extend_from_slice(raw);
        Ok(())
    }

    /// Restores the raw bytes of a stored block.
    ///
    /// # Errors
    /// The codec's error.
    #[inline]
    pub(super) fn decompress(&self, block: &[u8], raw: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Engine(engine, dictionary) if block.len() != raw.len() => engine
                .decompress(block, dictionary.as_ref(), raw)
                .map_err(|e| e.to_string()),
            _ => {
                raw.copy_from_slice(block);
                Ok(())
            }
        }
    }
}

/// Available and unavailable codecs.
pub(super) type Opened = (Vec<Arc<dyn Engine>>, Vec<Absent>);

/// Opens the codecs that are named, or all but `none`; unavailable ones of the latter are returned.
///
/// # Errors
/// [`LabError::Option`] when a codec that is named cannot run here, or none can.
pub(super) fn open(named: Option<&[Codec]>) -> Result<Opened, LabError> {
    let open = |codec: &Codec| codec.open(&EngineOptions::default());
    if let Some(codecs) = named {
        let engines = codecs.iter().map(|codec| {
            open(codec).map_err(|e| LabError::option("codecs", format!("{e}; `leafpress codecs` lists what runs here")))
        });
        return Ok((engines.collect::<Result<_, _>>()?, Vec::new()));
    }
    let (mut engines, mut absent) = (Vec::new(), Vec::new());
    for Availability { codec, .. } in Codec::list() {
        if codec == Codec::None {
            continue;
        }
        match open(&codec) {
            Ok(engine) => engines.push(engine),
            Err(e) => absent.push(Absent {
                codec: codec.to_string(),
                reason: match e {
                    CodecError::Unavailable { reason, .. } => reason,
                    e => e.to_string(),
                },
            }),
        }
    }
    if engines.is_empty() {
        return Err(LabError::option("codecs", "none is available"));
    }
    Ok((engines, absent))
}

/// A report's description of measured engines.
pub(super) fn measured<'e>(engines: impl IntoIterator<Item = &'e Arc<dyn Engine>>) -> Vec<Measured> {
    let libraries = Codec::list();
    let measured = engines.into_iter().map(|engine| {
        let codec = engine.codec();
        let known = libraries.iter().find(|known| known.codec.family() == codec.family());
        Measured {
            codec: codec.to_string(),
            engine: engine.engine_name(),
            provided_by: known.and_then(|known| known.provided_by.clone()),
        }
    });
    measured.collect()
}
