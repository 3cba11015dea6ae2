//! A pass: threads compress the blocks of a batch, decompress them, and compare them with the originals.
//!
//! Each stage is done by all threads before the next begins. Tasks are distributed one by one, so that a slower thread
//! does fewer of them. Clocks are read when a thread begins, when it switches to another file, and when it ends.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use super::blocks::{BATCH_BYTES, Block, Blocks, raw_bytes};
use super::clock::{Clock, Spent};
use super::method::Method;
use crate::core::LabError;

/// Data that each thread compresses and decompresses before its clock starts.
const WARM_UP_BYTES: usize = 512 << 10;

/// Totals of a file's blocks, or of all files'.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub raw_bytes: u64,
    pub stored_bytes: u64,
    pub blocks: u64,
    /// Blocks that did not shrink.
    pub stored_blocks: u64,
    pub compress: Spent,
    pub decompress: Spent,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.raw_bytes += other.raw_bytes;
        self.stored_bytes += other.stored_bytes;
        self.blocks += other.blocks;
        self.stored_blocks += other.stored_blocks;
        self.compress += other.compress;
        self.decompress += other.decompress;
    }
}

/// Measurements of a pass. Several rounds over the sample are added up.
#[derive(Debug, Clone)]
pub(super) struct Pass {
    /// All files; the wall time is that of the thread that worked longest.
    pub all: Tally,
    /// Each file; the wall time is that of all threads together, over their number.
    pub files: Vec<Tally>,
}

/// Room for a batch, used again by each: fresh memory would be paid for while the clock runs.
///
/// Each block is stored in a buffer of its own, as it would be in a cache. Blocks end to end would be decoded faster
/// than any that is looked for: the CPU's prefetcher would have each of them ready.
#[derive(Default)]
pub(super) struct Room {
    stored: Vec<Vec<u8>>,
    /// The longest block that the buffers were made for.
    block_bytes: usize,
    decoded: Vec<u8>,
}

/// A block that went wrong.
struct Wrong {
    file: usize,
    number: u64,
    reason: String,
}

/// Blocks that one thread has in hand at a time.
struct Task<'t, 's> {
    blocks: &'t [Block<'s>],
    /// The stored blocks, in the same order.
    stored: &'t mut [Vec<u8>],
    decoded: &'t mut [u8],
}

/// A batch as its threads share it.
struct Batch<'t, 's> {
    method: &'t Method,
    tasks: Vec<Mutex<Task<'t, 's>>>,
    warm_up: &'t [Block<'s>],
    /// The next task of each stage.
    next: [AtomicUsize; 4],
    barrier: Barrier,
    cancel: &'t AtomicBool,
    wrong: Mutex<Option<Wrong>>,
    failed: AtomicBool,
    /// Initial bytes of the output buffer before decoding.
    erased: u8,
}

const COMPRESS: usize = 0;
const ERASE: usize = 1;
const DECOMPRESS: usize = 2;
const COMPARE: usize = 3;

/// Lets `threads` threads do a pass over the blocks. `number` is the pass's. `Ok(None)` when it was cancelled.
///
/// # Errors
/// [`LabError::Block`] when a codec fails or a byte is wrong, with the file's name from `name`; [`LabError::System`]
/// when no thread can be started.
pub(super) fn pass(
    method: &Method,
    blocks: &Blocks<'_>,
    (threads, number): (usize, usize),
    room: &mut Room,
    files: (usize, &dyn Fn(usize) -> String),
    cancel: &AtomicBool,
) -> Result<Option<Pass>, LabError> {
    let (count, name) = files;
    let mut pass = Pass {
        all: Tally::default(),
        files: vec![Tally::default(); count],
    };
    for tasks in blocks.batches(blocks.rounds(threads)) {
        room.prepare(&tasks, blocks.block_bytes);
        let batch = Batch::new(method, &tasks, number, threads, room, cancel);
        let clocks = batch.run(threads)?;
        let failed = batch.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(wrong) = failed {
            return Err(LabError::Block {
                codec: method.name(),
                file: name(wrong.file),
                block: wrong.number,
                block_bytes: blocks.block_bytes,
                reason: wrong.reason,
            });
        }
        if cancel.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let done = batch
            .tasks
            .into_iter()
            .map(|task| task.into_inner().unwrap_or_else(PoisonError::into_inner));
        pass.count(done);
        pass.time(&clocks, threads);
    }
    Ok(Some(pass))
}

