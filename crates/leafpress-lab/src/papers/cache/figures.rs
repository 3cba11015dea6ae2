//! The paper's figures: scenarios, results, and assumptions where the notes are silent.

use super::scenario::{DiskSize, Locality, Plan, Scenario};
use super::{Figure, FigureOptions};
use crate::cache::{EngineSpec, PaperObjects, Peer};
use leafpress::Codec;
use leafpress::cache::Policy;

/// The working set over the DRAM of figures 8, 9 and 10.
const RATIOS: [u32; 4] = [16, 8, 4, 2];
/// Minimum time for counting written bytes: within a few seconds, a single large merge dominates.
const WRITTEN_SECONDS: f64 = 15.0;
/// Zstandard's level in `auto`, and its default.
const AUTO_LEVEL: i32 = 3;

impl FigureOptions {
    /// Returns the scenarios, scaled.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let plans = self.figure.plans().into_iter();
        plans.map(|plan| Scenario::new(plan, self)).collect()
    }
}

impl Figure {
    /// The default scale, with which it takes minutes.
    pub(super) fn default_scale(self) -> f64 {
        match self {
            Self::Fig7 | Self::Fig8 | Self::Fig9 | Self::Fig10 => 0.25,
            Self::Fig11 | Self::Fig12 | Self::Fig13 | Self::Fig14 | Self::Fig16 => 1.0,
        }
    }

    /// The figure's number.
    pub(super) fn number(self) -> String {
        self.to_string().trim_start_matches("fig").to_owned()
    }

    /// Title of the figure.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Fig7 => {
                "Hit ratio and throughput with a working set far larger than the cache: DRAM and SSD as parts of 6 TB \
                 of keys and values. Moderate locality, GET:PUT 1:1."
            }
            Self::Fig8 => {
                "Throughput and DRAM hit ratio by locality, and by DRAM to working set; all fits into DRAM and SSD. \
                 GET:PUT 1:1."
            }
            Self::Fig9 => {
                "Latency of GETs by DRAM to working set; all fits into DRAM and SSD. Moderate locality, GET:PUT 1:1."
            }
            Self::Fig10 => {
                "PUTs alone and GETs alone, by DRAM to working set; all fits into DRAM and SSD. Moderate locality."
            }
            Self::Fig11 => {
                "Bytes written to the SSD per byte of records evicted from DRAM, with values of 32, 64 and 128 bytes."
            }
            Self::Fig12 => {
                "Hot leaves kept uncompressed (the paper's bypass; here the codec auto) and not (lz4). Strong \
                 locality; all fits into DRAM and SSD."
            }
            Self::Fig13 => {
                "The hot set moves at once: mean latency of GETs before, at worst, and after. Strong locality."
            }
            Self::Fig14 => {
                "Values of which 100 to 30% do not compress (eta). DRAM to working set 1:16, moderate locality, \
                 GET:PUT 1:1; all fits into DRAM and SSD."
            }
            Self::Fig16 => {
                "Values of 64 bytes, 256 bytes and 2 KB together, an equal number of bytes each: the paper's tiny, \
                 medium and large objects."
            }
        }
    }

    /// The paper's result that concerns no single scenario.
    pub(super) fn result(self) -> Option<&'static str> {
        match self {
            Self::Fig7 => Some(
                "moderate locality, 128 GB and 1 TB: hits 2.6, 29.2 and 30.9 points above xcache, CacheLib and \
                 Kangaroo, throughput 6.1, 75.0 and 76.1% above",
            ),
            Self::Fig8 => Some("throughput up to 72.4% above the best competitor"),
            Self::Fig9 => Some("p90 of a GET up to 42.4% below the others', p99 similar"),
            Self::Fig11 => Some(
                "64 B, SSD pages of 16 KB filled to 90%: 3.7% of CacheLib's writes, 9.8% of xcache's, 53.5% of \
                 Kangaroo's, counted behind the drive's own compression",
            ),
            Self::Fig12 => Some("with the bypass vs without it, in the rows of auto"),
            Self::Fig10 | Self::Fig13 | Self::Fig14 | Self::Fig16 => None,
        }
    }

    /// Assumptions where the notes are silent.
    pub(super) fn assumed(self) -> Option<&'static str> {
        match self {
            Self::Fig10 => Some("the locality"),
            Self::Fig11 => Some("DRAM to working set 1:4, moderate locality, 90% PUTs"),
            Self::Fig12 => Some("DRAM to working set 1:2"),
            Self::Fig13 => Some("DRAM to working set 1:2, GETs alone"),
            Self::Fig14 => Some("the locality"),
            Self::Fig16 => Some("DRAM to working set 1:4, moderate locality, GET:PUT 1:1"),
            Self::Fig7 | Self::Fig8 | Self::Fig9 => None,
        }
    }

    /// The caches that the figure is about.
    pub(super) fn engines(self) -> Vec<EngineSpec> {
        let ours = |codec| EngineSpec::Leafpress(codec, Policy::default());
        let mut engines = match self {
            Self::Fig12 => vec![
                ours(Some(Codec::Auto { level: AUTO_LEVEL })),
                ours(Some(Codec::Lz4 { acceleration: 1 })),
            ],
            Self::Fig13 => vec![ours(Some(Codec::Auto { level: AUTO_LEVEL })), ours(None)],
            _ => vec![ours(None)],
        };
        if matches!(self, Self::Fig8 | Self::Fig9 | Self::Fig10) {
            engines.push(EngineSpec::Leafpress(None, Policy::Page));
        }
        if matches!(self, Self::Fig7 | Self::Fig8 | Self::Fig9 | Self::Fig10) {
            let peers = [Peer::QuickCache, Peer::Foyer].into_iter();
            engines.extend(
                peers
                    .filter(|peer| peer.is_compiled_in())
                    .map(|peer| EngineSpec::Other(peer, None)),
            );
        }
        engines
    }

    fn plans(self) -> Vec<Plan> {
        match self {
            Self::Fig7 => beyond_all(),
            Self::Fig8 => by_locality(),
            Self::Fig9 => by_ratio("", 50.0).collect(),
            Self::Fig10 => by_ratio(" PUT only", 100.0)
                .chain(by_ratio(" GET only", 0.0).map(|plan| Plan {
                    paper:
                        (plan.working_set == 16.0).then_some("ops/s +56.3% on CacheLib and Kangaroo, +71.6% on xcache"),
                    ..plan
                }))
                .collect(),
            Self::Fig11 => by_length(),
            Self::Fig12 => bypass(),
            Self::Fig13 => vec![Plan {
                paper: Some("mean GET 1.6 us, 3.4 us, back after 500,000 operations"),
                locality: Locality::Strong,
                put_pct: 0.0,
                shift: Some((4_000_000, 12_000_000)),
                ..Plan::fitting("hot keys move", 2.0)
            }],
            Self::Fig14 => by_eta(),
            Self::Fig16 => vec![Plan {
                paper: Some("p50 of 256 B 26% above that of 64 B; 2 KB are SSD reads"),
                objects: PaperObjects {
                    value_bytes: vec![64, 256, 2048],
                    ..PaperObjects::default()
                },
                ..Plan::fitting("64 B, 256 B, 2 KB", 4.0)
            }],
        }
    }
}

