//! The longest token at a position of a record.
//!
//! A token of fewer than seven bytes is found by its bytes in a table in which each token has a slot of its own. So a
//! look-up has no branch, those of all lengths are made at once, and the longest that hits is selected. The first seven
//! bytes of longer tokens are in the table as well. Tokens that share them are neighbours in the ascending order: a
//! binary search finds the last one that is not greater than the text, and the longest match is that token or one of
//! its prefixes, to which links lead.
//!
//! What bounds the speed is then the latency from one token to the next. So where tokens are short, two parts of a
//! record are cut in turns. A cut depends on nothing before it: where the first part arrives at a cut of the second
//! one, all further cuts are those of the second part.

use std::cmp::Reverse;
use std::hint::select_unpredictable;

use leafpress_base::mem::room::room_for;
use rapidhash::v3::rapidhash_v3;

use super::tokens::{MAX_TOKEN_BYTES, SINGLES, Tokens};
use crate::CodecError;

/// Bytes of the longest keys of the table.
const MAX_KEY_BYTES: usize = 7;
/// Bytes of text that are cut at a time.
const WINDOW: usize = 256;
/// A window, the longest token that begins in its last byte, and what is read from there on.
const PADDED: usize = WINDOW + 2 * MAX_TOKEN_BYTES;
/// Tokens of a window after which it is decided whether the rest is cut as two parts, and their mean length up to
/// which it is: with long tokens the cuts of two parts meet late.
const FIRST_TOKENS: usize = 4;
const MAX_MEAN_BYTES: usize = 4;
/// The rest is cut as one part if it has fewer bytes.
const MIN_PARTS_BYTES: usize = 48;
/// Multipliers that are tried for a bucket.
const MULTIPLIERS: u64 = 1 << 12;
/// Slots of the largest table.
const MAX_SLOTS: usize = 1 << 17;

/// Finds the longest token of [`Tokens`] at a position, for at most three quarters as many keys as slots.
pub(super) struct Sized<const SLOTS: usize, const BUCKETS: usize> {
    /// For each bucket of keys a multiplier that gives each of them a slot of its own.
    multipliers: Box<[u64; BUCKETS]>,
    /// The key in each slot; 0 in an empty one.
    keys: Box<[u64; SLOTS]>,
    /// The token of the key in each slot, then those of a single byte. Of a key of seven bytes the first token that
    /// begins with them.
    codes: Vec<u16>,
    /// For the first token that begins with seven bytes, the number of those that do.
    group_sizes: Vec<u16>,
    /// For each token the longest other token that is a prefix of it; itself for a single byte.
    prefixes: Vec<u16>,
}

/// Defines a matcher with the smallest table of these numbers of slots and buckets that has room for its keys.
macro_rules! matcher {
    ($($name:ident: $slots:expr, $buckets:expr;)*) => {
        /// A matcher with the smallest table that has room for its keys. With numbers that are constants, no look-up
        /// needs a check of its bounds.
        pub(super) enum Matcher {
            $($name(Sized<{ $slots }, { $buckets }>),)*
        }

        impl Matcher {
            pub(super) fn new(tokens: &Tokens) -> Result<Self, CodecError> {
                $(if let Some(sized) = Sized::new(tokens)? {
                    return Ok(Self::$name(sized));
                })*
                Err(super::failed("there are more tokens than codes"))
            }

            /// Returns the memory that it holds, without the tokens.
            pub(super) fn held_bytes(&self) -> usize {
                match self {
                    $(Self::$name(sized) => sized.held_bytes(),)*
                }
            }

            /// Cuts the beginning of `text`. Returns the number of tokens and their bytes.
            fn cut(&self, tokens: &Tokens, text: &[u8], codes: &mut [u16; WINDOW]) -> (usize, usize) {
                match self {
                    $(Self::$name(sized) => sized.cut(tokens, text, codes),)*
                }
            }
        }
    };
}

matcher! {
    K4: 1 << 12, 1 << 10;
    K8: 1 << 13, 1 << 10;
    K16: 1 << 14, 1 << 11;
    K32: 1 << 15, 1 << 12;
    K64: 1 << 16, 1 << 13;
    K128: MAX_SLOTS, 1 << 14;
}

