//! The raw space: frames for uncompressed pages.
//!
//! Pages of similar length share a size class with frames of one length. Frames are allocated from runs of whole system
//! pages, so that an empty run can be returned to the system. Whole runs are charged to the budget, used or free.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use leafpress_base::mem::mapping::{Mapping, page_bytes};
use leafpress_base::sync::Mutex;

/// Alignment of frames; frames whose length is a multiple of a larger power of two have a larger one.
const ALIGNMENT: usize = 64;
/// Maximum frames per run.
const MAX_FRAMES: usize = 64;
/// Memory is mapped in parts of about this size.
const PART_BYTES: usize = if cfg!(miri) { 1 << 20 } else { 64 << 20 };

/// A frame with an exclusive owner, for a page of some length: its bytes are zero, or left over from its previous use.
#[derive(Debug)]
pub(crate) struct Frame<'f> {
    start: NonNull<u8>,
    run: u32,
    len: usize,
    /// The memory is mapped while the frames exist.
    of: PhantomData<&'f Frames>,
}

impl<'f> Frame<'f> {
    /// The page's bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: `Frames::allocate` gave the frame of at least `len` bytes to one owner; mapped memory is initialised.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Returns its address, its run, and the page's length, to be stored in an entry.
    pub(crate) fn into_parts(self) -> (NonNull<u8>, u32, usize) {
        (self.start, self.run, self.len)
    }

    /// Reassembles a frame from its parts.
    ///
    /// # Safety
    /// The parts must be those of a frame of `frames` that was not reassembled since, and its bytes must have no users.
    pub(crate) unsafe fn from_parts(frames: &'f Frames, start: NonNull<u8>, run: u32, len: usize) -> Self {
        let _ = frames;
        Self {
            start,
            run,
            len,
            of: PhantomData,
        }
    }
}

/// How lengths are assigned to classes.
#[derive(Debug)]
enum Classes {
    /// All pages have at most one length.
    One,
    /// Eight classes for every doubling.
    Eighths,
}

/// A class.
#[derive(Debug, Clone, Copy)]
struct Geometry {
    frame_bytes: usize,
    run_bytes: usize,
    /// Frames per run.
    frames: usize,
}

impl Geometry {
    fn new(frame_bytes: usize) -> Self {
        let page = page_bytes();
        let of = |pages: usize| {
            let run_bytes = page * pages;
            Self {
                frame_bytes,
                run_bytes,
                frames: (run_bytes / frame_bytes).min(MAX_FRAMES),
            }
        };
        let first = frame_bytes.div_ceil(page);
        let wastes = |g: &Self| g.run_bytes - g.frames * g.frame_bytes;
        // Short runs are returned sooner, so the shortest one with little waste is chosen.
        let good = (first..first + 8).map(of).find(|g| wastes(g) * 16 <= g.run_bytes);
        good.unwrap_or_else(|| of(first))
    }
}

struct Run {
    start: NonNull<u8>,
    /// Bitmap of the frames that hold a page.
    used: u64,
    class: u16,
    /// Its pages are being moved to other runs: it is in no list.
    leaving: bool,
    /// Its index in the class's list of partially used runs.
    at: u32,
}

#[derive(Default)]
struct Class {
    geometry: Option<Geometry>,
    /// Number of runs created: each of the lists below has capacity for all.
    runs: usize,
    /// Partially used runs.
    partial: Vec<u32>,
    /// Empty runs that are backed by memory.
    empty: Vec<u32>,
    /// Runs without memory.
    cold: Vec<u32>,
    /// The part from which new runs are created, and the used bytes of it.
    part: Option<(usize, usize)>,
}

#[derive(Default)]
struct FramesState {
    parts: Vec<Mapping>,
    runs: Vec<Run>,
    classes: Vec<Class>,
}

// SAFETY: the runs point into the parts, which `FramesState` owns.
unsafe impl Send for FramesState {}

pub(crate) struct Frames {
    classes: Classes,
    max_page_bytes: usize,
    inner: Mutex<FramesState>,
    bytes: AtomicUsize,
    free_frames: AtomicUsize,
    used_frames: AtomicUsize,
    tables: AtomicUsize,
}

impl Frames {
    /// Creates frames for pages of up to `max_page_bytes`; `one_length` states that most have that length.
    pub(crate) fn new(max_page_bytes: usize, one_length: bool) -> Self {
        let classes = if one_length { Classes::One } else { Classes::Eighths };
        Self {
            classes,
            max_page_bytes,
            inner: Mutex::new(FramesState::default()),
            bytes: AtomicUsize::new(0),
            free_frames: AtomicUsize::new(0),
            used_frames: AtomicUsize::new(0),
            tables: AtomicUsize::new(0),
        }
    }

