//! Frames that decode to wrong bytes: every operation returns a result or an error, and no other frame's record is
//! lost.
#![no_main]

use leafpress_fuzz::{hostile, hostile_options, hostile_steps};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let Ok(options) = hostile_options(&mut u) else { return };
    let Ok(steps) = hostile_steps(&mut u) else { return };
    hostile::check(options, &steps);
});
