//! Text in lines.

/// Columns of a page of text.
const WIDTH: usize = 110;

/// A paragraph in lines, the first behind `first` and the others behind `others`.
pub(crate) fn wrapped(paragraph: &str, first: &str, others: &str) -> String {
    let mut text = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in paragraph.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            text += &(line + "\n");
            line = others.to_owned();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    text + &line + "\n"
}
