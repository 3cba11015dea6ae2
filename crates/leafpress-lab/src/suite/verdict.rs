//! What a suite came to, in a line or two.

use super::text::{common_setting, in_words, us};
use super::{MEMCPY, Report, Row};
use crate::core::Bytes;

/// The codec that stores least, the one that decodes fastest and the one that compresses fastest, with blocks of one length.
pub(super) fn verdicts(report: &Report) -> Vec<String> {
    let Some((block_bytes, threads)) = common_setting(report) else {
        return Vec::new();
    };
    let rows = report.overall.iter();
    let rows = rows.filter(|row| (row.block_bytes, row.threads) == (block_bytes, threads) && row.codec != MEMCPY);
    let where_ = format!("blocks of {}, {}", Bytes(block_bytes as u64), in_words(threads));
    among(rows, &where_, &|row| {
        let [compress, decompress] = [us(row.compress.us), us(row.decompress.us)];
        format!("{compress} us a block to compress and {decompress} us to decode")
    })
}

/// What to say of codecs that had the same blocks, in `where_`; `speed` says how fast one is.
pub fn among<'r>(rows: impl Iterator<Item = &'r Row>, where_: &str, speed: &dyn Fn(&Row) -> String) -> Vec<String> {
    let rows: Vec<&Row> = rows.filter(|row| row.codec != "none").collect();
    let least = |of: fn(&Row) -> f64| rows.iter().copied().min_by(|one, other| of(one).total_cmp(&of(other)));
    let (Some(smallest), Some(decodes), Some(compresses)) = (
        least(|row| -row.ratio),
        least(|row| row.decompress.us),
        least(|row| row.compress.us),
    ) else {
        return Vec::new();
    };
    if smallest.ratio < 1.05 {
        return vec![format!(
            "The data does not shrink: {} brings {:.2} to 1 ({where_}).",
            smallest.codec, smallest.ratio
        )];
    }
    let described = |what: &str, row: &Row| format!("{}{what}: {:.2} to 1, {}", row.codec, row.ratio, speed(row));
    if rows.len() == 1 {
        return vec![format!("{} ({where_}).", described("", smallest))];
    }
    let mut verdicts = vec![described(" stores the least", smallest)];
    if decodes.codec == compresses.codec {
        verdicts.push(described(" is the fastest", decodes));
    } else {
        verdicts.push(described(" decodes the fastest", decodes));
        verdicts.push(described(" compresses the fastest", compresses));
    }
    // One that is best in everything is named once.
    verdicts.dedup_by(|next, before| next.split(' ').next() == before.split(' ').next());
    vec![format!("{} ({where_}).", verdicts.join("; "))]
}
