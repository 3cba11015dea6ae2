//! Safe bindings of the system's zlib, loaded at its first use.
//!
//! Its symbols are looked up in the process's global scope, so that a library preloaded over zlib
//! (`LD_PRELOAD=libzlib_accel.so`) takes precedence, as for a program that is linked with zlib.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

use crate::output;
use crate::room::Room;

/// zlib's file name on this system.
const LIBRARY: &str = if cfg!(target_os = "macos") {
    "libz.1.dylib"
} else {
    "libz.so.1"
};

/// The requested interface version; zlib compares the first digit only.
const VERSION: &CStr = c"1.2.11";

const FINISH: c_int = 4;
pub(crate) const OK: c_int = 0;
pub(crate) const STREAM_END: c_int = 1;
pub(crate) const BUFFER_ERROR: c_int = -5;
const DEFLATED: c_int = 8;
const MEMORY_LEVEL: c_int = 8;
const DEFAULT_STRATEGY: c_int = 0;

/// `z_stream` of zlib.h; null allocators mean zlib's own.
#[repr(C)]
struct RawStream {
    next_in: *const u8,
    avail_in: c_uint,
    total_in: c_ulong,
    next_out: *mut u8,
    avail_out: c_uint,
    total_out: c_ulong,
    message: *const c_char,
    state: *mut c_void,
    alloc: *mut c_void,
    free: *mut c_void,
    opaque: *mut c_void,
    data_type: c_int,
    adler: c_ulong,
    reserved: c_ulong,
}

impl RawStream {
    /// Returns an empty stream. It must not move once it is initialised: zlib's state points back to it.
    fn new() -> Box<Self> {
        Box::new(Self {
            next_in: std::ptr::null(),
            avail_in: 0,
            total_in: 0,
            next_out: std::ptr::null_mut(),
            avail_out: 0,
            total_out: 0,
            message: std::ptr::null(),
            state: std::ptr::null_mut(),
            alloc: std::ptr::null_mut(),
            free: std::ptr::null_mut(),
            opaque: std::ptr::null_mut(),
            data_type: 0,
            adler: 0,
            reserved: 0,
        })
    }
}

type Init2Deflate =
    unsafe extern "C" fn(*mut RawStream, c_int, c_int, c_int, c_int, c_int, *const c_char, c_int) -> c_int;
type Init2Inflate = unsafe extern "C" fn(*mut RawStream, c_int, *const c_char, c_int) -> c_int;
type Bound = unsafe extern "C" fn(*mut RawStream, c_ulong) -> c_ulong;
type Flushing = unsafe extern "C" fn(*mut RawStream, c_int) -> c_int;
type Version = unsafe extern "C" fn() -> *const c_char;
type Plain = unsafe extern "C" fn(*mut RawStream) -> c_int;

/// zlib's functions, as resolved in the process's global scope.
pub(crate) struct Zlib {
    version: Version,
    deflate_init2: Init2Deflate,
    inflate_init2: Init2Inflate,
    deflate_bound: Bound,
    deflate: Flushing,
    deflate_reset: Plain,
    deflate_end: Plain,
    inflate: Flushing,
    inflate_reset: Plain,
    inflate_end: Plain,
    /// The library that interposes zlib, if any.
    pub(crate) interposer: Option<PathBuf>,
    // Never unloaded: the function pointers above refer to it.
    _library: Library,
}

