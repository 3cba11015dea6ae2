//! Predicted against measured: the page pool on the sample's pages, at a scale that fits, over a simulated device.
//!
//! The proportion of memory to data, the length of blocks, the law of access, workers and the device's latency are those of the question. The
//! prediction is the model's with the figures of the suite; from the pool itself it takes only what a hit on a raw page costs. The
//! simulated device is measured by itself before and after each run, since a sleep lasts longer than it is asked to.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table};
use leafpress::Codec;
use leafpress::pool::{FaultyStore, MemoryStore, Operation, PageStore, Share};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::Serialize;

use super::question::Question;
use super::run::{Advice, Event};
use super::words::{bytes, percent, us};
use crate::corpus::Source;
use crate::keys::{Chooser, Distribution, mix};
use crate::model::{Access, CodecCosts, Model, Options as ModelOptions, Point};
use crate::pool::{self, Line, Options as PoolOptions, Step, StoreKind, Verify, Warmup};
use crate::report::TABLE_STYLE;
use crate::report::html::thousands;
use crate::suite::SamplePages;
use crate::summary::NOT_APPLICABLE;
use crate::{Bytes, LabError, Phase};

/// Hit ratios that are further off than this, 0 to 1, are flagged.
pub const HIT_OFF: f64 = 0.02;
/// Microseconds a page that are further off than this share are flagged.
pub const US_OFF: f64 = 0.15;
/// Seconds that the simulated device is measured each time.
const DEVICE_SECONDS: f64 = 0.7;
/// Seconds that hits on raw pages are measured.
const HIT_SECONDS: f64 = 1.0;
/// How often what is cached is to have changed before it is measured.
const TURNOVERS: f64 = 6.0;
/// Bounds of the warm-up, in seconds.
const WARM_UP: (f64, f64) = (3.0, 60.0);
/// Fewer pages than this are no cache to speak of.
const LEAST_PAGES: u64 = 256;

/// What is run.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyOptions {
    /// Codecs; none is the best one of the advice.
    pub codecs: Vec<Codec>,
    /// Percents of the memory for compressed pages; a run in which the pool finds the share comes on top.
    pub shares: Vec<u8>,
    /// Length of each measured run in seconds.
    pub seconds: f64,
    /// Most bytes of pages.
    pub max_bytes: u64,
    /// Threads of the pool that compress ahead of need; those compressions no access waits for.
    pub background_threads: usize,
    /// Where the file of pages is made; `None` is the system's directory for temporary files.
    pub scratch: Option<PathBuf>,
}

impl Default for VerifyOptions {
    /// The best codec at shares 0, 30, 60 and 90, four seconds each, on 64 MiB of pages, without threads of the pool's own.
    fn default() -> Self {
        Self {
            codecs: Vec::new(),
            shares: vec![0, 30, 60, 90],
            seconds: 4.0,
            max_bytes: 64 << 20,
            background_threads: 0,
            scratch: None,
        }
    }
}

/// A run of the pool beside its prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The codec.
    pub codec: String,
    /// Percent of the memory for compressed pages; `None` where the pool found it.
    pub share_pct: Option<u8>,
    /// The share that the pool held on average, 0 to 1.
    pub share: f64,
    /// Microseconds of a read of the simulated device, measured by itself before and after the run.
    pub device_us: f64,
    /// What the model predicts at that share.
    pub predicted: Point,
    /// The hit ratio that was measured, 0 to 1.
    pub hit_ratio: f64,
    /// Microseconds a page that were measured.
    pub us_per_page: f64,
    /// Pages a second that were measured.
    pub pages_per_second: f64,
}

impl Comparison {
    /// By how much the measured hit ratio is over the predicted one, in shares of the accesses.
    pub fn hit_off(&self) -> f64 {
        self.hit_ratio - self.predicted.hit_ratio
    }

    /// By which share the measured microseconds a page are over the predicted ones.
    pub fn us_off(&self) -> f64 {
        self.us_per_page / self.predicted.us_per_page.max(1e-9) - 1.0
    }

    /// Whether it is further off than [`HIT_OFF`] or [`US_OFF`].
    pub fn is_off(&self) -> bool {
        self.hit_off().abs() > HIT_OFF || self.us_off().abs() > US_OFF
    }
}

