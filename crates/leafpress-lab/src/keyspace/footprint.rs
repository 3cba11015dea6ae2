//! Bytes of memory that the servers' allocations take.
//!
//! The formulas are those of `MEMORY USAGE`: a key is its entry in the server's table, its name and the value's object.

/// Length of a value's object (`robj`).
const OBJECT_BYTES: u64 = 16;
/// Length of an entry of the table, of servers that keep it apart from the key.
const ENTRY_BYTES: u64 = 24;
/// Length of the server's object for a module's value.
const MODULE_VALUE_BYTES: u64 = 16;
/// Length of the module's own part of a map.
const MAP_BYTES: u64 = 32;

/// How a server stores a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// An entry, the name, and the object, each a block of memory: Redis, and Valkey before 8.1.
    Apart,
    /// The name within the object: Valkey from 8.1 on.
    Embedded,
}

/// What the memory of a server's values depends on, besides the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) layout: Layout,
    /// Its allocator is jemalloc, which rounds up to size classes.
    pub(super) has_size_classes: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            layout: Layout::Apart,
            has_size_classes: true,
        }
    }
}

impl Memory {
    /// Returns what the blocks of a tree's nodes take, over what they were requested with. With four classes in each
    /// doubling a block is an eighth longer than a request of any length, at most a quarter.
    pub(super) fn slack(self) -> f64 {
        if self.has_size_classes { 1.12 } else { 1.05 }
    }

    /// Returns the length of the block for a request: of jemalloc sixteen classes of small blocks, and four in each
    /// doubling; of the C library a multiple of 16, less the length that precedes the block.
    pub(super) fn block(self, bytes: u64) -> u64 {
        if !self.has_size_classes {
            return (bytes.max(24) + 8).next_multiple_of(16) - 8;
        }
        match bytes {
            0..=8 => 8,
            9..=128 => bytes.next_multiple_of(16),
            _ => {
                let quarter = 1 << (63 - (bytes - 1).leading_zeros() - 2);
                bytes.next_multiple_of(quarter)
            }
        }
    }

    /// Returns the bytes of a string of the server's: a header, the bytes, and a zero.
    pub(super) fn string(self, len: u64) -> u64 {
        let header = match len {
            ..32 => 1,
            32..256 => 3,
            256..65_536 => 5,
            _ => 9,
        };
        self.block(header + len + 1)
    }

    /// Returns the bytes of a key without its value.
    fn key(self, name_len: u64, has_ttl: bool) -> u64 {
        match self.layout {
            Layout::Apart => ENTRY_BYTES + self.string(name_len) + OBJECT_BYTES,
            Layout::Embedded => self.block(OBJECT_BYTES + u64::from(has_ttl) * 8 + 3 + name_len),
        }
    }

    /// Returns the bytes of a key whose value is one of the module's, without its records.
    pub(super) fn module_key(self, name_len: u64, has_ttl: bool, is_map: bool) -> u64 {
        self.key(name_len, has_ttl) + MODULE_VALUE_BYTES + u64::from(is_map) * MAP_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_jemallocs_size_classes() {
        for (bytes, class) in [
            (1, 8),
            (8, 8),
            (9, 16),
            (17, 32),
            (113, 128),
            (128, 128),
            (129, 160),
            (160, 160),
            (161, 192),
            (257, 320),
            (1025, 1280),
            (2048, 2048),
            (5000, 5120),
            (16385, 20480),
        ] {
            assert_eq!(Memory::default().block(bytes), class, "{bytes}");
        }
    }
}
