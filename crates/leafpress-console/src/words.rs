//! Splitting and parsing of arguments.

use leafpress_lab::{Bytes, ParseBytesError};

/// Splits at commas and white space.
pub fn list<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    words
        .iter()
        .flat_map(|word| word.as_ref().split(|c: char| c == ',' || c.is_whitespace()))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Parses a length in bytes, like `Bytes`.
///
/// # Errors
/// A description of what is wrong.
pub fn size(word: &str) -> Result<usize, String> {
    let Bytes(bytes) = word.parse().map_err(|e: ParseBytesError| e.to_string())?;
    usize::try_from(bytes).map_err(|_| ParseBytesError::TooMany(word.to_owned()).to_string())
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn lists_split_at_commas_and_spaces() {
        assert_eq!(list(&["1,2 4", "8"]), ["1", "2", "4", "8"]);
        assert_eq!(list(&[" , "]), Vec::<String>::new());
    }
}
