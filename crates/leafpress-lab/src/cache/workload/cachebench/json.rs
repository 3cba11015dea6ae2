//! A JSON file whose fields are removed when they are read, so that those left at the end are unknown and reported.

use std::io::Read;
use std::path::Path;

use serde_json::{Map, Value};

use crate::core::LabError;
use crate::core::corpus::{check_regular, plain};

/// Most bytes of a file: far more than any distribution has.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Reads a file. CacheBench's may have comments in them.
///
/// # Errors
/// [`LabError::Data`] when it cannot be read or is not valid JSON.
pub(super) fn read(path: &Path) -> Result<Value, LabError> {
    let refuse = |reason: String| LabError::data(path.display().to_string(), reason);
    check_regular(path).map_err(refuse)?;
    let file = std::fs::File::open(path).map_err(|e| refuse(plain(&e)))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(refuse("is a directory: name a file".into()));
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|e| refuse(plain(&e)))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(refuse(format!("has more than {MAX_FILE_BYTES} bytes")));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    serde_json::from_str(&without_comments(text)).map_err(|e| refuse(format!("is not valid JSON: {e}")))
}

/// Blanks out `// ...` and `/* ... */`; lines and columns are preserved.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    let mut is_string = false;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some(_)) if is_string => {
                kept.push(letter);
                kept.extend(letters.next());
                continue;
            }
            ('"', _) => is_string = !is_string,
            ('/', Some('/')) if !is_string => {
                while letters.next_if(|letter| *letter != '\n').is_some() {}
                continue;
            }
            ('/', Some('*')) if !is_string => {
                letters.next();
                let mut last = ' ';
                for letter in letters.by_ref() {
                    kept.extend((letter == '\n').then_some(letter));
                    if (last, letter) == ('*', '/') {
                        break;
                    }
                    last = letter;
                }
                continue;
            }
            _ => {}
        }
        kept.push(letter);
    }
    kept
}

/// The fields of an object; reading a field removes it.
pub(super) struct Fields {
    /// The file, for error messages.
    file: String,
    /// Their path within it, with a trailing dot, or empty.
    place: String,
    map: Map<String, Value>,
}

impl Fields {
    /// The fields of `value`, which is at `place` in the file.
    ///
    /// # Errors
    /// [`LabError::Data`] when it is not an object.
    pub(super) fn of(value: Value, file: &Path, place: &str) -> Result<Self, LabError> {
        let file = file.display().to_string();
        match value {
            Value::Object(map) => Ok(Self {
                file,
                place: if place.is_empty() {
                    String::new()
                } else {
                    format!("{place}.")
                },
                map,
            }),
            _ if place.is_empty() => Err(LabError::data(file, "must contain an object, `{ ... }`")),
            _ => Err(LabError::data(file, format!("{place} must be an object, `{{ ... }}`"))),
        }
    }

    /// An error of one of them.
    pub(super) fn refuse(&self, field: &str, reason: impl std::fmt::Display) -> LabError {
        LabError::data(self.file.clone(), format!("{}{field} {reason}", self.place))
    }

    /// Removes a field.
    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        self.map.remove(field).filter(|value| !value.is_null())
    }

    /// Looks at a field, and leaves it where it is.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.map.get(field)
    }

    /// A number that is at least 0 and at most `most`.
    pub(super) fn number(&mut self, field: &str, most: f64) -> Result<Option<f64>, LabError> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if (0.0..=most).contains(&number) => Ok(Some(number)),
            Some(number) => Err(self.refuse(field, format!("is {number}, must be between 0 and {most}"))),
            None => Err(self.refuse(field, "must be a number")),
        }
    }

    /// A whole number up to `most`.
    pub(super) fn whole(&mut self, field: &str, most: u64) -> Result<Option<u64>, LabError> {
        match self.number(field, most as f64)? {
            Some(number) if number.fract() != 0.0 => {
                Err(self.refuse(field, format!("is {number}, must be a whole number")))
            }
            number => Ok(number.map(|number| number as u64)),
        }
    }

    /// Yes or no; no where it is not there.
    pub(super) fn truth(&mut self, field: &str) -> Result<bool, LabError> {
        match self.take(field) {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(truth),
            Some(_) => Err(self.refuse(field, "must be true or false")),
        }
    }

    /// Words; none where it is not there.
    pub(super) fn text(&mut self, field: &str) -> Result<Option<String>, LabError> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
            Some(_) => Err(self.refuse(field, "must be a string")),
        }
    }

    /// A list of numbers, each at least 0 and at most `most`.
    pub(super) fn numbers(&mut self, field: &str, most: f64) -> Result<Option<Vec<f64>>, LabError> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        let Value::Array(list) = value else {
            return Err(self.refuse(field, "must be a list of numbers"));
        };
        let numbers = list.iter().enumerate().map(|(at, value)| match value.as_f64() {
            Some(number) if (0.0..=most).contains(&number) => Ok(number),
            Some(number) => {
                let reason = format!("has {number} at index {at}, must be between 0 and {most}");
                Err(self.refuse(field, reason))
            }
            None => Err(self.refuse(field, format!("has a value at index {at} that is not a number"))),
        });
        numbers.collect::<Result<_, _>>().map(Some)
    }

    /// The remaining fields.
    pub(super) fn left(self) -> impl Iterator<Item = String> {
        let place = self.place;
        self.map.into_iter().map(move |(field, _)| format!("{place}{field}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blanked_out_and_strings_are_not() {
        for (text, kept) in [
            ("// a\n{}", "\n{}"),
            ("{\"a\": \"// \\\" /* b */\"} // c", "{\"a\": \"// \\\" /* b */\"} "),
            ("[1, /* 2,\n 3, */ 4]", "[1, \n 4]"),
            ("{} /* open", "{} "),
            ("1 / 2", "1 / 2"),
        ] {
            assert_eq!(without_comments(text), kept);
        }
    }

    #[test]
    fn takes_fields_once_and_reports_the_rest() {
        let value = serde_json::json!({"a": 1, "b": [1, 2.5], "c": true, "d": "x", "e": null, "f": 0, "g": 2.5});
        let mut fields = Fields::of(value, "a.json".as_ref(), "test").unwrap();
        assert_eq!(fields.whole("a", 9).unwrap(), Some(1));
        assert_eq!(fields.whole("a", 9).unwrap(), None);
        assert_eq!(fields.numbers("b", 9.0).unwrap(), Some(vec![1.0, 2.5]));
        assert!(fields.truth("c").unwrap() && !fields.truth("absent").unwrap());
        assert_eq!(
            fields.whole("g", 9).unwrap_err().to_string(),
            "data a.json: test.g is 2.5, must be a whole number"
        );
        assert_eq!(fields.left().collect::<Vec<_>>(), ["test.d", "test.e", "test.f"]);
    }
}
