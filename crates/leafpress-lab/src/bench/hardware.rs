//! Hardware metrics by the kernel's perf events: what PiBench takes from Intel PCM.
//!
//! Instructions, cycles and last-level cache misses are of this process in user mode, background threads included.
//! Memory traffic is the machine's: memory controllers do not attribute it to processes.

use std::fs;
use std::io;
use std::path::Path;

use perf_event::events::{Dynamic, Event, Hardware as Generic};
use perf_event::{Builder, Counter};
use serde::{Deserialize, Serialize};

/// A metric, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// The count.
    Count(u64),
    /// Why it is not available.
    NotAvailable(String),
}

impl std::fmt::Display for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::NotAvailable(reason) => write!(f, "not available: {reason}"),
        }
    }
}

/// The metrics of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// Last-level cache misses.
    pub l3_misses: Reading,
    /// Bytes read from DRAM.
    pub dram_read_bytes: Reading,
    /// Bytes written to DRAM.
    pub dram_write_bytes: Reading,
    /// Bytes read from persistent memory.
    pub nvm_read_bytes: Reading,
    /// Bytes written to persistent memory.
    pub nvm_write_bytes: Reading,
    /// Instructions.
    pub instructions: Reading,
    /// Cycles.
    pub cycles: Reading,
}

/// A sum of counters, each with the factor that makes it a count of the metric's unit.
type Sum = Result<Vec<(Counter, f64)>, String>;

/// The open counters. They count what threads started after this do, so they are opened before the index is.
pub(super) struct Counters {
    l3_misses: Sum,
    dram_read_bytes: Sum,
    dram_write_bytes: Sum,
    nvm_read_bytes: Sum,
    nvm_write_bytes: Sum,
    instructions: Sum,
    cycles: Sum,
}

impl Counters {
    pub(super) fn open() -> Self {
        Self {
            l3_misses: of_process(Generic::CACHE_MISSES),
            dram_read_bytes: of_memory(&Traffic::Named("cas_count_read")),
            dram_write_bytes: of_memory(&Traffic::Named("cas_count_write")),
            nvm_read_bytes: of_persistent_memory(PMM_READ),
            nvm_write_bytes: of_persistent_memory(PMM_WRITE),
            instructions: of_process(Generic::INSTRUCTIONS),
            cycles: of_process(Generic::CPU_CYCLES),
        }
    }

    fn all(&mut self) -> [&mut Sum; 7] {
        [
            &mut self.l3_misses,
            &mut self.dram_read_bytes,
            &mut self.dram_write_bytes,
            &mut self.nvm_read_bytes,
            &mut self.nvm_write_bytes,
            &mut self.instructions,
            &mut self.cycles,
        ]
    }

    pub(super) fn start(&mut self) {
        self.each(|counter| counter.reset().and_then(|()| counter.enable()));
    }

    pub(super) fn stop(&mut self) {
        self.each(Counter::disable);
    }

    fn each(&mut self, act: impl Fn(&mut Counter) -> io::Result<()>) {
        for sum in self.all() {
            if let Ok(counters) = sum
                && let Err(e) = counters.iter_mut().try_for_each(|(counter, _)| act(counter))
            {
                *sum = Err(format!("perf events: {e}"));
            }
        }
    }

    pub(super) fn read(&mut self) -> Hardware {
        let [l3, dram_read, dram_write, nvm_read, nvm_write, instructions, cycles] = self.all().map(read);
        Hardware {
            // A virtual machine may open these counters and count nothing; a run without an instruction is not a valid
            // reading.
            l3_misses: if instructions == Reading::Count(0) {
                instructions.clone().counting_nothing()
            } else {
                l3
            },
            dram_read_bytes: dram_read,
            dram_write_bytes: dram_write,
            nvm_read_bytes: nvm_read,
            nvm_write_bytes: nvm_write,
            instructions: instructions.counting_nothing(),
            cycles: cycles.counting_nothing(),
        }
    }
}

impl Reading {
    fn counting_nothing(self) -> Self {
        match self {
            Self::Count(0) => Self::NotAvailable("the counter opens but counts nothing".into()),
            reading => reading,
        }
    }
}

fn read(sum: &mut Sum) -> Reading {
    let counters = match sum {
        Ok(counters) => counters,
        Err(reason) => return Reading::NotAvailable(reason.clone()),
    };
    let mut total = 0.0;
    for (counter, factor) in counters {
        match counter.read_count_and_time() {
            // A multiplexed counter is scaled up to the whole time.
            Ok(read) if read.time_running > 0 => {
                total += read.count as f64 * *factor * (read.time_enabled as f64 / read.time_running as f64);
            }
            Ok(read) if read.time_enabled > 0 => {
                return Reading::NotAvailable("the counter was never scheduled on the hardware".into());
            }
            Ok(_) => {}
            Err(e) => return Reading::NotAvailable(format!("perf events: {e}")),
        }
    }
    Reading::Count(total.round() as u64)
}

fn of_process(event: impl Event) -> Sum {
    let counter = Builder::new(event).inherit(true).build();
    counter.map(|counter| vec![(counter, 1.0)]).map_err(|e| refusal(&e))
}

