//! Random operations on any store have the same results as on a map.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use crate::store_support::{create, methods, page, read, read_batch, scratch, write_batch};
use leafpress_pages::store::{DirectoryStore, FaultyStore, FileOptions, FileStore, MemoryStore, PageStore};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

const PAGES: u64 = 20;

#[derive(Debug, Clone)]
enum Op {
    Write(u64, usize),
    WriteBatch(Vec<(u64, usize)>),
    Remove(u64),
    ReadBatch(Vec<u64>),
    Reopen,
}

/// Mostly whole pages: lengths are multiples of 1/64.
fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![4 => Just(64_usize), 1 => 0..=66_usize]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        6 => (0..PAGES, lengths()).prop_map(|(n, len)| Op::Write(n, len)),
        2 => proptest::collection::btree_map(0..PAGES, lengths(), 0..PAGES as usize)
            .prop_map(|pages| Op::WriteBatch(pages.into_iter().collect())),
        3 => (0..PAGES + 2).prop_map(Op::Remove),
        2 => proptest::collection::vec(0..PAGES + 2, 0..100).prop_map(Op::ReadBatch),
        1 => Just(Op::Reopen),
    ];
    proptest::collection::vec(op, 1..60)
}

/// The expected contents of a store.
struct Model {
    pages: BTreeMap<u64, Vec<u8>>,
    len: u64,
    rule: Rule,
}

/// The lengths that a store accepts.
#[derive(Clone, Copy)]
enum Rule {
    Any {
        shortest: usize,
        longest: usize,
    },
    /// The length of a page; only the last may be shorter. Holes of a file are zeros.
    File {
        page_bytes: usize,
        end: u64,
    },
}

impl Model {
    fn new(rule: Rule) -> Self {
        Self {
            pages: BTreeMap::new(),
            len: 0,
            rule,
        }
    }

    fn longest(&self) -> usize {
        match self.rule {
            Rule::Any { longest, .. } => longest,
            Rule::File { page_bytes, .. } => page_bytes,
        }
    }

    /// Applies the write, or refuses it.
    fn write(&mut self, n: u64, bytes: &[u8]) -> bool {
        match &mut self.rule {
            Rule::Any { shortest, longest } => {
                if !(*shortest..=*longest).contains(&bytes.len()) {
                    return false;
                }
            }
            Rule::File { page_bytes, end } => {
                let whole = *page_bytes as u64;
                let last_is_short = !end.is_multiple_of(whole) && self.pages.contains_key(&(self.len - 1));
                let slot = end.saturating_sub(n * whole).min(whole);
                if bytes.is_empty()
                    || bytes.len() > *page_bytes
                    || (n + 1 < self.len && bytes.len() < *page_bytes)
                    || (n >= self.len && last_is_short)
                {
                    return false;
                }
                if n + 1 >= self.len && slot != bytes.len() as u64 {
                    *end = n * whole + bytes.len() as u64;
                }
            }
        }
        self.pages.insert(n, bytes.to_vec());
        self.len = self.len.max(n + 1);
        true
    }

    /// A file does not record which pages are absent.
    fn reopen(&mut self) {
        if let Rule::File { page_bytes, end } = self.rule {
            for n in 0..self.len {
                let len = (end - n * page_bytes as u64).min(page_bytes as u64) as usize;
                self.pages.entry(n).or_insert_with(|| vec![0; len]);
            }
        }
    }

    fn check(&self, store: &dyn PageStore, numbers: &[u64]) {
        for (n, bytes) in numbers.iter().zip(read_batch(store, numbers)) {
            let alone = read(store, *n);
            match self.pages.get(n) {
                Some(expected) => {
                    assert!(bytes.unwrap() == *expected, "page {n} of a batch");
                    assert!(alone.unwrap() == *expected, "page {n}");
                }
                None => {
                    assert_eq!(bytes.unwrap_err().kind(), io::ErrorKind::NotFound);
                    assert_eq!(alone.unwrap_err().kind(), io::ErrorKind::NotFound);
                }
            }
        }
    }
}

/// Runs the operations; `reopen` reopens the store, if that keeps its pages.
fn run(ops: &[Op], rule: Rule, mut reopen: impl FnMut(Option<Box<dyn PageStore>>) -> Box<dyn PageStore>) {
    let mut model = Model::new(rule);
    let mut store = reopen(None);
    let longest = model.longest();
    for (version, op) in (0..).zip(ops) {
        let bytes = |n: u64, part: usize| page(n, version, longest * part / 64);
        match op {
            Op::Write(n, part) => {
                let bytes = bytes(*n, *part);
                let taken = store.write(*n, &bytes);
                assert_eq!(taken.is_ok(), model.write(*n, &bytes), "{taken:?}");
            }
            Op::WriteBatch(pages) => {
                let pages: Vec<_> = pages.iter().map(|&(n, part)| (n, bytes(n, part))).collect();
                // The store chooses the order within a batch, and so which pages follow which.
                let any_short = pages.iter().any(|(_, bytes)| bytes.len() != longest)
                    || matches!(model.rule, Rule::File { end, .. } if end % longest as u64 != 0);
                for ((n, bytes), taken) in pages.iter().zip(write_batch(&store, &pages)) {
                    match (model.rule, taken.is_ok()) {
                        (Rule::Any { .. }, ok) => assert_eq!(ok, model.write(*n, bytes), "{taken:?}"),
                        (_, true) => assert!(model.write(*n, bytes), "page {n} of a batch"),
                        (_, false) => assert!(any_short, "page {n} of a batch: {taken:?}"),
                    }
                }
            }
            Op::Remove(n) => {
                store.remove(*n).unwrap();
                model.pages.remove(n);
            }
            Op::ReadBatch(numbers) => model.check(&store, numbers),
            Op::Reopen => {
                store = reopen(Some(store));
                model.reopen();
            }
        }
        assert_eq!(store.len(), model.len, "after {op:?}");
    }
    model.check(&store, &(0..PAGES + 2).collect::<Vec<_>>());
}

fn file(options: &FileOptions, path: &Path, page_bytes: usize, ops: &[Op]) {
    run(ops, Rule::File { page_bytes, end: 0 }, |old| {
        let store = match old {
            None => create(options, path, page_bytes),
            Some(_) => FileStore::open(path, page_bytes),
        };
        Box::new(FaultyStore::new(store.unwrap()))
    });
}

/// 40 cases, or the number in `PROPTEST_CASES`. Counter-examples are kept next to this file.
fn settings() -> ProptestConfig {
    ProptestConfig {
        cases: std::env::var("PROPTEST_CASES")
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(40),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("proptest-regressions"))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(settings())]

    #[test]
    fn files(ops in ops(), page_bytes in prop_oneof![Just(512_usize), Just(4096), Just(1000), Just(65536)]) {
        for (name, options) in methods() {
            let directory = scratch();
            file(&options, &directory.path().join(name), page_bytes, &ops);
        }
    }

    #[test]
    fn memory(ops in ops()) {
        run(&ops, Rule::Any { shortest: 1, longest: 2000 }, |old| match old {
            None => Box::new(MemoryStore::new(2000).unwrap()),
            Some(store) => store,
        });
    }

    #[test]
    fn directories(ops in ops()) {
        let directory = scratch();
        run(&ops, Rule::Any { shortest: 512, longest: 2048 }, |old| match old {
            // A reopened one renumbers its pages: see the tests of directories.
            Some(store) => store,
            None => Box::new(DirectoryStore::options().longest_page_bytes(2048).open(directory.path()).unwrap()),
        });
    }
}
