//! The figures of Harper's thesis and the results of its own formulas.
//!
//! "Viability of Time-Memory Trade-Offs in Large Data Sets", K. Harper, Dakota State University, 2018. Units in it are
//! powers of 2 throughout (chapter 3): "15 GB" is 15 GiB, "8 KB" 8192 bytes.
//!
//! A [`Figure`] is *printed* when the thesis's text gives its digits. Figures 10, 12 and 13 are pictures; the digits
//! that stand behind them follow from its formulas and table 4, and are held here so that a change to the model cannot
//! move them unseen.

mod arithmetic;
mod devices;
mod figures;

use serde::Serialize;

use crate::core::LabError;
use crate::model::{BreakEven, CodecCosts, Method, Options, Outcome, evaluate};

/// The status of a published figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The formulas give it, to the digits published.
    Agrees,
    /// The formulas here give another result: an error of this program.
    Differs,
    /// The published text contradicts its own formulas or tables.
    TextDisagrees,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Differs => "DIFFERS",
            Self::TextDisagrees => "text disagrees",
        })
    }
}

/// A published figure and the computed one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Where it is in the thesis.
    pub place: &'static str,
    /// Its name.
    pub what: String,
    /// As published.
    pub published: String,
    /// As computed.
    pub computed: String,
    /// Whether the text prints the digits; otherwise they follow from a picture.
    pub printed: bool,
    /// Whether the two are the same.
    pub verdict: Verdict,
    /// A remark.
    pub note: &'static str,
}

/// Figures over shares of the memory for compressed pages, which the thesis shows as a picture.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Where it is in the thesis.
    pub place: &'static str,
    /// Its name.
    pub what: String,
    /// The unit of the figures.
    pub unit: &'static str,
    /// Percents of the memory.
    pub shares: Vec<u8>,
    /// The lines by codec.
    pub lines: Vec<(String, Vec<f64>)>,
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reproduction {
    /// Figures, in the thesis's order.
    pub figures: Vec<Figure>,
    /// Lines of its pictures.
    pub series: Vec<Series>,
}

impl Reproduction {
    /// Returns the number of figures with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.figures.iter().filter(|figure| figure.verdict == verdict).count()
    }
}

/// Computes all published figures again.
///
/// # Errors
/// [`LabError::Option`] never in practice: the thesis's inputs are within all bounds.
pub fn reproduce() -> Result<Reproduction, LabError> {
    let mut figures = Vec::new();
    arithmetic::before_the_model(&mut figures);
    devices::table_3(&mut figures);
    arithmetic::codecs(&mut figures);
    let series = figures::all(&mut figures)?;
    arithmetic::accelerators(&mut figures);
    Ok(Reproduction { figures, series })
}

/// The thesis's options for this much data.
fn setting(data_gb: u64, access: &str, codecs: Vec<CodecCosts>) -> Result<Outcome, LabError> {
    evaluate(&Options {
        data_bytes: data_gb << 30,
        access: crate::model::Access::parse(access)?,
        codecs,
        shares: (0..=100).step_by(5).collect(),
        ..Options::new(Method::AsPublished)
    })
}

/// Adds a figure published with this many decimals.
struct Adder<'f> {
    figures: &'f mut Vec<Figure>,
    place: &'static str,
}

impl<'f> Adder<'f> {
    fn new(figures: &'f mut Vec<Figure>, place: &'static str) -> Self {
        Self { figures, place }
    }

    /// A figure that the text prints.
    fn printed(&mut self, what: &str, published: &str, unit: &str, computed: f64) -> &mut Figure {
        self.add(what, published, unit, computed, true)
    }

    /// Adds a figure that follows from a picture.
    fn pictured(&mut self, what: &str, published: &str, unit: &str, computed: f64) -> &mut Figure {
        self.add(what, published, unit, computed, false)
    }

    fn add(&mut self, what: &str, published: &str, unit: &str, computed: f64, printed: bool) -> &mut Figure {
        let decimals = published.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        // Halves are rounded away from zero, as people do; 22.275 is not exact in binary.
        let scale = 10_f64.powi(decimals as i32);
        let rounded = format!("{:.decimals$}", (computed * scale + 1e-6).round() / scale);
        let same = rounded == published;
        let shown = if printed && !rounded_is_exact(computed, decimals) {
            format!("{computed:.*}", decimals + 2)
        } else {
            rounded
        };
        self.push(Figure {
            place: self.place,
            what: what.to_owned(),
            published: format!("{published}{unit}"),
            computed: format!("{shown}{unit}"),
            printed,
            verdict: if same { Verdict::Agrees } else { Verdict::Differs },
            note: "",
        })
    }

    /// A statement that the text makes about figures, and whether it holds.
    fn said(&mut self, what: &str, published: &str, computed: String, holds: bool, note: &'static str) -> &mut Figure {
        self.push(Figure {
            place: self.place,
            what: what.to_owned(),
            published: published.to_owned(),
            computed,
            printed: true,
            verdict: if holds { Verdict::Agrees } else { Verdict::TextDisagrees },
            note,
        })
    }

    fn push(&mut self, figure: Figure) -> &mut Figure {
        self.figures.push(figure);
        let last = self.figures.len() - 1;
        &mut self.figures[last]
    }
}

impl Figure {
    /// The text is known to contradict its formulas here. Where it turns out not to, the verdict stays.
    fn contradicts(&mut self, note: &'static str) {
        if self.verdict == Verdict::Differs {
            self.verdict = Verdict::TextDisagrees;
        }
        self.note = note;
    }

    fn noted(&mut self, note: &'static str) {
        self.note = note;
    }
}

fn rounded_is_exact(figure: f64, decimals: usize) -> bool {
    let scaled = figure * 10_f64.powi(decimals as i32);
    (scaled - scaled.round()).abs() < 1e-6
}

fn break_even_pct(outcome: &Outcome, codec: usize) -> Option<f64> {
    match outcome.codecs.get(codec)?.break_even {
        BreakEven::Share(share) => Some(share * 100.0),
        BreakEven::AtOnce => Some(0.0),
        BreakEven::Never => None,
    }
}

#[cfg(test)]
mod tests;
