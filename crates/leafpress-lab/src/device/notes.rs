//! Effects in a result that are not the device's: observations, and why they are suspicious.

use std::collections::BTreeMap;

use super::job::TENTHS;
use super::note::{Note, Topic};
use super::{Measurement, Operation, Probed, Subject};
use crate::core::{Bytes, about};

/// NAND flash takes at least about 50 us for a random read; a lower latency is not from flash.
const MIN_FLASH_US: f64 = 35.0;
/// Minimum latency of a device on a bus.
const MIN_DEVICE_US: f64 = 4.0;
/// Factor by which second reads must be faster than first ones to indicate a cache.
const REREAD_RATIO: f64 = 0.67;
/// Differences below this are the clock's and the scheduler's, in microseconds.
const REREAD_LEAST_US: f64 = 8.0;
/// Beginning and end of a measurement may differ by this factor.
const STEADY_RATIO: f64 = 1.5;
/// Seconds that the last request of a measurement may take without a note.
const LATE_SECONDS: f64 = 1.0;
/// Rates of different blocks that are so near to each other are a limit's.
const SAME_RATE: f64 = 0.02;
/// A disk that turns has the same rate for all small blocks too, far below this.
const MIN_LIMIT_IOPS: f64 = 1500.0;
/// Fewer requests have no 99th percentile worth the name.
const FEW: u64 = 1000;
/// A core that is so busy is what is measured.
const BUSY: f64 = 0.9;
/// The share of holes in a file that needs no note.
const HOLES: u64 = 100;

/// All notes on a probe.
pub(super) fn of_probe(probed: &Probed, measurements: &[Measurement]) -> Vec<Note> {
    let mut notes = Vec::new();
    notes.extend(beneath(probed));
    notes.extend(holes(probed));
    notes.extend(again(probed));
    notes.extend(too_quick(probed, measurements));
    notes.extend(limit(measurements));
    let stopped = |m| stopped(m, probed.options.seconds);
    notes.extend(measurements.iter().find_map(|m| stopped(m).or_else(|| unsteady(m))));
    notes.extend(processor(probed, measurements));
    if let Some(reason) = &probed.no_uring {
        let text = format!(
            "io_uring is not available ({reason}): one thread per request in flight called pread and pwrite instead, \
             which costs more processor time"
        );
        notes.push(Note::new(Topic::Engine, text));
    }
    if probed.medium.write_back == Some(true) && measurements.iter().any(|m| m.operation == Operation::Write) {
        let text = "the device says it has a write cache: writes completed there, none was flushed to the medium";
        notes.push(Note::new(Topic::WriteCache, text));
    }
    notes.extend(few(measurements));
    notes
}

/// Notes on the medium of the file.
fn beneath(probed: &Probed) -> Vec<Note> {
    let medium = &probed.medium;
    let name = medium.file_system.as_deref().unwrap_or("the file system");
    let device = medium.device.as_deref().unwrap_or("the disk");
    let mut notes = Vec::new();
    if medium.is_memory() {
        let what = if medium.device.is_some() { device } else { name };
        let text = format!("{what} is in memory: there is no device, these are the figures of memory and system calls");
        return vec![Note::new(Topic::Memory, text)];
    }
    if let Err(reason) = &probed.direct {
        let memory = probed.memory_bytes.map_or_else(String::new, |bytes| {
            format!(
                " (the file has {}, this machine {} of memory)",
                Bytes(probed.bytes),
                about(bytes as f64)
            )
        });
        let text = format!(
            "no direct I/O: {reason}. Blocks read before come from the page cache{memory}: these are not the device's \
             figures"
        );
        notes.push(Note::new(Topic::PageCache, text));
    }
    if medium.is_remote() {
        let text = format!(
            "{name} files are served by another machine or program: its caches and the path to it are in the figures"
        );
        notes.push(Note::new(Topic::Remote, text));
    } else if let Some(by) = &medium.virtual_by {
        let file = match probed.subject {
            Subject::ProbeFile => format!(
                "The {} just written may all be in the host's memory",
                Bytes(probed.bytes)
            ),
            _ => format!(
                "Recently used parts of the {} bytes may be in the host's memory",
                probed.bytes
            ),
        };
        let text = format!(
            "{device} is a virtual disk ({by}): these are the hypervisor's figures, with its caches and limits, not a \
             device's. {file}; direct I/O does not bypass that"
        );
        notes.push(Note::new(Topic::VirtualDisk, text));
    } else if let Some(file) = &medium.backing_file {
        let text = format!(
            "{device} is not a disk but the file {}: the page cache of its file system may answer",
            file.display()
        );
        notes.push(Note::new(Topic::UnknownDisk, text));
    } else if medium.device.is_none() {
        let text = format!("no block device was found beneath {name}: the medium is unknown");
        notes.push(Note::new(Topic::UnknownDisk, text));
    } else if medium.virtual_machine {
        let text = format!(
            "this is a virtual machine: {device} may be a device passed through to it, or emulated by the hypervisor"
        );
        notes.push(Note::new(Topic::UnknownDisk, text));
    }
    notes
}

fn holes(probed: &Probed) -> Option<Note> {
    (probed.hole_bytes > probed.bytes / HOLES).then(|| {
        let text = format!(
            "the file has {} bytes that its file system has not stored (holes, or compressed): reads of them do not \
             reach the device",
            probed.hole_bytes
        );
        Note::new(Topic::Holes, text)
    })
}

