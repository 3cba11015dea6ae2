//! The length that a reader gets while others write is never more than the records there can be.

use std::sync::atomic::{AtomicBool, Ordering};

use leafpress::Tree;
use leafpress::tree::DictionaryChoice;

#[test]
fn len_of_a_tree_of_one_record_that_comes_and_goes() {
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
        // Between the two sums that a length is made of, the record may come and go any number of times: the sums are taken
        // such that this makes the length too great, by as many as there were puts meanwhile, and never less than none.
        assert!(worst.is_none_or(|worst| worst < 1 << 32), "{worst:?}");
    });
}
