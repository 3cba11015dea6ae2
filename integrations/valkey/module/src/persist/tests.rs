//! Saved values are read back, and invalid ones refused.

use std::collections::VecDeque;

use leafpress::TreeError;
use proptest::prelude::*;

use super::block::{Means, put_record, seal};
use super::load::{LoadError, Source, load_from};
use super::save::{Sink, save_to};
use super::{ENCODING, Incomplete, KIND_MAP, KIND_TEXT};
use crate::store::databases::place_in;
use crate::store::faults::{Step, fail};
use crate::store::generation::Hold;
use crate::store::map::Map;
use crate::store::record_key::record_key;
use crate::store::settings::trees;
use crate::store::text::Text;
use crate::store::value::{Borrowed, Value};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Number(u64),
    Bytes(Vec<u8>),
}

#[derive(Debug, Default, Clone)]
struct Parts(VecDeque<Part>);

impl Sink for Parts {
    fn unsigned(&mut self, number: u64) {
        self.0.push_back(Part::Number(number));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.push_back(Part::Bytes(bytes.to_vec()));
    }
}

impl Source for Parts {
    type Bytes = Vec<u8>;

    fn unsigned(&mut self) -> Option<u64> {
        match self.0.pop_front()? {
            Part::Number(number) => Some(number),
            Part::Bytes(_) => None,
        }
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.0.pop_front()? {
            Part::Bytes(bytes) => Some(bytes),
            Part::Number(_) => None,
        }
    }

    fn place(&mut self) -> Result<(Hold, u64), TreeError> {
        place_in(0)
    }
}

fn saved(value: &Value) -> Parts {
    let mut parts = Parts::default();
    let borrowed = match value {
        Value::Map(map) => Borrowed::Map(map),
        Value::Text(text) => Borrowed::Text(text.borrow()),
    };
    save_to(&mut parts, &borrowed).unwrap();
    parts
}

fn records_of(map: &Map) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    map.each(|field, value| records.push((field.to_vec(), value.to_vec())))
        .unwrap();
    records
}

fn block(records: &[(&[u8], &[u8])]) -> Part {
    let (mut content, mut sealed) = (Vec::new(), Vec::new());
    records
        .iter()
        .for_each(|(field, value)| put_record(&mut content, field, value));
    seal(&content, &Means::default(), &mut sealed);
    Part::Bytes(sealed)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_map_comes_back(
        records in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..20),
            prop::collection::vec(any::<u8>(), 0..3000),
            1..100,
        ),
    ) {
        let mut map = Map::new(place_in(0).unwrap());
        for (field, value) in &records {
            map.set(field, value).unwrap();
        }
        let value = Value::Map(Box::new(map));
        match load_from(&mut saved(&value), ENCODING).unwrap() {
            Value::Map(map) => prop_assert!(records_of(&map).into_iter().eq(records)),
            Value::Text(_) => prop_assert!(false, "a map came back as a string"),
        }
    }

    #[test]
    fn a_damaged_value_is_refused_or_another(
        records in prop::collection::btree_map(
            prop::collection::vec(0_u8..3, 0..20),
            prop::collection::vec(any::<u8>(), 0..300),
            1..40,
        ),
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut map = Map::new(place_in(0).unwrap());
        for (field, value) in &records {
            map.set(field, value).unwrap();
        }
        let mut parts = saved(&Value::Map(Box::new(map)));
        let which = which.index(parts.0.len());
        match &mut parts.0[which] {
            Part::Number(number) => *number = u64::from(with),
            Part::Bytes(bytes) if cut => bytes.truncate(at.index(bytes.len())),
            Part::Bytes(bytes) => {
                let at = at.index(bytes.len());
                bytes[at] = with;
            }
        }
        // It does not panic; fields that load are in order.
        if let Ok(Value::Map(map)) = load_from(&mut parts, ENCODING) {
            let records = records_of(&map);
            prop_assert_eq!(records.len() as u64, map.len());
            prop_assert!(records.is_sorted_by(|a, b| a.0 < b.0));
        }
    }
}

