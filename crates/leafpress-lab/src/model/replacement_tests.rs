use std::collections::VecDeque;

use super::super::fixtures::random;
use super::super::formulas::{mass_of_hottest, tiers};
use super::*;
use crate::core::keys::{Chooser, Distribution};

const PARETO: Distribution = Distribution::HotSet {
    keys_pct: 20.0,
    operations_pct: 80.0,
};
const ZIPFIAN: Distribution = Distribution::Zipfian { theta: 0.99 };

#[track_caller]
fn assert_near(what: &str, modelled: f64, simulated: f64, by: f64) {
    assert!(
        (modelled - simulated).abs() <= by,
        "{what}: modelled {modelled}, simulated {simulated}"
    );
}

/// A generator for [`Chooser`].
struct Random(u64);

impl rand_xoshiro::rand_core::TryRng for Random {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(random(&mut self.0, 1 << 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(random(&mut self.0, u64::MAX))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill_with(|| random(&mut self.0, 256) as u8);
        Ok(())
    }
}

/// The pool's two spaces, page by page, as docs/design.md has them.
struct Simulated {
    room: (usize, usize),
    promote_after_hits: u8,
    /// 0 absent, 1 raw, 2 compressed; and the popularity.
    pages: Vec<(u8, u8)>,
    ring: VecDeque<usize>,
    /// Pages and whether their blocks are live.
    log: VecDeque<usize>,
    /// The number of each page's block that is live.
    live: Vec<u64>,
    blocks: VecDeque<u64>,
    next_block: u64,
    events: [u64; 5],
}

impl Simulated {
    fn new(pages: usize, room: (usize, usize), promote_after_hits: u8) -> Self {
        Self {
            room,
            promote_after_hits,
            pages: vec![(0, 0); pages],
            ring: VecDeque::new(),
            log: VecDeque::new(),
            live: vec![u64::MAX; pages],
            blocks: VecDeque::new(),
            next_block: 0,
            events: [0; 5],
        }
    }

    fn access(&mut self, page: usize) {
        self.events[0] += 1;
        let (space, popularity) = self.pages[page];
        let popularity = (popularity + 1).min(63);
        match space {
            1 => {
                self.events[1] += 1;
                self.pages[page].1 = popularity;
            }
            2 => {
                self.events[2] += 1;
                self.pages[page].1 = popularity;
                if popularity >= self.promote_after_hits {
                    self.events[4] += 1;
                    self.live[page] = u64::MAX;
                    self.enter(page, popularity);
                }
            }
            _ => self.enter(page, 0),
        }
    }

    fn enter(&mut self, page: usize, popularity: u8) {
        self.pages[page] = (1, popularity);
        self.ring.push_back(page);
        while self.ring.len() > self.room.0 {
            let Some(victim) = self.ring.pop_front() else { return };
            let popularity = self.pages[victim].1;
            if popularity > 0 {
                self.pages[victim].1 = popularity / 2;
                self.ring.push_back(victim);
            } else if self.room.1 == 0 {
                self.pages[victim] = (0, 0);
            } else {
                self.events[3] += 1;
                self.append(victim, 0);
                self.clean();
            }
        }
    }

    fn append(&mut self, page: usize, popularity: u8) {
        self.pages[page] = (2, popularity);
        self.live[page] = self.next_block;
        self.log.push_back(page);
        self.blocks.push_back(self.next_block);
        self.next_block += 1;
    }

    fn clean(&mut self) {
        while self.log.len() > self.room.1 {
            let (Some(page), Some(block)) = (self.log.pop_front(), self.blocks.pop_front()) else {
                return;
            };
            if self.live[page] != block {
                continue;
            }
            match self.pages[page].1 {
                0 => self.pages[page] = (0, 0),
                popularity => self.append(page, popularity / 2),
            }
        }
    }