impl Pass {
    fn count<'t, 's: 't>(&mut self, tasks: impl Iterator<Item = Task<'t, 's>>) {
        for task in tasks {
            for (block, stored) in task.blocks.iter().zip(task.stored) {
                let tally = Tally {
                    raw_bytes: block.raw.len() as u64,
                    stored_bytes: stored.len() as u64,
                    blocks: 1,
                    stored_blocks: u64::from(stored.len() == block.raw.len()),
                    ..Tally::default()
                };
                self.files[block.file] += tally;
                self.all += tally;
            }
        }
    }

    fn time(&mut self, clocks: &[[Clock; 2]], threads: usize) {
        let sum = |direction: usize| {
            let sums = clocks.iter().map(|pair| pair[direction].sum());
            sums.fold(Spent::default(), |all, one| Spent {
                wall: all.wall.max(one.wall),
                cpu: all.cpu + one.cpu,
            })
        };
        self.all.compress += sum(0);
        self.all.decompress += sum(1);
        let share = |spent: Spent| Spent {
            wall: spent.wall.div_f64(threads as f64),
            cpu: spent.cpu,
        };
        for [compress, decompress] in clocks {
            for (file, spent) in &compress.spans {
                self.files[*file].compress += share(*spent);
            }
            for (file, spent) in &decompress.spans {
                self.files[*file].decompress += share(*spent);
            }
        }
    }
}

