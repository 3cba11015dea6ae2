//! A wrapper that makes a store slower and less reliable: its errors, their effects, and minimum durations.

use std::io;
use std::time::{Duration, Instant};

use crate::store_support::{page, read, read_batch, refused, write_batch};
use leafpress_pages::store::{FaultyStore, MemoryStore, Operation, PageStore};

fn store() -> FaultyStore<MemoryStore> {
    let pages = (0..100).map(|n| page(n, 0, 1000));
    FaultyStore::new(MemoryStore::from_pages(pages).unwrap())
}

#[test]
fn does_nothing_unasked_but_count() {
    let store = store();
    for n in 0..100 {
        assert!(read(&store, n).unwrap() == page(n, 0, 1000));
    }
    store.write(3, &page(3, 1, 500)).unwrap();
    assert!(read_batch(&store, &[1, 2, 3]).iter().all(Result::is_ok));
    assert!(read_batch(&store, &[200])[0].is_err());
    assert!(write_batch(&store, &[(1, page(1, 1, 100)), (2, vec![])])[0].is_ok());
    store.remove(9).unwrap();
    store.sync().unwrap();
    let counters = store.counters();
    assert_eq!(
        (counters.reads, counters.read_batches, counters.read_bytes),
        (104, 2, 102_500)
    );
    assert_eq!(
        (counters.writes, counters.write_batches, counters.written_bytes),
        (3, 1, 600)
    );
    assert_eq!((counters.removes, counters.syncs, counters.injected), (1, 1, 0));
    assert_eq!(store.inner().len(), 100);
}

#[test]
fn every_third_fails() {
    let store = store();
    let numbers: Vec<u64> = (0..9).collect();
    let fails = |results: Vec<bool>| results.iter().map(|ok| u8::from(!ok)).collect::<Vec<_>>();
    let third = [0, 0, 1, 0, 0, 1, 0, 0, 1];
    store.fail_every(Operation::Read, 3);
    assert_eq!(fails(numbers.iter().map(|&n| read(&store, n).is_ok()).collect()), third);
    let batch = read_batch(&store, &numbers);
    assert_eq!(fails(batch.iter().map(Result::is_ok).collect()), third);
    for (n, bytes) in (0..).zip(batch) {
        if let Ok(bytes) = bytes {
            assert!(bytes == page(n, 0, 1000), "page {n} of a batch");
        }
    }
    let (kind, text) = refused((0..3).map(|n| read(&store, n)).collect::<io::Result<Vec<_>>>());
    assert_eq!(kind, io::ErrorKind::Other);
    assert!(text.contains("injected fault: read of page 2"), "{text}");
    store.fail_every(Operation::Read, 0);
    store.fail_every(Operation::Write, 3);
    store.fail_every(Operation::Remove, 3);
    let written = |n: &u64| store.write(*n, &page(*n, 1, 1000)).is_ok();
    assert_eq!(fails(numbers.iter().map(written).collect()), third);
    let pages: Vec<_> = numbers.iter().map(|&n| (n, page(n, 2, 1000))).collect();
    assert_eq!(
        fails(write_batch(&store, &pages).iter().map(Result::is_ok).collect()),
        third
    );
    for (&n, failed) in numbers.iter().zip(third) {
        let version = if failed == 1 { 0 } else { 2 };
        assert!(read(&store, n).unwrap() == page(n, version, 1000), "page {n}");
    }
    assert_eq!(fails(numbers.iter().map(|&n| store.remove(n).is_ok()).collect()), third);
    assert_eq!(
        fails(numbers.iter().map(|&n| read(&store, n).is_err()).collect()),
        third
    );
    assert_eq!(store.counters().injected, 3 + 3 + 1 + 3 + 3 + 3);
}

#[test]
fn a_switch_thrown_while_in_use() {
    let store = store();
    for operation in [
        Operation::Read,
        Operation::Write,
        Operation::Remove,
        Operation::Measure,
        Operation::Sync,
    ] {
        let works = |operation| match operation {
            Operation::Read => store.read(1, &mut [0; 1000]),
            Operation::Write => store.write(1, &[1; 1000]),
            Operation::Remove => store.remove(99),
            Operation::Measure => store.page_bytes(1).map(|_| ()),
            Operation::Sync => store.sync(),
            other => panic!("no test for {other:?}"),
        };
        works(operation).unwrap();
        store.fail_every(operation, 1);
        works(operation).unwrap_err();
        works(operation).unwrap_err();
        store.fail_every(operation, 0);
        works(operation).unwrap();
    }
}

