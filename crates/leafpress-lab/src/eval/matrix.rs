//! From the lists of an [`EvalConfig`] to the runs of an evaluation, with the evaluation document's names.

use std::path::PathBuf;

use leafpress::Codec;
use leafpress::codec::{QplMode, QplPath};
use leafpress::tree::{DictionaryChoice, Layout, ShardBy};
use serde::{Deserialize, Serialize};

use crate::core::LabError;
use crate::eval::EvalConfig;
use crate::eval::dataset::Dataset;
use crate::eval::landing_bytes::LandingBytes;
use crate::eval::options::parse_codec;
use crate::eval::workload::Workload;
use crate::harness::store::MAX_LOAD_THREADS;

/// One run: a codec and a configuration, in its own process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The configuration's name: `software_fixed`, `qpl_iaa_fixed`, `qpl_iaa_dynamic` or `zlib_accel`.
    pub run: String,
    /// The codec's full name.
    pub codec: String,
    /// The workload.
    pub workload: Workload,
    /// Worker threads.
    pub threads: usize,
    /// Size of landing buffers.
    pub landing_bytes: LandingBytes,
    /// Whether leaves are compacted in the background.
    pub background: bool,
    /// Check the reads of one batch of operations in this many; 1 checks every read, as every evaluation does. The
    /// comparison of maps checks fewer, so that the check's own cache misses do not hide differences between the maps.
    pub check_one_in: u32,
    /// Everything that does not vary within an evaluation.
    pub base: EvalConfig,
}

/// A run and what its process needs.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The run.
    pub spec: RunSpec,
    /// A library to preload (`LD_PRELOAD`).
    pub preload: Option<PathBuf>,
}

/// Builds the runs of an evaluation, in order: run names outermost, then landing, background, threads, workload, and
/// codecs innermost, so that what is compared runs close together in time.
///
/// # Errors
/// [`LabError::Option`] for a codec name that is not one, or that does not belong in its list.
pub fn expand(config: &EvalConfig) -> Result<Vec<Configuration>, LabError> {
    let mut families: Vec<(&str, Vec<Codec>, Option<PathBuf>)> = Vec::new();
    let software = config
        .codecs
        .iter()
        .map(|name| parse_codec("codecs", name))
        .collect::<Result<Vec<_>, _>>()?;
    families.push(("software_fixed", software, None));
    // Unused lists are validated too.
    let modes = [("qpl_iaa_fixed", QplMode::Fixed), ("qpl_iaa_dynamic", QplMode::Dynamic)];
    for (run, mode) in modes.into_iter().take(if config.qpl_dynamic { 2 } else { 1 }) {
        let codecs = config
            .iaa_codecs
            .iter()
            .map(|name| match parse_codec("iaa-codecs", name)? {
                Codec::Qpl { .. } => Ok(Codec::Qpl {
                    path: QplPath::Hardware,
                    mode,
                }),
                other => Err(LabError::option(
                    "iaa-codecs",
                    format!("{other} does not run on an IAA device; use qpl"),
                )),
            });
        let codecs = codecs.collect::<Result<Vec<_>, _>>()?;
        if config.iaa {
            families.push((run, codecs, None));
        }
    }
    let codecs = config
        .zlib_accel_codecs
        .iter()
        .map(|name| match parse_codec("zlib-accel-codecs", name)? {
            zlib @ Codec::Zlib { .. } => Ok(zlib),
            other => Err(LabError::option(
                "zlib-accel-codecs",
                format!("{other} does not call zlib; use zlib_accel or zlib:LEVEL"),
            )),
        });
    let codecs = codecs.collect::<Result<Vec<_>, _>>()?;
    if config.zlib_accel {
        families.push(("zlib_accel", codecs, config.zlib_accel_so.clone()));
    }
    let mut runs = Vec::new();
    for (run, mut codecs, preload) in families {
        let mut seen = Vec::new();
        codecs.retain(|codec| {
            !seen.contains(codec) && {
                seen.push(*codec);
                true
            }
        });
        for &landing_bytes in &config.landing_bytes {
            for &background in &config.background {
                for &threads in &config.threads {
                    for &workload in &config.workloads {
                        for codec in &codecs {
                            let spec = RunSpec {
                                run: run.into(),
                                codec: codec.to_string(),
                                workload,
                                threads,
                                landing_bytes,
                                background,
                                check_one_in: 1,
                                base: config.clone(),
                            };
                            runs.push(Configuration {
                                spec,
                                preload: preload.clone(),
                            });
                        }
                    }
                }
            }
        }
    }
    Ok(runs)
}

impl EvalConfig {
    /// Checks every bound, that the codecs can run here, and that the shim of a zlib-accel run exists. Does not read
    /// the data.
    ///
    /// # Errors
    /// The first option at fault, as one line.
    pub fn validate(&self) -> Result<(), LabError> {
        self.validate_bounds()?;
        for configuration in expand(self)? {
            configuration.spec.check_available()?;
        }
        Ok(())
    }
}

impl RunSpec {
    /// Parses the codec.
    ///
    /// # Errors
    /// [`LabError::Option`] for a name that is not a codec's.
    pub fn codec(&self) -> Result<Codec, LabError> {
        parse_codec("codecs", &self.codec)
    }

    /// Returns a short name for logs and progress, unique within an evaluation and fit for a file name.
    pub fn label(&self) -> String {
        let background = if self.background { "_bg" } else { "" };
        let codec = self.codec.replace([':', '='], "-");
        format!(
            "{}.{codec}.{}.t{}.l{}{background}",
            self.run, self.workload, self.threads, self.landing_bytes
        )
    }

