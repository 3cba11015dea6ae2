//! The parts in turn: the suite on a sample, the device, the model, the recommendation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Serialize, Serializer};

use leafpress::codec::EngineOptions;

use super::cautions;
use super::cold::{self, Cold, SWEEP_US};
use super::figures::{self, Device};
use super::options::{DeviceSource, Options, USUAL_MEMORY};
use super::question::{Assumed, Question};
use super::recommend::{Recommendation, recommend};
use crate::core::{Bytes, LabError};
use crate::model::{Access, Model};
use crate::suite::SamplePages;
use crate::{device, suite};

/// Progress of an advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Overall progress, 0 to 1, by estimated time.
    pub share: f64,
    /// The current step.
    pub what: String,
}

/// An advice, and its basis.
#[derive(Debug, Clone, Serialize)]
pub struct Advice {
    /// The question, with assumptions filled in.
    #[serde(skip)]
    pub question: Question,
    /// Whether the size of the data, and of the memory, was assumed.
    pub assumed: Assumed,
    /// The recommendation.
    pub recommendation: Recommendation,
    /// Its caveats.
    pub cautions: Vec<String>,
    /// Measurements of the codecs.
    pub suite: suite::Report,
    /// Cost of codecs in the suite's loops and after waits for the device.
    pub cold: Vec<Times>,
    /// Measurements of the device; `None` if its latency was given.
    #[serde(serialize_with = "shared")]
    pub device: Option<Arc<device::Report>>,
}

fn shared<S: Serializer>(report: &Option<Arc<device::Report>>, serializer: S) -> Result<S::Ok, S::Error> {
    report.as_deref().serialize(serializer)
}

/// Estimated seconds of the parts, to report overall progress.
struct Plan {
    suite: f64,
    device: f64,
    model: f64,
}

impl Plan {
    fn new(options: &Options) -> Self {
        let suite = options.suite_options(&options.lengths());
        let settings = suite.codecs.as_ref().map_or(1, Vec::len) * options.lengths().len() * suite.passes;
        // A codec compresses and decodes about 150 MB/s.
        let suite = options.sample_bytes() as f64 / 150e6 * settings as f64;
        let device = options.device_options(&options.lengths()).map_or(0.0, |device| {
            let measurements = device.block_bytes.len() * device.queue_depths.len();
            device.seconds * measurements as f64 + device.file_bytes.unwrap_or(0) as f64 / 400e6
        });
        Self {
            suite,
            device,
            model: 2.0,
        }
    }

    /// Overall progress at this progress of a part.
    fn share(&self, before: f64, part: f64, done: f64) -> f64 {
        (before + part * done.clamp(0.0, 1.0)) / (self.suite + self.device + self.model)
    }
}

/// Measures, and recommends.
///
/// # Errors
/// Options out of bounds and data that cannot be used ([`LabError::Option`], [`LabError::Data`]); a device that cannot
/// be probed ([`LabError::Device`]); a codec that gives back wrong bytes ([`LabError::Block`]);
/// [`LabError::Cancelled`].
pub fn run(options: &Options, cancel: &AtomicBool, events: &mut dyn FnMut(Event)) -> Result<Advice, LabError> {
    options.validate()?;
    let plan = Plan::new(options);
    // An unusable device is reported before the suite takes its time.
    let device = match &options.device {
        DeviceSource::Fio(path) => Some(Arc::new(device::fio_report(path)?)),
        DeviceSource::Saved(path) => Some(Arc::new(device::saved_report(path)?)),
        DeviceSource::Probe(_) => probe(options, &plan, cancel, events)?,
        DeviceSource::Latency(_) => None,
    };
    let suite = measure_codecs(options, &plan, cancel, events)?;
    if suite.interrupted || cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    events(Event {
        share: plan.share(plan.device + plan.suite, 0.0, 0.0),
        what: "computing the model".into(),
    });
    let source = match (&options.device, &device) {
        (DeviceSource::Latency(us), _) => Device::Always(*us),
        (_, Some(report)) => Device::Report(Arc::clone(report)),
        (_, None) => return Err(LabError::Cancelled),
    };
    let (mut question, assumed) = question(options, &suite, &source)?;
    let sample = SamplePages::load(&suite.options, cancel)?;
    let cold = measure_cold(&mut question, &sample, cancel)?;
    let recommendation = recommend(&question)?;
    let mut cautions = cautions::of(options, &question, assumed, &recommendation, &suite, device.as_deref());
    let zeros = zeros(&sample, question.access_bytes as usize);
    cautions.extend(cautions::zeros(zeros, question.access_bytes));
    Ok(Advice {
        question,
        assumed,
        recommendation,
        cautions,
        suite,
        cold,
        device,
    })
}

/// Cost of a codec at one block size, in the suite's loops and after waits for the device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Times {
    /// The codec.
    pub codec: String,
    /// Length of the blocks in bytes.
    pub block_bytes: u64,
    /// Microseconds in the suite's loops.
    pub warm: Cold,
    /// Microseconds after waits for the device.
    pub cold: Cold,
}

