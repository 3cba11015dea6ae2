//! A scan reads its large values a few at a time, wherever they are stored.

use leafpress::tree::DictionaryChoice;
use leafpress::{Codec, Layout, Tree};

const VALUE_BYTES: usize = 1 << 20;
const VALUES: u8 = 40;

/// Returns the bytes of large values that were read for the first record of a scan, from the front and from the back.
fn read_for_one_record(tree: &Tree) -> [u64; 2] {
    let read = || tree.stats().engine.decompress_bytes_out;
    [true, false].map(|front| {
        let before = read();
        let mut range = tree.range(..);
        let record = if front { range.next() } else { range.next_back() };
        assert_eq!(record.unwrap().unwrap().1.len(), VALUE_BYTES);
        read() - before
    })
}

/// Compares every record, from both ends in turn.
fn check_scan(tree: &Tree) {
    let mut range = tree.range(..);
    for n in 0..VALUES / 2 {
        assert!(range.next().unwrap().unwrap() == (vec![n], vec![n; VALUE_BYTES]));
        let n = VALUES - 1 - n;
        assert!(range.next_back().unwrap().unwrap() == (vec![n], vec![n; VALUE_BYTES]));
    }
    assert!(range.next().is_none() && range.next_back().is_none());
    let keys = |range: &mut dyn Iterator<Item = Vec<u8>>| range.collect::<Vec<_>>();
    let all: Vec<Vec<u8>> = (0..VALUES).map(|n| vec![n]).collect();
    assert_eq!(keys(&mut tree.range(..).map(|record| record.unwrap().0)), all);
    let mut back = keys(&mut tree.range(..).rev().map(|record| record.unwrap().0));
    back.reverse();
    assert_eq!(back, all);
}

fn check(layout: Layout, compacted: bool) {
    let tree = Tree::builder()
        .codec(Codec::Lz4 { acceleration: 1 })
        .dictionary(DictionaryChoice::Off)
        .layout(layout)
        .frame_bytes(1024)
        .landing_bytes(4096)
        .build()
        .unwrap();
    for n in 0..VALUES {
        tree.insert(&[n], &vec![n; VALUE_BYTES]).unwrap();
    }
    if compacted {
        tree.compact().unwrap();
    }
    assert_eq!(tree.stats().landing_buffers, u64::from(!compacted));
    for bytes in read_for_one_record(&tree) {
        assert!(bytes <= 5 << 20, "{bytes} bytes were read for one record");
    }
    check_scan(&tree);
    tree.validate().unwrap();
}

#[test]
fn in_a_landing_buffer() {
    check(Layout::Ordered, false);
    check(Layout::Hashed { sub_pages: 4 }, false);
}

#[test]
fn in_one_frame_of_a_leaf() {
    check(Layout::Ordered, true);
    check(Layout::Hashed { sub_pages: 4 }, true);
}
