//! The longest token at a position of a record.
//!
//! Tokens of eight bytes or more that share their first eight bytes are neighbours in the ascending order. A hash table
//! finds them, and a binary search the last one that is not greater than the text. The longest match is that token or
//! one of the tokens that are its prefixes, to which links lead. Where there is no such group, the same is done for the
//! tokens of four to seven bytes that share their first four; then tables of the tokens of three and of two bytes
//! answer, and last the single byte.

use std::hint::select_unpredictable;

use leafpress_base::mem::room::{TryGrow, room_for};

use super::tokens::{MAX_TOKEN_BYTES, SINGLES, Tokens};
use crate::CodecError;

/// A slot of a hash table with linear probing.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// What tells keys of the same hash apart: the key, or of longer ones a part of the hash.
    tag: u32,
    /// The first of the key's tokens, or the only one; of groups by four bytes its position in `mids`.
    first: u16,
    /// Number of tokens; 0 in an empty slot.
    count: u16,
}

/// A hash table whose length is a power of two, and which has empty slots.
struct Slots(Vec<Slot>);

/// Finds the longest token of [`Tokens`] at a position.
pub(super) struct Matcher {
    /// Groups of tokens of at least eight bytes, by the first eight.
    by_eight: Slots,
    /// Groups of tokens of four to seven bytes, by the first four.
    by_four: Slots,
    /// The tokens of four to seven bytes: their first eight bytes, padded, in big-endian order, and their codes.
    mids: Vec<(u64, u16)>,
    threes: Slots,
    twos: Slots,
    singles: [u16; SINGLES],
    /// For each token the longest other token that is a prefix of it; itself for a single byte.
    prefixes: Vec<u16>,
}

/// Returns a key's hash and its tag.
#[inline(always)]
fn hash_of_eight(key: u64) -> (usize, u32) {
    let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // The high bits depend on all bits of the key.
    ((mixed >> 44) as usize, (mixed >> 32) as u32)
}

