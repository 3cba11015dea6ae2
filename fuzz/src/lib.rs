//! The shared parts of the fuzz targets: operations and the model of the tree's tests, made from a fuzzer's bytes.

#![allow(dead_code)] // The tests use more of these modules than the targets do.

#[path = "../../crates/leafpress/tests/support/config.rs"]
pub mod config;
pub mod crash_case;
mod crash_log;
#[path = "../../crates/leafpress/tests/support/damage.rs"]
pub mod damage;
pub mod disk_case;
#[path = "../../crates/leafpress/tests/support/hostile.rs"]
pub mod hostile;
#[path = "../../crates/leafpress/tests/support/keys.rs"]
pub mod keys;
#[path = "../../crates/leafpress/tests/support/leaf.rs"]
pub mod leaf;
pub mod leaf_case;
#[path = "../../crates/leafpress/tests/support/leaf_reader.rs"]
pub mod leaf_reader;
#[path = "../../crates/leafpress/tests/support/model.rs"]
pub mod model;
pub mod peak;
#[path = "../../crates/leafpress/tests/support/values.rs"]
pub mod values;

use std::ops::Bound;

use leafpress::{Codec, Layout};
use libfuzzer_sys::arbitrary::{Result, Unstructured};

use config::{Config, Dict};
use hostile::{Fault, Options, Plan, Step};
use keys::KeyShape;
use model::Op;
use values::{Fill, Value};

/// Maximum number of operations in one input; more would only be slow.
const MAX_OPS: usize = 120;

/// Returns a configuration of compiled-in codecs without background threads, so that an input always does the same.
pub fn config(u: &mut Unstructured<'_>) -> Result<(Codec, KeyShape, Config)> {
    let codecs = [
        Codec::None,
        Codec::Lz4 { acceleration: 1 },
        Codec::Zstd { level: 1 },
        Codec::Deflate { level: 1 },
    ];
    let layouts = [
        (Layout::Ordered, None),
        (Layout::Ordered, Some(1)),
        (Layout::Ordered, Some(256)),
        (Layout::Ordered, Some(1024)),
        (Layout::Hashed { sub_pages: 1 }, None),
        (Layout::Hashed { sub_pages: 4 }, None),
        (Layout::Hashed { sub_pages: 16 }, None),
    ];
    let (layout, frame_bytes) = *u.choose(&layouts)?;
    let (shards, by_range) = *u.choose(&[(1, false), (4, false), (4, true)])?;
    let config = Config {
        layout,
        frame_bytes,
        leaf_bytes: *u.choose(&[1024, 4096])?,
        landing_bytes: *u.choose(&[0, 64, 512, 4096])?,
        shards,
        by_range,
        dictionary: *u.choose(&[Dict::Off, Dict::Given])?,
        background_threads: 0,
        load_threads: 1,
        by_caller: u.arbitrary()?,
    };
    Ok((*u.choose(&codecs)?, *u.choose(&KeyShape::ALL)?, config))
}

/// Operations until the bytes are used up.
pub fn ops(u: &mut Unstructured<'_>) -> Result<Vec<Op>> {
    let mut ops = Vec::new();
    while !u.is_empty() && ops.len() < MAX_OPS {
        ops.push(op(u)?);
    }
    Ok(ops)
}

fn op(u: &mut Unstructured<'_>) -> Result<Op> {
    Ok(match u.int_in_range(0..=23)? {
        0 | 1 => Op::Put(number(u)?, value(u)?),
        2 => Op::InsertIfAbsent(number(u)?, value(u)?),
        3 => Op::UpdateIfPresent(number(u)?, value(u)?),
        4 => Op::Get(number(u)?),
        5 => Op::GetInto(number(u)?),
        6 => Op::GetWith(number(u)?),
        7 => Op::ContainsKey(number(u)?),
        8 => Op::Remove(number(u)?),
        9 => Op::PutRun(number(u)?, u.int_in_range(1..=40)?, value(u)?),
        10 => Op::RemoveRun(number(u)?, u.int_in_range(1..=80)?),
        11 | 12 => Op::Range(bound(u)?, bound(u)?, u.arbitrary()?),
        13 => Op::FullScan,
        14 => Op::Compact,
        15 => Op::Clear,
        16 => Op::GetMany(number(u)?, u.int_in_range(0..=20)?, u.arbitrary()?),
        17 => Op::Extend {
            n: number(u)?,
            count: u.arbitrary()?,
            apart: u.arbitrary()?,
            sorted: u.arbitrary()?,
            value: value(u)?,
        },
        18 => Op::RemoveRange(bound(u)?, bound(u)?, u.int_in_range(0..=60)?),
        19 => Op::Upkeep(u.int_in_range(1..=20)?),
        20 => Op::Swap(number(u)?, value(u)?),
        21 => Op::CompareAndSwap {
            n: number(u)?,
            is_expected: u.arbitrary()?,
            new: if u.arbitrary()? { Some(value(u)?) } else { None },
        },
        22 => Op::UpdateWith(number(u)?, value(u)?),
        _ => Op::Validate,
    })
}

