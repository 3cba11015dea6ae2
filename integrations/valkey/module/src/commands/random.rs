//! The twin of `HRANDFIELD`.

use std::ops::Bound;

use leafpress::Record;

use super::access::{Done, map_of};
use crate::api::output::Output;
use crate::api::{Context, Failure, Key, Str};
use crate::store::map::Map;
use crate::store::number::integer;

/// Maps of at most this many fields are read once if more fields are drawn than they have.
const WHOLE: u64 = 512;
/// Random fields that are drawn in one pass; also the maximum for a pass over all fields.
const PASS: usize = 1024;
const LONG_PASS: u64 = 64 << 10;
/// Fields that a pass over all visits in the time of one draw.
const FIELDS_PER_DRAW: u64 = 32;
/// Approximate maximum of the bytes of a reply of random fields. The native command has no such bound: there, a client
/// without an output limit can exhaust the server's memory.
const MAX_REPLIED: u64 = 256 << 20;
/// The overhead of a field or value in a reply, in bytes.
const REPLY_OVERHEAD: u64 = 16;
/// Up to this part of a map's fields are drawn individually, without a visit of the others.
const FEW: u64 = 16;

/// `LP.HRANDFIELD key [count [WITHVALUES]]`
pub fn hrandfield(context: Context, arguments: &[Str<'_>]) -> Done {
    let [_, name, options @ ..] = arguments else {
        return Err(Failure::Arity);
    };
    let (count, has_values) = match options {
        [] => (None, false),
        [count, rest @ ..] => {
            let count = count_of(*count)?;
            let has_values = match rest {
                [] => false,
                [with] if with.bytes().eq_ignore_ascii_case(b"WITHVALUES") => true,
                _ => return Err(Failure::SYNTAX),
            };
            // Each record is two replies.
            if has_values && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
                return Err(Failure::OUT_OF_RANGE);
            }
            (Some(count), has_values)
        }
    };
    let key = Key::read(context, *name);
    let Some(map) = map_of(&key)? else {
        match count {
            Some(_) => context.array(0),
            None => context.null(),
        }
        return Ok(());
    };
    let Some(count) = count else {
        match random(map, 1)?.first() {
            Some((field, _)) => context.bytes(field),
            None => context.null(),
        }
        return Ok(());
    };
    let record_bytes = map.user_bytes() / map.len().max(1) + REPLY_OVERHEAD;
    if count < 0 && count.unsigned_abs().saturating_mul(record_bytes) > MAX_REPLIED {
        return Err(Failure::text(
            "ERR value is out of range: the reply would be longer than 256 MiB",
        ));
    }
    let reply = Reply {
        context,
        has_values,
        nested: has_values && context.is_resp3(),
    };
    match count {
        0.. => reply.different(map, count.unsigned_abs()),
        _ => reply.any(map, count.unsigned_abs()),
    }
}

fn count_of(count: Str<'_>) -> Result<i64, Failure> {
    match integer(count.bytes()).ok_or(Failure::NOT_INTEGER)? {
        i64::MIN => Err(Failure::text(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        )),
        count => Ok(count),
    }
}

const NOTHING_DRAWN: Failure = Failure::text("ERR no record could be drawn");

/// The form of a reply with random fields.
struct Reply {
    context: Context,
    has_values: bool,
    nested: bool,
}

impl Reply {
    fn begin(&self, records: u64) {
        let replies = if self.has_values && !self.nested { 2 } else { 1 };
        self.context
            .array(usize::try_from(records).unwrap_or(usize::MAX).saturating_mul(replies));
    }

    fn record(&self, field: &[u8], value: &[u8]) {
        if self.nested {
            self.context.array(2);
        }
        self.context.bytes(field);
        if self.has_values {
            self.context.bytes(value);
        }
    }

    /// Replies with different fields, in a random order unless all are requested.
    fn different(&self, map: &Map, count: u64) -> Done {
        if count >= map.len() {
            self.begin(map.len());
            let mut output = Output::new(self.context);
            map.visit((Bound::Unbounded, Bound::Unbounded), usize::MAX, |field, value| {
                self.record(field, value);
                output.add(field.len() + value.len());
                !output.is_closing()
            })?;
            return Ok(());
        }
        let mut records = match count <= map.len() / FEW {
            true => different(map, count)?,
            false => at(map, &distinct(map.len(), count))?,
        };
        fastrand::shuffle(&mut records);
        self.begin(count);
        let mut output = Output::new(self.context);
        for (field, value) in &records {
            if output.is_closing() {
                break;
            }
            self.record(field, value);
            output.add(field.len() + value.len());
        }
        Ok(())
    }

