//! Training: which strings become tokens.
//!
//! OnPair (Gargiulo and Venturini, 2025, arXiv 2508.02280) joins neighbouring tokens that occur together often. Here
//! this is done in rounds, as FSST does (Boncz, Neumann, Leis, VLDB 2020): each round cuts a sample by the tokens so
//! far, counts tokens and pairs of neighbours, and keeps those which cover the most bytes. The first rounds take a
//! small part of the sample, since their tokens are short and soon replaced. The result depends on the samples alone.

use std::cmp::Reverse;

use leafpress_base::mem::room::{collected, room_for};
use leafpress_base::mem::transient::Transient;

use super::code_lengths;
use super::matcher::Matcher;
use super::tokens::{Dictionary, Form, MAX_TOKEN_BYTES, SINGLES, Tokens, padded};
use crate::CodecError;

/// Rounds of a training; fewer under Miri, which takes a minute for all.
const ROUNDS: usize = if cfg!(miri) { 2 } else { 12 };
/// Bytes of the sample of the first rounds, and of the last ones, for each code that the form has.
const FIRST_BYTES_PER_CODE: usize = 16;
const LAST_BYTES_PER_CODE: usize = 256;
/// A sample is at most this long.
const MAX_SAMPLE_BYTES: usize = 8 << 20;
/// Slots of the table of pairs: at most for each code, and at most and at least of all. Pairs that do not fit it are
/// not counted.
const PAIRS_PER_CODE: usize = 64;
const MAX_PAIRS: usize = 2 << 20;
const MIN_PAIRS: usize = 1 << 12;
/// A token that occurs only once in a sample covers as much without one.
const MIN_COUNT: u32 = 2;

/// A string that may become a token.
#[derive(Clone, Copy)]
struct Candidate {
    entry: [u8; MAX_TOKEN_BYTES],
    length: u8,
    /// Bytes of the sample that it covers.
    covers: u64,
}

/// Trains tokens from records. Returns those whose serialised form has at most as many bytes as each of `sizes`, which
/// fall: the strings are the same ones, of which a smaller dictionary has those that cover the most. Sizes that are too
/// small for any are left out.
///
/// # Errors
/// [`CodecError::OutOfMemory`], and [`CodecError::Failed`] if the first size is too small.
pub(super) fn train(form: Form, records: &[&[u8]], sizes: &[usize]) -> Result<Vec<Vec<u8>>, CodecError> {
    let room = (1 << form.bits) - SINGLES;
    let codes = 1_usize << form.bits;
    let last = (codes * LAST_BYTES_PER_CODE).min(MAX_SAMPLE_BYTES);
    let all_bytes: usize = records.iter().map(|record| record.len()).sum();
    let mut tokens = Tokens::singles()?;
    let mut chosen: Vec<Candidate> = Vec::new();
    for round in 0..ROUNDS {
        let halvings = (ROUNDS - 2).saturating_sub(round) as u32;
        let bytes = (last >> halvings).max(last.min(codes * FIRST_BYTES_PER_CODE));
        // Of single bytes there are few distinct pairs, and longer tokens are few: there are fewer than one for eight
        // bytes of a sample. Three quarters of the slots are used.
        let slots = (bytes.min(all_bytes) / 6)
            .max(MIN_PAIRS)
            .next_power_of_two()
            .min(PAIRS_PER_CODE * codes)
            .min(MAX_PAIRS);
        let counts = Counts::of(&tokens, Sample::new(records, bytes, round), slots)?;
        chosen = counts.choose(&tokens, room)?;
        tokens = joined(&chosen)?;
    }
    // The strings that cover the least are left out until the rest fits.
    chosen.sort_unstable_by_key(|candidate| (Reverse(candidate.covers), candidate.entry, candidate.length));
    let mut dictionary = serialised(form, tokens, records, last)?;
    let mut trained: Vec<Vec<u8>> = room_for(sizes.len())?;
    for &max_bytes in sizes {
        while dictionary.len() > max_bytes {
            if chosen.is_empty() && trained.is_empty() {
                return Err(super::failed(format!(
                    "{max_bytes} bytes are too few for a dictionary, the least is {}",
                    dictionary.len()
                )));
            }
            if chosen.is_empty() {
                return Ok(trained);
            }
            let fits = (chosen.len() as u64 * max_bytes as u64 / dictionary.len() as u64) as usize;
            chosen.truncate(fits.min(chosen.len() - 1));
            dictionary = serialised(form, joined(&chosen)?, records, last)?;
        }
        trained.push(collected(dictionary.iter().copied())?);
    }
    Ok(trained)
}

