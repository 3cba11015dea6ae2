//! Cursors of scans, and where each continues.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Number of remembered scans: beyond it, those that were not continued for longest are forgotten.
const REMEMBERED: usize = 4096;

/// Cursors, and the field that each has reached.
pub struct Cursors {
    fields: BTreeMap<u64, Vec<u8>>,
    order: VecDeque<u64>,
    last: u64,
}

static CURSORS: Mutex<Cursors> = Mutex::new(Cursors::new());

/// Returns a cursor for a scan that continues behind `field`.
pub fn remember(field: Vec<u8>) -> u64 {
    CURSORS.lock().unwrap_or_else(PoisonError::into_inner).remember(field)
}

/// Returns the field behind which a scan continues; `None` for an unknown cursor.
pub fn field_of(cursor: u64) -> Option<Vec<u8>> {
    CURSORS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .fields
        .get(&cursor)
        .cloned()
}

impl Cursors {
    const fn new() -> Self {
        Self {
            fields: BTreeMap::new(),
            order: VecDeque::new(),
            last: 0,
        }
    }

    fn remember(&mut self, field: Vec<u8>) -> u64 {
        self.last += 1;
        self.fields.insert(self.last, field);
        self.order.push_back(self.last);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.fields.remove(&oldest);
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_cursor_is_forgotten() {
        let mut cursors = Cursors::new();
        let first = cursors.remember(b"a".to_vec());
        for _ in 0..REMEMBERED - 1 {
            cursors.remember(b"b".to_vec());
        }
        assert_eq!(cursors.fields.get(&first).map(Vec::as_slice), Some(&b"a"[..]));
        let last = cursors.remember(b"c".to_vec());
        assert_eq!(cursors.fields.get(&first), None);
        assert_eq!(cursors.fields.len(), REMEMBERED);
        assert!(cursors.fields.contains_key(&last));
    }
}
