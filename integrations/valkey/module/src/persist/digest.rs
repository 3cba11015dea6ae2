//! A value in `DEBUG DIGEST`: its records in order, whatever tree they are in.

use crate::api::io::Digest;
use crate::store::value::Borrowed;

/// Adds a value.
pub fn digest(digest: &mut Digest, value: &Borrowed<'_>) {
    let read = match value {
        Borrowed::Text(text) => text.get_with(|value| digest.add(value)).map(|_| ()),
        Borrowed::Map(map) => map.each(|field, value| {
            digest.add(field);
            digest.add(value);
        }),
    };
    if let Err(error) = read {
        digest.add(error.to_string().as_bytes());
    }
    digest.end();
}
