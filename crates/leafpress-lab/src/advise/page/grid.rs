//! Evaluates the model on a grid, between whose nodes the page interpolates, so that the model itself exists only in
//! [`crate::model`].
//!
//! A cache is described by what fits into it, and by what happens to an access then. The first is tabulated over memory
//! and share, for each page size and ratio; the second over how many of the data's pages fit and which part of them is
//! compressed, for each access. The cost of an event is adjustable, and is multiplied in the page.

use std::collections::BTreeSet;

use serde::Serialize;

use super::PageInput;
use super::start::Start;
use crate::core::LabError;
use crate::core::keys::Distribution;
use crate::model::replacement::Room;
use crate::model::{Access, Model, Options, Replacement};

/// Nodes of the cached part of the data's pages, and of the compressed part of those.
const FITS: usize = 61;
const PARTS: usize = 13;
/// Memory, in multiples of the data's pages, that holds everything: in the pool's log a page that became raw keeps its
/// place for a while.
const ROOMY: f64 = 4.0;
/// Nodes of the memory, from a hundredth to a hundred times the given amount.
const MEMORIES: usize = 25;
/// Percentages of the memory: dense where the pool's log is barely a segment long.
const SHARES: [f64; 28] = [
    0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.5, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0,
    65.0, 70.0, 75.0, 80.0, 85.0, 90.0, 100.0,
];
/// Smooth distributions depend on the size of the data: they are also evaluated at these multiples of the pages.
const SIZES: [f64; 3] = [1.0 / 32.0, 1.0, 32.0];
/// Hot sets to compare with: percents of the pages, and of the accesses.
const HOT_SETS: [(f64, f64); 3] = [(10.0, 90.0), (20.0, 80.0), (30.0, 70.0)];
/// Smallest non-zero room: without room a cache has no rounds.
const LEAST: f64 = 1e-6;

/// The grid, in the script's format. Tables are little-endian 32-bit floats in base64, with the last axis fastest.
#[derive(Debug, Serialize)]
pub(super) struct Grid {
    fits: Vec<f64>,
    parts: Vec<f64>,
    memories: Vec<f64>,
    shares: Vec<f64>,
    rooms: Vec<RoomTable>,
    accesses: Vec<AccessTables>,
}

/// Pages that fit, over memory and share, for one page's worth of memory.
#[derive(Debug, Serialize)]
struct RoomTable {
    page_bytes: u64,
    /// `None` is the room for raw pages.
    ratio: Option<f64>,
    table: String,
}

/// An access distribution, and what happens in caches under it.
#[derive(Debug, Serialize)]
struct AccessTables {
    name: String,
    label: String,
    replacements: Vec<ReplacementTables>,
}

#[derive(Debug, Serialize)]
struct ReplacementTables {
    replacement: Replacement,
    /// Access-sized pieces per page. Uniform access has one table for all; where a page holds no more than one
    /// piece, the pages are pieces.
    pieces: u32,
    /// The data's pages, rising; one where only the part that fits matters.
    pages: Vec<f64>,
    /// Raw hits, compressed hits and compressions of an access, over what fits and the part that is compressed; for
    /// each number of pages.
    tables: Vec<String>,
}

