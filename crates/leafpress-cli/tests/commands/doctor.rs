//! `leafpress doctor` on made-up system trees: healthy, half-configured and broken.

use std::path::Path;

use crate::common::{assert_bad_input, leafpress, run, stderr, stdout, write};
use serde_json::Value;
use tempfile::TempDir;

const SAPPHIRE_RAPIDS: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n\
    model name\t: Intel(R) Xeon(R) Platinum 8480+\nflags\t\t: fpu avx2 avx512f avx512bw avx512vl avx512dq enqcmd\n\n\
    processor\t: 1\nmodel\t\t: 1\n";

/// Nothing is said as programmers say it.
#[test]
fn findings_are_in_plain_words() {
    let tree = healthy();
    let root = tree.path().to_str().expect("UTF-8");
    for text in [stdout(&run(&["doctor"])), stdout(&run(&["doctor", "--root", root]))] {
        for word in ["(s)", "os error"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

/// A machine on which everything works: one IAA device with one shared user queue.
fn healthy() -> TempDir {
    let tree = TempDir::new().expect("a temporary directory");
    let root = tree.path();
    write(root, "proc/cpuinfo", SAPPHIRE_RAPIDS);
    write(root, "proc/cmdline", "ro quiet intel_iommu=on,sm_on\n");
    write(
        root,
        "proc/self/maps",
        "7f02-7f03 r-xp 00000000 08:01 13 /opt/libzlib_accel.so\n",
    );
    write(
        root,
        "proc/meminfo",
        "HugePages_Total:      16\nHugePages_Free:       15\nHugepagesize:       2048 kB\n",
    );
    write(
        root,
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    );
    write(root, "sys/class/iommu/dmar0/devices", "");
    write(
        root,
        "etc/zlib-accel.conf",
        "use_qat_compress = 0\nuse_iaa_compress = 1 # fast\nuse_iaa_uncompress=1\n",
    );
    device(root, "iax1", "enabled");
    queue(root, "wq1.0", &[]);
    write(root, "dev/iax/wq1.0", "");
    tree
}

fn device(root: &Path, name: &str, state: &str) {
    for (attribute, value) in [
        ("state", state),
        ("pasid_enabled", "1"),
        ("numa_node", "0"),
        ("max_work_queues", "8"),
    ] {
        write(
            root,
            &format!("sys/bus/dsa/devices/{name}/{attribute}"),
            &format!("{value}\n"),
        );
    }
}

/// A queue that QPL can use, except for `changes`; an empty value removes the attribute.
fn queue(root: &Path, name: &str, changes: &[(&str, &str)]) {
    let attributes = [
        ("mode", "shared"),
        ("size", "64"),
        ("threshold", "64"),
        ("type", "user"),
        ("name", "leafpress"),
        ("driver_name", "user"),
        ("state", "enabled"),
    ];
    for (attribute, usual) in attributes {
        let value = changes
            .iter()
            .find(|(name, _)| *name == attribute)
            .map_or(usual, |(_, value)| value);
        if !value.is_empty() {
            write(
                root,
                &format!("sys/bus/dsa/devices/{name}/{attribute}"),
                &format!("{value}\n"),
            );
        }
    }
}

fn findings(root: &Path) -> Vec<Value> {
    let output = leafpress()
        .args(["doctor", "--json", "--root"])
        .arg(root)
        .arg("--dir")
        .arg(root)
        .output()
        .expect("leafpress starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[track_caller]
fn finding<'f>(findings: &'f [Value], what: &str) -> &'f Value {
    findings
        .iter()
        .find(|finding| finding["what"] == what)
        .unwrap_or_else(|| panic!("no line for {what}: {findings:#?}"))
}

#[track_caller]
fn assert_line(root: &Path, what: &str, status: &str, fix: &[&str]) {
    let findings = findings(root);
    let finding = finding(&findings, what);
    assert_eq!(finding["status"], status, "{finding}");
    assert_eq!(
        finding["fix"].is_null(),
        status == "ok",
        "everything but `ok` has a fix: {finding}"
    );
    for words in fix {
        assert!(
            finding["fix"].as_str().is_some_and(|fix| fix.contains(words)),
            "no `{words}` in {finding}"
        );
    }
}

#[test]
fn a_healthy_machine_is_ok() {
    let tree = healthy();
    let findings = findings(tree.path());
    for what in [
        "model",
        "IAA on this model",
        "AVX2",
        "AVX-512",
        "ENQCMD",
        "idxd driver",
        "iax1",
        "iax1/wq1.0",
        "shim",
        "/etc/zlib-accel.conf",
        "reserved huge pages",
        "transparent huge pages",
        "IOMMU and SVA",
    ] {
        assert_eq!(finding(&findings, what)["status"], "ok", "{}", finding(&findings, what));
    }
    let queue = finding(&findings, "iax1/wq1.0")["detail"].as_str().expect("text");
    for words in ["mode=shared", "size=64", "type=user", "name=leafpress", "state=enabled"] {
        assert!(queue.contains(words), "{queue}");
    }
}

#[test]
fn every_line_that_is_not_ok_has_a_fix_on_an_empty_machine() {
    let tree = TempDir::new().expect("a temporary directory");
    for finding in findings(tree.path()) {
        assert_eq!(finding["fix"].is_null(), finding["status"] == "ok", "{finding}");
    }
}

#[test]
fn distinguishes_queues_that_qpl_cannot_use() {
    for (changes, fix) in [
        (&[("mode", "dedicated")][..], "--mode=shared"),
        (&[("type", "kernel")], "--type=user"),
        (&[("state", "disabled")], "enable-wq iax1/wq1.0"),
        (&[("size", "0")], "--wq-size"),
        (&[("mode", "")], "dmesg"),
        (&[("state", "")], "dmesg"),
    ] {
        let tree = healthy();
        std::fs::remove_dir_all(tree.path().join("sys/bus/dsa/devices/wq1.0")).expect("removed");
        queue(tree.path(), "wq1.0", changes);
        assert_line(tree.path(), "iax1/wq1.0", "not_usable", &[fix]);
    }
}

#[test]
fn a_queue_without_its_device_file_is_not_usable() {
    let tree = healthy();
    std::fs::remove_file(tree.path().join("dev/iax/wq1.0")).expect("removed");
    assert_line(
        tree.path(),
        "iax1/wq1.0",
        "not_usable",
        &["/dev/iax/wq1.0 does not exist"],
    );
    // What cannot be opened for another reason.
    std::fs::create_dir(tree.path().join("dev/iax/wq1.0")).expect("made");
    assert_line(tree.path(), "iax1/wq1.0", "not_usable", &["cannot be opened"]);
}

#[test]
fn queues_inside_their_device_are_found() {
    let tree = healthy();
    let devices = tree.path().join("sys/bus/dsa/devices");
    std::fs::rename(devices.join("wq1.0"), devices.join("iax1/wq1.0")).expect("moved");
    assert_line(tree.path(), "iax1/wq1.0", "ok", &[]);
}

#[test]
fn distinguishes_devices_that_do_not_work() {
    for (attribute, value, fix) in [
        ("state", "disabled\n", "accel-config enable-device iax1"),
        ("state", "halted\n", "errors"),
        ("state", "", "dmesg"),
        ("pasid_enabled", "0\n", "intel_iommu=on,sm_on"),
    ] {
        let tree = healthy();
        write(tree.path(), &format!("sys/bus/dsa/devices/iax1/{attribute}"), value);
        assert_line(tree.path(), "iax1", "not_usable", &[fix]);
    }
}

#[test]
fn unreadable_entries_do_not_stop_the_report() {
    let tree = healthy();
    let devices = tree.path().join("sys/bus/dsa/devices");
    // A directory where an attribute should be, bytes that are not UTF-8, names that only resemble devices, a dangling
    // link.
    std::fs::remove_file(devices.join("iax1/numa_node")).expect("removed");
    std::fs::create_dir(devices.join("iax1/numa_node")).expect("made");
    std::fs::write(devices.join("wq1.0/name"), [0xff, 0xfe, b'\n']).expect("written");
    for name in ["iax", "iaxx", "iax1!wq1.0", "wq"] {
        std::fs::create_dir(devices.join(name)).expect("made");
    }
    std::os::unix::fs::symlink("/no/such/place", devices.join("iax7")).expect("linked");
    let findings = findings(tree.path());
    assert_eq!(finding(&findings, "iax1/wq1.0")["status"], "ok");
    assert_eq!(finding(&findings, "iax7")["status"], "not_usable");
    assert_eq!(finding(&findings, "iax7 work queues")["status"], "missing");
    assert!(
        !findings.iter().any(|finding| finding["what"] == "iaxx"),
        "{findings:#?}"
    );
}

#[test]
fn unconfigured_queues_are_one_line() {
    let tree = healthy();
    std::fs::remove_dir_all(tree.path().join("sys/bus/dsa/devices/wq1.0")).expect("removed");
    for number in 0..8 {
        queue(
            tree.path(),
            &format!("wq1.{number}"),
            &[("type", "none"), ("state", "disabled")],
        );
    }
    assert_line(
        tree.path(),
        "iax1 work queues",
        "not_usable",
        &["config-wq iax1/wq1.0", "--mode=shared"],
    );
}

#[test]
fn reports_a_machine_with_only_dsa() {
    let tree = healthy();
    let devices = tree.path().join("sys/bus/dsa/devices");
    std::fs::rename(devices.join("iax1"), devices.join("dsa0")).expect("moved");
    let findings = findings(tree.path());
    let finding = finding(&findings, "IAA devices");
    assert_eq!(finding["status"], "missing");
    assert!(
        finding["detail"].as_str().is_some_and(|detail| detail.contains("DSA")),
        "{finding}"
    );
}

#[test]
fn zlib_accel_configurations_are_judged() {
    let tree = healthy();
    write(
        tree.path(),
        "etc/zlib-accel.conf",
        "use_qat_compress = 1\nuse_iaa_compress = 0\n",
    );
    assert_line(
        tree.path(),
        "/etc/zlib-accel.conf",
        "not_usable",
        &["use_iaa_compress = 1"],
    );
    let conf = tree.path().join("etc/zlib-accel.conf");
    std::fs::rename(&conf, tree.path().join("etc/real.conf")).expect("moved");
    assert_line(
        tree.path(),
        "/etc/zlib-accel.conf",
        "missing",
        &["use_iaa_compress = 1"],
    );
    std::os::unix::fs::symlink("real.conf", &conf).expect("linked");
    assert_line(tree.path(), "/etc/zlib-accel.conf", "not_usable", &["plain file"]);
}

#[test]
fn reports_a_disabled_iommu() {
    let tree = healthy();
    write(tree.path(), "proc/cmdline", "quiet intel_iommu=off\n");
    assert_line(tree.path(), "IOMMU and SVA", "not_usable", &["intel_iommu=on,sm_on"]);
}

#[test]
fn the_table_has_a_fix_under_what_is_wrong() {
    let tree = TempDir::new().expect("a temporary directory");
    let output = leafpress()
        .args(["doctor", "--root"])
        .arg(tree.path())
        .output()
        .expect("leafpress starts");
    let text = stdout(&output);
    let line = text
        .lines()
        .position(|line| line.contains("idxd driver"))
        .expect("a line for the driver");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[line].contains("missing"), "{text}");
    assert!(lines[line + 1].contains("fix: sudo modprobe idxd"), "{text}");
}

#[test]
fn the_running_machine_is_examined_without_leaving_a_file() {
    let directory = TempDir::new().expect("a temporary directory");
    let output = leafpress()
        .args(["doctor", "--dir"])
        .arg(directory.path())
        .output()
        .expect("leafpress starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
}

#[test]
fn a_directory_that_is_not_there_is_bad_input() {
    assert_bad_input(
        &run(&["doctor", "--dir", "/no/such/directory"]),
        &["--dir", "/no/such/directory", "not a directory"],
    );
}

/// The line of libqpl when `LEAFPRESS_QPL` is `path`.
fn qpl_line(path: &Path) -> Value {
    let output = leafpress()
        .env("LEAFPRESS_QPL", path)
        .args(["doctor", "--json"])
        .output()
        .expect("leafpress starts");
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    finding(&findings, "libqpl").clone()
}

#[test]
fn distinguishes_a_wrong_qpl_from_an_absent_one() {
    let absent = qpl_line(Path::new("/no/such/libqpl.so"));
    assert_eq!(absent["status"], "missing", "{absent}");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let wrong = qpl_line(file.path());
    assert_eq!(wrong["status"], "not_usable", "{wrong}");
}
