//! The options by name: what each sets in a tree or a cache to be made.

use std::mem::take;
use std::str::FromStr;
use std::time::Duration;

use leafpress_core::Codec;
use leafpress_core::cache::{self, Disk};
use leafpress_core::tree::{self, DictionaryChoice, TemperatureRule};

use crate::failure::Failure;

/// The object that an option applies to, under its name.
type Entry<D> = (&'static str, fn(&mut D, &str) -> Result<(), Failure>);

/// A tree to be made.
#[derive(Debug, Default)]
pub(crate) struct TreeDraft {
    builder: tree::TreeBuilder,
}

/// A cache to be made.
#[derive(Debug, Default)]
pub(crate) struct CacheDraft {
    builder: cache::CacheBuilder,
    disk_path: Option<String>,
    disk_bytes: Option<u64>,
    disk_codec: Option<Codec>,
    disk_write_bytes_per_s: Option<u64>,
    disk_recover_after_crash: Option<bool>,
    disk_overwrite: Option<bool>,
}

const TREE: &[Entry<TreeDraft>] = &[
    ("codec", |draft, text| {
        draft.set(parsed(text)?, tree::TreeBuilder::codec)
    }),
    ("dictionary", |draft, text| {
        draft.set(dictionary(text)?, tree::TreeBuilder::dictionary)
    }),
    ("dictionary_bytes", |draft, text| {
        draft.set(bytes(text)?, tree::TreeBuilder::dictionary_bytes)
    }),
    ("shards", |draft, text| {
        draft.set(number(text)?, tree::TreeBuilder::shards)
    }),
    ("background_threads", |draft, text| {
        draft.set(number(text)?, tree::TreeBuilder::background_threads)
    }),
    ("load_threads", |draft, text| {
        draft.set(number(text)?, tree::TreeBuilder::load_threads)
    }),
    ("leaf_bytes", |draft, text| {
        draft.set(bytes(text)?, tree::TreeBuilder::leaf_bytes)
    }),
    ("frame_bytes", |draft, text| {
        draft.set(bytes(text)?, tree::TreeBuilder::frame_bytes)
    }),
    ("inline_value_bytes", |draft, text| {
        draft.set(bytes(text)?, tree::TreeBuilder::inline_value_bytes)
    }),
    ("landing_bytes", |draft, text| {
        draft.set(bytes(text)?, tree::TreeBuilder::landing_bytes)
    }),
    ("temperature_rule", |draft, text| {
        draft.set(TemperatureRule::from_str(text)?, tree::TreeBuilder::temperature_rule)
    }),
];

const CACHE: &[Entry<CacheDraft>] = &[
    ("memory_bytes", |draft, text| {
        draft.set(bytes(text)?, cache::CacheBuilder::memory)
    }),
    ("codec", |draft, text| {
        draft.set(parsed(text)?, cache::CacheBuilder::codec)
    }),
    ("ttl_ms", |draft, text| {
        draft.set(time(text)?, cache::CacheBuilder::default_ttl)
    }),
    ("time_to_idle_ms", |draft, text| {
        draft.set(time(text)?, cache::CacheBuilder::time_to_idle)
    }),
    ("refresh_ahead_ms", |draft, text| {
        draft.set(time(text)?, cache::CacheBuilder::refresh_ahead)
    }),
    ("stale_while_revalidate_ms", |draft, text| {
        draft.set(time(text)?, cache::CacheBuilder::stale_while_revalidate)
    }),
    ("share", |draft, text| {
        let share = text.parse::<cache::RawShare>();
        let share = share.map_err(|error| Failure::argument(error.to_string()))?;
        draft.set(share, cache::CacheBuilder::share)
    }),
    ("miss_cost_us", |draft, text| {
        draft.set(Duration::from_micros(number(text)?), cache::CacheBuilder::miss_cost)
    }),
    ("name", |draft, text| draft.set(text, cache::CacheBuilder::name)),
    ("disk_path", |draft, text| {
        draft.disk_path = Some(text.to_owned());
        Ok(())
    }),
    ("disk_bytes", |draft, text| {
        draft.disk_bytes = Some(bytes(text)?);
        Ok(())
    }),
    ("disk_codec", |draft, text| {
        draft.disk_codec = Some(parsed(text)?);
        Ok(())
    }),
    ("disk_write_bytes_per_s", |draft, text| {
        draft.disk_write_bytes_per_s = Some(bytes(text)?);
        Ok(())
    }),
    ("disk_recover_after_crash", |draft, text| {
        draft.disk_recover_after_crash = Some(yes_or_no(text)?);
        Ok(())
    }),
    ("disk_overwrite", |draft, text| {
        draft.disk_overwrite = Some(yes_or_no(text)?);
        Ok(())
    }),
];

impl TreeDraft {
    fn set<V>(&mut self, value: V, set: impl FnOnce(tree::TreeBuilder, V) -> tree::TreeBuilder) -> Result<(), Failure> {
        self.builder = set(take(&mut self.builder), value);
        Ok(())
    }

    pub fn finish(self) -> tree::TreeBuilder {
        self.builder
    }
}

impl CacheDraft {
    fn set<V>(
        &mut self,
        value: V,
        set: impl FnOnce(cache::CacheBuilder, V) -> cache::CacheBuilder,
    ) -> Result<(), Failure> {
        self.builder = set(take(&mut self.builder), value);
        Ok(())
    }

    pub fn finish(self) -> Result<cache::CacheBuilder, Failure> {
        let (path, disk_bytes) = match (self.disk_path, self.disk_bytes) {
            (Some(path), Some(disk_bytes)) => (path, disk_bytes),
            (None, None)
                if self.disk_codec.is_none()
                    && self.disk_write_bytes_per_s.is_none()
                    && self.disk_recover_after_crash.is_none()
                    && self.disk_overwrite.is_none() =>
            {
                return Ok(self.builder);
            }
            _ => return Err(Failure::argument("a disk tier needs both disk_path and disk_bytes")),
        };
        let mut disk = Disk::file(path, disk_bytes);
        if let Some(codec) = self.disk_codec {
            disk = disk.codec(codec);
        }
        if let Some(limit) = self.disk_write_bytes_per_s {
            disk = disk.write_limit(limit);
        }
        if let Some(recovers) = self.disk_recover_after_crash {
            disk = disk.recover_after_crash(recovers);
        }
        if let Some(overwrites) = self.disk_overwrite {
            disk = disk.overwrite(overwrites);
        }
        Ok(self.builder.disk(disk))
    }
}

/// Options in the order in which they were set: name and value, the last of each name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings(Vec<(&'static str, String)>);

impl Settings {
    /// Sets an option, if it exists and accepts the value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let of_tree = TREE.iter().find(|entry| entry.0 == name);
        let of_cache = CACHE.iter().find(|entry| entry.0 == name);
        let known = of_tree.map(|entry| entry.0).or(of_cache.map(|entry| entry.0));
        let known = known.ok_or_else(|| {
            Failure::argument(format!(
                "there is no option `{name}`; of trees there are {}; of caches {}",
                names(TREE),
                names(CACHE)
            ))
        })?;
        // Only to validate it.
        let tried = of_tree.map_or(Ok(()), |entry| entry.1(&mut TreeDraft::default(), value));
        let tried = tried.and_then(|()| of_cache.map_or(Ok(()), |entry| entry.1(&mut CacheDraft::default(), value)));
        tried.map_err(|failure| failure.under(name))?;
        match self.0.iter_mut().find(|set| set.0 == known) {
            Some(set) => value.clone_into(&mut set.1),
            None => self.0.push((known, value.to_owned())),
        }
        Ok(())
    }

    pub fn tree(&self) -> Result<TreeDraft, Failure> {
        self.apply(TREE, "tree")
    }

    pub fn cache(&self) -> Result<CacheDraft, Failure> {
        self.apply(CACHE, "cache")
    }

    fn apply<D: Default>(&self, table: &[Entry<D>], what: &str) -> Result<D, Failure> {
        let mut draft = D::default();
        for (name, value) in &self.0 {
            let entry = table.iter().find(|entry| entry.0 == *name).ok_or_else(|| {
                Failure::argument(format!(
                    "`{name}` is not an option of a {what}, which has {}",
                    names(table)
                ))
            })?;
            entry.1(&mut draft, value)?;
        }
        Ok(draft)
    }
}

