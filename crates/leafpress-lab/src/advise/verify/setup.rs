//! The common setup of a verification's runs: pages, a simulated device, a proportion of memory to data.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leafpress::Codec;
use leafpress::codec::EngineOptions;
use leafpress::store::{FaultyStore, MemoryStore, Operation, PageStore};
use leafpress_pages::pool::RawShare;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::measured::{Standing, held_share, us_per_page};
use super::{Comparison, Verification, VerifyOptions};
use crate::advise::candidates::Candidate;
use crate::advise::cold::{self, SWEEP_US};
use crate::advise::question::Question;
use crate::advise::run::{Advice, Event};
use crate::core::corpus::Source;
use crate::core::keys::{Chooser, Distribution, mix};
use crate::core::statistics::upper_median;
use crate::core::{Bytes, LabError, about};
use crate::harness::Phase;
use crate::model::{Access, CodecCosts, Model, Options as ModelOptions, WITHIN_ERROR};
use crate::pool::{self, Line, Options as PoolOptions, Step, StoreKind, Verify, Warmup};
use crate::suite::SamplePages;

/// Seconds that the simulated device is measured each time.
const DEVICE_SECONDS: f64 = 0.6;
/// The share of a codec's times, the longest ones, that is discarded: the pool does other work in between, too.
const LEFT_OUT: f64 = 0.02;
/// The windows of that.
const DEVICE_WINDOW: Duration = Duration::from_millis(50);
/// Seconds that hits on raw pages are measured.
const HIT_SECONDS: f64 = 1.0;
/// Number of times that the cached pages turn over before the measurement.
const TURNOVERS: f64 = 6.0;
/// Bounds of the warm-up, in seconds.
const WARM_UP: (f64, f64) = (3.0, 60.0);
/// Least seconds of the warm-up of a pool that finds the share.
const MIN_ADAPTING: f64 = 8.0;
/// Fewer pages than this are too few for a cache.
const MIN_PAGES: u64 = 256;

/// The common setup of all runs.
pub(super) struct Setup<'a> {
    question: &'a Question,
    options: &'a VerifyOptions,
    law: Distribution,
    codecs: Vec<(Codec, CodecCosts)>,
    scratch: &'a Path,
    path: PathBuf,
    sample: SamplePages,
    device: FaultyStore<MemoryStore>,
    device_us: u64,
    pages: u64,
    block_bytes: u64,
    memory_bytes: u64,
}

impl<'a> Setup<'a> {
    pub(super) fn new(
        advice: &'a Advice,
        options: &'a VerifyOptions,
        law: Distribution,
        scratch: &'a Path,
        cancel: &AtomicBool,
    ) -> Result<Self, LabError> {
        let (question, best) = (&advice.question, &advice.recommendation.best);
        let block_bytes = best.block_bytes;
        let mut sample = advice.suite.options.clone();
        sample.max_bytes = Some(sample.max_bytes.unwrap_or(u64::MAX).min(options.max_bytes));
        let sample = SamplePages::load(&sample, cancel)?;
        let pages: Vec<&[u8]> = sample.pages(block_bytes as usize).collect();
        let count = pages.len() as u64;
        if count < MIN_PAGES {
            return Err(LabError::option(
                "verify",
                format!(
                    "the sample has {count} whole blocks of {}, and at least {MIN_PAGES} are needed: use a larger \
                     sample, or omit it",
                    Bytes(block_bytes)
                ),
            ));
        }
        let path = scratch.join("pages");
        let mut file = std::fs::File::create_new(&path).map_err(|e| LabError::io(&path, e))?;
        for page in &pages {
            io::Write::write_all(&mut file, page).map_err(|e| LabError::io(&path, e))?;
        }
        let device = MemoryStore::from_pages(pages.iter().map(|page| Box::<[u8]>::from(*page)))
            .map_err(|e| LabError::System(format!("cannot keep the pages in memory: {e}")))?;
        let device = FaultyStore::new(device);
        let device_us = best.device_us.round().max(1.0) as u64;
        device.set_latency(Operation::Read, Duration::from_micros(device_us));
        let share = question.memory_bytes as f64 / question.data_bytes.max(1) as f64;
        let memory_bytes = (share * (count * block_bytes) as f64) as u64;
        let least = pool::MIN_BUDGET_BYTES + 8 * block_bytes;
        if memory_bytes < least {
            return Err(LabError::option(
                "verify",
                format!(
                    "{} of pages in the same proportion to memory as the data leave {} of memory, and a pool needs {}: \
                     use a larger sample or --sample-bytes, or more --memory",
                    about((count * block_bytes) as f64),
                    about(memory_bytes as f64),
                    about(least as f64)
                ),
            ));
        }
        Ok(Self {
            codecs: codecs(advice, options)?,
            question,
            options,
            law,
            scratch,
            path,
            sample,
            device,
            device_us,
            pages: count,
            block_bytes,
            memory_bytes,
        })
    }