/// Evaluates the model.
///
/// # Errors
/// See [`Model::of`].
pub(super) fn grid(input: &PageInput, options: &Options, start: &Start) -> Result<Grid, LabError> {
    let ends = |nodes: usize, at: usize| at as f64 / (nodes - 1) as f64;
    // Where little fits the hottest pages decide, and hit ratios bend most.
    let mut fits: Vec<f64> = (0..FITS).map(|at| ROOMY * ends(FITS, at).powi(2)).collect();
    // Where everything just fits, and where the hot pages do, hit ratios have a corner.
    fits.extend((20..=40).map(|at| f64::from(at) * 0.04));
    fits.extend(accesses(&options.access).iter().filter_map(hot_part));
    let parts: Vec<f64> = (0..PARTS).map(|at| ends(PARTS, at)).collect();
    let decades = |at: usize| 10_f64.powf(4.0 * ends(MEMORIES, at) - 2.0);
    let memories: Vec<f64> = (0..MEMORIES)
        .map(|at| options.memory_bytes as f64 * decades(at))
        .collect();
    let shares = SHARES.map(|percent| percent / 100.0).to_vec();
    // The initial state of the page is a node, so that it shows the model's own figures.
    let fits = with_nodes(fits, start.fits());
    let parts = with_nodes(parts, start.parts());
    let memories = with_nodes(memories, start.worth);
    let shares = with_nodes(shares, start.shares());
    let mut grid = Grid {
        fits,
        parts,
        memories,
        shares,
        rooms: Vec::new(),
        accesses: Vec::new(),
    };
    grid.rooms = grid.rooms_of(input, options)?;
    for access in accesses(&options.access) {
        let mut replacements = Vec::new();
        let kinds = BTreeSet::from([options.replacement.to_string(), Replacement::Ideal.to_string()]);
        for replacement in [options.replacement, Replacement::Ideal].into_iter().take(kinds.len()) {
            for pieces in pieces(input, &access) {
                replacements.push(grid.replacement(&access, replacement, pieces, options)?);
            }
        }
        grid.accesses.push(AccessTables {
            name: access.name(),
            label: label(&access),
            replacements,
        });
    }
    Ok(grid)
}

/// Nodes, rising, with more of them within their ends.
fn with_nodes(mut nodes: Vec<f64>, more: impl IntoIterator<Item = f64>) -> Vec<f64> {
    nodes.sort_by(f64::total_cmp);
    let ends = nodes.first().copied().zip(nodes.last().copied());
    nodes.extend(
        more.into_iter()
            .filter(|node| ends.is_some_and(|(least, most)| (least..=most).contains(node))),
    );
    nodes.sort_by(f64::total_cmp);
    nodes.dedup();
    nodes
}

impl Grid {
    fn rooms_of(&self, input: &PageInput, options: &Options) -> Result<Vec<RoomTable>, LabError> {
        let blocks = || input.codecs.iter().flat_map(|codec| &codec.blocks);
        let lengths: BTreeSet<u64> = blocks().map(|block| block.block_bytes).collect();
        let mut rooms = Vec::new();
        for page_bytes in lengths {
            let mut ratios: Vec<f64> = blocks()
                .filter(|block| block.block_bytes == page_bytes)
                .map(|block| block.ratio.max(1.0))
                .collect();
            ratios.sort_by(f64::total_cmp);
            ratios.dedup();
            let options = Options {
                page_bytes,
                access_bytes: None,
                memory_bytes: options.memory_bytes.max(page_bytes),
                data_bytes: options.data_bytes.max(page_bytes),
                ..options.clone()
            };
            let model = Model::of(&options)?;
            for ratio in std::iter::once(None).chain(ratios.into_iter().map(Some)) {
                let nodes = self.memories.iter().flat_map(|memory| {
                    let room = |share: &f64| model.room(*memory, *share, ratio.unwrap_or(1.0));
                    let pages = |room: Room| ratio.map_or(room.raw_pages, |_| room.compressed_pages);
                    let one = page_bytes as f64 / memory;
                    let model_room = self.shares.iter().map(room);
                    model_room
                        .map(move |room| (pages(room) * one) as f32)
                        .collect::<Vec<_>>()
                });
                rooms.push(RoomTable {
                    page_bytes,
                    ratio,
                    table: encoded(nodes),
                });
            }
        }
        Ok(rooms)
    }

    fn replacement(
        &self,
        access: &Access,
        replacement: Replacement,
        pieces: u32,
        options: &Options,
    ) -> Result<ReplacementTables, LabError> {
        let scales = matches!(
            access,
            Access::Distribution(
                Distribution::Zipfian { .. } | Distribution::Latest { .. } | Distribution::SelfSimilar { .. }
            )
        );
        let sizes: &[f64] = if scales { &SIZES } else { &[1.0] };
        let (mut pages, mut tables) = (Vec::new(), Vec::new());
        for size in sizes {
            let least = options.page_bytes as f64;
            let options = Options {
                access: access.clone(),
                access_bytes: None,
                replacement,
                data_bytes: (options.data_bytes as f64 * size).clamp(least, (1_u64 << 60) as f64) as u64,
                ..options.clone()
            };
            pages.push(options.data_bytes() / options.page_bytes as f64);
            tables.push(self.events(&Model::gathered(&options, pieces)?, pages[pages.len() - 1]));
        }
        Ok(ReplacementTables {
            replacement,
            pieces,
            pages,
            tables,
        })
    }

