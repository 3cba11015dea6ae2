//! Evaluates the model: points over the shares, break-even and best shares, crossings.

use serde::Serialize;

use super::choice::{NOTHING_US, WITHIN_ERROR, gain, least, most_compressed};
use super::formulas::{
    Costs, Events, Tier, bisect, chance_compressed, corrected_us, gathered, mass_of_tiers, pages_per_second,
    published_raw_us, published_us, share_that_fits, spread,
};
use super::replacement::{self, Clock, Room};
use super::{CodecCosts, Method, Options, Overhead, Point, Replacement};
use crate::core::LabError;

/// From which share on a codec beats the cache without compression.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakEven {
    /// From the smallest one on.
    AtOnce,
    /// From this one on, 0 to 1.
    Share(f64),
    /// At none.
    Never,
}

/// Where two codecs change places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossing {
    /// The codec that is faster from there on.
    pub faster: String,
    /// The one that was.
    pub slower: String,
    /// The share of the memory for compressed pages, 0 to 1.
    pub share: f64,
    /// Microseconds per page of both.
    pub us_per_page: f64,
}

/// A codec over the shares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodecOutcome {
    /// Its ratio and costs.
    pub codec: CodecCosts,
    /// At the requested shares.
    pub points: Vec<Point>,
    /// At every percent, for charts.
    #[serde(skip)]
    pub curve: Vec<Point>,
    /// From which share on it beats the cache without compression.
    pub break_even: BreakEven,
    /// Up to which share, 0 to 1, it does; 0 when at none.
    pub pays_until: f64,
    /// The point with the lowest microseconds per page, up to [`MAX_COMPRESSED`](super::MAX_COMPRESSED) unless the
    /// formulas are as published; share 0 means no compression.
    pub best: Point,
}

/// The evaluated model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// The options.
    pub options: Options,
    /// The cache without compression.
    pub raw: Point,
    /// Each codec, in the order they were given.
    pub codecs: Vec<CodecOutcome>,
    /// Where two of them change places.
    pub crossings: Vec<Crossing>,
}

impl Outcome {
    /// Returns the codec with the lowest microseconds per page at its best share; `None` when none beats the
    /// uncompressed cache.
    pub fn best(&self) -> Option<&CodecOutcome> {
        let best = self
            .codecs
            .iter()
            .min_by(|one, other| one.best.us_per_page.total_cmp(&other.best.us_per_page));
        best.filter(|codec| codec.best.us_per_page < self.raw.us_per_page)
    }

    /// Returns [`Outcome::best`] where it gains enough to be recommended.
    pub fn recommended(&self) -> Option<&CodecOutcome> {
        self.best().filter(|codec| gain(&self.raw, &codec.best) >= WITHIN_ERROR)
    }
}

/// Steps of the share between 0 and 1 at which curves are evaluated.
const STEPS: usize = 100;

/// Evaluates the model.
///
/// # Errors
/// [`LabError::Option`] when an option is out of its bounds.
pub fn evaluate(options: &Options) -> Result<Outcome, LabError> {
    let raw = Model::of(options)?.raw(options.memory_bytes as f64);
    evaluate_with_raw(options, raw)
}

/// [`evaluate`] with another cache without compression to beat, as one with pages of another length.
///
/// # Errors
/// As [`evaluate`].
pub(crate) fn evaluate_with_raw(options: &Options, raw: Point) -> Result<Outcome, LabError> {
    let model = Model::of(options)?;
    let codecs: Vec<_> = options
        .codecs
        .iter()
        .map(|codec| of_codec(&model, codec, raw))
        .collect();
    let crossings = crossings(&codecs, &model);
    Ok(Outcome {
        options: options.clone(),
        raw,
        codecs,
        crossings,
    })
}

fn of_codec(model: &Model<'_>, codec: &CodecCosts, raw: Point) -> CodecOutcome {
    let options = model.options;
    let most = most_compressed(options.method);
    let at = |share: f64| model.point(codec, share);
    let curve: Vec<Point> = (0..=STEPS).map(|step| at(step as f64 / STEPS as f64)).collect();
    let worth_taking = curve.iter().skip(1).filter(|point| point.share < most).copied();
    let over_raw = |share: f64| at(share).us_per_page - raw.us_per_page;
    CodecOutcome {
        codec: codec.clone(),
        points: options
            .shares
            .iter()
            .map(|share| at(f64::from(*share) / 100.0))
            .collect(),
        break_even: break_even(&curve, over_raw, raw.us_per_page),
        pays_until: pays_until(&curve, over_raw, raw.us_per_page),
        best: least(raw, worth_taking.chain([at(most)])),
        curve,
    }
}

/// Returns the bytes of memory that a cache without compression needs for the same microseconds per page as
/// `us_per_page`; `None` when the data in memory as a whole is slower than that.
///
/// # Errors
/// As [`evaluate`].
pub fn raw_memory_for(options: &Options, us_per_page: f64) -> Result<Option<f64>, LabError> {
    Ok(Model::of(options)?.raw_memory_for(us_per_page))
}

