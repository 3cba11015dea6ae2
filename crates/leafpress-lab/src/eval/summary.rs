//! `summary.tsv`: a line per run, with the evaluation document's columns first and ours after them.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use leafpress::Codec;
use leafpress::codec::{JobCache, QplMode, StreamCache};

use crate::core::LabError;
use crate::core::latency::Latency;
use crate::eval::Row;
use crate::eval::Workload;
use crate::eval::result::{Counters, Resources};
use crate::report::tsv::{self, Cell, number, word};

/// A row with what its cells need more than once.
struct Context<'r> {
    row: &'r Row,
    codec: Codec,
    host: &'r str,
}

type Column = (&'static str, fn(&Context<'_>) -> Cell);

/// The columns, in order: the evaluation document's up to `cpu_log`, then ours. A cell that has no meaning is `None`.
const COLUMNS: [Column; 77] = [
    ("run", |c| word(&c.row.spec.run)),
    ("workload", |c| word(c.row.spec.workload)),
    ("threads", |c| word(c.row.spec.threads)),
    ("landing_bytes", |c| word(c.row.spec.landing_bytes)),
    ("bg_compaction", |c| word(u8::from(c.row.spec.background))),
    ("bg_threads", |c| {
        c.background(|c| word(c.row.spec.base.background_threads))
    }),
    ("bg_watermark", |c| {
        c.background(|c| word(c.row.spec.base.landing_compaction_pct))
    }),
    ("bg_codec", |c| {
        c.background(|c| word(c.row.spec.base.background_codec.as_deref().unwrap_or("all")))
    }),
    ("codec", |c| word(c.codec)),
    ("engine", |c| word(&c.row.result.engine)),
    ("qpl_mode", |c| c.qpl_mode()),
    ("qpl_job_cache", |c| {
        c.qpl_mode().and(word(job_cache(c.row.spec.base.job_cache)))
    }),
    ("zlib_stream_cache", |c| {
        c.zlib(|_| 0).and(word(stream_cache(c.row.spec.base.stream_cache)))
    }),
    ("qps", |c| number(c.row.result.qps(), 1)),
    ("mismatches", |c| word(c.row.result.mismatches)),
    ("ratio", |c| {
        c.per(c.row.result.ended.user_bytes, c.row.result.ended.bytes_held)
    }),
    ("saved_pct", |c| saved_pct(c.row)),
    ("read_p50_us", |c| us(c.read(), |l| l.p50_ns)),
    ("read_p99_us", |c| us(c.read(), |l| l.p99_ns)),
    ("read_p999_us", |c| us(c.read(), |l| l.p999_ns)),
    ("write_p50_us", |c| us(c.write(), |l| l.p50_ns)),
    ("write_p99_us", |c| us(c.write(), |l| l.p99_ns)),
    ("write_p999_us", |c| us(c.write(), |l| l.p999_ns)),
    ("compressed_bytes", |c| word(c.row.result.ended.bytes_held)),
    ("total_bytes", |c| word(c.row.result.ended.user_bytes)),
    ("wall_sec", |c| number(c.row.result.wall_seconds, 3)),
    ("user_sec", |c| number(c.resources()?.user_seconds, 3)),
    ("sys_sec", |c| number(c.resources()?.system_seconds, 3)),
    ("cpu_pct", |c| number(c.cores()? * 100.0, 1)),
    ("cpu_cores", |c| number(c.cores()?, 3)),
    ("qps_per_cpu_core", |c| number(c.row.result.qps_per_core()?, 1)),
    ("max_rss_kb", |c| word(c.resources()?.max_rss_kib?)),
    ("voluntary_cs", |c| word(c.resources()?.voluntary_switches)),
    ("involuntary_cs", |c| word(c.resources()?.involuntary_switches)),
    ("bg_passes", |c| c.background_count(|n| n.bg_passes)),
    ("bg_compactions", |c| c.background_count(|n| n.bg_compactions)),
    ("bg_trylock_misses", |c| c.background_count(|n| n.bg_trylock_misses)),
    ("bg_skipped", |c| c.background_count(|n| n.bg_skipped)),
    ("bg_errors", |c| c.background_count(|n| n.bg_errors)),
    ("fg_landing_full", |c| word(c.counters().fg_landing_full)),
    ("fg_sync_compactions", |c| word(c.counters().fg_sync_compactions)),
    ("fg_sync_compaction_errors", |c| {
        word(c.counters().fg_sync_compaction_errors)
    }),
    ("fg_split_fallbacks", |c| word(c.counters().fg_split_fallbacks)),
    ("bg_enqueue_attempts", |c| c.background_count(|n| n.bg_enqueue_attempts)),
    ("bg_enqueued", |c| c.background_count(|n| n.bg_enqueued)),
    ("bg_enqueue_duplicates", |c| {
        c.background_count(|n| n.bg_enqueue_duplicates)
    }),
    ("bg_queue_full", |c| c.background_count(|n| n.bg_queue_full)),
    ("bg_queue_pops", |c| c.background_count(|n| n.bg_queue_pops)),
    ("qpl_compress_calls", |c| c.qpl(|n| n.compress_calls)),
    ("qpl_decompress_calls", |c| c.qpl(|n| n.decompress_calls)),
    ("qpl_tls_jobs", |c| c.qpl(|n| n.thread_jobs)),
    ("qpl_pool_jobs", |c| c.qpl(|n| n.call_jobs)),
    ("qpl_errors", |c| c.qpl(|n| n.engine_errors)),
    ("zlib_compress_calls", |c| c.zlib(|n| n.compress_calls)),
    ("zlib_decompress_calls", |c| c.zlib(|n| n.decompress_calls)),
    ("zlib_stream_reuses", |c| c.zlib(|n| n.stream_reuses)),
    ("zlib_stream_inits", |c| c.zlib(|n| n.stream_inits)),
    ("zlib_errors", |c| c.zlib(|n| n.engine_errors)),
    ("log", |c| word(c.row.log.display())),
    ("cpu_log", |c| word(c.row.cpu_log.as_ref()?.display())),
    ("user_bytes", |c| word(c.row.result.ended.user_bytes)),
    ("bytes_held", |c| word(c.row.result.ended.bytes_held)),
    ("rss_growth_bytes", |c| word(c.row.result.ended.rss_growth_bytes?)),
    ("frames_decoded_per_read", |c| {
        c.per(c.counters().get_frames_decoded, c.counters().gets)
    }),
    ("bytes_decoded_per_read", |c| {
        c.per(c.counters().get_bytes_decoded, c.counters().gets)
    }),
    ("dictionary_bytes", |c| word(c.row.result.ended.dictionary_bytes)),
    ("read_max_us", |c| us(c.read(), |l| l.max_ns)),
    ("write_max_us", |c| us(c.write(), |l| l.max_ns)),
    ("host", |c| word(c.host)),
    ("reads_per_call", |c| word(c.row.spec.base.reads_per_call)),
    ("key_shape", |c| word(c.row.spec.base.key_source())),
    ("copied_per_byte_put", |c| {
        c.per(c.counters().copied_bytes, c.counters().put_bytes)
    }),
    ("compressed_per_byte_put", |c| {
        c.per(c.counters().compressed_bytes, c.counters().put_bytes)
    }),
    ("loaded_bytes_held", |c| word(c.row.result.loaded.bytes_held)),
    ("loaded_rss_growth_bytes", |c| {
        word(c.row.result.loaded.rss_growth_bytes?)
    }),
    ("rss_growth_unknown", |c| word(c.rss_growth_unknown()?)),
    ("chosen_codec", |c| word(c.row.result.ended.chosen(&c.row.spec.codec)?)),
];

