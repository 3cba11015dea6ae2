//! Open keys.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;

use leafpress::TreeError;

use super::context::Context;
use super::datatype::registered;
use super::failure::Failure;
use super::raw::{
    HASH_NONE, KEYTYPE_EMPTY, KEYTYPE_MODULE, KEYTYPE_STRING, NO_EXPIRE, OK, OPEN_NO_NOTIFY, OPEN_NO_STATS,
    OPEN_NO_TOUCH, READ, RawCursor, RawKey, RawString, WRITE,
};
use super::string::Str;
use super::table::api;
use crate::store::generation::Hold;
use crate::store::text::Text;
use crate::store::value::{Borrowed, BorrowedMut, Value};

/// The use of a key that eviction judges it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// Milliseconds since the last use.
    IdleMs(i64),
    /// The counter of the policies that evict what is used least.
    Frequency(i64),
    /// The server does not report it.
    Unknown,
}

/// A key that a command has open; it is closed when dropped.
///
/// The server keeps a pointer to the key's value in it. So the value must not be replaced or deleted while the same key
/// is open a second time: that panics, and the client gets an error.
pub struct Key<'c> {
    /// Null for a key that is not there and was opened to read.
    raw: *mut RawKey,
    name: Str<'c>,
}

/// The most keys that are open at once: two of a command, and two of one that another module runs on a notification.
const MAX_OPEN: usize = 4;

thread_local! {
    /// The names of the open keys.
    static OPEN: Cell<[*mut RawString; MAX_OPEN]> = const { Cell::new([std::ptr::null_mut(); MAX_OPEN]) };
}

/// Replaces a name among those of open keys; returns whether it was there.
#[inline]
fn exchange(name: *mut RawString, by: *mut RawString) -> bool {
    let mut open = OPEN.get();
    let found = open.iter_mut().find(|slot| **slot == name);
    let is_found = found.is_some();
    if let Some(slot) = found {
        *slot = by;
    }
    OPEN.set(open);
    is_found
}

impl<'c> Key<'c> {
    /// Opens a key to read it.
    #[inline]
    pub fn read(context: Context, name: Str<'c>) -> Self {
        Self::open(context, name, READ)
    }

    /// Opens a key to inspect it: eviction, notifications and statistics do not count it as an access. (Redis 7.0
    /// leaves only its time of access unchanged.)
    pub fn look(context: Context, name: Str<'c>) -> Self {
        Self::open(context, name, READ | OPEN_NO_TOUCH | OPEN_NO_NOTIFY | OPEN_NO_STATS)
    }

    /// Opens a key to write it.
    pub fn write(context: Context, name: Str<'c>) -> Self {
        Self::open(context, name, READ | WRITE)
    }

    fn open(context: Context, name: Str<'c>, mode: i32) -> Self {
        let key = Self {
            // SAFETY: the server keeps the context and the name valid until the running call returns.
            raw: unsafe { (api().OpenKey)(context.raw(), name.raw(), mode) },
            name,
        };
        // Only now: while a key is opened, the server may notify other modules, which may run commands of this one.
        assert!(
            exchange(std::ptr::null_mut(), name.raw()),
            "more than {MAX_OPEN} keys are open"
        );
        key
    }

    /// Checks that the key is not open a second time, with a pointer to the value that is about to go.
    ///
    /// # Panics
    /// If it is, which is a defect.
    fn check_alone(&self) {
        let open = OPEN.get().into_iter().filter(|name| !name.is_null());
        // SAFETY: the server keeps the name of an open key valid until the call that opened it returns.
        let same = open.filter(|name| unsafe { Str::new(*name) }.bytes() == self.name.bytes());
        assert!(same.count() == 1, "a key is written while it is open a second time");
    }

    /// Returns whether there is no such key.
    pub fn is_empty(&self) -> bool {
        self.raw.is_null() || self.has_type(KEYTYPE_EMPTY)
    }

    /// Returns whether the key has a value of this native type.
    pub fn has_type(&self, key_type: c_int) -> bool {
        // SAFETY: a key that is not null is valid until `drop` closes it.
        !self.raw.is_null() && unsafe { (api().KeyType)(self.raw) } == key_type
    }

    /// Returns the module's value; `None` without a key, an error if it has another type.
    #[inline]
    fn pointer(&self) -> Result<Option<*mut c_void>, Failure> {
        if self.raw.is_null() {
            return Ok(None);
        }
        // SAFETY: the key is not null, so it is valid until `drop` closes it.
        unsafe {
            match (api().KeyType)(self.raw) {
                KEYTYPE_EMPTY => Ok(None),
                KEYTYPE_MODULE if (api().ModuleTypeGetType)(self.raw) == registered() => {
                    Ok(Some((api().ModuleTypeGetValue)(self.raw)))
                }
                _ => Err(Failure::WRONG_TYPE),
            }
        }
    }