/// Returns the serialised form of the dictionary of these tokens, with Huffman codes by a sample of the records if the
/// form has them.
fn serialised(form: Form, tokens: Tokens, records: &[&[u8]], sample_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let code_bits = match form.entropy {
        true => Some(code_bits(&tokens, records, sample_bytes)?),
        false => None,
    };
    let dictionary = Dictionary {
        form,
        code_bits,
        tokens,
    };
    dictionary.to_bytes()
}

/// Returns the single bytes and these strings as tokens.
fn joined(chosen: &[Candidate]) -> Result<Tokens, CodecError> {
    let mut all: Vec<Candidate> = room_for(SINGLES + chosen.len())?;
    all.extend_from_slice(chosen);
    all.extend((0..=u8::MAX).map(|byte| Candidate {
        entry: padded(&[byte]),
        length: 1,
        covers: 0,
    }));
    all.sort_unstable_by_key(|candidate| (candidate.entry, candidate.length));
    let mut tokens = Tokens::with_room(all.len())?;
    for candidate in all {
        tokens.push(&candidate.entry, candidate.length)?;
    }
    Ok(tokens)
}

/// Returns the lengths of Huffman codes by the frequencies of the tokens in the records.
fn code_bits(tokens: &Tokens, records: &[&[u8]], sample_bytes: usize) -> Result<Vec<u8>, CodecError> {
    let matcher = Matcher::new(tokens)?;
    let mut frequencies: Vec<u64> = room_for(tokens.len())?;
    // A token that does not occur in the sample may still occur, as an eighth of one that does once.
    frequencies.resize(tokens.len(), 1);
    for record in Sample::new(records, sample_bytes, 0) {
        matcher.parse(tokens, record, |codes| {
            for &code in codes {
                frequencies[usize::from(code)] += 8;
            }
            true
        });
    }
    code_lengths::lengths(&frequencies)
}

/// Records evenly spread over all of them.
struct Sample<'r> {
    records: std::iter::StepBy<std::iter::Skip<std::slice::Iter<'r, &'r [u8]>>>,
    left_bytes: usize,
}

impl<'r> Sample<'r> {
    /// Returns a sample of about this many bytes; other rounds begin at other records.
    fn new(records: &'r [&'r [u8]], bytes: usize, round: usize) -> Self {
        let all: usize = records.iter().map(|record| record.len()).sum();
        let step = (all / bytes.max(1)).max(1);
        Self {
            records: records.iter().skip(round % step).step_by(step),
            left_bytes: bytes,
        }
    }
}

impl<'r> Iterator for Sample<'r> {
    type Item = &'r [u8];

    fn next(&mut self) -> Option<&'r [u8]> {
        if self.left_bytes == 0 {
            return None;
        }
        let record = self.records.next()?;
        self.left_bytes = self.left_bytes.saturating_sub(record.len());
        Some(record)
    }
}

/// How often tokens and pairs of neighbours occur in a sample.
struct Counts {
    tokens: Vec<u32>,
    pairs: Vec<Pair>,
}

/// Two neighbours that occur together.
#[derive(Clone, Copy)]
struct Pair {
    first: u16,
    second: u16,
    /// 0 in an empty slot.
    count: u32,
}

impl Pair {
    /// Returns the pair in a slot of the table.
    fn of(slot: [u8; 8]) -> Self {
        let [a, b, c, d, count @ ..] = slot;
        Self {
            first: u16::from_le_bytes([a, b]),
            second: u16::from_le_bytes([c, d]),
            count: u32::from_le_bytes(count),
        }
    }

    /// Returns the slot.
    fn slot(&self) -> [u8; 8] {
        let ([a, b], [c, d], [e, f, g, h]) = (
            self.first.to_le_bytes(),
            self.second.to_le_bytes(),
            self.count.to_le_bytes(),
        );
        [a, b, c, d, e, f, g, h]
    }

    fn length(&self, tokens: &Tokens) -> usize {
        tokens.get(usize::from(self.first)).len() + tokens.get(usize::from(self.second)).len()
    }

    fn covers(&self, tokens: &Tokens) -> u64 {
        u64::from(self.count) * self.length(tokens) as u64
    }

    fn candidate(&self, tokens: &Tokens) -> Candidate {
        let (first, second) = (
            tokens.get(usize::from(self.first)),
            tokens.get(usize::from(self.second)),
        );
        let mut entry = padded(first);
        entry[first.len()..first.len() + second.len()].copy_from_slice(second);
        Candidate {
            entry,
            length: (first.len() + second.len()) as u8,
            covers: self.covers(tokens),
        }
    }
}

