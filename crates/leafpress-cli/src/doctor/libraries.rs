//! Shared libraries that are loaded at run time: QPL, libaccel-config, the system's zlib.

use std::ffi::{CStr, c_char};
use std::path::Path;

use libloading::{Library, Symbol};

use super::finding::Finding;

const AREA: &str = "libraries";
/// The variable that names libqpl's path.
const QPL_VARIABLE: &str = "LEAFPRESS_QPL";

pub fn examine() -> Vec<Finding> {
    vec![
        qpl(std::env::var_os(QPL_VARIABLE).as_deref().map(Path::new)),
        accel_config(),
        zlib(),
    ]
}

fn qpl(named: Option<&Path>) -> Finding {
    const WHAT: &str = "libqpl";
    const FIX: &str = "build Intel QPL 1.6 or later (https://github.com/intel/qpl) with -DQPL_LIBRARY_TYPE=SHARED -DQPL_BUILD_TESTS=OFF \
                       -DQPL_BUILD_EXAMPLES=OFF and set LEAFPRESS_QPL=/path/libqpl.so";
    if let Some(path) = named {
        return match version_of(path) {
            Ok(version) => qpl_version(WHAT, &version, &format!("{} ({QPL_VARIABLE})", path.display())),
            Err(reason) if path.exists() => Finding::not_usable(AREA, WHAT, reason, FIX),
            Err(_) => Finding::missing(
                AREA,
                WHAT,
                format!("{QPL_VARIABLE}={} is not there", path.display()),
                "set LEAFPRESS_QPL to the library's path, or unset it",
            ),
        };
    }
    for name in ["libqpl.so.1", "libqpl.so"] {
        if let Ok(version) = version_of(Path::new(name)) {
            return qpl_version(WHAT, &version, &format!("{name} on the loader's path"));
        }
    }
    Finding::missing(
        AREA,
        WHAT,
        format!("not on the loader's path, and {QPL_VARIABLE} is not set"),
        FIX,
    )
}

fn qpl_version(what: &str, version: &str, place: &str) -> Finding {
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    let detail = format!("version {version}, {place}");
    match (numbers.next(), numbers.next()) {
        (Some(1), Some(6..)) => Finding::ok(AREA, what, detail),
        _ => Finding::not_usable(AREA, what, detail, "versions 1.6 to 1.9 are known to work"),
    }
}

fn version_of(path: &Path) -> Result<String, String> {
    // SAFETY: loading a library runs its constructors. It is the library the user named or installed as libqpl, and
    // libqpl's constructors only set up its own tables.
    let library = unsafe { Library::new(path) }.map_err(|e| e.to_string())?;
    // SAFETY: qpl.h declares `const char* qpl_get_library_version()` in every version.
    let version: Symbol<unsafe extern "C" fn() -> *const c_char> = unsafe { library.get(b"qpl_get_library_version\0") }
        .map_err(|_| format!("{} is not Intel QPL: it has no qpl_get_library_version", path.display()))?;
    // SAFETY: the function takes nothing and returns a pointer to a constant string of the library, or null.
    let text = unsafe { version() };
    if text.is_null() {
        return Err(format!("{} does not tell its version", path.display()));
    }
    // SAFETY: not null, NUL-terminated, and alive as long as `library` is.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

fn accel_config() -> Finding {
    const WHAT: &str = "libaccel-config";
    for name in ["libaccel-config.so.1", "libaccel-config.so"] {
        if loads(name) {
            return Finding::ok(AREA, WHAT, name);
        }
    }
    Finding::missing(
        AREA,
        WHAT,
        "not on the loader's path",
        "QPL finds IAA queues through it: sudo apt-get install libaccel-config1 accel-config (software paths do not need it)",
    )
}

fn zlib() -> Finding {
    if loads("libz.so.1") {
        Finding::ok(AREA, "system zlib", "libz.so.1")
    } else {
        Finding::missing(
            AREA,
            "system zlib",
            "no libz.so.1 on the loader's path",
            "sudo apt-get install zlib1g",
        )
    }
}

fn loads(name: &str) -> bool {
    // SAFETY: loading a library runs its constructors; these two are system libraries whose constructors do nothing of note.
    unsafe { Library::new(name) }.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Status;

    #[test]
    fn a_named_library_that_is_absent_is_missing() {
        assert_eq!(qpl(Some(Path::new("/no/such/libqpl.so"))).status, Status::Missing);
    }

    #[test]
    fn a_file_that_is_no_library_is_not_usable() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        assert_eq!(qpl(Some(file.path())).status, Status::NotUsable);
    }

    #[test]
    fn versions_are_judged() {
        for (version, status) in [
            ("1.6.0", Status::Ok),
            ("1.9.0", Status::Ok),
            ("1.5.1", Status::NotUsable),
            ("0.2", Status::NotUsable),
            ("", Status::NotUsable),
        ] {
            assert_eq!(qpl_version("libqpl", version, "here").status, status, "{version}");
        }
    }
}