impl Zlib {
    /// Returns the process's zlib, or why there is none. It is loaded once.
    pub(crate) fn get() -> Result<&'static Self, &'static str> {
        static ZLIB: OnceLock<Result<Zlib, String>> = OnceLock::new();
        ZLIB.get_or_init(Self::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<Self, String> {
        // SAFETY: NOLOAD loads nothing and runs no code.
        let was_loaded = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | libc::RTLD_NOLOAD) }.is_ok();
        // SAFETY: zlib has no initialisers with side effects on this process.
        let library = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_GLOBAL) }.map_err(|e| {
            format!(
                "{LIBRARY} cannot be loaded ({}); install zlib (Debian and Ubuntu: zlib1g)",
                output::loader_reason(&e)
            )
        })?;
        let interposer = interposer(&library)?;
        if let Some(path) = &interposer
            && !was_loaded
        {
            return Err(format!(
                "{path} is preloaded, but without zlib behind it, which it looks for when it is loaded; \
                 set LD_PRELOAD='{path} {LIBRARY}'",
                path = path.display()
            ));
        }
        let global = Library::this();
        let from = if interposer.is_some() { &global } else { &library };
        // SAFETY: the symbols have these types in zlib.h since version 1.2.
        unsafe {
            Ok(Self {
                version: symbol(&library, c"zlibVersion")?,
                deflate_init2: symbol(from, c"deflateInit2_")?,
                inflate_init2: symbol(from, c"inflateInit2_")?,
                deflate_bound: symbol(from, c"deflateBound")?,
                deflate: symbol(from, c"deflate")?,
                deflate_reset: symbol(from, c"deflateReset")?,
                deflate_end: symbol(from, c"deflateEnd")?,
                inflate: symbol(from, c"inflate")?,
                inflate_reset: symbol(from, c"inflateReset")?,
                inflate_end: symbol(from, c"inflateEnd")?,
                interposer,
                _library: library,
            })
        }
    }

    /// Returns zlib's own version.
    pub(crate) fn version(&self) -> String {
        // SAFETY: zlib returns a static, terminated string.
        let version = unsafe { CStr::from_ptr((self.version)()) };
        version.to_string_lossy().into_owned()
    }

    /// Calls `deflateInit2` for raw deflate with a window of `window_bits`.
    ///
    /// # Safety
    /// `stream` must not be initialised.
    unsafe fn init_deflate(&self, stream: *mut RawStream, level: c_int, window_bits: u8) -> c_int {
        // SAFETY: the caller guarantees that the stream is not initialised; the size is the structure's.
        unsafe {
            (self.deflate_init2)(
                stream,
                level,
                DEFLATED,
                -c_int::from(window_bits),
                MEMORY_LEVEL,
                DEFAULT_STRATEGY,
                VERSION.as_ptr(),
                size_of::<RawStream>() as c_int,
            )
        }
    }

    /// Calls `inflateInit2` for raw deflate with a window of `window_bits`.
    ///
    /// # Safety
    /// `stream` must not be initialised.
    unsafe fn init_inflate(&self, stream: *mut RawStream, window_bits: u8) -> c_int {
        // SAFETY: the caller guarantees that the stream is not initialised; the size is the structure's.
        unsafe {
            (self.inflate_init2)(
                stream,
                -c_int::from(window_bits),
                VERSION.as_ptr(),
                size_of::<RawStream>() as c_int,
            )
        }
    }
}

/// The direction of a stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Deflate { level: c_int },
    Inflate,
}

/// An initialised stream in one direction.
pub(super) struct Stream {
    stream: Box<RawStream>,
    direction: Direction,
    window_bits: u8,
    zlib: &'static Zlib,
}

// SAFETY: a stream owns its state, which zlib does not tie to a thread, and every use borrows it exclusively.
unsafe impl Send for Stream {}