fn number(u: &mut Unstructured<'_>) -> Result<u16> {
    // Most operations use a few keys, so that they meet.
    if u.ratio(1, 8)? {
        u.int_in_range(0..=2000)
    } else {
        Ok(u.arbitrary::<u8>()?.into())
    }
}

fn value(u: &mut Unstructured<'_>) -> Result<Value> {
    let len = match u.int_in_range(0..=7u8)? {
        0 => 0,
        1..=3 => 100,
        4 | 5 => u.arbitrary::<u8>()?.into(),
        6 => u.int_in_range(2040..=2060)?,
        _ => u.int_in_range(0..=9000)?,
    };
    let fill = *u.choose(&[Fill::Text, Fill::Same, Fill::Noise])?;
    Ok(Value {
        len,
        fill,
        seed: u.arbitrary::<u8>()?.into(),
    })
}

fn bound(u: &mut Unstructured<'_>) -> Result<Bound<u16>> {
    Ok(match u.int_in_range(0..=2)? {
        0 => Bound::Included(number(u)?),
        1 => Bound::Excluded(number(u)?),
        _ => Bound::Unbounded,
    })
}

/// What is in a frame, and how it is written to.
pub fn hostile_options(u: &mut Unstructured<'_>) -> Result<Options> {
    let layouts = [
        Layout::Ordered,
        Layout::Hashed { sub_pages: 1 },
        Layout::Hashed { sub_pages: 4 },
    ];
    Ok(Options {
        layout: *u.choose(&layouts)?,
        frame_bytes: *u.choose(&[256, 1024, 1])?,
        keyed: u.arbitrary()?,
        landing_bytes: *u.choose(&[0, 512, 4096])?,
        shape: *u.choose(&KeyShape::ALL)?,
        has_temperatures: u.arbitrary()?,
    })
}

/// Operations under faults, until the bytes are used up.
pub fn hostile_steps(u: &mut Unstructured<'_>) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    while !u.is_empty() && steps.len() < MAX_OPS {
        steps.push(hostile_step(u)?);
    }
    Ok(steps)
}

fn hostile_step(u: &mut Unstructured<'_>) -> Result<Step> {
    Ok(match u.int_in_range(0..=15)? {
        0..=2 => Step::Put {
            first: number(u)?,
            count: u.int_in_range(1..=60)?,
            len: hostile_len(u)?,
        },
        3 => Step::Insert(number(u)?, hostile_len(u)?),
        4 => Step::Update(number(u)?, hostile_len(u)?),
        5 => Step::Remove {
            first: number(u)?,
            count: u.int_in_range(1..=60)?,
        },
        6 => Step::Get(number(u)?),
        7 => Step::Contains(number(u)?),
        8 | 9 => Step::Scan {
            from: number(u)?,
            back: u.arbitrary()?,
        },
        10 => Step::Compact,
        11 => Step::Validate,
        12 => Step::Stats,
        13 => Step::Settle,
        14 => Step::Plan(Some(plan(u)?)),
        _ => Step::Plan(None),
    })
}

fn hostile_len(u: &mut Unstructured<'_>) -> Result<u16> {
    Ok(match u.int_in_range(0..=7)? {
        0 => u.int_in_range(2040..=2060)?,
        1 | 2 => u.arbitrary::<u8>()?.into(),
        _ => 40,
    })
}

fn plan(u: &mut Unstructured<'_>) -> Result<Plan> {
    let at = |u: &mut Unstructured<'_>| u.int_in_range(0..=1200u16);
    let bytes = |u: &mut Unstructured<'_>| {
        let len = u.int_in_range(1..=40)?;
        u.bytes(len.min(u.len())).map(<[u8]>::to_vec)
    };
    let fault = match u.int_in_range(0..=5)? {
        0 => Fault::Flip(at(u)?, u.arbitrary()?),
        1 => Fault::Splice(at(u)?, bytes(u)?),
        2 => Fault::BeforeValues(bytes(u)?),
        3 => Fault::Other(at(u)?),
        4 => Fault::Length(u.arbitrary()?),
        _ => Fault::Refused,
    };
    Ok(Plan {
        fault,
        after: u.int_in_range(0..=7)?,
        one_in: u.int_in_range(1..=4)?,
    })
}
