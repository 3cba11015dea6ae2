//! Replaces the C++ shim if there was no compiler for it.

use std::path::Path;

use crate::{CallError, LoadError, TreeOptions};

/// There is none.
pub(crate) enum Tree {}

impl Tree {
    /// # Safety
    /// None to keep: nothing is loaded.
    pub(crate) unsafe fn create(path: &Path, _: &TreeOptions) -> Result<Self, LoadError> {
        Err(LoadError::NoHost {
            path: path.to_owned(),
            reason: env!("LEAFPRESS_PIBENCH_NO_SHIM"),
        })
    }

    pub(crate) fn attach_thread(&self) -> Result<(), CallError> {
        match *self {}
    }

    /// # Safety
    /// Never called.
    pub(crate) unsafe fn find(&self, _: &[u8], _: *mut u8) -> Result<bool, CallError> {
        match *self {}
    }

    pub(crate) fn insert(&self, _: &[u8], _: &[u8]) -> Result<bool, CallError> {
        match *self {}
    }

    pub(crate) fn update(&self, _: &[u8], _: &[u8]) -> Result<bool, CallError> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: &[u8]) -> Result<bool, CallError> {
        match *self {}
    }

    pub(crate) fn scan(&self, _: &[u8], _: i32) -> Result<(i32, *const u8), CallError> {
        match *self {}
    }
}
