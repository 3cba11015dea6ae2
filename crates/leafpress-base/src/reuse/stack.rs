//! Keys in the order of last requests: the stack of which an LRU cache of any size holds the top (Mattson, Gecsei,
//! Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 1970).

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::mem::OutOfMemory;
use crate::mem::room::room_for;
use crate::random::mix;

/// Hashes a number by mixing it: a trace is not an attack.
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberHasher(u64);

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

/// A map whose keys are numbers.
pub type NumberMap<V> = HashMap<u64, V, BuildHasherDefault<NumberHasher>>;

/// Keys in the order of their last requests. Each has `N` weights; of each the stack has sums.
///
/// A key's last request is a mark at its time, as heavy as the key. What lies above a key is the sum of the marks
/// behind its own, which a Fenwick tree has (Bennett, Kruskal, "LRU stack processing", IBM J. R&D 1975; Fenwick, "A new
/// data structure for cumulative frequency tables", 1994). When the times run out, marks are moved together, so memory
/// goes by distinct keys and not by requests.
#[derive(Debug, Clone)]
pub struct Stack<const N: usize> {
    keys: NumberMap<Requested<N>>,
    marks: Fenwick<N>,
    total: [u64; N],
    now: usize,
    /// The keys by the times of their last requests, while marks are moved together.
    moved: Vec<(usize, u64)>,
}

#[derive(Debug, Clone)]
struct Requested<const N: usize> {
    last: usize,
    requests: u64,
    weights: [u64; N],
}

/// Initial capacity, in times.
const FIRST_CAPACITY: usize = 1 << 12;

impl<const N: usize> Default for Stack<N> {
    fn default() -> Self {
        Self {
            keys: NumberMap::default(),
            marks: Fenwick::new(FIRST_CAPACITY),
            total: [0; N],
            now: 0,
            moved: Vec::new(),
        }
    }
}

impl<const N: usize> Stack<N> {
    /// Returns a stack that allocates nothing as long as it has at most `keys` keys.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn with_room(keys: usize) -> Result<Self, OutOfMemory> {
        let mut map = NumberMap::default();
        // A map that is at most half full reuses the room of removed keys, and does not grow.
        let bytes = 2 * keys * size_of::<(u64, Requested<N>)>();
        map.try_reserve(2 * keys).map_err(|_| OutOfMemory { bytes })?;
        let mut sums = room_for(2 * keys + 1)?;
        sums.resize(2 * keys + 1, [0; N]);
        Ok(Self {
            keys: map,
            marks: Fenwick { sums },
            total: [0; N],
            now: 0,
            moved: room_for(keys)?,
        })
    }

    /// Returns the memory held, in bytes.
    pub fn held_bytes(&self) -> usize {
        // One control byte for each slot.
        self.keys.capacity() * (size_of::<(u64, Requested<N>)>() + 1)
            + self.marks.sums.capacity() * size_of::<[u64; N]>()
            + self.moved.capacity() * size_of::<(usize, u64)>()
    }

    /// Moves a key to the top. If it was present, returns its stack distance: the key, and everything requested since.
    /// Otherwise it gets its weights from `weigh`.
    pub fn access(&mut self, key: u64, weigh: impl FnOnce() -> [u64; N]) -> Option<[u64; N]> {
        if self.now == self.marks.len() {
            self.move_together();
        }
        let now = self.now;
        self.now += 1;
        if let Some(requested) = self.keys.get_mut(&key) {
            requested.requests += 1;
            let before = std::mem::replace(&mut requested.last, now);
            // Up to and with the key's own mark.
            let below = self.marks.sum(before);
            let needed = std::array::from_fn(|n| self.total[n] - below[n] + requested.weights[n]);
            self.marks.sub(before, &requested.weights);
            self.marks.add(now, &requested.weights);
            return Some(needed);
        }
        let weights = weigh();
        for (total, weight) in self.total.iter_mut().zip(weights) {
            *total += weight;
        }
        self.marks.add(now, &weights);
        let requested = Requested {
            last: now,
            requests: 1,
            weights,
        };
        self.keys.insert(key, requested);
        None
    }

    /// Changes the weights of a key, if it is present.
    pub fn reweigh(&mut self, key: u64, weights: [u64; N]) {
        if let Some(requested) = self.keys.get_mut(&key)
            && requested.weights != weights
        {
            let before = std::mem::replace(&mut requested.weights, weights);
            self.marks.add(requested.last, &weights);
            self.marks.sub(requested.last, &before);
            for ((total, weight), before) in self.total.iter_mut().zip(weights).zip(before) {
                *total = *total + weight - before;
            }
        }
    }

    /// Returns whether a key is present.
    pub fn has(&self, key: u64) -> bool {
        self.keys.contains_key(&key)
    }

    /// Removes a key, as if it had never been requested.
    pub fn remove(&mut self, key: u64) {
        if let Some(requested) = self.keys.remove(&key) {
            self.marks.sub(requested.last, &requested.weights);
            for (total, weight) in self.total.iter_mut().zip(requested.weights) {
                *total -= weight;
            }
        }
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the sums of the weights of all keys.
    pub fn total(&self) -> &[u64; N] {
        &self.total
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the number of requests of each key, unordered.
    pub fn requests(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.values().map(|requested| requested.requests)
    }

    fn move_together(&mut self) {
        let mut moved = std::mem::take(&mut self.moved);
        moved.clear();
        moved.extend(self.keys.iter().map(|(key, requested)| (requested.last, *key)));
        moved.sort_unstable();
        self.marks.reset((2 * moved.len()).max(self.marks.len()));
        for (now, (_, key)) in moved.iter().enumerate() {
            if let Some(requested) = self.keys.get_mut(key) {
                requested.last = now;
                self.marks.add(now, &requested.weights);
            }
        }
        self.now = moved.len();
        self.moved = moved;
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

    /// Sets `len` numbers to 0.
    fn reset(&mut self, len: usize) {
        self.sums.clear();
        self.sums.resize(len + 1, [0; N]);
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
