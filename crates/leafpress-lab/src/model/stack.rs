//! Keys in the order of last requests: the stack of which an LRU cache of any size holds the top (Mattson, Gecsei,
//! Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::core::keys::mix;

/// Hashes a number by mixing it: a trace is not an attack.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl std::hash::Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = mix(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(number);
    }
}

pub(crate) type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// Things in the order of their last requests. Each has `N` weights, which do not change; of each the stack has sums.
///
/// A thing's last request is a mark at its time, as heavy as the thing. What lies above a thing is the sum of the marks
/// behind its own, which a Fenwick tree has (Bennett, Kruskal, "LRU stack processing", IBM J. R&D 1975; Fenwick, "A new
/// data structure for cumulative frequency tables", 1994). When the times run out, marks are moved together, so memory
/// goes by distinct things and not by requests.
#[derive(Debug, Clone)]
pub(crate) struct Stack<const N: usize> {
    things: NumberMap<Thing<N>>,
    marks: Fenwick<N>,
    total: [u64; N],
    now: usize,
}

#[derive(Debug, Clone)]
struct Thing<const N: usize> {
    last: usize,
    requests: u64,
    weights: [u64; N],
}

/// Times there are room for at first.
const FIRST_TIMES: usize = 1 << 12;

impl<const N: usize> Stack<N> {
    pub(crate) fn new() -> Self {
        Self {
            things: NumberMap::default(),
            marks: Fenwick::new(FIRST_TIMES),
            total: [0; N],
            now: 0,
        }
    }

    /// Moves a key to the top. If it was present, returns its stack distance: the key, and everything requested since.
    pub(crate) fn access(&mut self, thing: u64, weigh: impl FnOnce() -> [u64; N]) -> Option<[u64; N]> {
        if self.now == self.marks.len() {
            self.move_together();
        }
        let now = self.now;
        self.now += 1;
        if let Some(thing) = self.things.get_mut(&thing) {
            thing.requests += 1;
            let before = std::mem::replace(&mut thing.last, now);
            // Up to and with the thing's own mark.
            let below = self.marks.sum(before);
            let needed = std::array::from_fn(|n| self.total[n] - below[n] + thing.weights[n]);
            self.marks.sub(before, &thing.weights);
            self.marks.add(now, &thing.weights);
            return Some(needed);
        }
        let weights = weigh();
        for (total, weight) in self.total.iter_mut().zip(weights) {
            *total += weight;
        }
        self.marks.add(now, &weights);
        let new = Thing {
            last: now,
            requests: 1,
            weights,
        };
        self.things.insert(thing, new);
        None
    }

    /// Removes a key, as if it had never been requested.
    #[cfg(feature = "cache")]
    pub(crate) fn remove(&mut self, thing: u64) {
        if let Some(thing) = self.things.remove(&thing) {
            self.marks.sub(thing.last, &thing.weights);
            for (total, weight) in self.total.iter_mut().zip(thing.weights) {
                *total -= weight;
            }
        }
    }

    /// Number of things.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// Request counts of the keys, unordered.
    pub(crate) fn requests(&self) -> impl Iterator<Item = u64> + '_ {
        self.things.values().map(|thing| thing.requests)
    }

    fn move_together(&mut self) {
        let mut things: Vec<&mut Thing<N>> = self.things.values_mut().collect();
        things.sort_unstable_by_key(|thing| thing.last);
        self.marks = Fenwick::new((2 * things.len()).max(FIRST_TIMES));
        for (now, thing) in things.into_iter().enumerate() {
            thing.last = now;
            self.marks.add(now, &thing.weights);
        }
        self.now = self.things.len();
    }
}

/// Numbers whose sums from the first on are wanted while they change.
#[derive(Debug, Clone)]
struct Fenwick<const N: usize> {
    /// At i the sum of the `i & -i` numbers up to the i-th, counted from 1.
    sums: Vec<[u64; N]>,
}

impl<const N: usize> Fenwick<N> {
    fn new(len: usize) -> Self {
        Self {
            sums: vec![[0; N]; len + 1],
        }
    }

    fn len(&self) -> usize {
        self.sums.len() - 1
    }

    fn change(&mut self, at: usize, change: impl Fn(usize, &mut u64)) {
        let mut at = at + 1;
        while at < self.sums.len() {
            for (n, sum) in self.sums[at].iter_mut().enumerate() {
                change(n, sum);
            }
            at += at & at.wrapping_neg();
        }
    }

    fn add(&mut self, at: usize, numbers: &[u64; N]) {
        self.change(at, |n, sum| *sum += numbers[n]);
    }

    fn sub(&mut self, at: usize, numbers: &[u64; N]) {
        self.change(at, |n, sum| *sum -= numbers[n]);
    }

    /// The sum of the numbers up to `at`, with it.
    fn sum(&self, at: usize) -> [u64; N] {
        let (mut at, mut sums) = (at + 1, [0; N]);
        while at > 0 {
            for (sum, part) in sums.iter_mut().zip(self.sums[at]) {
                *sum += part;
            }
            at &= at - 1;
        }
        sums
    }
}
