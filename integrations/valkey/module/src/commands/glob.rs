//! The servers' patterns: `*`, `?`, `[a-z]`, `[^a]`, `\x`.

/// Returns whether `text` matches `pattern` as a whole. Its time is bounded by the product of their lengths.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The position of the last `*`, and what it has matched so far.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if at < pattern.len() && pattern[at] == b'*' {
            at += 1;
            star = Some((at, from));
            continue;
        }
        let step = match text.get(from) {
            Some(&byte) if at < pattern.len() => one(&pattern[at..], byte),
            Some(_) => None,
            None if at == pattern.len() => return true,
            None => return false,
        };
        match (step, star) {
            (Some(len), _) => {
                at += len;
                from += 1;
            }
            (None, Some((behind, taken))) => {
                at = behind;
                from = taken + 1;
                star = Some((behind, from));
            }
            (None, None) => return false,
        }
    }
}

/// Returns the length of the pattern's first element, if it matches this byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', ..] => class(pattern, byte),
        [literal, ..] => (*literal == byte).then_some(1),
        [] => None,
    }
}

fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let mut at = 1;
    let is_negated = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negated);
    let mut is_in = false;
    loop {
        match pattern[at..] {
            [b'\\', escaped, ..] => {
                is_in |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            // A class that does not end ends with the pattern.
            [] => break,
            [a, b'-', b, ..] => {
                is_in |= (a.min(b)..=a.max(b)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                is_in |= literal == byte;
                at += 1;
            }
        }
    }
    (is_in != is_negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("**a*", "bab", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]", "hb", true),
            ("h[c-a]", "hb", true),
            ("h[a", "ha", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[\\]]", "]", true),
            ("a", "A", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&b"*a".repeat(1000), &[b'a'; 999]));
    }
}
