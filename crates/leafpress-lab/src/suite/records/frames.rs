//! Values gathered into frames of neighbours.

use super::values::Values;

/// Frames of as many neighbouring values as fit in `frame_bytes`; a longer value has its own frame.
pub(super) fn frames(values: &Values, frame_bytes: usize) -> Vec<&[u8]> {
    let bytes = values.bytes();
    let (mut frames, mut start, mut end) = (Vec::new(), 0, 0);
    for value in values.each() {
        if end + value.len() - start > frame_bytes && end > start {
            frames.push(&bytes[start..end]);
            start = end;
        }
        end += value.len();
    }
    if end > start {
        frames.push(&bytes[start..end]);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_neighbours_that_fit_and_one_at_least() {
        let values = Values::of(&[b"aaa", b"bb", b"", b"c", b"dddddddd", b"e"]);
        assert_eq!(frames(&values, 6), [&b"aaabbc"[..], b"dddddddd", b"e"]);
        assert_eq!(frames(&values, 5), [&b"aaabb"[..], b"c", b"dddddddd", b"e"]);
        assert_eq!(frames(&values, 100), [b"aaabbcdddddddde"]);
        assert!(frames(&Values::of(&[]), 5).is_empty());
    }
}