impl Context<'_> {
    /// Latency of point reads; where the workload scans instead, of whole scans.
    fn read(&self) -> Option<&Latency> {
        let result = &self.row.result;
        if self.row.spec.workload == Workload::Scan {
            result.scan_latency.as_ref()
        } else {
            result.read_latency.as_ref()
        }
    }

    fn write(&self) -> Option<&Latency> {
        self.row.result.write_latency.as_ref()
    }

    fn counters(&self) -> &Counters {
        &self.row.result.counters
    }

    fn resources(&self) -> Option<&Resources> {
        self.row.result.resources.as_ref()
    }

    /// Why one of the figures of resident memory is not there.
    fn rss_growth_unknown(&self) -> Option<&str> {
        let result = &self.row.result;
        let moments = [&result.loaded, &result.ended];
        moments
            .into_iter()
            .find_map(|memory| memory.rss_growth_unknown.as_deref())
    }

    fn cores(&self) -> Option<f64> {
        self.resources()
            .map(|resources| resources.cpu_cores(self.row.result.wall_seconds))
    }

    fn background(&self, cell: impl Fn(&Self) -> Cell) -> Cell {
        if self.row.spec.background { cell(self) } else { None }
    }

    fn background_count(&self, count: impl Fn(&Counters) -> u64) -> Cell {
        self.background(|c| word(count(c.counters())))
    }

    fn qpl_mode(&self) -> Cell {
        match self.codec {
            Codec::Qpl {
                mode: QplMode::Fixed, ..
            } => word("fixed"),
            Codec::Qpl {
                mode: QplMode::Dynamic, ..
            } => word("dynamic"),
            _ => None,
        }
    }

    fn qpl(&self, count: impl Fn(&Counters) -> u64) -> Cell {
        matches!(self.codec, Codec::Qpl { .. }).then(|| count(self.counters()).to_string())
    }

    fn zlib(&self, count: impl Fn(&Counters) -> u64) -> Cell {
        matches!(self.codec, Codec::Zlib { .. } | Codec::Zlib32K { .. }).then(|| count(self.counters()).to_string())
    }

    fn per(&self, amount: u64, of: u64) -> Cell {
        if of == 0 {
            None
        } else {
            number(amount as f64 / of as f64, 4)
        }
    }
}

