//! A leaf that was built from any records returns them by every accessor; damage to the decoded bytes of a frame causes
//! an error or a wrong value of that frame.
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
