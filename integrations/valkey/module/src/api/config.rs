//! Options that the operator sets with `CONFIG SET` or in the server's file.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use super::context::Context;
use super::guard::guarded;
use super::raw::{CONFIG_DEFAULT, CONFIG_MEMORY, ERR, OK, RawString};
use super::string::{OwnedStr, Str};
use super::table::api;

/// An option with a text.
pub struct TextOption {
    /// Its name after the module's.
    pub name: &'static CStr,
    /// Its default.
    pub default: &'static CStr,
    /// Returns its value.
    pub get: fn() -> String,
    /// Sets it, or returns an error text.
    pub set: fn(&str) -> Result<(), String>,
    /// The last value that was passed to the server, which reads it after the callback.
    pub given: Mutex<Option<OwnedStr>>,
}

/// An option with a number.
pub struct NumberOption {
    /// Its name after the module's.
    pub name: &'static CStr,
    /// Its default.
    pub default: i64,
    /// Its minimum.
    pub least: i64,
    /// Its maximum.
    pub most: i64,
    /// Whether the server accepts it with a unit: `64kb`.
    pub is_memory: bool,
    /// Returns its value.
    pub get: fn() -> i64,
    /// Sets it, or returns an error text.
    pub set: fn(i64) -> Result<(), String>,
}

/// Registers an option that is a text; returns whether the server accepted it.
pub fn register_text(context: Context, option: &'static TextOption) -> bool {
    let data: *const TextOption = option;
    // SAFETY: the module is being loaded; the option lives as long as the program.
    let outcome = unsafe {
        (api().RegisterStringConfig)(
            context.raw(),
            option.name.as_ptr(),
            option.default.as_ptr(),
            CONFIG_DEFAULT,
            get_text,
            set_text,
            None,
            data.cast_mut().cast(),
        )
    };
    outcome == OK
}

/// Registers an option that is a number; returns whether the server accepted it.
pub fn register_number(context: Context, option: &'static NumberOption) -> bool {
    let data: *const NumberOption = option;
    let flags = if option.is_memory {
        CONFIG_MEMORY
    } else {
        CONFIG_DEFAULT
    };
    // SAFETY: the module is being loaded; the option lives as long as the program.
    let outcome = unsafe {
        (api().RegisterNumericConfig)(
            context.raw(),
            option.name.as_ptr(),
            option.default,
            flags,
            option.least,
            option.most,
            get_number,
            set_number,
            None,
            data.cast_mut().cast(),
        )
    };
    outcome == OK
}

/// Has the server set all options to the values of its configuration file, or to their defaults.
pub fn load_all(context: Context) -> bool {
    // SAFETY: the module is being loaded.
    unsafe { (api().LoadConfigs)(context.raw()) == OK }
}

// In all of these `data` is the option that was registered with it.

unsafe extern "C" fn get_text(_: *const c_char, data: *mut c_void) -> *mut RawString {
    guarded("reading an option", std::ptr::null_mut(), || {
        // SAFETY: the data is the option that was registered with this function.
        let option = unsafe { &*data.cast::<TextOption>() };
        let text = OwnedStr::new((option.get)().as_bytes());
        let raw = text.as_str().raw();
        *option.given.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        raw
    })
}

unsafe extern "C" fn set_text(
    _: *const c_char,
    text: *mut RawString,
    data: *mut c_void,
    error: *mut *mut RawString,
) -> c_int {
    let outcome = guarded("setting an option", Err(defect()), || {
        // SAFETY: the data is the option that was registered with this function; the string lives as long as the call.
        let (option, text) = unsafe { (&*data.cast::<TextOption>(), Str::new(text)) };
        let text = std::str::from_utf8(text.bytes()).map_err(|_| "it is not UTF-8".to_owned())?;
        (option.set)(text)
    });
    // SAFETY: `error` is the server's pointer to the error text.
    unsafe { answer(outcome, error) }
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> i64 {
    guarded("reading an option", 0, || {
        // SAFETY: the data is the option that was registered with this function.
        let option = unsafe { &*data.cast::<NumberOption>() };
        (option.get)()
    })
}

unsafe extern "C" fn set_number(_: *const c_char, number: i64, data: *mut c_void, error: *mut *mut RawString) -> c_int {
    let outcome = guarded("setting an option", Err(defect()), || {
        // SAFETY: the data is the option that was registered with this function.
        let option = unsafe { &*data.cast::<NumberOption>() };
        (option.set)(number)
    });
    // SAFETY: `error` is the server's pointer to the error text.
    unsafe { answer(outcome, error) }
}

fn defect() -> String {
    "a defect in the leafpress module: see the server's log".to_owned()
}

/// # Safety
/// `error` is where the server expects the error text; it frees the string.
unsafe fn answer(outcome: Result<(), String>, error: *mut *mut RawString) -> c_int {
    match outcome {
        Ok(()) => OK,
        Err(text) => {
            // SAFETY: `error` is the server's writable pointer to the error text; the server owns and frees the string.
            unsafe { *error = OwnedStr::new(text.as_bytes()).into_raw() };
            ERR
        }
    }
}
