//! The tier's work per operation depends neither on its size nor on the choice of keys, and a device is stalled only if
//! a transfer is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::counters::Count;
use super::device::Device;
use super::filter::FilterBuilder;
use super::key_hash::KeyHasher;
use super::run::{CHUNK_BLOCKS, Run};
use super::state::{SuperLeaf, TierState};
use super::tier::{MAX_WAIT, Tier};
use crate::cache::clock::SystemClock;
use crate::cache::record;
use leafpress_base::store::MemoryStore;
use leafpress_codec::{Codec, EngineOptions};

const BATCH_BYTES: usize = 64 << 10;

fn tier(blocks: u64) -> Tier {
    let store = Arc::new(MemoryStore::new(4096).unwrap());
    let engine = Codec::None.open(&EngineOptions::default()).unwrap();
    let clock = Arc::new(SystemClock::default());
    let opened = Tier::open(
        Device::new(store, blocks),
        engine,
        1 << 30,
        None,
        None,
        clock,
        &Arc::default(),
    );
    let (tier, _) = opened.unwrap();
    tier.batch_bytes.store(BATCH_BYTES, Ordering::Relaxed);
    tier
}

/// Spills a record and writes full batches.
fn put(tier: &Tier, key: &[u8], value: &[u8]) {
    let mut stored = Vec::new();
    record::write(value, &record::Attributes::default(), None, &mut stored).unwrap();
    tier.begin_spill().spill(key, Some(&stored));
    tier.write_full();
}

/// Leaves with a run of one chunk each, oldest first, in a store with room for little more.
fn full_tier(leaves: u32) -> Tier {
    let tier = tier((u64::from(leaves) + 40) * CHUNK_BLOCKS);
    let leaf = |number: u32| {
        let mut filter = FilterBuilder::new(1).unwrap();
        filter.push(7).unwrap();
        let run = Run {
            // A pseudo-random order.
            position: u64::from(number.wrapping_mul(0x9E37_79B1) % leaves) * CHUNK_BLOCKS,
            blocks: CHUNK_BLOCKS as u32,
            records: 1,
            filter: filter.finish().unwrap(),
            pages: vec![0],
            starts: vec![0],
            chunks: vec![number],
        };
        SuperLeaf {
            from: if number == 0 {
                Arc::from([])
            } else {
                Arc::from(number.to_be_bytes())
            },
            runs: vec![Arc::new(run)],
        }
    };
    let mut state = TierState::new(tier.state.read().most_chunks);
    assert!(state.restore((0..leaves).map(leaf).collect()).unwrap());
    *tier.state.write() = state;
    tier.writer.lock().head = u64::from(leaves + 1) * CHUNK_BLOCKS;
    tier
}

/// Number of leaves examined while twenty batches are written, each into about ten leaves, and the oldest runs are
/// dropped.
fn visits(leaves: u32) -> u64 {
    let tier = full_tier(leaves);
    let before = tier.state.read().visits;
    let dropped = tier.counters.sum(Count::RunsDropped);
    for batch in 0..20 {
        for group in 0..10 {
            let leaf = (batch * 10 + group) * (leaves / 256) + leaves / 512;
            for n in 0..14_u32 {
                let key = [leaf.to_be_bytes(), n.to_be_bytes()].concat();
                put(&tier, &key, &[n as u8; 400]);
            }
        }
        tier.write_all();
    }
    let dropped = tier.counters.sum(Count::RunsDropped) - dropped;
    assert!((100..1000).contains(&dropped), "{dropped} runs were dropped");
    tier.state.read().visits - before
}

#[test]
fn a_batch_costs_no_more_where_the_store_is_large() {
    let (small, large) = (visits(1 << 10), visits(1 << 16));
    assert!(
        small > 0 && large <= small + small / 4,
        "{large} leaves were examined, and {small} in a small tier"
    );
}

/// A writer that has no processor, or that merges for long, is waited for, and nothing is dropped.
#[test]
fn a_device_is_stalled_only_if_a_transfer_is() {
    let tier = tier(1 << 14);
    let mut stored = Vec::new();
    record::write(&[7; 400], &record::Attributes::default(), None, &mut stored).unwrap();
    for n in 0_u32.. {
        if tier.is_full() {
            break;
        }
        tier.begin_spill().spill(&n.to_be_bytes(), Some(&stored));
    }
    std::thread::scope(|scope| {
        // The tier has no writer thread, as if that thread had no processor.
        let evicting = scope.spawn(|| tier.make_room());
        std::thread::sleep(MAX_WAIT * 2);
        assert!(!tier.is_stalled() && !evicting.is_finished());
        let transfer = tier.device.begin_transfer();
        evicting.join().unwrap();
        assert!(tier.is_stalled());
        drop(transfer);
    });
    assert_eq!(tier.counters.sum(Count::Dropped), 0);
    tier.begin_spill().spill(b"another", Some(&stored));
    assert_eq!(tier.counters.sum(Count::Dropped), 1);
    tier.write_all();
    assert!(!tier.is_stalled());
}

