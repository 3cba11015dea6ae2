//! Fuzzes the files that a killed cache left, damaged, mixed or made up: the next cache finds correct records or none,
//! and neither fails nor exceeds its memory.
#![no_main]

use leafpress_fuzz::{crash_case, peak};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

#[global_allocator]
static COUNTED: peak::Counted = peak::Counted;

fuzz_target!(|bytes: &[u8]| {
    // An input that ends too early ends the run: it is not an error.
    let _ = crash_case::run(&mut Unstructured::new(bytes));
});
