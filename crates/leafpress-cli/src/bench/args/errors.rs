//! Maps rejected options to the names that this command uses.

use leafpress_lab::LabError;

use crate::failure::Failure;

/// Converts an error of the laboratory to this command's report.
pub fn bad_input(error: &LabError) -> Failure {
    match error {
        LabError::Option {
            option: "input",
            reason,
        } => Failure::bad_input(format!("INPUT: {reason}")),
        LabError::Option { option: "data", reason } if !reason.starts_with("goes with") => {
            Failure::bad_input(format!("--value_source: {reason}"))
        }
        LabError::Option { option: "cut", reason } => Failure::bad_input(format!("--value_size: {reason}")),
        LabError::Option { option, reason } => Failure::bad_input(format!("--{option}: {reason}")),
        LabError::Data { source_name, reason } if reason.contains("(--records ") => {
            Failure::bad_input(format!("--data {source_name}: {reason}"))
        }
        LabError::Data { source_name, reason } => {
            Failure::bad_input(format!("--value_source corpus:{source_name}: {reason}"))
        }
        LabError::Tree(leafpress::TreeError::Codec(e)) => {
            Failure::bad_input(format!("INPUT: {e}; `leafpress codecs` lists what runs here"))
        }
        e => Failure::failed(e.to_string()),
    }
}
