//! The library's errors as the command reports them.

use leafpress_console::failure::Failure;
use leafpress_lab::LabError;
use leafpress_rocksdb_bench::BenchError;

/// Returns the command's failure for an error.
pub fn failure(error: &BenchError) -> Failure {
    match error {
        BenchError::Option { .. } | BenchError::Database { .. } => Failure::bad_input(error.to_string()),
        BenchError::Lab(LabError::Cancelled) => Failure::Interrupted("interrupted: nothing was measured yet".into()),
        BenchError::Lab(LabError::Option { option, reason }) => Failure::bad_input(format!("--{option}: {reason}")),
        BenchError::Lab(LabError::Data { source_name, reason }) => {
            Failure::bad_input(format!("--data {source_name}: {reason}"))
        }
        BenchError::Lab(LabError::Io { path, source }) => {
            Failure::bad_input(format!("{}: {source}; name a writable directory", path.display()))
        }
        error => Failure::failed(error.to_string()),
    }
}