    /// Returns the key's value, if it is there.
    #[inline]
    pub fn value(&self) -> Result<Option<Borrowed<'_>>, Failure> {
        let pointer = self.pointer()?;
        // SAFETY: the server holds what a `Value` became, which lives at least until the key is written or closed.
        Ok(pointer.map(|pointer| unsafe { Borrowed::of(pointer) }))
    }

    /// Returns the key's value, to be changed.
    pub fn value_mut(&mut self) -> Result<Option<BorrowedMut<'_>>, Failure> {
        let pointer = self.pointer()?;
        // SAFETY: the pointer is one of `Value::into_raw`, which lives at least until the key is written or closed. The
        // server runs one command at a time, and `self` is borrowed mutably, so that nothing else refers to the value.
        Ok(pointer.map(|pointer| unsafe { BorrowedMut::of(pointer) }))
    }

    /// Sets the key's value, which replaces any previous one, without an expiry.
    pub fn set(&mut self, value: Value) -> Result<(), Failure> {
        self.check_alone();
        let pointer = value.into_raw();
        // SAFETY: the server owns the value from now on, and frees it by the type's callback.
        if unsafe { (api().ModuleTypeSetValue)(self.raw, registered(), pointer) } == OK {
            return Ok(());
        }
        // SAFETY: the server refused the value, so its ownership is still here.
        drop(unsafe { Value::from_raw(pointer) });
        Err(Failure::text("ERR the server does not take the value"))
    }

    /// Replaces the key's value, and returns the old one; the expiry stays. The key's value must be of this module.
    pub fn replace(&mut self, value: Value) -> Result<Value, Failure> {
        self.check_alone();
        let new = value.into_raw();
        let mut old = std::ptr::null_mut();
        // SAFETY: the server checks the key's type, and gives the pointer that it had.
        if unsafe { (api().ModuleTypeReplaceValue)(self.raw, registered(), new, &raw mut old) } == OK {
            // SAFETY: `old` came from `Value::into_raw`, and the server passed its ownership on.
            return Ok(unsafe { Value::from_raw(old) });
        }
        // SAFETY: the server refused the value, so its ownership is still here.
        drop(unsafe { Value::from_raw(new) });
        Err(Failure::text("ERR the server does not take the value"))
    }

    /// Replaces the bytes of the key's string; returns whether it has a string of the module. `place` returns the place
    /// for a new string, which is made if the new or the old one is long.
    pub fn set_text(
        &mut self,
        value: &[u8],
        place: impl FnOnce() -> Result<(Hold, u64), TreeError>,
    ) -> Result<bool, Failure> {
        let Ok(Some(Borrowed::Text(text))) = self.value() else {
            return Ok(false);
        };
        let before = text.bits();
        // SAFETY: the copy is never dropped: the server's pointer keeps the string, or is exchanged for this one.
        let mut changed = ManuallyDrop::new(unsafe { Text::from_bits(before) });
        if !changed.set(value)? {
            let new = Text::new(place()?, value)?;
            drop(self.replace(Value::Text(new))?);
            return Ok(true);
        }
        if changed.bits() != before {
            let old = self.replace(Value::Text(ManuallyDrop::into_inner(changed)))?;
            std::mem::forget(old);
        }
        Ok(true)
    }

    /// Deletes the key.
    pub fn delete(&mut self) {
        self.check_alone();
        // SAFETY: the key is valid until `drop` closes it; one that was opened to write is never null.
        unsafe { (api().DeleteKey)(self.raw) };
    }

    /// Returns the key's expiry, in milliseconds of the Unix epoch; `None` if it has none.
    pub fn expiry(&self) -> Option<i64> {
        // SAFETY: the key is valid until `drop` closes it. It is not null: it was opened to write, or has a value.
        let at = unsafe { (api().GetAbsExpire)(self.raw) };
        (at != NO_EXPIRE).then_some(at)
    }

    /// Sets or removes the key's expiry.
    pub fn set_expiry(&mut self, at: Option<i64>) {
        // SAFETY: the key is valid until `drop` closes it; one that was opened to write is never null.
        unsafe { (api().SetAbsExpire)(self.raw, at.unwrap_or(NO_EXPIRE)) };
    }

    /// Returns how many elements its native value has, or bytes if it is a string; 0 if there is none.
    pub fn native_len(&self) -> u64 {
        // SAFETY: the key is null, which the server accepts, or valid until `drop` closes it.
        unsafe { (api().ValueLength)(self.raw) as u64 }
    }

    /// Returns when or how often the key was used, as eviction sees it.
    pub fn usage(&self) -> Usage {
        let (mut idle, mut frequency) = (0, 0);
        // SAFETY: a key that is not empty is not null, so it is valid until `drop` closes it. The server writes one
        // number. Which one it has depends on its policy, and both calls may fail.
        unsafe {
            if self.is_empty() {
                Usage::Unknown
            } else if (api().GetLRU)(self.raw, &raw mut idle) == OK && idle >= 0 {
                Usage::IdleMs(idle)
            } else if (api().GetLFU)(self.raw, &raw mut frequency) == OK && frequency >= 0 {
                Usage::Frequency(frequency)
            } else {
                Usage::Unknown
            }
        }
    }

    /// Makes the key appear used as another was.
    pub fn set_usage(&self, usage: Usage) {
        if self.is_empty() {
            return;
        }
        // SAFETY: a key that is not empty is not null, so it is valid until `drop` closes it. A server whose policy has
        // changed refuses the number.
        unsafe {
            match usage {
                Usage::IdleMs(idle) => (api().SetLRU)(self.raw, idle),
                Usage::Frequency(frequency) => (api().SetLFU)(self.raw, frequency),
                Usage::Unknown => OK,
            };
        }
    }

    /// Returns the key's native string, if it has one.
    pub fn native_string(&self) -> Option<&[u8]> {
        // SAFETY: a key that is not null is valid until `drop` closes it. The bytes stay valid until the key is written
        // or closed, which the borrow of `self` excludes.
        unsafe {
            if self.raw.is_null() || (api().KeyType)(self.raw) != KEYTYPE_STRING {
                return None;
            }
            let mut len = 0;
            let start = (api().StringDMA)(self.raw, &raw mut len, READ);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), len))
        }
    }

    /// Adds some of the next fields of a native hash to `fields`; returns whether there may be more. Nothing may have
    /// changed the hash since the walk began.
    pub fn next_fields(&self, cursor: &FieldCursor, fields: &mut Fields) -> bool {
        let to: *mut Fields = fields;
        // SAFETY: a key that is not null is valid until `drop` closes it, and the cursor as long as its owner.
        // `add_field` is called during this call only, with the pointer to `fields`, which is borrowed mutably
        // meanwhile.
        !self.raw.is_null() && unsafe { (api().ScanKey)(self.raw, cursor.0, add_field, to.cast()) } != 0
    }

    /// Makes the key a native string.
    pub fn set_native_string(&mut self, value: Str<'_>) -> Result<(), Failure> {
        self.check_alone();
        // SAFETY: the key is valid until `drop` closes it; one that was opened to write is never null. The server takes
        // a reference of its own to the string.
        taken(unsafe { (api().StringSet)(self.raw, value.raw()) } == OK)
    }

    /// Sets a field of a native hash, which becomes one with its first.
    pub fn set_native_field(&mut self, field: Str<'_>, value: Str<'_>) -> Result<(), Failure> {
        let end: *mut RawString = std::ptr::null_mut();
        // SAFETY: the key was opened to write, so it is valid and not null. Pairs of strings and a null follow the
        // flags.
        unsafe { (api().HashSet)(self.raw, HASH_NONE, field.raw(), value.raw(), end) };
        Ok(())
    }
}

