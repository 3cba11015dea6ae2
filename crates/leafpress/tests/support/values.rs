//! Values described by a few numbers, so that a failing case prints and shrinks well.

use super::keys::mix;

/// The kind of bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Repeated words, which compress to about a third.
    Text,
    /// One repeated byte.
    Same,
    /// Incompressible bytes.
    Noise,
}

/// A value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    pub len: u32,
    pub fill: Fill,
    pub seed: u16,
}

impl Value {
    pub fn bytes(self) -> Vec<u8> {
        let len = self.len as usize;
        let mut bytes = Vec::with_capacity(len + 16);
        let mut state = u64::from(self.seed);
        match self.fill {
            Fill::Same => bytes.resize(len, self.seed as u8),
            Fill::Noise => {
                while bytes.len() < len {
                    state = mix(state);
                    bytes.extend_from_slice(&state.to_le_bytes());
                }
            }
            Fill::Text => {
                const WORDS: [&str; 8] = [
                    "leaf ", "press ", "frame ", "fence ", "shard ", "landing ", "0123 ", "\n",
                ];
                while bytes.len() < len {
                    state = mix(state);
                    bytes.extend_from_slice(WORDS[(state % 8) as usize].as_bytes());
                }
            }
        }
        bytes.truncate(len);
        bytes
    }
}