    /// Creates the tree's builder for this data: shards may be ranges of its keys.
    ///
    /// # Errors
    /// As [`RunSpec::codec`].
    pub fn builder_for(&self, data: &Dataset) -> Result<leafpress::TreeBuilder, LabError> {
        Ok(self.builder()?.shard_by(self.shard_by(data)))
    }

    /// The tree's builder, except for ranges of keys.
    pub(crate) fn builder(&self) -> Result<leafpress::TreeBuilder, LabError> {
        let base = &self.base;
        let mut builder = leafpress::Tree::builder()
            .codec(self.codec()?)
            .job_cache(base.job_cache)
            .stream_cache(base.stream_cache)
            .shards(base.shards)
            .dictionary(if base.dictionary {
                DictionaryChoice::Auto
            } else {
                DictionaryChoice::Off
            })
            .background_threads(if self.background { base.background_threads } else { 0 })
            .load_threads(self.threads.clamp(1, MAX_LOAD_THREADS))
            .landing_compaction_pct(base.landing_compaction_pct)
            .background_codec(base.background_codec.clone())
            .temperature_rule(base.temperature);
        if let Some(bytes) = base.leaf_bytes {
            builder = builder.leaf_bytes(bytes);
        }
        if let Some(bytes) = self.landing_bytes.fixed() {
            builder = builder.landing_bytes(bytes);
        }
        if let Some(bytes) = base.frame_bytes {
            builder = builder.frame_bytes(bytes);
        }
        if let Some(bytes) = base.dictionary_bytes {
            builder = builder.dictionary_bytes(bytes);
        }
        if let Some(sub_pages) = base.hashed_sub_pages {
            builder = builder.layout(Layout::Hashed { sub_pages });
        }
        Ok(builder)
    }

    fn shard_by(&self, data: &Dataset) -> ShardBy {
        let base = &self.base;
        if !base.shard_by_range {
            return ShardBy::Hash;
        }
        let mut keys = data.key_bytes();
        let shards = base.shards as u64;
        ShardBy::Range(
            (1..shards)
                .map(|shard| keys.encode(data.keys * shard / shards).to_vec())
                .collect(),
        )
    }

    /// Builds an empty tree and drops it: every option in bounds, the codec's library and device there.
    pub(crate) fn check_available(&self) -> Result<(), LabError> {
        self.builder()?.build()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(config: &EvalConfig) -> Vec<String> {
        expand(config).unwrap().iter().map(|run| run.spec.label()).collect()
    }

    #[test]
    fn lists_sweep_with_codecs_innermost() {
        let config = EvalConfig {
            codecs: vec!["none".into(), "lz4".into(), "none".into()],
            workloads: vec![Workload::ReadOnly, Workload::Scan],
            threads: vec![1, 2],
            landing_bytes: vec![LandingBytes::Fixed(512), LandingBytes::Auto],
            background: vec![false, true],
            ..EvalConfig::default()
        };
        let labels = labels(&config);
        assert_eq!(labels.len(), 2 * 2 * 2 * 2 * 2, "the codec named twice runs once");
        assert_eq!(labels[0], "software_fixed.none.read_only.t1.l512");
        assert_eq!(labels[1], "software_fixed.lz4.read_only.t1.l512");
        assert_eq!(labels[2], "software_fixed.none.scan.t1.l512");
        assert_eq!(labels.last().unwrap(), "software_fixed.lz4.scan.t2.lauto_bg");
        let mut unique = labels.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), labels.len());
    }

    #[test]
    fn ranges_split_the_keys_evenly() {
        let base = EvalConfig {
            keys: 1000,
            shards: 4,
            shard_by_range: true,
            ..EvalConfig::default()
        };
        let runs = expand(&base).unwrap();
        let values = crate::core::corpus::Corpus::from_parts("test", vec![vec![7; 320]], base.effective_cut()).unwrap();
        let data = Dataset::shaped(std::sync::Arc::new(values), &base);
        let ShardBy::Range(boundaries) = runs[0].spec.shard_by(&data) else {
            panic!("hashed")
        };
        let mut keys = data.key_bytes();
        assert_eq!(boundaries, [250, 500, 750].map(|id| keys.encode(id).to_vec()));
        assert!(
            EvalConfig { keys: 3, ..base }
                .validate()
                .unwrap_err()
                .to_string()
                .contains("4 ranges")
        );
    }

    #[test]
    fn accelerators_get_their_runs() {
        let config = EvalConfig {
            codecs: vec!["none".into()],
            workloads: vec![Workload::ReadOnly],
            threads: vec![1],
            iaa: true,
            zlib_accel: true,
            zlib_accel_so: Some("/x/libzlib_accel.so".into()),
            ..EvalConfig::default()
        };
        let Ok(runs) = expand(&config) else { return };
        let names: Vec<_> = runs
            .iter()
            .map(|r| (r.spec.run.as_str(), r.spec.codec.as_str(), r.preload.is_some()))
            .collect();
        assert_eq!(
            names,
            [
                ("software_fixed", "none", false),
                ("qpl_iaa_fixed", "qpl:hardware:fixed", false),
                ("qpl_iaa_dynamic", "qpl:hardware:dynamic", false),
                ("zlib_accel", "zlib:1", true),
            ]
        );
        let fixed_only = EvalConfig {
            qpl_dynamic: false,
            ..config.clone()
        };
        assert_eq!(expand(&fixed_only).unwrap().len(), 3);
        let wrong = EvalConfig {
            zlib_accel_codecs: vec!["lz4".into()],
            ..config
        };
        assert!(expand(&wrong).unwrap_err().to_string().contains("does not call zlib"));
    }
}
