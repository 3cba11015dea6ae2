//! Resources of this process and machine, as reported by the system.

use std::fs;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::core::LabError;

/// CPU time and context switches of this process.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// User CPU seconds of all threads.
    pub user_seconds: f64,
    /// System CPU seconds of all threads.
    pub system_seconds: f64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// CPU seconds that everything on this machine took since it was started; `None` if the system does not report it.
    pub machine_seconds: Option<f64>,
}

/// CPU time and waits of this process between two moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuTime {
    /// User seconds of all threads.
    pub user_seconds: f64,
    /// System seconds of all threads.
    pub system_seconds: f64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Seconds that all of this was counted over: of a run, with the start and the end of its threads.
    pub wall_seconds: f64,
    /// Cores that other processes kept busy meanwhile; `None` if the system does not report it.
    #[serde(default)]
    pub other_cores: Option<f64>,
}

impl Usage {
    /// What was used since `before`, which was `wall` ago.
    pub(crate) fn since(&self, before: &Self, wall: Duration) -> CpuTime {
        let user_seconds = self.user_seconds - before.user_seconds;
        let system_seconds = self.system_seconds - before.system_seconds;
        let wall_seconds = wall.as_secs_f64();
        let machine = self.machine_seconds.zip(before.machine_seconds);
        let others = machine.map(|(now, before)| now - before - user_seconds - system_seconds);
        CpuTime {
            user_seconds,
            system_seconds,
            voluntary_switches: self.voluntary_switches - before.voluntary_switches,
            involuntary_switches: self.involuntary_switches - before.involuntary_switches,
            wall_seconds,
            other_cores: others.map(|others| (others / wall_seconds.max(1e-3)).max(0.0)),
        }
    }
}

/// Returns CPU time and context switches of this process.
///
/// # Errors
/// [`LabError::System`] when the system does not report it.
pub fn usage() -> Result<Usage, LabError> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(|e| LabError::System(format!("getrusage: {e}")))?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(Usage {
        user_seconds: seconds(usage.user_time()),
        system_seconds: seconds(usage.system_time()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        machine_seconds: machine_cpu_seconds(),
    })
}

/// Linux's clock tick for user space, independent of the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds used on this machine since boot, including time that a hypervisor gave to others; `None` where
/// the system does not report it.
fn machine_cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let fields = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = fields
        .split_ascii_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    let [
        user,
        nice,
        system,
        _idle,
        _waiting,
        interrupts,
        soft_interrupts,
        stolen,
        ..,
    ] = ticks[..]
    else {
        return None;
    };
    let busy = user + nice + system + interrupts + soft_interrupts + stolen;
    Some(busy as f64 / TICKS_PER_SECOND)
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Returns the resident memory of this process now, in bytes; `None` if the system does not report it.
///
/// From `smaps_rollup`, which walks the page tables and is exact; `statm` and `status` may be off by some pages per
/// core.
pub fn resident_bytes() -> Option<u64> {
    field_kib("/proc/self/smaps_rollup", "Rss:")
        .or_else(|| field_kib("/proc/self/status", "VmRSS:"))
        .map(|kib| kib << 10)
}

/// Returns the resident memory of this process that is its own and no file's, in bytes: without its code, which comes
/// in as it runs. Off by some pages per core, but cheap however much memory there is.
pub fn resident_anonymous_bytes() -> Option<u64> {
    let kib = field_kib("/proc/self/status", "RssAnon:")? + field_kib("/proc/self/status", "RssShmem:")?;
    Some(kib << 10)
}

/// From now on this process gets no huge pages unless it has them: an allocator's rounding to 2 MiB would look like
/// growth of what it allocates for. Where the system cannot, nothing changes.
pub(crate) fn refuse_huge_pages() {
    let _ = nix::sys::prctl::set_thp_disable(true);
}

/// Returns the memory of this machine, in bytes.
pub fn total_memory_bytes() -> Option<u64> {
    field_kib("/proc/meminfo", "MemTotal:").map(|kib| kib << 10)
}

