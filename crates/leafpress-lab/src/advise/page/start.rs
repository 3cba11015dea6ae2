//! Where the page begins: its figures as the model itself has them, and the nodes that the grid needs to have them too.

use serde::Serialize;

use super::PageInput;
use crate::core::LabError;
use crate::model::replacement::Room;
use crate::model::{BreakEven, CodecOutcome, Model, Options, Outcome, Point, evaluate_with_raw};

/// The page's first figures.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Start {
    /// The cache without compression that everything is set against, and the length of its pages.
    pub raw: Point,
    pub raw_page_bytes: u64,
    /// The recommendation.
    pub here: Point,
    /// Bytes of memory that a cache without compression needs to be as fast.
    pub worth: Option<f64>,
    /// Where each codec pays, and where it is best.
    pub codecs: Vec<Pays>,
    /// Room of these, in the data's pages.
    #[serde(skip)]
    rooms: Vec<Room>,
}

/// Where a codec pays, and where it is best.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Pays {
    name: String,
    break_even: BreakEven,
    pays_until: f64,
    best: Point,
}

/// Room in the data's pages.
fn in_pages(room: Room, options: &Options) -> Room {
    Room {
        raw_pages: room.raw_pages / options.pages(),
        compressed_pages: room.compressed_pages / options.pages(),
    }
}

impl Pays {
    fn of(codec: &CodecOutcome) -> Self {
        Self {
            name: codec.codec.name.clone(),
            break_even: codec.break_even,
            pays_until: codec.pays_until,
            best: codec.best,
        }
    }
}

impl Start {
    /// The initial figures of the page: the model with compression, and the same cache without.
    ///
    /// # Errors
    /// As [`Model::of`].
    pub(super) fn of(input: &PageInput, options: &Options) -> Result<(Self, Outcome), LabError> {
        let model = Model::of(options)?;
        let (raw_options, raw) = input.raw(options)?;
        let outcome = evaluate_with_raw(options, raw)?;
        let raw_model = Model::of(&raw_options)?;
        let memory = options.memory_bytes as f64;
        let chosen = input.choice.as_ref().filter(|choice| choice.share_pct > 0.0);
        let chosen = chosen.and_then(|choice| {
            let codec = options.codecs.iter().find(|codec| codec.name == choice.codec)?;
            Some((codec, choice.share_pct / 100.0))
        });
        // At share 0 nothing is compressed.
        let here = chosen.map_or(raw, |(codec, share)| model.point(codec, share));
        let worth = raw_model.raw_memory_for(here.us_per_page);
        let raw_rooms = [Some(memory), worth]
            .into_iter()
            .flatten()
            .map(|memory| in_pages(raw_model.room(memory, 0.0, 1.0), &raw_options));
        let room = chosen.map(|(codec, share)| in_pages(model.room(memory, share, codec.ratio), options));
        let best = outcome
            .codecs
            .iter()
            .map(|codec| in_pages(model.room(memory, codec.best.share, codec.codec.ratio), options));
        let start = Self {
            raw,
            raw_page_bytes: raw_options.page_bytes,
            here,
            worth,
            codecs: outcome.codecs.iter().map(Pays::of).collect(),
            rooms: raw_rooms.chain(room).chain(best).collect(),
        };
        Ok((start, outcome))
    }

    /// Shares of the memory at which figures are shown.
    pub(super) fn shares(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.here.share).chain(self.codecs.iter().map(|codec| codec.best.share))
    }

    /// How many of the data's pages fit there.
    pub(super) fn fits(&self) -> impl Iterator<Item = f64> {
        self.rooms.iter().map(|room| room.raw_pages + room.compressed_pages)
    }

    /// Which part of those is compressed.
    pub(super) fn parts(&self) -> impl Iterator<Item = f64> {
        let part =
            |room: &Room| room.compressed_pages / (room.raw_pages + room.compressed_pages).max(f64::MIN_POSITIVE);
        self.rooms.iter().map(part)
    }
}
