//! A run's load alone, to see what the map takes of memory.

use std::sync::atomic::AtomicBool;

use leafpress::TreeError;

use super::{Shared, ledger, load, tree};
use crate::core::LabError;
use crate::eval::dataset::Dataset;
use crate::eval::matrix::RunSpec;
use crate::harness::resident_memory::{self, Weight};
use crate::harness::store::Store;

/// Reads the run's data and weighs the tree that it loads.
///
/// # Errors
/// As [`run`](super::run).
pub(crate) fn weigh(spec: &RunSpec, cancel: &AtomicBool) -> Result<Weight, LabError> {
    resident_memory::prepare();
    let data = Dataset::load(&spec.base, cancel)?;
    weigh_store(spec, &data, &|| tree(spec, &data), cancel)
}

/// Weighs a map of the caller's own, made by `make`, in a process that is [prepared](resident_memory::prepare).
///
/// # Errors
/// As [`run_store`](super::run_store).
pub(crate) fn weigh_store(
    spec: &RunSpec,
    data: &Dataset,
    make: &dyn Fn() -> Result<Box<dyn Store>, LabError>,
    cancel: &AtomicBool,
) -> Result<Weight, LabError> {
    let ledger = ledger(spec, data);
    resident_memory::weigh::<dyn Store>(&Nothing, make, |store| {
        let shared = Shared::new(spec, data, &ledger, store, cancel);
        load::load(&shared, &mut |_, _| {})?;
        store
            .settle()
            .map_err(|e| LabError::System(format!("after the load: {e}")))?;
        Ok(Some(store.stats().bytes_held).filter(|held| *held > 0))
    })
}

/// Takes every record and keeps none.
struct Nothing;

impl Store for Nothing {
    fn put(&self, _: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        std::hint::black_box(value.to_vec());
        Ok(true)
    }

    fn load_sorted(&self, records: &mut dyn Iterator<Item = (Vec<u8>, &[u8])>) -> Option<Result<u64, TreeError>> {
        let read = records.map(|(key, value)| std::hint::black_box((key, value.to_vec())));
        Some(Ok(read.count() as u64))
    }

    fn get_into(&self, _: &[u8], _: &mut Vec<u8>) -> Result<bool, TreeError> {
        Ok(false)
    }

    fn remove(&self, _: &[u8]) -> Result<bool, TreeError> {
        Ok(false)
    }

    fn scan(&self, _: &[u8], _: usize, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), TreeError> {
        Ok(())
    }

    fn len(&self) -> usize {
        0
    }
}
