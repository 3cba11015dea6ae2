//! Tests of the table against the bounds that it was built from.

use crate::tree::index::interpolation::entry::BucketWord;
use crate::tree::index::interpolation::{Bounds, InterpolationIndex, Leaves};
use crate::tree::node::descent_step::DescentStep;
use crate::tree::node::fraction::Fraction;
use crate::tree::node::leaf::Leaf;
use crate::tree::node::partition::ShardPartitioner;
use leafpress_base::mem::tagged_ptr;
#[cfg(target_arch = "x86_64")]
use leafpress_base::mem::tagged_ptr::Hint;
use leafpress_base::reclaim::node_heap::{Flush, NodeHeap};

/// Returns a key of any kind: few numbers, so that many keys share one, and lengths around that of a number.
fn key(rng: &mut fastrand::Rng, prefix: &[u8], wide: bool) -> Vec<u8> {
    let number = if wide { rng.u64(..) } else { rng.u64(..4000) * 25 };
    let len = *rng.choice(&[6, 7, 8, 8, 8, 9, 10]).unwrap();
    let tail = [rng.u8(..2), rng.u8(..2)];
    let mut key = prefix.to_vec();
    key.extend(number.to_be_bytes().iter().chain(&tail).take(len));
    key
}

/// Returns an address that no node has.
fn address(leaf: usize) -> *mut u8 {
    std::ptr::without_provenance_mut((leaf + 1) * 64)
}

/// Returns leaves that take `bytes` bytes.
fn taking(bytes: usize) -> Leaves {
    Leaves {
        bytes,
        near: address(0),
        hint: 0,
        records: 0,
    }
}

