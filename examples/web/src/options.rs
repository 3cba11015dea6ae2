//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub const USAGE: &str =
    "usage: web [--listen ADDRESS:PORT] [--memory BYTES] [--disk FILE [--disk-size BYTES]] [--latency MILLISECONDS]";

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
                "--memory" => options.memory_bytes = size(&name, &value?)?,
                "--disk" => options.disk = Some(value?.into()),
                "--disk-size" => options.disk_bytes = size(&name, &value?)?,
                "--latency" => options.latency = Duration::from_millis(number(&name, &value?)?),
                _ => return Err(format!("there is no option {name}")),
            }
        }
        Ok(options)
    }
}

/// Returns a number of bytes as the `leafpress` command takes it, fractions apart: K, M, G and T are powers of 1024,
/// with B behind them of 1000.
fn size(name: &str, value: &str) -> Result<u64, String> {
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    let (digits, unit) = value.split_at(end);
    let power = |letter: &str| "KMGT".find(letter).map(|power| power as u32 + 1);
    let unit = unit.to_ascii_uppercase();
    let scale = match (unit.get(..1), unit.get(1..)) {
        _ if unit.is_empty() => Some(1),
        (Some(letter), Some("" | "IB")) => power(letter).map(|power| 1024_u64.pow(power)),
        (Some(letter), Some("B")) => power(letter).map(|power| 1000_u64.pow(power)),
        _ => None,
    };
    let bytes = digits
        .parse()
        .ok()
        .zip(scale)
        .and_then(|(number, scale): (u64, u64)| number.checked_mul(scale));
    bytes
        .filter(|bytes| *bytes <= 1 << 50)
        .ok_or_else(|| format!("{name}: invalid size `{value}`: use digits and K, M, G or T"))
}

fn number(name: &str, value: &str) -> Result<u64, String> {
    match value.parse() {
        Ok(number) if number <= 1 << 40 => Ok(number),
        _ => Err(format!("{name}: {value} is not a number of that kind")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Options, String> {
        Options::parse(words.split(' ').map(str::to_owned))
    }

    #[test]
    fn sizes_have_units() {
        let options = parse("--memory 256M --disk web.cache --disk-size 2GB").unwrap();
        assert_eq!((options.memory_bytes, options.disk_bytes), (256 << 20, 2_000_000_000));
        assert_eq!(parse("--memory 1048576").unwrap().memory_bytes, 1 << 20);
        for wrong in ["", "M", "1X", "-1", "1KBB", "99999999T", "1\u{e4}"] {
            let error = parse(&format!("--memory {wrong}")).unwrap_err();
            assert!(error.contains("--memory") && error.contains("invalid size"), "{error}");
        }
    }
}
