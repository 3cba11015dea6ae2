//! Fallible allocation for vectors and boxes: a lack of memory is an error instead of an abort.

use std::alloc::Layout;
use std::ptr::NonNull;

use super::OutOfMemory;

/// Returns an empty vector with room for `count` items.
pub fn room_for<T>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut room = Vec::new();
    room.try_room(count)?;
    Ok(room)
}

/// Returns a vector with a capacity of at least `count`, rounded up to a power of two, for vectors that are dropped
/// soon. Allocators cache freed blocks per thread and size class: with arbitrary sizes these caches grow to a hundred
/// KiB per thread.
pub fn short_lived_room_for<T>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    room_for(count.checked_next_power_of_two().unwrap_or(count))
}

/// Copies `items` into a vector.
pub fn copied<T: Copy>(items: &[T]) -> Result<Vec<T>, OutOfMemory> {
    joined(items, &[])
}

/// Copies `start` and `end` into one vector.
pub fn joined<T: Copy>(start: &[T], end: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut joined = room_for(start.len() + end.len())?;
    joined.extend_from_slice(start);
    joined.extend_from_slice(end);
    Ok(joined)
}

/// Collects the items into a vector.
pub fn collected<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>, OutOfMemory> {
    let mut collected = Vec::new();
    collected.try_extend(items)?;
    Ok(collected)
}

/// Moves `value` into a box.
pub fn boxed<T>(value: T) -> Result<Box<T>, OutOfMemory> {
    const { assert!(size_of::<T>() > 0) };
    let layout = Layout::new::<T>();
    // SAFETY: the layout is not empty.
    let room = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or(OutOfMemory { bytes: layout.size() })?;
    let room = room.cast::<T>();
    // SAFETY: the global allocator returned the memory for this type's layout, and nothing else refers to it.
    unsafe {
        room.write(value);
        Ok(Box::from_raw(room.as_ptr()))
    }
}

/// Fallible growth. On an error the vector is unchanged, or has a part of the items to be added.
pub trait TryGrow<T> {
    /// Reserves room for exactly `more` items.
    fn try_room(&mut self, more: usize) -> Result<(), OutOfMemory>;

    /// Reserves room for `more` items, and amortises further growth.
    fn try_grow(&mut self, more: usize) -> Result<(), OutOfMemory>;

    /// Appends `item`, unless memory for it cannot be allocated.
    fn try_push(&mut self, item: T) -> Result<(), OutOfMemory>;

    /// Appends all of `items`, unless memory for them cannot be allocated.
    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<(), OutOfMemory>;

    /// Appends copies of `items`, unless memory for them cannot be allocated.
    fn try_append(&mut self, items: &[T]) -> Result<(), OutOfMemory>
    where
        T: Copy;
}

impl<T> TryGrow<T> for Vec<T> {
    fn try_room(&mut self, more: usize) -> Result<(), OutOfMemory> {
        self.try_reserve_exact(more).map_err(|_| lacks::<T>(more))
    }

    #[inline]
    fn try_grow(&mut self, more: usize) -> Result<(), OutOfMemory> {
        self.try_reserve(more).map_err(|_| lacks::<T>(more))
    }

    #[inline]
    fn try_push(&mut self, item: T) -> Result<(), OutOfMemory> {
        self.try_grow(1)?;
        self.push(item);
        Ok(())
    }

    fn try_extend(&mut self, items: impl IntoIterator<Item = T>) -> Result<(), OutOfMemory> {
        let items = items.into_iter();
        self.try_grow(items.size_hint().0)?;
        for item in items {
            self.try_push(item)?;
        }
        Ok(())
    }

    #[inline]
    fn try_append(&mut self, items: &[T]) -> Result<(), OutOfMemory>
    where
        T: Copy,
    {
        self.try_grow(items.len())?;
        self.extend_from_slice(items);
        Ok(())
    }
}

#[cold]
fn lacks<T>(more: usize) -> OutOfMemory {
    OutOfMemory {
        bytes: more.saturating_mul(size_of::<T>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_there() {
        let mut numbers = collected((0..100_u32).filter(|n| n % 3 == 0)).unwrap();
        numbers.try_push(7).unwrap();
        numbers.try_append(&[8, 9]).unwrap();
        assert_eq!((numbers.len(), &numbers[33..]), (37, &[99, 7, 8, 9][..]));
        assert_eq!(joined(b"ab", b"c").unwrap(), copied(b"abc").unwrap());
        assert_eq!(*boxed([1_u64, 2]).unwrap(), [1, 2]);
    }

    #[test]
    fn more_than_there_can_be_is_an_error() {
        assert_eq!(room_for::<u64>(usize::MAX / 4).unwrap_err().bytes, usize::MAX);
        let mut bytes = vec![1_u8];
        assert!(bytes.try_grow(usize::MAX).is_err());
        assert_eq!(bytes, [1]);
    }
}
