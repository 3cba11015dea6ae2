//! Durations of single calls of `Tree::run_upkeep` while a tree of a million records is filled, a dictionary is
//! trained, and all leaves are recompressed with it; then of removals of records and of ranges, and of samples.
//!
//! ```text
//! cargo run --release --no-default-features --features codecs --example upkeep_times -- [CODEC] [RECORDS]
//! ```

use std::time::{Duration, Instant};

use leafpress::{Tree, Upkeep};

const BUDGET: Duration = Duration::from_micros(500);
/// Interval of the calls, similar to a server's timer.
const RECORDS_BETWEEN_CALLS: u64 = 2000;

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writes of a `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn value(n: u64) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(n);
    let mut text = format!(
        "{{\"id\":{n},\"name\":\"user {}\",\"mail\":\"someone{}@example.org\",\"city\":\"{}\",\"token\":\"",
        rng.u32(..100_000),
        rng.u32(..1_000_000),
        ["Bern", "Basel", "Genf", "Chur"][rng.usize(..4)],
    );
    text.extend((0..rng.usize(40..100)).map(|_| rng.alphanumeric()));
    text.push_str("\"}");
    text.into_bytes()
}

fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Prints the average processor time of `calls` calls.
fn each(what: &str, calls: u64, mut call: impl FnMut(u64)) {
    let before = processor_time();
    (0..calls).for_each(&mut call);
    println!("{what}: {:.1?}", (processor_time() - before) / calls as u32);
}

/// The longest calls, with the concurrent activity.
#[derive(Default)]
struct Calls {
    calls: u64,
    wall: Vec<Duration>,
    processor: Vec<Duration>,
}

impl Calls {
    fn run_upkeep(&mut self, tree: &Tree) -> bool {
        let (begin, before) = (Instant::now(), processor_time());
        let more = tree.run_upkeep(BUDGET).expect("upkeep");
        let (wall, processor) = (begin.elapsed(), processor_time() - before);
        self.calls += 1;
        for (longest, time) in [(&mut self.wall, wall), (&mut self.processor, processor)] {
            longest.push(time);
            longest.sort_unstable_by(|a, b| b.cmp(a));
            longest.truncate(8);
        }
        more
    }

    fn print(&self, what: &str) {
        println!(
            "{what}: {} calls, longest {:.1?}, in processor time {:.1?}",
            self.calls, self.wall, self.processor
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let codec = arguments.next().unwrap_or_else(|| "lz4".to_owned());
    let records: u64 = arguments
        .next()
        .map_or(1_000_000, |n| n.parse().expect("a number of records"));
    let builder = Tree::builder()
        .codec(codec.parse().expect("a codec"))
        .upkeep(Upkeep::Caller);
    let tree = builder.build().expect("a tree");
    let mut filling = Calls::default();
    for n in 0..records {
        tree.insert(&key(n), &value(n)).expect("room");
        if n % RECORDS_BETWEEN_CALLS == 0 {
            filling.run_upkeep(&tree);
        }
    }
    filling.print("filling");
    println!("{} KiB held", tree.stats().bytes_held >> 10);
    let mut training = Calls::default();
    tree.request_training();
    let begin = Instant::now();
    while training.run_upkeep(&tree) || tree.is_training() {
        if tree.is_training() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    training.print(&format!("training and what followed, {:.1?}", begin.elapsed()));
    let mut calm = Calls::default();
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        if !calm.run_upkeep(&tree) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    calm.print("calm");
    each("a record removed by its key", 10_000, |n| {
        tree.remove(&key(n)).expect("a removal");
    });
    each("a record removed as a range", 10_000, |n| {
        let key = key(10_000 + n);
        tree.remove_range(key..=key, 1).expect("a removal");
    });
    each("a call that removes 100 of a range", 1000, |_| {
        tree.remove_range(.., 100).expect("a removal");
    });
    each("a record sampled of all", 1000, |n| {
        tree.sample_range(.., 1, n).expect("a sample");
    });
    let stats = tree.stats();
    println!(
        "{} records of {} user bytes, {} leaves, {} KiB held, dictionary {}, frames of {}",
        stats.records,
        stats.user_bytes / stats.records.max(1),
        stats.leaves,
        stats.bytes_held >> 10,
        stats.dictionary_id,
        stats.frame_limit_bytes
    );
}