/// 6 TB with {64, 128 GB} of DRAM and {0.5, 1 TB} of SSD; `-m` is the 128 GB.
fn beyond_all() -> Vec<Plan> {
    let plan = |dram_gb: f64, ssd_gb: f64| Plan {
        paper: (dram_gb == 128.0 && ssd_gb == 1024.0).then_some("hits 69.7%"),
        memory: dram_gb / 128.0,
        disk: DiskSize::TimesMemory(ssd_gb / 128.0),
        is_warmed_by_key: true,
        ..Plan::fitting(format!("{dram_gb} GB, {} TB", ssd_gb / 1024.0), 6.0 * 1024.0 / 128.0)
    };
    vec![
        plan(64.0, 512.0),
        plan(64.0, 1024.0),
        plan(128.0, 512.0),
        plan(128.0, 1024.0),
    ]
}

fn by_locality() -> Vec<Plan> {
    let of = |locality: Locality| {
        RATIOS.into_iter().map(move |ratio| Plan {
            paper: match (locality, ratio) {
                (Locality::Strong, 16) => Some("DRAM hits +36.3 points, ops/s +30.4%"),
                (Locality::Strong, 2) => Some("no difference"),
                _ => None,
            },
            locality,
            ..Plan::fitting(format!("{} 1:{ratio}", locality.word()), f64::from(ratio))
        })
    };
    Locality::ALL.into_iter().flat_map(of).collect()
}

fn by_ratio(name: &'static str, put_pct: f64) -> impl Iterator<Item = Plan> {
    RATIOS.into_iter().map(move |ratio| Plan {
        put_pct,
        ..Plan::fitting(format!("1:{ratio}{name}"), f64::from(ratio))
    })
}

fn by_length() -> Vec<Plan> {
    let plan = |value_bytes: u32| Plan {
        paper: (value_bytes == 64).then_some("1.8 behind the drive's compression"),
        put_pct: 90.0,
        seconds: WRITTEN_SECONDS,
        objects: PaperObjects {
            value_bytes: vec![value_bytes],
            ..PaperObjects::default()
        },
        ..Plan::fitting(format!("{value_bytes} B"), 4.0)
    };
    [32, 64, 128].map(plan).to_vec()
}

fn bypass() -> Vec<Plan> {
    let plan = |gets: u32, paper| Plan {
        paper: Some(paper),
        locality: Locality::Strong,
        put_pct: f64::from(100 - gets),
        ..Plan::fitting(format!("GET:PUT {gets}:{}", 100 - gets), 2.0)
    };
    vec![
        plan(30, "GET p50 -63%, p90 -54%, ops/s +44%"),
        plan(70, "GET p50 -76%, p90 -70%, ops/s +59%"),
    ]
}

fn by_eta() -> Vec<Plan> {
    let plan = |eta: u32| Plan {
        paper: match eta {
            100 => Some("DRAM hits 26.4%"),
            30 => Some("DRAM hits 73.6%"),
            _ => None,
        },
        objects: PaperObjects {
            incompressible_pct: f64::from(eta),
            ..PaperObjects::default()
        },
        ..Plan::fitting(format!("eta {eta}%"), 16.0)
    };
    [100, 70, 50, 30].map(plan).to_vec()
}
