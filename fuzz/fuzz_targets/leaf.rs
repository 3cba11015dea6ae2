//! A leaf pressed from any records gives them back by every accessor, and damage to what a frame of it decodes to is an
//! error or a wrong value of that frame.
#![no_main]

use leafpress_fuzz::{leaf, leaf_case};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    if let Ok(case) = leaf_case::case(&mut u) {
        leaf::check(&case);
    }
});
