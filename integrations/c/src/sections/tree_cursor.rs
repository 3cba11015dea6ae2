//! Trees: cursors.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::sync::Arc;

use leafpress_core::{Range, Tree};

use crate::failure::{Failure, NOT_FOUND, call};
use crate::fork::Process;
use crate::given::{Given, Out, copied, replace};
use crate::handle::{self, Handle};
use crate::sections::tree_scan::{Bounds, bounds};
use crate::{lp_bytes, lp_status, lp_tree};

/// A position in a tree, which moves from record to record in the order of the keys, in both directions.
///
/// Other threads may write meanwhile: see lp_tree_scan(). A cursor has a copy of its current record, and reads some
/// records ahead, as they were at that moment. Each thread needs its own cursor.
pub struct lp_tree_cursor {
    walk: Walk,
    /// Its position.
    place: Place,
    key: Vec<u8>,
    value: Vec<u8>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    process: Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not at a record yet.
    Nowhere,
    At,
    BeforeFirst,
    AfterLast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Forward,
    Back,
}

/// The records ahead in one direction, and the tree that contains them.
struct Walk {
    /// Declared before the tree, so that it is dropped first.
    ahead: Option<(Way, Range<'static>)>,
    tree: Arc<Tree>,
}

impl Walk {
    /// Moves in this direction through a range from now on.
    fn turn(&mut self, way: Way, bounds: Bounds) {
        // SAFETY: the tree is behind an `Arc` that this holds for as long as the range, and is not moved.
        let tree: &'static Tree = unsafe { &*Arc::as_ptr(&self.tree) };
        self.ahead = Some((way, tree.range(bounds)));
    }

    fn goes(&self, way: Way) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| ahead.0 == way)
    }

    /// Copies the next record ahead; returns whether there is one.
    fn step(&mut self, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Failure> {
        let Some((way, range)) = &mut self.ahead else {
            return Ok(false);
        };
        let copy =
            |from_key: &[u8], from_value: &[u8]| replace(key, from_key).and_then(|()| replace(value, from_value));
        let step = match way {
            Way::Forward => range.next_with(copy),
            Way::Back => range.next_back_with(copy),
        };
        step.map_or(Ok(false), |copied| copied?.map(|()| true))
    }
}

impl Handle for lp_tree_cursor {
    const NAME: &'static str = "cursor";

    fn process(&self) -> Process {
        self.process
    }
}

fn copy_of(bound: &Bound<Vec<u8>>) -> Result<Bound<Vec<u8>>, Failure> {
    Ok(match bound {
        Bound::Included(key) => Bound::Included(copied(key)?),
        Bound::Excluded(key) => Bound::Excluded(copied(key)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

impl lp_tree_cursor {
    fn on(tree: &lp_tree, (lower, upper): Bounds) -> Self {
        Self {
            walk: Walk {
                ahead: None,
                tree: Arc::clone(&tree.tree),
            },
            place: Place::Nowhere,
            key: Vec::new(),
            value: Vec::new(),
            lower,
            upper,
            process: Process::this(),
        }
    }

    /// Moves in this direction, from the given key, or else from the end of the bounds.
    fn go(&mut self, way: Way, from: Option<Bound<Vec<u8>>>) -> Result<(), Failure> {
        let (mut lower, mut upper) = (copy_of(&self.lower)?, copy_of(&self.upper)?);
        match (way, from) {
            (Way::Forward, Some(from)) if is_above(&from, &lower) => lower = from,
            (Way::Back, Some(from)) if is_below(&from, &upper) => upper = from,
            _ => {}
        }
        self.walk.turn(way, (lower, upper));
        self.step(way)
    }

    fn step(&mut self, way: Way) -> Result<(), Failure> {
        // Until there is a record, and after a failure.
        self.place = Place::Nowhere;
        if self.walk.step(&mut self.key, &mut self.value)? {
            self.place = Place::At;
            return Ok(());
        }
        self.place = match way {
            Way::Forward => Place::AfterLast,
            Way::Back => Place::BeforeFirst,
        };
        Err(NOT_FOUND)
    }

    fn next(&mut self, way: Way) -> Result<(), Failure> {
        match (self.place, way) {
            (Place::AfterLast, Way::Forward) | (Place::BeforeFirst, Way::Back) => Err(NOT_FOUND),
            (Place::At, _) if self.walk.goes(way) => self.step(way),
            (Place::At, _) => {
                let here = copied(&self.key)?;
                self.go(way, Some(Bound::Excluded(here)))
            }
            _ => self.go(way, None),
        }
    }
}

/// Returns whether a start is after another.
fn is_above(start: &Bound<Vec<u8>>, other: &Bound<Vec<u8>>) -> bool {
    match (start, other) {
        (_, Bound::Unbounded) => true,
        (Bound::Excluded(start), Bound::Included(other) | Bound::Excluded(other)) => start >= other,
        (Bound::Included(start), Bound::Included(other) | Bound::Excluded(other)) => start > other,
        (Bound::Unbounded, _) => false,
    }
}

/// Returns whether an end is before another.
fn is_below(end: &Bound<Vec<u8>>, other: &Bound<Vec<u8>>) -> bool {
    match (end, other) {
        (_, Bound::Unbounded) => true,
        (Bound::Excluded(end), Bound::Included(other) | Bound::Excluded(other)) => end <= other,
        (Bound::Included(end), Bound::Included(other) | Bound::Excluded(other)) => end < other,
        (Bound::Unbounded, _) => false,
    }
}

/// Makes a cursor over the keys from the key from (included) to the key to (excluded), either NULL for an open end. It
/// is not at a record yet. Free it with lp_tree_cursor_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_open(
    tree: Option<&lp_tree>,
    from: *const c_void,
    from_len: usize,
    to: *const c_void,
    to_len: usize,
    cursor: Option<&mut MaybeUninit<*mut lp_tree_cursor>>,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let (from, to) = unsafe { (Given::new(from, from_len), Given::new(to, to_len)) };
    call(|| {
        handle::hand_out(cursor, || {
            let tree = handle::of(tree)?;
            Ok(lp_tree_cursor::on(tree, bounds(from, to)?))
        })
    })
}

/// Frees a cursor; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_free(cursor: *mut lp_tree_cursor) {
    // SAFETY: `free` accepts NULL and handles that were handed out, which the caller gives back once.
    unsafe { handle::free(cursor) };
}

/// Moves to the first record of the range. Returns LP_NOT_FOUND if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_first(cursor: Option<&mut lp_tree_cursor>) -> lp_status {
    call(|| handle::of_mut(cursor)?.go(Way::Forward, None))
}

/// Moves to the last record of the range. Returns LP_NOT_FOUND if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_last(cursor: Option<&mut lp_tree_cursor>) -> lp_status {
    call(|| handle::of_mut(cursor)?.go(Way::Back, None))
}