impl Counts {
    /// Counts in a sample; `slots`, a power of two, is the size of the table of pairs, which goes back to the system.
    fn of(tokens: &Tokens, sample: Sample<'_>, slots: usize) -> Result<Self, CodecError> {
        let matcher = Matcher::new(tokens)?;
        let mut counts: Vec<u32> = room_for(tokens.len())?;
        counts.resize(tokens.len(), 0);
        let bytes = slots * size_of::<u64>();
        let mut table = Transient::with_capacity(bytes).ok_or(CodecError::OutOfMemory { bytes })?;
        let table = &mut table.whole().as_chunks_mut().0[..slots];
        let mut free = slots - slots / 4;
        for record in sample {
            let mut before: Option<u16> = None;
            matcher.parse(tokens, record, |codes| {
                for &code in codes {
                    counts[usize::from(code)] = counts[usize::from(code)].saturating_add(1);
                    if let Some(first) = before {
                        count_pair(table, first, code, &mut free);
                    }
                    before = Some(code);
                }
                true
            });
        }
        let pairs = table.iter().map(|slot| Pair::of(*slot));
        let pairs = collected(pairs.filter(|pair| pair.count >= MIN_COUNT && pair.length(tokens) <= MAX_TOKEN_BYTES))?;
        Ok(Self { tokens: counts, pairs })
    }

    /// Returns the strings, at most `room`, that cover the most.
    ///
    /// An occurrence of a pair that becomes a token is none of its parts any more. So the parts are counted again
    /// without the pairs that a first choice takes.
    fn choose(mut self, tokens: &Tokens, room: usize) -> Result<Vec<Candidate>, CodecError> {
        let key = |pair: &Pair| (Reverse(pair.covers(tokens)), pair.first, pair.second);
        if self.pairs.len() > 2 * room {
            self.pairs.select_nth_unstable_by_key(2 * room, key);
            self.pairs.truncate(2 * room);
        }
        let least = self
            .best(tokens, room)?
            .iter()
            .map(|candidate| candidate.covers)
            .min()
            .unwrap_or(0);
        for pair in &self.pairs {
            if pair.covers(tokens) >= least {
                for part in [pair.first, pair.second] {
                    let count = &mut self.tokens[usize::from(part)];
                    *count = count.saturating_sub(pair.count);
                }
            }
        }
        self.best(tokens, room)
    }

    /// Returns the strings, at most `room`, that cover the most by these counts.
    fn best(&self, tokens: &Tokens, room: usize) -> Result<Vec<Candidate>, CodecError> {
        let mut all: Vec<Candidate> = room_for(tokens.len() + self.pairs.len())?;
        for (code, &count) in self.tokens.iter().enumerate() {
            let length = tokens.lengths()[code];
            if length > 1 && count > 0 {
                let covers = u64::from(count) * u64::from(length);
                all.push(Candidate {
                    entry: tokens.entries()[code],
                    length,
                    covers,
                });
            }
        }
        all.extend(self.pairs.iter().map(|pair| pair.candidate(tokens)));
        // The same string may be a token, or several pairs.
        all.sort_unstable_by_key(|candidate| (candidate.entry, candidate.length));
        all.dedup_by(|next, kept| {
            let same = next.entry == kept.entry && next.length == kept.length;
            if same {
                kept.covers += next.covers;
            }
            same
        });
        if all.len() > room {
            let key = |candidate: &Candidate| (Reverse(candidate.covers), candidate.entry, candidate.length);
            all.select_nth_unstable_by_key(room, key);
            all.truncate(room);
        }
        Ok(all)
    }
}

/// Counts a pair in a table with linear probing; `free` are the slots that may still be taken.
#[inline]
fn count_pair(table: &mut [[u8; 8]], first: u16, second: u16, free: &mut usize) {
    let mask = table.len() - 1;
    let key = u64::from(first) << 16 | u64::from(second);
    let mut at = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
    loop {
        let slot = &mut table[at & mask];
        let mut pair = Pair::of(*slot);
        if pair.count == 0 {
            if *free > 0 {
                *free -= 1;
                *slot = Pair {
                    first,
                    second,
                    count: 1,
                }
                .slot();
            }
            return;
        }
        if (pair.first, pair.second) == (first, second) {
            pair.count = pair.count.saturating_add(1);
            *slot = pair.slot();
            return;
        }
        at += 1;
    }
}
