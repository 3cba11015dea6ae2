//! The recommendation: a pure function of what was measured and asked.

use serde::Serialize;

use super::candidates::{self, Candidate};
use super::question::Question;
use super::thresholds::{self, Crossover, MemoryBound};
use crate::core::LabError;
use crate::model::tco::{self, Savings};
use crate::model::{self, BreakEven, CodecOutcome, Model, Outcome, WITHIN_ERROR};

/// Whether compression pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    Compress,
    /// It would gain something, but less than [`WITHIN_ERROR`].
    TooClose,
    /// No codec beats raw pages at any share.
    DoNotCompress,
    /// All the data fits into memory uncompressed.
    AllFits,
}

impl Verdict {
    /// Returns whether compression is recommended.
    pub fn pays(self) -> bool {
        self == Self::Compress
    }
}

/// The recommendation and its basis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// Whether compression pays.
    pub verdict: Verdict,
    /// Raw pages with the length of blocks that is best for them.
    pub raw: Candidate,
    /// The best codec with the length of blocks that is best for it, whether or not it pays.
    pub best: Candidate,
    /// All, by ascending microseconds per page.
    pub candidates: Vec<Candidate>,
    /// From which share on the best codec is faster than [`Recommendation::raw`].
    pub break_even: BreakEven,
    /// Bytes of memory that raw pages need for as many hits as the best codec has; `None` where it does not pay, or no
    /// memory is enough.
    pub raw_memory_bytes: Option<f64>,
    /// Bytes of memory with which the best codec is as fast as raw pages with all of it; `None` where it does not pay.
    pub enough_memory_bytes: Option<f64>,
    /// The share of workers that is not needed for the throughput of raw pages; below 0 more are needed.
    pub workers_saved: f64,
    /// Read latency from which some codec pays, in microseconds; `None` if one always does, or none.
    pub pays_from_us: Option<f64>,
    /// The nearest latencies below and above at which another choice is best.
    pub crossovers: [Option<Crossover>; 2],
    /// The memory from which on the best codec gains less than [`WITHIN_ERROR`]; `None` where it does not pay.
    pub pays_until: Option<MemoryBound>,
    /// Its savings, if prices are known and it pays.
    pub savings: Option<Savings>,
}

impl Recommendation {
    /// Returns the choice: the best codec if it pays, else raw pages.
    pub fn choice(&self) -> &Candidate {
        if self.verdict.pays() { &self.best } else { &self.raw }
    }

    /// Returns by which share of the raw pages' time the best codec is faster.
    pub fn gain(&self) -> f64 {
        model::gain(&self.raw.best, &self.best.best)
    }

    /// Returns the best candidate of another codec than the best.
    pub fn second_codec(&self) -> Option<&Candidate> {
        let mut codecs = self.candidates.iter().filter(|one| one.codec.is_some());
        codecs.find(|one| one.name() != self.best.name())
    }

    /// Returns the best codec with another length of blocks.
    pub fn second_block(&self) -> Option<&Candidate> {
        let mut same = self.candidates.iter().filter(|one| one.name() == self.best.name());
        same.find(|one| one.block_bytes != self.best.block_bytes)
    }
}

/// Recommends.
///
/// # Errors
/// [`LabError::Option`] when something is out of its bounds.
pub fn recommend(question: &Question) -> Result<Recommendation, LabError> {
    question.validate()?;
    let mut all = Vec::new();
    for block in &question.blocks {
        all.extend(candidates::of_block(question, block)?);
    }
    // Of equals the first stays in front: raw pages before codecs, short blocks before long ones.
    all.sort_by(|one, other| one.best.us_per_page.total_cmp(&other.best.us_per_page));
    let first = |is_codec: bool| {
        let mut found = all.iter().filter(|one| one.codec.is_some() == is_codec);
        found.next().cloned()
    };
    let (Some(raw), Some(best)) = (first(false), first(true)) else {
        return Err(LabError::option("codecs", "no codec is available"));
    };
    let crossovers = thresholds::crossovers(&all);
    let pays_from_us = thresholds::pays_from_us(&all, &best);
    let gain = model::gain(&raw.best, &best.best);
    let verdict = match gain {
        _ if raw.best.hit_ratio > 1.0 - 1e-9 => Verdict::AllFits,
        gain if gain >= WITHIN_ERROR => Verdict::Compress,
        gain if gain > 1e-6 => Verdict::TooClose,
        _ => Verdict::DoNotCompress,
    };
    let Some(block) = question.block(best.block_bytes) else {
        return Err(LabError::option("block-bytes", "no block size is available"));
    };
    let options = candidates::options_at_load(question, block)?;
    let break_even = match &best.codec {
        Some(codec) => thresholds::break_even(&options, codec, &best.points, raw.best.us_per_page)?,
        None => BreakEven::Never,
    };
    let mut recommendation = Recommendation {
        verdict,
        break_even,
        raw_memory_bytes: None,
        enough_memory_bytes: None,
        workers_saved: 1.0 - raw.best.pages_per_second / best.best.pages_per_second.max(1e-9),
        pays_from_us,
        crossovers,
        pays_until: None,
        savings: None,
        raw,
        best,
        candidates: all,
    };
    if let (true, Some(codec)) = (verdict.pays(), recommendation.best.codec.clone()) {
        gains(&mut recommendation, question, &options, &codec)?;
    }
    Ok(recommendation)
}

/// The model's options of raw pages of each length.
fn raws(recommendation: &Recommendation, question: &Question) -> Vec<model::Options> {
    let raws = recommendation.candidates.iter().filter(|one| one.codec.is_none());
    let options = raws.filter_map(|raw| {
        let block = question.block(raw.block_bytes)?;
        Some(question.model_options(block, raw.device_us))
    });
    options.collect()
}

/// The savings of a codec that pays, and how far it keeps paying.
fn gains(
    recommendation: &mut Recommendation,
    question: &Question,
    options: &model::Options,
    codec: &model::CodecCosts,
) -> Result<(), LabError> {
    let (raw, best) = (&recommendation.raw, &recommendation.best);
    let raw_block = question.block(raw.block_bytes);
    let as_fast = best.best.us_per_page;
    let raw_options = raw_block.map_or_else(|| options.clone(), |block| question.model_options(block, raw.device_us));
    let raws = raws(recommendation, question);
    recommendation.raw_memory_bytes = Model::of(&raw_options)?.raw_memory_for(as_fast);
    recommendation.enough_memory_bytes = Some(thresholds::memory_for(options, codec, raw.best.us_per_page)?);
    let until = thresholds::pays_until(&raws, options, codec, best.best.share, WITHIN_ERROR)?;
    recommendation.pays_until = Some(until);
    if let Some(prices) = &question.prices {
        let outcome = Outcome {
            options: raw_options,
            raw: raw.best,
            codecs: vec![CodecOutcome {
                codec: codec.clone(),
                points: Vec::new(),
                curve: Vec::new(),
                break_even: recommendation.break_even,
                pays_until: 1.0,
                best: best.best,
            }],
            crossings: Vec::new(),
        };
        recommendation.savings = tco::savings(&outcome, prices)?.into_iter().next();
    }
    Ok(())
}
