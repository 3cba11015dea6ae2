//! The part of Intel QPL's C interface that is used (qpl.h, versions 1.6 to 1.9), loaded at run time.

use std::ffi::{CStr, c_char, c_int};
use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;

use crate::codec::output;

/// The environment variable that names the library's file.
const PATH_VARIABLE: &str = "LEAFPRESS_QPL";
/// What the loader is asked for otherwise.
const NAMES: [&str; 2] = ["libqpl.so.1", "libqpl.so"];
/// The versions whose structures are known, as (major, minor).
const VERSIONS: std::ops::RangeInclusive<(u32, u32)> = (1, 6)..=(1, 9);

/// `qpl_path_t`.
pub(in crate::codec) const PATH_HARDWARE: c_int = 1;
pub(in crate::codec) const PATH_SOFTWARE: c_int = 2;

/// `qpl_operation`.
pub(in crate::codec) const OP_DECOMPRESS: c_int = 0;
pub(in crate::codec) const OP_COMPRESS: c_int = 1;

/// `QPL_FLAGS`.
pub(in crate::codec) const FLAG_FIRST: u32 = 0x1;
pub(in crate::codec) const FLAG_LAST: u32 = 0x2;
pub(in crate::codec) const FLAG_DYNAMIC_HUFFMAN: u32 = 0x2000;
pub(in crate::codec) const FLAG_OMIT_VERIFY: u32 = 0x4000;

/// `qpl_default_level`.
pub(in crate::codec) const LEVEL_DEFAULT: c_int = 1;

/// `qpl_status`.
pub(in crate::codec) type Status = u32;
pub(in crate::codec) const OK: Status = 0;
pub(in crate::codec) const BEING_PROCESSED: Status = 1;
pub(in crate::codec) const MORE_OUTPUT_NEEDED: Status = 2;
pub(in crate::codec) const QUEUES_ARE_BUSY: Status = 5;
pub(in crate::codec) const NO_MEMORY: Status = 101;

/// The head of `qpl_job`. The rest of the structure, and what QPL keeps behind it, is only `qpl_init_job`'s business; a
/// job is as long as `qpl_get_job_size` says.
#[repr(C)]
pub(in crate::codec) struct JobHead {
    pub(in crate::codec) next_in: *const u8,
    pub(in crate::codec) available_in: u32,
    pub(in crate::codec) total_in: u32,
    pub(in crate::codec) next_out: *mut u8,
    pub(in crate::codec) available_out: u32,
    pub(in crate::codec) total_out: u32,
    pub(in crate::codec) op: c_int,
    pub(in crate::codec) flags: u32,
    crc: u32,
    xor_checksum: u32,
    last_bit_offset: u32,
    pub(in crate::codec) level: c_int,
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
pub(in crate::codec) struct Qpl {
    pub(in crate::codec) get_job_size: unsafe extern "C" fn(c_int, *mut u32) -> Status,
    pub(in crate::codec) init_job: unsafe extern "C" fn(c_int, *mut JobHead) -> Status,
    pub(in crate::codec) submit_job: OnJob,
    pub(in crate::codec) check_job: OnJob,
    pub(in crate::codec) execute_job: OnJob,
    pub(in crate::codec) fini_job: OnJob,
    /// The library's version, as it reports it.
    pub(in crate::codec) version: String,
    // Never unloaded: the functions above are its.
    _library: Library,
}

impl Qpl {
    /// The process's QPL, or why there is none. It is loaded once.
    pub(in crate::codec) fn get() -> Result<&'static Self, &'static str> {
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
        // SAFETY: QPL's initialisers look at the CPU and the devices only.
        return unsafe { Library::new(&path) }.map_err(|e| {
            format!(
                "{PATH_VARIABLE}={} cannot be loaded: {}",
                path.display(),
                output::loader_reason(&e)
            )
        });
    }
    for name in NAMES {
        // SAFETY: as above.
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
/// `T` is the symbol's type.
unsafe fn symbol<T: Copy>(library: &Library, name: &CStr) -> Result<T, String> {
    // SAFETY: the caller's.
    unsafe { library.get::<T>(name.to_bytes_with_nul()) }
        .map(|symbol| *symbol)
        .map_err(|e| format!("libqpl lacks {}: {e}", name.to_string_lossy()))
}

/// Whether a version's structures are known.
fn known(version: &str) -> bool {
    let mut numbers = version.split('.').map(|n| n.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => VERSIONS.contains(&(major, minor)),
        _ => false,
    }
}

/// What a status means, for messages.
pub(in crate::codec) fn explain(status: Status) -> String {
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
