//! The server's value of a key: a pointer to a map, or a string packed into a pointer.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::num::NonZeroU64;
use std::ops::Deref;

use super::map::Map;
use super::text::Text;

/// A value of a key.
pub enum Value {
    /// A string.
    Text(Text),
    /// A map.
    Map(Box<Map>),
}

/// A value that the server keeps, to be read.
pub enum Borrowed<'v> {
    /// A string.
    Text(BorrowedText<'v>),
    /// A map.
    Map(&'v Map),
}

/// A value that the server keeps, to be changed. A string changes with the pointer: see [`Value::from`].
pub enum BorrowedMut<'v> {
    /// A string.
    Text,
    /// A map.
    Map(&'v mut Map),
}

/// A string that the server keeps.
pub struct BorrowedText<'v> {
    text: ManuallyDrop<Text>,
    value: std::marker::PhantomData<&'v Text>,
}

impl Deref for BorrowedText<'_> {
    type Target = Text;

    fn deref(&self) -> &Text {
        &self.text
    }
}

impl Value {
    /// Returns the pointer, which owns the value.
    pub fn into_raw(self) -> *mut c_void {
        match self {
            Self::Text(text) => std::ptr::without_provenance_mut(text.into_bits().get() as usize),
            Self::Map(map) => Box::into_raw(map).cast(),
        }
    }

    /// # Safety
    /// `pointer` is one of [`Value::into_raw`], taken back once.
    pub unsafe fn from_raw(pointer: *mut c_void) -> Self {
        let bits = pointer.addr() as u64;
        match NonZeroU64::new(bits) {
            // SAFETY: the bits are those of `Text::into_bits` in `Value::into_raw`, and only this call takes them back.
            Some(bits) if Text::is_one(bits.get()) => Self::Text(unsafe { Text::from_bits(bits) }),
            // SAFETY: maps are aligned, so that their pointers differ from strings: this one is the box that
            // `Value::into_raw` released, and only this call takes it back.
            _ => Self::Map(unsafe { Box::from_raw(pointer.cast()) }),
        }
    }
}

impl Borrowed<'_> {
    /// Notes that the value is in another database than its generation.
    pub fn share(&self) {
        match self {
            Self::Text(text) => text.generation().share(),
            Self::Map(map) => map.generation().share(),
        }
    }

    /// # Safety
    /// `pointer` is one of [`Value::into_raw`] whose value lives as long as the result and is not changed meanwhile.
    #[inline]
    pub unsafe fn of(pointer: *mut c_void) -> Self {
        match borrowed_text(pointer) {
            Some(text) => Self::Text(text),
            // SAFETY: a pointer that is not a string's came from `Box::into_raw` of a map, which lives as long as the
            // result and is not changed meanwhile.
            None => Self::Map(unsafe { &*pointer.cast::<Map>() }),
        }
    }
}

impl BorrowedMut<'_> {
    /// # Safety
    /// As [`Borrowed::of`], and nothing else refers to the value.
    pub unsafe fn of(pointer: *mut c_void) -> Self {
        match borrowed_text(pointer) {
            Some(_) => Self::Text,
            // SAFETY: a pointer that is not a string's came from `Box::into_raw` of a map, which lives as long as the
            // result, and nothing else refers to it.
            None => Self::Map(unsafe { &mut *pointer.cast::<Map>() }),
        }
    }
}

impl Text {
    /// Returns the string as if the server kept it.
    #[cfg(test)]
    pub fn borrow(&self) -> BorrowedText<'_> {
        BorrowedText {
            // SAFETY: it is never dropped.
            text: ManuallyDrop::new(unsafe { Text::from_bits(self.bits()) }),
            value: std::marker::PhantomData,
        }
    }
}

fn borrowed_text<'v>(pointer: *mut c_void) -> Option<BorrowedText<'v>> {
    let bits = NonZeroU64::new(pointer.addr() as u64).filter(|bits| Text::is_one(bits.get()))?;
    // SAFETY: it is never dropped, so that the hold stays the server's.
    let text = ManuallyDrop::new(unsafe { Text::from_bits(bits) });
    Some(BorrowedText {
        text,
        value: std::marker::PhantomData,
    })
}