    pub(super) fn run(&self, cancel: &AtomicBool, events: &mut dyn FnMut(Event)) -> Result<Verification, LabError> {
        let hit_us = self.hit_us(cancel, events)?;
        let mut verification = Verification {
            pages: self.pages,
            block_bytes: self.block_bytes,
            memory_bytes: self.memory_bytes,
            access: self.law.to_string(),
            device_us: self.device_us,
            hit_us,
            seconds: self.options.seconds,
            comparisons: Vec::new(),
            failures: Vec::new(),
            interrupted: false,
        };
        let mut runs = Vec::new();
        for (codec, costs) in &self.codecs {
            let fixed = self.options.shares.iter().map(|share| RawShare::Fixed {
                raw_percent: 100 - (*share).min(100),
            });
            runs.extend(fixed.chain([RawShare::Adaptive]).map(|share| (*codec, costs, share)));
        }
        let total = runs.len();
        for (number, (codec, costs, share)) in runs.into_iter().enumerate() {
            let run = self.pool_options(codec, costs, share)?;
            let before = self.standing(codec, cancel)?;
            let what = format!("verifying {}", pool::text::name(&run));
            let line = self.one(run, cancel, &mut |done| {
                events(Event {
                    share: (number as f64 + done) / total as f64,
                    what: what.clone(),
                });
            })?;
            let Some(line) = line else {
                verification.interrupted = true;
                break;
            };
            let Some((before, after)) = before.zip(self.standing(codec, cancel)?) else {
                verification.interrupted = true;
                break;
            };
            match self.compare(&line, costs, before.with(after), hit_us)? {
                Ok(comparison) => verification.comparisons.push(comparison),
                Err(failure) => verification.failures.push(failure),
            }
        }
        if verification.interrupted && verification.comparisons.is_empty() {
            return Err(LabError::Cancelled);
        }
        Ok(verification)
    }