/// A key, and its code.
type Entry = (u64, u16);

/// Returns the key of the first `length` bytes of a text, two to seven: a one and these bytes.
#[inline(always)]
fn key_of(eight: u64, length: usize) -> u64 {
    (eight >> 8 | 1 << 56) >> (8 * (MAX_KEY_BYTES - length))
}

/// Returns the last of `count` items from `first` on whose key is not greater than `key`; `first` if there is none.
#[inline(always)]
fn last_not_above<K: PartialOrd>(first: usize, mut count: usize, key: K, key_of: impl Fn(usize) -> K) -> usize {
    let mut at = first;
    while count > 1 {
        let half = count / 2;
        at = select_unpredictable(key_of(at + half) <= key, at + half, at);
        count -= half;
    }
    at
}

fn boxed<T: Copy, const N: usize>(value: T) -> Result<Box<[T; N]>, CodecError> {
    let mut values = room_for(N)?;
    values.resize(N, value);
    values
        .into_boxed_slice()
        .try_into()
        .map_err(|_| super::failed("a table has another length"))
}

impl Matcher {
    /// Cuts `text` into tokens, each the longest one at its position, and passes their codes to `each`, some at a
    /// time, until it returns false. Returns whether it never did.
    #[inline(always)]
    pub(super) fn parse(&self, tokens: &Tokens, text: &[u8], mut each: impl FnMut(&[u16]) -> bool) -> bool {
        let mut codes = [0; WINDOW];
        let mut rest = text;
        while !rest.is_empty() {
            let (count, length) = self.cut(tokens, rest, &mut codes);
            if !each(&codes[..count]) {
                return false;
            }
            rest = &rest[length..];
        }
        true
    }
}

impl<const SLOTS: usize, const BUCKETS: usize> Sized<SLOTS, BUCKETS> {
    /// Returns the tables, or `None` if they are too small.
    fn new(tokens: &Tokens) -> Result<Option<Self>, CodecError> {
        let count = tokens.len();
        let mut singles = [0; SINGLES];
        let mut keys: Vec<(usize, Entry)> = room_for(count)?;
        let mut group_sizes: Vec<u16> = room_for(count)?;
        group_sizes.resize(count, 0);
        let mut prefixes = room_for(count)?;
        // The tokens that are prefixes of the current one, the longest last.
        let mut stack: Vec<u16> = room_for(MAX_TOKEN_BYTES + 1)?;
        for (code, entry) in (0..=u16::MAX).zip(&tokens.entries()[..count]) {
            let token = tokens.get(usize::from(code));
            while stack
                .pop_if(|&mut prefix| !token.starts_with(tokens.get(usize::from(prefix))))
                .is_some()
            {}
            prefixes.push(stack.last().copied().unwrap_or(code));
            stack.push(code);
            if token.len() == 1 {
                singles[usize::from(entry[0])] = code;
                continue;
            }
            let eight = first_eight(entry);
            let length = token.len().min(MAX_KEY_BYTES);
            let key = key_of(eight, length);
            match keys.last() {
                Some(&(_, (last, first))) if last == key => group_sizes[usize::from(first)] += 1,
                _ => {
                    keys.push((Self::bucket_of(eight, length), (key, code)));
                    group_sizes[usize::from(code)] = 1;
                }
            }
        }
        if keys.len() > SLOTS / 4 * 3 {
            return Ok(None);
        }
        keys.sort_unstable();
        let mut codes = room_for(SLOTS + SINGLES)?;
        codes.resize(SLOTS, 0);
        codes.extend_from_slice(&singles);
        let mut matcher = Self {
            multipliers: boxed(0)?,
            keys: boxed(0)?,
            codes,
            group_sizes,
            prefixes,
        };
        let mut buckets: Vec<&[(usize, Entry)]> = room_for(keys.len().min(BUCKETS))?;
        buckets.extend(keys.chunk_by(|one, other| one.0 == other.0));
        // Large buckets find slots while most are free.
        buckets.sort_by_key(|bucket| Reverse(bucket.len()));
        Ok(buckets.iter().all(|bucket| matcher.place(bucket)).then_some(matcher))
    }

