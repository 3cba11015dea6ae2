//! An overwritten large value is freed at once, and not with many others later.

use leafpress::Tree;
use leafpress::codec::Codec;

#[test]
fn overwritten_large_values_do_not_pile_up() {
    let tree = Tree::builder().codec(Codec::None).build().unwrap();
    let value = vec![1; 8 << 20];
    for _ in 0..40 {
        tree.insert(b"k", &value).unwrap();
        let retired = tree.stats().retired_bytes;
        assert!(
            retired <= 2 * value.len() as u64 + (1 << 20),
            "{retired} bytes are retired"
        );
    }
}
