//! Trainings of dictionaries in the background, as the upkeep sees them begin and end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leafpress::{Dictionary, Tree};

use crate::alloc::held;
use crate::store::databases::databases;
use crate::store::generation::Hold;

/// A training that runs.
struct Running {
    /// The generation's number.
    serial: u64,
    began: Instant,
    held_per_user_byte: f64,
}

/// The last training that has ended.
#[derive(Debug, Default, Clone, Copy)]
pub struct Last {
    /// How many have ended.
    pub count: u64,
    /// The time at which it ended, in seconds of the Unix epoch; 0 if there was none.
    pub time: u64,
    /// The time that it took, until its result was in use or was discarded.
    pub took: Duration,
    /// Whether the tree has another dictionary since.
    pub is_replaced: bool,
    /// Bytes held per user byte when it began.
    pub held_per_user_byte: f64,
}

struct State {
    running: Vec<Running>,
    last: Last,
}

/// Only the server's main thread uses it, so that nothing waits.
static STATE: Mutex<State> = Mutex::new(State {
    running: Vec::new(),
    last: Last {
        count: 0,
        time: 0,
        took: Duration::ZERO,
        is_replaced: false,
        held_per_user_byte: 0.0,
    },
});

fn locked() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the last training.
pub fn last() -> Last {
    locked().last
}

/// Returns the bytes held per user byte; 0 without data.
pub fn held_per_user_byte() -> f64 {
    match databases().totals().user_bytes() {
        0 => 0.0,
        user_bytes => held() as f64 / user_bytes as f64,
    }
}

/// Does work on a generation's tree in which trainings begin and end, and notes which do.
pub fn watched<R>(generation: &Hold, work: impl FnOnce(&Tree) -> R) -> R {
    let tree = generation.tree();
    // Only a training's end needs the dictionary before it.
    let before = tree.is_training().then(|| dictionary_of(tree));
    let result = work(tree);
    match (before, tree.is_training()) {
        (None, true) => began(generation),
        (Some(before), false) => ended(generation, before != dictionary_of(tree)),
        _ => {}
    }
    result
}

/// Returns the number of the tree's dictionary.
fn dictionary_of(tree: &Tree) -> Option<u64> {
    let dictionary = tree.dictionary().ok().flatten();
    dictionary.as_ref().map(Dictionary::serial)
}

fn began(generation: &Hold) {
    let running = Running {
        serial: generation.serial(),
        began: Instant::now(),
        held_per_user_byte: held_per_user_byte(),
    };
    let alive: Vec<u64> = databases()
        .generations()
        .map(|generation| generation.serial())
        .collect();
    let mut state = locked();
    // Those of generations that are gone do not end here.
    state.running.retain(|running| alive.contains(&running.serial));
    state.running.push(running);
}

fn ended(generation: &Hold, is_replaced: bool) {
    let mut state = locked();
    let Some(at) = state
        .running
        .iter()
        .position(|running| running.serial == generation.serial())
    else {
        return;
    };
    let running = state.running.swap_remove(at);
    state.last = Last {
        count: state.last.count + 1,
        time: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs(),
        took: running.began.elapsed(),
        is_replaced,
        held_per_user_byte: running.held_per_user_byte,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::databases::place_in;
    use crate::store::map::Map;

    #[test]
    fn a_training_is_noted_when_it_has_ended() {
        let (generation, id) = place_in(9).unwrap();
        let mut map = Map::new((generation.clone(), id));
        for number in 0..5000_u32 {
            let value = format!(
                "{{\"number\":{number},\"kind\":\"a record of a test\",\"half\":{}}}",
                number / 2
            );
            map.set(&number.to_be_bytes(), value.as_bytes()).unwrap();
        }
        assert!(generation.tree().request_training());
        let (begin, before) = (Instant::now(), last());
        while last().count == before.count && begin.elapsed() < Duration::from_secs(60) {
            watched(&generation, |tree| tree.run_upkeep(Duration::from_millis(1))).unwrap();
        }
        let now = last();
        assert!(now.count > before.count && now.time > 0 && now.took > Duration::ZERO);
        assert!(now.held_per_user_byte > 0.0);
    }
}
