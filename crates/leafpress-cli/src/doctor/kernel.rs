//! Kernel facilities: io_uring, hardware counters, the IOMMU that accelerators need.
//! The first two are tried, not derived from settings.

use std::io;

use perf_event::Builder;
use perf_event::events::Hardware;

use super::cpu::Cpu;
use super::finding::Finding;
use super::root::Root;

const AREA: &str = "kernel";

pub fn examine(root: &Root) -> Vec<Finding> {
    let mut findings = vec![io_uring(root)];
    findings.extend(counters(root));
    findings.push(iommu(root));
    findings
}

fn io_uring(root: &Root) -> Finding {
    const WHAT: &str = "io_uring";
    match io_uring::IoUring::new(4) {
        Ok(ring) => {
            let features = ring.params();
            let mut detail = String::from("io_uring_setup works");
            if features.is_feature_nodrop() {
                detail += ", completions are never dropped";
            }
            Finding::ok(AREA, WHAT, detail)
        }
        Err(e) => {
            let setting = root.attribute("proc/sys/kernel/io_uring_disabled");
            let detail = match &setting {
                Some(value) => format!("io_uring_setup: {e} (kernel.io_uring_disabled={value})"),
                None => format!("io_uring_setup: {e}"),
            };
            match e.raw_os_error() {
                Some(libc::ENOSYS) => {
                    Finding::missing(AREA, WHAT, detail, "a kernel of 5.1 or later with CONFIG_IO_URING")
                }
                Some(libc::EPERM | libc::EACCES) if setting.as_deref().is_some_and(|v| v != "0") => {
                    Finding::not_usable(AREA, WHAT, detail, "sudo sysctl kernel.io_uring_disabled=0")
                }
                Some(libc::EPERM | libc::EACCES) => Finding::not_usable(
                    AREA,
                    WHAT,
                    detail,
                    "a seccomp filter forbids it: containers need one that allows io_uring_setup, io_uring_enter and \
                     io_uring_register",
                ),
                Some(libc::ENOMEM) => {
                    Finding::not_usable(AREA, WHAT, detail, "raise the locked-memory limit: ulimit -l")
                }
                _ => Finding::not_usable(AREA, WHAT, detail, "see dmesg"),
            }
        }
    }
}

fn counters(root: &Root) -> Vec<Finding> {
    [
        ("cycles", Hardware::CPU_CYCLES),
        ("instructions", Hardware::INSTRUCTIONS),
        ("cache misses", Hardware::CACHE_MISSES),
    ]
    .into_iter()
    .map(|(name, event)| counter(root, name, event))
    .collect()
}

/// Opens a counter on this thread, counts a loop, and expects a non-zero count.
fn counter(root: &Root, name: &str, event: Hardware) -> Finding {
    let what = format!("hardware counter: {name}");
    let count = || -> io::Result<u64> {
        let mut counter = Builder::new(event).build()?;
        counter.enable()?;
        let mut sum = 0_u64;
        for i in 0..100_000_u64 {
            sum = std::hint::black_box(sum.wrapping_add(i));
        }
        counter.disable()?;
        counter.read()
    };
    let e = match count() {
        Ok(0) if name != "cache misses" => {
            return Finding::not_usable(
                AREA,
                what,
                "opens but counts nothing",
                "the virtual machine's counters are off: give it a virtual PMU",
            );
        }
        Ok(_) => return Finding::ok(AREA, what, "perf_event_open works"),
        Err(e) => e,
    };
    let setting = root.attribute("proc/sys/kernel/perf_event_paranoid");
    let detail = match &setting {
        Some(value) => format!("perf_event_open: {e} (kernel.perf_event_paranoid={value})"),
        None => format!("perf_event_open: {e}"),
    };
    match e.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => Finding::not_usable(
            AREA,
            what,
            detail,
            "sudo sysctl kernel.perf_event_paranoid=1; in a container also a seccomp filter that allows \
             perf_event_open",
        ),
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            let fix = if Cpu::read(root).is_some_and(|cpu| cpu.is_virtual()) {
                "the virtual machine has no virtual PMU: enable it on the host, or use bare metal"
            } else {
                "the kernel has no driver for this processor's counters"
            };
            Finding::missing(AREA, what, detail, fix)
        }
        Some(libc::ENOSYS) => Finding::missing(AREA, what, detail, "a kernel with CONFIG_PERF_EVENTS"),
        _ => Finding::not_usable(AREA, what, detail, "see dmesg"),
    }
}

/// Shared work queues translate user addresses in the device: that takes an IOMMU in scalable mode (SVA, PASID).
fn iommu(root: &Root) -> Finding {
    const WHAT: &str = "IOMMU and SVA";
    let units = root.names("sys/class/iommu").len();
    let groups = root.names("sys/kernel/iommu_groups").len();
    let command_line = root.attribute("proc/cmdline").unwrap_or_default();
    let words: Vec<&str> = command_line
        .split_whitespace()
        .filter(|word| word.contains("iommu"))
        .collect();
    let hints = if words.is_empty() {
        "no iommu word".to_owned()
    } else {
        words.join(" ")
    };
    let counted = |count: usize, what: &str| match count {
        0 => format!("no {what}"),
        1 => format!("one {what}"),
        count => format!("{count} {what}s"),
    };
    let detail = format!(
        "{}, {}, kernel command line: {hints}",
        counted(units, "unit"),
        counted(groups, "group")
    );
    let refused = words
        .iter()
        .any(|word| matches!(*word, "intel_iommu=off" | "iommu=off"));
    if refused {
        Finding::not_usable(
            AREA,
            WHAT,
            detail,
            "take it off the kernel command line and boot with intel_iommu=on,sm_on",
        )
    } else if units == 0 {
        Finding::missing(
            AREA,
            WHAT,
            detail,
            "only IAA needs it: turn VT-d on in the firmware setup and boot with intel_iommu=on,sm_on",
        )
    } else if !words.iter().any(|word| word.contains("sm_on")) {
        Finding::not_usable(
            AREA,
            WHAT,
            detail,
            "only IAA needs it: boot with intel_iommu=on,sm_on unless the kernel turns scalable mode on by default \
             (pasid_enabled=1 on the device shows that)",
        )
    } else {
        Finding::ok(AREA, WHAT, detail)
    }
}
