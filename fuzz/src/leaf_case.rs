//! Records, changes and damage for a leaf, made from a fuzzer's bytes.

use leafpress::{Codec, Layout};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use crate::damage::Damage;
use crate::keys::KeyShape;
use crate::leaf::{Case, Coder, Keys, Round, Run};
use crate::values::{Fill, Value};

/// Maximum number of parts of each kind in one input; more would only be slow.
const MAX_PARTS: usize = 6;
/// Maximum number of frames that are damaged.
const MAX_DAMAGES: usize = 12;

pub fn case(u: &mut Unstructured<'_>) -> Result<Case> {
    let layouts = [
        (Layout::Ordered, 1),
        (Layout::Ordered, 64),
        (Layout::Ordered, 256),
        (Layout::Ordered, 1024),
        (Layout::Hashed { sub_pages: 1 }, 1024),
        (Layout::Hashed { sub_pages: 4 }, 1024),
        (Layout::Hashed { sub_pages: 64 }, 1024),
    ];
    let coders = [
        Coder::Numbers,
        Coder::Codec(Codec::None),
        Coder::Codec(Codec::Lz4 { acceleration: 1 }),
        Coder::Codec(Codec::Zstd { level: 1 }),
        Coder::Codec(Codec::Deflate { level: 1 }),
        Coder::Codec(Codec::OnPair { bits: 12 }),
    ];
    let (layout, frame_bytes) = *u.choose(&layouts)?;
    // As many records as a leaf may have take a while.
    let most = if u.ratio(1, 64)? { 4200 } else { 160 };
    Ok(Case {
        layout,
        frame_bytes,
        leaf_bytes: *u.choose(&[1024, 8192, 32 << 10])?,
        coder: *u.choose(&coders)?,
        dictionary: u.arbitrary()?,
        keyed: u.arbitrary()?,
        keys: keys(u)?,
        runs: some(u, MAX_PARTS, |u| run(u, most))?,
        others: some(u, MAX_PARTS, |u| Ok((free_key(u)?, value(u)?)))?,
        rounds: some(u, 3, round)?,
        probes: some(u, MAX_PARTS, free_key)?,
        damages: some(u, MAX_DAMAGES, |u| Ok((u.arbitrary::<u8>()?.into(), damage(u)?)))?,
    })
}

fn some<T>(
    u: &mut Unstructured<'_>,
    most: usize,
    mut one: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.int_in_range(0..=most)?;
    (0..count).map(|_| one(u)).collect()
}

fn bytes(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<u8>> {
    let len = u.int_in_range(0..=most)?;
    u.bytes(len.min(u.len())).map(<[u8]>::to_vec)
}

fn keys(u: &mut Unstructured<'_>) -> Result<Keys> {
    if u.arbitrary()? {
        return Ok(Keys::Shape(*u.choose(&KeyShape::ALL)?));
    }
    let prefix = if u.ratio(1, 8)? {
        vec![u.arbitrary()?; u.int_in_range(0..=1016)?]
    } else {
        bytes(u, 4)?
    };
    Ok(Keys::Numbers {
        prefix,
        bytes: u.int_in_range(0..=8)?,
        base: u.arbitrary()?,
        step: u.int_in_range(1..=3)? << u.int_in_range(0..=63)?,
    })
}

fn run(u: &mut Unstructured<'_>, most: u16) -> Result<Run> {
    Ok(Run {
        first: if u.ratio(1, 8)? {
            u.arbitrary()?
        } else {
            u.arbitrary::<u8>()?.into()
        },
        count: u.int_in_range(1..=most)?,
        value: value(u)?,
        longer: match u.int_in_range(0..=3)? {
            0 | 1 => 0,
            2 => u.int_in_range(1..=20)?,
            _ => u.int_in_range(20..=600)?,
        },
    })
}

fn round(u: &mut Unstructured<'_>) -> Result<Round> {
    Ok(Round {
        puts: some(u, 3, |u| run(u, 20))?,
        removes: some(u, 3, |u| run(u, 40))?,
        anew: u.arbitrary()?,
    })
}

fn value(u: &mut Unstructured<'_>) -> Result<Value> {
    let len = match u.int_in_range(0..=7u8)? {
        0 => 0,
        1 => 40,
        2 | 3 => u.int_in_range(1..=8)?,
        4..=6 => u.arbitrary::<u8>()?.into(),
        _ => u.int_in_range(2040..=2060)?,
    };
    let fill = *u.choose(&[Fill::Text, Fill::Same, Fill::Noise])?;
    let seed = u.arbitrary::<u8>()?.into();
    Ok(Value { len, fill, seed })
}

/// Returns a key that is often a prefix of another, or next to one.
fn free_key(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let len = u.int_in_range(0..=12)?;
    let byte = |u: &mut Unstructured<'_>| match u.int_in_range(0..=4)? {
        0 | 1 => Ok(0),
        2 => Ok(b'a'),
        3 => Ok(0xff),
        _ => u.arbitrary(),
    };
    (0..len).map(|_| byte(u)).collect()
}

fn damage(u: &mut Unstructured<'_>) -> Result<Damage> {
    // A frame's keys are at its front.
    let place = if u.ratio(3, 4)? {
        u.int_in_range(0..=40)?
    } else {
        u.arbitrary()?
    };
    Ok(match u.int_in_range(0..=4)? {
        0 => Damage::Flip(place, u.arbitrary()?),
        1 => Damage::Splice(place, bytes(u, 40)?),
        2 => Damage::Cut(place),
        3 => Damage::Extend(bytes(u, 40)?),
        _ => Damage::Refuse,
    })
}