fn names<D>(table: &[Entry<D>]) -> String {
    let names: Vec<&str> = table.iter().map(|entry| entry.0).collect();
    names.join(", ")
}

fn parsed(text: &str) -> Result<Codec, Failure> {
    Ok(text.parse::<Codec>()?)
}

fn dictionary(text: &str) -> Result<DictionaryChoice, Failure> {
    match text {
        "auto" => Ok(DictionaryChoice::Auto),
        "off" => Ok(DictionaryChoice::Off),
        _ => Err(Failure::argument(format!(
            "`{text}` is not known: auto and off are; lp_options_set_dictionary() gives one"
        ))),
    }
}

fn number<N: TryFrom<u64>>(text: &str) -> Result<N, Failure> {
    let number = text.parse::<u64>().ok().and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| Failure::argument(format!("`{text}` is not a whole number that it can take")))
}

fn bytes<N: TryFrom<u64>>(text: &str) -> Result<N, Failure> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("", 0)];
    let (digits, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))
        .unwrap_or((text, &0));
    let bytes = digits.trim_end().parse::<u64>().ok();
    let bytes = bytes
        .and_then(|bytes| bytes.checked_mul(1 << shift))
        .and_then(|bytes| N::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        Failure::argument(format!(
            "`{text}` is not a number of bytes: digits, and KiB, MiB, GiB or TiB behind them if you like"
        ))
    })
}

fn yes_or_no(text: &str) -> Result<bool, Failure> {
    text.parse()
        .map_err(|_| Failure::argument(format!("`{text}` is not known: true and false are")))
}

fn time(text: &str) -> Result<Duration, Failure> {
    number(text).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (text, expected) in [
            ("0", 0),
            ("17", 17),
            ("4KiB", 4096),
            ("3 MiB", 3 << 20),
            ("2GiB", 2 << 30),
        ] {
            assert_eq!(bytes::<u64>(text).unwrap(), expected, "{text}");
        }
        for text in ["", "MiB", "-1", "1.5GiB", "1kb", "99999999999TiB", "+ 1"] {
            assert!(bytes::<u64>(text).is_err(), "{text}");
        }
        assert!(bytes::<u8>("256").is_err());
    }

    #[test]
    fn the_last_value_counts_and_a_bad_one_changes_nothing() {
        let mut settings = Settings::default();
        settings.set("shards", "0").unwrap();
        assert!(settings.tree().unwrap().finish().build().is_err());
        settings.set("shards", "4").unwrap();
        assert!(settings.set("shards", "many").is_err());
        settings.tree().unwrap().finish().build().unwrap();
        assert!(settings.cache().is_err());
    }
}
