//! Safe bindings of the used part of Intel QPL's C interface (qpl.h, versions 1.6 to 1.9), loaded at run time.

use std::alloc::Layout;
use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::OnceLock;

use libloading::Library;

use crate::room::Room;
use crate::{CodecError, QplMode, output};

/// The codec's name in errors.
pub(crate) const NAME: &str = "qpl";

/// The environment variable with the path of the library.
const PATH_VARIABLE: &str = "LEAFPRESS_QPL";
/// Names passed to the loader otherwise.
const NAMES: [&str; 2] = ["libqpl.so.1", "libqpl.so"];
/// The supported versions, whose structures are known, as (major, minor).
const VERSIONS: std::ops::RangeInclusive<(u32, u32)> = (1, 6)..=(1, 9);

/// `qpl_path_t`.
pub(crate) const PATH_HARDWARE: c_int = 1;
pub(crate) const PATH_SOFTWARE: c_int = 2;

/// `qpl_operation`.
const OP_DECOMPRESS: c_int = 0;
const OP_COMPRESS: c_int = 1;

/// `QPL_FLAGS`.
const FLAG_FIRST: u32 = 0x1;
const FLAG_LAST: u32 = 0x2;
pub(crate) const FLAG_DYNAMIC_HUFFMAN: u32 = 0x2000;
pub(crate) const FLAG_OMIT_VERIFY: u32 = 0x4000;

/// `qpl_default_level`.
const LEVEL_DEFAULT: c_int = 1;

/// `qpl_status`.
pub(crate) type Status = u32;
pub(crate) const OK: Status = 0;
pub(crate) const BEING_PROCESSED: Status = 1;
pub(crate) const MORE_OUTPUT_NEEDED: Status = 2;
pub(crate) const QUEUES_ARE_BUSY: Status = 5;
pub(crate) const NO_MEMORY: Status = 101;
/// A status of this module, distinct from QPL's: nothing was submitted.
const NOT_SUBMITTED: Status = 0x4C50_0002;

/// The head of `qpl_job`. The rest of the structure, and the memory after it, is private to QPL; the size of a job is
/// given by `qpl_get_job_size`.
#[repr(C)]
struct JobHead {
    next_in: *const u8,
    available_in: u32,
    total_in: u32,
    next_out: *mut u8,
    available_out: u32,
    total_out: u32,
    op: c_int,
    flags: u32,
    crc: u32,
    xor_checksum: u32,
    last_bit_offset: u32,
    level: c_int,
    statistics_mode: c_int,
    huffman_table: *mut u8,
    dictionary: *mut u8,
}

const _: () = {
    assert!(std::mem::offset_of!(JobHead, op) == 32);
    assert!(std::mem::offset_of!(JobHead, level) == 52);
    assert!(std::mem::offset_of!(JobHead, huffman_table) == 64);
    assert!(std::mem::offset_of!(JobHead, dictionary) == 72);
};

type OnJob = unsafe extern "C" fn(*mut JobHead) -> Status;

/// QPL's functions.
pub(crate) struct Qpl {
    get_job_size: unsafe extern "C" fn(c_int, *mut u32) -> Status,
    init_job: unsafe extern "C" fn(c_int, *mut JobHead) -> Status,
    submit_job: OnJob,
    check_job: OnJob,
    execute_job: OnJob,
    fini_job: OnJob,
    /// The library's version, as it reports it.
    pub(crate) version: String,
    // Never unloaded: the function pointers above refer to it.
    _library: Library,
}

impl Qpl {
    /// Returns the process's QPL, or why there is none. It is loaded once.
    pub(crate) fn get() -> Result<&'static Self, &'static str> {
        static QPL: OnceLock<Result<Qpl, String>> = OnceLock::new();
        QPL.get_or_init(Self::load).as_ref().map_err(String::as_str)
    }

    fn load() -> Result<Self, String> {
        let library = open()?;
        // SAFETY: the symbols have these types in qpl.h since version 1.0.
        unsafe {
            let version_of: unsafe extern "C" fn() -> *const c_char = symbol(&library, c"qpl_get_library_version")?;
            let version = version_of();
            if version.is_null() {
                return Err("libqpl reports no version".into());
            }
            let version = CStr::from_ptr(version).to_string_lossy().into_owned();
            if !known(&version) {
                return Err(format!(
                    "libqpl is version {version}; versions {}.{} to {}.{} are supported",
                    VERSIONS.start().0,
                    VERSIONS.start().1,
                    VERSIONS.end().0,
                    VERSIONS.end().1
                ));
            }
            Ok(Self {
                get_job_size: symbol(&library, c"qpl_get_job_size")?,
                init_job: symbol(&library, c"qpl_init_job")?,
                submit_job: symbol(&library, c"qpl_submit_job")?,
                check_job: symbol(&library, c"qpl_check_job")?,
                execute_job: symbol(&library, c"qpl_execute_job")?,
                fini_job: symbol(&library, c"qpl_fini_job")?,
                version,
                _library: library,
            })
        }
    }
}

