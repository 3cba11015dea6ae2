//! The table against the bounds that it was made from.

use super::{Bounds, Shortcuts};
use crate::tree::child;
use crate::tree::inner::{Share, Step};
use crate::tree::leaf::Leaf;
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
            unsafe { Shortcuts::new(&bounds, 0, std::ptr::null(), 1, &memory) }
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
        let Some((table, leaves)) = unsafe { Shortcuts::new(&of_bounds, 1 << 20, address(0), 1, &memory) }.unwrap()
        else {
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
            let step = table.find::<true>(&key, Runs::new(8), &guard);
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

/// Numbered keys of one of eight shards, in leaves between half full and full, and the bounds between those, as the tree separates them: by
/// the shortest prefix that does.
fn numbered(rng: &mut fastrand::Rng, runs: Runs) -> (Vec<Vec<u64>>, Bounds) {
    let numbers = 1_000_000..1_400_000u64;
    let own: Vec<_> = numbers.filter(|n| runs.shard(&n.to_be_bytes()) == 3).collect();
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
    let mut of_bounds = Bounds::new(&bounds[0], &bounds[bounds.len() - 1]);
    bounds.iter().for_each(|bound| of_bounds.push(bound));
    (leaves, of_bounds)
}

#[test]
fn numbered_keys_are_found_and_so_is_where_in_their_leaf_they_are() {
    const SHARDS: usize = 8;
    let memory = Memory::new();
    let mut rng = fastrand::Rng::with_seed(2);
    let runs = Runs::new(SHARDS);
    let (leaves, of_bounds) = numbered(&mut rng, runs);
    // SAFETY: the memory outlives the table.
    let (table, of_buckets) = unsafe { Shortcuts::new(&of_bounds, 1 << 20, address(0), 1, &memory) }
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
            if let Some(step) = table.find::<true>(&key.to_be_bytes(), runs, &guard) {
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

/// What foresight says of a key: the line that its leaf begins in, and where in the leaf it is.
fn foreseen(table: &Shortcuts, key: u64, runs: Runs) -> Option<Step> {
    let key = key.to_be_bytes();
    let number = table.number(&key)?;
    let place = table.place(number)?;
    table.foresee(place, number, key.len() - table.prefix().len(), runs)
}

#[test]
fn where_the_leaves_of_a_tidied_tree_are_is_foreseen_and_replaced_ones_are_not_taken_for_them() {
    let memory = Memory::new();
    let mut rng = fastrand::Rng::with_seed(3);
    let runs = Runs::new(8);
    let (leaves, of_bounds) = numbered(&mut rng, runs);
    // One behind the other, 40 bytes a key, as nodes are aligned.
    let mut end = 1 << 30;
    let places: Vec<usize> = leaves
        .iter()
        .map(|leaf| {
            let at = end;
            end += (leaf.len() * 40).next_multiple_of(32);
            at + 16
        })
        .collect();
    let bytes = end - (1 << 30);
    let near = std::ptr::without_provenance(places[leaves.len() / 2]);
    // SAFETY: the memory outlives the table.
    let (table, of_buckets) = unsafe { Shortcuts::new(&of_bounds, bytes, near, 8, &memory) }
        .unwrap()
        .unwrap();
    // 60 lines, data from the fifth on, as leaves of single records say.
    let hint = 5 << 10 | 1 << 9 | 60;
    let node = |at: usize| child::with_hint(std::ptr::without_provenance_mut(at), hint);
    for (bucket, &leaf) in of_buckets.iter().enumerate() {
        table.store(bucket..bucket + 1, node(places[leaf as usize + 1]));
    }
    let (mut right, mut near, mut all) = (0, 0, 0);
    // The first leaf and the last are in no table, and behind the last but one nothing tells where it ends.
    for (leaf, place) in leaves.iter().zip(&places).take(leaves.len() - 3).skip(1) {
        for (slot, &key) in leaf.iter().enumerate() {
            all += 1;
            if let Some(step) = foreseen(&table, key, runs)
                && step.child.addr() / 64 == place / 64
            {
                right += 1;
                near += usize::from(step.share.unwrap().times(leaf.len()).abs_diff(slot) <= 2);
            }
        }
    }
    assert!(right * 100 >= all * 90, "{right} of {all}");
    assert!(near * 100 >= right * 90, "{near} of {right}");

    // A leaf that is now elsewhere: not foreseen, and its neighbours as before.
    let moved = leaves.len() / 2;
    let middle = leaves[moved][leaves[moved].len() / 2];
    let buckets = table.buckets_of(std::ptr::without_provenance_mut(places[moved]), &middle.to_be_bytes());
    assert!(!buckets.is_empty());
    table.store(buckets, node(1 << 29));
    for (leaf, place) in leaves.iter().zip(&places).take(moved + 20).skip(moved - 20) {
        let middle = leaf[leaf.len() / 2];
        let step = foreseen(&table, middle, runs);
        if *place == places[moved] {
            assert!(
                step.is_none_or(|step| step.child.addr() / 64 != place / 64),
                "{middle} is no longer there"
            );
        }
    }
    // SAFETY: nobody else has seen the table.
    unsafe { Memory::free(table.node()) };
}

#[test]
fn a_leaf_foreseen_shorter_than_the_directory_of_another_is_asked_for() {
    // 20 lines, of which data is the last three; and half as many.
    let like = 17 << 10 | 1 << 9 | 20;
    let step = Step {
        child: address(0),
        hint: Leaf::hint_of_length(like, 10),
        share: Some(Share::of(1.0, 2.0)),
    };
    assert_eq!(step.hint, 17 << 10 | 1 << 9 | 10);
    Leaf::prefetch_step(&step);
    // What cannot be true is not taken for it.
    for lines in [0, 9, 41, usize::MAX] {
        assert_eq!(Leaf::hint_of_length(like, lines), like, "{lines}");
    }
}
