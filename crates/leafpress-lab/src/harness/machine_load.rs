//! Other work on the machine while something is measured, which makes its times longer.

use crate::core::resources::cores;

/// A caution is given from this fraction of the cores on, and from this many cores.
const BUSY: (f64, f64) = (0.1, 0.25);

/// That other processes kept this many cores busy, where that is enough to change what was measured. `unchanged` names
/// the figures that do not depend on it.
pub(crate) fn caution(other_cores: Option<f64>, unchanged: &str) -> Option<String> {
    let (other_cores, cores) = (other_cores?, cores() as f64);
    (other_cores >= BUSY.1.max(cores * BUSY.0)).then(|| {
        format!(
            "The machine was busy: other work took {other_cores:.1} of {cores} cores during the measurement. \
             Throughput is lower and latencies are longer than on a quiet machine; {unchanged} are not affected. \
             Measure again when it is quiet."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_other_work_only_if_it_is_much() {
        assert_eq!(caution(None, "sizes"), None);
        assert_eq!(caution(Some(0.01), "sizes"), None);
        let message = caution(Some(cores() as f64), "sizes").unwrap();
        assert!(
            message.contains("busy") && message.contains("; sizes are not affected"),
            "{message}"
        );
    }
}
