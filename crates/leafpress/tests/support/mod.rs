//! Shared by the tree tests: key shapes, values, configurations, operations, and the model for comparison.

#![allow(dead_code)] // Every test binary compiles all of it and uses a part.

pub mod config;
pub mod engine;
pub mod favouring;
pub mod history;
pub mod hostile;
pub mod keys;
pub mod model;
pub mod strategies;
pub mod values;
pub mod versioned;