/// Predicted against measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// Pages.
    pub pages: u64,
    /// Their length in bytes.
    pub block_bytes: u64,
    /// Memory of the pool in bytes.
    pub memory_bytes: u64,
    /// How pages were asked for.
    pub access: String,
    /// Microseconds a read that were asked of the simulated device.
    pub device_us: u64,
    /// Microseconds of a hit on a raw page, measured with all pages in memory.
    pub hit_us: f64,
    /// Length of each run in seconds.
    pub seconds: f64,
    /// The runs.
    pub comparisons: Vec<Comparison>,
    /// Runs that failed, and why.
    pub failures: Vec<String>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// Runs the pool.
///
/// # Errors
/// [`LabError::Option`] when the question is one that the pool cannot be asked, or a codec was not measured; [`LabError::Io`] when no file
/// of pages can be made; [`LabError::Cancelled`] before the first run ended.
pub fn verify(
    advice: &Advice,
    options: &VerifyOptions,
    cancel: &AtomicBool,
    events: &mut dyn FnMut(Event),
) -> Result<Verification, LabError> {
    let law = match &advice.question.access {
        Access::Law(law) => *law,
        _ => {
            return Err(LabError::option(
                "verify",
                "the pool is asked for pages by a law, and not by a trace: leave it out, or give --access a law that is like the trace",
            ));
        }
    };
    let scratch = match &options.scratch {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    };
    let scratch = scratch.map_err(|e| LabError::io(options.scratch.clone().unwrap_or_else(std::env::temp_dir), e))?;
    let scene = Scene::new(advice, options, law, scratch.path(), cancel)?;
    scene.run(cancel, events)
}

/// What all runs have in common.
struct Scene<'a> {
    question: &'a Question,
    options: &'a VerifyOptions,
    law: Distribution,
    codecs: Vec<(Codec, CodecCosts)>,
    scratch: &'a Path,
    path: PathBuf,
    device: FaultyStore<MemoryStore>,
    device_us: u64,
    pages: u64,
    block_bytes: u64,
    memory_bytes: u64,
}

