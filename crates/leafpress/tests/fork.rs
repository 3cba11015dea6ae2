//! Processes that fork. A child, which has only its own thread, can read trees with upkeep by the caller. Of other
//! trees it builds its own.
#![cfg(unix)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use leafpress::{Cache, Tree, Upkeep};

const RECORDS: u32 = 12_000;
const FORKS: u32 = 50;
const LIMIT: Duration = Duration::from_secs(600);

fn value(n: u32, round: u32) -> Vec<u8> {
    let text = format!(
        "Package: lib{n}\nRound: {round}\nMaintainer: someone{}@example.org\n",
        n % 23
    );
    text.bytes().cycle().take(60 + n as usize % 300).collect()
}

/// A tree and its expected contents: each record as it was last written.
struct Filled {
    tree: Tree,
    rounds: Vec<u32>,
}

impl Filled {
    fn new(codec: &str) -> Self {
        let builder = Tree::builder().codec(codec.parse().unwrap()).upkeep(Upkeep::Caller);
        let mut filled = Self {
            tree: builder.build().unwrap(),
            rounds: vec![0; RECORDS as usize],
        };
        (0..RECORDS).for_each(|n| filled.put(n, 0));
        filled
    }

    fn put(&mut self, n: u32, round: u32) {
        self.rounds[n as usize] = round;
        self.tree.insert(&n.to_be_bytes(), &value(n, round)).unwrap();
    }

    fn check(&self) {
        let mut records = self.tree.iter();
        for (n, round) in (0..RECORDS).zip(&self.rounds) {
            let (key, found) = records.next().unwrap().unwrap();
            assert_eq!((key.as_slice(), found), (n.to_be_bytes().as_slice(), value(n, *round)));
            assert_eq!(self.tree.get(&key).unwrap().unwrap(), value(n, *round));
        }
        assert!(records.next().is_none());
    }
}

/// Forks, runs `work` in the child, and waits until it has ended.
fn fork(work: impl FnOnce()) {
    // SAFETY: the child has only the forking thread, and runs nothing but `work`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        let status = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(()) => 0,
            Err(_) => 1,
        };
        // SAFETY: the call only ends the process.
        unsafe { libc::_exit(status) };
    }
    let begin = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: the child was forked by this process, and `status` is valid for writes.
        let ended = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        assert!(ended >= 0, "{}", std::io::Error::last_os_error());
        if ended == child {
            break;
        }
        if begin.elapsed() > LIMIT {
            // SAFETY: the child was forked by this process and not reaped yet, so its id is not reused.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: the child was forked by this process, and `status` is valid for writes.
            unsafe { libc::waitpid(child, &mut status, 0) };
            panic!("the child hangs");
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
        "the child's status is {status}"
    );
}

#[test]
fn a_child_reads_all_while_a_training_runs_and_between_steps() {
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut during_training, mut between_steps) = (0, 0);
    for codec in ["lz4", "zstd:3"] {
        let mut filled = Filled::new(codec);
        for round in 1..=FORKS / 2 {
            for _ in 0..200 {
                filled.put(rng.u32(..RECORDS), round);
            }
            assert!(filled.tree.request_training());
            let waits_for_training = round % 3 > 0;
            // A random state before, during or after the training.
            let mut steps = rng.u32(1..300);
            while if waits_for_training {
                !filled.tree.is_training()
            } else {
                steps > 0
            } {
                filled.tree.run_upkeep(Duration::ZERO).unwrap();
                steps = steps.saturating_sub(1);
            }
            if waits_for_training {
                std::thread::sleep(Duration::from_micros(rng.u64(..20_000)));
            }
            if filled.tree.is_training() {
                during_training += 1;
            } else {
                between_steps += 1;
            }
            fork(|| filled.check());
            // The parent continues to write.
            filled.put(rng.u32(..RECORDS), round);
            while filled.tree.run_upkeep(Duration::from_micros(200)).unwrap() || filled.tree.is_training() {}
        }
        filled.check();
        filled.tree.validate().unwrap();
        assert_eq!(filled.tree.stats().bg_panics, 0);
    }
    assert!(
        during_training >= FORKS / 2 && between_steps >= FORKS / 4,
        "{during_training} {between_steps}"
    );
}

