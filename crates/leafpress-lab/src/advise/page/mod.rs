//! The what-if page: one file, readable without a network, in which a reader moves sliders and sees what the model
//! says.
//!
//! [`page`] writes it from a [`PageInput`]. The recommendation, its reasons and tables are in the file as text, for
//! readers without scripts. The interactive part is plain JavaScript next to this file: `model.js` interpolates between
//! the nodes of the grid on which [`crate::model`] was evaluated (`grid`) and multiplies with prices, `state.js` and
//! `controls.js` are what the reader changes, `chart.js`, `draw.js` and `page.js` what is drawn.

mod grid;
mod html;
mod input;
mod start;
mod tables;

pub use html::page;
pub use input::{
    BlockCosts, BlockReads, Choice, CodecBlocks, CopyCosts, DeviceRow, FileRatio, FileRatios, PageInput, VerifyRow,
};

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;
