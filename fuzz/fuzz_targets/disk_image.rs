//! Damages the image of a closed cache: the next cache finds correct records or none, and neither fails nor hangs.
#![no_main]

use leafpress_fuzz::disk_case;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // An input that ends too early ends the run: it is not an error.
    let _ = disk_case::run(&mut Unstructured::new(bytes));
});
