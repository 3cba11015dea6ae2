//! Small trees for concurrent changes.

use std::sync::Arc;

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Tree, TreeBuilder};
use shuttle::thread;

pub use crate::explore::explore;

pub fn small() -> TreeBuilder {
    Tree::builder()
        .codec(Codec::None)
        .dictionary(DictionaryChoice::Off)
        .leaf_bytes(1024)
        .landing_bytes(64)
}

pub fn key(n: u32) -> [u8; 4] {
    n.to_be_bytes()
}

/// Returns a tree of `records` records of 100 bytes, keys 10, 20, ...; a leaf holds about 10 of them.
pub fn filled(builder: TreeBuilder, records: u32) -> Arc<Tree> {
    let tree = builder.build().unwrap();
    for n in 1..=records {
        tree.insert(&key(n * 10), &[n as u8; 96]).unwrap();
    }
    Arc::new(tree)
}

pub fn spawn<T: Send + 'static>(
    tree: &Arc<Tree>,
    work: impl FnOnce(&Tree) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let tree = tree.clone();
    thread::spawn(move || work(&tree))
}