impl Room {
    /// Room for these tasks, all of it touched.
    fn prepare(&mut self, tasks: &[&[Block<'_>]], block_bytes: usize) {
        let raw: usize = tasks.iter().map(|task| raw_bytes(task)).sum();
        if self.decoded.len() < raw {
            self.decoded = vec![0x5a; raw.max(BATCH_BYTES.min(raw * 2))];
        }
        if self.block_bytes != block_bytes {
            self.block_bytes = block_bytes;
            self.stored.clear();
        }
        let blocks = tasks.iter().copied().flatten();
        for (at, block) in blocks.enumerate() {
            // A codec requires a worst-case buffer before it knows that the block shrinks.
            let room = block.raw.len() + block.raw.len() / 4 + 256;
            match self.stored.get_mut(at) {
                Some(stored) if stored.capacity() >= room => {}
                Some(stored) => *stored = vec![0x5a; room],
                None => self.stored.push(vec![0x5a; room]),
            }
        }
    }
}

impl<'t, 's> Batch<'t, 's> {
    fn new(
        method: &'t Method,
        tasks: &'t [&'t [Block<'s>]],
        number: usize,
        threads: usize,
        room: &'t mut Room,
        cancel: &'t AtomicBool,
    ) -> Self {
        let (mut decoded, mut stored) = (room.decoded.as_mut_slice(), room.stored.as_mut_slice());
        let tasks: Vec<_> = tasks
            .iter()
            .map(|blocks| {
                let (own, rest) = std::mem::take(&mut decoded).split_at_mut(raw_bytes(blocks));
                let (own_stored, rest_stored) = std::mem::take(&mut stored).split_at_mut(blocks.len());
                (decoded, stored) = (rest, rest_stored);
                Mutex::new(Task {
                    blocks,
                    stored: own_stored,
                    decoded: own,
                })
            })
            .collect();
        let warm_up = tasks.first().map_or(&[][..], |task| lock(task).blocks);
        Self {
            method,
            tasks,
            warm_up,
            next: [const { AtomicUsize::new(0) }; 4],
            barrier: Barrier::new(threads),
            cancel,
            wrong: Mutex::new(None),
            failed: AtomicBool::new(false),
            // Another one each time: a byte that is never written is found though it may be right by chance once.
            erased: if number.is_multiple_of(2) { 0xa5 } else { 0x5a },
        }
    }

    /// Runs the threads; their clocks for compression and decompression.
    fn run(&self, threads: usize) -> Result<Vec<[Clock; 2]>, LabError> {
        let clocks = Mutex::new(Vec::with_capacity(threads));
        // Threads begin when all of them have started, or not at all.
        let gate = Mutex::new(false);
        let body = || {
            if *gate.lock().unwrap_or_else(PoisonError::into_inner) {
                let pair = self.work();
                clocks.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
            }
        };
        std::thread::scope(|scope| {
            let mut open = gate.lock().unwrap_or_else(PoisonError::into_inner);
            for number in 0..threads {
                if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, body) {
                    return Err(LabError::System(format!("cannot start thread {number}: {e}")));
                }
            }
            *open = true;
            Ok(())
        })?;
        Ok(clocks.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// One thread's part.
    fn work(&self) -> [Clock; 2] {
        let (mut compress, mut decompress) = (Clock::new(), Clock::new());
        self.warm_up();
        self.barrier.wait();
        self.stage(COMPRESS, |task| self.compress(task, &mut compress));
        compress.stop();
        self.barrier.wait();
        self.stage(ERASE, |task| {
            task.decoded.fill(self.erased);
            Ok(())
        });
        self.barrier.wait();
        self.stage(DECOMPRESS, |task| self.decompress(task, &mut decompress));
        decompress.stop();
        self.barrier.wait();
        self.stage(COMPARE, compare);
        [compress, decompress]
    }

    /// Brings the codec's code and tables, and the CPU's clock, to where they are in the middle of a long run.
    fn warm_up(&self) {
        let (mut compressed, mut decoded) = (Vec::new(), Vec::new());
        let mut done = 0;
        for block in self.warm_up.iter().cycle() {
            // An error here recurs where it is reported.
            if done >= WARM_UP_BYTES || self.stopped() {
                break;
            }
            compressed.clear();
            decoded.resize(block.raw.len(), 0);
            if self.method.compress(block.raw, &mut compressed).is_ok() {
                let _ = self.method.decompress(&compressed, &mut decoded);
            }
            done += block.raw.len().max(1);
        }
    }

    fn stopped(&self) -> bool {
        self.failed.load(Ordering::Relaxed) || self.cancel.load(Ordering::Relaxed)
    }

    /// Does tasks of a stage until there is none left.
    fn stage(&self, stage: usize, mut work: impl FnMut(&mut Task<'t, 's>) -> Result<(), Wrong>) {
        while !self.stopped() {
            let at = self.next[stage].fetch_add(1, Ordering::Relaxed);
            let Some(task) = self.tasks.get(at) else {
                break;
            };
            if let Err(wrong) = work(&mut lock(task)) {
                self.failed.store(true, Ordering::Relaxed);
                self.wrong
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert(wrong);
            }
        }
    }

    fn compress(&self, task: &mut Task<'t, 's>, clock: &mut Clock) -> Result<(), Wrong> {
        for (block, stored) in task.blocks.iter().zip(&mut *task.stored) {
            clock.on(block.file);
            stored.clear();
            self.method
                .compress(block.raw, stored)
                .map_err(|reason| wrong(block, format!("compress: {reason}")))?;
        }
        Ok(())
    }

    fn decompress(&self, task: &mut Task<'t, 's>, clock: &mut Clock) -> Result<(), Wrong> {
        let mut decoded = &mut *task.decoded;
        for (block, stored) in task.blocks.iter().zip(&*task.stored) {
            let (raw, rest) = decoded.split_at_mut(block.raw.len());
            decoded = rest;
            clock.on(block.file);
            self.method
                .decompress(stored, raw)
                .map_err(|reason| wrong(block, format!("decompress: {reason}")))?;
        }
        Ok(())
    }
}

fn wrong(block: &Block<'_>, reason: String) -> Wrong {
    Wrong {
        file: block.file,
        number: block.number,
        reason,
    }
}

/// Compares decoded bytes with the original.
fn compare(task: &mut Task<'_, '_>) -> Result<(), Wrong> {
    let mut decoded = &*task.decoded;
    for block in task.blocks {
        let (back, rest) = decoded.split_at(block.raw.len());
        decoded = rest;
        if back != block.raw {
            let at = block
                .raw
                .iter()
                .zip(back)
                .position(|(raw, back)| raw != back)
                .unwrap_or(0);
            let (was, is) = (block.raw[at], back[at]);
            let reason = format!("WRONG BYTES: byte {at} of the block came back as {is:#04x}, it was {was:#04x}");
            return Err(wrong(block, reason));
        }
    }
    Ok(())
}

fn lock<'g, 't, 's>(task: &'g Mutex<Task<'t, 's>>) -> MutexGuard<'g, Task<'t, 's>> {
    task.lock().unwrap_or_else(PoisonError::into_inner)
}
