//! Text in lines.

use super::width::page_width;

/// Wraps a paragraph, with prefix `first` for the first line and `others` for the others.
pub fn wrapped(paragraph: &str, first: &str, others: &str) -> String {
    wrapped_to(page_width(), paragraph, first, others)
}

/// Wraps a paragraph in lines of at most `width` characters, the first behind `first` and the others behind `others`.
/// What begins with spaces keeps them, in all lines; words that are longer than a line stay whole.
pub fn wrapped_to(width: usize, paragraph: &str, first: &str, others: &str) -> String {
    let spaces: String = paragraph.chars().take_while(|letter| *letter == ' ').collect();
    let (first, others) = (&format!("{first}{spaces}"), &format!("{others}{spaces}"));
    let mut text = String::new();
    let mut line = first.clone();
    let mut is_empty = true;
    for word in paragraph.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            text += &(line + "\n");
            line = others.clone();
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

/// Wraps a report to its width, except for tables, which stand between rules.
pub fn narrow(text: &str) -> String {
    narrow_to(page_width(), text)
}

fn narrow_to(width: usize, text: &str) -> String {
    let mut narrow = String::with_capacity(text.len());
    let mut rules = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        // Above, under the header, and below.
        rules += usize::from(bare.starts_with('─'));
        let is_table = !rules.is_multiple_of(3) || bare.starts_with('─');
        if is_table || bare.chars().count() <= width {
            narrow += line;
            continue;
        }
        let indent: String = bare.chars().take_while(|letter| *letter == ' ').collect();
        let others = match bare.split_once(": ") {
            // Figures after a label are aligned.
            Some((label, _)) if label.ends_with(' ') && label.chars().count() < 24 => {
                " ".repeat(label.chars().count() + 2)
            }
            _ => format!("{indent}  "),
        };
        // Spaces at the beginning of a line may be alignment.
        let head: String = match bare.split_once(": ") {
            Some((label, _)) if label.ends_with(' ') => format!("{label}: "),
            _ => indent,
        };
        let wrapped = wrapped_to(width, &bare[head.len()..], &head, &others);
        narrow += if line.ends_with('\n') {
            &wrapped
        } else {
            wrapped.trim_end()
        };
    }
    narrow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_and_tables_are_not() {
        let text = "one two three four\n  five six seven eight\nlabel     : nine ten eleven twelve\n\
                    ───\n a table wider than the limit\n───\n and goes on so\n───\n! thirteen \
                    fourteen\nend of it all, it is";
        assert_eq!(
            narrow_to(16, text),
            "one two three\n  four\n  five six seven\n    eight\nlabel     : \
             nine\n            ten\n            eleven\n            twelve\n───\n a table wider than the \
             limit\n───\n and goes on so\n───\n! thirteen\n  fourteen\nend of it all,\n  it is"
        );
        assert_eq!(narrow("short\n"), "short\n");
    }
}