fn wins(point: &Point, raw_us: f64) -> bool {
    point.us_per_page < raw_us - NOTHING_US
}

/// The end of the last stretch of shares that pay.
fn pays_until(curve: &[Point], over_raw: impl Fn(f64) -> f64, raw_us: f64) -> f64 {
    match curve.iter().rposition(|point| wins(point, raw_us)) {
        Some(last) if last + 1 < curve.len() => bisect(over_raw, curve[last].share, curve[last + 1].share),
        Some(_) => 1.0,
        None => 0.0,
    }
}

fn break_even(curve: &[Point], over_raw: impl Fn(f64) -> f64, raw_us: f64) -> BreakEven {
    // At share 0 nothing is compressed; what the thesis charges there is part of its curve.
    let Some(first) = curve.iter().skip(1).position(|point| wins(point, raw_us)) else {
        return BreakEven::Never;
    };
    let (before, after) = (curve[first].share, curve[first + 1].share);
    if first == 0 && over_raw(1e-6) < 0.0 {
        return BreakEven::AtOnce;
    }
    BreakEven::Share(bisect(over_raw, before.max(1e-6), after))
}

fn crossings(codecs: &[CodecOutcome], model: &Model<'_>) -> Vec<Crossing> {
    let mut crossings = Vec::new();
    for (at, one) in codecs.iter().enumerate() {
        for other in &codecs[at + 1..] {
            let between =
                |share: f64| model.point(&one.codec, share).us_per_page - model.point(&other.codec, share).us_per_page;
            // At share 0 corrected curves meet: nothing is compressed.
            for step in 1..STEPS {
                let difference = |step: usize| one.curve[step].us_per_page - other.curve[step].us_per_page;
                let (before, after) = (difference(step), difference(step + 1));
                let apart = before.abs() > NOTHING_US && after.abs() > NOTHING_US;
                if !apart || (before > 0.0) == (after > 0.0) {
                    continue;
                }
                let share = bisect(between, one.curve[step].share, one.curve[step + 1].share);
                let (faster, slower) = if after > 0.0 { (other, one) } else { (one, other) };
                crossings.push(Crossing {
                    faster: faster.codec.name.clone(),
                    slower: slower.codec.name.clone(),
                    share,
                    us_per_page: model.point(&one.codec, share).us_per_page,
                });
            }
        }
    }
    crossings.sort_by(|one, other| one.share.total_cmp(&other.share));
    crossings
}

/// Memory of the pool's tables per page, and per compressed page in addition to its bytes: see [`Overhead::Pool`].
const TABLE_BYTES: f64 = 56.0;
const BLOCK_BYTES: f64 = 12.0;

/// Options with precomputed parts common to all shares, to evaluate single points.
#[derive(Debug)]
pub struct Model<'o> {
    options: &'o Options,
    pages: f64,
    pieces: u32,
    pages_an_access: f64,
    tiers: Vec<Tier>,
    clock: Option<Clock>,
}

impl<'o> Model<'o> {
    /// Builds the model of some options.
    ///
    /// # Errors
    /// [`LabError::Option`] when an option is out of its bounds.
    pub fn of(options: &'o Options) -> Result<Self, LabError> {
        options.validate()?;
        Ok(Self::new(options))
    }

    /// Evaluates with this many access-sized pieces per page, regardless of the options' sizes. Not for traces.
    ///
    /// # Errors
    /// As [`Model::of`].
    #[cfg(feature = "advise")]
    pub(crate) fn gathered(options: &'o Options, pieces: u32) -> Result<Self, LabError> {
        options.validate()?;
        Ok(Self::with_pieces(options, pieces))
    }

    fn new(options: &'o Options) -> Self {
        Self::with_pieces(options, options.pieces())
    }

    fn with_pieces(options: &'o Options, pieces: u32) -> Self {
        let pages = options.pages();
        let pages_an_access = options.pages_an_access() as f64;
        let is_clock = options.replacement == Replacement::Clock && options.method == Method::Corrected;
        let wanted = options.access.tiers(pages * f64::from(pieces) / pages_an_access);
        Self {
            options,
            pages,
            pieces,
            pages_an_access,
            tiers: spread(gathered(&wanted, pieces), pages_an_access),
            clock: is_clock.then(|| Clock::new(options.promote_after_hits)),
        }
    }