/// Moves to the first record of the range whose key is key or greater. Returns LP_NOT_FOUND if there is none: the
/// cursor is then behind the last record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_seek(
    cursor: Option<&mut lp_tree_cursor>,
    key: *const c_void,
    key_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let key = unsafe { Given::new(key, key_len) };
    call(|| {
        let cursor = handle::of_mut(cursor)?;
        cursor.go(Way::Forward, Some(Bound::Included(copied(key.get("key")?)?)))
    })
}

/// Moves to the last record of the range whose key is key or less. Returns LP_NOT_FOUND if there is none: the cursor is
/// then before the first record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_seek_back(
    cursor: Option<&mut lp_tree_cursor>,
    key: *const c_void,
    key_len: usize,
) -> lp_status {
    // SAFETY: the header requires bytes that are readable and unchanged during the call.
    let key = unsafe { Given::new(key, key_len) };
    call(|| {
        let cursor = handle::of_mut(cursor)?;
        cursor.go(Way::Back, Some(Bound::Included(copied(key.get("key")?)?)))
    })
}

/// Moves to the next record. Returns LP_NOT_FOUND behind the last, from where lp_tree_cursor_prev() moves back to it. A
/// cursor that is not at a record yet moves to the first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_next(cursor: Option<&mut lp_tree_cursor>) -> lp_status {
    call(|| handle::of_mut(cursor)?.next(Way::Forward))
}

/// Moves to the previous record. Returns LP_NOT_FOUND before the first, from where lp_tree_cursor_next() moves back to
/// it. A cursor that is not at a record yet moves to the last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_prev(cursor: Option<&mut lp_tree_cursor>) -> lp_status {
    call(|| handle::of_mut(cursor)?.next(Way::Back))
}

/// Returns the key and the value at the cursor; key and value may each be NULL. The bytes are valid until the cursor
/// moves or is freed. Returns LP_NOT_FOUND if the cursor is not at a record.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_cursor_record(
    cursor: Option<&lp_tree_cursor>,
    key: Option<&mut MaybeUninit<lp_bytes>>,
    value: Option<&mut MaybeUninit<lp_bytes>>,
) -> lp_status {
    call(|| {
        let cursor = handle::of(cursor)?;
        if cursor.place != Place::At {
            return Err(NOT_FOUND);
        }
        Out::put(key, lp_bytes::from(cursor.key.as_slice()));
        Out::put(value, lp_bytes::from(cursor.value.as_slice()));
        Ok(())
    })
}
