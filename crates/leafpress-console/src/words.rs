//! Splitting of arguments.

/// Splits at commas and white space.
pub fn list<S: AsRef<str>>(words: &[S]) -> Vec<String> {
    words
        .iter()
        .flat_map(|word| word.as_ref().split(|c: char| c == ',' || c.is_whitespace()))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
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
