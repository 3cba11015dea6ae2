//! Which parts of the files are taken when not all of them are.
//!
//! A file is a row of pieces of equal length, each a multiple of every block length, so that a piece's blocks are
//! blocks of the whole file. Pieces are taken at even distances, first of each file, then of all files in a row.

use std::ops::Range;

/// Maximum length of pieces, if block sizes allow it.
const MAX_PIECE_BYTES: u64 = 1 << 20;

/// The length of pieces for these lengths of blocks: their least common multiple, or the longest of them if that is too
/// long to spread.
pub(super) fn piece_bytes(block_bytes: &[usize]) -> u64 {
    let longest = block_bytes.iter().copied().max().unwrap_or(1).max(1) as u64;
    let common = block_bytes
        .iter()
        .try_fold(1_u64, |common, &bytes| {
            let bytes = (bytes as u64).max(1);
            let next = common / divisor(common, bytes) * bytes;
            (next <= MAX_PIECE_BYTES.max(longest)).then_some(next)
        })
        .unwrap_or(longest);
    common.max(longest)
}

/// Greatest common divisor.
fn divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { divisor(other, one % other) }
}

/// Selects evenly: each item adds the wanted share, and is selected when the sum makes up for it. The selection is
/// never more than the share of all.
struct Spread {
    share: f64,
    credit: f64,
}

impl Spread {
    fn new(all: u64, most: Option<u64>) -> Self {
        let share = most.map_or(1.0, |most| (most as f64 / all.max(1) as f64).min(1.0));
        Self { share, credit: 0.0 }
    }

    fn take(&mut self, bytes: u64) -> bool {
        if self.share >= 1.0 {
            return true;
        }
        self.credit += bytes as f64 * self.share;
        // The sum may be short of the whole by a rounding error.
        let taken = self.credit >= bytes as f64 - 1e-3;
        if taken {
            self.credit -= bytes as f64;
        }
        taken
    }
}

/// Which bytes of each file are taken, in order; neighbouring pieces are joined. `lengths` are the files'.
pub(super) fn choose(
    lengths: &[u64],
    piece_bytes: u64,
    max_file_bytes: Option<u64>,
    max_bytes: Option<u64>,
) -> Vec<Vec<Range<u64>>> {
    let mut files: Vec<Vec<Range<u64>>> = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let most = max_file_bytes.filter(|most| *most < length);
        if most.is_none() && max_bytes.is_none() {
            files.push(vec![Range { start: 0, end: length }]);
            continue;
        }
        let mut spread = Spread::new(length, most);
        let pieces = (0..length.div_ceil(piece_bytes)).map(|at| at * piece_bytes);
        let pieces = pieces.map(|start| start..(start + piece_bytes).min(length));
        files.push(pieces.filter(|piece| spread.take(piece.end - piece.start)).collect());
    }
    let taken = files.iter().flatten().map(|piece| piece.end - piece.start).sum();
    let mut spread = Spread::new(taken, max_bytes.filter(|most| *most < taken));
    for pieces in &mut files {
        pieces.retain(|piece| spread.take(piece.end - piece.start));
        join(pieces);
    }
    files
}

fn join(pieces: &mut Vec<Range<u64>>) {
    pieces.dedup_by(|next, before| {
        let touch = before.end == next.start;
        if touch {
            before.end = next.end;
        }
        touch
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(files: &[Vec<Range<u64>>]) -> u64 {
        files.iter().flatten().map(|range| range.end - range.start).sum()
    }

    #[test]
    fn pieces_hold_whole_blocks() {
        assert_eq!(piece_bytes(&[4096, 8192, 65536]), 65536);
        assert_eq!(piece_bytes(&[4096, 12288]), 12288);
        assert_eq!(piece_bytes(&[1000, 1001, 1003]), 1003);
        assert_eq!(piece_bytes(&[16 << 20]), 16 << 20);
        assert_eq!(piece_bytes(&[16 << 20, 4096]), 16 << 20);
    }

    #[test]
    fn without_a_cap_files_are_whole() {
        let whole = |files: Vec<Vec<Range<u64>>>| files.concat() == [0..10, 0..3];
        assert!(whole(choose(&[10, 3], 4, None, None)));
        assert!(whole(choose(&[10, 3], 4, Some(100), Some(100))));
    }

    #[test]
    fn pieces_are_spread_over_each_file_and_over_all() {
        let files = choose(&[1000, 1000], 10, Some(100), None);
        assert_eq!((files[0].len(), files[1].len(), total(&files)), (10, 10, 200));
        let starts: Vec<_> = files[0].iter().map(|range| range.start).collect();
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 100), "{starts:?}");
        let files = choose(&[1000, 3000, 5], 10, None, Some(400));
        assert!((391..=400).contains(&total(&files)), "{files:?}");
        assert!((90..=100).contains(&total(&files[..1])), "{files:?}");
    }

    #[test]
    fn never_more_than_the_cap_and_never_nothing() {
        for most in [64_u64, 100, 1000, 4095, 4096, 5000] {
            for lengths in [vec![1; 100_000], vec![4096], vec![100, 64, 9000], vec![63; 5000]] {
                let files = choose(&lengths, 64, None, Some(most));
                let (taken, all) = (total(&files), lengths.iter().sum::<u64>());
                assert!(taken > 0 && taken <= most.min(all), "{most}: {taken}");
                assert!(taken + 64 > most.min(all), "{most}: {taken} of {all}");
            }
        }
    }
}
