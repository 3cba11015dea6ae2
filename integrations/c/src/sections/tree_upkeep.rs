//! Trees: upkeep. None of it is needed: the tree does it by itself, in the background.

use std::mem::MaybeUninit;

use crate::failure::{NOT_FOUND, call, found};
use crate::handle;
use crate::lp_status;
use crate::sections::tree::of;
use crate::{lp_dictionary, lp_tree};

/// Does now what the tree would do some time after the last write, and waits for it: training of a dictionary that is
/// due, compressing with it, compacting what is worth it. LP_BACKGROUND if a background thread has ended; what can be
/// done without it is done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_settle(tree: Option<&lp_tree>) -> lp_status {
    call(|| Ok(of(tree)?.settle()?))
}

/// Trains a dictionary again and compresses everything with it: the most that can be done for memory. It takes as long
/// as a load.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_compact(tree: Option<&lp_tree>) -> lp_status {
    call(|| Ok(of(tree)?.compact()?))
}

/// Trains a dictionary from the tree's records now, and compresses all with it if that saves more than it costs:
/// LP_NOT_FOUND if it does not, or if there is nothing to train. The tree does that by itself as it grows; this is for
/// records that have become others since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_train(tree: Option<&lp_tree>) -> lp_status {
    call(|| found(of(tree)?.train()?))
}

/// Hands out the dictionary that the tree compresses with now, to be stored or given to other trees. LP_NOT_FOUND if
/// there is none. Free it with lp_dictionary_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_dictionary(
    tree: Option<&lp_tree>,
    dictionary: Option<&mut MaybeUninit<*mut lp_dictionary>>,
) -> lp_status {
    call(|| {
        handle::hand_out(dictionary, || {
            let found = of(tree)?.dictionary()?.ok_or(NOT_FOUND)?;
            Ok(lp_dictionary::from(found))
        })
    })
}

/// Checks every structural invariant, for tests. No other thread may write meanwhile. LP_CORRUPT names the first that
/// is broken: a bug in the library, or memory that somebody overwrote.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lp_tree_validate(tree: Option<&lp_tree>) -> lp_status {
    call(|| Ok(of(tree)?.validate()?))
}
