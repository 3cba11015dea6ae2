//! Compares maps and strings with a model, without a server.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::chunks::CHUNK;
use super::databases::{Databases, place_in};
use super::faults;
use super::generation::Hold;
use super::map::{Map, Write};
use super::number::{FloatError, add_floats, check_float, integer};
use super::record_key::FieldRange;
use super::removal;
use super::settings::trees;
use super::text::Text;
use super::value::{Borrowed, BorrowedMut, Value};
use super::{MAX_BYTES, MAX_FIELD_BYTES};

fn generation() -> Hold {
    Hold::create(&trees()).unwrap()
}

fn place(generation: &Hold) -> (Hold, u64) {
    (generation.clone(), generation.new_id().unwrap())
}

fn counted(generation: &Hold) -> (u64, u64, u64) {
    use std::sync::atomic::Ordering::Relaxed;
    let counts = generation.counts();
    let both = [&counts.maps, &counts.texts];
    (
        both.map(|counts| counts.keys.load(Relaxed)).iter().sum(),
        both.map(|counts| counts.records.load(Relaxed)).iter().sum(),
        both.map(|counts| counts.user_bytes.load(Relaxed)).iter().sum(),
    )
}

/// A removal of a range that fails after any number of its parts: what is gone is counted, and is what is below the
/// reported field.
#[test]
fn what_a_failed_removal_of_a_range_has_removed_is_counted() {
    removal::this_is_the_main_thread();
    let fields: Vec<String> = (0..20_000).map(|n| format!("field:{n:06}")).collect();
    let range = (
        Bound::Included(b"field:000100".as_slice()),
        Bound::Excluded(b"field:019000".as_slice()),
    );
    let in_range = |field: &[u8]| (b"field:000100".as_slice()..b"field:019000".as_slice()).contains(&field);
    let mut failed = 0;
    for parts in 1.. {
        let generation = generation();
        // A neighbour, which stays.
        let mut after = Map::new(place(&generation));
        let mut map = Map::new(place(&generation));
        after.set(b"", b"x").unwrap();
        let mut model = Model::new();
        for (n, field) in fields.iter().enumerate() {
            map.set(field.as_bytes(), &[n as u8; 20]).unwrap();
            model.insert(field.clone().into_bytes(), vec![n as u8; 20]);
        }
        let mut end = None;
        faults::fail(faults::Step::Write, parts);
        let outcome = map.remove_range(range, |field| end = Some(field.map(<[u8]>::to_vec)));
        faults::fail(faults::Step::Write, 0);
        let end = end.unwrap();
        model.retain(|field, _| !in_range(field) || end.as_ref().is_some_and(|end| field >= end));
        check(&map, &model);
        check(&after, &Model::from([(Vec::new(), b"x".to_vec())]));
        let bytes: usize = model.iter().map(|(field, value)| field.len() + value.len()).sum();
        assert_eq!(counted(&generation), (2, model.len() as u64 + 1, bytes as u64 + 1));
        if outcome.is_ok() {
            assert_eq!(model.len(), 100 + 1000);
            break;
        }
        failed += 1;
        // The rest of the range goes later.
        assert_eq!(map.remove_range(range, |_| {}).unwrap(), model.len() as u64 - 1100);
    }
    assert!(failed > 0);
}

/// Removes waiting values until `records` records are left. Other tests may remove the same values meanwhile.
fn remove_until(generation: &Hold, records: usize) {
    let begin = Instant::now();
    while generation.tree().len() > records && begin.elapsed() < Duration::from_secs(20) {
        removal::step(Duration::from_micros(100)).unwrap();
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn check(map: &Map, model: &Model) {
    assert_eq!(map.len(), model.len() as u64);
    let bytes: usize = model.iter().map(|(field, value)| field.len() + value.len()).sum();
    assert_eq!(map.user_bytes(), bytes as u64);
    let mut all = Vec::new();
    map.each(|field, value| all.push((field.to_vec(), value.to_vec())))
        .unwrap();
    assert!(all.iter().map(|(f, v)| (f, v)).eq(model.iter()), "{all:?} {model:?}");
}

#[derive(Debug, Clone)]
enum Step {
    Set(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
    RemoveRange(Vec<u8>, Vec<u8>),
    Range(Bound<Vec<u8>>, Bound<Vec<u8>>),
    Copy,
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(255)], 0..5),
        1 => Just(vec![b'x'; MAX_FIELD_BYTES]),
        1 => Just(vec![255; MAX_FIELD_BYTES]),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let long = prop_oneof![field(), Just(vec![255; MAX_FIELD_BYTES + 7])];
    prop_oneof![
        Just(Bound::Unbounded),
        long.clone().prop_map(Bound::Included),
        long.prop_map(Bound::Excluded)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        6 => (field(), value).prop_map(|(f, v)| Step::Set(f, v)),
        3 => field().prop_map(Step::Remove),
        1 => (field(), field()).prop_map(|(a, b)| Step::RemoveRange(a, b)),
        2 => (bound(), bound()).prop_map(|(a, b)| Step::Range(a, b)),
        1 => Just(Step::Copy),
    ]
}

fn as_slices<'f>(from: &'f Bound<Vec<u8>>, to: &'f Bound<Vec<u8>>) -> FieldRange<'f> {
    (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice))
}

