//! Replaced and removed nodes are freed, whatever thread blocked their reclamation.

use std::sync::mpsc;
use std::thread;

use leafpress::Tree;
use leafpress::tree::DictionaryChoice;

fn filled() -> Tree {
    let builder = Tree::builder()
        .codec("none".parse().unwrap())
        .dictionary(DictionaryChoice::Off);
    let tree = builder.build().unwrap();
    for n in 0..10_000u32 {
        tree.insert(&n.to_be_bytes(), &[n as u8; 100]).unwrap();
    }
    tree.settle().unwrap();
    tree
}

/// Runs `work` while another thread holds a value of `tree`.
fn with_a_value_held(tree: &Tree, work: impl FnOnce()) {
    thread::scope(|scope| {
        let (held, is_held) = mpsc::channel();
        let (let_go, may_let_go) = mpsc::channel::<()>();
        scope.spawn(move || {
            let seen = tree.get_with(&5u32.to_be_bytes(), |value| {
                held.send(()).unwrap();
                // An error means that the other end is gone, and the test has failed.
                let _ = may_let_go.recv();
                value == [5; 100]
            });
            assert_eq!(seen.unwrap(), Some(true), "the value changed in hand");
        });
        is_held.recv().unwrap();
        work();
        drop(let_go);
    });
}

#[test]
fn leaves_cleared_during_a_read_are_freed_when_it_ends() {
    let tree = filled();
    let before = tree.stats().bytes_held;
    with_a_value_held(&tree, || {
        tree.clear().unwrap();
        let retired = tree.stats().retired_bytes;
        assert!(retired > 1_000_000, "{retired} of {before} bytes wait for the reader");
    });
    // Only the end of the read has triggered the reclamation.
    assert_eq!(tree.stats().retired_bytes, 0);
}

#[test]
fn leaves_replaced_by_several_during_a_read_are_freed_when_it_ends() {
    let tree = filled();
    with_a_value_held(&tree, || {
        thread::scope(|scope| {
            for writer in 0..3u32 {
                let tree = &tree;
                scope.spawn(move || {
                    for n in (writer..10_000).step_by(3) {
                        tree.insert(&n.to_be_bytes(), &[!n as u8; 100]).unwrap();
                    }
                });
            }
        });
        tree.settle().unwrap();
        assert!(tree.stats().retired_bytes > 1_000_000);
    });
    assert_eq!(tree.stats().retired_bytes, 0);
    for n in 0..10_000u32 {
        assert_eq!(tree.get(&n.to_be_bytes()).unwrap(), Some(vec![!n as u8; 100]));
    }
}

#[test]
fn what_waits_while_writes_go_on_is_bounded() {
    let tree = filled();
    for round in 0..20u32 {
        for n in 0..10_000u32 {
            tree.insert(&n.to_be_bytes(), &[(n + round) as u8; 100]).unwrap();
        }
        let retired = tree.stats().retired_bytes;
        // A round replaces some 30 MB. A background thread may block reclamation for a while.
        assert!(
            retired < 8 << 20,
            "{retired} bytes wait, though no thread blocks reclamation for long"
        );
    }
}
