//! IAA devices and their work queues, as the kernel's idxd driver shows them in `/sys/bus/dsa/devices`.
//!
//! QPL takes a work queue only if its type is `user`, its mode is `shared`, it and its device are enabled, and its
//! character device under `/dev/iax` can be opened for reading and writing. These are checked in the order in which
//! they have to be fixed.

use std::fmt::Write as _;
use std::io;

use super::cpu::Cpu;
use super::finding::Finding;
use super::root::Root;

const AREA: &str = "accelerator";
const DEVICES: &str = "sys/bus/dsa/devices";

pub fn examine(root: &Root) -> Vec<Finding> {
    let mut findings = vec![driver(root)];
    let names = root.names(DEVICES);
    let devices: Vec<&String> = names.iter().filter(|name| is_device(name, "iax")).collect();
    if devices.is_empty() {
        findings.push(no_device(root, &names));
        return findings;
    }
    for device in devices {
        findings.push(device_finding(root, device));
        findings.extend(queue_findings(root, &names, device));
    }
    findings
}

/// `iax3` is a device of kind `iax`; `iax!wq3.0` and `iaxa` are not.
fn is_device(name: &str, kind: &str) -> bool {
    name.strip_prefix(kind)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn driver(root: &Root) -> Finding {
    if root.exists("sys/bus/dsa") {
        return Finding::ok(AREA, "idxd driver", "loaded (/sys/bus/dsa exists)");
    }
    Finding::missing(
        AREA,
        "idxd driver",
        "no /sys/bus/dsa",
        "sudo modprobe idxd; the kernel needs CONFIG_INTEL_IDXD, 5.18 or later for user work queues of IAA",
    )
}

fn no_device(root: &Root, names: &[String]) -> Finding {
    let cpu = Cpu::read(root).unwrap_or_default();
    let others = names.iter().filter(|name| is_device(name, "dsa")).count();
    let (detail, fix) = if others > 0 {
        (
            format!("none, but {others} DSA device(s), which copy and do not compress"),
            "enable IAA in the firmware setup; IAA devices are named iaxN",
        )
    } else if cpu.iaa_generation().is_none() {
        (
            "none".to_owned(),
            "this processor has no IAA; use qpl:software, deflate or lz4",
        )
    } else if cpu.is_virtual() {
        (
            "none, though the processor model has IAA".to_owned(),
            "this is a virtual machine: the host must pass an IAA device or queue through (vfio), or run on bare metal",
        )
    } else {
        (
            "none, though the processor model has IAA".to_owned(),
            "load the driver (sudo modprobe idxd), enable IAA and VT-d in the firmware setup, boot with \
             intel_iommu=on,sm_on",
        )
    };
    Finding::missing(AREA, "IAA devices", detail, fix)
}

fn device_finding(root: &Root, device: &str) -> Finding {
    let at = |name: &str| root.attribute(format!("{DEVICES}/{device}/{name}"));
    let mut detail = String::new();
    for name in [
        "state",
        "numa_node",
        "max_work_queues",
        "max_engines",
        "pasid_enabled",
        "version",
        "clients",
    ] {
        if let Some(value) = at(name) {
            let _ = write!(detail, "{}{name}={value}", if detail.is_empty() { "" } else { " " });
        }
    }
    match at("state").as_deref() {
        None => Finding::not_usable(
            AREA,
            device,
            "state cannot be read",
            "the driver's entry is broken: see dmesg | grep idxd, then sudo modprobe -r idxd && sudo modprobe idxd",
        ),
        Some("enabled") if at("pasid_enabled").as_deref() == Some("0") => Finding::not_usable(
            AREA,
            device,
            detail,
            "shared work queues need PASID: turn VT-d on in the firmware setup and boot with intel_iommu=on,sm_on",
        ),
        Some("enabled") => Finding::ok(AREA, device, detail),
        Some("halted") => Finding::not_usable(
            AREA,
            device,
            detail,
            format!("the device stopped on an error: cat /sys/bus/dsa/devices/{device}/errors, then reset it"),
        ),
        Some(_) => Finding::not_usable(
            AREA,
            device,
            detail,
            format!("sudo accel-config enable-device {device}"),
        ),
    }
}

fn queue_findings(root: &Root, names: &[String], device: &str) -> Vec<Finding> {
    let number = &device["iax".len()..];
    let prefix = format!("wq{number}.");
    // The kernel lists queues next to their devices and inside them; either works.
    let mut queues: Vec<(String, String)> = Vec::new();
    for (directory, names) in [
        (DEVICES.to_owned(), names.to_vec()),
        (format!("{DEVICES}/{device}"), root.names(format!("{DEVICES}/{device}"))),
    ] {
        for name in names.into_iter().filter(|name| name.starts_with(&prefix)) {
            if !queues.iter().any(|(known, _)| *known == name) {
                queues.push((name.clone(), format!("{directory}/{name}")));
            }
        }
    }
    if queues.is_empty() {
        return vec![Finding::missing(
            AREA,
            format!("{device} work queues"),
            "none",
            configure(device, &format!("wq{number}.0")),
        )];
    }
    // Eight queues per device are normal and one is enough: unconfigured queues share one line.
    let (idle, configured): (Vec<_>, Vec<_>) = queues
        .into_iter()
        .partition(|(_, path)| root.attribute(format!("{path}/type")).as_deref() == Some("none"));
    let mut findings: Vec<Finding> = configured
        .iter()
        .map(|(queue, path)| queue_finding(root, device, queue, path))
        .collect();
    if configured.is_empty() {
        let first = idle
            .first()
            .map_or_else(|| format!("wq{number}.0"), |(queue, _)| queue.clone());
        findings.push(Finding::not_usable(
            AREA,
            format!("{device} work queues"),
            format!("{} found, none configured", idle.len()),
            configure(device, &first),
        ));
    }
    findings
}

fn configure(device: &str, queue: &str) -> String {
    let number = &device["iax".len()..];
    format!(
        "sudo accel-config config-engine {device}/engine{number}.0 --group-id=0 && \
         sudo accel-config config-wq {device}/{queue} --group-id=0 --type=user --mode=shared --name=leafpress \
         --driver-name=user --wq-size=64 --threshold=64 --priority=10 --block-on-fault=1 && \
         sudo accel-config enable-device {device} && sudo accel-config enable-wq {device}/{queue}"
    )
}

fn queue_finding(root: &Root, device: &str, queue: &str, path: &str) -> Finding {
    let at = |name: &str| root.attribute(format!("{path}/{name}"));
    let mut detail = String::new();
    for name in [
        "mode",
        "size",
        "threshold",
        "type",
        "name",
        "driver_name",
        "state",
        "group_id",
        "priority",
        "block_on_fault",
        "clients",
    ] {
        if let Some(value) = at(name) {
            let _ = write!(detail, "{}{name}={value}", if detail.is_empty() { "" } else { " " });
        }
    }
    let what = format!("{device}/{queue}");
    let (Some(mode), Some(kind), Some(state)) = (at("mode"), at("type"), at("state")) else {
        if detail.is_empty() {
            detail.push_str("no attribute can be read");
        }
        return Finding::not_usable(
            AREA,
            what,
            detail,
            "the driver's entry is broken or half-made: see dmesg | grep idxd",
        );
    };
    let problem = if kind != "user" {
        Some(format!(
            "it belongs to {kind}; free it and make it a user queue: sudo accel-config disable-wq {what} && {}",
            configure(device, queue)
        ))
    } else if mode != "shared" {
        Some(format!(
            "QPL takes shared queues only: sudo accel-config disable-wq {what} && sudo accel-config config-wq {what} \
             --mode=shared --threshold={} && sudo accel-config enable-wq {what}",
            at("size").filter(|size| size != "0").unwrap_or_else(|| "64".into())
        ))
    } else if at("size").is_some_and(|size| size == "0") {
        Some(format!("a queue of size 0 takes no work: {}", configure(device, queue)))
    } else if state != "enabled" {
        Some(format!(
            "sudo accel-config enable-device {device}; sudo accel-config enable-wq {what}"
        ))
    } else {
        open_problem(root, queue)
    };
    match problem {
        Some(fix) => Finding::not_usable(AREA, what, detail, fix),
        None => Finding::ok(AREA, what, format!("{detail}; /dev/iax/{queue} opens")),
    }
}

/// Opens the queue's character device, as QPL will.
fn open_problem(root: &Root, queue: &str) -> Option<String> {
    let path = root.path(format!("dev/iax/{queue}"));
    match std::fs::OpenOptions::new().read(true).write(true).open(&path) {
        Ok(_) => None,
        Err(e) if e.kind() == io::ErrorKind::NotFound => Some(format!(
            "/dev/iax/{queue} does not exist: udev did not create it, or /dev/iax is not mapped into this container"
        )),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Some(format!(
            "no permission to open /dev/iax/{queue}: sudo chgrp $(id -gn) /dev/iax/{queue} && sudo chmod g+rw \
             /dev/iax/{queue} (a udev rule keeps it over reboots)"
        )),
        Err(e) => Some(format!(
            "/dev/iax/{queue} cannot be opened ({e}): is another process holding it?"
        )),
    }
}
