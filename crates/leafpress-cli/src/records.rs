//! Options about keys and records that do not go together, whatever the command.

use leafpress_lab::EvalConfig;
use leafpress_lab::core::keys::KeyShape;

use crate::failure::Failure;

/// Whether the options with these names, which were given, have an effect.
pub fn check(config: &EvalConfig, given: &[&str]) -> Result<(), Failure> {
    lengths(config.records.is_some(), config.key_shape, given)
}

/// Lengths that are the records' or the shape's own cannot be told.
pub fn lengths(records: bool, shape: KeyShape, given: &[&str]) -> Result<(), Failure> {
    for option in ["key-shape", "key-bytes", "value-bytes"] {
        if records && given.contains(&option) {
            return Err(Failure::bad_input(format!(
                "--{option}: keys and values are the records' own: leave it out with --records"
            )));
        }
    }
    if !shape.has_key_bytes() && given.contains(&"key-bytes") {
        return Err(Failure::bad_input(format!(
            "--key-bytes: {shape} keys have lengths of their own: leave it out, or use dense or scattered keys"
        )));
    }
    Ok(())
}