impl<'a> Scene<'a> {
    fn new(
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
        let pages = SamplePages::load(&sample, block_bytes as usize, cancel)?;
        let count = pages.len() as u64;
        if count < LEAST_PAGES {
            return Err(LabError::option(
                "verify",
                format!(
                    "the sample has {count} whole blocks of {}, and less than {LEAST_PAGES} are no cache: give a larger sample, or leave it out",
                    Bytes(block_bytes)
                ),
            ));
        }
        let path = scratch.join("pages");
        let mut file = std::fs::File::create_new(&path).map_err(|e| LabError::io(&path, e))?;
        for page in pages.iter() {
            io::Write::write_all(&mut file, page).map_err(|e| LabError::io(&path, e))?;
        }
        let device = MemoryStore::from_pages(pages.iter().map(Box::<[u8]>::from))
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
                    "{} of pages with as large a part in memory as of the data leave {memory_bytes} bytes of memory, and a pool needs {least}: \
                     give a larger sample or --sample-bytes, or more --memory",
                    bytes((count * block_bytes) as f64)
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
            device,
            device_us,
            pages: count,
            block_bytes,
            memory_bytes,
        })
    }

    fn run(&self, cancel: &AtomicBool, events: &mut dyn FnMut(Event)) -> Result<Verification, LabError> {
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
            let fixed = self.options.shares.iter().map(|share| Share::Fixed {
                raw_percent: 100 - (*share).min(100),
            });
            runs.extend(fixed.chain([Share::Adaptive]).map(|share| (*codec, costs, share)));
        }
        let total = runs.len();
        let mut before = self.true_device_us()?;
        for (number, (codec, costs, share)) in runs.into_iter().enumerate() {
            let run = self.pool_options(codec, costs, share)?;
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
            let after = self.true_device_us()?;
            match self.compare(&line, costs, f64::midpoint(before, after), hit_us)? {
                Ok(comparison) => verification.comparisons.push(comparison),
                Err(failure) => verification.failures.push(failure),
            }
            before = after;
        }
        if verification.interrupted && verification.comparisons.is_empty() {
            return Err(LabError::Cancelled);
        }
        Ok(verification)
    }

    /// One run of the pool in a process of its own; `None` when it was cancelled.
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

    fn pool_options(&self, codec: Codec, costs: &CodecCosts, share: Share) -> Result<PoolOptions, LabError> {
        let mut run = PoolOptions::new(Source::Path(self.path.clone()));
        run.raw = true;
        run.store = Some(StoreKind::Memory);
        run.page_bytes = self.block_bytes as usize;
        run.budget_bytes = self.memory_bytes;
        run.codec = codec;
        run.share = share;
        run.restore_after = Some(self.question.restore_after);
        run.background_threads = Some(self.options.background_threads);
        run.seconds = self.options.seconds;
        run.workers = self.question.workers as usize;
        run.distribution = self.law;
        run.round_pages = (1, 1);
        run.device_latency_us = self.device_us;
        run.verify = Verify::OneIn(64);
        run.scratch = Some(self.scratch.to_owned());
        let model = self.model_options(self.device_us as f64, self.question.hit_us);
        let share = match share {
            Share::Fixed { raw_percent } => 1.0 - f64::from(raw_percent) / 100.0,
            Share::Adaptive => 0.9,
        };
        run.warmup = Warmup::Seconds(self.warm_up_seconds(&model, costs, share)?);
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
            access: Access::Law(self.law),
            device_us,
            hit_us,
            workers: question.workers,
            background_pct: question.background_pct,
            restore_after: question.restore_after,
            ..ModelOptions::new(crate::model::Method::Corrected)
        }
    }

    /// What a run measured beside what the model says; why there is nothing to compare.
    fn compare(
        &self,
        line: &Line,
        costs: &CodecCosts,
        device_us: f64,
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
        let Some(us_per_page) = outcome.us_per_page() else {
            return Ok(Err(format!("{name}: no page was asked for")));
        };
        let share = match line.compressed_percent() {
            Some(percent) => f64::from(percent) / 100.0,
            None => outcome.compressed_share(),
        };
        let options = self.model_options(device_us, hit_us);
        Ok(Ok(Comparison {
            codec: line.options.codec.to_string(),
            share_pct: line.compressed_percent(),
            share,
            device_us,
            predicted: Model::of(&options)?.point(costs, share),
            hit_ratio: outcome.hit_ratio(),
            us_per_page,
            pages_per_second: outcome.throughput(),
        }))
    }

    /// Microseconds of a hit on a raw page: all pages in memory, no device.
    fn hit_us(&self, cancel: &AtomicBool, events: &mut dyn FnMut(Event)) -> Result<f64, LabError> {
        let mut run = PoolOptions::new(Source::Path(self.path.clone()));
        run.raw = true;
        run.store = Some(StoreKind::Memory);
        run.page_bytes = self.block_bytes as usize;
        run.budget_bytes = self.pages * (self.block_bytes + 128) * 9 / 8 + (2 << 20);
        run.codec = Codec::None;
        run.seconds = HIT_SECONDS;
        run.workers = self.question.workers as usize;
        run.distribution = Distribution::Uniform;
        run.round_pages = (1, 1);
        run.scratch = Some(self.scratch.to_owned());
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
                reason: failure.clone().unwrap_or_else(|| "no page was asked for".into()),
            }),
        }
    }

    /// Mean microseconds of a read of the simulated device by as many threads as there are workers.
    fn true_device_us(&self) -> Result<f64, LabError> {
        let length = Duration::from_secs_f64(DEVICE_SECONDS);
        let read = |worker: u32| -> io::Result<(u64, Duration)> {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(mix(u64::from(worker) + 1));
            let chooser = Chooser::new(Distribution::Uniform, self.pages, 1);
            let mut buffer = vec![0; self.block_bytes as usize];
            let (start, mut reads, mut spent) = (Instant::now(), 0, Duration::ZERO);
            while start.elapsed() < length {
                let page = chooser.read(&mut rng);
                let one = Instant::now();
                self.device.read(page, &mut buffer)?;
                spent += one.elapsed();
                reads += 1;
            }
            Ok((reads, spent))
        };
        let all = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.question.workers)
                .map(|worker| scope.spawn(move || read(worker)))
                .collect();
            let done = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread that read the simulated device panicked")))
            });
            done.collect::<io::Result<Vec<_>>>()
        });
        let all = all.map_err(|e| LabError::System(format!("the simulated device cannot be read: {e}")))?;
        let (reads, spent) = all
            .iter()
            .fold((0, Duration::ZERO), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Ok(spent.as_secs_f64() * 1e6 / reads.max(1) as f64)
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
        [] => vec![parse(best.name())?],
        some => some.to_vec(),
    };
    let with_costs = codecs.into_iter().map(|codec| {
        let name = codec.to_string();
        let costs = measured(&name)
            .ok_or_else(|| LabError::option("verify", format!("{name} was not measured: name it with --codecs too")))?;
        Ok((codec, costs))
    });
    with_costs.collect()
}