#[inline(always)]
fn hash_of_four(key: u32) -> (usize, u32) {
    ((u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize, key)
}

impl Slots {
    /// Returns the table of entries, each a hash and a slot that is not empty.
    fn new(entries: &[(usize, Slot)]) -> Result<Self, CodecError> {
        let count = (2 * entries.len() + 1).next_power_of_two();
        let mut slots = room_for(count)?;
        slots.resize(count, Slot::default());
        for &(hash, slot) in entries {
            let mut at = hash;
            while slots[at & (count - 1)].count > 0 {
                at += 1;
            }
            slots[at & (count - 1)] = slot;
        }
        Ok(Self(slots))
    }

    #[inline(always)]
    fn get(&self, (hash, tag): (usize, u32)) -> Option<Slot> {
        let mask = self.0.len() - 1;
        let mut at = hash;
        loop {
            let slot = *self.0.get(at & mask)?;
            if slot.count == 0 {
                return None;
            }
            if slot.tag == tag {
                return Some(slot);
            }
            at += 1;
        }
    }

    fn held_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Slot>()
    }
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

impl Matcher {
    pub(super) fn new(tokens: &Tokens) -> Result<Self, CodecError> {
        let count = tokens.len();
        let (mut eights, mut fours, mut threes, mut twos) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut mids: Vec<(u64, u16)> = Vec::new();
        let mut singles = [0; SINGLES];
        let mut prefixes = room_for(count)?;
        // The tokens that are prefixes of the current one, the longest last.
        let mut stack: Vec<u16> = room_for(MAX_TOKEN_BYTES + 1)?;
        let (mut last_eight, mut last_four) = (None, None);
        for (code, entry) in (0..=u16::MAX).zip(&tokens.entries()[..count]) {
            let token = tokens.get(usize::from(code));
            while stack
                .pop_if(|&mut prefix| !token.starts_with(tokens.get(usize::from(prefix))))
                .is_some()
            {}
            prefixes.push(stack.last().copied().unwrap_or(code));
            stack.push(code);
            let key = (u128::from_be_bytes(*entry) >> 64) as u64;
            let four = (key >> 32) as u32;
            let slot = |(hash, tag), first| (hash, Slot { tag, first, count: 1 });
            match token.len() {
                1 => singles[usize::from(entry[0])] = code,
                2 => twos.try_push(slot(hash_of_four(four >> 16), code))?,
                3 => threes.try_push(slot(hash_of_four(four >> 8), code))?,
                4..8 => {
                    add(
                        &mut fours,
                        last_four.replace(four) == Some(four),
                        slot(hash_of_four(four), mids.len() as u16),
                    )?;
                    mids.try_push((key, code))?;
                }
                _ => add(
                    &mut eights,
                    last_eight.replace(key) == Some(key),
                    slot(hash_of_eight(key), code),
                )?,
            }
        }
        Ok(Self {
            by_eight: Slots::new(&eights)?,
            by_four: Slots::new(&fours)?,
            mids,
            threes: Slots::new(&threes)?,
            twos: Slots::new(&twos)?,
            singles,
            prefixes,
        })
    }

    /// Returns the memory that it holds, without the tokens.
    pub(super) fn held_bytes(&self) -> usize {
        let tables = [&self.by_eight, &self.by_four, &self.threes, &self.twos];
        tables.map(Slots::held_bytes).iter().sum::<usize>()
            + self.mids.capacity() * size_of::<(u64, u16)>()
            + self.prefixes.capacity() * size_of::<u16>()
    }

    /// Returns the longest token that is a prefix of the `left` bytes of text in `key`, and its length. `key` is the
    /// next sixteen bytes in big-endian order, with zeros behind the text's end.
    #[inline(always)]
    fn longest(&self, tokens: &Tokens, key: u128, left: usize) -> (u16, usize) {
        let eight = (key >> 64) as u64;
        if let Some(group) = self.by_eight.get(hash_of_eight(eight)) {
            let entry = |at: usize| u128::from_be_bytes(tokens.entries()[at]);
            let at = last_not_above(usize::from(group.first), usize::from(group.count), key, entry);
            let common = ((entry(at) ^ key).leading_zeros() / 8) as usize;
            // Another key may have the same tag.
            if common >= 8 {
                return self.prefix_within(tokens, at as u16, common.min(left));
            }
        }
        let four = (key >> 96) as u32;
        if let Some(group) = self.by_four.get(hash_of_four(four)) {
            let (first, count) = (usize::from(group.first), usize::from(group.count));
            let (found, code) = self.mids[last_not_above(first, count, eight, |at| self.mids[at].0)];
            let common = ((found ^ eight).leading_zeros() / 8) as usize;
            return self.prefix_within(tokens, code, common.min(left));
        }
        if left >= 3
            && let Some(three) = self.threes.get(hash_of_four(four >> 8))
        {
            return (three.first, 3);
        }
        if left >= 2
            && let Some(two) = self.twos.get(hash_of_four(four >> 16))
        {
            return (two.first, 2);
        }
        (self.singles[(key >> 120) as usize], 1)
    }

    /// Returns the longest of a token and those that are its prefixes which has at most `most` bytes, at least one.
    #[inline(always)]
    fn prefix_within(&self, tokens: &Tokens, mut code: u16, most: usize) -> (u16, usize) {
        loop {
            let length = usize::from(tokens.lengths()[usize::from(code)]);
            if length <= most || length == 1 {
                return (code, length);
            }
            code = self.prefixes[usize::from(code)];
        }
    }

    /// Cuts `text` into tokens, each the longest one at its position, and passes their codes to `each`, until it
    /// returns false. Returns whether it never did.
    #[inline(always)]
    pub(super) fn parse(&self, tokens: &Tokens, text: &[u8], mut each: impl FnMut(u16) -> bool) -> bool {
        let mut rest = text;
        while let Some(next) = rest.first_chunk::<MAX_TOKEN_BYTES>() {
            let (code, length) = self.longest(tokens, u128::from_be_bytes(*next), MAX_TOKEN_BYTES);
            if !each(code) {
                return false;
            }
            rest = &rest[length..];
        }
        let mut next = [0; MAX_TOKEN_BYTES];
        next[..rest.len()].copy_from_slice(rest);
        let (mut key, mut left) = (u128::from_be_bytes(next), rest.len());
        while left > 0 {
            let (code, length) = self.longest(tokens, key, left);
            if !each(code) {
                return false;
            }
            // The shift is below 128, since fewer than sixteen bytes are left.
            key <<= 8 * length;
            left -= length;
        }
        true
    }
}

/// Appends a group of one token, or counts the token to the last group.
fn add(groups: &mut Vec<(usize, Slot)>, is_of_last: bool, group: (usize, Slot)) -> Result<(), CodecError> {
    match groups.last_mut() {
        Some((_, last)) if is_of_last => last.count += 1,
        _ => groups.try_push(group)?,
    }
    Ok(())
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

    #[test]
    fn each_token_is_the_longest() {
        let mut rng = fastrand::Rng::with_seed(1);
        for round in 0..if cfg!(miri) { 2 } else { 200 } {
            let count = SINGLES + rng.usize(..1 << (round % 12));
            let tokens = tokens(&mut rng, count);
            let matcher = Matcher::new(&tokens).unwrap();
            let length = rng.usize(..200);
            let text: Vec<u8> = std::iter::repeat_with(|| rng.u8(..3) * 97).take(length).collect();
            let mut at = 0;
            let is_whole = matcher.parse(&tokens, &text, |code| {
                let longest = (0..tokens.len())
                    .filter(|&token| text[at..].starts_with(tokens.get(token)))
                    .max_by_key(|&token| tokens.get(token).len());
                let found = tokens.get(usize::from(code));
                assert_eq!(Some(found), longest.map(|token| tokens.get(token)), "{:?}", &text[at..]);
                at += tokens.get(usize::from(code)).len();
                true
            });
            assert!(is_whole && at == text.len());
        }
    }
}