    /// Runs the pool once in its own process; `None` if cancelled.
    fn one(
        &self,
        run: PoolOptions,
        cancel: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Option<Line>, LabError> {
        let mut sweep = pool::sweep(&[run], self.scratch, cancel, &mut |step| {
            if let Step::Progress(phase, done) = step {
                progress(match phase {
                    Phase::Timed => 0.5 + done / 2.0,
                    Phase::WarmUp => done / 2.0,
                    _ => 0.0,
                });
            }
        })?;
        if sweep.cancelled || cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(sweep.lines.pop())
    }

    /// A run on the pages, each requested separately.
    fn pool_of_pages(&self) -> PoolOptions {
        PoolOptions {
            raw: true,
            store: Some(StoreKind::Memory),
            page_bytes: self.block_bytes as usize,
            workers: self.question.workers as usize,
            round_pages: (1, 1),
            scratch: Some(self.scratch.to_owned()),
            ..PoolOptions::new(Source::Path(self.path.clone()))
        }
    }

    fn pool_options(&self, codec: Codec, costs: &CodecCosts, share: RawShare) -> Result<PoolOptions, LabError> {
        let mut run = self.pool_of_pages();
        run.budget_bytes = self.memory_bytes;
        run.codec = codec;
        run.share = share;
        run.promote_after_hits = Some(self.question.promote_after_hits);
        run.background_threads = Some(usize::from(share == RawShare::Adaptive));
        run.seconds = self.options.seconds;
        run.distribution = self.law;
        run.device_latency_us = self.device_us;
        run.verify = Verify::OneIn(64);
        let model = self.model_options(self.device_us as f64, self.question.hit_us);
        let share = match share {
            RawShare::Fixed { raw_percent } => 1.0 - f64::from(raw_percent) / 100.0,
            RawShare::Adaptive => 0.9,
        };
        let seconds = self.warm_up_seconds(&model, costs, share)?;
        run.warmup = Warmup::Seconds(match run.share {
            RawShare::Fixed { .. } => seconds,
            RawShare::Adaptive => (seconds * 2.0).max(MIN_ADAPTING),
        });
        run.validate()?;
        Ok(run)
    }

    /// Until what is cached has changed some times.
    fn warm_up_seconds(&self, model: &ModelOptions, costs: &CodecCosts, share: f64) -> Result<f64, LabError> {
        let point = Model::of(model)?.point(costs, share);
        let cached = point.fits * self.pages as f64;
        let misses_per_second = point.pages_per_second * (1.0 - point.hit_ratio).max(1e-3);
        Ok((TURNOVERS * cached / misses_per_second).clamp(WARM_UP.0, WARM_UP.1))
    }

    fn model_options(&self, device_us: f64, hit_us: f64) -> ModelOptions {
        let question = self.question;
        ModelOptions {
            data_bytes: self.pages * self.block_bytes,
            memory_bytes: self.memory_bytes,
            page_bytes: self.block_bytes,
            access: Access::Distribution(self.law),
            device_us,
            hit_us,
            workers: question.workers,
            background_pct: 0.0,
            promote_after_hits: question.promote_after_hits,
            ..ModelOptions::new(crate::model::Method::Corrected)
        }
    }

    /// Compares a run's measurement with the model; `Err` says why that is impossible.
    fn compare(
        &self,
        line: &Line,
        costs: &CodecCosts,
        standing: Standing,
        hit_us: f64,
    ) -> Result<Result<Comparison, String>, LabError> {
        let name = format!("{} {}", line.options.codec, line.share_name());
        let report = match (&line.report, &line.failure) {
            (Some(report), _) => report,
            (None, failure) => return Ok(Err(format!("{name}: {}", failure.as_deref().unwrap_or("no answer")))),
        };
        let outcome = &report.outcome;
        if outcome.checks.wrong > 0 {
            return Ok(Err(format!("{name}: {} pages had WRONG BYTES", outcome.checks.wrong)));
        }
        let Some(us_per_page) = us_per_page(outcome, line.options.workers) else {
            return Ok(Err(format!("{name}: no page was requested")));
        };
        let share = match line.compressed_percent() {
            Some(percent) => f64::from(percent) / 100.0,
            None => held_share(outcome),
        };
        let options = self.model_options(standing.device_us, hit_us);
        let codec_us = standing.codec_us;
        let compress_us = codec_us.compress_us + SWEEP_US;
        let costs = CodecCosts::new(&costs.name, costs.ratio, compress_us, codec_us.decompress_us);
        Ok(Ok(Comparison {
            codec: line.options.codec.to_string(),
            share_pct: line.compressed_percent(),
            share,
            device_us: standing.device_us,
            codec_us,
            predicted: Model::of(&options)?.point(&costs, share),
            hit_ratio: outcome.hit_ratio(),
            us_per_page,
            pages_per_second: line.options.workers as f64 * 1e6 / us_per_page,
        }))
    }

    /// Microseconds of a hit on a raw page: all pages in memory, no device.
    fn hit_us(&self, cancel: &AtomicBool, events: &mut dyn FnMut(Event)) -> Result<f64, LabError> {
        let mut run = self.pool_of_pages();
        run.budget_bytes = self.pages * (self.block_bytes + 128) * 9 / 8 + (2 << 20);
        run.codec = Codec::None;
        run.seconds = HIT_SECONDS;
        run.distribution = Distribution::Uniform;
        let line = self.one(run, cancel, &mut |_| {
            events(Event {
                share: 0.0,
                what: "verifying: hits on raw pages".into(),
            });
        })?;
        let line = line.ok_or(LabError::Cancelled)?;
        match (line.us_per_page(), &line.failure) {
            (Some(us), _) => Ok(us),
            (None, failure) => Err(LabError::Child {
                reason: failure.clone().unwrap_or_else(|| "no page was requested".into()),
            }),
        }
    }

    /// Current cost of the device and the codec; `None` if cancelled.
    fn standing(&self, codec: Codec, cancel: &AtomicBool) -> Result<Option<Standing>, LabError> {
        let engine = codec
            .open(&EngineOptions::default())
            .map_err(|e| LabError::option("verify", e.to_string()))?;
        let device_us = self.true_device_us()?;
        let (length, wait) = (self.block_bytes as usize, (self.device_us as f64, LEFT_OUT));
        let codec_us = cold::measure(&*engine, &self.sample, length, wait, cancel)?;
        Ok(codec_us.map(|codec_us| Standing { device_us, codec_us }))
    }

    /// Microseconds of a read of the simulated device, the median of some windows, by as many threads as there are
    /// workers.
    fn true_device_us(&self) -> Result<f64, LabError> {
        let length = Duration::from_secs_f64(DEVICE_SECONDS);
        let read = |worker: u32| -> io::Result<Vec<f64>> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(mix(u64::from(worker) + 1));
            let chooser = Chooser::new(Distribution::Uniform, self.pages, 1);
            let mut buffer = vec![0; self.block_bytes as usize];
            let start = Instant::now();
            let mut windows = Vec::new();
            while start.elapsed() < length {
                let (window, mut reads) = (Instant::now(), 0_u32);
                while window.elapsed() < DEVICE_WINDOW {
                    self.device.read(chooser.read(&mut rng), &mut buffer)?;
                    reads += 1;
                }
                windows.push(window.elapsed().as_secs_f64() * 1e6 / f64::from(reads.max(1)));
            }
            Ok(windows)
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.question.workers)
                .map(|worker| scope.spawn(move || read(worker)))
                .collect();
            let done = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread reading the simulated device panicked")))
            });
            done.collect::<io::Result<Vec<_>>>()
        });
        let all = all.map_err(|e| LabError::System(format!("the simulated device cannot be read: {e}")))?;
        let windows = all.into_iter().flatten().collect();
        Ok(upper_median(windows).unwrap_or(self.device_us as f64))
    }
}

