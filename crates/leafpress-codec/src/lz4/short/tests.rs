//! Tests of the encoder alone, without liblz4, so that Miri can run them.

use super::*;

/// Decodes a block whose tail was cut off.
fn decoded(block: &[u8], history: &[u8], raw_len: usize) -> Vec<u8> {
    let mut bytes = history.to_vec();
    let mut block = block.to_vec();
    block.extend([0; TAIL_BYTES]);
    let mut rest = block.iter().copied();
    let mut next = || rest.next().map(usize::from).expect("a truncated block");
    loop {
        let token = next();
        let length = |nibble: usize, next: &mut dyn FnMut() -> usize| {
            let mut length = nibble;
            let mut more = nibble == 15;
            while more {
                let byte = next();
                length += byte;
                more = byte == 255;
            }
            length
        };
        for _ in 0..length(token >> 4, &mut next) {
            bytes.push(next() as u8);
        }
        if bytes.len() == history.len() + raw_len + TAIL_BYTES {
            bytes.truncate(history.len() + raw_len);
            return bytes.split_off(history.len());
        }
        let offset = next() + 256 * next();
        for _ in 0..MATCH_BIAS + length(token & 15, &mut next) {
            bytes.push(bytes[bytes.len() - offset]);
        }
    }
}

/// Returns bytes with repetitions.
fn sample(len: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = Vec::new();
    while bytes.len() < len {
        let from = random.usize(..=bytes.len());
        let to = bytes.len().min(from + random.usize(..50));
        bytes.extend_from_within(from..to);
        for _ in 0..random.usize(1..10) {
            bytes.push(random.u8(b'a'..b'e'));
        }
    }
    bytes.truncate(len);
    bytes
}

#[test]
fn blocks_hold_their_records() {
    // A full run takes a minute under Miri.
    let (histories, lens) = if cfg!(miri) {
        (vec![39, 40, 300], vec![0, 1, 12, 13, 29, 60, 100, 256, 257])
    } else {
        let lens = (0..30).chain([100, 255, 256, 257, 300, 511, 512]);
        (vec![0, 39, 40, 41, 100, 700, 1500], lens.collect())
    };
    for (seed, history) in histories.into_iter().enumerate() {
        let bytes = sample(history, seed as u64);
        let table = ShortTable::new(&bytes);
        assert_eq!(table.is_some(), history >= 40);
        let Some(table) = table else { continue };
        let history = History::new(&bytes, &table).expect("the table is of these bytes");
        let mut shrunk = 0;
        for &len in &lens {
            let mut raw = sample(len / 2, seed as u64 + 7);
            raw.extend(&bytes[bytes.len() - (len - len / 2).min(bytes.len())..]);
            let mut out = vec![0; raw.len() + ROOM_BYTES];
            let mut room = Room::of(&mut out);
            assert!(encode(&raw, history, &mut room), "there is room");
            let (written, block) = (room.len(), room.block().to_vec());
            assert!(written <= raw.len());
            let back = if written == raw.len() {
                block
            } else {
                shrunk += 1;
                decoded(&block, &bytes, raw.len())
            };
            assert_eq!(back, raw);
            out.pop();
            assert!(!encode(&raw, history, &mut Room::of(&mut out)));
        }
        assert!(shrunk >= lens.len() / 6, "{shrunk} of {}", lens.len());
    }
}

#[test]
fn a_table_of_other_bytes_is_refused() {
    let bytes = sample(100, 1);
    let table = ShortTable::new(&bytes).expect("the dictionary is long enough");
    assert!(History::new(&bytes[1..], &table).is_none());
    assert!(History::new(&sample(101, 2), &table).is_some());
}