fn open() -> Result<Library, String> {
    if let Some(path) = std::env::var_os(PATH_VARIABLE).filter(|p| !p.is_empty()) {
        let path = PathBuf::from(path);
        // SAFETY: QPL's initialisers only inspect the CPU and the devices.
        return unsafe { Library::new(&path) }.map_err(|e| {
            format!(
                "{PATH_VARIABLE}={} cannot be loaded: {}",
                path.display(),
                output::loader_reason(&e)
            )
        });
    }
    for name in NAMES {
        // SAFETY: QPL's initialisers only inspect the CPU and the devices.
        if let Ok(library) = unsafe { Library::new(name) } {
            return Ok(library);
        }
    }
    Err(format!(
        "libqpl was not found; install Intel QPL {}.{} or later, or set {PATH_VARIABLE} to its libqpl.so",
        VERSIONS.start().0,
        VERSIONS.start().1
    ))
}

/// # Safety
/// `T` must be the symbol's type.
unsafe fn symbol<T: Copy>(library: &Library, name: &CStr) -> Result<T, String> {
    // SAFETY: the caller guarantees that the symbol has the type `T`.
    unsafe { library.get::<T>(name.to_bytes_with_nul()) }
        .map(|symbol| *symbol)
        .map_err(|e| format!("libqpl lacks {}: {e}", name.to_string_lossy()))
}

/// Returns true if a version's structures are known.
fn known(version: &str) -> bool {
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => VERSIONS.contains(&(major, minor)),
        _ => false,
    }
}

/// QPL aligns its parts within a job to cache lines itself; starting on one wastes nothing.
const ALIGNMENT: usize = 64;

/// An operation on a complete input.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Compress(QplMode),
    Decompress,
}

