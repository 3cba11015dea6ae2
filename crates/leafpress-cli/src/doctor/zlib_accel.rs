//! Intel zlib-accel: whether the shim is loaded into this process, and how its configuration file sets it up.
//!
//! The shim reads `/etc/zlib-accel.conf`, ignores it when it is a symbolic link, and does not report a missing one. Its
//! built-in defaults send calls to QAT and not to IAA, so a preloaded shim without a file usually runs plain zlib.

use std::ffi::OsString;

use super::finding::Finding;
use super::root::Root;

const AREA: &str = "zlib-accel";
const CONFIGURATION: &str = "etc/zlib-accel.conf";

pub fn examine(root: &Root, preload: Option<OsString>) -> Vec<Finding> {
    let mapped = root.text("proc/self/maps").and_then(|maps| shim_in(&maps));
    let mut findings = Vec::new();
    findings.push(match (&mapped, &preload) {
        (Some(path), _) => Finding::ok(AREA, "shim", format!("{path} is loaded in this process")),
        (None, Some(preload)) if is_shim(&preload.to_string_lossy()) => Finding::not_usable(
            AREA,
            "shim",
            format!(
                "LD_PRELOAD={} is set, but the loader did not load it",
                preload.to_string_lossy()
            ),
            "check the path; ldd on it shows which of its libraries (QPL, QATzip, oneTBB) is not found",
        ),
        (None, _) => Finding::missing(
            AREA,
            "shim",
            "not preloaded",
            "LD_PRELOAD='/path/libzlib-accel.so libz.so.1' leafpress doctor, or leafpress eval --zlib-accel \
             --zlib-accel-so /path/libzlib-accel.so",
        ),
    });
    findings.push(configuration(root));
    findings
}

/// Returns whether a path, or a list of them, names the shim: `libzlib-accel.so`, formerly `libzlib_accel.so`.
fn is_shim(path: &str) -> bool {
    path.contains("libzlib-accel") || path.contains("libzlib_accel")
}

/// The path of the shim among the files that a process has mapped.
fn shim_in(maps: &str) -> Option<String> {
    maps.lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| is_shim(path))
        .map(str::to_owned)
}

fn configuration(root: &Root) -> Finding {
    const WHAT: &str = "/etc/zlib-accel.conf";
    const WANTED: &str = "write use_iaa_compress = 1, use_iaa_uncompress = 1, use_qat_compress = 0, use_qat_uncompress \
                          = 0 into it for IAA (without QAT no percentages are needed)";
    let path = root.path(CONFIGURATION);
    let Ok(metadata) = path.symlink_metadata() else {
        return Finding::missing(
            AREA,
            WHAT,
            "no such file: the shim's defaults use QAT and not IAA",
            WANTED,
        );
    };
    if metadata.is_symlink() {
        return Finding::not_usable(
            AREA,
            WHAT,
            "a symbolic link, which the shim ignores",
            "put a plain file there",
        );
    }
    let Some(text) = root.text(CONFIGURATION) else {
        return Finding::not_usable(AREA, WHAT, "cannot be read", "sudo chmod a+r /etc/zlib-accel.conf");
    };
    let options: Vec<(&str, &str)> = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default())
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let value = |name: &str| {
        options
            .iter()
            .rev()
            .find(|(option, _)| *option == name)
            .map(|(_, value)| *value)
    };
    let detail = options
        .iter()
        .filter(|(name, _)| name.starts_with("use_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>();
    let detail = if detail.is_empty() {
        "sets no engine".to_owned()
    } else {
        detail.join(" ")
    };
    let (compress, uncompress) = (
        value("use_iaa_compress") == Some("1"),
        value("use_iaa_uncompress") == Some("1"),
    );
    if compress && uncompress {
        Finding::ok(AREA, WHAT, detail)
    } else {
        Finding::not_usable(AREA, WHAT, detail, WANTED)
    }
}

#[cfg(test)]
mod tests {
    use super::shim_in;

    #[test]
    fn the_shim_is_found_in_the_mappings() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libz.so.1.2.13\n\
                    7f02-7f03 r-xp 00000000 08:01 13 /opt/accel/libzlib_accel.so\n\
                    7f04-7f05 rw-p 00000000 00:00 0\n";
        assert_eq!(shim_in(maps).as_deref(), Some("/opt/accel/libzlib_accel.so"));
        let maps = maps.replace("libzlib_accel", "libzlib-accel");
        assert_eq!(shim_in(&maps).as_deref(), Some("/opt/accel/libzlib-accel.so"));
        assert_eq!(shim_in("7f04-7f05 rw-p 00000000 00:00 0 [heap]\n"), None);
    }
}
