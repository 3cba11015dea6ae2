//! Changes the entries of a log of runs, and makes up others.

use std::ops::Range;

use libfuzzer_sys::arbitrary::{Result, Unstructured};

pub const HEADER_BYTES: usize = 4096;
/// A length and a checksum.
const ENTRY_HEADER_BYTES: usize = 12;
/// Maximum number of copies of one entry; more would only be slow.
const MAX_COPIES: usize = 4000;
/// The fields of the log's header for the number of the first entry, and for the number of leaves before it.
const FIRST: Range<usize> = 68..76;
const LEAVES: Range<usize> = 92..100;

/// Returns the offsets of the entries, at least that of the first.
pub fn entries(log: &[u8]) -> Vec<usize> {
    let mut starts = vec![HEADER_BYTES];
    let mut at = HEADER_BYTES;
    while let Some(len) = log.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        at = at.saturating_add(ENTRY_HEADER_BYTES + u32::from_le_bytes(*len) as usize);
        if at >= log.len() {
            break;
        }
        starts.push(at);
    }
    starts
}

/// Adds, removes or repeats entries, and mostly marks all of them as committed.
pub fn change(u: &mut Unstructured<'_>, log: &mut Vec<u8>, notes: &mut [u8]) -> Result<()> {
    if log.len() <= HEADER_BYTES {
        return Ok(());
    }
    let starts = entries(log);
    let any = |u: &mut Unstructured<'_>| -> Result<Range<usize>> {
        let index = u.int_in_range(0..=starts.len() - 1)?;
        let end = starts.get(index + 1).copied().unwrap_or(log.len());
        Ok(starts[index]..end)
    };
    let (one, other) = (any(u)?, any(u)?.end);
    let with = match u.int_in_range(0..=3)? {
        0 => {
            log.drain(one);
            Vec::new()
        }
        1 => log[one].to_vec(),
        2 => log[one].repeat(u.int_in_range(2..=MAX_COPIES)?),
        _ => several(u)?,
    };
    let other = other.min(log.len());
    log.splice(other..other, with);
    if u.ratio(3, 4)? {
        let leaves = u64::from_le_bytes(log[LEAVES].try_into().unwrap_or_default());
        let count = (entries(log).len() as u64).saturating_sub(leaves) as u32;
        log[FIRST].fill(0);
        if let Some(committed) = notes.get_mut(HEADER_BYTES..HEADER_BYTES + 4) {
            committed.copy_from_slice(&(count << 8).to_le_bytes());
        }
    }
    Ok(())
}

/// Returns consecutive entries of one kind.
fn several(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let count = u.int_in_range(1..=90)?;
    let position = 1_u64 << u.int_in_range(0..=61)?;
    let chunk = u.int_in_range(0..=600)?;
    let (kind, epoch) = (u.int_in_range(1..=4)?, number(u)?);
    // This is mostly the first leaf, which always exists.
    let from: &[u8] = if u.ratio(1, 4)? { u.arbitrary()? } else { &[] };
    let (newest, blocks, records) = (
        u.int_in_range(0..=3_u32)?,
        u.int_in_range(0..=17_u32)?,
        u.int_in_range(0..=40_u32)?,
    );
    let key: [u8; 4] = u.arbitrary()?;
    let mut entries = Vec::new();
    for n in 0..count {
        let run = |number: u32| {
            let position = position + u64::from(2 * n + number) * 64;
            run(position, blocks, records, chunk + (2 * n + number) * blocks.div_ceil(8))
        };
        let mut payload = [kind, epoch, from.len() as u32].map(u32::to_le_bytes).concat();
        payload.extend(from);
        match kind {
            1 => {
                payload.extend([newest, 1].map(u32::to_le_bytes).concat());
                payload.extend(run(0));
            }
            2 => {
                let key = [&key[..], &n.to_be_bytes()].concat();
                payload.extend((key.len() as u32).to_le_bytes());
                payload.extend(key);
                for number in 0..2 {
                    payload.extend(1_u32.to_le_bytes());
                    payload.extend(run(number));
                }
            }
            3 => payload.extend(newest.to_le_bytes()),
            _ => payload.truncate(4),
        }
        entries.extend((payload.len() as u32).to_le_bytes());
        entries.extend([0; 8]);
        entries.extend(payload);
    }
    Ok(entries)
}

fn number(u: &mut Unstructured<'_>) -> Result<u32> {
    if u.arbitrary()? {
        u.int_in_range(0..=20)
    } else {
        u.arbitrary()
    }
}

/// Returns a run of pages of a block each, or of one of all blocks.
fn run(position: u64, blocks: u32, records: u32, chunk: u32) -> Vec<u8> {
    let list = |values: Vec<u32>| {
        let len = [values.len() as u32];
        len.into_iter()
            .chain(values)
            .flat_map(u32::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    let is_long = blocks > 8;
    let pages = if is_long { vec![0] } else { (0..blocks).collect() };
    let starts = if is_long { vec![0] } else { Vec::new() };
    let mut run = position.to_le_bytes().to_vec();
    run.extend([blocks, records].map(u32::to_le_bytes).concat());
    for values in [pages, starts, (chunk..chunk + blocks.div_ceil(8)).collect()] {
        run.extend(list(values));
    }
    // All records are in the first bucket.
    run.extend([records + 1, 1].map(u32::to_le_bytes).concat());
    run.extend(((1_u64 << records) - 1).to_le_bytes());
    run.extend(records.to_le_bytes());
    run.extend((0..records).map(|n| (n * 6) as u8));
    run
}