/// Measures the codecs after waits for the device, and uses that plus the pool's own work as their cost: see
/// [`super::cold`]. Of decodings, only those that follow a miss come after a wait.
fn measure_cold(question: &mut Question, sample: &SamplePages, cancel: &AtomicBool) -> Result<Vec<Times>, LabError> {
    let mut times = Vec::new();
    let mut blocks = std::mem::take(&mut question.blocks);
    for block in &mut blocks {
        let model_options = question.model_options(block, 0.0);
        let raw = Model::of(&model_options)?.raw(question.memory_bytes as f64);
        let wait_us = block.reads.wait_us(0.0);
        for costs in &mut block.codecs {
            let codec: leafpress::Codec = costs.name.parse().map_err(|e| LabError::System(format!("{e}")))?;
            let engine = codec
                .open(&EngineOptions::default())
                .map_err(|e| LabError::System(e.to_string()))?;
            let length = block.block_bytes as usize;
            let Some(cold) = cold::measure(&*engine, sample, length, (wait_us, cold::LEFT_OUT), cancel)? else {
                continue;
            };
            let warm = Cold {
                compress_us: costs.compress_us,
                decompress_us: costs.decompress_us,
            };
            costs.compress_us = cold.compress_us.max(warm.compress_us) + SWEEP_US;
            let more = (cold.decompress_us - warm.decompress_us).max(0.0);
            costs.decompress_us = warm.decompress_us + more * (1.0 - raw.hit_ratio);
            times.push(Times {
                codec: costs.name.clone(),
                block_bytes: block.block_bytes,
                warm,
                cold,
            });
        }
    }
    question.blocks = blocks;
    if cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    Ok(times)
}

/// The share of the sample's pages that are zeros only, 0 to 1.
fn zeros(sample: &SamplePages, page_bytes: usize) -> f64 {
    let pages = || sample.pages(page_bytes);
    let zeros = pages().filter(|page| page.iter().all(|byte| *byte == 0)).count();
    zeros as f64 / pages().count().max(1) as f64
}

fn probe(
    options: &Options,
    plan: &Plan,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event),
) -> Result<Option<Arc<device::Report>>, LabError> {
    let Some(wanted) = options.device_options(&options.lengths()) else {
        return Ok(None);
    };
    let (mut at, mut pieces, mut doing) = (0, 1, String::new());
    let report = device::probe(&wanted, cancel, &mut |event| {
        let done = match event {
            device::Event::Piece { index, total, what } => {
                (at, pieces, doing) = (index, total, what);
                0.0
            }
            device::Event::Progress(done) => done,
            device::Event::Measured(_) => 1.0,
        };
        events(Event {
            share: plan.share(0.0, plan.device, (at as f64 + done.min(1.0)) / pieces as f64),
            what: format!("device: {doing}"),
        });
    })?;
    if report.interrupted {
        return Err(LabError::Cancelled);
    }
    Ok(Some(Arc::new(report)))
}

/// The suite with the lengths of blocks that the sample has.
fn measure_codecs(
    options: &Options,
    plan: &Plan,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event),
) -> Result<suite::Report, LabError> {
    let mut lengths = options.lengths();
    loop {
        let suite = suite::run(&options.suite_options(&lengths), cancel, &mut |progress| {
            events(Event {
                share: plan.share(plan.device, plan.suite, progress.share),
                what: format!("codecs: {}", progress.what),
            });
        });
        match suite {
            // Default block sizes are dropped if no file is that large.
            Err(LabError::Option {
                option: "block-bytes", ..
            }) if options.block_bytes.is_none() && lengths.len() > 1 => {
                lengths.pop();
            }
            Err(LabError::Option {
                option: "block-bytes",
                reason,
            }) if options.block_bytes.is_none() => return Err(LabError::option("access-bytes", reason)),
            suite => return suite,
        }
    }
}

/// The question, with what was not given filled in.
fn question(options: &Options, suite: &suite::Report, device: &Device) -> Result<(Question, Assumed), LabError> {
    let is_trace = matches!(options.access, Access::Trace(_));
    let data_bytes = match &options.access {
        Access::Trace(trace) => trace.pages.saturating_mul(options.access_bytes),
        _ => options.data_bytes.unwrap_or(suite.sample.found_bytes),
    };
    let least_memory = (64 << 10).max(options.access_bytes);
    let assumed = Assumed {
        data: options.data_bytes.is_none() && !is_trace,
        memory: options.memory_bytes.is_none(),
        access: !options.access_is_given && !is_trace,
    };
    if data_bytes < options.access_bytes {
        return Err(LabError::option(
            "data-bytes",
            format!(
                "{data_bytes} bytes are less than an access needs, {}",
                Bytes(options.access_bytes)
            ),
        ));
    }
    let question = Question {
        data_bytes,
        memory_bytes: options
            .memory_bytes
            .unwrap_or((data_bytes / USUAL_MEMORY).max(least_memory)),
        access_bytes: options.access_bytes,
        access: options.access.clone(),
        workers: options.workers,
        hit_us: options.hit_us,
        background_pct: options.background_pct,
        promote_after_hits: options.promote_after_hits,
        blocks: figures::blocks(suite, device),
        prices: options.prices,
    };
    Ok((question, assumed))
}