    /// Gives each key of a bucket a slot of its own. Returns false if no multiplier does, except in the largest table:
    /// there some keys are left out, so that shorter tokens are found instead. Only thousands of keys that begin with
    /// the same bytes come to that.
    fn place(&mut self, bucket: &[(usize, Entry)]) -> bool {
        for seed in 1..=MULTIPLIERS {
            let multiplier = rapidhash_v3(&seed.to_le_bytes()) | 1;
            let is_last = SLOTS == MAX_SLOTS && seed == MULTIPLIERS;
            let placed = bucket.iter().position(|&(_, (key, code))| {
                let slot = Self::slot_of(key, multiplier);
                let is_taken = self.keys[slot] != 0;
                if !is_taken {
                    (self.keys[slot], self.codes[slot]) = (key, code);
                }
                is_taken && !is_last
            });
            let Some(placed) = placed else {
                self.multipliers[bucket[0].0] = multiplier;
                return true;
            };
            for &(_, (key, _)) in &bucket[..placed] {
                self.keys[Self::slot_of(key, multiplier)] = 0;
            }
        }
        false
    }

    /// Returns the bucket of the key of the first `length` bytes: keys of four bytes and more that begin with the same
    /// four share one, and shorter ones that begin with the same two.
    #[inline(always)]
    fn bucket_of(eight: u64, length: usize) -> usize {
        let shared = if length < 4 { eight >> 48 } else { eight >> 32 };
        (shared.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BUCKETS.ilog2())) as usize % BUCKETS
    }

    /// Returns the only slot in which a key may be, by its bucket's multiplier.
    #[inline(always)]
    fn slot_of(key: u64, multiplier: u64) -> usize {
        (key.wrapping_mul(multiplier) >> (64 - SLOTS.ilog2())) as usize % SLOTS
    }

    fn held_bytes(&self) -> usize {
        size_of_val(&*self.multipliers)
            + size_of_val(&*self.keys)
            + (self.codes.capacity() + self.group_sizes.capacity() + self.prefixes.capacity()) * size_of::<u16>()
    }

    /// Returns the longest token that is a prefix of the first `left` bytes of `next`, and its length.
    #[inline(always)]
    fn longest(&self, tokens: &Tokens, next: &[u8; MAX_TOKEN_BYTES], left: usize) -> (u16, usize) {
        let eight = first_eight(next);
        let (of_two, of_four) = (
            self.multipliers[Self::bucket_of(eight, 2)],
            self.multipliers[Self::bucket_of(eight, 4)],
        );
        let key = key_of(eight, MAX_KEY_BYTES);
        let slot = Self::slot_of(key, of_four);
        if self.keys[slot] == key {
            return self.longest_of_group(tokens, slot, next, left);
        }
        let (mut length, mut slot) = (1, SLOTS + (eight >> 56) as usize);
        for more in 2..MAX_KEY_BYTES {
            let key = key_of(eight, more);
            let at = Self::slot_of(key, if more < 4 { of_two } else { of_four });
            let hits = self.keys[at] == key;
            length = select_unpredictable(hits, more, length);
            slot = select_unpredictable(hits, at, slot);
        }
        if length > left {
            return self.longest_of_last(eight, left);
        }
        (self.codes[slot], length)
    }

    /// Returns the longest token that is a prefix of the first `left` bytes of `next`, of which the first seven are
    /// the key in a slot.
    #[inline(never)]
    fn longest_of_group(
        &self,
        tokens: &Tokens,
        slot: usize,
        next: &[u8; MAX_TOKEN_BYTES],
        left: usize,
    ) -> (u16, usize) {
        let key = u128::from_be_bytes(*next);
        let first = usize::from(self.codes[slot]);
        let entry = |at: usize| u128::from_be_bytes(tokens.entries()[at]);
        let at = last_not_above(first, usize::from(self.group_sizes[first]), key, entry);
        let common = ((entry(at) ^ key).leading_zeros() / 8) as usize;
        let mut code = at as u16;
        loop {
            let length = usize::from(tokens.lengths()[usize::from(code)]);
            if length <= common.min(left) || length == 1 {
                return (code, length);
            }
            code = self.prefixes[usize::from(code)];
        }
    }

    /// Returns the longest token that is a prefix of the first `left` bytes, fewer than seven, where the zeros behind
    /// them are a token's.
    #[cold]
    fn longest_of_last(&self, eight: u64, left: usize) -> (u16, usize) {
        for length in (2..=left).rev() {
            let key = key_of(eight, length);
            let slot = Self::slot_of(key, self.multipliers[Self::bucket_of(eight, length)]);
            if self.keys[slot] == key {
                return (self.codes[slot], length);
            }
        }
        (self.codes[SLOTS + (eight >> 56) as usize], 1)
    }

    /// Cuts the beginning of `text`. Returns the number of tokens and their bytes.
    #[inline(never)]
    fn cut(&self, tokens: &Tokens, text: &[u8], codes: &mut [u16; WINDOW]) -> (usize, usize) {
        // No token that begins in the window is longer than this text.
        let end = text.len().min(WINDOW + MAX_TOKEN_BYTES);
        let until = text.len().min(WINDOW);
        let mut window = [0; PADDED];
        window[..end].copy_from_slice(&text[..end]);
        let longest = |at: usize| {
            let next = window[at..].first_chunk().unwrap_or(&[0; MAX_TOKEN_BYTES]);
            self.longest(tokens, next, end - at)
        };
        let (mut at, mut count) = (0, 0);
        while count < FIRST_TOKENS && at < until {
            let (code, length) = longest(at);
            codes[count] = code;
            (at, count) = (at + length, count + 1);
        }
        if at <= FIRST_TOKENS * MAX_MEAN_BYTES && until - at.min(until) >= MIN_PARTS_BYTES {
            let middle = at.midpoint(until);
            let (mut second, mut second_count) = (middle, 0);
            let mut second_codes = [0; WINDOW / 2 + 1];
            let mut second_cuts = [0; WINDOW / 2 + 1];
            while at < middle && second < until {
                let (code, length) = longest(at);
                let (second_code, second_length) = longest(second);
                codes[count] = code;
                second_codes[second_count] = second_code;
                second_cuts[second_count] = second as u8;
                (at, count) = (at + length, count + 1);
                (second, second_count) = (second + second_length, second_count + 1);
            }
            let mut joint = 0;
            loop {
                while joint < second_count && usize::from(second_cuts[joint]) < at {
                    joint += 1;
                }
                if joint == second_count {
                    break;
                }
                if usize::from(second_cuts[joint]) == at {
                    let more = second_count - joint;
                    codes[count..count + more].copy_from_slice(&second_codes[joint..second_count]);
                    (at, count) = (second, count + more);
                    break;
                }
                let (code, length) = longest(at);
                codes[count] = code;
                (at, count) = (at + length, count + 1);
            }
        }
        while at < until {
            let (code, length) = longest(at);
            codes[count] = code;
            (at, count) = (at + length, count + 1);
        }
        (count, at)
    }
}