/// After any changes the heap yields the oldest run, the same as an examination of all leaves.
#[test]
fn the_oldest_run_is_the_oldest() {
    let mut state = TierState::new(100_000);
    let mut rng = fastrand::Rng::with_seed(3);
    let mut position = 0;
    let mut run = |state: &mut TierState| {
        let mut filter = FilterBuilder::new(1).unwrap();
        filter.push(7).unwrap();
        position += 1;
        Some(Arc::new(Run {
            position,
            blocks: 1,
            records: 1,
            filter: filter.finish().unwrap(),
            pages: vec![0],
            starts: Vec::new(),
            chunks: vec![state.take_chunk().unwrap()],
        }))
    };
    for step in 0..5000_u32 {
        let leaf = rng.usize(..state.leaves().len());
        let runs = state.leaves()[leaf].runs.len();
        match rng.u32(..100) {
            0..55 => {
                let with = run(&mut state);
                state.replace(leaf, 0..rng.usize(..=runs), with).unwrap();
            }
            55..60 => state.replace(leaf, 0..rng.usize(..=runs), None).unwrap(),
            60..70 => {
                let key = [state.leaves()[leaf].from.as_ref(), &step.to_be_bytes()].concat();
                let is_in = state.leaves().get(leaf + 1).is_none_or(|next| key < next.from.to_vec());
                if is_in && key.len() < 200 {
                    let low = run(&mut state);
                    let high = if rng.bool() { run(&mut state) } else { None };
                    state.split(leaf, &key, low, high).unwrap();
                }
            }
            70..98 => {
                if let Some((_, leaf)) = state.oldest() {
                    let runs = state.leaves()[leaf].runs.len();
                    state.forget_from(leaf, rng.usize(..runs));
                }
            }
            98 if state.has_many_empty_leaves() => {
                let leaves = state.leaves_with_runs().unwrap();
                state.drop_empty_leaves(leaves);
            }
            _ => {}
        }
        let oldest = state.leaves().iter().filter_map(|leaf| leaf.runs.last());
        let oldest = oldest.map(|run| run.position).min();
        assert_eq!(state.oldest().map(|(position, _)| position), oldest, "step {step}");
        if let Some((position, leaf)) = state.oldest() {
            assert_eq!(state.leaves()[leaf].runs.last().unwrap().position, position);
        }
    }
}

/// With the known hasher these keys collide.
fn colliding(n: u64) -> Vec<u8> {
    [&0x8bb8_4b93_962e_acc9_u64.to_le_bytes()[..], &n.to_be_bytes()].concat()
}

#[test]
fn keys_of_one_hash_are_found_by_few_reads() {
    const KEYS: u64 = 12_000;
    let mut tier = tier(4000);
    tier.hasher = KeyHasher::public();
    assert!((1..KEYS).all(|n| tier.hash(&colliding(n)) == tier.hash(&colliding(0))));
    let value = |n: u64| [n.to_be_bytes(), (!n).to_be_bytes()].concat().repeat(6);
    for n in 0..KEYS {
        put(&tier, &colliding(2 * n), &value(n));
    }
    tier.write_all();
    let pages = tier.state.read().blocks;
    assert!(pages > 300, "{pages} pages");
    for n in (0..KEYS).step_by(7) {
        let mut found = Vec::new();
        assert!(
            tier.find(tier.hash(&colliding(2 * n)), &colliding(2 * n), &mut found)
                .unwrap()
        );
        assert_eq!(record::read(&found).0, value(n));
        assert!(
            !tier
                .find(tier.hash(&colliding(2 * n + 1)), &colliding(2 * n + 1), &mut found)
                .unwrap()
        );
    }
    let (lookups, reads) = (tier.counters.sum(Count::Lookups), tier.counters.sum(Count::BlocksRead));
    // A lookup takes the logarithm of a run's pages, for each of about ten runs.
    assert!(reads < lookups * 60, "{reads} pages were read in {lookups} lookups");
}

#[cfg(not(feature = "fuzz"))]
#[test]
fn no_key_collides_in_two_tiers() {
    let tiers = [tier(2000), tier(2000)];
    let hashes = |tier: &Tier| (0..100).map(|n| tier.hash(&colliding(n)).0).collect::<Vec<_>>();
    let [one, other] = tiers.each_ref().map(hashes);
    let mut all = [one, other].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 200);
}