    /// Smooth distributions cost milliseconds per node: rows are spread over all cores.
    fn events(&self, model: &Model<'_>, pages: f64) -> String {
        let row = |fits: f64| {
            let nodes = self.parts.iter().flat_map(|part| {
                // The limit as the fitting or compressed part approaches zero, not the value at zero.
                let (fits, part) = (fits.max(LEAST), part.max(LEAST));
                let events = model.events(Room {
                    raw_pages: fits * (1.0 - part) * pages,
                    compressed_pages: fits * part * pages,
                });
                [events.raw_hits, events.compressed_hits, events.compressions].map(|figure| figure as f32)
            });
            nodes.collect::<Vec<f32>>()
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut rows: Vec<Vec<f32>> = vec![Vec::new(); self.fits.len()];
        std::thread::scope(|scope| {
            for rows in rows
                .chunks_mut(self.fits.len().div_ceil(threads))
                .zip(self.fits.chunks(self.fits.len().div_ceil(threads)))
            {
                let row = &row;
                scope.spawn(move || {
                    rows.0
                        .iter_mut()
                        .zip(rows.1)
                        .for_each(|(into, fits)| *into = row(*fits))
                });
            }
        });
        encoded(rows.into_iter().flatten())
    }
}

/// How many pieces pages of all sizes hold, for all access sizes.
fn pieces(input: &PageInput, access: &Access) -> BTreeSet<u32> {
    let mut pieces = BTreeSet::from([1]);
    if let Access::Trace(_) | Access::Distribution(Distribution::Uniform) = access {
        return pieces;
    }
    for page in input.lengths() {
        let held = input.wants().into_iter().map(|wanted| page / wanted.max(1));
        pieces.extend(
            held.filter_map(|held| u32::try_from(held).ok())
                .filter(|held| *held > 0),
        );
    }
    pieces
}

/// The given access distribution, and others for comparison.
fn accesses(given: &Access) -> Vec<Access> {
    let hot_sets = HOT_SETS.map(|(keys_pct, operations_pct)| Distribution::HotSet {
        keys_pct,
        operations_pct,
    });
    let mut accesses = vec![given.clone()];
    for law in std::iter::once(Distribution::Uniform).chain(hot_sets) {
        if accesses[0] != Access::Distribution(law) {
            accesses.push(Access::Distribution(law));
        }
    }
    accesses
}

/// The part of the pages that is hotter than the rest.
fn hot_part(access: &Access) -> Option<f64> {
    match access {
        Access::Distribution(Distribution::HotSet { keys_pct, .. }) => Some(keys_pct / 100.0),
        _ => None,
    }
}

fn label(access: &Access) -> String {
    match access {
        Access::Distribution(Distribution::Uniform) => "even".into(),
        Access::Distribution(Distribution::HotSet {
            keys_pct,
            operations_pct,
        }) => format!("{keys_pct}% of the pages get {operations_pct}%"),
        Access::Distribution(law) => law.to_string().replace(':', " "),
        Access::Trace(trace) => format!("trace {}", trace.name),
    }
}

/// Floats as the script reads them.
fn encoded(figures: impl Iterator<Item = f32>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = figures.flat_map(f32::to_le_bytes).collect();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word = three
            .iter()
            .chain([0; 2].iter())
            .take(3)
            .fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
        for digit in 0..4 {
            let index = (word >> (18 - 6 * digit)) as usize % 64;
            text.push(if digit <= three.len() {
                char::from(DIGITS[index])
            } else {
                '='
            });
        }
    }
    text
}
