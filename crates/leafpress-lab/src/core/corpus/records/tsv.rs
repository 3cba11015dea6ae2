//! Lines of key, tab, value.

use super::lines::lines;
use super::{Found, Malformed};

/// Blank lines are passed over.
pub(super) fn parse(part: &[u8], found: &mut Found) -> Result<(), Malformed> {
    for line in lines(part) {
        match line.bytes.iter().position(|&byte| byte == b'\t') {
            Some(tab) => found.push(&line.bytes[..tab], line.place.start + tab + 1..line.place.end),
            None if line.is_blank() => {}
            None => return Err(Malformed::new(line.number, "no tab between a key and a value")),
        }
    }
    Ok(())
}