    /// The class of pages of `len` bytes and the length of its frames.
    fn class(&self, len: usize) -> (usize, usize) {
        match self.classes {
            Classes::One => (0, self.max_page_bytes.next_multiple_of(ALIGNMENT)),
            Classes::Eighths => {
                let len = len.max(ALIGNMENT * 8);
                let step = (1_usize << (len - 1).ilog2()) / 8;
                let rounded = len.next_multiple_of(step);
                // Class numbers increase with the length: the doubling, and the eighth within it.
                let class = (rounded - 1).ilog2() as usize * 8 + (rounded - 1) / step % 8;
                (class, rounded.next_multiple_of(ALIGNMENT))
            }
        }
    }

    /// Memory of a page of `len` bytes, in bytes, without the slack of partially used runs.
    pub(crate) fn frame_bytes(&self, len: usize) -> usize {
        self.class(len).1
    }

    /// The minimum memory that a page of `len` bytes may need, in bytes.
    pub(crate) fn run_bytes(&self, len: usize) -> usize {
        Geometry::new(self.class(len).1).run_bytes
    }

    /// Memory held, used or free, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// Memory of the lists, in bytes.
    pub(crate) fn table_bytes(&self) -> usize {
        self.tables.load(Relaxed)
    }

    /// Number of free frames that are backed by memory.
    pub(crate) fn free_frames(&self) -> usize {
        self.free_frames.load(Relaxed)
    }

    /// Number of frames that hold a page.
    pub(crate) fn used_frames(&self) -> usize {
        self.used_frames.load(Relaxed)
    }

