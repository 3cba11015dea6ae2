//! The medium of a file: its file system, the block device, and whether that is a real device.
//!
//! Everything is read from `/proc/self/mountinfo` and `/sys`, as far as available.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// File systems whose files are in memory.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];
/// File systems with remote files.
const REMOTE: [&str; 12] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "9p",
    "virtiofs",
    "ceph",
    "glusterfs",
    "lustre",
    "gpfs",
    "afs",
    "beegfs",
];
/// Words in models of disks that a hypervisor makes up.
const VIRTUAL_MODELS: [&str; 9] = [
    "qemu",
    "vbox",
    "vmware",
    "virtual disk",
    "msft virtual",
    "elastic block store",
    "persistentdisk",
    "nvme_card",
    "bhyve",
];
/// Block devices in memory, by the beginnings of their names.
const MEMORY_DEVICES: [&str; 3] = ["zram", "ram", "pmem"];
/// Levels of device mapper and the like that are looked through.
const MAX_LEVELS: usize = 8;

/// The medium of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Medium {
    /// The file system's type, as `mount` shows it; `None` for a block device, or when it is not known.
    pub file_system: Option<String>,
    /// The disk's name in `/sys/block`, under any device mapper; several are joined with `+`.
    pub device: Option<String>,
    /// Its model name.
    pub model: Option<String>,
    /// Whether it has a disk that turns.
    pub rotational: Option<bool>,
    /// Whether it reports a volatile write cache.
    pub write_back: Option<bool>,
    /// The file that a loop device shows as a disk.
    pub backing_file: Option<PathBuf>,
    /// Evidence of a hypervisor: `virtio`, `Xen`, or its model.
    pub virtual_by: Option<String>,
    /// Whether this machine is a virtual one.
    pub virtual_machine: bool,
}

impl Medium {
    /// Detects the medium of an existing file, directory or block device.
    pub fn of(path: &Path) -> Self {
        Self::under(Path::new("/"), path)
    }

    /// The medium, with the system's files under `root`.
    fn under(root: &Path, path: &Path) -> Self {
        let mut medium = Self {
            virtual_machine: is_virtual_machine(root),
            ..Self::default()
        };
        let Ok(about) = fs::metadata(path) else {
            return medium;
        };
        let mut number = about.dev();
        if about.file_type().is_block_device() {
            number = about.rdev();
        } else if let Some(mount) = Mount::of(root, path) {
            // File systems over several disks have their own device number.
            if libc::major(number) == 0
                && let Some(source) = fs::metadata(&mount.source)
                    .ok()
                    .filter(|s| s.file_type().is_block_device())
            {
                number = source.rdev();
            }
            medium.file_system = Some(mount.file_system);
        }
        if libc::major(number) != 0 {
            let link = root.join(format!("sys/dev/block/{}:{}", libc::major(number), libc::minor(number)));
            if let Ok(directory) = fs::canonicalize(link) {
                medium.look_at(&directory, MAX_LEVELS);
            }
        }
        medium
    }

    /// Returns whether the files are in this machine's memory.
    pub fn is_memory(&self) -> bool {
        let device = self.device.as_deref().unwrap_or_default();
        let in_memory = |device: &str| MEMORY_DEVICES.iter().any(|name| device.starts_with(name));
        self.file_system.as_deref().is_some_and(|fs| IN_MEMORY.contains(&fs)) || device.split('+').all(in_memory)
    }

    /// Returns whether the files are on another machine, or another program answers for them.
    pub fn is_remote(&self) -> bool {
        self.file_system
            .as_deref()
            .is_some_and(|fs| REMOTE.contains(&fs) || fs.starts_with("fuse"))
    }

    /// Reads attributes of a device's directory in `/sys`.
    fn look_at(&mut self, directory: &Path, levels: usize) {
        // A partition is a subdirectory of its disk.
        let disk = match directory.parent() {
            Some(parent) if directory.join("partition").exists() => parent,
            _ => directory,
        };
        let below: Vec<PathBuf> = fs::read_dir(disk.join("slaves"))
            .map(|slaves| {
                slaves
                    .flatten()
                    .filter_map(|slave| fs::canonicalize(slave.path()).ok())
                    .collect()
            })
            .unwrap_or_default();
        if !below.is_empty() && levels > 0 {
            for slave in below {
                self.look_at(&slave, levels - 1);
            }
            return;
        }
        let name = disk
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let model = attribute(disk, "device/model");
        let maker = virtual_by(disk, &name, model.as_deref());
        self.device = Some(match self.device.take() {
            Some(others) if others.split('+').all(|other| other != name) => format!("{others}+{name}"),
            _ => name,
        });
        self.virtual_by = self.virtual_by.take().or(maker);
        self.model = self.model.take().or(model);
        self.backing_file = self
            .backing_file
            .take()
            .or(attribute(disk, "loop/backing_file").map(PathBuf::from));
        let flag = |value: Option<String>, yes: &str| value.map(|value| value == yes);
        self.rotational = flag(attribute(disk, "queue/rotational"), "1");
        self.write_back = flag(attribute(disk, "queue/write_cache"), "write back");
    }
}

fn attribute(directory: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(directory.join(name)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Evidence that a hypervisor provides a disk.
fn virtual_by(disk: &Path, name: &str, model: Option<&str>) -> Option<String> {
    let parts = || disk.components().filter_map(|part| part.as_os_str().to_str());
    if parts().any(|part| part.starts_with("virtio")) {
        return Some("virtio".into());
    }
    if name.starts_with("xvd") || parts().any(|part| part.starts_with("vbd-")) {
        return Some("Xen".into());
    }
    if parts().any(|part| part.starts_with("VMBUS")) {
        return Some("Hyper-V".into());
    }
    let model = model?;
    let known = VIRTUAL_MODELS.iter().any(|word| model.to_lowercase().contains(word));
    known.then(|| model.to_owned())
}

fn is_virtual_machine(root: &Path) -> bool {
    let info = fs::read_to_string(root.join("proc/cpuinfo")).unwrap_or_default();
    let mut flags = info.lines().filter(|line| line.starts_with("flags"));
    flags
        .next()
        .is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// The mount that a path is in.
#[derive(Debug)]
struct Mount {
    file_system: String,
    source: PathBuf,
}

impl Mount {
    fn of(root: &Path, path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        let table = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
        let mut best: Option<(usize, Self)> = None;
        for line in table.lines() {
            // `36 35 98:0 /root /mount/point options optional... - type source options`; see proc(5).
            let Some((place, about)) = line.split_once(" - ") else {
                continue;
            };
            let Some(point) = place.split(' ').nth(4).map(unescape) else {
                continue;
            };
            let mut about = about.split(' ');
            let (Some(file_system), Some(source)) = (about.next(), about.next()) else {
                continue;
            };
            // A later mount hides an earlier one at the same place.
            if path.starts_with(&point) && best.as_ref().is_none_or(|(len, _)| point.len() >= *len) {
                let mount = Self {
                    file_system: file_system.to_owned(),
                    source: unescape(source).into(),
                };
                best = Some((point.len(), mount));
            }
        }
        best.map(|(_, mount)| mount)
    }
}

/// Spaces and the like are written as `\040` in the table of mounts.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = (byte == b'\\').then(|| after.get(..3)).flatten();
        let value = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match value {
            Some(value) => {
                bytes.push(value);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
#[path = "medium_tests.rs"]
mod tests;
