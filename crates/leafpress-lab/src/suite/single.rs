//! Measures one engine on the caller's blocks, as a suite does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use leafpress::codec::Engine;

use super::Row;
use super::blocks::Blocks;
use super::method::Method;
use super::outcome::Setting;
use super::pass::{Room, pass};
use crate::core::LabError;

/// Measures an engine on blocks, on one thread, in `passes` passes: the row that a suite would have for them.
/// [`Row::block_bytes`] is the length of the longest.
///
/// # Errors
/// [`LabError::Block`] when the engine fails or returns a wrong byte; [`LabError::Data`] without a block.
pub fn measure_blocks(engine: &Arc<dyn Engine>, blocks: &[&[u8]], passes: usize) -> Result<Row, LabError> {
    let blocks = Blocks::of(blocks);
    if blocks.raw_bytes() == 0 {
        return Err(LabError::data("blocks", "must not be empty"));
    }
    let method = Method::Engine(Arc::clone(engine), None);
    let setting = Setting {
        codec: method.name(),
        block_bytes: blocks.block_bytes,
        threads: 1,
        rounds: blocks.rounds(1),
    };
    let (mut room, never) = (Room::default(), AtomicBool::new(false));
    let name = |_| "the sample".to_owned();
    let mut done = Vec::new();
    for number in 0..passes.max(1) {
        done.extend(pass(&method, &blocks, (1, number), &mut room, (1, &name), &never)?);
    }
    Ok(setting.row(&done, |pass| &pass.all))
}
