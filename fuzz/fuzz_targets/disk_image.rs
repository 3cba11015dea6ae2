//! What a closed cache left on disk, damaged: the next one has what is right or nothing, and neither fails nor hangs.
#![no_main]

use leafpress_fuzz::disk_case;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // An input that ends too early has done what it could.
    let _ = disk_case::run(&mut Unstructured::new(bytes));
});
