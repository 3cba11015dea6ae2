//! Scans of maps with fields of all kinds, with and without writes between the steps.

use std::collections::{BTreeMap, BTreeSet};

use super::super::MAX_FIELD_BYTES;
use super::super::generation::Hold;
use super::super::removal;
use super::super::settings::trees;
use super::*;

fn new_map(generation: &Hold) -> Map {
    Map::new((generation.clone(), generation.new_id().unwrap()))
}

fn generation() -> Hold {
    Hold::create(&trees()).unwrap()
}

/// Kinds of fields, of which many have long common prefixes.
fn kinds(fields: usize) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let mut random = fastrand::Rng::with_seed(7);
    let binary = |random: &mut fastrand::Rng| (0..random.usize(0..12)).map(|_| random.u8(..)).collect();
    let few_letters = |random: &mut fastrand::Rng| {
        (0..random.usize(0..40))
            .map(|_| random.choice(*b"ab").unwrap())
            .collect()
    };
    let long = |n: usize| {
        [
            vec![b'x'; 1000],
            format!("{n:08}").into_bytes(),
            vec![0; MAX_FIELD_BYTES - 1008],
        ]
        .concat()
    };
    vec![
        (
            "numbers",
            (0..fields).map(|n| format!("field:{n:08}").into_bytes()).collect(),
        ),
        (
            "groups",
            (0..fields)
                .map(|n| format!("tenant-{:03}:a-prefix-that-all-have:{:07}", n % 200, n / 200).into_bytes())
                .collect(),
        ),
        ("binary", (0..fields).map(|_| binary(&mut random)).collect()),
        ("few letters", (0..fields).map(|_| few_letters(&mut random)).collect()),
        (
            "nested",
            (0..fields.min(MAX_FIELD_BYTES + 1)).map(|n| vec![255; n]).collect(),
        ),
        ("long", (0..fields.min(2000)).map(long).collect()),
        ("one", vec![Vec::new()]),
    ]
}

fn filled(generation: &Hold, fields: &[Vec<u8>]) -> (Map, BTreeSet<Vec<u8>>) {
    let mut map = new_map(generation);
    let all: BTreeSet<Vec<u8>> = fields.iter().cloned().collect();
    for field in fields {
        map.set(field, b"a value").unwrap();
    }
    (map, all)
}

/// Scans until the end; `change` is called after each step. Returns how often each field was returned.
fn scan(map: &mut Map, count: usize, mut change: impl FnMut(&mut Map, &Step)) -> BTreeMap<Vec<u8>, u32> {
    let (mut seen, mut cursor, mut steps) = (BTreeMap::new(), 0, 0);
    loop {
        let found = step(map, cursor, count, |_| true).unwrap();
        assert!(
            found.records.len() <= count + count / 2,
            "{} of {count}",
            found.records.len()
        );
        for (field, _) in &found.records {
            *seen.entry(field.clone()).or_insert(0) += 1;
        }
        cursor = found.next;
        if cursor == 0 {
            return seen;
        }
        assert!(found.records.len() >= count, "{} of {count}", found.records.len());
        change(map, &found);
        steps += 1;
        assert!(steps < 100_000, "the scan does not end");
    }
}

#[test]
fn a_cursor_is_a_positive_number_and_back() {
    for (boundary, position) in [(&b"a"[..], 0.0), (&[255; MAX_FIELD_BYTES], 1.0), (b"field:00001", 0.5)] {
        let cursor = Cursor::new(boundary, position);
        let number = cursor.number();
        assert!(number > 0 && i64::try_from(number).is_ok(), "{number}");
        assert_eq!(Cursor::from_number(number), Some(cursor));
    }
    for number in [0, 1, u64::MAX] {
        assert_eq!(Cursor::from_number(number), None, "{number}");
    }
}

#[test]
fn a_scan_of_an_unchanged_map_returns_each_field_once() {
    let generation = generation();
    for (kind, fields) in kinds(5000) {
        let (mut map, all) = filled(&generation, &fields);
        for count in [1, 2, 10, 333, 1000, usize::MAX / 2] {
            let seen = scan(&mut map, count, |_, _| {});
            assert!(seen.keys().eq(&all), "{kind}, count {count}");
            assert!(seen.values().all(|times| *times == 1), "{kind}, count {count}");
        }
    }
}