    /// Allocates a frame for a page of `len` bytes within `limit` bytes of memory held. [`None`] if there is no room.
    pub(crate) fn allocate(&self, len: usize, limit: usize) -> Option<Frame<'_>> {
        let (number, frame_bytes) = self.class(len);
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        if inner.classes.len() <= number {
            let more = number + 1 - inner.classes.len();
            inner.classes.try_reserve(more).ok()?;
            inner.classes.resize_with(number + 1, Class::default);
        }
        let geometry = *inner.classes[number]
            .geometry
            .get_or_insert_with(|| Geometry::new(frame_bytes));
        let class = &mut inner.classes[number];
        let run = if let Some(&run) = class.partial.last() {
            run
        } else if let Some(run) = class.empty.pop() {
            run
        } else {
            // Empty runs of other classes are released for this one.
            let others = limit.checked_sub(geometry.run_bytes)?;
            self.shrink(inner, others);
            if self.bytes() > others {
                return None;
            }
            let run = match inner.classes[number].cold.pop() {
                Some(run) => run,
                None => self.new_run(inner, number, geometry)?,
            };
            self.bytes.fetch_add(geometry.run_bytes, Relaxed);
            self.free_frames.fetch_add(geometry.frames, Relaxed);
            run
        };
        let frame = inner.runs[run as usize].used.trailing_ones() as usize;
        let state = &mut inner.runs[run as usize];
        let was_empty = state.used == 0;
        state.used |= 1 << frame;
        let is_full = state.used.count_ones() as usize == geometry.frames;
        // SAFETY: the offset is that of a frame of the run.
        let start = unsafe { state.start.add(frame * geometry.frame_bytes) };
        self.free_frames.fetch_sub(1, Relaxed);
        self.used_frames.fetch_add(1, Relaxed);
        match (was_empty, is_full) {
            (true, false) => inner.list(run),
            (false, true) => inner.unlist(run),
            _ => {}
        }
        Some(Frame {
            start,
            run,
            len,
            of: PhantomData,
        })
    }

    /// Frees a frame.
    pub(crate) fn free(&self, frame: Frame<'_>) {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let run = &mut inner.runs[frame.run as usize];
        let class = usize::from(run.class);
        let Some(geometry) = inner.classes[class].geometry else {
            return;
        };
        let at = (frame.start.addr().get() - run.start.addr().get()) / geometry.frame_bytes;
        let was_full = run.used.count_ones() as usize == geometry.frames;
        debug_assert!(run.used >> at & 1 == 1);
        run.used &= !(1 << at);
        let is_empty = run.used == 0;
        self.free_frames.fetch_add(1, Relaxed);
        self.used_frames.fetch_sub(1, Relaxed);
        match (was_full, is_empty) {
            _ if std::mem::take(&mut run.leaving) => run.leaving = !is_empty,
            (true, false) => inner.list(frame.run),
            (false, true) => inner.unlist(frame.run),
            _ => {}
        }
        if is_empty {
            inner.classes[class].empty.push(frame.run);
        }
    }

    /// Selects sparsely used runs whose pages fit into other runs of their class, and allocates nothing from them until
    /// [`Frames::stay`].
    pub(crate) fn leave(&self) -> Vec<u32> {
        let mut inner = self.inner.lock();
        let FramesState { runs, classes, .. } = &mut *inner;
        let mut leaving = Vec::new();
        for class in classes {
            let Some(geometry) = class.geometry else { continue };
            let used = |run: &u32| runs[*run as usize].used.count_ones() as usize;
            class.partial.sort_unstable_by_key(used);
            let mut room: usize = class.partial.iter().map(|run| geometry.frames - used(run)).sum();
            let mut moving = 0;
            let fits = |run: &&u32| {
                room -= geometry.frames - used(run);
                moving += used(run);
                moving <= room
            };
            let count = class.partial.iter().take_while(fits).count();
            if leaving.try_reserve(count).is_err() {
                continue;
            }
            leaving.extend(class.partial.drain(..count));
            for (at, &run) in class.partial.iter().enumerate() {
                runs[run as usize].at = at as u32;
            }
        }
        for &run in &leaving {
            runs[run as usize].leaving = true;
        }
        leaving
    }

    /// Ends the evacuation that [`Frames::leave`] began, with the same runs.
    pub(crate) fn stay(&self, leaving: &[u32]) {
        let mut inner = self.inner.lock();
        for &run in leaving {
            if std::mem::take(&mut inner.runs[run as usize].leaving) {
                inner.list(run);
            }
        }
    }

    /// Memory of free frames, assuming frames of the longest pages if there are several lengths, in bytes.
    pub(crate) fn slack_bytes(&self) -> usize {
        self.free_frames() * self.class(self.max_page_bytes).1
    }

    /// Returns empty runs to the system until at most `limit` bytes are held; returns true on success.
    pub(crate) fn trim(&self, limit: usize) -> bool {
        if self.bytes() > limit {
            self.shrink(&mut self.inner.lock(), limit);
        }
        self.bytes() <= limit
    }

    /// Returns empty runs until at most `limit` bytes are held or there are none left.
    fn shrink(&self, inner: &mut FramesState, limit: usize) {
        for class in &mut inner.classes {
            let Some(geometry) = class.geometry else { continue };
            while self.bytes() > limit
                && let Some(run) = class.empty.pop()
            {
                let start = inner.runs[run as usize].start;
                if let Some(part) = inner.parts.iter().find(|part| part.contains(start)) {
                    // SAFETY: the run consists of whole pages of this part, and none of its frames is used.
                    unsafe { part.release(start, geometry.run_bytes) };
                }
                class.cold.push(run);
                self.free_frames.fetch_sub(geometry.frames, Relaxed);
                self.bytes.fetch_sub(geometry.run_bytes, Relaxed);
            }
        }
    }

    /// Creates a run.
    fn new_run(&self, inner: &mut FramesState, number: usize, geometry: Geometry) -> Option<u32> {
        let class = &mut inner.classes[number];
        let runs = class.runs + 1;
        for list in [&mut class.partial, &mut class.empty, &mut class.cold] {
            list.try_reserve(runs - list.len()).ok()?;
        }
        inner.runs.try_reserve(1).ok()?;
        let (part, cut) = match class.part {
            Some((part, cut)) if cut + geometry.run_bytes <= inner.parts[part].byte_len() => (part, cut),
            _ => {
                let bytes = geometry.run_bytes * (PART_BYTES / geometry.run_bytes).max(1);
                inner.parts.try_reserve(1).ok()?;
                inner.parts.push(Mapping::new(bytes)?);
                (inner.parts.len() - 1, 0)
            }
        };
        let run = u32::try_from(inner.runs.len()).ok()?;
        class.part = Some((part, cut + geometry.run_bytes));
        class.runs = runs;
        inner.runs.push(Run {
            // SAFETY: the run is within the part.
            start: unsafe { inner.parts[part].start().add(cut) },
            used: 0,
            class: number as u16,
            leaving: false,
            at: 0,
        });
        // Three lists have capacity for every run.
        let tables = inner.runs.capacity() * (size_of::<Run>() + 3 * size_of::<u32>());
        self.tables.store(tables, Relaxed);
        Some(run)
    }
}

impl FramesState {
    /// Adds a run to its class's list of partially used ones.
    fn list(&mut self, run: u32) {
        let state = &mut self.runs[run as usize];
        let partial = &mut self.classes[usize::from(state.class)].partial;
        state.at = partial.len() as u32;
        partial.push(run);
    }

    /// Removes a run from that list.
    fn unlist(&mut self, run: u32) {
        let (class, at) = {
            let state = &self.runs[run as usize];
            (usize::from(state.class), state.at as usize)
        };
        let partial = &mut self.classes[class].partial;
        if partial.get(at) == Some(&run) {
            partial.swap_remove(at);
            if let Some(&moved) = partial.get(at) {
                self.runs[moved as usize].at = at as u32;
            }
        }
    }
}
