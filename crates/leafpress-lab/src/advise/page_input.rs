//! Builds the input of the what-if page from an advice.

use super::cautions::COMPUTED;
use super::figures::us;
use super::narrative::{is_decimal, like, percent, reasons, sentence};
use super::page::{
    BlockCosts, BlockReads, Choice, CodecBlocks, CopyCosts, DeviceRow, FileRatio, FileRatios, PageInput, VerifyRow,
};
use super::recommend::Recommendation;
use super::run::Advice;
use super::verify::{Verification, sentences};
use crate::core::about;
use crate::device::{self, Operation};
use crate::model::{Access, Overhead, Replacement};
use crate::suite::{self, MEMCPY};

/// Files whose ratios are shown.
const MAX_FILES: usize = 40;

/// Returns the input of the page.
pub(super) fn of(advice: &Advice, verification: Option<&Verification>, command_line: &str) -> PageInput {
    let (question, recommendation) = (&advice.question, &advice.recommendation);
    let choice = recommendation.choice();
    let page_bytes = choice.block_bytes;
    let mut cautions = advice.cautions.clone();
    cautions.extend(verification.is_none().then(|| COMPUTED.to_owned()));
    PageInput {
        title: format!(
            "{} of data, {} of memory",
            like(question, question.data_bytes as f64),
            like(question, question.memory_bytes as f64)
        ),
        sentence: sentence(recommendation),
        reasons: reasons(recommendation, question),
        cautions,
        host: advice.suite.host.clone(),
        command_line: command_line.to_owned(),
        is_decimal: is_decimal(question),
        data_bytes: question.data_bytes,
        memory_bytes: question.memory_bytes,
        page_bytes,
        access_bytes: question.access_bytes,
        access: question.access.clone(),
        device_us: choice.device_us,
        reads: reads(recommendation),
        device_iops: None,
        hit_us: question.hit_us,
        background_pct: question.background_pct,
        workers: question.workers,
        replacement: match question.access {
            Access::Trace(_) => Replacement::Lru,
            Access::Distribution(_) => Replacement::Clock,
        },
        promote_after_hits: question.promote_after_hits,
        overhead: Overhead::Pool,
        codecs: codecs(advice),
        threads: 1,
        choice: choice.codec.as_ref().map(|codec| Choice {
            codec: codec.name.clone(),
            share_pct: choice.best.share * 100.0,
        }),
        memcpy: copies(&advice.suite),
        device: advice.device.as_deref().map_or_else(Vec::new, device_rows),
        device_note: advice.device.as_deref().map(device_note),
        files: files(&advice.suite),
        verify: verification.map_or_else(Vec::new, verify_rows),
        verify_sentences: verification.map_or_else(Vec::new, sentences),
    }
}

/// Read latency by block size, at the load of the cache without compression.
fn reads(recommendation: &Recommendation) -> Vec<BlockReads> {
    let raws = recommendation.candidates.iter().filter(|one| one.codec.is_none());
    let mut reads: Vec<_> = raws
        .map(|raw| BlockReads {
            block_bytes: raw.block_bytes,
            us: raw.device_us,
        })
        .collect();
    reads.sort_by_key(|read| read.block_bytes);
    reads
}

/// The recommendation's figures, not those of the suite's loops.
fn codecs(advice: &Advice) -> Vec<CodecBlocks> {
    let blocks = |name: &str| {
        let of_codec = advice.question.blocks.iter().flat_map(|block| {
            let costs = block.codecs.iter().filter(|costs| costs.name == name);
            costs.map(|costs| BlockCosts {
                block_bytes: block.block_bytes,
                threads: 1,
                ratio: costs.ratio,
                compress_us: costs.compress_us,
                decompress_us: costs.decompress_us,
            })
        });
        of_codec.collect()
    };
    let codecs = advice.suite.codecs.iter().map(|codec| CodecBlocks {
        name: codec.codec.clone(),
        blocks: blocks(&codec.codec),
    });
    codecs.filter(|codec| !codec.blocks.is_empty()).collect()
}

fn copies(suite: &suite::Report) -> Vec<CopyCosts> {
    let rows = suite.overall.iter().filter(|row| row.codec == MEMCPY);
    rows.map(|row| CopyCosts {
        block_bytes: row.block_bytes as u64,
        us: us(MEMCPY, &row.decompress),
    })
    .collect()
}

/// The reads with the most in flight.
fn device_rows(report: &device::Report) -> Vec<DeviceRow> {
    let reads = || report.measurements.iter().filter(|m| m.operation == Operation::Read);
    let deepest = reads().map(|m| m.queue_depth).max();
    let mut rows: Vec<DeviceRow> = reads()
        .filter(|m| Some(m.queue_depth) == deepest)
        .map(|m| DeviceRow {
            block_bytes: m.block_bytes,
            iops: m.iops,
            mb_per_s: m.mb_per_s,
            mean_us: m.wait_us(),
            p50_us: m.latency.p50_us,
            p99_us: m.latency.p99_us,
        })
        .collect();
    rows.sort_by_key(|row| row.block_bytes);
    rows.dedup_by_key(|row| row.block_bytes);
    rows
}

fn device_note(report: &device::Report) -> String {
    let depth = report.measurements.iter().map(|m| m.queue_depth).max().unwrap_or(1);
    match &report.source {
        device::Source::Probe(probed) => format!(
            "{}, reads at random places, {depth} in flight, through {}",
            probed.options.path.display(),
            probed.engine
        ),
        device::Source::Fio { path, version, .. } => {
            format!("{}, a result of {version}, {depth} in flight", path.display())
        }
    }
}

fn files(suite: &suite::Report) -> Vec<FileRatios> {
    let files = suite.files.iter().take(MAX_FILES).map(|file| FileRatios {
        name: file.file.clone(),
        bytes: file.file_bytes,
        ratios: file
            .rows
            .iter()
            .filter(|row| row.codec != MEMCPY)
            .map(|row| FileRatio {
                codec: row.codec.clone(),
                block_bytes: row.block_bytes as u64,
                ratio: row.ratio,
            })
            .collect(),
    });
    files.collect()
}

fn verify_rows(verification: &Verification) -> Vec<VerifyRow> {
    let setting = format!(
        "{}, {} of memory for {} of pages",
        verification.access,
        about(verification.memory_bytes as f64),
        about((verification.pages * verification.block_bytes) as f64)
    );
    let rows = verification.comparisons.iter().map(|one| VerifyRow {
        setting: setting.clone(),
        codec: one.codec.clone(),
        share: match one.share_pct {
            Some(percent) => percent.to_string(),
            None => format!("adaptive ({}%)", percent(one.share, 0)),
        },
        predicted_hit_pct: one.predicted.hit_ratio * 100.0,
        measured_hit_pct: one.hit_ratio * 100.0,
        predicted_us: one.predicted.us_per_page,
        measured_us: one.us_per_page,
        hit_off_points: one.hit_off() * 100.0,
        us_off_pct: one.us_off() * 100.0,
        is_off: one.is_off(),
    });
    rows.collect()
}
