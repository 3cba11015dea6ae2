//! Runs a suite over records: values, dictionaries, interleaved passes, and the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Dictionary;
use leafpress::codec::Engine;

use super::frames::frames;
use super::limit::{LIMIT_LEVEL, limit};
use super::values::Values;
use super::{CompressionUnit, Options, Report, Row};
use crate::core::LabError;
use crate::suite::blocks::Blocks;
use crate::suite::interleave::{self, Progress, Series};
use crate::suite::method::{self, Method};
use crate::suite::phrases::in_words;
use crate::suite::{Absent, compresses};

/// Bytes of values that a dictionary is trained from, for each of its own: what is beyond helps little and takes its
/// time.
const SAMPLE_BYTES_PER_DICTIONARY_BYTE: usize = 50;

/// Runs a suite over records. One that is cancelled keeps the rows that have a pass.
///
/// # Errors
/// [`LabError::Option`] for options out of bounds and codecs that are named and not available; [`LabError::Data`] when
/// the dump cannot be read, or has no value; [`LabError::Block`] when a codec fails or gives back a wrong byte;
/// [`LabError::Cancelled`] before anything was measured.
pub fn run(options: &Options, cancel: &AtomicBool, progress: &mut dyn FnMut(&Progress)) -> Result<Report, LabError> {
    options.validate()?;
    let (engines, absent) = method::open(options.codecs.as_deref())?;
    progress(&before_measuring("reading".into()));
    let values = Values::load(options, cancel)?;
    let (methods, untrained) = methods(options, &engines, &values, cancel, progress)?;

    let mut cut = vec![(CompressionUnit::Record, Blocks::of(&values.each().collect::<Vec<_>>()))];
    for &frame_bytes in &options.frame_bytes {
        cut.push((
            CompressionUnit::Frame(frame_bytes),
            Blocks::of(&frames(&values, frame_bytes)),
        ));
    }
    let (mut all, mut kinds) = (Vec::new(), Vec::new());
    for &threads in &options.threads {
        for (place, blocks) in &cut {
            for method in &methods {
                let what = format!("{}  {place}  {}", method.name(), in_words(threads));
                all.push(Series::new(method, blocks, threads, what));
                kinds.push((*place, method.dictionary_bytes()));
            }
        }
    }
    let name = options.path.display().to_string();
    let names = |_| name.clone();
    let mut interrupted = interleave::measure(&mut all, options.passes, (1, &names), cancel, progress)?;
    let records = values.count() as u64;
    let measured = all.iter().zip(kinds).filter(|(series, _)| !series.passes.is_empty());
    let rows = measured.clone().map(|(series, (place, dictionary_bytes))| {
        let row = series.setting.row(&series.passes, |pass| &pass.all);
        Row::new(&row, place, dictionary_bytes, records)
    });
    let rows: Vec<Row> = rows.collect();
    if rows.is_empty() {
        return Err(LabError::Cancelled);
    }
    let passes = measured.map(|(series, _)| series.passes.len()).min().unwrap_or(0);
    let limit = limit(values.bytes(), &name, cancel, &mut |share| {
        progress(&Progress {
            what: format!("zstd:{LIMIT_LEVEL} of all in one piece, {:.0}%", share * 100.0),
            share: 1.0,
            left_seconds: None,
        });
    })?;
    interrupted |= limit.is_none();
    let lengths = || values.each().map(<[u8]>::len);
    Ok(Report {
        options: options.clone(),
        host: crate::core::resources::host(),
        census: values.census,
        found_bytes: values.found_bytes,
        records,
        raw_bytes: values.bytes().len() as u64,
        value_bytes: (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0)),
        key_bytes: values.key_bytes,
        codecs: method::measured(&engines),
        absent,
        untrained,
        passes,
        interrupted,
        rows,
        limit,
    })
}

fn before_measuring(what: String) -> Progress {
    Progress {
        what,
        share: 0.0,
        left_seconds: None,
    }
}

/// memcpy, and each codec without a dictionary, unless it only copies then, and, where it takes one, with one that is
/// trained from the values; and for which codecs none could be.
fn methods(
    options: &Options,
    engines: &[Arc<dyn Engine>],
    values: &Values,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<(Vec<Method>, Vec<Absent>), LabError> {
    let (mut methods, mut untrained) = (vec![Method::Memcpy], Vec::new());
    let samples = values.spread(options.dictionary_bytes * SAMPLE_BYTES_PER_DICTIONARY_BYTE);
    for engine in engines {
        let has_dictionary = options.dictionary_bytes > 0 && engine.supports_dictionary();
        if !has_dictionary || compresses(&engine.codec().to_string()) {
            methods.push(Method::Engine(Arc::clone(engine), None));
        }
        if !has_dictionary {
            continue;
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(LabError::Cancelled);
        }
        let codec = engine.codec();
        progress(&before_measuring(format!("training a dictionary for {codec}")));
        match Dictionary::train(codec, &samples, options.dictionary_bytes) {
            Ok(dictionary) => methods.push(Method::Engine(Arc::clone(engine), Some(dictionary))),
            Err(e) => untrained.push(Absent {
                codec: codec.to_string(),
                reason: e.to_string(),
            }),
        }
    }
    Ok((methods, untrained))
}
