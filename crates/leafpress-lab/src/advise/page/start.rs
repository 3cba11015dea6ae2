//! Where the page begins: its figures as the model itself has them, and the nodes that the grid needs to have them too.

use serde::Serialize;

use super::PageInput;
use crate::core::LabError;
use crate::model::replacement::Room;
use crate::model::{BreakEven, CodecOutcome, Model, Options, Outcome, Point};

/// The page's first figures.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Start {
    /// The cache without compression.
    pub raw: Point,
    /// What is recommended.
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
    /// The figures where the page begins; `outcome` is that of the options.
    ///
    /// # Errors
    /// As [`Model::of`].
    pub(super) fn of(input: &PageInput, options: &Options, outcome: &Outcome) -> Result<Self, LabError> {
        let model = Model::of(options)?;
        let memory = options.memory_bytes as f64;
        let chosen = input.choice.as_ref().filter(|choice| choice.share_pct > 0.0);
        let chosen = chosen.and_then(|choice| {
            let codec = options.codecs.iter().find(|codec| codec.name == choice.codec)?;
            Some((codec, choice.share_pct / 100.0))
        });
        // At share 0 nothing is compressed.
        let here = chosen.map_or(outcome.raw, |(codec, share)| model.point(codec, share));
        let worth = model.raw_memory_for(here.us_per_page);
        let raw_rooms = [Some(memory), worth]
            .into_iter()
            .flatten()
            .map(|memory| model.room(memory, 0.0, 1.0));
        let room = chosen.map(|(codec, share)| model.room(memory, share, codec.ratio));
        let best = outcome
            .codecs
            .iter()
            .map(|codec| model.room(memory, codec.best.share, codec.codec.ratio));
        let rooms = raw_rooms.chain(room).chain(best).map(|room| Room {
            raw_pages: room.raw_pages / options.pages(),
            compressed_pages: room.compressed_pages / options.pages(),
        });
        let rooms = rooms.collect();
        let codecs = outcome.codecs.iter().map(Pays::of).collect();
        Ok(Self {
            raw: outcome.raw,
            here,
            worth,
            codecs,
            rooms,
        })
    }

    /// Shares of the memory at which figures are told.
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
