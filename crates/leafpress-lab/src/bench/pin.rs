//! Where threads run.

use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::core::LabError;
use crate::core::words::words;

/// How threads are pinned to CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pin {
    /// As close to each other as possible: hardware threads of a core first, then the next core of the same package.
    Compact,
    /// As far apart as possible: packages in turn, separate cores, hardware threads of used cores last.
    Spread,
    /// Where the system puts them.
    #[default]
    None,
}

words!(Pin, "pin", "unknown way `{}`; known: compact spread none": Compact "compact", Spread "spread", None "none");

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Cpu {
    package: u64,
    core: u64,
    number: usize,
}

/// The CPUs for threads, in order; thread i uses number i modulo their count. Empty for [`Pin::None`].
///
/// # Errors
/// [`LabError::System`] when the system does not report which CPUs this process may use.
pub(super) fn places(pin: Pin) -> Result<Vec<usize>, LabError> {
    if pin == Pin::None {
        return Ok(Vec::new());
    }
    let allowed =
        sched_getaffinity(Pid::from_raw(0)).map_err(|e| LabError::System(format!("sched_getaffinity: {e}")))?;
    let cpus = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false));
    let topology = |cpu: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok())
    };
    let cpus = cpus.map(|number| Cpu {
        package: topology(number, "physical_package_id").unwrap_or(0),
        core: topology(number, "core_id").unwrap_or(number as u64),
        number,
    });
    Ok(order(pin, cpus.collect()))
}

fn order(pin: Pin, mut cpus: Vec<Cpu>) -> Vec<usize> {
    cpus.sort();
    if pin == Pin::Spread {
        // Of each CPU: how many of its core, and how many first CPUs of its package's cores, come before it.
        let rank = |cpu: &Cpu| {
            let before = || {
                cpus.iter()
                    .filter(move |other| *other < cpu && other.package == cpu.package)
            };
            let of_core = before().filter(|other| other.core == cpu.core).count();
            let mut cores: Vec<_> = before()
                .map(|other| other.core)
                .filter(|core| *core != cpu.core)
                .collect();
            cores.dedup();
            (of_core, cores.len(), cpu.package, cpu.number)
        };
        let mut ranked: Vec<_> = cpus.iter().map(|cpu| (rank(cpu), cpu.number)).collect();
        ranked.sort();
        return ranked.into_iter().map(|(_, number)| number).collect();
    }
    cpus.into_iter().map(|cpu| cpu.number).collect()
}

/// Pins the calling thread to a CPU.
///
/// # Errors
/// [`LabError::System`] when the system refuses.
pub(super) fn to(cpu: usize) -> Result<(), LabError> {
    let mut set = CpuSet::new();
    set.set(cpu)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|e| LabError::System(format!("cannot pin a thread to CPU {cpu}: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages of two cores of two hardware threads, numbered as Linux does: all first hardware threads first.
    fn machine() -> Vec<Cpu> {
        let cpu = |number: usize| Cpu {
            package: (number as u64 / 2) % 2,
            core: number as u64 % 2,
            number,
        };
        (0..8).map(cpu).collect()
    }

    #[test]
    fn compact_fills_cores_and_spread_leaves_them() {
        assert_eq!(order(Pin::Compact, machine()), [0, 4, 1, 5, 2, 6, 3, 7]);
        assert_eq!(order(Pin::Spread, machine()), [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn a_thread_can_be_pinned_where_it_may_run() {
        assert!(places(Pin::None).unwrap().is_empty());
        let places = places(Pin::Compact).unwrap();
        let first = places[0];
        std::thread::spawn(move || {
            to(first).unwrap();
            let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
            let pinned: Vec<_> = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap()).collect();
            assert_eq!(pinned, [first]);
        })
        .join()
        .unwrap();
    }
}
