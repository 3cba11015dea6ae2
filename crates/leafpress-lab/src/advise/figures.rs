//! Derives a question's figures from measurements.

use std::sync::Arc;

use super::question::{BlockFigures, Reads, lengths};
use crate::device;
use crate::model::CodecCosts;
use crate::suite::{self, MEMCPY, Row, Speed};

/// Codecs whose work another device does, so that a core's time does not measure it.
const ELSEWHERE: [&str; 2] = ["qpl:hardware", "qpl:auto"];

/// The source of the read latency.
#[derive(Debug, Clone)]
pub(super) enum Device {
    Always(f64),
    Report(Arc<device::Report>),
}

impl Device {
    /// Reads of blocks of this length, or of the nearest one that was measured.
    pub(super) fn reads(&self, block_bytes: u64) -> Reads {
        match self {
            Self::Always(us) => Reads::Always(*us),
            Self::Report(report) => Reads::Probed {
                report: Arc::clone(report),
                block_bytes: nearest(report, block_bytes).unwrap_or(block_bytes),
            },
        }
    }
}

/// The measured length of reads that is nearest.
pub(super) fn nearest(report: &device::Report, block_bytes: u64) -> Option<u64> {
    lengths(report).min_by_key(|bytes| bytes.abs_diff(block_bytes))
}

/// Microseconds for a block: CPU time of the median pass, which other work on the machine does not stretch. An
/// accelerator's is wall time.
pub(super) fn us(codec: &str, speed: &Speed) -> f64 {
    let is_elsewhere = ELSEWHERE.iter().any(|name| codec.starts_with(name));
    if is_elsewhere || speed.cpu_median_us <= 0.0 {
        speed.median_us
    } else {
        speed.cpu_median_us
    }
}

/// A row's codec figures.
pub(super) fn costs(row: &Row) -> CodecCosts {
    let (compress, decompress) = (us(&row.codec, &row.compress), us(&row.codec, &row.decompress));
    CodecCosts::new(&row.codec, row.ratio.max(1.0), compress, decompress)
}

/// The figures of every measured block size.
pub(super) fn blocks(suite: &suite::Report, device: &Device) -> Vec<BlockFigures> {
    let lengths = suite.block_bytes.iter().map(|&block_bytes| {
        let rows = || suite.overall.iter().filter(move |row| row.block_bytes == block_bytes);
        let copy = rows().find(|row| row.codec == MEMCPY);
        BlockFigures {
            block_bytes: block_bytes as u64,
            copy_us: copy.map(|row| us(MEMCPY, &row.decompress)),
            reads: device.reads(block_bytes as u64),
            codecs: rows().filter(|row| row.codec != MEMCPY).map(costs).collect(),
        }
    });
    lengths.filter(|block| !block.codecs.is_empty()).collect()
}