    /// Pages that this much memory has room for.
    pub(crate) fn room(&self, memory_bytes: f64, share: f64, ratio: f64) -> Room {
        let page_bytes = self.options.page_bytes as f64;
        if self.options.overhead == Overhead::None {
            return Room {
                raw_pages: memory_bytes * (1.0 - share) / page_bytes,
                compressed_pages: memory_bytes * share / (page_bytes / ratio),
            };
        }
        // The pool's log is cut into segments of a 64th of the budget within these bounds, one of which is kept free
        // and one half full. At the end of each, half a page is lost.
        let segment = (memory_bytes / 64.0).clamp(16384.0, 262_144.0).max(page_bytes);
        let memory = memory_bytes * (1.0 - 1.0 / 128.0);
        let block = page_bytes / ratio + BLOCK_BYTES;
        let lost = (block / 2.0 / segment).min(0.5);
        let compressed = (memory * share - 1.5 * segment).max(0.0) * (1.0 - lost);
        let frames = memory * (1.0 - share) / (page_bytes + TABLE_BYTES);
        Room {
            // Some frames are free ahead of need.
            raw_pages: frames - (frames / 64.0).min(256.0),
            compressed_pages: compressed / (block + TABLE_BYTES),
        }
    }

    /// The events per access with this room.
    pub(crate) fn events(&self, room: Room) -> Events {
        match (&self.clock, self.options.replacement) {
            (Some(clock), _) => clock.events(&self.tiers, room),
            (None, Replacement::Ideal) => replacement::ideal(|pages| self.mass(pages), room),
            (None, _) => replacement::lru(|pages| self.options.access.lru_hits(&self.tiers, pages), room),
        }
    }

    /// The share of the accesses on this many of the hottest pages.
    fn mass(&self, hottest: f64) -> f64 {
        if self.pieces > 1 {
            return mass_of_tiers(&self.tiers, hottest);
        }
        let apart = self.pages_an_access;
        self.options.access.mass(self.pages / apart, hottest / apart)
    }

    /// Returns the point of the cache without compression, with this much memory.
    pub fn raw(&self, memory_bytes: f64) -> Point {
        let options = self.options;
        if options.method == Method::AsPublished {
            let fits = share_that_fits(memory_bytes, 0.0, 1.0, options.data_bytes());
            let hit_ratio = self.mass(fits * self.pages);
            return self.at(
                0.0,
                fits,
                hit_ratio,
                0.0,
                0.0,
                published_raw_us(hit_ratio, options.device_us),
            );
        }
        let none = CodecCosts::new("none", 1.0, 0.0, 0.0);
        self.corrected(&none, self.room(memory_bytes, 0.0, 1.0), 0.0)
    }

    /// Returns the bytes of memory that a cache without compression needs for the same microseconds per page as
    /// `us_per_page`: see [`raw_memory_for`].
    pub fn raw_memory_for(&self, us_per_page: f64) -> Option<f64> {
        let options = self.options;
        let over = |bytes: f64| self.raw(bytes).us_per_page - us_per_page;
        // Twice the data has room for the overhead, too.
        let (least, most) = (options.page_bytes as f64, 2.0 * options.data_bytes() + (1 << 20) as f64);
        if over(most) > 0.0 {
            return None;
        }
        if over(least) <= 0.0 {
            return Some(least);
        }
        Some(bisect(|log| over(log.exp()), least.ln(), most.ln()).exp())
    }

    /// Returns the point of a codec at a share of the memory for compressed pages, 0 to 1.
    pub fn point(&self, codec: &CodecCosts, share: f64) -> Point {
        self.point_with(self.options.memory_bytes as f64, codec, share)
    }

    /// Returns the codec's point with this much memory.
    pub fn point_with(&self, memory: f64, codec: &CodecCosts, share: f64) -> Point {
        let options = self.options;
        if options.method == Method::Corrected {
            return self.corrected(codec, self.room(memory, share, codec.ratio), share);
        }
        let fits = share_that_fits(memory, share, codec.ratio, options.data_bytes());
        let hit_ratio = self.mass(fits * self.pages);
        let chance = chance_compressed(share, codec.ratio);
        let us = published_us(
            hit_ratio,
            chance,
            codec.compress_us,
            codec.decompress_us,
            options.device_us,
        );
        self.at(share, fits, hit_ratio, chance, 1.0 - hit_ratio, us)
    }

    fn corrected(&self, codec: &CodecCosts, room: Room, share: f64) -> Point {
        let options = self.options;
        let events = self.events(room);
        let costs = Costs {
            hit_us: options.hit_us,
            device_us: options.device_us,
            compress_us: codec.compress_us,
            decompress_us: codec.decompress_us,
            background: options.background_pct / 100.0,
        };
        let hits = events.hit_ratio();
        let chance = if hits > 0.0 { events.compressed_hits / hits } else { 0.0 };
        let fits = ((room.raw_pages + room.compressed_pages) / self.pages).min(1.0);
        let us = corrected_us(&events, &costs);
        self.at(share, fits, hits, chance, events.compressions, us)
    }

    fn at(&self, share: f64, fits: f64, hit_ratio: f64, chance: f64, compressions: f64, us: f64) -> Point {
        let iops = match self.options.method {
            Method::Corrected => self.options.device_iops,
            Method::AsPublished => None,
        };
        Point {
            share,
            fits,
            hit_ratio,
            chance_compressed: chance,
            compressions,
            us_per_page: us,
            pages_per_second: pages_per_second(us, f64::from(self.options.workers), hit_ratio, iops),
        }
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
