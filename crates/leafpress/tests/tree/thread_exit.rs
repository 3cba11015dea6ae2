//! A tree is used by threads that are ending, from the destructors of their thread-local values.
#![cfg(not(miri))]

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;

use leafpress::{Codec, Tree};

/// Writes that a thread does when it ends.
#[derive(Default)]
struct WriteBehind(Option<(Arc<Tree>, u64)>);

impl Drop for WriteBehind {
    fn drop(&mut self) {
        let Some((tree, n)) = self.0.take() else { return };
        for of_thread in 0..40u64 {
            let key = (n * 40 + of_thread).to_be_bytes();
            let put = tree.insert(&key, &key.repeat(12));
            let read = tree.get(&key);
            match (put, read) {
                (Ok(new), Ok(value)) => {
                    assert!(new);
                    assert_eq!(value.unwrap(), key.repeat(12));
                }
                // A codec whose thread-local context is gone returns an error.
                (put, read) => assert_ne!(tree.stats().engine_name, "none", "{put:?} {read:?}"),
            }
        }
        assert!(tree.range(&b"\0"[..]..).all(|record| record.is_ok()) || tree.stats().engine_name != "none");
    }
}

thread_local! {
    static FIRST: RefCell<WriteBehind> = RefCell::default();
    static LAST: RefCell<WriteBehind> = RefCell::default();
}

fn tree(codec: Codec) -> Arc<Tree> {
    Arc::new(Tree::builder().codec(codec).leaf_bytes(1024).build().unwrap())
}

#[test]
fn a_thread_may_write_as_it_ends() {
    let tree = tree(Codec::None);
    for n in 0..30 {
        let tree = Arc::clone(&tree);
        thread::spawn(move || {
            // The value initialised first is destroyed last: after the tree's thread-local values.
            FIRST.with_borrow_mut(|first| first.0 = Some((Arc::clone(&tree), n * 2)));
            tree.insert(b"", b"value").unwrap();
            LAST.with_borrow_mut(|last| last.0 = Some((Arc::clone(&tree), n * 2 + 1)));
        })
        .join()
        .unwrap();
    }
    assert_eq!(tree.len(), 60 * 40 + 1);
    tree.validate().unwrap();
}

#[test]
fn a_codec_may_refuse_a_thread_that_ends_and_the_tree_stays_whole() {
    for codec in ["lz4", "zstd:1", "deflate:6"] {
        let tree = tree(codec.parse().unwrap());
        for n in 0..10 {
            let tree = Arc::clone(&tree);
            thread::spawn(move || {
                FIRST.with_borrow_mut(|first| first.0 = Some((Arc::clone(&tree), n)));
                tree.insert(b"", b"value").unwrap();
            })
            .join()
            .unwrap();
        }
        tree.validate().unwrap();
        assert_eq!(tree.get(b"").unwrap().as_deref(), Some(b"value".as_slice()));
    }
}

#[test]
fn what_ended_threads_retired_is_freed() {
    let tree = tree(Codec::None);
    for n in 0..50 {
        let tree = Arc::clone(&tree);
        thread::spawn(move || {
            FIRST.with_borrow_mut(|first| first.0 = Some((tree, n)));
        })
        .join()
        .unwrap();
    }
    tree.settle().unwrap();
    assert_eq!(tree.stats().retired_bytes, 0);
}
