//! Limits: memory, processor time, room in the queue.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::*;
use crate::tuner::cpu_budget::{CpuBudget, Spent};

fn adaptive(budget_bytes: usize) -> Adaptive {
    Adaptive::of_pool(PolicyKind::Clock, 8, budget_bytes, 8192, 0.5, Arc::default()).unwrap()
}

#[test]
fn memory_is_a_small_part_of_the_budget() {
    for policy in PolicyKind::ALL {
        for budget_bytes in [64 << 10, 700_000, 8 << 20, 64 << 20, 1 << 30] {
            let adaptive = Adaptive::of_pool(policy, 8, budget_bytes, 8192, 0.5, Arc::default()).unwrap();
            adaptive.inner.lock().cpu_budget = None;
            let most = budget_bytes / 100 + (64 << 10);
            assert!(
                adaptive.bytes() <= most,
                "{policy}, {budget_bytes}: {} at first",
                adaptive.bytes()
            );
            for page in 0..3_000_000 {
                let hash = hash(page % 1_000_000);
                if adaptive.follows(hash) && adaptive.accessed(hash, 8192) {
                    adaptive.step();
                }
                if page >= 60_000 && budget_bytes < 64 << 20 || page >= 300_000 {
                    break;
                }
            }
            assert!(
                adaptive.bytes() <= most,
                "{policy}, {budget_bytes}: {}",
                adaptive.bytes()
            );
            assert_eq!(adaptive.dropped(), 0);
        }
    }
}

#[test]
fn a_full_queue_drops() {
    let adaptive = adaptive(8 << 20);
    let capacity = adaptive.events.capacity();
    for page in 0..capacity {
        assert_eq!(adaptive.accessed(hash(page as u32), 8192), page + 1 >= capacity / 2);
    }
    assert_eq!(adaptive.dropped(), 0);
    adaptive.removed(1);
    adaptive.sized(1, None);
    assert_eq!(adaptive.dropped(), 2);
    adaptive.step();
    assert!(adaptive.events.is_empty());
}

#[test]
fn follows_nothing_without_credit() {
    let adaptive = adaptive(8 << 20);
    assert!(adaptive.follows(1));
    let at = |process: u64, thread: u64| Spent {
        process: Duration::from_millis(process),
        thread: Duration::from_millis(thread),
    };
    {
        let mut inner = adaptive.inner.lock();
        inner.cpu_budget = Some(CpuBudget::new(at(0, 0)));
        inner.pace(at(100, 0), at(200, 100), 1_000);
        adaptive.publish(&inner);
    }
    assert!(!adaptive.follows(1));
    {
        let mut inner = adaptive.inner.lock();
        inner.pace(at(20_000, 100), at(20_000, 100), 0);
        adaptive.publish(&inner);
    }
    assert!(adaptive.follows(1));
}

#[test]
fn a_budget_may_change() {
    let adaptive = adaptive(64 << 20);
    let (before, rate) = (adaptive.bytes(), adaptive.threshold.load(Relaxed));
    adaptive.resize(50 << 20);
    assert_eq!(adaptive.bytes(), before);
    adaptive.resize(1 << 20);
    assert!(adaptive.bytes() < before / 4, "{}", adaptive.bytes());
    assert!(adaptive.threshold.load(Relaxed) > rate);
    adaptive.resize(0);
    adaptive.resize(usize::MAX);
    adaptive.resize(64 << 20);
    assert_eq!(adaptive.threshold.load(Relaxed), rate);
    assert_eq!(adaptive.fraction(), 0.5);
}

#[test]
fn any_start_and_any_numbers_are_taken() {
    for (start, fraction) in [(-1.0, MIN_FRACTION), (7.0, 1.0), (f64::NAN, 0.5), (0.25, 0.25)] {
        let adaptive = Adaptive::of_pool(PolicyKind::Lru, 0, 0, 0, start, Arc::default()).unwrap();
        assert_eq!(adaptive.fraction(), fraction);
        for page in 0..1_000 {
            if adaptive.accessed(hash(page), u32::MAX) {
                assert_eq!(adaptive.step(), None, "nothing is known");
            }
            adaptive.sized(hash(page), Some(u32::MAX));
            adaptive.sized(hash(page / 2), Some(0));
        }
    }
}

#[test]
fn threads_may_all_call_it() {
    let adaptive = adaptive(4 << 20);
    let costs = Arc::clone(&adaptive.costs);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (adaptive, costs) = (&adaptive, &costs);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..20_000 {
                    let hash = hash(random.u32(0..5_000));
                    costs.read(8192, 100_000);
                    costs.compress(8192, 9_000, Some(3_000));
                    if adaptive.follows(hash) && adaptive.accessed(hash, 8192) {
                        adaptive.step();
                    }
                    if random.u8(..) == 0 {
                        adaptive.removed(hash);
                        adaptive.sized(hash, Some(3_000));
                    }
                }
            });
        }
    });
    adaptive.step();
    adaptive.inner.lock().model.as_ref().unwrap().validate();
    assert!((costs.store_read_ns() - 100_000.0).abs() < 1.0);
    assert!(adaptive.deciding_ns() > 0);
}
