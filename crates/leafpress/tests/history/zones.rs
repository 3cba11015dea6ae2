//! Checks whether the history of a key is that of a register whose values may be lost (evicted) at any time.
//!
//! Every value is written once, so that the operations on one value, its write and its reads, form a cluster. The value
//! existed at least from the first return among them to the last call among them. If the latter is later (a *forward
//! zone*), no other value, and no removal, can take effect entirely within it, and no two such zones overlap. For a
//! register that loses nothing this is exact: such a history is atomic if and only if its zones satisfy this (Gibbons
//! and Korach, "Testing Shared Memories", SIAM J. Comput. 26(4), 1997). Reads that find nothing are not evidence here:
//! a cache may evict.

use std::collections::{HashMap, HashSet};

use crate::log::{ALL_KEYS, Event, What};

/// The operations on one value.
struct Cluster {
    value: Option<u64>,
    first_end: u64,
    last_begin: u64,
}

impl Cluster {
    fn is_forward(&self) -> bool {
        self.first_end < self.last_begin
    }

    fn describe(&self) -> String {
        match self.value {
            Some(value) => format!("value {value:x}"),
            None => "a removal".to_owned(),
        }
    }
}

/// Returns the violations in the histories of all keys, one line each.
pub fn violations(events: &[Event]) -> Vec<String> {
    let mut of_key: HashMap<u32, Vec<Event>> = HashMap::new();
    for event in events.iter().filter(|event| event.key != ALL_KEYS) {
        of_key.entry(event.key).or_default().push(*event);
    }
    let clears: Vec<Event> = events.iter().filter(|event| event.key == ALL_KEYS).copied().collect();
    let mut found = Vec::new();
    for (key, mut events) in of_key {
        events.extend(&clears);
        let of_this = violations_of_key(&events);
        found.extend(of_this.into_iter().map(|violation| format!("key {key}: {violation}")));
    }
    found
}

fn violations_of_key(events: &[Event]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut clusters, mut writes, mut consumed) = (HashMap::new(), HashMap::new(), HashSet::new());
    let (mut removals, mut read, mut loads) = (Vec::new(), HashSet::new(), HashSet::new());
    for event in events {
        if let What::Load(value) = event.what {
            loads.insert(value);
        }
        let value = match event.what {
            What::Write(value) | What::Load(value) => {
                writes.insert(value, event.begin);
                value
            }
            What::Read(value) => {
                read.insert(value);
                value
            }
            What::Remove => {
                removals.push(Cluster {
                    value: None,
                    first_end: event.end,
                    last_begin: event.begin,
                });
                continue;
            }
            What::Consume(value) => {
                if !consumed.insert(value) {
                    found.push(format!("value {value:x} was replaced or removed twice"));
                }
                continue;
            }
        };
        let cluster = clusters.entry(value).or_insert(Cluster {
            value: Some(value),
            first_end: u64::MAX,
            last_begin: 0,
        });
        cluster.first_end = cluster.first_end.min(event.end);
        cluster.last_begin = cluster.last_begin.max(event.begin);
    }
    clusters.retain(|value, _| !loads.contains(value) || read.contains(value));
    for (value, cluster) in &clusters {
        match writes.get(value) {
            None => found.push(format!("value {value:x} was read, and never written")),
            Some(begin) if *begin > cluster.first_end => {
                found.push(format!("value {value:x} was read before it was written"));
            }
            Some(_) => {}
        }
    }
    let (mut forward, backward): (Vec<Cluster>, Vec<Cluster>) =
        clusters.into_values().chain(removals).partition(Cluster::is_forward);
    forward.sort_by_key(|zone| zone.first_end);
    for pair in forward.windows(2) {
        if pair[1].first_end < pair[0].last_begin {
            found.push(format!(
                "{} was there from {} to {}, and {} from {} to {}",
                pair[0].describe(),
                pair[0].first_end,
                pair[0].last_begin,
                pair[1].describe(),
                pair[1].first_end,
                pair[1].last_begin,
            ));
        }
    }
    for turn in &backward {
        let after = forward.partition_point(|zone| zone.first_end < turn.last_begin);
        let zone = after.checked_sub(1).map(|before| &forward[before]);
        if let Some(zone) = zone.filter(|zone| turn.first_end < zone.last_begin) {
            found.push(format!(
                "{} was read from {} to {}, and {} came in between, from {} to {}",
                zone.describe(),
                zone.first_end,
                zone.last_begin,
                turn.describe(),
                turn.last_begin,
                turn.first_end,
            ));
        }
    }
    found
}

/// Tests of the checker itself.
mod tests {
    use super::*;
    use What::{Consume, Load, Read, Remove, Write};

    fn count(events: &[(u64, u64, What)]) -> usize {
        let events: Vec<Event> = events
            .iter()
            .map(|&(begin, end, what)| Event {
                key: 1,
                begin,
                end,
                what,
            })
            .collect();
        violations(&events).len()
    }

    #[test]
    fn possible_histories_are_not_violations() {
        assert_eq!(count(&[(0, 1, Write(1)), (2, 3, Write(2)), (4, 5, Read(2))]), 0);
        // Concurrent writes, in either order.
        assert_eq!(count(&[(0, 5, Write(1)), (1, 4, Write(2)), (6, 7, Read(1))]), 0);
        // A read during a removal.
        assert_eq!(count(&[(0, 1, Write(1)), (2, 5, Remove), (3, 4, Read(1))]), 0);
        // A failed write may take effect late.
        assert_eq!(count(&[(0, u64::MAX, Write(1)), (2, 3, Write(2)), (4, 5, Read(1))]), 0);
        assert_eq!(count(&[(0, 1, Write(1)), (2, 3, Read(1)), (2, 3, Consume(1))]), 0);
        // A load that was not stored.
        assert_eq!(count(&[(0, 1, Write(1)), (2, 3, Load(2)), (4, 5, Read(1))]), 0);
    }

    #[test]
    fn what_cannot_be_is_found() {
        assert_eq!(
            count(&[(0, 1, Write(1)), (2, 3, Write(2)), (4, 5, Read(1))]),
            1,
            "stale"
        );
        assert_eq!(
            count(&[(0, 1, Write(1)), (2, 3, Remove), (4, 5, Read(1))]),
            1,
            "removed"
        );
        assert_eq!(count(&[(2, 3, Write(1)), (0, 1, Read(1))]), 1, "from the future");
        assert_eq!(count(&[(0, 1, Read(1))]), 1, "of no write");
        // A later read of the earlier value, although the two writes may be in either order.
        let there_and_back = [
            (0, 9, Write(1)),
            (1, 8, Write(2)),
            (10, 11, Read(1)),
            (12, 13, Read(2)),
            (14, 15, Read(1)),
        ];
        assert!(count(&there_and_back) > 0);
        assert_eq!(count(&[(0, 1, Write(1)), (2, 3, Consume(1)), (2, 4, Consume(1))]), 1);
        let cleared = [
            (1, 0, 1, Write(1)),
            (ALL_KEYS, 2, 3, Remove),
            (1, 4, 5, Read(1)),
            (2, 4, 5, Write(9)),
        ];
        let cleared = cleared.map(|(key, begin, end, what)| Event { key, begin, end, what });
        assert_eq!(violations(&cleared).len(), 1);
    }
}
