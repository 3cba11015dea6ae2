//! `PFCOUNT` of compressed strings in transparent mode.

use super::access::{Done, read_string};
use crate::api::{Context, Failure, Key, Str};
use crate::store::value::Borrowed;

const REGISTERS: usize = 1 << 14;
const BITS_OF_REGISTER: usize = 6;
/// Bits of a hash that do not choose the register: a register is at most one more.
const BITS_OF_RANK: usize = 50;
/// The magic, the encoding, three unused bytes, and the count that was cached.
const HEADER: usize = 16;
const DENSE_BYTES: usize = HEADER + REGISTERS * BITS_OF_REGISTER / 8;
/// The constant of the estimate for infinitely many registers: 1 / (2 ln 2).
const ALPHA: f64 = 0.5 / std::f64::consts::LN_2;

const NOT_VALID: Failure = Failure::text("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPTED: Failure = Failure::text("INVALIDOBJ Corrupted HLL object detected");

/// `PFCOUNT key [key ...]`, if a key has a compressed string.
pub fn pfcount(context: Context, arguments: &[Str<'_>]) -> Done {
    let names = &arguments[1..];
    let is_compressed = |name: &Str<'_>| matches!(Key::look(context, *name).value(), Ok(Some(Borrowed::Text(_))));
    if !names.iter().any(is_compressed) {
        return Err(Failure::LeftToServer);
    }
    let mut registers = vec![0; REGISTERS];
    for name in names {
        let cached = read_string(&Key::read(context, *name), |bytes| read(bytes, &mut registers))?.transpose()?;
        if let (Some(Some(count)), [_]) = (cached, names) {
            context.integer(count);
            return Ok(());
        }
    }
    context.integer(estimate(&registers));
    Ok(())
}

/// Raises registers to those of a HyperLogLog; returns the count that is cached in it, if it is valid.
fn read(bytes: &[u8], registers: &mut [u8]) -> Result<Option<i64>, Failure> {
    let (header, body) = bytes.split_first_chunk::<HEADER>().ok_or(NOT_VALID)?;
    let [b'H', b'Y', b'L', b'L', encoding, _, _, _, cached @ ..] = *header else {
        return Err(NOT_VALID);
    };
    match encoding {
        0 if bytes.len() == DENSE_BYTES => raise_by_dense(body, registers),
        1 => raise_by_sparse(body, registers).ok_or(CORRUPTED)?,
        _ => return Err(NOT_VALID),
    }
    // The highest bit says that the registers have changed since.
    Ok(i64::try_from(u64::from_le_bytes(cached)).ok())
}

/// Registers are of six bits, the lowest ones first: four of them in three bytes.
fn raise_by_dense(body: &[u8], registers: &mut [u8]) {
    for (four, bytes) in registers.chunks_mut(4).zip(body.chunks(3)) {
        let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        for (at, register) in four.iter_mut().enumerate() {
            *register = (*register).max((bits >> (at * BITS_OF_REGISTER) & 0x3f) as u8);
        }
    }
}

/// Runs of equal registers, which together are all; `None` if they are not.
fn raise_by_sparse(body: &[u8], registers: &mut [u8]) -> Option<()> {
    let (mut rest, mut at) = (body, 0);
    while let [first, others @ ..] = rest {
        let low = usize::from(first & 0x3f);
        let (len, value);
        (len, value, rest) = match first >> 6 {
            0 => (low + 1, 0, others),
            1 => {
                let (second, others) = others.split_first()?;
                ((low << 8 | usize::from(*second)) + 1, 0, others)
            }
            _ => (usize::from(first & 3) + 1, (first >> 2 & 0x1f) + 1, others),
        };
        for register in registers.get_mut(at..at + len)? {
            *register = (*register).max(value);
        }
        at += len;
    }
    (at == REGISTERS).then_some(())
}

/// Returns how many different elements have probably led to these registers: the improved raw estimator of O. Ertl,
/// "New cardinality estimation algorithms for HyperLogLog sketches", 2017, which the servers use.
fn estimate(registers: &[u8]) -> i64 {
    let mut numbers = [0.0; 1 << BITS_OF_REGISTER];
    for register in registers {
        numbers[usize::from(*register) % numbers.len()] += 1.0;
    }
    let all = REGISTERS as f64;
    let full = all * tau((all - numbers[BITS_OF_RANK + 1]) / all);
    let ranks = numbers[1..=BITS_OF_RANK].iter().rev();
    let sum = ranks.fold(full, |sum, number| (sum + number) * 0.5) + all * sigma(numbers[0] / all);
    (ALPHA * all * all / sum).round() as i64
}

/// The share of registers that are zero, corrected for few elements.
fn sigma(share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut factor, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * factor;
        factor += factor;
        if sum == before {
            return sum;
        }
    }
}

/// The share of registers that are not at their greatest value, corrected for very many elements.
fn tau(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut factor, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        factor *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * factor;
        if sum == before {
            return sum / 3.0;
        }
    }
}
