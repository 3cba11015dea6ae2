//! Where a run took place.

use std::fs;

use serde::{Deserialize, Serialize};

/// The environment of a run, in PiBench's format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Local time as C's `asctime` writes it: `Tue Nov  5 14:05:25 2019`.
    pub time: String,
    /// Number of CPUs of the machine.
    pub cpus: u64,
    /// Their model.
    pub cpu_model: String,
    /// Size of their cache, as reported by the kernel.
    pub cpu_cache: String,
    /// Kernel and release.
    pub kernel: String,
}

impl Environment {
    /// Describes this machine, now.
    pub fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let kernel = |file| fs::read_to_string(format!("/proc/sys/kernel/{file}")).ok();
        Self {
            time: jiff::Zoned::now().strftime("%a %b %e %H:%M:%S %Y").to_string(),
            kernel: match (kernel("ostype"), kernel("osrelease")) {
                (Some(system), Some(release)) => format!("{} {}", system.trim(), release.trim()),
                _ => "Unknown".into(),
            },
            ..Self::of_cpuinfo(&info)
        }
    }

    fn of_cpuinfo(info: &str) -> Self {
        let values = |wanted: &'static str| {
            info.lines().filter_map(move |line| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == wanted).then(|| value.trim().to_owned())
            })
        };
        let cpus = values("processor").count() as u64;
        Self {
            time: String::new(),
            cpus,
            cpu_model: values("model name")
                .next_back()
                .unwrap_or_else(|| std::env::consts::ARCH.into()),
            cpu_cache: values("cache size").next_back().unwrap_or_else(|| "Unknown".into()),
            kernel: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_and_named() {
        let info = "processor\t: 0\nmodel name\t: A CPU @ 2.40GHz\ncache size\t: 36608 KB\n\nprocessor\t: 1\nmodel \
                    name\t: A CPU @ 2.40GHz\ncache size\t: 36608 KB\nflags\t\t:\n";
        let environment = Environment::of_cpuinfo(info);
        assert_eq!(environment.cpus, 2);
        assert_eq!(environment.cpu_model, "A CPU @ 2.40GHz");
        assert_eq!(environment.cpu_cache, "36608 KB");
        let none = Environment::of_cpuinfo("processor : 0\n");
        assert_eq!((none.cpus, none.cpu_cache.as_str()), (1, "Unknown"));
    }

    #[test]
    fn the_time_is_asctimes() {
        let time = Environment::here().time;
        // `Tue Nov  5 14:05:25 2019`: always 24 characters.
        assert_eq!(time.len(), 24, "{time}");
        assert_eq!(time.matches(':').count(), 2, "{time}");
    }
}
