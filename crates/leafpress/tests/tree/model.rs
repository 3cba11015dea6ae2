//! Random operation sequences give the results of a `BTreeMap`, whatever the codec, layout, landing buffer, sharding
//! and dictionary.

use crate::support::strategies::{configs, ops, settings, shapes};
use leafpress::codec::{Codec, QplMode, QplPath, TrialGoal};
use proptest::prelude::*;

macro_rules! agrees_with_the_model {
    ($($name:ident: $codec:expr;)*) => {
        proptest! {
            #![proptest_config(settings(48))]
            $(
                #[test]
                fn $name(config in configs(), shape in shapes(), ops in ops()) {
                    if let Some(tree) = config.build($codec, shape) {
                        crate::support::model::check(&tree, shape, &ops);
                    }
                }
            )*
        }
    };
}

agrees_with_the_model! {
    none: Codec::None;
    lz4: Codec::Lz4 { acceleration: 1 };
    lz4_fast: Codec::Lz4 { acceleration: 16 };
    zstd: Codec::Zstd { level: 1 };
    zstd_negative: Codec::Zstd { level: -3 };
    onpair: Codec::OnPair { bits: 12 };
    onpair_huffman: Codec::OnPairHuffman;
    trial: Codec::Trial { goal: TrialGoal::Balance };
    trial_memory: Codec::Trial { goal: TrialGoal::Memory };
    auto: Codec::Auto { level: 1 };
    deflate: Codec::Deflate { level: 1 };
    zlib: Codec::Zlib { level: 1 };
    qpl_software_fixed: Codec::Qpl { path: QplPath::Software, mode: QplMode::Fixed };
    qpl_software_dynamic: Codec::Qpl { path: QplPath::Software, mode: QplMode::Dynamic };
}
