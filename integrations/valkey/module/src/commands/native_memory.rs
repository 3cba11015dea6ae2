//! A model of what values take as native ones: an estimate in the servers' own terms, those of `MEMORY USAGE`.

use crate::api::Context;
use crate::api::allocator::usable_size;
use crate::api::native::{Server, Since};
use crate::store::number::integer;

/// The first version with Valkey's own table of keys, whose entries begin with the key's name, and may have the string
/// behind it.
const HASHTABLE_SINCE: Since = Since {
    valkey: 0x08_01_00,
    redis: None,
};
/// The first version that has longer strings there.
const LONGER_EMBEDDED_SINCE: Since = Since {
    valkey: 0x09_01_00,
    redis: None,
};

/// The header of a value, `robj`.
const OBJECT: u64 = 16;
/// The length that an integer has at most, its sign included.
pub const INTEGER_LEN: usize = 20;

/// How a server lays out its keys and values.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// With chained entries of 24 bytes, as in Redis and in Valkey up to 8.0.
    Chained,
    /// With buckets of 64 bytes, as in Valkey from 8.1 on.
    Buckets {
        /// The header of a value that has its string behind it.
        embedding: u64,
        /// The longest such value.
        longest_embedded: u64,
    },
}

impl Layout {
    fn of(server: Server) -> Self {
        if server.is(LONGER_EMBEDDED_SINCE) {
            Self::Buckets {
                embedding: OBJECT - 8,
                longest_embedded: 128,
            }
        } else if server.is(HASHTABLE_SINCE) {
            Self::Buckets {
                embedding: OBJECT,
                longest_embedded: 64,
            }
        } else {
            Self::Chained
        }
    }
}

/// A key with a compressed value.
#[derive(Debug, Clone, Copy)]
pub struct KeyMemory {
    /// What it takes without the value, by the server's count.
    pub bytes: u64,
    /// The length of its name.
    pub name_len: u64,
    /// Whether it has a time to live.
    pub has_expiry: bool,
}

/// The fields and values of a map, or a sample of them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sample {
    pairs: u64,
    user_bytes: u64,
    longest: u64,
    listpack_bytes: u64,
    table_bytes: u64,
}

/// The server's layout of keys and values, and the limits that it is configured with.
#[derive(Debug, Clone, Copy)]
pub struct NativeMemory {
    layout: Layout,
    /// Fields of the largest hash in one piece, and the length of its longest field or value.
    listpack_fields: u64,
    listpack_len: u64,
    /// Rounds the length of a block as the server's allocator does.
    rounded: fn(u64) -> u64,
}

impl NativeMemory {
    /// Reads the server's configuration.
    pub fn of(context: Context) -> Self {
        Self {
            layout: Layout::of(Server::running()),
            listpack_fields: context.configured_number(c"hash-max-listpack-entries").unwrap_or(128),
            listpack_len: context.configured_number(c"hash-max-listpack-value").unwrap_or(64),
            rounded: usable_size,
        }
    }

    /// Returns what the key would take with a native string of this length, which is an integer or not.
    pub fn string(&self, key: KeyMemory, len: u64, is_integer: bool) -> u64 {
        match self.layout {
            Layout::Chained if is_integer => key.bytes + OBJECT,
            Layout::Chained if len <= 44 => key.bytes + (self.rounded)(OBJECT + sds8(len)),
            Layout::Chained => key.bytes + OBJECT + self.sds(len),
            Layout::Buckets { .. } if is_integer => key.bytes,
            Layout::Buckets {
                embedding,
                longest_embedded,
            } => {
                let name = 1 + sds(key.name_len) + if key.has_expiry { 8 } else { 0 };
                let embedded = embedding + name + sds8(len);
                if len < 256 && embedded <= longest_embedded {
                    // The block is at least that of another value's key.
                    let [with, without] = [embedded.max(OBJECT + name), OBJECT + name].map(self.rounded);
                    (key.bytes + with).saturating_sub(without)
                } else {
                    key.bytes + self.sds(len)
                }
            }
        }
    }

    /// Adds a field and its value to a sample.
    pub fn add(&self, sample: &mut Sample, field: &[u8], value: &[u8]) {
        let [field_len, value_len] = [field.len() as u64, value.len() as u64];
        sample.pairs += 1;
        sample.user_bytes += field_len + value_len;
        sample.longest = sample.longest.max(field_len).max(value_len);
        sample.listpack_bytes += listpack_element(field) + listpack_element(value);
        let embedded = sds(field_len) + sds8(value_len);
        sample.table_bytes += match self.layout {
            Layout::Chained => 24 + self.sds(field_len) + self.sds(value_len),
            Layout::Buckets { .. } if embedded <= 128 => (self.rounded)(embedded),
            Layout::Buckets { .. } => (self.rounded)(8 + sds8(field_len)) + self.sds(value_len),
        };
    }

    /// Returns what the key would take with a native hash of this number of fields and of bytes of fields and values.
    pub fn hash(&self, key: KeyMemory, fields: u64, user_bytes: u64, sample: &Sample) -> u64 {
        let key_bytes = match self.layout {
            Layout::Chained => key.bytes + OBJECT,
            Layout::Buckets { .. } => key.bytes,
        };
        // The bytes are known; only what comes to them is that of the sample.
        let all = |sampled: u64| {
            let (sampled, known) = (sampled as f64, sample.user_bytes as f64);
            let added = (sampled - known) * fields as f64 / sample.pairs.max(1) as f64;
            (user_bytes as f64 + added).max(0.0) as u64
        };
        if fields <= self.listpack_fields && sample.longest <= self.listpack_len {
            return key_bytes + (self.rounded)(7 + all(sample.listpack_bytes));
        }
        let table = match self.layout {
            Layout::Chained => 56 + 8 * fields.max(4).next_power_of_two(),
            Layout::Buckets { .. } => {
                let buckets = (fields * 5).div_ceil(32).next_power_of_two();
                let overflowing = buckets as f64 * more_than_seven(fields as f64 / buckets as f64);
                80 + 64 * (buckets + overflowing as u64)
            }
        };
        key_bytes + table + all(sample.table_bytes)
    }

