//! A colour for each codec: the family decides the hue, so that a codec looks the same in every report.

use plotters::style::RGBColor;

/// Hues of the codec families, readable on white and on near-black.
const FAMILIES: [(&str, RGBColor); 7] = [
    ("none", RGBColor(0x7d, 0x87, 0x96)),
    ("auto", RGBColor(0xb8, 0x8a, 0x00)),
    ("lz4", RGBColor(0x1f, 0x83, 0xd6)),
    ("zstd", RGBColor(0xe8, 0x7a, 0x24)),
    ("deflate", RGBColor(0x25, 0xa1, 0x6d)),
    ("zlib", RGBColor(0x93, 0x5d, 0xd6)),
    ("qpl", RGBColor(0xd9, 0x3b, 0x60)),
];

/// Hues of what is no codec.
const OTHERS: [RGBColor; 8] = [
    RGBColor(0xc2, 0x3f, 0x9a),
    RGBColor(0x12, 0x98, 0xa0),
    RGBColor(0x8a, 0x6d, 0x3b),
    RGBColor(0x5b, 0x62, 0xd8),
    RGBColor(0xa8, 0xa0, 0x14),
    RGBColor(0xd9, 0x3b, 0x60),
    RGBColor(0x4f, 0x7f, 0x5f),
    RGBColor(0x93, 0x5d, 0xd6),
];

/// Colours of things of which some are codecs (`Some` of the codec's name) and others are not.
pub fn colours<'n>(codecs: impl IntoIterator<Item = Option<&'n str>>) -> Vec<RGBColor> {
    let mut named: Vec<String> = Vec::new();
    let mut others = 0;
    let colours = codecs.into_iter().map(|codec| {
        if let Some(codec) = codec {
            named.push(codec.to_owned());
            return colour(&named, named.len() - 1);
        }
        others += 1;
        OTHERS[(others - 1) % OTHERS.len()]
    });
    colours.collect()
}

/// Shades of a family's codecs in order: towards white (positive) or black.
const SHADES: [f64; 5] = [0.0, -0.38, 0.42, -0.58, 0.62];

/// The colour of `codecs[index]`.
pub(crate) fn colour(codecs: &[String], index: usize) -> RGBColor {
    let family = |codec: &str| codec.split([':', ' ']).next().unwrap_or_default().to_owned();
    let Some(codec) = codecs.get(index) else {
        return FAMILIES[0].1;
    };
    let name = family(codec);
    let base = FAMILIES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(FAMILIES[0].1, |(_, colour)| *colour);
    let before = codecs[..index].iter().filter(|other| family(other) == name).count();
    shade(base, SHADES[before % SHADES.len()])
}

fn shade(RGBColor(red, green, blue): RGBColor, amount: f64) -> RGBColor {
    let towards = if amount > 0.0 { 255.0 } else { 0.0 };
    let mix = |channel: u8| (f64::from(channel) + (towards - f64::from(channel)) * amount.abs()).round() as u8;
    RGBColor(mix(red), mix(green), mix(blue))
}

/// The colour as CSS writes it.
pub fn css(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}
