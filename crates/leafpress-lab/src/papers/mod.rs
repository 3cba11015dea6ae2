//! What only reproduces the figures of publications: of the paper on compressed caches ([`cache`]) and of Harper's
//! thesis ([`thesis`]). The measurements and formulas are those of the commands.

#[cfg(feature = "cache")]
pub mod cache;
pub mod thesis;
