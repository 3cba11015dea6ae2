//! Conflicts between options about keys and records, for all commands.

use clap::Args;
use leafpress_console::given::Given;
use leafpress_lab::core::keys::KeyShape;

use crate::failure::Failure;

/// Checks that no lengths are given that the records or the key shape fix.
pub fn check<O: Args>(records: bool, shape: KeyShape, given: &Given<O>) -> Result<(), Failure> {
    for option in ["key-shape", "key-bytes", "value-bytes"] {
        if records && given.has(option) {
            return Err(Failure::bad_input(format!(
                "--{option}: keys and values come from the records: omit it with --records"
            )));
        }
    }
    if !shape.has_key_bytes() && given.has("key-bytes") {
        return Err(Failure::bad_input(format!(
            "--key-bytes: {shape} keys have their own lengths: omit it, or use dense or scattered keys"
        )));
    }
    Ok(())
}
