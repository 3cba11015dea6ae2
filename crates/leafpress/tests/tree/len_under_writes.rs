//! The length read during concurrent writes never exceeds the possible number of records.

use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Tree;
use leafpress::tree::DictionaryChoice;

#[test]
fn len_of_a_tree_with_one_record_inserted_and_removed() {
    let tree = Tree::builder().dictionary(DictionaryChoice::Off).build().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                tree.insert(b"k", b"v").unwrap();
                tree.remove(b"k").unwrap();
            }
        });
        let worst = (0..300_000).map(|_| tree.len()).max();
        stop.store(true, Ordering::Relaxed);
        // Between the reads of the two sums that form the length, the record may be inserted and removed any number of
        // times: the order of the reads makes the length too large, by at most the insertions meanwhile, and never
        // negative.
        assert!(worst.is_none_or(|worst| worst < 1 << 32), "{worst:?}");
    });
}