/// Returns the first eight bytes, which compare as they do.
#[inline(always)]
fn first_eight(bytes: &[u8; MAX_TOKEN_BYTES]) -> u64 {
    let [eight @ .., _, _, _, _, _, _, _, _] = *bytes;
    u64::from_be_bytes(eight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::onpair::tokens::padded;

    /// Tokens of few letters, so that many are prefixes of others.
    fn tokens(rng: &mut fastrand::Rng, count: usize) -> Tokens {
        let mut strings: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        while strings.len() < count {
            let length = rng.usize(2..=MAX_TOKEN_BYTES);
            let string = match strings.get(rng.usize(..strings.len())) {
                Some(start) if rng.bool() && start.len() < length => start.clone(),
                _ => Vec::new(),
            };
            let letters = std::iter::repeat_with(|| rng.u8(..3) * 97);
            strings.push(string.iter().copied().chain(letters).take(length).collect());
        }
        strings.sort();
        strings.dedup();
        let mut tokens = Tokens::with_room(strings.len()).unwrap();
        for string in strings {
            tokens.push(&padded(&string), string.len() as u8).unwrap();
        }
        tokens
    }

    /// Returns the token that is the longest at the beginning of a text, by a search of all.
    fn longest(tokens: &Tokens, text: &[u8]) -> usize {
        (0..tokens.len())
            .filter(|&token| text.starts_with(tokens.get(token)))
            .max_by_key(|&token| tokens.get(token).len())
            .unwrap()
    }

    fn check(matcher: &Matcher, tokens: &Tokens, text: &[u8]) {
        let mut rest = text;
        let is_whole = matcher.parse(tokens, text, |codes| {
            for &code in codes {
                let expected = longest(tokens, rest);
                assert_eq!(usize::from(code), expected, "{rest:?}");
                rest = &rest[tokens.get(expected).len()..];
            }
            true
        });
        assert!(is_whole && rest.is_empty());
    }

    #[test]
    fn each_token_is_the_longest() {
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..if cfg!(miri) { 2 } else { 200 } {
            let count = SINGLES + rng.usize(..1 << (round % 12));
            let tokens = tokens(&mut rng, count);
            let matcher = Matcher::new(&tokens).unwrap();
            let length = rng.usize(..if cfg!(miri) { 100 } else { 600 });
            let text: Vec<u8> = std::iter::repeat_with(|| rng.u8(..3) * 97).take(length).collect();
            check(&matcher, &tokens, &text);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes too long")]
    fn texts_of_all_lengths_are_cut() {
        let mut rng = fastrand::Rng::with_seed(2);
        let tokens = tokens(&mut rng, SINGLES + 500);
        let matcher = Matcher::new(&tokens).unwrap();
        let text: Vec<u8> = std::iter::repeat_with(|| rng.u8(..3) * 97).take(600).collect();
        for length in 0..=text.len() {
            check(&matcher, &tokens, &text[..length]);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes too long")]
    fn single_bytes_suffice() {
        let tokens = Tokens::singles().unwrap();
        let matcher = Matcher::new(&tokens).unwrap();
        let text: Vec<u8> = (0..=u8::MAX).chain(0..100).collect();
        check(&matcher, &tokens, &text);
    }

    /// The second part begins within each token of the first, and all of its tokens end where none of the first does.
    #[test]
    fn parts_never_meet() {
        let mut tokens = Tokens::with_room(SINGLES + 1).unwrap();
        for byte in 0..=u8::MAX {
            tokens.push(&padded(&[byte]), 1).unwrap();
            if byte == b'a' {
                tokens.push(&padded(b"aaa"), 3).unwrap();
            }
        }
        let matcher = Matcher::new(&tokens).unwrap();
        for length in (0..600).step_by(if cfg!(miri) { 199 } else { 1 }) {
            check(&matcher, &tokens, &vec![b'a'; length]);
        }
    }

    /// Returns the single bytes and tokens of seven bytes, of which the first four are the same.
    fn tokens_alike(count: usize) -> Tokens {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut strings: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        strings.extend((0..count).map(|_| [b"same", &rng.u32(..).to_be_bytes()[..3]].concat()));
        strings.sort();
        strings.dedup();
        let mut tokens = Tokens::with_room(strings.len()).unwrap();
        for string in &strings {
            tokens.push(&padded(string), string.len() as u8).unwrap();
        }
        tokens
    }

    /// Each of them gets a slot, but only in a larger table.
    #[test]
    #[cfg_attr(miri, ignore = "it takes too long")]
    fn many_tokens_begin_alike() {
        let tokens = tokens_alike(1000);
        let matcher = Matcher::new(&tokens).unwrap();
        let text: Vec<u8> = (300..340).flat_map(|code| tokens.get(code).to_vec()).collect();
        check(&matcher, &tokens, &text);
    }

    #[test]
    #[cfg_attr(miri, ignore = "it takes too long")]
    fn tokens_without_a_slot_are_left_out() {
        let tokens = tokens_alike(20_000);
        let matcher = Matcher::new(&tokens).unwrap();
        let text: Vec<u8> = (300..19_000).flat_map(|code| tokens.get(code).to_vec()).collect();
        let (mut rest, mut count) = (&text[..], 0);
        assert!(matcher.parse(&tokens, &text, |codes| {
            count += codes.len();
            codes.iter().all(|&code| {
                rest.split_off(..tokens.get(usize::from(code)).len()) == Some(tokens.get(usize::from(code)))
            })
        }));
        assert!(rest.is_empty() && (19_000..text.len()).contains(&count));
    }
}