/// A cache that first and second reads show.
fn again(probed: &Probed) -> Option<Note> {
    let reread = probed.reread?;
    let quicker =
        reread.second_us < reread.first_us * REREAD_RATIO && reread.first_us - reread.second_us > REREAD_LEAST_US;
    quicker.then(|| {
        let text = format!(
            "{} blocks of {} took {:.0} us each on the first read and {:.0} us on the second (medians, one at a time): \
             a cache outside this machine answers repeated reads, so figures over a small file are better than those \
             over a large one",
            reread.blocks,
            Bytes(reread.block_bytes),
            reread.first_us,
            reread.second_us
        );
        Note::new(Topic::Reread, text)
    })
}

fn too_quick(probed: &Probed, measurements: &[Measurement]) -> Option<Note> {
    if probed.medium.is_memory() || probed.direct.is_err() {
        return None;
    }
    let reads = measurements.iter().filter(|m| m.operation == Operation::Read);
    let (m, p50) = reads
        .filter_map(|m| Some((m, m.random_latency?.p50_us?)))
        .min_by_key(|(m, _)| (m.queue_depth, m.block_bytes))?;
    let why = match p50 {
        us if us < MIN_DEVICE_US => "no device on a bus is that fast: the reads come from memory",
        us if us < MIN_FLASH_US => {
            "a read of NAND flash takes at least 50 us: the reads come from a cache (the device's, the controller's or \
             a hypervisor's), or this is an unusually fast medium"
        }
        _ => return None,
    };
    let text = format!(
        "half of the reads of {} at random places took {p50:.1} us or less (depth {}): {why}",
        Bytes(m.block_bytes),
        m.queue_depth
    );
    Some(Note::new(Topic::TooQuick, text))
}

/// Equal rates for several block sizes indicate a limit.
fn limit(measurements: &[Measurement]) -> Option<Note> {
    let mut series: BTreeMap<(Operation, u32), Vec<&Measurement>> = BTreeMap::new();
    for m in measurements {
        series.entry((m.operation, m.queue_depth)).or_default().push(m);
    }
    series.into_iter().find_map(|((operation, depth), mut row)| {
        row.sort_by_key(|m| m.block_bytes);
        row.windows(3).find_map(|three| {
            let rates = || three.iter().map(|m| m.iops);
            let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
            let same = least > MIN_LIMIT_IOPS && most - least <= least * SAME_RATE;
            same.then(|| {
                let sizes: Vec<_> = three.iter().map(|m| Bytes(m.block_bytes).to_string()).collect();
                let text = format!(
                    "{operation}s of {} reach the same {most:.0} per second at depth {depth}: this is a limit on \
                     requests, not the device's limit",
                    sizes.join(", ")
                );
                Note::new(Topic::Limit, text)
            })
        })
    })
}

/// Far longer than requested.
fn stopped(m: &Measurement, wanted_seconds: f64) -> Option<Note> {
    (m.seconds > wanted_seconds * STEADY_RATIO + LATE_SECONDS).then(|| {
        let text = format!(
            "{}s of {} at depth {} went on for {:.1} s instead of {wanted_seconds}: a request hung, or this program \
             was suspended; measure again",
            m.operation,
            Bytes(m.block_bytes),
            m.queue_depth,
            m.seconds
        );
        Note::new(Topic::Unsteady, text)
    })
}

/// More or less in the end than in the beginning.
fn unsteady(m: &Measurement) -> Option<Note> {
    if m.tenths.len() != TENTHS || m.operations < FEW {
        return None;
    }
    let sum = |tenths: &[u64]| tenths.iter().sum::<u64>() as f64;
    let (first, last) = (sum(&m.tenths[..3]), sum(&m.tenths[TENTHS - 3..]));
    let change = match (first, last) {
        (first, last) if first > last * STEADY_RATIO => "fell",
        (first, last) if last > first * STEADY_RATIO => "rose",
        _ => return None,
    };
    let per_second = |requests: f64| requests / (m.seconds * 0.3);
    let text = format!(
        "the rate of {}s of {} at depth {} {change} from {:.0} to {:.0} per second while it was measured: a burst \
         allowance, a cache filling up, or other work on the machine; measure longer",
        m.operation,
        Bytes(m.block_bytes),
        m.queue_depth,
        per_second(first),
        per_second(last)
    );
    Some(Note::new(Topic::Unsteady, text))
}

fn processor(probed: &Probed, measurements: &[Measurement]) -> Option<Note> {
    let threads = |m: &Measurement| match probed.engine.as_str() {
        "io_uring" => 1.0,
        _ => {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            f64::from(m.queue_depth).min(cores as f64)
        }
    };
    let busy = measurements
        .iter()
        .filter_map(|m| Some((m, m.cores?)))
        .find(|(m, cores)| *cores >= BUSY * threads(m))?;
    let text = format!(
        "the processor was busy ({:.2} cores) with {}s of {} at depth {}: the result reflects its speed too, not only \
         the device's",
        busy.1,
        busy.0.operation,
        Bytes(busy.0.block_bytes),
        busy.0.queue_depth
    );
    Some(Note::new(Topic::Processor, text))
}

fn few(measurements: &[Measurement]) -> Option<Note> {
    let least = measurements.iter().min_by_key(|m| m.operations)?;
    (least.operations < FEW).then(|| {
        let text = format!(
            "only {} requests ended in {:.2} s ({}s of {}): high percentiles are unreliable; measure longer",
            least.operations,
            least.seconds,
            least.operation,
            Bytes(least.block_bytes)
        );
        Note::new(Topic::Few, text)
    })
}

#[cfg(test)]
#[path = "notes_tests.rs"]
mod tests;
