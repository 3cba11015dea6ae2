//! Makes a plan: the sample, the requests, the alternatives, and what changes if an assumption is wrong.

use std::sync::atomic::AtomicBool;

use serde::Serialize;

use super::alternatives::{Alternative, Question, cheapest};
use super::hits::Hits;
use super::options::{Options, Requests};
use super::sample::{self, Sampled};
use crate::cache::{self, Work, curves_of};
use crate::core::LabError;
use crate::core::keys::Distribution;

/// Compressed bytes if the ratio is 20% worse.
const WORSE_RATIO: f64 = 1.0 / 0.8;
/// The other skew.
const SKEW: f64 = 0.9;
/// The progress after the trace, and after the sample.
const OF_TRACE: f64 = 0.3;
const OF_SAMPLE: f64 = 0.7;

/// Memory of the cache in which the records of a trace are measured, in bytes: a plan uses the hits only.
const TRACE_MEMORY_BYTES: u64 = 8 << 20;

/// A step of a plan.
pub struct Event {
    /// The completed part, 0 to 1.
    pub share: f64,
    /// The current step.
    pub what: &'static str,
}

/// The alternatives if something is other than measured or assumed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// What differs, in words.
    pub what: String,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The options.
    pub options: Options,
    /// The sample.
    pub sampled: Sampled,
    /// Records in all.
    pub records: f64,
    /// Memory that all records need uncompressed, in bytes.
    pub raw_bytes: f64,
    /// Hit ratios.
    pub hits: Hits,
    /// The trace, in lines, and the mean bytes of its records.
    pub trace: Option<(Vec<String>, f64)>,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
    /// Other cases.
    pub cases: Vec<Case>,
}

impl Plan {
    /// Returns the cheapest alternative that is enough.
    pub fn best(&self) -> Option<&Alternative> {
        cheapest(&self.alternatives)
    }
}

/// Measures the sample, and plans.
///
/// # Errors
/// Options out of bounds, unusable data, errors of a tree or a cache, [`LabError::Cancelled`].
pub fn run(options: &Options, cancel: &AtomicBool, events: &mut dyn FnMut(Event)) -> Result<Plan, LabError> {
    options.validate()?;
    let mut step = |share, what| events(Event { share, what });
    // Before the sample is measured: a trace that cannot be used is said at once.
    let traced = match &options.requests {
        Requests::Distribution(_) => None,
        Requests::Trace { path, format } => Some(curves_of(
            &cache::Options {
                engines: Vec::new(),
                memory_bytes: TRACE_MEMORY_BYTES,
                ..cache::Options::new(Work::Trace {
                    path: path.clone(),
                    format: *format,
                    requests: None,
                    data: options.data.clone(),
                    records: Some(options.format.clone()),
                })
            },
            cancel,
            &mut |done| step(OF_TRACE * done, "the trace"),
        )?),
    };
    let before = if traced.is_some() { OF_TRACE } else { 0.0 };
    let sampled = sample::measure(options, cancel, &mut |done, what| {
        step(before + (OF_SAMPLE - before) * done, what);
    })?;
    let mut progress = |share: f64| step(OF_SAMPLE + (1.0 - OF_SAMPLE) * share, "hit ratios");
    let records = options.total_bytes as f64 / sampled.record_bytes;
    let mut hits_of = |distribution, part: f64| {
        Hits::of_distribution(distribution, records, cancel, &mut |done| progress(part + done / 2.0))
    };
    let hits = match (&options.requests, &traced) {
        (Requests::Distribution(distribution), _) => hits_of(*distribution, 0.0)?,
        (_, Some(traced)) => Hits::of_trace(&traced.curves, traced.keys, traced.record_bytes),
        (_, None) => return Err(LabError::option("trace", "its hits are not known")),
    };
    let question = Question::new(options, &sampled, &hits);
    let (alternatives, raw_bytes) = (question.alternatives(), records * question.raw_bytes());
    let mut cases = vec![Case {
        what: "a ratio 20% worse".into(),
        alternatives: Question {
            inflation: WORSE_RATIO,
            ..question.clone()
        }
        .alternatives(),
    }];
    if let Requests::Distribution(distribution) = options.requests {
        let skew = match distribution {
            Distribution::Zipfian { theta } if theta <= SKEW => Distribution::Zipfian {
                theta: ((theta - 0.1) * 100.0).round() / 100.0,
            },
            _ => Distribution::Zipfian { theta: SKEW },
        };
        if !matches!(skew, Distribution::Zipfian { theta } if theta <= 0.0) {
            let other = hits_of(skew, 0.5)?;
            cases.push(Case {
                what: skew.to_string(),
                alternatives: Question {
                    hits: &other,
                    distribution: Some(skew),
                    ..question.clone()
                }
                .alternatives(),
            });
        }
    }
    Ok(Plan {
        options: options.clone(),
        records,
        raw_bytes,
        trace: traced.map(|traced| (traced.description, traced.record_bytes)),
        alternatives,
        cases,
        hits,
        sampled,
    })
}