/// Counts of the memory controllers.
enum Traffic {
    /// An event the kernel has a name and a scale (to MiB) for.
    Named(&'static str),
    /// An event by its number; each is a cache line of 64 bytes.
    Numbered(u64),
}

/// `UNC_M_PMM_RPQ_INSERTS` and `UNC_M_PMM_WPQ_INSERTS` of Intel's uncore performance monitoring guides.
const PMM_READ: u64 = 0xe3;
const PMM_WRITE: u64 = 0xe7;
const DEVICES: &str = "/sys/bus/event_source/devices";

fn of_persistent_memory(event: u64) -> Sum {
    if has_entry(Path::new("/sys/bus/nd/devices"), "namespace") {
        of_memory(&Traffic::Numbered(event))
    } else {
        Err("this machine has no persistent memory".into())
    }
}

fn has_entry(directory: &Path, prefix: &str) -> bool {
    fs::read_dir(directory).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
    })
}

/// One counter for each memory controller of each package.
fn of_memory(traffic: &Traffic) -> Sum {
    let entries = fs::read_dir(DEVICES).map_err(|e| format!("{DEVICES}: {e}"))?;
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let controllers: Vec<_> = names.filter(|name| is_memory_controller(name)).collect();
    if controllers.is_empty() {
        return Err("the kernel shows no counters of the memory controllers (uncore_imc)".into());
    }
    let mut counters = Vec::new();
    for controller in &controllers {
        let mask = format!("{DEVICES}/{controller}/cpumask");
        let cpus = fs::read_to_string(&mask).map_err(|e| format!("{mask}: {e}"))?;
        for cpu in cpu_list(&cpus) {
            counters
                .push(open_controller(controller, traffic, cpu).map_err(|e| format!("{controller}: {}", refusal(&e)))?);
        }
    }
    Ok(counters)
}

/// `uncore_imc` and `uncore_imc_N`, not the free-running ones, which have other events.
fn is_memory_controller(name: &str) -> bool {
    name.strip_prefix("uncore_imc")
        .is_some_and(|rest| rest.is_empty() || rest.strip_prefix('_').is_some_and(|n| n.parse::<u32>().is_ok()))
}

fn open_controller(controller: &str, traffic: &Traffic, cpu: usize) -> io::Result<(Counter, f64)> {
    let mut event = Dynamic::builder(controller)?;
    let factor = match traffic {
        Traffic::Named(name) => {
            event.event(name)?;
            event.scale()?.unwrap_or(1.0) * 1024.0 * 1024.0
        }
        Traffic::Numbered(number) => {
            event.field("event", *number).map_err(io::Error::other)?;
            64.0
        }
    };
    let event = event.build().map_err(io::Error::other)?;
    let mut builder = Builder::new(event);
    // Uncore counters cannot be restricted to a process or mode.
    builder.any_pid().one_cpu(cpu).include_kernel().include_hv();
    Ok((builder.build()?, factor))
}

/// `0,28` or `0-3,8`.
fn cpu_list(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>()) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// Why the kernel refuses, with the responsible setting.
fn refusal(error: &io::Error) -> String {
    let refused = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    match fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
        Ok(setting) if refused => format!(
            "perf_event_open: {error} (kernel.perf_event_paranoid={})",
            setting.trim()
        ),
        _ if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EOPNOTSUPP)) => {
            "perf_event_open: this machine has no such counter (a virtual machine without a PMU?)".into()
        }
        _ => format!("perf_event_open: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpu_list("0\n"), [0]);
        assert_eq!(cpu_list("0,28\n"), [0, 28]);
        assert_eq!(cpu_list("1-3,8"), [1, 2, 3, 8]);
        assert_eq!(cpu_list(""), Vec::<usize>::new());
    }

    #[test]
    fn distinguishes_memory_controllers_from_their_neighbours() {
        for (name, is_one) in [
            ("uncore_imc", true),
            ("uncore_imc_11", true),
            ("uncore_imc_free_running_0", false),
            ("uncore_cha_0", false),
            ("cpu", false),
        ] {
            assert_eq!(is_memory_controller(name), is_one, "{name}");
        }
    }

    /// On any machine, every metric is a count or an explanation.
    #[test]
    fn every_metric_is_present_or_has_a_reason() {
        let mut counters = Counters::open();
        counters.start();
        let work = std::thread::spawn(|| (0..1_000_000_u64).fold(0, |sum, i| std::hint::black_box(sum ^ i)));
        work.join().unwrap();
        counters.stop();
        let hardware = counters.read();
        for reading in [
            &hardware.instructions,
            &hardware.cycles,
            &hardware.l3_misses,
            &hardware.dram_read_bytes,
        ] {
            match reading {
                Reading::Count(_) => {}
                Reading::NotAvailable(reason) => assert!(!reason.is_empty()),
            }
        }
        if let Reading::Count(instructions) = hardware.instructions {
            assert!(instructions >= 1_000_000, "threads are counted: {instructions}");
        }
    }
}