#[test]
fn short_reads() {
    let store = store();
    store.short_read_every(2);
    let mut bytes = vec![0xaa; 1000];
    store.read(0, &mut bytes).unwrap();
    assert_eq!(refused(store.read(1, &mut bytes)).0, io::ErrorKind::UnexpectedEof);
    assert!(bytes[..500] == page(1, 0, 1000)[..500] && bytes[500..].iter().all(|&byte| byte == 0xee));
    let kinds: Vec<_> = read_batch(&store, &[0, 1, 2, 3])
        .into_iter()
        .map(|r| r.err().map(|e| e.kind()))
        .collect();
    let short = Some(io::ErrorKind::UnexpectedEof);
    assert_eq!(kinds, [None, short, None, short]);
}

#[test]
fn a_torn_write_leaves_half_of_each() {
    let store = store();
    store.fail_every(Operation::Write, 1);
    store.write(4, &page(4, 1, 1000)).unwrap_err();
    assert!(read(&store, 4).unwrap() == page(4, 0, 1000));
    store.set_torn_writes(true);
    store.write(4, &page(4, 1, 1000)).unwrap_err();
    let torn = read(&store, 4).unwrap();
    assert!(torn[..500] == page(4, 1, 1000)[..500] && torn[500..] == page(4, 0, 1000)[500..]);
    store.write(500, &page(4, 1, 1000)).unwrap_err();
    assert!(read(&store, 500).is_err());
}

#[test]
fn a_disk_that_fills() {
    let store = store();
    store.set_room_bytes(Some(2500));
    store.write(1, &page(1, 1, 1000)).unwrap();
    let batch = write_batch(
        &store,
        &[(2, page(2, 1, 1000)), (3, page(3, 1, 1000)), (4, page(4, 1, 500))],
    );
    let kinds: Vec<_> = batch.into_iter().map(|r| r.err().map(|e| e.kind())).collect();
    assert_eq!(kinds, [None, Some(io::ErrorKind::StorageFull), None]);
    assert_eq!(refused(store.write(5, &[1])).0, io::ErrorKind::StorageFull);
    store.set_room_bytes(None);
    store.write(5, &page(5, 1, 1000)).unwrap();
}

/// At least the requested duration: more depends on the machine.
#[test]
fn latency() {
    let store = store();
    let at_least = |us: u64, operation: &str, work: &dyn Fn()| {
        let start = Instant::now();
        work();
        assert!(
            start.elapsed() >= Duration::from_micros(us),
            "{operation}: {:?}",
            start.elapsed()
        );
    };
    for us in [20, 110, 500] {
        store.set_latency(Operation::Read, Duration::from_micros(us));
        store.set_latency(Operation::Write, Duration::from_micros(2 * us));
        store.set_queue_depth(10);
        at_least(us, "read", &|| drop(read(&store, 1)));
        at_least(2 * us, "write", &|| store.write(1, &[1; 1000]).unwrap());
        at_least(us, "batch", &|| drop(read_batch(&store, &[1; 10])));
        at_least(2 * us, "longer batch", &|| drop(read_batch(&store, &[1; 11])));
        at_least(4 * us, "writes", &|| {
            drop(write_batch(
                &store,
                &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(|n| (n, vec![1])),
            ))
        });
    }
    assert!(
        store.describe().contains("500 us more per read and 1000 us per write"),
        "{}",
        store.describe()
    );
}

/// A batch waits like one read, and mostly sleeps. Both are verified by processor time, which other programs do not
/// affect.
#[cfg(target_os = "linux")]
#[test]
fn waiting_keeps_no_processor_busy() {
    let processor_time = || {
        // SAFETY: zeros are a valid value of this struct of integers, to which the kernel may write.
        let mut time: libc::timespec = unsafe { std::mem::zeroed() };
        assert_eq!(
            unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) },
            0
        );
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let store = store();
    store.set_latency(Operation::Read, Duration::from_micros(2000));
    let (start, busy) = (Instant::now(), processor_time());
    for _ in 0..20 {
        assert!(read_batch(&store, &[1, 2, 3, 4]).iter().all(Result::is_ok));
    }
    let (waited, busy) = (start.elapsed(), processor_time() - busy);
    assert!(waited >= Duration::from_millis(40));
    assert!(busy < waited / 4, "{busy:?} of {waited:?}");
}
