//! Phases that go over every key once, on all threads: loading before the timed window, checking after it.

use std::sync::atomic::Ordering;

use super::{LabError, Phase, Shared, panicked};
use crate::core::keys::{LoadOrder, Permutation};
use crate::driver::{Deal, for_every, in_order};
use crate::harness::oracle::{Mutation, prefetch};

/// Prefetch distance in keys: key and value are prefetched this far ahead of the put.
const AHEAD: u64 = 8;

/// Puts version 0 of every key.
pub(super) fn load(shared: &Shared<'_>, progress: &mut dyn FnMut(Phase, f64)) -> Result<(), LabError> {
    let base = &shared.spec.base;
    if base.load_order == LoadOrder::Sequential && load_in_order(shared, progress)? {
        return Ok(());
    }
    let order = (base.load_order == LoadOrder::Random).then(|| Permutation::new(shared.data.keys, !base.seed));
    over_all_keys(shared, Phase::Load, progress, || {
        let mut keys = shared.key_bytes();
        let order = order.as_ref();
        let at = move |index| order.map_or(index, |order| order.apply(index));
        // Keys and values in random order are prefetched: cache misses would otherwise count as load time.
        let ahead = order.is_some() || keys.place(0).is_some();
        move |index| {
            if ahead && index + AHEAD < shared.data.keys {
                let next = at(index + AHEAD);
                if let Some(key) = keys.place(next) {
                    prefetch(key.as_ptr());
                }
                shared.ledger.prefetch_value(next, false);
            }
            let id = at(index);
            let Mutation::Put(value) = shared.ledger.mutation(id, 0) else {
                return Err(LabError::System(format!("version 0 of key {id} is a delete")));
            };
            let new = shared
                .store
                .put(keys.encode(id), value)
                .map_err(|e| super::worker::failed("put", id, &e))?;
            if !new {
                shared
                    .mismatches
                    .add(|| format!("load: key {id} existed before it was put"));
            }
            Ok(())
        }
    })
}

/// Hands version 0 of every key, in key order, to a map that has a way of its own to load such records; false where it
/// has none.
fn load_in_order(shared: &Shared<'_>, progress: &mut dyn FnMut(Phase, f64)) -> Result<bool, LabError> {
    let keys = shared.data.keys;
    let mut key_bytes = shared.key_bytes();
    progress(Phase::Load, 0.0);
    let mut progress = |done| progress(Phase::Load, done);
    let mut records = in_order(keys, shared.cancel, &mut progress).map_while(|id| {
        match shared.ledger.mutation(id, 0) {
            Mutation::Put(value) => Some((key_bytes.encode(id).to_vec(), value)),
            // Version 0 is a put: the number of records shows whether one is missing.
            Mutation::Delete => None,
        }
    });
    let Some(loaded) = shared.store.load_sorted(&mut records) else {
        return Ok(false);
    };
    let new = loaded.map_err(|e| LabError::System(format!("load in key order: {e}")))?;
    if shared.cancel.load(Ordering::Relaxed) {
        return Err(LabError::Cancelled);
    }
    if new != keys {
        shared.mismatches.add(|| format!("load: {new} of {keys} keys were new"));
    }
    Ok(true)
}

/// Reads every key and the number of records; nothing mutates meanwhile, so each key has one right answer, or a few
/// where mutations had overlapped.
pub(super) fn verify(shared: &Shared<'_>, progress: &mut dyn FnMut(Phase, f64)) -> Result<(), LabError> {
    let present = std::sync::atomic::AtomicU64::new(0);
    over_all_keys(shared, Phase::Verify, progress, || {
        let mut keys = shared.key_bytes();
        let mut value = Vec::new();
        let present = &present;
        move |id| {
            let floor = shared.ledger.floor(id);
            let found = shared
                .store
                .get_into(keys.encode(id), &mut value)
                .map_err(|e| super::worker::failed("get", id, &e))?;
            present.fetch_add(found.into(), Ordering::Relaxed);
            let answer = found.then_some(value.as_slice());
            if !shared.ledger.allows(id, floor, answer) {
                shared.mismatches.add_read("check after the run", id, answer);
            }
            Ok(())
        }
    })?;
    let (present, len) = (present.into_inner(), shared.store.len() as u64);
    if present != len {
        shared
            .mismatches
            .add(|| format!("check after the run: {present} keys exist, but the map counts {len}"));
    }
    Ok(())
}

/// Calls a visitor of each thread's own for every number below the number of keys.
fn over_all_keys<V: FnMut(u64) -> Result<(), LabError>>(
    shared: &Shared<'_>,
    phase: Phase,
    progress: &mut dyn FnMut(Phase, f64),
    visitor: impl Fn() -> V + Sync,
) -> Result<(), LabError> {
    let amount = (shared.ledger.keys(), shared.spec.threads);
    let mut progress = |done| progress(phase, done);
    for_every(amount, Deal::Next, shared.cancel, &panicked, &mut progress, || {
        Ok(visitor())
    })
}
