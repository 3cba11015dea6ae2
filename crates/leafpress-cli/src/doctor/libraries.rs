//! Shared libraries loaded at run time: QPL, libaccel-config, the system's zlib.

use std::path::Path;

use leafpress::Codec;
use leafpress::codec::{QplMode, QplPath};

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

/// The library behind a codec, with its version, or why it cannot run.
fn probe(wanted: Codec) -> Result<String, String> {
    let known = Codec::list().into_iter().find(|known| known.codec == wanted);
    let known = known.ok_or_else(|| format!("{wanted} is not in this build"))?;
    known.engine.map(|_| known.provided_by.unwrap_or_default())
}

fn qpl(named: Option<&Path>) -> Finding {
    const WHAT: &str = "libqpl";
    const FIX: &str = "build Intel QPL 1.6 or later (https://github.com/intel/qpl) with -DQPL_LIBRARY_TYPE=SHARED \
                       -DQPL_BUILD_TESTS=OFF -DQPL_BUILD_EXAMPLES=OFF and set LEAFPRESS_QPL=/path/libqpl.so";
    let software = Codec::Qpl {
        path: QplPath::Software,
        mode: QplMode::Fixed,
    };
    match probe(software) {
        Ok(library) => {
            let place = named.map_or("found by the loader".to_owned(), |path| {
                format!("{QPL_VARIABLE}={}", path.display())
            });
            Finding::ok(AREA, WHAT, format!("{library}, {place}"))
        }
        Err(reason) if named.is_some_and(Path::exists) => Finding::not_usable(AREA, WHAT, reason, FIX),
        Err(reason) => Finding::missing(AREA, WHAT, reason, FIX),
    }
}

fn zlib() -> Finding {
    match probe(Codec::Zlib { level: 1 }) {
        Ok(library) => Finding::ok(AREA, "system zlib", library),
        Err(reason) => Finding::missing(AREA, "system zlib", reason, "sudo apt-get install zlib1g"),
    }
}

fn accel_config() -> Finding {
    const WHAT: &str = "libaccel-config";
    for name in ["libaccel-config.so.1", "libaccel-config.so"] {
        // SAFETY: loading a library runs its constructors; libaccel-config has none that touch this process.
        if unsafe { libloading::Library::new(name) }.is_ok() {
            return Finding::ok(AREA, WHAT, name);
        }
    }
    Finding::missing(
        AREA,
        WHAT,
        "not on the loader's path",
        "QPL finds IAA queues through it: sudo apt-get install libaccel-config1 accel-config (software paths do not \
         need it)",
    )
}
