//! A colour for each codec: the family decides the hue, so that a codec looks the same in every report.

use plotters::style::RGBColor;

/// Hues of the codec families, readable on white and on near-black.
const FAMILIES: [(&str, RGBColor); 9] = [
    ("none", RGBColor(0x7d, 0x87, 0x96)),
    ("auto", RGBColor(0xa8, 0x7e, 0x00)),
    ("trial", RGBColor(0x6a, 0x8f, 0x1c)),
    ("lz4", RGBColor(0x1f, 0x83, 0xd6)),
    ("zstd", RGBColor(0xd9, 0x6c, 0x12)),
    ("onpair", RGBColor(0x12, 0x98, 0xa0)),
    ("deflate", RGBColor(0x1f, 0x9a, 0x66)),
    ("zlib", RGBColor(0x93, 0x5d, 0xd6)),
    ("qpl", RGBColor(0xd9, 0x3b, 0x60)),
];

/// Hues of anything that is not a codec.
const OTHERS: [RGBColor; 8] = [
    RGBColor(0xc2, 0x3f, 0x9a),
    RGBColor(0x12, 0x98, 0xa0),
    RGBColor(0x8a, 0x6d, 0x3b),
    RGBColor(0x5b, 0x62, 0xd8),
    RGBColor(0x94, 0x8d, 0x0f),
    RGBColor(0xd9, 0x3b, 0x60),
    RGBColor(0x4f, 0x7f, 0x5f),
    RGBColor(0x93, 0x5d, 0xd6),
];

/// Chooses the colours of things of which some are codecs (`Some` of the codec's name) and others are not.
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
const SHADES: [f64; 5] = [0.0, -0.38, 0.2, -0.58, 0.34];

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

/// Formats the colour for CSS.
pub fn css(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::html::STYLE;

    type Channels = [f64; 3];

    fn channels(RGBColor(red, green, blue): RGBColor) -> Channels {
        [red, green, blue].map(|channel| f64::from(channel) / 255.0)
    }

    /// Contrast of two colours as WCAG 2.1 defines it, 1 to 21.
    fn contrast(one: Channels, other: Channels) -> f64 {
        let luminance = |channels: Channels| {
            let [red, green, blue] = channels.map(|channel| match channel {
                dark if dark <= 0.03928 => dark / 12.92,
                light => ((light + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// A variable of the style sheet, in light or in dark.
    fn variable(name: &str, dark: bool) -> Channels {
        let theme = STYLE.split(":root {").nth(1 + usize::from(dark)).unwrap();
        let value = theme.split_once(&format!("--{name}: #")).unwrap().1;
        let channel = |at: usize| u8::from_str_radix(&value[at..at + 2], 16).unwrap();
        channels(RGBColor(channel(0), channel(2), channel(4)))
    }

    /// The colour that the style sheet's filter makes of one in dark mode.
    fn in_the_dark(colour: Channels) -> Channels {
        let filter = STYLE.split_once("filter: contrast(").unwrap().1;
        let (amount, rest) = filter.split_once(") brightness(").unwrap();
        let (contrast, brightness): (f64, f64) = (
            amount.parse().unwrap(),
            rest.split_once(')').unwrap().0.parse().unwrap(),
        );
        colour.map(|channel| (((channel - 0.5) * contrast + 0.5) * brightness).clamp(0.0, 1.0))
    }

    #[test]
    fn text_can_be_read_in_both_themes() {
        for dark in [false, true] {
            for text in ["ink", "faint", "best", "bad"] {
                for ground in ["paper", "card"] {
                    let found = contrast(variable(text, dark), variable(ground, dark));
                    assert!(found >= 4.5, "{text} on {ground}, dark {dark}: {found:.2}");
                }
            }
        }
    }

    /// Lines and bars need 3 to 1. Lighter shades, of a family's third and fifth codec, have less on paper and are
    /// labelled.
    #[test]
    fn lines_can_be_seen_in_both_themes() {
        let all = FAMILIES.iter().map(|(_, colour)| *colour).chain(OTHERS);
        for colour in all {
            for amount in SHADES {
                let shade = channels(shade(colour, amount));
                let (paper, card) = (variable("card", false), variable("card", true));
                let (light, dark) = (contrast(shade, paper), contrast(in_the_dark(shade), card));
                let least = if amount > 0.0 { 1.9 } else { 3.0 };
                assert!(light >= least, "{} by {amount} on paper: {light:.2}", css(colour));
                assert!(dark >= 3.0, "{} by {amount} in the dark: {dark:.2}", css(colour));
            }
        }
    }

    #[test]
    fn contrast_is_that_of_the_guidelines() {
        let grey = contrast(channels(RGBColor(0x77, 0x77, 0x77)), [1.0; 3]);
        assert!((grey - 4.48).abs() < 0.01, "{grey}");
        assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    }
}