/// Gives memory that is free back to the system, so that what is allocated next is growth of the resident memory.
///
/// Both possible allocators of the program are notified: mimalloc and glibc's.
pub fn release_free_memory() {
    // SAFETY: `mi_collect` may be called at any time from any thread; it touches only mimalloc's own free memory.
    unsafe { libmimalloc_sys::mi_collect(true) };
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `malloc_trim` may be called at any time from any thread; it touches only glibc's own free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The addresses of a line of `/proc/self/maps`.
#[cfg(all(target_os = "linux", not(miri)))]
fn addresses(line: &str) -> Option<std::ops::Range<usize>> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}

/// From now on the program's allocator, where it takes its memory from one large mapping as mimalloc does, gets it in
/// small pages. In huge ones some hundred KiB that it spreads over its size classes make megabytes resident, and look
/// like growth of what it allocates for. Other mappings, as the tree's own, keep their huge pages. Where the system
/// cannot, nothing changes.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn allocate_in_small_pages() {
    let probe = Box::new(0_u64);
    let address = (&raw const *probe).addr();
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mappings = maps.lines().filter_map(addresses);
    for mapping in mappings.filter(|mapping| mapping.contains(&address)) {
        let start = (&raw const *probe).with_addr(mapping.start).cast_mut().cast();
        // SAFETY: advice on the size of pages changes nothing that a program can see.
        unsafe { libc::madvise(start, mapping.len(), libc::MADV_NOHUGEPAGE) };
    }
}

/// Makes the pages of the program's files resident, its code and constants, which are otherwise loaded on demand: for a
/// caller that measures growth from here on measures what is allocated. Where the system cannot, nothing changes.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn make_program_resident() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for line in maps.lines() {
        // start-end permissions offset device inode path
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let [_, permissions, _, _, _, path, ..] = fields[..] else {
            continue;
        };
        if !path.starts_with('/') || !matches!(permissions, "r-xp" | "r--p") {
            continue;
        }
        if let Some(mapping) = addresses(line) {
            let start = std::ptr::without_provenance_mut(mapping.start);
            // SAFETY: reads in pages that are mapped already; an unmapped range is an error without effect.
            unsafe { libc::madvise(start, mapping.len(), libc::MADV_POPULATE_READ) };
        }
    }
}

/// Has what the harness looks up at every operation in huge pages, as far as whole ones fit: a TLB miss of the
/// harness's own at every key would count as the measured map's. Changes no resident memory; where the system cannot,
/// nothing happens.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn in_huge_pages<T>(items: &[T]) {
    const HUGE_PAGE_BYTES: usize = 2 << 20;
    let range = items.as_ptr_range();
    let start = range.start.addr().next_multiple_of(HUGE_PAGE_BYTES);
    let end = range.end.addr() & !(HUGE_PAGE_BYTES - 1);
    if start < end {
        let pages = range.start.with_addr(start).cast_mut().cast();
        // SAFETY: the pages lie in the slice, and hold the same afterwards.
        unsafe {
            libc::madvise(pages, end - start, libc::MADV_HUGEPAGE);
            libc::madvise(pages, end - start, libc::MADV_COLLAPSE);
        }
    }
}

/// Not available on this system.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn make_program_resident() {}

/// Not available on this system.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn allocate_in_small_pages() {}

/// Not available on this system.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub(crate) fn in_huge_pages<T>(_items: &[T]) {}

/// Returns the most resident memory of this process so far, in KiB. Not `ru_maxrss`: that one starts with the parent's
/// memory.
pub fn peak_resident_kib() -> Option<u64> {
    field_kib("/proc/self/status", "VmHWM:")
}

fn field_kib(file: &str, label: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(label))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Returns the machine in words: CPU model and number of cores this process may use. Not its name.
pub fn host() -> String {
    let cores = cores();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or(std::env::consts::ARCH, |(_, model)| model.trim());
    format!("{model}, {cores} core{}", if cores == 1 { "" } else { "s" })
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    #[test]
    fn a_programs_code_is_resident_on_request() {
        super::make_program_resident();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let program = std::env::current_exe().unwrap();
        let mut lines = smaps.lines();
        let code = |line: &&str| line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap());
        assert!(lines.any(|line| code(&line)), "{smaps}");
        let mut kib = |label: &str| {
            let line = lines.find_map(|line| line.strip_prefix(label)).unwrap();
            line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
        };
        let (size, resident) = (kib("Size:"), kib("Rss:"));
        assert_eq!(resident, size, "KiB");
    }
}
