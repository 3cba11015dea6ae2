//! Conflicts between options about keys and records, for all commands.

use leafpress_lab::EvalConfig;
use leafpress_lab::core::keys::KeyShape;

use crate::failure::Failure;

/// Checks the options with these names, which were given.
pub fn check(config: &EvalConfig, given: &[&str]) -> Result<(), Failure> {
    lengths(config.records.is_some(), config.key_shape, given)
}

/// Lengths fixed by the records or the key shape cannot be set.
pub fn lengths(records: bool, shape: KeyShape, given: &[&str]) -> Result<(), Failure> {
    for option in ["key-shape", "key-bytes", "value-bytes"] {
        if records && given.contains(&option) {
            return Err(Failure::bad_input(format!(
                "--{option}: keys and values come from the records: omit it with --records"
            )));
        }
    }
    if !shape.has_key_bytes() && given.contains(&"key-bytes") {
        return Err(Failure::bad_input(format!(
            "--key-bytes: {shape} keys have their own lengths: omit it, or use dense or scattered keys"
        )));
    }
    Ok(())
}
