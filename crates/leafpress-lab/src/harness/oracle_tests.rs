use super::*;
use crate::core::corpus::Cut;

fn ledger(keys: u64, delete_pct: u32) -> Ledger {
    let bytes = (0..100_u8).flat_map(|i| [i, 0, i, 1]).collect();
    let corpus = Corpus::from_parts("test", vec![bytes], Cut::Fixed(4)).unwrap();
    Ledger::new(Arc::new(corpus), keys, Pairing::InOrder, delete_pct)
}

fn put(ledger: &Ledger, id: u64, version: u32) -> &[u8] {
    match ledger.mutation(id, version) {
        Mutation::Put(value) => value,
        Mutation::Delete => panic!("version {version} deletes"),
    }
}

#[test]
fn only_the_last_version_is_good_when_quiet() {
    let ledger = ledger(10, 0);
    assert!(ledger.allows(3, ledger.floor(3), Some(put(&ledger, 3, 0))));
    let ticket = ledger.issue(3);
    assert!(ledger.settle(ticket, true));
    let floor = ledger.floor(3);
    assert!(ledger.allows(3, floor, Some(put(&ledger, 3, 1))));
    assert!(!ledger.allows(3, floor, Some(put(&ledger, 3, 0))), "stale");
    assert!(!ledger.allows(3, floor, Some(put(&ledger, 3, 2))), "from the future");
    assert!(!ledger.allows(3, floor, Some(put(&ledger, 4, 1))), "another key's");
    assert!(!ledger.allows(3, floor, Some(&put(&ledger, 3, 1)[..3])), "cut short");
    assert!(!ledger.allows(3, floor, None), "missing");
}

#[test]
fn a_write_under_way_leaves_both_good() {
    let ledger = ledger(10, 0);
    let ticket = ledger.issue(3);
    let floor = ledger.floor(3);
    for version in [0, 1] {
        assert!(ledger.allows(3, floor, Some(put(&ledger, 3, version))), "{version}");
    }
    ledger.settle(ticket, true);
    assert!(
        ledger.allows(3, floor, Some(put(&ledger, 3, 0))),
        "a read that began before may still see the old value"
    );
    assert!(
        !ledger.allows(3, ledger.floor(3), Some(put(&ledger, 3, 0))),
        "one that begins now may not"
    );
}

#[test]
fn overlapping_writes_may_land_in_any_order() {
    let ledger = ledger(10, 0);
    let (one, two) = (ledger.issue(3), ledger.issue(3));
    ledger.settle(two, true);
    assert!(
        ledger.allows(3, ledger.floor(3), Some(put(&ledger, 3, 0))),
        "the first may still be to come, the second lost"
    );
    ledger.settle(one, true);
    let floor = ledger.floor(3);
    assert!(ledger.allows(3, floor, Some(put(&ledger, 3, 1))));
    assert!(ledger.allows(3, floor, Some(put(&ledger, 3, 2))));
    assert!(!ledger.allows(3, floor, Some(put(&ledger, 3, 0))));
    let three = ledger.issue(3);
    assert!(ledger.settle(three, true));
    let floor = ledger.floor(3);
    for stale in [0, 1, 2] {
        assert!(!ledger.allows(3, floor, Some(put(&ledger, 3, stale))), "{stale}");
    }
}

#[test]
fn deletes_are_known_to_reader_and_writer() {
    let ledger = ledger(1000, 10);
    let mut deletes = 0;
    for id in 0..1000 {
        let mut there = true;
        for version in 1..=10 {
            let ticket = ledger.issue(id);
            let mutation = ledger.mutation_of(ticket);
            assert_eq!(mutation, ledger.mutation(id, version));
            assert!(ledger.settle(ticket, there), "{id} {version}");
            there = mutation != Mutation::Delete;
            deletes += usize::from(!there);
            assert_eq!(ledger.allows(id, ledger.floor(id), None), !there);
        }
    }
    assert!((900..1100).contains(&deletes), "{deletes} of 10000");
    let ticket = ledger.issue(0);
    let there = ledger.mutation(0, 10) != Mutation::Delete;
    assert!(!ledger.settle(ticket, !there), "the map was wrong about the key");
}

#[test]
fn versions_wrap_around() {
    let ledger = ledger(1, 0);
    let cell = &ledger.cells[0];
    cell.state.store(
        State {
            issued: u32::MAX - 1,
            span: 0,
            under_way: 0,
        }
        .pack(),
        Ordering::Relaxed,
    );
    cell.floor.store(u32::MAX - 1, Ordering::Relaxed);
    for expected in [u32::MAX, 0, 1] {
        let ticket = ledger.issue(0);
        assert_eq!(ticket.version, expected);
        ledger.settle(ticket, true);
        assert_eq!(ledger.floor(0), expected);
    }
}

/// One key, a register that is always right, and threads that read and write it: never a false mismatch, and the floor
/// follows.
#[test]
fn threads_on_one_key_never_see_a_false_mismatch() {
    let ledger = ledger(1, 20);
    let register = parking(&ledger);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..20_000 {
                    if round % 2 == 0 {
                        let ticket = ledger.issue(0);
                        let new = match ledger.mutation_of(ticket) {
                            Mutation::Put(value) => Some(value.to_vec()),
                            Mutation::Delete => None,
                        };
                        let old = std::mem::replace(&mut *register.lock().unwrap(), new);
                        assert!(ledger.settle(ticket, old.is_some()));
                    } else {
                        let floor = ledger.floor(0);
                        let seen = register.lock().unwrap().clone();
                        assert!(ledger.allows(0, floor, seen.as_deref()));
                    }
                }
            });
        }
    });
    let ticket = ledger.issue(0);
    assert_eq!(ticket.version, 40_001);
    ledger.settle(ticket, register.lock().unwrap().is_some());
    assert_eq!(ledger.floor(0), 40_001, "a quiet write leaves one choice");
}

fn parking(ledger: &Ledger) -> std::sync::Mutex<Option<Vec<u8>>> {
    std::sync::Mutex::new(Some(put(ledger, 0, 0).to_vec()))
}

/// Under a pairing apart every cut is still used as often, and neighbours hold cuts from far apart, in every version.
#[test]
fn neighbours_hold_cuts_from_far_apart_with_that_pairing() {
    let cuts = 10_000;
    let bytes = (0..cuts).flat_map(u32::to_le_bytes).collect();
    let corpus = Arc::new(Corpus::from_parts("test", vec![bytes], Cut::Fixed(4)).unwrap());
    let ledger = Ledger::new(corpus, u64::from(cuts), Pairing::Apart, 0);
    let cut = |id: u64, version: u32| u32::from_le_bytes(ledger.value(id, version).try_into().unwrap());
    let used: std::collections::HashSet<_> = (0..u64::from(cuts)).map(|id| cut(id, 0)).collect();
    assert_eq!(used.len(), cuts as usize);
    for id in 0..u64::from(cuts) - 1 {
        for (version, other) in [(0, 0), (0, 1), (1, 0), (2, 2)] {
            let apart = cut(id, version).abs_diff(cut(id + 1, other));
            assert!(
                apart > 100 && apart < cuts - 100,
                "key {id}, versions {version} and {other}: {apart}"
            );
        }
    }
}
