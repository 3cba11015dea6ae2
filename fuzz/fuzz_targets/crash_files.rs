//! What a killed cache left on disk and beside it, damaged, mixed or made up: the next one has what is right or nothing, and neither fails nor
//! holds more than it may.
#![no_main]

use leafpress_fuzz::{crash_case, peak};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static COUNTED: peak::Counted = peak::Counted;

fuzz_target!(|bytes: &[u8]| {
    // An input that ends too early has done what it could.
    let _ = crash_case::run(&mut Unstructured::new(bytes));
});
