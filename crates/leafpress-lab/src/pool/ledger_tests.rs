use super::*;

const PAGE: PageId = 3;

fn content(page: PageId) -> Vec<u8> {
    (0..4096_u32)
        .map(|i| (i.wrapping_mul(page as u32 + 7) >> 3) as u8)
        .collect()
}

fn ledger(verify: Verify) -> Ledger {
    let mut ledger = Ledger::new(8, verify, true);
    for page in 0..8 {
        if ledger.watches(page) {
            ledger.note(page, &content(page));
        }
    }
    ledger
}

/// Writes a version as a worker does and returns the page.
fn update(ledger: &Ledger, page: PageId) -> Vec<u8> {
    let mut bytes = content(page);
    let turn = ledger.turn(page);
    let version = turn.next();
    stamp(page, version, &mut bytes);
    turn.begin(version);
    turn.finish(version);
    bytes
}

#[test]
fn what_a_page_may_hold_is_right() {
    let ledger = ledger(Verify::OneIn(1));
    assert!(ledger.check(PAGE, &content(PAGE), ledger.done(PAGE)));
    let before = ledger.done(PAGE);
    let first = update(&ledger, PAGE);
    let second = update(&ledger, PAGE);
    assert_ne!(first, second);
    for bytes in [&content(PAGE), &first, &second] {
        assert!(
            ledger.check(PAGE, bytes, before),
            "a read that began before may see any of them"
        );
    }
    assert!(ledger.check(PAGE, &second, ledger.done(PAGE)));
    assert_eq!(ledger.wrong().0, 0);
}

#[test]
fn every_wrong_byte_is_seen() {
    let ledger = ledger(Verify::OneIn(1));
    let updated = update(&ledger, PAGE);
    let mut wrong = 0;
    for at in 0..updated.len() {
        let mut bytes = updated.clone();
        bytes[at] ^= 0x10;
        assert!(!ledger.check(PAGE, &bytes, ledger.done(PAGE)), "byte {at}");
        wrong += 1;
    }
    assert!(!ledger.check(PAGE, &updated[..4095], ledger.done(PAGE)));
    assert!(!ledger.check(PAGE, &[], ledger.done(PAGE)));
    assert!(!ledger.check(PAGE + 1, &updated, 0), "another page's bytes");
    let (count, examples) = ledger.wrong();
    assert_eq!(count, wrong + 3);
    assert_eq!(examples.len(), EXAMPLES);
    assert!(examples[0].contains("page 3"), "{examples:?}");
}

#[test]
fn a_stale_version_is_wrong() {
    let ledger = ledger(Verify::OneIn(1));
    let first = update(&ledger, PAGE);
    let second = update(&ledger, PAGE);
    let done = ledger.done(PAGE);
    assert!(!ledger.check(PAGE, &first, done));
    assert!(!ledger.check(PAGE, &content(PAGE), done));
    assert!(ledger.check(PAGE, &second, done));
    assert!(
        ledger.wrong().1[0].contains("version 2, when 4 was complete"),
        "{:?}",
        ledger.wrong().1
    );
}

#[test]
fn a_version_nobody_began_is_wrong() {
    let ledger = ledger(Verify::OneIn(1));
    let mut bytes = content(PAGE);
    stamp(PAGE, 2, &mut bytes);
    assert!(!ledger.check(PAGE, &bytes, ledger.done(PAGE)));
}

#[test]
fn a_page_may_be_absent_only_when_it_was_removed() {
    let ledger = ledger(Verify::OneIn(1));
    assert!(!ledger.check_absent(PAGE, ledger.done(PAGE)));
    let before = ledger.done(PAGE);
    let turn = ledger.turn(PAGE);
    let removed = turn.removed();
    turn.begin(removed);
    turn.finish(removed);
    assert!(ledger.check_absent(PAGE, before) && ledger.check_absent(PAGE, ledger.done(PAGE)));
    assert!(
        !ledger.check(PAGE, &content(PAGE), ledger.done(PAGE)),
        "a removed page must not be read"
    );
    let bytes = update(&ledger, PAGE);
    assert!(ledger.check(PAGE, &bytes, ledger.done(PAGE)));
    assert!(!ledger.check_absent(PAGE, ledger.done(PAGE)), "it is there again");
}

#[test]
fn a_write_that_failed_leaves_both_versions_right() {
    let ledger = ledger(Verify::OneIn(1));
    let turn = ledger.turn(PAGE);
    let version = turn.next();
    turn.begin(version);
    drop(turn);
    let mut bytes = content(PAGE);
    stamp(PAGE, version, &mut bytes);
    for bytes in [&content(PAGE), &bytes] {
        assert!(ledger.check(PAGE, bytes, ledger.done(PAGE)));
    }
}

#[test]
fn watches_one_page_in_n() {
    let ledger = Ledger::new(100_000, Verify::OneIn(64), false);
    let watched = (0..100_000).filter(|page| ledger.watches(*page)).count();
    assert!((1400..1730).contains(&watched), "{watched}");
    let off = Ledger::new(100, Verify::Off, true);
    assert!((0..100).all(|page| !off.watches(page)));
}

#[test]
fn short_pages_are_stamped_where_there_is_room() {
    for len in [16, 17, 512, 1000] {
        for page in 0..50 {
            let mut bytes = vec![7; len];
            stamp(page, 6, &mut bytes);
            assert_eq!(stamped(page, &bytes), Some(6), "page {page} of {len} bytes");
            assert!(bytes.iter().filter(|byte| **byte != 7).count() <= STAMP_BYTES);
        }
    }
}
