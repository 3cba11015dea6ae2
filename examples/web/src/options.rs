//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str =
    "usage: web [--listen ADDRESS:PORT] [--memory MIB] [--disk FILE [--disk-size MIB]] [--latency MILLISECONDS]";

#[derive(Debug, Clone)]
pub struct Options {
    pub listen: SocketAddr,
    pub memory_bytes: u64,
    pub disk: Option<PathBuf>,
    pub disk_bytes: u64,
    /// What the simulated backend takes.
    pub latency: Duration,
    /// What the cache is called in metrics.
    pub name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8080).into(),
            memory_bytes: 64 << 20,
            disk: None,
            disk_bytes: 1 << 30,
            latency: Duration::from_millis(20),
            name: "web".to_owned(),
        }
    }
}

impl Options {
    /// Reads the arguments behind the program's name; what is wrong with them.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--listen" => options.listen = value?.parse().map_err(|error| format!("{name}: {error}"))?,
                "--memory" => options.memory_bytes = number(&name, &value?)? << 20,
                "--disk" => options.disk = Some(value?.into()),
                "--disk-size" => options.disk_bytes = number(&name, &value?)? << 20,
                "--latency" => options.latency = Duration::from_millis(number(&name, &value?)?),
                _ => return Err(format!("there is no option {name}")),
            }
        }
        Ok(options)
    }
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(number) if number <= 1 << 40 => Ok(number),
        _ => Err(format!("{name}: {value} is not a number of that kind")),
    }
}
