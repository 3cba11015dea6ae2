//! One tree, many threads: readers never wait, writers only contend for the same leaf.
//!
//! cargo run --release -p leafpress --example concurrent

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

const WRITERS: u64 = 2;
const READERS: u64 = 2;
const KEYS_PER_WRITER: u64 = 50_000;

fn main() -> Result<(), leafpress::TreeError> {
    // Shards spread the writers; two background threads compact ahead of them.
    let tree = leafpress::Tree::builder()
        .codec("lz4".parse()?)
        .shards(8)
        .background_threads(2)
        .build()?;
    let done = AtomicBool::new(false);
    let reads = AtomicU64::new(0);

    thread::scope(|scope| -> Result<(), leafpress::TreeError> {
        let (tree, done, reads) = (&tree, &done, &reads);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || -> Result<(), leafpress::TreeError> {
                    for i in 0..KEYS_PER_WRITER {
                        let id = i * WRITERS + writer;
                        tree.insert(&id.to_be_bytes(), format!("record {id} of writer {writer}").as_bytes())?;
                    }
                    Ok(())
                })
            })
            .collect();
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                scope.spawn(move || -> Result<(), leafpress::TreeError> {
                    let mut value = Vec::new();
                    let mut id = reader;
                    while !done.load(Ordering::Relaxed) {
                        // A record is either absent or whole.
                        if tree.get_into(&id.to_be_bytes(), &mut value)? {
                            assert_eq!(value, format!("record {id} of writer {}", id % WRITERS).as_bytes());
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                        id = (id + 7_919) % (WRITERS * KEYS_PER_WRITER);
                    }
                    Ok(())
                })
            })
            .collect();
        let written = writers
            .into_iter()
            .try_for_each(|writer| writer.join().expect("no writer panics"));
        done.store(true, Ordering::Relaxed);
        let read = readers
            .into_iter()
            .try_for_each(|reader| reader.join().expect("no reader panics"));
        written.and(read)
    })?;

    assert_eq!(tree.len() as u64, WRITERS * KEYS_PER_WRITER);
    tree.validate()?;
    println!(
        "{} records written, {} concurrent reads, all checked",
        tree.len(),
        reads.into_inner()
    );
    Ok(())
}
