//! Reads what `leafpress device --out` wrote, instead of probing.

use std::path::Path;

use super::{DeviceError, Operation, Report};

/// Longest result that is read, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Reads the report in a `results.json`, or in the directory that has one.
///
/// # Errors
/// [`DeviceError::Saved`] for a file that cannot be read, is not such a result, or has no reads.
pub fn saved_report(path: &Path) -> Result<Report, DeviceError> {
    let refuse = |reason: String| DeviceError::Saved {
        path: path.to_owned(),
        reason,
    };
    let file = if path.is_dir() {
        path.join("results.json")
    } else {
        path.to_owned()
    };
    let about = file.metadata().map_err(|e| {
        refuse(match path == file {
            true => format!("cannot be read: {e}"),
            false => format!("its results.json cannot be read: {e}"),
        })
    })?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err(refuse(
            "not a file of plausible size: name the results.json, or the directory, of `leafpress device --out`".into(),
        ));
    }
    let text = std::fs::read_to_string(&file).map_err(|e| refuse(format!("cannot be read: {e}")))?;
    let report: Report = serde_json::from_str(&text).map_err(|e| {
        refuse(format!(
            "not a result of `leafpress device --out`: {e}; use --fio-json for a result of fio"
        ))
    })?;
    if report.measurements.iter().all(|m| m.operation != Operation::Read) {
        return Err(refuse("it has no reads".into()));
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;

    #[test]
    fn what_a_probe_wrote_is_read_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let report = fixtures::report();
        let json = crate::report::json("leafpress device /mnt", &report).unwrap();
        std::fs::write(directory.path().join("results.json"), json).unwrap();
        let read = saved_report(directory.path()).unwrap();
        assert_eq!(read.measurements.len(), report.measurements.len());
        assert_eq!(read.source, report.source);
        let message = |path: &Path| saved_report(path).unwrap_err().to_string();
        let other = directory.path().join("other.json");
        std::fs::write(&other, "{\"jobs\": []}").unwrap();
        assert!(message(&other).contains("--fio-json"), "{}", message(&other));
        assert!(message(Path::new("/no/such")).contains("cannot be read"));
        let empty = tempfile::tempdir().unwrap();
        assert!(message(empty.path()).contains("its results.json cannot be read"));
    }
}