impl Stream {
    /// Returns a stream with a window of `window_bits`.
    ///
    /// # Errors
    /// Returns zlib's status.
    pub(super) fn new(zlib: &'static Zlib, direction: Direction, window_bits: u8) -> Result<Self, c_int> {
        let mut stream = RawStream::new();
        // SAFETY: the stream is not initialised yet.
        let status = unsafe {
            match direction {
                Direction::Deflate { level } => zlib.init_deflate(&raw mut *stream, level, window_bits),
                Direction::Inflate => zlib.init_inflate(&raw mut *stream, window_bits),
            }
        };
        if status != OK {
            return Err(status);
        }
        Ok(Self {
            stream,
            direction,
            window_bits,
            zlib,
        })
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    pub(super) fn window_bits(&self) -> u8 {
        self.window_bits
    }

    /// Resets the stream for another use; returns true if it could.
    pub(super) fn reset(&mut self) -> bool {
        let stream = &raw mut *self.stream;
        // SAFETY: the stream is initialised in this direction.
        let status = unsafe {
            match self.direction {
                Direction::Deflate { .. } => (self.zlib.deflate_reset)(stream),
                Direction::Inflate => (self.zlib.inflate_reset)(stream),
            }
        };
        status == OK
    }

    /// Returns an upper bound of the length of a stream of `raw_len` raw bytes.
    pub(super) fn bound(&mut self, raw_len: usize) -> usize {
        if self.direction == Direction::Inflate {
            return 0;
        }
        // SAFETY: the stream is initialised to deflate.
        unsafe { (self.zlib.deflate_bound)(&raw mut *self.stream, raw_len as c_ulong) as usize }
    }

    /// Passes the stream `input` and the room, each clamped to 4 GiB, runs it to its end, sets the room's block to its
    /// output, and returns its status.
    pub(super) fn run(&mut self, input: &[u8], room: &mut Room<'_>) -> c_int {
        // The range of zlib's type. With less input or room than there is a stream ends early or not at all.
        let at_most = |len: usize| c_uint::try_from(len).unwrap_or(c_uint::MAX);
        let room_len = at_most(room.capacity());
        let stream = &mut *self.stream;
        (stream.next_in, stream.avail_in) = (input.as_ptr(), at_most(input.len()));
        (stream.next_out, stream.avail_out) = (room.as_mut_ptr(), room_len);
        let stream = &raw mut *stream;
        // SAFETY: the stream is initialised in this direction; the input is readable and the room writable for the
        // lengths that were set.
        let status = unsafe {
            match self.direction {
                Direction::Deflate { .. } => (self.zlib.deflate)(stream, FINISH),
                Direction::Inflate => (self.zlib.inflate)(stream, FINISH),
            }
        };
        let written = room_len - self.stream.avail_out.min(room_len);
        // SAFETY: zlib initialised the number of bytes that it counts.
        unsafe { room.set_len(written as usize) };
        status
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let stream = &raw mut *self.stream;
        // SAFETY: the stream is initialised in this direction and is ended once.
        unsafe {
            match self.direction {
                Direction::Deflate { .. } => (self.zlib.deflate_end)(stream),
                Direction::Inflate => (self.zlib.inflate_end)(stream),
            }
        };
    }
}

/// # Safety
/// `T` must be the symbol's type.
unsafe fn symbol<T: Copy>(library: &Library, name: &CStr) -> Result<T, String> {
    // SAFETY: the caller guarantees that the symbol has the type `T`.
    unsafe { library.get::<T>(name.to_bytes_with_nul()) }
        .map(|symbol| *symbol)
        .map_err(|e| format!("{LIBRARY} lacks {}: {e}", name.to_string_lossy()))
}

/// Returns the library whose `deflate` precedes zlib's own in the process's global scope.
fn interposer(library: &Library) -> Result<Option<PathBuf>, String> {
    // SAFETY: only the addresses are compared; the symbols are not called.
    let (own, global): (*const c_void, Result<*const c_void, String>) =
        unsafe { (symbol(library, c"deflate")?, symbol(&Library::this(), c"deflate")) };
    let Ok(global) = global else { return Ok(None) };
    let Some((object, path)) = object_of(global) else {
        return Ok(None);
    };
    let ours = object_of(object_of as *const c_void).map(|(object, _)| object);
    // A zlib that is linked into the program itself does not interpose.
    if global == own || Some(object) == ours || Some(object) == object_of(own).map(|(object, _)| object) {
        return Ok(None);
    }
    Ok(Some(path))
}

/// Returns the base address of the object that contains an address, and its file.
fn object_of(address: *const c_void) -> Option<(*mut c_void, PathBuf)> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: `dladdr` accepts any address; `info` is writable.
    let found = unsafe { libc::dladdr(address, &raw mut info) } != 0;
    if !found || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name is a terminated string that lives as long as the object is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some((info.dli_fbase, PathBuf::from(name.to_string_lossy().into_owned())))
}