/// The table, and what it is.
pub(super) fn text(verification: &Verification) -> String {
    let mut table = Table::new();
    table.load_style(TABLE_STYLE).set_header([
        "codec",
        "compressed\n% of memory",
        "device\nus",
        "hit %\npredicted",
        "\nmeasured",
        "\npoints off",
        "us per page\npredicted",
        "\nmeasured",
        "\n% off",
    ]);
    for one in &verification.comparisons {
        let share = match one.share_pct {
            Some(percent) => format!("{percent} "),
            None => format!("{}a", percent(one.share, 0)),
        };
        let flag = |is_off: bool| if is_off { '!' } else { ' ' };
        table.add_row([
            one.codec.clone(),
            share,
            us(one.device_us),
            percent(one.predicted.hit_ratio, 2),
            percent(one.hit_ratio, 2),
            format!("{:+.2}{}", one.hit_off() * 100.0, flag(one.hit_off().abs() > HIT_OFF)),
            us(one.predicted.us_per_page),
            us(one.us_per_page),
            format!("{:+.1}{}", one.us_off() * 100.0, flag(one.us_off().abs() > US_OFF)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_padding((1, 0)).set_cell_alignment(CellAlignment::Right);
    }
    let off = verification.comparisons.iter().filter(|one| one.is_off()).count();
    let mut text = format!(
        "Predicted and measured\n{} pages of {} from the sample, {} of memory, {} access, a simulated device of {} us, {} s a run\n{table}\n",
        thousands(verification.pages),
        Bytes(verification.block_bytes),
        bytes(verification.memory_bytes as f64),
        verification.access,
        verification.device_us,
        verification.seconds
    );
    text += &format!(
        "Predicted by the model from what the suite measured, with the device as it was measured by itself around each run and {} us for a raw \
         hit.\na: the pool found the share; predicted for the mean of what it held. !: more than {} points or {}% off: {} of {}.\n",
        us(verification.hit_us),
        percent(HIT_OFF, 0),
        percent(US_OFF, 0),
        off,
        verification.comparisons.len()
    );
    for failure in &verification.failures {
        text += &format!("FAILED: {failure}\n");
    }
    if verification.interrupted {
        text += "INTERRUPTED: these are the runs that had ended.\n";
    }
    text
}

type Column = (&'static str, fn(&Comparison) -> String);

const COLUMNS: [Column; 11] = [
    ("codec", |c| c.codec.clone()),
    ("compressed_share_pct", |c| {
        c.share_pct
            .map_or_else(|| "adaptive".to_owned(), |percent| percent.to_string())
    }),
    ("held_share_pct", |c| percent(c.share, 2)),
    ("device_us", |c| format!("{:.3}", c.device_us)),
    ("predicted_hit_pct", |c| percent(c.predicted.hit_ratio, 4)),
    ("hit_pct", |c| percent(c.hit_ratio, 4)),
    ("hit_off_points", |c| percent(c.hit_off(), 4)),
    ("predicted_us_per_page", |c| format!("{:.4}", c.predicted.us_per_page)),
    ("us_per_page", |c| format!("{:.4}", c.us_per_page)),
    ("us_off_pct", |c| percent(c.us_off(), 3)),
    ("is_off", |c| u8::from(c.is_off()).to_string()),
];

/// `verify.tsv`: a line for each run.
pub(super) fn summary(verification: &Verification) -> String {
    let mut text = COLUMNS.map(|(name, _)| name).join("\t") + "\n";
    for one in &verification.comparisons {
        text += &(COLUMNS.map(|(_, cell)| cell(one)).join("\t") + "\n");
    }
    for failure in &verification.failures {
        let name = failure.split(':').next().unwrap_or(failure).replace('\t', " ");
        text += &([name]
            .into_iter()
            .chain(vec![NOT_APPLICABLE.to_owned(); COLUMNS.len() - 1]))
        .collect::<Vec<_>>()
        .join("\t");
        text += "\n";
    }
    text
}