/// Uses and drops a tree and a cache with threads.
fn work_with_own() {
    let tree = Tree::builder().background_threads(2).build().unwrap();
    let cache = Cache::builder().memory(8 << 20).build().unwrap();
    for n in 0..3000_u32 {
        tree.insert(&n.to_be_bytes(), &value(n, 1)).unwrap();
        cache.insert(&n.to_be_bytes(), &value(n, 1)).unwrap();
    }
    tree.settle().unwrap();
    cache.settle().unwrap();
    assert_eq!(tree.get(&7_u32.to_be_bytes()).unwrap().unwrap(), value(7, 1));
    assert_eq!(cache.get(&7_u32.to_be_bytes()).unwrap().unwrap(), value(7, 1));
}

#[test]
fn a_forked_child_can_make_its_own_next_to_its_parents() {
    let mut rng = fastrand::Rng::with_seed(11);
    for n in 0..FORKS {
        // Their threads are somewhere between their start and their first wait.
        let tree = Tree::builder().background_threads(2).build().unwrap();
        let cache = Cache::builder().memory(8 << 20).build().unwrap();
        tree.insert(&n.to_be_bytes(), &value(n, 0)).unwrap();
        cache.insert(&n.to_be_bytes(), &value(n, 0)).unwrap();
        std::thread::sleep(Duration::from_micros(rng.u64(..500)));
        fork(work_with_own);
    }
}

/// `std` has a lock that each of its threads takes at its start and end: a child may inherit it locked.
#[test]
fn a_child_makes_its_own_whatever_threads_its_parent_starts_meanwhile() {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| ())).collect();
                    threads.into_iter().for_each(|thread| thread.join().unwrap());
                }
            });
        }
        let starts_threads = || {
            let tree = Tree::builder().background_threads(2).build().unwrap();
            tree.insert("key", "value").unwrap();
            tree.settle().unwrap();
        };
        let forks = catch_unwind(|| (0..20 * FORKS).for_each(|_| fork(starts_threads)));
        is_over.store(true, Ordering::SeqCst);
        forks.unwrap();
    });
}

/// Returns whether the file is locked by another descriptor.
fn is_locked(path: &std::path::Path) -> bool {
    use std::os::fd::AsRawFd;

    let file = std::fs::File::open(path).unwrap();
    // SAFETY: the descriptor is open, and no memory is involved.
    let is_locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0;
    // SAFETY: the descriptor is open, and no memory is involved. The lock is released explicitly, since a child that
    // another test forks meanwhile would keep it.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
    is_locked
}

/// Worker processes of a program keep running when it closes a cache, and it can open the cache again.
#[test]
fn a_child_does_not_keep_the_file_of_a_closed_cache_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cache");
    let open = || {
        let disk = leafpress::cache::Disk::file(&path, 8 << 20);
        Cache::builder().memory(4 << 20).disk(disk).build()
    };
    let cache = open().unwrap();
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for both descriptors.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the child only makes system calls.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: the descriptors are open, and the buffer has room for a byte. The read returns when the parent has
        // closed its end.
        unsafe {
            libc::close(ends[1]);
            libc::read(ends[0], (&raw mut ends).cast(), 1);
            libc::_exit(0);
        }
    }
    assert!(is_locked(&path));
    cache.close().unwrap();
    let is_locked_still = is_locked(&path);
    let opened = open();
    // SAFETY: nothing else uses the descriptor, and the child was forked by this process.
    unsafe {
        libc::close(ends[1]);
        libc::waitpid(child, std::ptr::null_mut(), 0);
        libc::close(ends[0]);
    }
    assert!(!is_locked_still);
    drop(opened.unwrap());
}

/// A child that drops its copy of a store leaves the lock to the parent.
#[test]
fn a_child_does_not_unlock_its_parents_file() {
    use std::mem::ManuallyDrop;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages");
    let options = leafpress::store::FileStore::options().exclusive(true);
    let mut store = ManuallyDrop::new(options.create(&path, 4096).unwrap());
    // SAFETY: this is the child's copy, which is dropped once.
    fork(|| unsafe { ManuallyDrop::drop(&mut store) });
    assert!(is_locked(&path));
    drop(ManuallyDrop::into_inner(store));
    assert!(!is_locked(&path));
}