    /// Replies with random fields, with repetitions.
    fn any(&self, map: &Map, count: u64) -> Done {
        // Steps that can fail precede the reply's length.
        let whole = match map.len() <= WHOLE.min(count) {
            true => Some(at(map, &(0..map.len()).collect::<Vec<_>>())?),
            false => None,
        };
        self.begin(count);
        let mut output = Output::new(self.context);
        let mut left = count;
        while left > 0 && !output.is_closing() {
            let (wanted, drawn) = match &whole {
                Some(all) => {
                    let wanted = left.min(PASS as u64);
                    let drawn = (0..wanted).filter_map(|_| fastrand::choice(all).cloned());
                    (wanted, Ok(drawn.collect()))
                }
                None => {
                    let wanted = match is_walk_shorter(map, left) {
                        true => left.min(LONG_PASS.max(map.len() / FEW)),
                        false => left.min(PASS as u64),
                    };
                    (wanted, random(map, wanted))
                }
            };
            // An error takes the place of an unreadable record.
            let records: Vec<Record> = drawn.unwrap_or_default();
            for (field, value) in &records {
                self.record(field, value);
                output.add(field.len() + if self.has_values { value.len() } else { 0 });
            }
            for _ in records.len() as u64..wanted {
                self.failure(&NOTHING_DRAWN);
            }
            left -= wanted;
        }
        Ok(())
    }

    /// Replies with a failure instead of a record.
    fn failure(&self, failure: &Failure) {
        self.context.failure(failure);
        if self.has_values && !self.nested {
            self.context.failure(failure);
        }
    }
}

/// Returns `count` different numbers below `len`, ascending.
fn distinct(len: u64, count: u64) -> Vec<u64> {
    let mut chosen = std::collections::BTreeSet::new();
    // Floyd's algorithm: one step per number.
    for bound in len - count..len {
        if !chosen.insert(fastrand::u64(..=bound)) {
            chosen.insert(bound);
        }
    }
    chosen.into_iter().collect()
}

/// Returns whether a walk over a map takes less time than to draw this many records.
fn is_walk_shorter(map: &Map, draws: u64) -> bool {
    map.len() / FIELDS_PER_DRAW < draws
}

/// Returns `count` random records, with repetitions.
fn random(map: &Map, count: u64) -> Result<Vec<Record>, Failure> {
    if is_walk_shorter(map, count) {
        return by_number(map, count);
    }
    let mut records = Vec::new();
    while (records.len() as u64) < count {
        let missing = usize::try_from(count - records.len() as u64).unwrap_or(PASS).min(PASS);
        let drawn = map.sample(missing, fastrand::u64(..))?;
        if drawn.is_empty() {
            return Err(NOTHING_DRAWN);
        }
        records.extend(drawn);
    }
    Ok(records)
}

/// Returns `count` random records, with repetitions, by a walk over all.
fn by_number(map: &Map, count: u64) -> Result<Vec<Record>, Failure> {
    let mut numbers: Vec<u64> = (0..count).map(|_| fastrand::u64(..map.len())).collect();
    numbers.sort_unstable();
    let mut records = at(map, &numbers)?;
    fastrand::shuffle(&mut records);
    Ok(records)
}

/// Returns `count` different records of a map that has many more.
fn different(map: &Map, count: u64) -> Result<Vec<Record>, Failure> {
    let mut records = std::collections::BTreeMap::new();
    while (records.len() as u64) < count {
        records.extend(random(map, (count - records.len() as u64).min(PASS as u64))?);
    }
    Ok(records.into_iter().collect())
}

/// The records with these numbers in order of fields; the numbers ascend, and one may be there more than once.
fn at(map: &Map, chosen: &[u64]) -> Result<Vec<Record>, Failure> {
    let Some(last) = chosen.last() else {
        return Ok(Vec::new());
    };
    let limit = usize::try_from(*last).unwrap_or(usize::MAX).saturating_add(1);
    let mut wanted = chosen.iter().copied().peekable();
    let mut records = Vec::new();
    let mut index = 0;
    map.visit((Bound::Unbounded, Bound::Unbounded), limit, |field, value| {
        while wanted.next_if_eq(&index).is_some() {
            records.push((field.to_vec(), value.to_vec()));
        }
        index += 1;
        true
    })?;
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_numbers_are_as_many_and_below() {
        for (len, count) in [(1, 1), (10, 0), (10, 3), (10, 10), (1000, 999)] {
            let chosen = distinct(len, count);
            assert_eq!(chosen.len() as u64, count);
            assert!(chosen.is_sorted_by(|a, b| a < b));
            assert!(chosen.iter().all(|number| *number < len));
        }
    }
}
