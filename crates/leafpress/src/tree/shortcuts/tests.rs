//! The table against the bounds that it was made from.

use super::{Bounds, Shortcuts};
use crate::tree::memory::Memory;
use crate::tree::runs::Runs;

/// Keys of all kinds: few numbers, so that many keys share one, and lengths around that of a number.
fn key(rng: &mut fastrand::Rng, prefix: &[u8], wide: bool) -> Vec<u8> {
    let number = if wide { rng.u64(..) } else { rng.u64(..4000) * 25 };
    let len = *rng.choice(&[6, 7, 8, 8, 8, 9, 10]).unwrap();
    let tail = [rng.u8(..2), rng.u8(..2)];
    let mut key = prefix.to_vec();
    key.extend(number.to_be_bytes().iter().chain(&tail).take(len));
    key
}

/// An address that no node has.
fn address(leaf: usize) -> *mut u8 {
    std::ptr::without_provenance_mut((leaf + 1) * 16)
}

#[test]
fn there_is_no_table_without_buckets() {
    let memory = Memory::new();
    for (first, last) in [(b"a", b"b"), (b"a", b"a")] {
        let mut bounds = Bounds::new(first, last);
        [first, last].into_iter().for_each(|bound| bounds.push(bound));
        // SAFETY: no table is made that could outlive the memory.
        assert!(
            unsafe { Shortcuts::new(&bounds, 0, std::ptr::null(), &memory) }
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn every_key_leads_to_its_leaf_or_nowhere_and_knows_its_buckets() {
    let memory = Memory::new();
    let mut rng = fastrand::Rng::with_seed(1);
    let mut found = 0;
    for round in 0..300 {
        let wide = round % 2 == 0;
        let prefix = &b"a prefix, which is longer"[..*rng.choice(&[0, 3, 8, 20]).unwrap()];
        let mut bounds: Vec<_> = (0..rng.usize(2..200)).map(|_| key(&mut rng, prefix, wide)).collect();
        bounds.sort();
        bounds.dedup();
        let mut of_bounds = Bounds::new(&bounds[0], &bounds[bounds.len() - 1]);
        bounds.iter().for_each(|bound| of_bounds.push(bound));
        // SAFETY: the memory outlives the table.
        let Some((table, leaves)) = unsafe { Shortcuts::new(&of_bounds, 1 << 20, address(0), &memory) }.unwrap() else {
            continue;
        };
        for (bucket, &leaf) in leaves.iter().enumerate() {
            table.store(bucket..bucket + 1, address(leaf as usize));
        }
        let guard = memory.enter();
        for _ in 0..2000 {
            // Anywhere, at the bounds, and just below them: without the last byte, which numbers need not tell.
            let bound = rng.choice(&bounds).unwrap();
            let key = match rng.u8(..3) {
                0 => key(&mut rng, prefix, wide),
                1 => bound.clone(),
                _ => bound[..bound.len() - 1].to_vec(),
            };
            let leaf = bounds.partition_point(|bound| *bound <= key).checked_sub(1);
            let step = table.find(&key, Runs::new(8), &guard);
            let Some(leaf) = leaf.filter(|leaf| leaf + 1 < bounds.len()) else {
                assert!(step.is_none(), "{key:?} is outside the span {bounds:?}");
                continue;
            };
            assert!(
                step.is_none_or(|step| step.child == address(leaf)),
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
        // SAFETY: nobody else has seen the table.
        unsafe { Memory::free(table.node()) };
    }
    assert!(found > 100_000, "{found} of 600,000 keys were found");
}

#[test]
fn numbered_keys_are_found_and_so_is_where_in_their_leaf_they_are() {
    const SHARDS: usize = 8;
    let memory = Memory::new();
    let mut rng = fastrand::Rng::with_seed(2);
    let runs = Runs::new(SHARDS);
    let numbers = 1_000_000..1_400_000u64;
    let own: Vec<_> = numbers.filter(|n| runs.shard(&n.to_be_bytes()) == 3).collect();
    // Leaves between half full and full.
    let mut leaves = Vec::new();
    let mut rest = own.as_slice();
    while !rest.is_empty() {
        let (leaf, behind) = rest.split_at(rng.usize(60..120).min(rest.len()));
        leaves.push(leaf);
        rest = behind;
    }
    // As the tree separates them: by the shortest prefix that does.
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
    let mut of_bounds = Bounds::new(&bounds[0], &bounds[bounds.len() - 1]);
    bounds.iter().for_each(|bound| of_bounds.push(bound));
    // SAFETY: the memory outlives the table.
    let (table, of_buckets) = unsafe { Shortcuts::new(&of_bounds, 1 << 20, address(0), &memory) }
        .unwrap()
        .unwrap();
    for (bucket, &leaf) in of_buckets.iter().enumerate() {
        table.store(bucket..bucket + 1, address(leaf as usize));
    }
    let guard = memory.enter();
    let (mut found, mut near, mut all) = (0, 0, 0);
    // The first leaf and the last are in no table.
    for (index, leaf) in leaves[1..leaves.len() - 1].iter().enumerate() {
        for (slot, key) in leaf.iter().enumerate() {
            all += 1;
            if let Some(step) = table.find(&key.to_be_bytes(), runs, &guard) {
                assert_eq!(step.child, address(index), "{key}");
                found += 1;
                near += usize::from(step.share.unwrap().times(leaf.len()).abs_diff(slot) <= 1);
            }
        }
    }
    assert!(found * 100 >= all * 98, "{found} of {all}");
    assert!(near * 100 >= found * 98, "{near} of {found}");
    // SAFETY: nobody else has seen the table.
    unsafe { Memory::free(table.node()) };
}
