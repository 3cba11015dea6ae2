//! Loads shared libraries written for PiBench as indexes.

use std::path::Path;

use leafpress_lab::bench::{Index, IndexError, KeyOrder, Options};
use leafpress_pibench_host::{CallError, Library, TreeOptions};

/// Opens a shared library; passed to the laboratory.
pub fn open(path: &Path, options: &Options) -> Result<Box<dyn Index>, IndexError> {
    let tree_options = TreeOptions {
        key_size: options.key_bytes(),
        value_size: options.value_size,
        pool_path: options.pool_path.clone(),
        pool_size: usize::try_from(options.pool_size)
            .map_err(|_| IndexError::new(format!("a pool of {} bytes is too large", options.pool_size)))?,
        num_threads: options.threads,
        protocol: options.protocol.unwrap_or(0),
        clock_type: options.clock.unwrap_or(0),
        gc_enabled: options.garbage_collector.unwrap_or(0),
    };
    // A bare name is a file in the working directory, as in PiBench, not a name on the loader's search path.
    let local = Path::new(".").join(path);
    let path = if path.components().count() == 1 && local.exists() {
        local.as_path()
    } else {
        path
    };
    // SAFETY: the user named the library so that its code runs, and vouches for it (see `docs/commands/bench.md`). Keys
    // and values have the lengths passed here.
    let opened = unsafe { Library::open(path, &tree_options) };
    let wrapper = opened.map_err(|e| IndexError::new(e.to_string()))?;
    Ok(Box::new(Wrapped {
        wrapper,
        record_bytes: options.key_bytes() + options.value_size,
    }))
}

struct Wrapped {
    wrapper: Library,
    record_bytes: usize,
}

fn error(e: CallError) -> IndexError {
    IndexError::new(e.to_string())
}

impl Index for Wrapped {
    fn find(&self, key: &[u8], value_out: &mut [u8]) -> Result<bool, IndexError> {
        self.wrapper.find(key, value_out).map_err(error)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.wrapper.insert(key, value).map_err(error)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, IndexError> {
        self.wrapper.update(key, value).map_err(error)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, IndexError> {
        self.wrapper.remove(key).map_err(error)
    }

    fn scan(&self, key: &[u8], records: usize, out: &mut Vec<u8>) -> Result<usize, IndexError> {
        match self.wrapper.scan(key, records, self.record_bytes, out) {
            // Counted as wrong scans, which do not end a run.
            Err(CallError::TooMany { count, .. } | CallError::NoValues { count, .. }) => {
                out.clear();
                Ok(count)
            }
            scanned => scanned.map_err(error),
        }
    }

    fn attach_thread(&self) -> Result<(), IndexError> {
        self.wrapper.attach_thread().map_err(error)
    }

    fn name(&self) -> String {
        self.wrapper.path().display().to_string()
    }

    fn key_order(&self) -> KeyOrder {
        KeyOrder::BytesOrIntegers
    }
}