    /// Returns the length of the block of a string of its own.
    fn sds(&self, len: u64) -> u64 {
        (self.rounded)(sds(len))
    }
}

/// Returns the length of a string with its header and its end.
fn sds(len: u64) -> u64 {
    let header = match len {
        1..32 => 1,
        0..256 => 3,
        256..65_536 => 5,
        _ => 9,
    };
    header + len + 1
}

/// Returns the length of a string with a header of three bytes.
fn sds8(len: u64) -> u64 {
    3 + len + 1
}

/// Returns whether the server stores a string as an integer.
pub fn is_integer(text: &[u8]) -> bool {
    text.len() <= INTEGER_LEN && integer(text).is_some()
}

/// Returns the length of an element of a listpack: with its header, and with its length behind it.
fn listpack_element(text: &[u8]) -> u64 {
    let number = if text.len() <= INTEGER_LEN { integer(text) } else { None };
    let len = text.len() as u64;
    let encoded = match (number, len) {
        (Some(0..=127), _) => 1,
        (Some(-4096..=4095), _) => 2,
        (Some(-0x8000..=0x7fff), _) => 3,
        (Some(-0x80_0000..=0x7f_ffff), _) => 4,
        (Some(-0x8000_0000..=0x7fff_ffff), _) => 5,
        (Some(_), _) => 9,
        (None, ..64) => 1 + len,
        (None, 64..4096) => 2 + len,
        (None, _) => 5 + len,
    };
    encoded
        + match encoded {
            ..128 => 1,
            128..16_383 => 2,
            16_383..2_097_151 => 3,
            _ => 4,
        }
}

/// Returns the part of the buckets that have more than seven elements, and so a second bucket, if there are `mean` on
/// average: by the Poisson distribution, which hashing follows.
fn more_than_seven(mean: f64) -> f64 {
    let mut term = (-mean).exp();
    let mut up_to_seven = term;
    for count in 1..=7 {
        term *= mean / f64::from(count);
        up_to_seven += term;
    }
    (1.0 - up_to_seven).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: KeyMemory = KeyMemory {
        bytes: 24,
        name_len: 1,
        has_expiry: false,
    };

    /// As glibc's allocator does.
    fn rounded(bytes: u64) -> u64 {
        ((bytes + 8).next_multiple_of(16) - 8).max(24)
    }

    fn model(layout: Layout) -> NativeMemory {
        NativeMemory {
            layout,
            listpack_fields: 512,
            listpack_len: 64,
            rounded,
        }
    }

    const BUCKETS: Layout = Layout::Buckets {
        embedding: 8,
        longest_embedded: 128,
    };

    #[test]
    fn only_valkey_has_buckets() {
        let of = |is_valkey, version| Layout::of(Server { is_valkey, version });
        for redis in [0x07_00_0f, 0x08_02_00, 0x09_01_00] {
            assert!(matches!(of(false, redis), Layout::Chained));
        }
        assert!(matches!(of(true, 0x08_00_01), Layout::Chained));
        for (valkey, longest) in [(0x08_01_00, 64), (0x09_01_02, 128)] {
            let layout = of(true, valkey);
            assert!(matches!(layout, Layout::Buckets { longest_embedded, .. } if longest_embedded == longest));
        }
    }

    #[test]
    fn strings_are_embedded_up_to_a_length() {
        let model = model(BUCKETS);
        let taken = [0, 4, 20, 44, 64, 100, 130, 300, 5000].map(|len| model.string(KEY, len, false));
        // As Valkey 9.1 reports it.
        assert_eq!(taken, [24, 24, 40, 72, 88, 120, 160, 336, 5040]);
        assert_eq!(model.string(KEY, 9, true), 24);
    }

    #[test]
    fn hashes_change_their_encoding_at_the_limits() {
        let model = model(BUCKETS);
        let taken = |fields: u64, value_len: usize| {
            let mut sample = Sample::default();
            model.add(&mut sample, b"field:00", &vec![b'v'; value_len]);
            model.hash(KEY, fields, fields * (8 + value_len as u64), &sample)
        };
        assert_eq!(taken(10, 10), 24 + rounded(7 + 10 * (10 + 12)));
        // As Valkey 9.1 reports it, within the chances of hashing.
        for (fields, value_len, reported) in [
            (10, 100, 1440),
            (300, 100, 40_528),
            (1000, 10, 41_200),
            (5000, 10, 193_584),
        ] {
            let ratio = taken(fields, value_len) as f64 / f64::from(reported);
            assert!(
                (0.97..1.03).contains(&ratio),
                "{fields} fields of {value_len} bytes: {ratio}"
            );
        }
    }

    #[test]
    fn integers_are_short_in_listpacks() {
        let elements = [
            "0",
            "-1",
            "5000",
            "70000",
            "1000000000",
            "-9223372036854775808",
            "01",
            "",
        ];
        let taken = elements.map(|text| listpack_element(text.as_bytes()));
        assert_eq!(taken, [2, 3, 4, 5, 6, 10, 4, 2]);
    }
}