/// The codecs to run, with what the suite measured of them.
fn codecs(advice: &Advice, options: &VerifyOptions) -> Result<Vec<(Codec, CodecCosts)>, LabError> {
    let best = &advice.recommendation.best;
    let block = advice
        .question
        .blocks
        .iter()
        .find(|block| block.block_bytes == best.block_bytes);
    let measured = |name: &str| block.and_then(|block| block.codecs.iter().find(|costs| costs.name == name).cloned());
    let parse = |name: &str| {
        name.parse::<Codec>()
            .map_err(|e| LabError::option("verify", e.to_string()))
    };
    let codecs = match options.codecs.as_slice() {
        [] => {
            let close = advice.recommendation.second_codec().filter(|second| {
                let is_close = second.best.us_per_page < best.best.us_per_page * (1.0 + WITHIN_ERROR);
                is_close && second.is_compressing() && measured(second.name()).is_some()
            });
            let names = std::iter::once(best).chain(close).map(Candidate::name);
            names.map(parse).collect::<Result<_, _>>()?
        }
        some => some.to_vec(),
    };
    let with_costs = codecs.into_iter().map(|codec| {
        let name = codec.to_string();
        let costs = measured(&name)
            .ok_or_else(|| LabError::option("verify", format!("{name} was not measured: list it in --codecs too")))?;
        Ok((codec, costs))
    });
    with_costs.collect()
}