    /// Runs accesses, the first half of which does not count.
    fn run(mut self, law: Distribution, accesses: u64) -> Events {
        let chooser = Chooser::new(law, self.pages.len() as u64, 7);
        let mut random = Random(11);
        for access in 0..accesses {
            if access == accesses / 2 {
                self.events = [0; 5];
            }
            self.access(chooser.read(&mut random) as usize);
        }
        let part = |event: usize| self.events[event] as f64 / self.events[0] as f64;
        Events {
            raw_hits: part(1),
            compressed_hits: part(2),
            compressions: part(3),
            restorations: part(4),
        }
    }
}

#[test]
fn the_clock_does_what_a_simulated_pool_does() {
    let pages = 3000;
    for law in [Distribution::Uniform, PARETO, ZIPFIAN] {
        let tiers = tiers(law, pages as f64);
        for (room, promote_after_hits) in [
            ((300, 0), 8),
            ((210, 225), 8),
            ((120, 450), 8),
            ((45, 650), 8),
            ((120, 450), 1),
            ((120, 450), 2),
        ] {
            let simulated = Simulated::new(pages, room, promote_after_hits).run(law, 300_000);
            let room = Room {
                raw_pages: room.0 as f64,
                compressed_pages: room.1 as f64,
            };
            let modelled = Clock::new(promote_after_hits).events(&tiers, room);
            // The chooser's zipfian distribution is itself an approximation (Gray et al.): at 3000 pages it is off by a
            // point.
            let name = format!("{law} {room:?} after {promote_after_hits}");
            assert_near(
                &format!("{name}: hits"),
                modelled.hit_ratio(),
                simulated.hit_ratio(),
                0.015,
            );
            assert_near(&format!("{name}: raw"), modelled.raw_hits, simulated.raw_hits, 0.02);
            assert_near(
                &format!("{name}: compressions"),
                modelled.compressions,
                simulated.compressions,
                0.015,
            );
            assert_near(
                &format!("{name}: restorations"),
                modelled.restorations,
                simulated.restorations,
                0.01,
            );
        }
    }
}

#[test]
fn every_replacement_has_the_same_hits_where_all_pages_are_alike() {
    let pages = 1e6;
    let tiers = tiers(Distribution::Uniform, pages);
    for share in [0.0, 0.3, 0.9, 1.0] {
        let room = Room {
            raw_pages: 75_000.0 * (1.0 - share),
            compressed_pages: 75_000.0 * share * 2.13,
        };
        let ideal = ideal(
            |pages_in| mass_of_hottest(Distribution::Uniform, pages, pages_in / pages),
            room,
        );
        let lru = lru(|pages_in| lru_hit_ratio(&tiers, pages_in), room);
        let clock = Clock::new(8).events(&tiers, room);
        assert_near("lru", lru.hit_ratio(), ideal.hit_ratio(), 1e-6);
        assert_near("clock", clock.hit_ratio(), ideal.hit_ratio(), 2e-4);
        assert_near("raw", clock.raw_hits, ideal.raw_hits, 2e-4);
    }
}

#[test]
fn an_ideal_cache_is_the_best() {
    for law in [PARETO, ZIPFIAN, Distribution::SelfSimilar { h: 0.2 }] {
        let tiers = tiers(law, 1e6);
        for (raw_pages, compressed_pages) in [(75e3, 0.0), (40e3, 70e3), (0.0, 160e3)] {
            let room = Room {
                raw_pages,
                compressed_pages,
            };
            let ideal = ideal(|pages| mass_of_hottest(law, 1e6, pages / 1e6), room).hit_ratio();
            let lru = lru(|pages| lru_hit_ratio(&tiers, pages), room).hit_ratio();
            let clock = Clock::new(8).events(&tiers, room).hit_ratio();
            assert!(
                clock < ideal + 1e-3 && lru < ideal + 1e-3,
                "{law}: {clock} {lru} {ideal}"
            );
            assert!(lru > 0.2 && clock > 0.2, "{law}: {clock} {lru}");
        }
    }
}

#[test]
fn everything_is_hit_where_everything_fits() {
    for law in [Distribution::Uniform, PARETO, ZIPFIAN] {
        let tiers = tiers(law, 1000.0);
        let raw = Room {
            raw_pages: 1000.0,
            compressed_pages: 0.0,
        };
        assert_eq!(Clock::new(8).events(&tiers, raw).hit_ratio(), 1.0);
        assert_eq!(lru_hit_ratio(&tiers, 1000.0), 1.0);
        let both = Room {
            raw_pages: 100.0,
            compressed_pages: 1500.0,
        };
        let events = Clock::new(8).events(&tiers, both);
        assert!(events.hit_ratio() > 0.995, "{law}: {events:?}");
        assert!(events.raw_hits > 0.05, "{law}: {events:?}");
    }
}

#[test]
fn figures_are_finite_and_within_bounds_whatever_the_room() {
    let laws = [
        Distribution::Uniform,
        ZIPFIAN,
        Distribution::HotSet {
            keys_pct: 1.0,
            operations_pct: 100.0,
        },
    ];
    let (soonest, latest) = (Clock::new(1), Clock::new(63));
    for law in laws {
        for pages in [1.0, 10.0, 1e12] {
            let tiers = tiers(law, pages);
            for raw_pages in [0.0, 1e-9, 1.0, 1e6] {
                for compressed_pages in [0.0, 1e-9, 1.0, 1e6, 1e13] {
                    let room = Room {
                        raw_pages,
                        compressed_pages,
                    };
                    for events in [
                        soonest.events(&tiers, room),
                        latest.events(&tiers, room),
                        lru(|pages| lru_hit_ratio(&tiers, pages), room),
                    ] {
                        let figures = [events.raw_hits, events.compressed_hits, events.hit_ratio()];
                        let good = figures.into_iter().all(|figure| (0.0..=1.0 + 1e-9).contains(&figure));
                        assert!(good, "{law} {pages} {room:?}: {events:?}");
                        assert!(
                            events.compressions.is_finite() && events.restorations.is_finite(),
                            "{law} {pages} {room:?}: {events:?}"
                        );
                    }
                }
            }
        }
    }
}
