//! Verdict of a suite, in a line or two.

use leafpress::Codec;

use super::phrases::{common_setting, in_words, us};
use super::{Report, Row, Speed};
use crate::core::Bytes;

/// The codec that stores least, the one that decodes fastest and the one that compresses fastest, with blocks of one
/// length. On a busy machine it goes by processor time.
pub(super) fn verdicts(report: &Report) -> Vec<String> {
    let Some((block_bytes, threads)) = common_setting(report) else {
        return Vec::new();
    };
    let rows = report.overall.iter();
    let rows = rows.filter(|row| (row.block_bytes, row.threads) == (block_bytes, threads));
    let where_ = format!("blocks of {}, {}", Bytes(block_bytes as u64), in_words(threads));
    let (time, unit): (fn(&Speed) -> f64, _) = match report.is_busy() {
        true => (|speed| speed.cpu_us, "us of CPU"),
        false => (|speed| speed.us, "us"),
    };
    among(rows, &where_, time, &|row| {
        let [compress, decompress] = [&row.compress, &row.decompress].map(|speed| us(time(speed)));
        format!("{compress} {unit} per block to compress and {decompress} to decode")
    })
}

/// Returns whether this is a codec that compresses blocks without a dictionary, as those of a suite are. The others
/// only copy them: they are the fastest, and say nothing about the data. So does [`MEMCPY`](super::MEMCPY), which is
/// not a codec.
pub fn compresses(codec: &str) -> bool {
    let codec = codec.parse::<Codec>();
    codec.is_ok_and(|codec| !matches!(codec, Codec::None | Codec::OnPair { .. } | Codec::OnPairHuffman))
}

/// Formats the verdict on codecs with the same blocks, `where_`; the fastest has the lowest `time`, and `speed` formats
/// a codec's speed.
pub fn among<'r>(
    rows: impl Iterator<Item = &'r Row>,
    where_: &str,
    time: fn(&Speed) -> f64,
    speed: &dyn Fn(&Row) -> String,
) -> Vec<String> {
    let rows: Vec<&Row> = rows.filter(|row| compresses(&row.codec)).collect();
    let least = |of: &dyn Fn(&Row) -> f64| rows.iter().copied().min_by(|one, other| of(one).total_cmp(&of(other)));
    let (Some(smallest), Some(decodes), Some(compresses)) = (
        least(&|row| -row.ratio),
        least(&|row| time(&row.decompress)),
        least(&|row| time(&row.compress)),
    ) else {
        return Vec::new();
    };
    if smallest.ratio < 1.05 {
        return vec![format!(
            "The data does not compress: {} reaches {:.2}:1 ({where_}).",
            smallest.codec, smallest.ratio
        )];
    }
    let described = |what: &str, row: &Row| format!("{}{what}: {:.2}:1, {}", row.codec, row.ratio, speed(row));
    if rows.len() == 1 {
        return vec![format!("{} ({where_}).", described("", smallest))];
    }
    let mut verdicts = vec![described(" compresses best", smallest)];
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

#[cfg(test)]
mod tests {
    use super::super::document::cautions;
    use super::super::fixtures::{directory, measure, options, words};
    use super::*;

    #[test]
    fn a_busy_machine_is_judged_by_processor_time() {
        let directory = directory(&[("words", &words(20_000))]);
        let mut report = measure(&options(directory.path())).unwrap();
        let mut texts = |waited: f64| {
            for row in &mut report.overall {
                // By the clock lz4 is the slower one of the two, by the processor the faster one.
                let [wall, cpu] = if row.codec == "lz4" {
                    [30.0, 30.0 - waited]
                } else {
                    [20.0, 20.0]
                };
                for speed in [&mut row.compress, &mut row.decompress] {
                    [speed.us, speed.median_us, speed.cpu_us, speed.cpu_median_us] = [wall, wall, cpu, cpu];
                }
            }
            (verdicts(&report).concat(), cautions(&report))
        };
        let (quiet, none) = texts(0.0);
        assert!(none.is_empty());
        assert!(
            quiet.contains("zstd:1 is the fastest") && quiet.contains("20.00 us per block"),
            "{quiet}"
        );
        let (busy, one) = texts(25.0);
        assert_eq!(one.len(), 1);
        // It stores the least of these words too, and is named once.
        assert!(
            !busy.contains("zstd:1") && busy.contains("5.00 us of CPU per block"),
            "{busy}"
        );
    }
}
