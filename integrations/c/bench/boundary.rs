//! The reads of boundary.c, without the C interface.

use std::hint::black_box;
use std::time::Instant;

use leafpress_core::Tree;

const RECORDS: u32 = 200_000;
const READS: u32 = 2_000_000;
const ROUNDS: usize = 7;

/// Returns the median of the rounds, in ns per read.
fn measure(mut read: impl FnMut(&[u8])) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let mut state = 1_u32;
            let mut key = *b"user:00000000";
            let begin = Instant::now();
            for _ in 0..READS {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let mut number = (state >> 8) % RECORDS;
                for digit in key[7..].iter_mut().rev() {
                    *digit = b'0' + (number % 10) as u8;
                    number /= 10;
                }
                read(&key);
            }
            begin.elapsed().as_nanos() as f64 / f64::from(READS)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn main() -> Result<(), leafpress_core::TreeError> {
    for codec in std::env::args().skip(1).filter(|argument| !argument.starts_with('-')) {
        let tree = Tree::builder().codec(codec.parse()?).build()?;
        for number in 0..RECORDS {
            let visits = number.wrapping_mul(7919) % 1000;
            let value = format!(
                "{{\"id\":{number},\"name\":\"user \
                 {number}\",\"mail\":\"user{number}@example.org\",\"visits\":{visits}}}"
            );
            tree.insert(&format!("user:{number:08}"), &value)?;
        }
        tree.settle()?;
        let mut value = Vec::new();
        for (kind, ns) in [
            ("contains", measure(|key| assert!(tree.contains_key(key).unwrap()))),
            ("get", measure(|key| assert!(tree.get_into(key, &mut value).unwrap()))),
            (
                "read",
                measure(|key| assert!(black_box(tree.get_with(key, <[u8]>::len).unwrap()).is_some())),
            ),
        ] {
            println!("Rust {codec:<6} {kind:<8} {ns:6.1} ns");
        }
    }
    Ok(())
}
