//! How a tree follows what is read: reads by a Zipf law (or uniform) over a dump's stanzas, a line a second, and other
//! hot records at half time.
//!
//! `cargo bench -p leafpress-bench --bench temperature -- FILE KEY CODEC SECONDS [THETA]`
//!
//! `FILE` has paragraphs of `Field: value` lines, `KEY` is one of the fields; without arguments it is the bundled
//! package index. `THETA` is 0.99, or 0 for uniform reads. Which records are hot is random: they lie scattered.

use std::error::Error;
use std::time::{Duration, Instant};

use leafpress::{Codec, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let (text, key, codec, seconds, theta) = match args.as_slice() {
        [] => (
            String::from_utf8_lossy(&leafpress_bench::sample()).into_owned(),
            "Filename",
            "auto",
            10,
            0.99,
        ),
        [file, key, codec, seconds, theta @ ..] => (
            std::fs::read_to_string(file)?,
            key.as_str(),
            codec.as_str(),
            seconds.parse()?,
            theta.first().map_or(Ok(0.99), |theta| theta.parse())?,
        ),
        _ => return Err("usage: temperature FILE KEY CODEC SECONDS [THETA]".into()),
    };
    let field = format!("{key}: ");
    let mut records: Vec<(&str, &str)> = text
        .split("\n\n")
        .filter_map(|record| Some((record.split_once(&field)?.1.split_once('\n')?.0, record)))
        .collect();
    let mut random = fastrand::Rng::with_seed(1);
    random.shuffle(&mut records);
    let tree = Tree::builder().codec(codec.parse::<Codec>()?).build()?;
    for (key, value) in &records {
        tree.insert(key, value)?;
    }
    tree.settle()?;
    println!("{} records; {}", records.len(), held(&tree.stats()));
    let law = Zipf::new(records.len(), theta);
    let mut value = Vec::new();
    for second in 0..seconds {
        if second == seconds / 2 {
            // Others are the hot ones from now on.
            random.shuffle(&mut records);
            println!("the hot records change");
        }
        let (before, start, mut reads) = (tree.stats(), Instant::now(), 0_u64);
        while start.elapsed() < Duration::from_secs(1) {
            for _ in 0..256 {
                let (key, expected) = records[law.rank(random.f64())];
                assert!(tree.get_into(key, &mut value)? && value == expected.as_bytes());
            }
            reads += 256;
        }
        let ns = start.elapsed().as_nanos() as u64 / reads;
        let after = tree.stats();
        let hits = (after.get_hot_hits - before.get_hot_hits) as f64 / reads as f64;
        println!(
            "{second:3} s: {ns:5} ns per read, {:4.1}% by {} hot records; {}",
            hits * 100.0,
            after.hot_records,
            held(&after)
        );
    }
    println!("{}", tree.stats().temperature_reason);
    println!("{:?}", tree.stats());
    Ok(())
}

fn held(stats: &leafpress::TreeStats) -> String {
    format!(
        "{} warm, {} cold leaves ({} warmed, {} cooled), held {:.3} a user byte (leaves {:.3}, hot {:.3}, dictionaries \
         {:.3}, free {:.3})",
        stats.warm_leaves,
        stats.cold_leaves,
        stats.leaves_warmed,
        stats.leaves_cooled,
        stats.held_per_user_byte(),
        stats.leaf_bytes as f64 / stats.user_bytes as f64,
        stats.hot_bytes as f64 / stats.user_bytes as f64,
        stats.dictionary_bytes as f64 / stats.user_bytes as f64,
        stats.free_bytes as f64 / stats.user_bytes as f64,
    )
}

/// Ranks by Zipf's law.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(count: usize, theta: f64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += (rank as f64).powf(-theta);
            sum
        });
        Self(sums.collect())
    }

    /// Returns the rank at a number from 0 to 1.
    fn rank(&self, at: f64) -> usize {
        let total = self.0.last().copied().unwrap_or_default();
        self.0.partition_point(|sum| *sum < at * total).min(self.0.len() - 1)
    }
}
