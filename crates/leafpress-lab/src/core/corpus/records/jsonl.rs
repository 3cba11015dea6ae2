//! A JSON document a line.

use serde_json::Value;

use super::lines::lines;
use super::{Found, Malformed};

/// Blank lines are passed over. What the pointer points to is the key if it is a string or a number, and none
/// otherwise.
pub(super) fn parse(part: &[u8], pointer: &str, found: &mut Found) -> Result<(), Malformed> {
    for line in lines(part) {
        if line.is_blank() {
            continue;
        }
        let document: Value = serde_json::from_slice(line.bytes).map_err(|e| {
            let reason = e.to_string();
            // The document's own line is always the first.
            let reason = reason.split(" at line ").next().unwrap_or(&reason);
            Malformed::new(
                line.number,
                format!(
                    "not valid JSON (one document per line expected): {reason} at column {}",
                    e.column()
                ),
            )
        })?;
        match document.pointer(pointer) {
            Some(Value::String(key)) => found.push(key.as_bytes(), line.place),
            Some(Value::Number(key)) => found.push(key.to_string().as_bytes(), line.place),
            _ => found.without_key(),
        }
    }
    Ok(())
}
