//! The probe of a storage device: what fio did in Harper's thesis ("Viability of Time-Memory Trade-Offs in Large Data
//! Sets", 2018, chapter 4 and appendix C), on the user's device.
//!
//! [`probe`] opens the [`Options`]' path (`target`: a file of its own in a directory, or the user's file, which is only
//! read), determines the medium (`medium`), reads and writes blocks in fio's order (`request_order`) through io_uring
//! (`uring`) or threads (`threads`), and says what in the result is not the device's (`notes`). [`fio_report`] takes a
//! result of fio itself instead. Either is a [`Report`]; [`document()`] makes it a report for
//! people and programs.

mod buffer;

mod document;
mod fio;
mod job;
mod medium;
#[cfg_attr(
    not(all(
        target_os = "linux",
        any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            target_arch = "riscv64",
            target_arch = "loongarch64",
            target_arch = "powerpc64"
        )
    )),
    path = "no_uring.rs"
)]
mod uring;

mod note;
mod notes;
mod options;
mod report;
mod request_order;
mod reread;
mod run;
mod saved;
mod tables;
mod target;
mod threads;
mod verdict;

#[cfg(test)]
mod fixtures;

pub use crate::core::DeviceError;
pub use document::document;
pub use fio::fio_report;
pub use medium::Medium;
pub use note::{Note, Topic};
pub use options::{
    EngineChoice, MAX_BLOCK_BYTES, MAX_BLOCK_SIZES, MAX_QUEUE_DEPTH, MAX_SECONDS, MIN_BLOCK_BYTES, MIN_BLOCKS,
    MIN_SECONDS, Operation, Options,
};
pub use report::{Latency, Measurement, Probed, Report, Reread, Source, Subject};
pub use run::{Event, probe};
pub use saved::saved_report;
pub use tables::summary;
