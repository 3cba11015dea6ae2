//! The command line, and the tree configured by it.

use std::error::Error;

use leafpress::tree::DictionaryChoice;
use leafpress::{Dictionary, Layout, ShardBy, Tree};

const USAGE: &str = "usage: breakdown [--OPTION VALUE]...
  --corpus FILE          values are cut from this file's bytes (default: synthetic text)
  --codec NAME           none, lz4, zstd:1, ... (lz4)
  --keys N               records loaded, with keys of 8 big-endian bytes (50000)
  --value-bytes N        bytes of a value (128)
  --threads N            threads that run operations; they also share the load (1)
  --seconds F            length of the timed run; 0 loads only (3)
  --read-pct N           reads in 100 operations; the others are puts of present keys (100)
  --miss-pct N           reads in 100 that ask for an absent key (0)
  --read KIND            get, get_into or get_with (get_into)
  --load-order KIND      random or sequential (random)
  --shards N             (8)
  --shard-by KIND        hash or range (hash)
  --landing N            landing buffer bytes (512)
  --leaf-bytes N         (the library's default)
  --frame-bytes N        (the library's default)
  --layout KIND          ordered or hashed:N (ordered)
  --dictionary KIND      off, auto, or a file of raw dictionary bytes (auto)
  --dictionary-bytes N   (the library's default)
  --background N         background threads (0)
  --sample N             time one operation in N, and check the value of another one (8)
  --seed N               (1)";

#[derive(Clone, Copy)]
pub enum Read {
    Get,
    GetInto,
    GetWith,
}

pub struct Args {
    pub corpus: Option<String>,
    pub codec: String,
    pub keys: u64,
    pub value_bytes: usize,
    pub threads: usize,
    pub seconds: f64,
    pub read_pct: u64,
    pub miss_pct: u64,
    pub read: Read,
    pub sequential: bool,
    pub shards: usize,
    pub by_range: bool,
    pub landing: usize,
    pub leaf_bytes: Option<usize>,
    pub frame_bytes: Option<usize>,
    pub layout: Layout,
    pub dictionary: String,
    pub dictionary_bytes: Option<usize>,
    pub background: usize,
    pub sample: u64,
    pub seed: u64,
}

impl Args {
    pub fn parse() -> Result<Self, Box<dyn Error>> {
        let mut a = Self {
            corpus: None,
            codec: "lz4".into(),
            keys: 50_000,
            value_bytes: 128,
            threads: 1,
            seconds: 3.0,
            read_pct: 100,
            miss_pct: 0,
            read: Read::GetInto,
            sequential: false,
            shards: 8,
            by_range: false,
            landing: 512,
            leaf_bytes: None,
            frame_bytes: None,
            layout: Layout::Ordered,
            dictionary: "auto".into(),
            dictionary_bytes: None,
            background: 0,
            sample: 8,
            seed: 1,
        };
        let mut words = std::env::args().skip(1);
        while let Some(option) = words.next() {
            if option == "--help" {
                return Err(USAGE.into());
            }
            let value = words
                .next()
                .ok_or_else(|| format!("{option} requires a value\n{USAGE}"))?;
            a.set(&option, value).map_err(|e| format!("{option}: {e}"))?;
        }
        if a.keys == 0 || a.value_bytes == 0 || a.threads == 0 || a.sample == 0 || a.read_pct > 100 || a.miss_pct > 100
        {
            return Err("keys, value bytes, threads and sample must be at least 1, percentages at most 100".into());
        }
        Ok(a)
    }

    fn set(&mut self, option: &str, value: String) -> Result<(), Box<dyn Error>> {
        match option {
            "--corpus" => self.corpus = Some(value),
            "--codec" => self.codec = value,
            "--keys" => self.keys = value.parse()?,
            "--value-bytes" => self.value_bytes = value.parse()?,
            "--threads" => self.threads = value.parse()?,
            "--seconds" => self.seconds = value.parse()?,
            "--read-pct" => self.read_pct = value.parse()?,
            "--miss-pct" => self.miss_pct = value.parse()?,
            "--read" => {
                self.read = match value.as_str() {
                    "get" => Read::Get,
                    "get_into" => Read::GetInto,
                    "get_with" => Read::GetWith,
                    _ => return Err("expected get, get_into or get_with".into()),
                }
            }
            "--load-order" => self.sequential = either(&value, "sequential", "random")?,
            "--shards" => self.shards = value.parse()?,
            "--shard-by" => self.by_range = either(&value, "range", "hash")?,
            "--landing" => self.landing = value.parse()?,
            "--leaf-bytes" => self.leaf_bytes = Some(value.parse()?),
            "--frame-bytes" => self.frame_bytes = Some(value.parse()?),
            "--layout" => {
                self.layout = match value.split_once(':') {
                    Some(("hashed", n)) => Layout::Hashed { sub_pages: n.parse()? },
                    None if value == "ordered" => Layout::Ordered,
                    _ => return Err("expected ordered or hashed:N".into()),
                }
            }
            "--dictionary" => self.dictionary = value,
            "--dictionary-bytes" => self.dictionary_bytes = Some(value.parse()?),
            "--background" => self.background = value.parse()?,
            "--sample" => self.sample = value.parse()?,
            "--seed" => self.seed = value.parse()?,
            _ => return Err(format!("unknown option\n{USAGE}").into()),
        }
        Ok(())
    }

    pub fn build(&self) -> Result<Tree, Box<dyn Error>> {
        let mut builder = Tree::builder()
            .codec(self.codec.parse()?)
            .shards(self.shards)
            .landing_bytes(self.landing)
            .layout(self.layout)
            .background_threads(self.background)
            .dictionary(match self.dictionary.as_str() {
                "off" => DictionaryChoice::Off,
                "auto" => DictionaryChoice::Auto,
                path => DictionaryChoice::Given(Dictionary::from_bytes(1, std::fs::read(path)?)),
            });
        if self.by_range {
            let boundary = |i: usize| (self.keys * i as u64 / self.shards as u64).to_be_bytes().to_vec();
            builder = builder.shard_by(ShardBy::Range((1..self.shards).map(boundary).collect()));
        }
        if let Some(bytes) = self.leaf_bytes {
            builder = builder.leaf_bytes(bytes);
        }
        if let Some(bytes) = self.frame_bytes {
            builder = builder.frame_bytes(bytes);
        }
        if let Some(bytes) = self.dictionary_bytes {
            builder = builder.dictionary_bytes(bytes);
        }
        Ok(builder.build()?)
    }
}

fn either(value: &str, yes: &str, no: &str) -> Result<bool, String> {
    match value {
        v if v == yes => Ok(true),
        v if v == no => Ok(false),
        _ => Err(format!("expected {yes} or {no}")),
    }
}
