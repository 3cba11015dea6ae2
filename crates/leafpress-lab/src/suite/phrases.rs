//! What the text, the pages and the verdicts of both suites say in the same words.

use super::{Absent, MEMCPY, Measured, Report};

/// Returns a number of threads with its unit.
pub(super) fn in_words(threads: usize) -> String {
    match threads {
        1 => "1 thread".into(),
        threads => format!("{threads} threads"),
    }
}

/// Microseconds with as many digits as help.
pub(super) fn us(us: f64) -> String {
    match us {
        us if us >= 1000.0 => format!("{us:.0}"),
        us if us >= 100.0 => format!("{us:.1}"),
        us if us >= 1.0 => format!("{us:.2}"),
        us => format!("{us:.3}"),
    }
}

/// The libraries of the codecs, without duplicates.
pub(super) fn libraries(codecs: &[Measured]) -> String {
    let mut libraries: Vec<&str> = Vec::new();
    for codec in codecs {
        if let Some(library) = codec.provided_by.as_deref().filter(|known| !libraries.contains(known)) {
            libraries.push(library);
        }
    }
    libraries.join(", ")
}

/// The length of blocks and the number of threads that files are compared with: the thesis' pages of 8 KB, on the first
/// number of threads, where that was measured.
pub(super) fn common_setting(report: &Report) -> Option<(usize, usize)> {
    let threads = report.overall.first()?.threads;
    let of_threads = report.overall.iter().filter(|row| row.threads == threads);
    let lengths = of_threads.map(|row| row.block_bytes);
    let nearest = lengths.min_by_key(|length| length.abs_diff(8192))?;
    Some((nearest, threads))
}

/// The codecs, with the floor first where it is meaningful.
pub(super) fn codecs_of(report: &Report, with_memcpy: bool) -> Vec<&str> {
    let codecs = report.codecs.iter().map(|codec| codec.codec.as_str());
    with_memcpy.then_some(MEMCPY).into_iter().chain(codecs).collect()
}

/// The codecs that are not available here: a line for each reason.
pub(super) fn not_available(absent: &[Absent]) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for absent in absent {
        match reasons.iter_mut().find(|(reason, _)| *reason == absent.reason) {
            Some((_, codecs)) => codecs.push(&absent.codec),
            None => reasons.push((&absent.reason, vec![&absent.codec])),
        }
    }
    let lines = reasons.into_iter();
    lines
        .map(|(reason, codecs)| format!("Not available: {}: {reason}", codecs.join(", ")))
        .collect()
}
