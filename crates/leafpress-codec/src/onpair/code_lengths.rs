//! The lengths and the codes of a static, length-limited Huffman code over tokens (Huffman 1952; canonical codes, as in
//! RFC 1951). The lengths are part of the dictionary.

use leafpress_base::mem::room::{collected, room_for};

use crate::CodecError;

/// Maximum length of a code: a table of all values fits the L1 cache with some tokens, and four codes fit 57 bits.
pub(super) const MAX_CODE_BITS: u32 = 13;

/// All values of [`MAX_CODE_BITS`] bits.
pub(super) const VALUES: usize = 1 << MAX_CODE_BITS;

/// Returns the length of a code for each token, by its frequency; there are at least two tokens and at most 4,096.
pub(super) fn lengths(frequencies: &[u64]) -> Result<Vec<u8>, CodecError> {
    let mut order: Vec<usize> = collected(0..frequencies.len())?;
    order.sort_unstable_by_key(|&token| (frequencies[token], token));
    let depths = depths(&order, frequencies)?;
    let mut lengths: Vec<u8> = collected(depths.iter().map(|&depth| depth.clamp(1, MAX_CODE_BITS) as u8))?;
    let share = |length: u8| 1_usize << (MAX_CODE_BITS - u32::from(length));
    let mut taken: usize = lengths.iter().map(|&length| share(length)).sum();
    // What the limit takes too much is given back by the least frequent tokens that are above it.
    for &token in order.iter().cycle() {
        if taken <= VALUES {
            break;
        }
        if u32::from(lengths[token]) < MAX_CODE_BITS {
            taken -= share(lengths[token]) / 2;
            lengths[token] += 1;
        }
    }
    // What is left over goes to the most frequent ones that can use it.
    while taken < VALUES {
        for &token in order.iter().rev() {
            if lengths[token] > 1 && taken + share(lengths[token]) <= VALUES {
                taken += share(lengths[token]);
                lengths[token] -= 1;
            }
        }
    }
    Ok(lengths)
}

/// Returns the depth of each token in a Huffman tree; `order` are the tokens by ascending frequency.
fn depths(order: &[usize], frequencies: &[u64]) -> Result<Vec<u32>, CodecError> {
    let leaves = order.len();
    // Nodes: the tokens in `order`, then the inner nodes in the order of their weights.
    let mut weights: Vec<u64> = room_for(2 * leaves)?;
    weights.extend(order.iter().map(|&token| frequencies[token]));
    let mut parents: Vec<usize> = room_for(2 * leaves)?;
    parents.resize(2 * leaves, 0);
    let (mut next_leaf, mut next_inner) = (0, leaves);
    for inner in leaves..2 * leaves - 1 {
        let mut weight = 0;
        for _ in 0..2 {
            let takes_leaf = next_leaf < leaves && (next_inner >= inner || weights[next_leaf] <= weights[next_inner]);
            let next = if takes_leaf { &mut next_leaf } else { &mut next_inner };
            weight += weights[*next];
            parents[*next] = inner;
            *next += 1;
        }
        weights.push(weight);
    }
    let mut of_nodes: Vec<u32> = room_for(2 * leaves)?;
    of_nodes.resize(2 * leaves, 0);
    for node in (0..2 * leaves - 2).rev() {
        of_nodes[node] = of_nodes[parents[node]] + 1;
    }
    let mut depths: Vec<u32> = room_for(leaves)?;
    depths.resize(leaves, 0);
    for (node, &token) in order.iter().enumerate() {
        depths[token] = of_nodes[node];
    }
    Ok(depths)
}

/// Returns whether each token has a code, and each value of [`MAX_CODE_BITS`] bits begins with one.
pub(super) fn is_complete(lengths: &[u8]) -> bool {
    let shares = lengths.iter().map(|&length| match u32::from(length) {
        length @ 1..=MAX_CODE_BITS => Some(1 << (MAX_CODE_BITS - length)),
        _ => None,
    });
    shares.sum::<Option<usize>>() == Some(VALUES)
}

/// Returns each token's code, the first bit lowest.
pub(super) fn codes(lengths: &[u8]) -> Result<Vec<u16>, CodecError> {
    let mut order: Vec<usize> = collected(0..lengths.len())?;
    order.sort_unstable_by_key(|&token| (lengths[token], token));
    let mut codes: Vec<u16> = room_for(lengths.len())?;
    codes.resize(lengths.len(), 0);
    // The next code, in the highest of `MAX_CODE_BITS` bits.
    let mut next = 0_u32;
    for token in order {
        let length = u32::from(lengths[token]);
        codes[token] = (next.reverse_bits() >> (u32::BITS - MAX_CODE_BITS)) as u16;
        next += 1 << (MAX_CODE_BITS - length);
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(lengths: &[u8], frequencies: &[u64]) -> u64 {
        lengths
            .iter()
            .zip(frequencies)
            .map(|(&length, &frequency)| u64::from(length) * frequency)
            .sum()
    }

    #[test]
    fn lengths_are_optimal_where_the_limit_allows_it() {
        let lengths = lengths(&[1, 1, 2, 4, 8, 16]).unwrap();
        assert_eq!(lengths, [5, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn every_code_is_complete_and_within_the_limit() {
        let mut rng = fastrand::Rng::with_seed(1);
        for count in [2, 3, 256, 257, 1000, 4096]
            .into_iter()
            .take(if cfg!(miri) { 2 } else { 6 })
        {
            for skew in 0..6 {
                let frequencies: Vec<u64> = (0..count)
                    .map(|_| 1 + (rng.f64().powi(8 * skew) * 1e9) as u64)
                    .collect();
                let lengths = lengths(&frequencies).unwrap();
                assert!(is_complete(&lengths), "{count} tokens, skew {skew}");
                let sum: u64 = frequencies.iter().sum();
                let entropy: f64 = frequencies
                    .iter()
                    .map(|&f| f as f64 * (sum as f64 / f as f64).log2())
                    .sum();
                let most = entropy * 1.10 + sum as f64;
                assert!(
                    (cost(&lengths, &frequencies) as f64) < most,
                    "{count} tokens, skew {skew}"
                );
            }
        }
    }

    #[test]
    fn codes_are_prefix_free() {
        let lengths = [2, 3, 3, 2, 2];
        assert!(is_complete(&lengths));
        let codes = codes(&lengths).unwrap();
        for (one, &code) in codes.iter().enumerate() {
            for (other, &longer) in codes.iter().enumerate() {
                let mask = (1 << lengths[one]) - 1;
                assert!(
                    one == other || longer & mask != code || lengths[other] < lengths[one],
                    "{one}, {other}"
                );
            }
        }
        assert!(!is_complete(&[1, 2]) && !is_complete(&[1, 1, 0]) && !is_complete(&[14, 1, 1]));
    }
}