#[test]
fn a_string_comes_back() {
    for len in [0, 1, 100, 65_535, 65_537, 1 << 20] {
        let bytes: Vec<u8> = (0..len).map(|i| (i / 7) as u8).collect();
        let text = Value::Text(Text::new(place_in(0).unwrap(), &bytes).unwrap());
        match load_from(&mut saved(&text), ENCODING).unwrap() {
            Value::Text(text) => assert_eq!(text.to_vec().unwrap(), bytes),
            Value::Map(_) => panic!("a string came back as a map"),
        }
    }
}

/// Nothing that was written of a value that cannot be read as a whole loads.
#[test]
fn a_value_that_cannot_be_read_is_not_saved() {
    let mut map = Map::new(place_in(0).unwrap());
    for n in 0..500_u32 {
        map.set(&n.to_be_bytes(), &[n as u8; 300]).unwrap();
    }
    let text = Text::new(place_in(0).unwrap(), &[7; 300]).unwrap();
    for value in [Borrowed::Map(&map), Borrowed::Text(text.borrow())] {
        for count in [1, 2, 250, 500] {
            let mut parts = Parts::default();
            fail(Step::Read, count);
            let saved = save_to(&mut parts, &value);
            fail(Step::Read, 0);
            match value {
                Borrowed::Text(_) if count > 1 => assert!(saved.is_ok()),
                _ => {
                    assert!(matches!(saved, Err(Incomplete::Tree(_))));
                    assert!(matches!(load_from(&mut parts, ENCODING), Err(LoadError::Cut)));
                }
            }
        }
    }
}

#[test]
fn a_value_with_a_missing_record_is_not_saved() {
    let generation = Hold::create(&trees()).unwrap();
    let mut map = Map::new((generation.clone(), 1));
    for field in [b"a", b"b", b"c"] {
        map.set(field, b"value").unwrap();
    }
    let text = Text::new((generation.clone(), 2), b"text").unwrap();
    for (id, field) in [(1, &b"b"[..]), (2, b"")] {
        assert!(generation.tree().remove(&record_key(id, field).unwrap()).unwrap());
    }
    let missing = |value: &Borrowed<'_>| match save_to(&mut Parts::default(), value) {
        Err(Incomplete::Missing { found, counted }) => (found, counted),
        other => panic!("{other:?}"),
    };
    assert_eq!(missing(&Borrowed::Map(&map)), (2, 3));
    assert_eq!(missing(&Borrowed::Text(text.borrow())), (0, 1));
}

#[test]
fn rejects_invalid_values() {
    let map = |parts: Vec<Part>| {
        let mut all = Parts(VecDeque::from([Part::Number(KIND_MAP)]));
        all.0.extend(parts);
        load_from(&mut all, ENCODING)
    };
    let one: (&[u8], &[u8]) = (b"a", b"1");
    let two: (&[u8], &[u8]) = (b"b", b"2");
    assert!(map(vec![Part::Number(2), block(&[one]), block(&[two])]).is_ok());
    // No fields, fewer, more, unordered, twice, in two blocks, none in a block.
    for (fields, blocks) in [
        (0, vec![]),
        (0, vec![block(&[one])]),
        (1, vec![block(&[one, two])]),
        (2, vec![block(&[two, one])]),
        (2, vec![block(&[one, one])]),
        (2, vec![block(&[two]), block(&[one])]),
        (2, vec![block(&[one]), block(&[one])]),
        (2, vec![block(&[one]), block(&[])]),
    ] {
        let mut parts = vec![Part::Number(fields)];
        parts.extend(blocks);
        assert!(matches!(map(parts.clone()), Err(LoadError::Fields)), "{parts:?}");
    }
    // A number of fields that no memory has room for is only a number.
    assert!(matches!(
        map(vec![Part::Number(u64::MAX), block(&[one])]),
        Err(LoadError::Cut)
    ));
    let long = vec![b'f'; 2000];
    assert!(matches!(
        map(vec![Part::Number(1), block(&[(&long, b"")])]),
        Err(LoadError::Tree(_))
    ));
    assert!(matches!(
        load_from(&mut Parts::default(), ENCODING),
        Err(LoadError::Cut)
    ));
    assert!(matches!(
        load_from(&mut Parts::default(), 7),
        Err(LoadError::Version(7))
    ));
    let kind = |kind| load_from(&mut Parts(VecDeque::from([Part::Number(kind)])), ENCODING);
    assert!(matches!(kind(9), Err(LoadError::Kind(9))));
    assert!(matches!(kind(KIND_TEXT), Err(LoadError::Cut)));
}