/// Converts a length to QPL's type, saturating. With less input or room than there is an operation fails.
fn at_most(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// An initialised job and the memory that a device works on.
pub(super) struct RawJob {
    head: NonNull<JobHead>,
    layout: Layout,
    qpl: &'static Qpl,
    /// A device reads and writes these, never the caller's memory, so that a device that does not respond can be
    /// abandoned.
    input: Vec<u8>,
    output: Vec<u8>,
    /// Whether an operation was submitted whose end has not been observed.
    is_submitted: bool,
    /// Whether a device may be reading and writing the job's memory.
    is_in_flight: bool,
}

impl RawJob {
    /// Creates a job for one of QPL's paths.
    pub(super) fn new(qpl: &'static Qpl, path: c_int) -> Result<Self, CodecError> {
        let failed = |status| output::failed(NAME, explain(status));
        let mut size = 0;
        // SAFETY: `size` is writable.
        let status = unsafe { (qpl.get_job_size)(path, &raw mut size) };
        if status != OK {
            return Err(failed(status));
        }
        let size = (size as usize).max(size_of::<JobHead>());
        let no_memory = CodecError::OutOfMemory { bytes: size };
        let layout = Layout::from_size_align(size, ALIGNMENT).map_err(|_| no_memory.clone())?;
        // SAFETY: the size is not zero.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        let head = NonNull::<JobHead>::new(memory.cast()).ok_or(no_memory)?;
        // SAFETY: the memory has the size that QPL returned for a job.
        let status = unsafe { (qpl.init_job)(path, head.as_ptr()) };
        if status != OK {
            // SAFETY: the memory was allocated by this allocator with this layout, and is freed once.
            unsafe { std::alloc::dealloc(memory, layout) };
            return Err(failed(status));
        }
        Ok(Self {
            head,
            layout,
            qpl,
            input: Vec::new(),
            output: Vec::new(),
            is_submitted: false,
            is_in_flight: false,
        })
    }

    fn prepare(&mut self, operation: Operation, input: (*const u8, u32), room: (*mut u8, u32)) {
        // SAFETY: the job is initialised, and the callers have checked that no operation is in flight.
        let head = unsafe { self.head.as_mut() };
        (head.next_in, head.available_in, head.total_in) = (input.0, input.1, 0);
        (head.next_out, head.available_out, head.total_out) = (room.0, room.1, 0);
        head.level = LEVEL_DEFAULT;
        (head.op, head.flags) = match operation {
            Operation::Decompress => (OP_DECOMPRESS, FLAG_FIRST | FLAG_LAST),
            Operation::Compress(mode) => {
                let dynamic = if mode == QplMode::Dynamic {
                    FLAG_DYNAMIC_HUFFMAN
                } else {
                    0
                };
                (OP_COMPRESS, FLAG_FIRST | FLAG_LAST | FLAG_OMIT_VERIFY | dynamic)
            }
        };
    }

    fn written(&self) -> usize {
        // SAFETY: the job is initialised, and the callers have checked that no operation is in flight.
        unsafe { self.head.as_ref() }.total_out as usize
    }

    /// Runs an operation to its end, with its output in the room.
    pub(super) fn execute(&mut self, operation: Operation, input: &[u8], room: &mut Room<'_>) -> Result<(), Status> {
        if self.is_in_flight {
            return Err(BEING_PROCESSED);
        }
        let capacity = at_most(room.capacity());
        self.prepare(
            operation,
            (input.as_ptr(), at_most(input.len())),
            (room.as_mut_ptr(), capacity),
        );
        // SAFETY: the job is prepared; QPL reads within `input` and writes within the room.
        match unsafe { (self.qpl.execute_job)(self.head.as_ptr()) } {
            OK => {
                let written = self.written().min(room.capacity());
                // SAFETY: QPL initialised the number of bytes that it counts.
                unsafe { room.set_len(written) };
                Ok(())
            }
            status => Err(status),
        }
    }

    /// Starts an operation whose output has at most `room` bytes. `input` is copied.
    pub(super) fn submit(&mut self, operation: Operation, input: &[u8], room: u32) -> Result<(), Status> {
        if self.is_in_flight {
            return Err(BEING_PROCESSED);
        }
        self.input.clear();
        self.input.extend_from_slice(input);
        self.output.resize(room as usize, 0);
        let source = (self.input.as_ptr(), at_most(input.len()));
        let room = (self.output.as_mut_ptr(), room);
        self.prepare(operation, source, room);
        // SAFETY: the job is prepared; QPL reads and writes within the job's own vectors, which are not changed while
        // an operation is in flight.
        let status = unsafe { (self.qpl.submit_job)(self.head.as_ptr()) };
        self.is_submitted = status == OK;
        self.is_in_flight = self.is_submitted;
        if status == OK { Ok(()) } else { Err(status) }
    }

    /// Polls the submitted operation; returns the length of its output, or a status. [`BEING_PROCESSED`] and
    /// [`QUEUES_ARE_BUSY`] mean to poll again.
    pub(super) fn check(&mut self) -> Result<usize, Status> {
        if !self.is_submitted {
            return Err(NOT_SUBMITTED);
        }
        // SAFETY: an operation was submitted whose end has not been observed.
        let status = unsafe { (self.qpl.check_job)(self.head.as_ptr()) };
        // With busy queues an operation of several descriptors was submitted partially, and this call would have
        // submitted the next.
        self.is_in_flight = status == BEING_PROCESSED;
        self.is_submitted = matches!(status, BEING_PROCESSED | QUEUES_ARE_BUSY);
        if status == OK {
            Ok(self.written().min(self.output.len()))
        } else {
            Err(status)
        }
    }

    /// Returns the first `written` bytes of the output; empty while an operation is in flight.
    pub(super) fn output(&self, written: usize) -> &[u8] {
        if self.is_in_flight {
            &[]
        } else {
            &self.output[..written.min(self.output.len())]
        }
    }
}

impl Drop for RawJob {
    fn drop(&mut self) {
        if self.is_in_flight {
            // The memory is leaked, since the device may still use it.
            std::mem::forget((std::mem::take(&mut self.input), std::mem::take(&mut self.output)));
            return;
        }
        // SAFETY: the job is initialised, no operation is in flight, and it is ended once. The memory was allocated by
        // this allocator with this layout, and is freed once.
        unsafe {
            (self.qpl.fini_job)(self.head.as_ptr());
            std::alloc::dealloc(self.head.as_ptr().cast(), self.layout);
        }
    }
}

/// Returns the meaning of a status, for messages.
pub(crate) fn explain(status: Status) -> String {
    let meaning = match status {
        MORE_OUTPUT_NEEDED => "the output does not fit",
        3 => "the input ends too early",
        QUEUES_ARE_BUSY => "the device's work queues stayed busy; enlarge them (accel-config) or use fewer threads",
        8 => "no work queue is configured for this operation",
        58 | 319 => "the block is larger than the device's maximum transfer size",
        NO_MEMORY => "out of memory",
        200..=236 | Status::MAX => "the block is malformed",
        500 => "this machine or this build of libqpl has no IAA support",
        501 => "libaccel-config is not found; install accel-config (Debian and Ubuntu: libaccel-config1)",
        502 => "libaccel-config reported an error; is the idxd driver loaded?",
        503 => {
            "no IAA work queue is enabled for this user; enable one (accel-config enable-device, enable-wq) and give \
                the user access to /dev/iax"
        }
        _ => return format!("libqpl status {status}"),
    };
    format!("{meaning} (libqpl status {status})")
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn versions() {
        for good in ["1.6.0", "1.7.1", "1.9.0"] {
            assert!(known(good), "{good}");
        }
        for bad in ["1.5.0", "1.10.0", "2.0.0", "0.9", "", "one.six"] {
            assert!(!known(bad), "{bad}");
        }
    }
}