fn us(latency: Option<&Latency>, nanoseconds: impl Fn(&Latency) -> u64) -> Cell {
    number(nanoseconds(latency?) as f64 / 1000.0, 3)
}

fn saved_pct(row: &Row) -> Cell {
    let memory = &row.result.ended;
    if memory.user_bytes == 0 {
        return None;
    }
    number((1.0 - memory.bytes_held as f64 / memory.user_bytes as f64) * 100.0, 2)
}

fn job_cache(cache: JobCache) -> &'static str {
    match cache {
        JobCache::Thread => "thread",
        JobCache::None => "none",
    }
}

fn stream_cache(cache: StreamCache) -> &'static str {
    match cache {
        StreamCache::Thread => "thread",
        StreamCache::None => "none",
    }
}

/// Formats the header line.
pub fn header() -> String {
    tsv::line(COLUMNS.map(|(name, _)| word(name)))
}

/// Formats a row's line.
///
/// # Errors
/// [`LabError::Option`] when the row's codec is not one.
pub fn line(row: &Row, host: &str) -> Result<String, LabError> {
    let context = Context {
        row,
        codec: row.spec.codec()?,
        host,
    };
    Ok(tsv::line(COLUMNS.map(|(_, cell)| cell(&context))))
}

/// `summary.tsv`, written line by line so that what is finished stays.
#[derive(Debug)]
pub struct Summary {
    file: File,
    path: PathBuf,
    host: String,
}

impl Summary {
    /// Creates the file with its header, replacing an older one.
    ///
    /// # Errors
    /// [`LabError::Io`] when it cannot be written.
    pub fn create(path: &Path, host: String) -> Result<Self, LabError> {
        let file = crate::core::create_file(path).map_err(|e| LabError::io(path, e))?;
        let mut summary = Self {
            file,
            path: path.to_owned(),
            host,
        };
        summary.write(&header())?;
        Ok(summary)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`LabError::Io`] when it cannot be written.
    pub fn append(&mut self, row: &Row) -> Result<(), LabError> {
        let line = line(row, &self.host)?;
        self.write(&line)
    }

    /// One write call for each line, so that a kill leaves whole lines only.
    fn write(&mut self, line: &str) -> Result<(), LabError> {
        self.file
            .write_all(line.as_bytes())
            .map_err(|e| LabError::io(&self.path, e))
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
