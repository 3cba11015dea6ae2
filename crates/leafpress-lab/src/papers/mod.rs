//! What only reproduces the figures of publications: of the paper on compressed caches ([`cache`]), of Harper's thesis
//! ([`thesis`]) and of Intel's white paper ([`white_paper`]). The measurements and formulas are those of the commands.

#[cfg(feature = "cache")]
pub mod cache;
pub mod text;
pub mod thesis;
pub mod white_paper;
