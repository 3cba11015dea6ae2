//! Random operation sequences give the results of a `BTreeMap` while the tree changes its codec and its dictionary.

use std::collections::BTreeMap;
use std::sync::Arc;

use leafpress::{Tree, Upkeep};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::favouring::Favouring;
use crate::support::keys::KeyShape;
use crate::support::model::{Op, run, same_contents, same_statistics};
use crate::support::strategies::{ops, settings};
use crate::support::values::{Fill, Value};

/// Records that a training needs, so that the dictionary of any codec saves more than it takes.
const RECORDS: u16 = 2500;
/// Trainings until the codec must have changed. One is enough unless a thread is suspended during each of the timed
/// reads of the trial.
const MAX_TRAININGS: usize = 20;

/// One change of the codec.
#[derive(Debug, Clone)]
struct Round {
    /// The number of the next codec among the others.
    codec: usize,
    /// What is done while the tree may change, since some of it requests a training.
    before: Vec<Op>,
    /// What is done when a training was requested, in the background or by these steps of the upkeep.
    during: Vec<Op>,
    steps: u8,
}

#[derive(Debug, Clone)]
struct Options {
    frame_bytes: Option<usize>,
    landing_bytes: usize,
    shards: usize,
    upkeep: Upkeep,
    shape: KeyShape,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (0..3_usize, ops(), ops(), any::<u8>());
    let round = round.prop_map(|(codec, before, during, steps)| Round {
        codec,
        before,
        during,
        steps,
    });
    vec(round, 2..4)
}

fn options() -> impl Strategy<Value = Options> {
    (
        prop_oneof![2 => Just(None), 1 => Just(Some(1)), 1 => Just(Some(256))],
        prop_oneof![Just(0_usize), Just(512), Just(4096)],
        prop_oneof![2 => Just(1_usize), 1 => Just(3)],
        prop_oneof![Just(Upkeep::Threads), Just(Upkeep::Caller)],
        // Keys of several lengths are in the blocks of single records, others are packed.
        prop_oneof![2 => Just(KeyShape::Fields), 1 => Just(KeyShape::Prefixed), 1 => Just(KeyShape::AlmostDense)],
    )
        .prop_map(|(frame_bytes, landing_bytes, shards, upkeep, shape)| Options {
            frame_bytes,
            landing_bytes,
            shards,
            upkeep,
            shape,
        })
}

/// A case takes a second of processor time, so there are few.
fn few() -> ProptestConfig {
    let settings = settings(8);
    ProptestConfig {
        cases: settings.cases.min(24),
        max_shrink_iters: 200,
        ..settings
    }
}

/// Inserts the records that a training needs.
fn put_records(tree: &Tree, map: &mut BTreeMap<Vec<u8>, Vec<u8>>, shape: KeyShape, seed: u16) {
    for n in 0..RECORDS {
        let (key, value) = (
            shape.key(n),
            Value {
                len: 150,
                fill: Fill::Text,
                seed: seed.wrapping_mul(31).wrapping_add(n),
            },
        );
        tree.insert(&key, &value.bytes()).unwrap();
        map.insert(key, value.bytes());
    }
}

fn check(options: &Options, rounds: &[Round]) {
    let engine = Arc::new(Favouring::new());
    let mut builder = Tree::builder()
        .engine(engine.clone())
        .leaf_bytes(4096)
        .landing_bytes(options.landing_bytes)
        .shards(options.shards)
        .dictionary_bytes(4096)
        .upkeep(options.upkeep);
    if let Some(bytes) = options.frame_bytes {
        builder = builder.frame_bytes(bytes);
    }
    let (tree, shape, mut map) = (builder.build().unwrap(), options.shape, BTreeMap::new());
    for (number, round) in rounds.iter().enumerate() {
        let before = tree.stats().codec;
        let wanted = engine.favour_another(before, round.codec);
        run(&tree, &mut map, shape, &round.before);
        put_records(&tree, &mut map, shape, number as u16);
        tree.request_training();
        let steps = [Op::Upkeep(round.steps)];
        run(&tree, &mut map, shape, &steps);
        run(&tree, &mut map, shape, &round.during);
        let mut trainings = 0;
        while tree.stats().codec != wanted {
            assert!(
                trainings < MAX_TRAININGS,
                "{before} stays, not {wanted}: {}",
                tree.stats().limits_reason
            );
            put_records(&tree, &mut map, shape, number as u16);
            tree.train().unwrap();
            trainings += 1;
        }
        same_contents(&tree, &map, &format!("round {number}, {before} to {wanted}"));
        tree.validate().unwrap();
    }
    tree.settle().unwrap();
    same_contents(&tree, &map, "at the end");
    same_statistics(&tree, &map);
}

proptest! {
    #![proptest_config(few())]
    #[test]
    fn records_outlast_each_change(options in options(), rounds in rounds()) {
        check(&options, &rounds);
    }
}