/// Returns the part of a model in a range, without ranges that the standard library panics on.
fn in_range(model: &Model, (from, to): FieldRange<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let above = |field: &[u8]| match from {
        Bound::Unbounded => true,
        Bound::Included(from) => field >= from,
        Bound::Excluded(from) => field > from,
    };
    let below = |field: &[u8]| match to {
        Bound::Unbounded => true,
        Bound::Included(to) => field <= to,
        Bound::Excluded(to) => field < to,
    };
    let records = model.iter().filter(|(field, _)| above(field) && below(field));
    records.map(|(field, value)| (field.clone(), value.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_map_is_as_its_model(steps in prop::collection::vec(step(), 1..120)) {
        removal::this_is_the_main_thread();
        let generation = generation();
        // Neighbours on both sides, which must stay unchanged.
        let mut before = Map::new(place(&generation));
        let mut map = Map::new(place(&generation));
        let mut after = Map::new(place(&generation));
        for neighbour in [&mut before, &mut after] {
            neighbour.set(b"", b"x").unwrap();
            neighbour.set(&[255; MAX_FIELD_BYTES], b"y").unwrap();
        }
        let mut model = Model::new();
        for step in steps {
            match step {
                Step::Set(field, value) => {
                    let outcome = map.set(&field, &value).unwrap();
                    let expected = if model.insert(field, value).is_none() { Write::Added } else { Write::Replaced };
                    prop_assert_eq!(outcome, expected);
                }
                Step::Remove(field) => {
                    prop_assert_eq!(map.remove(&field).unwrap(), model.remove(&field).is_some());
                }
                Step::RemoveRange(from, to) => {
                    let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
                    let gone = in_range(&model, range);
                    prop_assert_eq!(map.remove_range(range, |_| {}).unwrap(), gone.len() as u64);
                    gone.iter().for_each(|(field, _)| drop(model.remove(field)));
                }
                Step::Range(from, to) => {
                    let range = as_slices(&from, &to);
                    let found: Vec<_> = map.range(range).unwrap().collect::<Result<_, _>>().unwrap();
                    let back: Vec<_> = map.range(range).unwrap().rev().collect::<Result<_, _>>().unwrap();
                    let expected = in_range(&model, range);
                    prop_assert_eq!(&found, &expected);
                    prop_assert!(back.iter().rev().eq(&expected));
                }
                Step::Copy => {
                    let copy = map.copy_to(place(&generation)).unwrap();
                    check(&copy, &model);
                }
            }
            check(&map, &model);
        }
        for field in model.keys() {
            prop_assert_eq!(map.len_of(field).unwrap(), model.get(field).map(Vec::len));
            prop_assert!(map.contains(field).unwrap());
        }
        drop(map);
        remove_until(&generation, 4);
        prop_assert_eq!(generation.tree().len(), 4);
        prop_assert_eq!((before.len(), after.len()), (2, 2));
        prop_assert_eq!(counted(&generation), (2, 4, 2 * MAX_FIELD_BYTES as u64 + 4));
    }

    #[test]
    fn a_string_reports_its_length(lens in prop::collection::vec(
        prop_oneof![0_usize..300, CHUNK - 3..CHUNK + 3, 65_530_usize..65_540], 1..6)) {
        removal::this_is_the_main_thread();
        let generation = generation();
        let mut text = Text::new(place(&generation), b"first").unwrap();
        for len in lens {
            let value: Vec<u8> = (0..len).map(|i| i as u8).collect();
            if !text.set(&value).unwrap() {
                text = Text::new(place(&generation), &value).unwrap();
            }
            prop_assert_eq!(text.length().unwrap(), len);
            prop_assert_eq!(text.to_vec().unwrap(), value);
            prop_assert_eq!(counted(&generation), (1, 1, len as u64));
            let raw = Value::Text(text).into_raw();
            // SAFETY: the pointer is the value's, which nothing changes meanwhile.
            match unsafe { Borrowed::of(raw) } {
                Borrowed::Text(borrowed) => prop_assert_eq!(borrowed.length().unwrap(), len),
                Borrowed::Map(_) => prop_assert!(false, "a string is not a map"),
            }
            // SAFETY: taken back once.
            text = match unsafe { Value::from_raw(raw) } {
                Value::Text(text) => text,
                Value::Map(_) => unreachable!("a string is not a map"),
            };
        }
        drop(text);
        prop_assert_eq!(generation.tree().len(), 0);
        prop_assert_eq!(counted(&generation), (0, 0, 0));
    }

    #[test]
    fn a_part_of_a_long_string_is_written_and_read(
        len in CHUNK + 1..3 * CHUNK,
        writes in prop::collection::vec(
            (0..4 * CHUNK, prop_oneof![1..100_usize, CHUNK - 2..2 * CHUNK + 2], any::<u8>()),
            1..8,
        ),
    ) {
        removal::this_is_the_main_thread();
        let generation = generation();
        let mut model: Vec<u8> = (0..len).map(|i| (i / 3) as u8).collect();
        let text = Text::new(place(&generation), &model).unwrap();
        let neighbour = Text::new(place(&generation), b"neighbour").unwrap();
        for (at, len, byte) in writes {
            let bytes = vec![byte; len];
            prop_assert!(text.write_long(at, &bytes, &mut 0).unwrap());
            model.resize(model.len().max(at + len), 0);
            model[at..at + len].copy_from_slice(&bytes);
            prop_assert_eq!(text.length().unwrap(), model.len());
            prop_assert!(text.to_vec().unwrap() == model);
            let range = at / 2..(at / 2 + 10 + len / 3).min(model.len());
            let part = text.part_with(range.clone(), <[u8]>::to_vec).unwrap();
            prop_assert!(part.as_deref() == Some(&model[range]));
            prop_assert_eq!(counted(&generation), (2, 2, model.len() as u64 + 9));
        }
        prop_assert!(!neighbour.write_long(0, b"x", &mut 0).unwrap());
        prop_assert!(neighbour.to_vec().unwrap() == b"neighbour");
        let copy = text.copy_to(place(&generation)).unwrap();
        prop_assert!(copy.to_vec().unwrap() == model);
        drop(copy);
        drop(text);
        prop_assert_eq!(generation.tree().len(), 1);
    }
}

#[test]
fn a_long_string_past_the_limit_is_refused_and_unchanged() {
    let generation = generation();
    let text = Text::new(place(&generation), &vec![1; CHUNK + 1]).unwrap();
    for (at, len) in [(MAX_BYTES, 1), (usize::MAX, 10), (MAX_BYTES - 9, 10)] {
        assert!(matches!(
            text.write_long(at, &vec![2; len], &mut 0),
            Err(leafpress::TreeError::ValueTooLong { .. })
        ));
    }
    assert_eq!(text.to_vec().unwrap(), vec![1; CHUNK + 1]);
    assert!(matches!(
        Text::new(place(&generation), &vec![0; MAX_BYTES + 1]),
        Err(leafpress::TreeError::ValueTooLong { .. })
    ));
}

#[test]
fn a_map_survives_its_pointer() {
    let mut map = Map::new(place_in(3).unwrap());
    map.set(b"field", b"value").unwrap();
    let raw = Value::Map(Box::new(map)).into_raw();
    // SAFETY: the pointer is the value's, and nothing else refers to it.
    match unsafe { BorrowedMut::of(raw) } {
        BorrowedMut::Map(map) => drop(map.set(b"other", b"").unwrap()),
        BorrowedMut::Text => panic!("a map is not a string"),
    }
    // SAFETY: taken back once.
    match unsafe { Value::from_raw(raw) } {
        Value::Map(map) => assert_eq!(map.len(), 2),
        Value::Text(_) => panic!("a map is not a string"),
    }
}

#[test]
fn what_is_too_long_is_refused_and_nothing_changes() {
    let generation = generation();
    let mut map = Map::new(place(&generation));
    assert!(matches!(
        map.set(&[0; MAX_FIELD_BYTES + 1], b""),
        Err(leafpress::TreeError::KeyTooLong { .. })
    ));
    assert!(matches!(
        map.set(b"", &vec![0; MAX_BYTES + 1]),
        Err(leafpress::TreeError::ValueTooLong { .. })
    ));
    assert!(!map.contains(&[0; MAX_FIELD_BYTES + 1]).unwrap());
    assert!(map.is_empty());
    assert_eq!(counted(&generation), (1, 0, 0));
}

#[test]
fn a_map_that_another_thread_frees_goes_in_steps_and_is_uncounted_at_once() {
    let generation = generation();
    let mut map = Map::new(place(&generation));
    for i in 0..5000_u32 {
        map.set(&i.to_be_bytes(), b"value").unwrap();
    }
    // As the server's thread for lazy frees does.
    std::thread::spawn(move || drop(Value::Map(Box::new(map))))
        .join()
        .unwrap();
    assert_eq!(counted(&generation), (0, 0, 0));
    assert_eq!(generation.tree().len(), 5000);
    removal::step(Duration::from_nanos(1)).unwrap();
    assert!(generation.tree().len() > 4000);
    remove_until(&generation, 0);
    assert_eq!(generation.tree().len(), 0);
}

#[test]
fn a_closed_generation_goes_with_its_last_value_on_any_thread() {
    let generation = generation();
    let mut map = Map::new(place(&generation));
    map.set(b"a", b"b").unwrap();
    let text = Text::new(place(&generation), b"c").unwrap();
    generation.close();
    assert_eq!(generation.holds(), 3);
    std::thread::spawn(move || drop(Value::Map(Box::new(map))))
        .join()
        .unwrap();
    drop(text);
    assert_eq!(generation.holds(), 1);
    // Nothing was removed one by one.
    assert_eq!(generation.tree().len(), 2);
}

#[test]
fn databases_swap_flush_and_load_aside() {
    let mut databases = Databases::new();
    let (zero, _) = databases.place(0, false).unwrap();
    let (one, _) = databases.place(1, false).unwrap();
    assert_ne!(zero.serial(), one.serial());
    databases.swap(0, 1);
    assert_eq!(databases.place(0, false).unwrap().0.serial(), one.serial());
    databases.flush(0);
    assert!(one.is_closed() && !zero.is_closed());
    assert_eq!(one.holds(), 1);

    databases.begin_aside();
    let (loaded, _) = databases.place(1, true).unwrap();
    assert_eq!(databases.place(1, false).unwrap().0.serial(), zero.serial());
    assert_ne!(loaded.serial(), zero.serial());
    databases.end_aside(true);
    assert!(zero.is_closed() && !loaded.is_closed());
    assert_eq!(databases.place(1, false).unwrap().0.serial(), loaded.serial());

    databases.begin_aside();
    let (abandoned, _) = databases.place(1, true).unwrap();
    databases.end_aside(false);
    assert!(abandoned.is_closed() && !loaded.is_closed());

    databases.renew();
    let (newer, _) = databases.place(1, false).unwrap();
    assert_ne!(newer.serial(), loaded.serial());
    drop(loaded);
    assert_eq!(databases.totals().generations, 2);
    databases.drop_unused();
    assert_eq!(databases.totals().generations, 1);
    databases.flush(-1);
    assert!(newer.is_closed());
}

#[test]
fn integers_are_what_the_servers_take() {
    for (text, number) in [
        ("0", Some(0)),
        ("-1", Some(-1)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-0", None),
        ("01", None),
        ("+1", None),
        (" 1", None),
        ("1 ", None),
        ("", None),
        ("-", None),
        ("1.0", None),
    ] {
        assert_eq!(integer(text.as_bytes()), number, "{text}");
    }
}

#[test]
fn floats_add_up_as_in_the_servers() {
    for (a, b, sum) in [
        ("10.5", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("0", "-0", "0"),
        ("1", "-1", "0"),
        ("3", "1.000000000000000005", "4.00000000000000001"),
    ] {
        assert_eq!(
            add_floats(a.as_bytes(), b.as_bytes()).unwrap(),
            sum.as_bytes(),
            "{a} + {b}"
        );
    }
    assert_eq!(check_float(b"nan"), Err(FloatError::NotANumber));
    assert_eq!(check_float(b""), Err(FloatError::NotANumber));
    assert_eq!(check_float(b" 1"), Err(FloatError::NotANumber));
    assert_eq!(check_float(b"1 "), Err(FloatError::NotANumber));
    assert_eq!(check_float(b"inf"), Err(FloatError::NotFinite));
    assert_eq!(check_float(&[b'1'; 6000]), Err(FloatError::NotANumber));
    assert_eq!(add_floats(b"1e4932", b"1e4932"), Err(FloatError::NotFinite));
}