/// The position of a walk over the fields of a native hash.
pub struct FieldCursor(*mut RawCursor);

impl FieldCursor {
    /// Makes one that is before the first field.
    pub fn new() -> Self {
        // SAFETY: the call has no arguments and no condition but that the module is loaded.
        Self(unsafe { (api().ScanCursorCreate)() })
    }
}

impl Drop for FieldCursor {
    fn drop(&mut self) {
        // SAFETY: the server made the cursor for this object, which frees it once.
        unsafe { (api().ScanCursorDestroy)(self.0) };
    }
}

/// Fields with their values.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

unsafe extern "C" fn add_field(_: *mut RawKey, field: *mut RawString, value: *mut RawString, fields: *mut c_void) {
    if field.is_null() || value.is_null() {
        return;
    }
    // SAFETY: `fields` is what `Key::next_fields` passed, which waits for the server's call to return. The strings live
    // as long as this call.
    unsafe {
        let [field, value] = [field, value].map(|string| Str::new(string).bytes().to_vec());
        (*fields.cast::<Fields>()).push((field, value));
    }
}

fn taken(is_taken: bool) -> Result<(), Failure> {
    match is_taken {
        true => Ok(()),
        false => Err(Failure::text("ERR the server does not take the value")),
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        exchange(self.name.raw(), std::ptr::null_mut());
        if !self.raw.is_null() {
            // SAFETY: the server opened the key for this object, which closes it once; no borrow of it is left.
            unsafe { (api().CloseKey)(self.raw) };
        }
    }
}
