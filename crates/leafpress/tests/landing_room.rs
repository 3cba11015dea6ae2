//! Temporarily larger landing buffers, as requested by a server while a forked child saves a snapshot.

use std::collections::BTreeMap;

use leafpress::tree::Upkeep;
use leafpress::{Dictionary, DictionaryChoice, Tree};

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

#[test]
fn longer_buffers_put_compactions_off_and_lose_nothing() {
    let tree = Tree::builder().upkeep(Upkeep::Caller).build().unwrap();
    let mut model = BTreeMap::new();
    for number in 0..4000 {
        let value = format!("{{\"number\": {number}, \"text\": \"some text that compresses\"}}");
        tree.insert(&key(number), &value).unwrap();
        model.insert(key(number).to_vec(), value.into_bytes());
    }
    let compactions = |least, round: u32, model: &mut BTreeMap<Vec<u8>, Vec<u8>>| {
        tree.set_min_landing_bytes(least);
        let before = tree.stats().fg_sync_compactions;
        // Every key twice, for entries that supersede others; some removed and inserted again.
        for number in (0..4000).step_by(7).chain((0..4000).step_by(7)) {
            let value = format!("{{\"number\": {number}, \"round\": {round}}}");
            tree.insert(&key(number), &value).unwrap();
            model.insert(key(number).to_vec(), value.into_bytes());
            if number % 3 == 0 {
                assert_eq!(
                    tree.remove(&key(number)).unwrap(),
                    model.remove(key(number).as_slice()).is_some()
                );
            }
        }
        tree.validate().unwrap();
        tree.stats().fg_sync_compactions - before
    };
    let usual = compactions(0, 1, &mut model);
    let longer = compactions(8 << 10, 2, &mut model);
    // Sizes above the maximum are clamped to it.
    compactions(usize::MAX, 3, &mut model);
    compactions(0, 4, &mut model);
    assert!(
        longer < usual / 2,
        "{longer} compactions with longer buffers, {usual} without"
    );
    let records: BTreeMap<_, _> = tree.iter().collect::<Result<_, _>>().unwrap();
    assert!(records == model);
    tree.compact().unwrap();
    tree.validate().unwrap();
    let records: BTreeMap<_, _> = tree.iter().collect::<Result<_, _>>().unwrap();
    assert!(records == model);
}

#[test]
fn a_tree_returns_its_dictionary() {
    let tree = Tree::builder().dictionary(DictionaryChoice::Off).build().unwrap();
    assert!(tree.dictionary().unwrap().is_none());
    let given = Dictionary::from_bytes(7, &b"some bytes that records have in common"[..]);
    let tree = Tree::builder()
        .dictionary(DictionaryChoice::Given(given))
        .build()
        .unwrap();
    let found = tree.dictionary().unwrap().unwrap();
    assert_eq!(
        (found.id(), found.bytes()),
        (7, &b"some bytes that records have in common"[..])
    );
}
