//! The amount of data and the number of threads for this machine.

use std::path::Path;

use leafpress_lab::Bytes;

use crate::BenchError;

/// Default share of the memory available to the page cache that raw data takes: an eighth, so that several databases
/// fit at once, compressed or not.
const SHARE: f64 = 0.125;
/// Default upper bound for the bytes of data: more makes loading long and changes little.
const MAX_BYTES: u64 = 1 << 30;
/// Part of the free disk that data may take at most.
const DISK_SHARE: f64 = 0.25;

/// Returns the bytes of data: the requested size, in bytes or as `N%` of the free memory, or a default for this
/// machine.
///
/// # Errors
/// [`BenchError::Option`] for what is neither.
pub fn data_bytes(requested: Option<&str>, directory: &Path) -> Result<u64, BenchError> {
    let free = free_memory_bytes();
    match requested {
        None => {
            let disk = free_disk_bytes(directory).map_or(u64::MAX, |disk| (disk as f64 * DISK_SHARE) as u64);
            Ok(((free as f64 * SHARE) as u64).min(MAX_BYTES).min(disk).max(1 << 20))
        }
        Some(text) => match text.strip_suffix('%').map(str::parse::<f64>) {
            Some(Ok(percent)) if percent > 0.0 && percent <= 1000.0 => Ok((free as f64 * percent / 100.0) as u64),
            Some(_) => Err(BenchError::option(
                "data-bytes",
                format!("`{text}` is not over 0% and up to 1000%"),
            )),
            None => match text.parse::<Bytes>() {
                Ok(Bytes(bytes)) if bytes > 0 => Ok(bytes),
                Ok(_) => Err(BenchError::option("data-bytes", "0 leaves no key")),
                Err(e) => Err(BenchError::option(
                    "data-bytes",
                    format!("{e}, or N% of the memory that is free"),
                )),
            },
        },
    }
}

/// Returns the memory available to the page cache, in bytes; 1 GiB if the system does not report it.
pub fn free_memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map_or(1 << 30, |kib| kib << 10)
}

/// Free bytes of the file system of a directory, or of the nearest one above it that is there.
fn free_disk_bytes(directory: &Path) -> Option<u64> {
    let there = directory.ancestors().find(|path| path.exists())?;
    let there = if there.as_os_str().is_empty() {
        Path::new(".")
    } else {
        there
    };
    let status = nix::sys::statvfs::statvfs(there).ok()?;
    Some(status.blocks_available() as u64 * status.fragment_size() as u64)
}

/// CPUs that this process may use.
pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Instances and threads of each, in the white paper's proportion to the CPUs of its socket (120 with hyper-threads): 4
/// instances of 25 threads that read, 8 of 10 that read and write besides the threads of compaction. One instance where
/// there are fewer CPUs than 25 or 10 for each.
pub fn instances_and_threads(cpus: usize, writes: bool) -> (usize, usize) {
    let (most, per_instance, share) = if writes {
        (8, 10, 80.0 / 120.0)
    } else {
        (4, 25, 100.0 / 120.0)
    };
    let threads = ((cpus as f64 * share).ceil() as usize).max(1);
    let instances = (threads / per_instance).clamp(1, most);
    (instances, threads.div_ceil(instances))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_the_white_papers_on_its_machine() {
        assert_eq!(instances_and_threads(120, false), (4, 25));
        assert_eq!(instances_and_threads(120, true), (8, 10));
        assert_eq!(instances_and_threads(2, false), (1, 2));
        assert_eq!(instances_and_threads(2, true), (1, 2));
        assert_eq!(instances_and_threads(1, true), (1, 1));
    }

    #[test]
    fn sizes_are_bytes_or_percent() {
        let here = Path::new(".");
        assert_eq!(data_bytes(Some("64M"), here).unwrap(), 64 << 20);
        assert!(data_bytes(Some("10%"), here).unwrap() > 0);
        assert!(data_bytes(None, here).unwrap() <= MAX_BYTES);
        for bad in ["0", "x", "-1%", "0%"] {
            assert!(
                data_bytes(Some(bad), here)
                    .unwrap_err()
                    .to_string()
                    .starts_with("--data-bytes"),
                "{bad}"
            );
        }
    }
}
