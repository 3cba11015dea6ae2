use std::collections::HashSet;

use super::*;

fn take(places: &mut Places, count: usize) -> Vec<Place> {
    (0..count).map(|_| places.next()).collect()
}

#[test]
fn every_ninth_request_is_at_a_random_place_and_the_others_follow() {
    let mut places = Places::new(1 << 20, Some(9), 7);
    let taken = take(&mut places, 9000);
    // As fio: eight requests from the start, then the first draw.
    let random: Vec<_> = (0..taken.len()).filter(|&at| taken[at].random).collect();
    assert_eq!(random, (8..9000).step_by(9).collect::<Vec<_>>());
    assert_eq!(
        taken[..8].iter().map(|place| place.block).collect::<Vec<_>>(),
        (0..8).collect::<Vec<_>>()
    );
    for pair in taken.windows(2) {
        assert!(
            pair[1].random || pair[1].block == (pair[0].block + 1) % (1 << 20),
            "{pair:?}"
        );
    }
    let quarters: HashSet<_> = taken
        .iter()
        .filter(|place| place.random)
        .map(|place| place.block >> 18)
        .collect();
    assert_eq!(quarters.len(), 4, "draws are from all of the file");
}

#[test]
fn no_random_block_comes_twice_before_all_came() {
    for blocks in [1, 63, 64, 65, 1000] {
        let mut places = Places::new(blocks, Some(1), 3);
        for round in 0..3 {
            let seen: HashSet<_> = take(&mut places, blocks as usize)
                .iter()
                .map(|place| place.block)
                .collect();
            assert_eq!(seen.len() as u64, blocks, "round {round} of {blocks}");
            assert!(seen.iter().all(|block| *block < blocks));
        }
    }
}

#[test]
fn draws_pass_over_what_sequential_requests_read() {
    let mut places = Places::new(900, Some(9), 5);
    let mut seen = HashSet::new();
    for place in take(&mut places, 300) {
        assert!(!place.random || !seen.contains(&place.block), "{place:?}");
        seen.insert(place.block);
    }
}

#[test]
fn a_file_read_in_sequence_starts_again_at_its_end() {
    let mut places = Places::new(5, None, 1);
    let blocks: Vec<_> = take(&mut places, 12).iter().map(|place| place.block).collect();
    assert_eq!(blocks, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
}

#[test]
fn seeds_decide() {
    let blocks = |seed| take(&mut Places::new(1 << 30, Some(1), seed), 20);
    assert_eq!(blocks(1), blocks(1));
    assert_ne!(blocks(1), blocks(2));
}