#[test]
fn a_field_that_stays_is_returned_whatever_is_written_meanwhile() {
    removal::this_is_the_main_thread();
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let generation = generation();
        for (kind, fields) in kinds(2000) {
            for count in [1, 10, 100] {
                let (mut map, all) = filled(&generation, &fields);
                // Half of the fields change: some are removed and set again, new ones come.
                let changing: Vec<&Vec<u8>> = all.iter().filter(|_| random.bool()).collect();
                let mut ever: BTreeSet<Vec<u8>> = all.clone();
                let seen = scan(&mut map, count, |map, _| {
                    for _ in 0..random.usize(..count * 2 + 2) {
                        let Some(field) = random.choice(&changing) else { return };
                        match random.u8(..3) {
                            0 => drop(map.remove(field).unwrap()),
                            1 => drop(map.set(field, b"another value").unwrap()),
                            _ => {
                                let mut new = (*field).clone();
                                new.truncate(random.usize(..=new.len()));
                                new.push(random.u8(..));
                                new.truncate(MAX_FIELD_BYTES);
                                if !all.contains(&new) {
                                    map.set(&new, b"new").unwrap();
                                    ever.insert(new);
                                }
                            }
                        }
                    }
                });
                let changing: BTreeSet<&Vec<u8>> = changing.into_iter().collect();
                let missing = all
                    .iter()
                    .filter(|field| !changing.contains(field) && !seen.contains_key(*field));
                assert_eq!(missing.count(), 0, "{kind}, count {count}, seed {seed}");
                assert!(
                    seen.keys().all(|field| ever.contains(field)),
                    "{kind}, count {count}, seed {seed}"
                );
            }
        }
    }
}

#[test]
fn a_scan_goes_on_if_what_it_returned_and_what_follows_is_removed() {
    removal::this_is_the_main_thread();
    let generation = generation();
    for (kind, fields) in kinds(3000) {
        let (mut map, all) = filled(&generation, &fields);
        // As clients that scan and remove do, and another that removes the field that the next step begins with.
        let mut removed = BTreeSet::new();
        let seen = scan(&mut map, 10, |map, step| {
            for (field, _) in &step.records {
                map.remove(field).unwrap();
            }
            let next = map.range((Bound::Unbounded, Bound::Unbounded)).unwrap().next();
            if let Some((field, _)) = next.transpose().unwrap() {
                map.remove(&field).unwrap();
                removed.insert(field);
            }
        });
        assert!(
            all.iter()
                .all(|field| seen.contains_key(field) != removed.contains(field)),
            "{kind}"
        );
        assert!(seen.values().all(|times| *times == 1), "{kind}");
    }
}

#[test]
fn a_cursor_is_valid_in_a_copy_and_after_the_map_has_grown() {
    let (one, other) = (generation(), generation());
    for (kind, fields) in kinds(20_000) {
        let (map, all) = filled(&one, &fields);
        let mut copy = map.copy_to((other.clone(), other.new_id().unwrap())).unwrap();
        let first = step(&map, 0, all.len() / 2, |_| true).unwrap();
        let returned = first.records.len();
        for field in 0..all.len() / 20 {
            let field = format!("0{field}:new").into_bytes();
            copy.set(&field, b"").unwrap();
        }
        let rest = step(&copy, first.next, usize::MAX / 2, |_| true).unwrap();
        assert_eq!(rest.next, 0, "{kind}");
        let expected = all.iter().skip(if first.next == 0 { 0 } else { returned });
        let rest: BTreeSet<&Vec<u8>> = rest.records.iter().map(|(field, _)| field).collect();
        assert!(expected.clone().all(|field| rest.contains(field)), "{kind}");
        assert!(
            first.next == 0 || rest.len() < expected.count() + all.len() / 20 + 10,
            "{kind}: it began again"
        );
    }
}

#[test]
fn an_unknown_cursor_begins_again() {
    let generation = generation();
    let (map, all) = filled(&generation, &kinds(1000)[0].1);
    for cursor in [1, 12_345_678, 1 << 53, i64::MAX as u64, u64::MAX] {
        let found = step(&map, cursor, 10, |_| true).unwrap();
        assert_eq!(found.records.first().map(|(field, _)| field), all.first(), "{cursor}");
    }
    // A cursor of another map leads to a place of this one, or to its begin.
    let (other, _) = filled(&generation, &kinds(1000)[1].1);
    let cursor = step(&other, 0, 500, |_| true).unwrap().next;
    let found = step(&map, cursor, 10, |_| true).unwrap();
    assert_eq!(found.records.first().map(|(field, _)| field), all.first());
}

#[test]
fn a_step_ends_with_its_bytes_and_returns_what_is_wanted() {
    let generation = generation();
    let mut map = new_map(&generation);
    for n in 0..100_u8 {
        map.set(&[n], &vec![n; 1 << 20]).unwrap();
    }
    let found = step(&map, 0, 1000, |_| true).unwrap();
    assert_eq!(found.records.len(), MAX_STEP_BYTES / (1 << 20));
    let (mut wanted, mut cursor) = (0, 0);
    loop {
        let found = step(&map, cursor, 7, |field| field[0] % 10 == 3).unwrap();
        assert!(
            found
                .records
                .iter()
                .all(|(field, value)| field[0] % 10 == 3 && value.len() == 1 << 20)
        );
        wanted += found.records.len();
        cursor = found.next;
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(wanted, 10);
}
