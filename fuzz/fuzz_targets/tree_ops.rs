//! Any operation sequence under any configuration returns the results of a `BTreeMap` and leaves a valid tree.
#![no_main]

use leafpress_fuzz::{config, model, ops};
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut u = Unstructured::new(bytes);
    let Ok((codec, shape, config)) = config(&mut u) else {
        return;
    };
    let Ok(ops) = ops(&mut u) else { return };
    if let Some(tree) = config.build(codec, shape) {
        model::check(&tree, shape, &ops);
    }
});