#[test]
fn without_buckets_there_is_no_table() {
    let memory = NodeHeap::new(Flush::InBatches);
    for (first, last) in [(b"a", b"b"), (b"a", b"a")] {
        let mut bounds = Bounds::new(first, last).unwrap();
        [first, last].into_iter().for_each(|bound| bounds.push(bound).unwrap());
        assert!(
            // SAFETY: the memory outlives the table.
            unsafe { InterpolationIndex::new(&bounds, taking(0), 1, &memory) }
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn every_key_leads_to_its_leaf_or_nowhere_and_knows_its_buckets() {
    let memory = NodeHeap::new(Flush::InBatches);
    let mut rng = fastrand::Rng::with_seed(1);
    let mut found = 0;
    for round in 0..300 {
        let wide = round % 2 == 0;
        let prefix = &b"a prefix, which is longer"[..*rng.choice(&[0, 3, 8, 20]).unwrap()];
        let mut bounds: Vec<_> = (0..rng.usize(2..200)).map(|_| key(&mut rng, prefix, wide)).collect();
        bounds.sort();
        bounds.dedup();
        let mut of_bounds = Bounds::new(&bounds[0], &bounds[bounds.len() - 1]).unwrap();
        bounds.iter().for_each(|bound| of_bounds.push(bound).unwrap());
        // SAFETY: the memory outlives the table.
        let Some((table, leaves)) =
            unsafe { InterpolationIndex::new(&of_bounds, taking(1 << 20), 1, &memory) }.unwrap()
        else {
            continue;
        };
        for (bucket, &leaf) in leaves.iter().enumerate() {
            table.store(bucket..bucket + 1, address(leaf as usize));
        }
        let guard = memory.enter().unwrap();
        for _ in 0..2000 {
            // Keys anywhere, at the bounds, and just below them: without the last byte, which numbers need not
            // distinguish.
            let bound = rng.choice(&bounds).unwrap();
            let key = match rng.u8(..3) {
                0 => key(&mut rng, prefix, wide),
                1 => bound.clone(),
                _ => bound[..bound.len() - 1].to_vec(),
            };
            let leaf = bounds.partition_point(|bound| *bound <= key).checked_sub(1);
            let step = table.find::<true>(&key, ShardPartitioner::new(8), &guard);
            let Some(leaf) = leaf.filter(|leaf| leaf + 1 < bounds.len()) else {
                assert!(step.is_none(), "{key:?} is outside the span {bounds:?}");
                continue;
            };
            assert!(
                step.is_none_or(|step| step.address() == address(leaf)),
                "{key:?} in {bounds:?}"
            );
            found += usize::from(step.is_some());
            let known: Vec<_> = (0..leaves.len())
                .filter(|&bucket| leaves[bucket] as usize == leaf)
                .collect();
            assert_eq!(
                table.buckets_of(address(leaf), &key).collect::<Vec<_>>(),
                known,
                "{key:?} in {bounds:?}"
            );
        }
        // SAFETY: the table was not published.
        unsafe { NodeHeap::free(table.node()) };
    }
    assert!(found > 100_000, "{found} of 600,000 keys were found");
}

/// Returns numbered keys of one of eight shards, in leaves between half full and full, and the bounds between those, as
/// the tree separates them: by the shortest prefix that does.
fn numbered(rng: &mut fastrand::Rng, partitioner: ShardPartitioner) -> (Vec<Vec<u64>>, Bounds) {
    let numbers = 1_000_000..1_400_000u64;
    let own: Vec<_> = numbers.filter(|n| partitioner.shard(&n.to_be_bytes()) == 3).collect();
    let mut leaves = Vec::new();
    let mut rest = own.as_slice();
    while !rest.is_empty() {
        let (leaf, behind) = rest.split_at(rng.usize(60..120).min(rest.len()));
        leaves.push(leaf.to_vec());
        rest = behind;
    }
    let bounds: Vec<_> = leaves
        .windows(2)
        .map(|pair| {
            let (left, right) = (pair[0][pair[0].len() - 1].to_be_bytes(), pair[1][0].to_be_bytes());
            let same = left
                .iter()
                .zip(&right)
                .take_while(|(left, right)| left == right)
                .count();
            right[..=same].to_vec()
        })
        .collect();
    let mut of_bounds = Bounds::new(&bounds[0], &bounds[bounds.len() - 1]).unwrap();
    bounds.iter().for_each(|bound| of_bounds.push(bound).unwrap());
    (leaves, of_bounds)
}

#[test]
fn numbered_keys_are_found_and_so_is_where_in_their_leaf_they_are() {
    const SHARDS: usize = 8;
    let memory = NodeHeap::new(Flush::InBatches);
    let mut rng = fastrand::Rng::with_seed(2);
    let partitioner = ShardPartitioner::new(SHARDS);
    let (leaves, of_bounds) = numbered(&mut rng, partitioner);
    // SAFETY: the memory outlives the table.
    let (table, of_buckets) = unsafe { InterpolationIndex::new(&of_bounds, taking(1 << 20), 1, &memory) }
        .unwrap()
        .unwrap();
    for (bucket, &leaf) in of_buckets.iter().enumerate() {
        table.store(bucket..bucket + 1, address(leaf as usize));
    }
    let guard = memory.enter().unwrap();
    let (mut found, mut near, mut all) = (0, 0, 0);
    // The first leaf and the last are in no table.
    for (index, leaf) in leaves[1..leaves.len() - 1].iter().enumerate() {
        for (slot, key) in leaf.iter().enumerate() {
            all += 1;
            if let Some(step) = table.find::<true>(&key.to_be_bytes(), partitioner, &guard) {
                assert_eq!(step.address(), address(index), "{key}");
                found += 1;
                near += usize::from(step.share.unwrap().times(leaf.len()).abs_diff(slot) <= 1);
            }
        }
    }
    assert!(found * 100 >= all * 98, "{found} of {all}");
    assert!(near * 100 >= found * 98, "{near} of {found}");
    // SAFETY: the table was not published.
    unsafe { NodeHeap::free(table.node()) };
}

/// Returns the prediction of the prefetch summary for a key: the line in which its leaf begins, and its position in the
/// leaf.
#[cfg(target_arch = "x86_64")]
fn prefetched(table: &InterpolationIndex, key: u64, partitioner: ShardPartitioner) -> Option<DescentStep<'_>> {
    let key = key.to_be_bytes();
    let number = table.number(&key)?;
    let place = table.place(number)?;
    table.predict_step(place, number, key.len() - table.prefix().len(), partitioner)
}

// Elsewhere pointers have no room for hints, and the summary predicts nothing.
#[cfg(target_arch = "x86_64")]
#[test]
fn leaves_of_a_defragmented_tree_are_predicted_and_replaced_ones_are_not() {
    let memory = NodeHeap::new(Flush::InBatches);
    let mut rng = fastrand::Rng::with_seed(3);
    let partitioner = ShardPartitioner::new(8);
    let (leaves, of_bounds) = numbered(&mut rng, partitioner);
    // Contiguous leaves with 40 bytes per key, as blocks of the heap.
    let mut end = 1 << 30;
    let places: Vec<usize> = leaves
        .iter()
        .map(|leaf| {
            let at = end;
            end += (leaf.len() * 40).next_multiple_of(64);
            at + 48
        })
        .collect();
    let bytes = end - (1 << 30);
    // The data begins at byte 320, as in the hints of leaves of single records.
    let hint = |lines: usize| (320 / 16) << 10 | 1 << 9 | lines as Hint;
    let known = Leaves {
        near: std::ptr::without_provenance(places[leaves.len() / 2]),
        hint: hint(60),
        records: 90,
        ..taking(bytes)
    };
    // SAFETY: the memory outlives the table.
    let (table, of_buckets) = unsafe { InterpolationIndex::new(&of_bounds, known, 8, &memory) }
        .unwrap()
        .unwrap();
    let node = |at: usize, lines| tagged_ptr::with_hint(std::ptr::without_provenance_mut(at), hint(lines));
    for (bucket, &leaf) in of_buckets.iter().enumerate() {
        let lines = (leaves[leaf as usize + 1].len() * 40).div_ceil(64);
        table.store(bucket..bucket + 1, node(places[leaf as usize + 1], lines));
    }
    let guard = memory.enter().unwrap();
    let (mut right, mut same, mut found, mut all) = (0, 0, 0, 0);
    // The first leaf and the last are in no table, and the end of the last but one is unknown.
    for (leaf, place) in leaves.iter().zip(&places).take(leaves.len() - 3).skip(1) {
        for &key in leaf {
            all += 1;
            let seen = prefetched(&table, key, partitioner);
            right += usize::from(seen.is_some_and(|step| step.address().addr() == *place));
            // A correct prediction need not be prefetched again.
            if let Some(step) = table.find::<false>(&key.to_be_bytes(), partitioner, &guard) {
                found += 1;
                same += usize::from(seen == Some(step));
            }
        }
    }
    assert!(right * 100 >= all * 90, "{right} of {all}");
    assert!(same * 100 >= found * 90, "{same} of {found}");

    // A leaf that has moved: the summary does not predict it, and its neighbours are unaffected.
    let moved = leaves.len() / 2;
    let middle = leaves[moved][leaves[moved].len() / 2];
    let buckets = table.buckets_of(std::ptr::without_provenance_mut(places[moved]), &middle.to_be_bytes());
    assert!(!buckets.is_empty());
    table.store(buckets, node((1 << 29) + 48, 60));
    for (leaf, place) in leaves.iter().zip(&places).take(moved + 20).skip(moved - 20) {
        let middle = leaf[leaf.len() / 2];
        let step = prefetched(&table, middle, partitioner);
        if *place == places[moved] {
            assert!(
                step.is_none_or(|step| step.address().addr() != *place),
                "{middle} is no longer there"
            );
        }
    }
    // SAFETY: the table was not published.
    unsafe { NodeHeap::free(table.node()) };
}

#[test]
fn a_leaf_predicted_shorter_than_the_directory_of_another_is_prefetched() {
    // 20 lines, of which the last three are data; and half of that.
    let like = (17 * 64 / 16) << 10 | 1 << 9 | 20;
    let hint = Leaf::hint_of_length(like, 10);
    // SAFETY: the leaf is never dereferenced.
    let step = unsafe { DescentStep::to_leaf(address(0), hint, Some(Fraction::of(1.0, 2.0)), 0) };
    assert_eq!(step.hint, like - 10);
    Leaf::prefetch_step(&step);
    // Impossible lengths are ignored.
    for lines in [0, 9, 41, usize::MAX] {
        assert_eq!(Leaf::hint_of_length(like, lines), like, "{lines}");
    }
}

#[test]
fn a_leaf_keeps_its_address_and_hint_in_an_entry_unless_it_is_too_far_away() {
    let origin = (1 << 40) + 48;
    let most = 1 << 35;
    let entry = BucketWord::without_leaf(77, BucketWord::FOLLOWS);
    assert_eq!(entry.address(origin), None);
    for (distance, fits) in [
        (0, true),
        (64, true),
        (-64, true),
        (most - 64, true),
        (64 - most, true),
        (most, false),
        (-most, false),
        (1 << 38, false),
        // All leaves have the same offset in a line.
        (16, false),
    ] {
        let at = origin.wrapping_add_signed(distance);
        let leaf = tagged_ptr::with_hint(std::ptr::without_provenance_mut(at), 0x3_1234);
        let with = entry.with_leaf(leaf, origin);
        assert_eq!(with.address(origin), fits.then_some(at), "{distance}");
        assert_eq!(with.start(1), entry.start(1));
        if fits {
            assert_eq!(with.hint(), tagged_ptr::split(leaf).1, "{distance}");
        }
    }
}
