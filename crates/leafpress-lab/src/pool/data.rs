//! The pages of a run: the user's own, only read, or a scratch copy where they have to be opened, cut or changed.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use leafpress::store::{
    FaultyStore, FileStore, MAX_PAGE_BYTES, MIN_PAGE_BYTES, MemoryStore, Operation, PageId, PageStore,
};
use leafpress_pages::store::DirectoryStore;
use tempfile::TempDir;

use super::spread::Spread;
use super::view::View;
use super::{Options, Set, StoreKind};
use crate::core::Bytes;
use crate::core::LabError;
use crate::core::corpus::{Corpus, Cut, MAGIC_BYTES, Packing, Pairing, Source, check_regular, plain};

/// The pages of a run.
pub(super) struct Data {
    pub set: Set,
    /// The pages as they were at the start; nothing is ever written to it.
    pub origin: Arc<dyn PageStore>,
    /// The current pages, without the simulated device.
    pub beneath: Arc<dyn PageStore>,
    /// The store for the pool.
    pub store: Arc<dyn PageStore>,
    /// Scratch files are removed with this, and so after the stores that have them open.
    _scratch: Option<TempDir>,
}

impl Data {
    /// Opens the pages that `options` name.
    ///
    /// # Errors
    /// [`LabError::Data`] when they are missing, empty or cannot be read, [`LabError::Option`] when they do not match
    /// the store requested, [`LabError::Io`] when a scratch copy cannot be made.
    pub(super) fn open(options: &Options) -> Result<Self, LabError> {
        let mut scratch = Scratch::new(options);
        let place = Place::of(options)?;
        let origin = place.sample(options, place.open(options, &mut scratch)?);
        let mut set = measure(options, place.kind, origin.as_ref())?;
        let view = if options.writes() {
            let changes = scratch.store_of_changes(place.kind, origin.as_ref(), options)?;
            View::copy_on_write(Arc::clone(&origin), set.pages, changes)
        } else {
            View::read_only(Arc::clone(&origin), set.pages)
        };
        set.place = origin.describe();
        let beneath: Arc<dyn PageStore> = Arc::new(view);
        let store: Arc<dyn PageStore> = match options.device_latency_us {
            0 => Arc::clone(&beneath),
            us => {
                let device = FaultyStore::new(Arc::clone(&beneath));
                for operation in [Operation::Read, Operation::Write] {
                    device.set_latency(operation, Duration::from_micros(us));
                }
                Arc::new(device)
            }
        };
        Ok(Self {
            set,
            origin,
            beneath,
            store,
            _scratch: scratch.directory,
        })
    }

    /// A store like that of [`Data::open`] for the pool, without copies of anything: one without pages, but of the same
    /// length, for data that must be opened and cut first.
    ///
    /// # Errors
    /// As [`Data::open`].
    pub(super) fn look(options: &Options) -> Result<Arc<dyn PageStore>, LabError> {
        let place = Place::of(options)?;
        if place.path.is_none() {
            // Lengths out of bounds are reported by the options.
            let none =
                MemoryStore::new(options.page_bytes).map_err(|e| LabError::option("page-bytes", e.to_string()))?;
            return Ok(Arc::new(none));
        }
        let store = place.sample(options, place.open_in_place(options)?);
        let set = measure(options, place.kind, store.as_ref())?;
        Ok(Arc::new(View::read_only(store, set.pages)))
    }

    /// Reads a page's initial contents.
    pub(super) fn read_origin(&self, page: PageId, buffer: &mut Vec<u8>) -> Result<(), LabError> {
        let read = self.origin.page_bytes(page).and_then(|len| {
            buffer.resize(len, 0);
            self.origin.read(page, buffer)
        });
        read.map_err(|e| LabError::System(format!("cannot read page {page}: {e}")))
    }
}

/// Which pages to use, and their bytes.
fn measure(options: &Options, kind: StoreKind, origin: &dyn PageStore) -> Result<Set, LabError> {
    let name = options.data.to_string();
    let mut set = Set {
        least_page_bytes: usize::MAX,
        ..Set::default()
    };
    let most_pages = options.max_pages.unwrap_or(u64::MAX).min(origin.len());
    while set.pages < most_pages {
        let bytes = match origin.page_bytes(set.pages) {
            Ok(bytes) => bytes,
            Err(e) => return Err(LabError::data(name, format!("page {}: {e}", set.pages))),
        };
        // A remainder at the end of a file is not a page.
        let is_rest = kind == StoreKind::File && bytes < options.page_bytes;
        if is_rest || set.bytes + bytes as u64 > options.max_bytes.unwrap_or(u64::MAX) {
            break;
        }
        set.pages += 1;
        set.bytes += bytes as u64;
        set.least_page_bytes = set.least_page_bytes.min(bytes);
        set.most_page_bytes = set.most_page_bytes.max(bytes);
    }
    match (set.pages, options.max_bytes) {
        (0, Some(most)) if !origin.is_empty() => Err(LabError::option(
            "bytes",
            format!("{} is less than the size of the first page", Bytes(most)),
        )),
        (0, _) if kind == StoreKind::File => Err(LabError::data(
            name,
            format!("it is smaller than a page of {} bytes", options.page_bytes),
        )),
        (0, _) => Err(LabError::data(
            name,
            format!("no file in it has a valid page size, {MIN_PAGE_BYTES} to {MAX_PAGE_BYTES} bytes"),
        )),
        _ => Ok(set),
    }
}

/// Where the pages are, and where to keep them.
struct Place {
    /// The file or directory, when its pages are read where they are.
    path: Option<PathBuf>,
    /// Whether the pages come from a directory, one per file.
    of_directory: bool,
    kind: StoreKind,
}

impl Place {
    fn of(options: &Options) -> Result<Self, LabError> {
        let loaded = |kind: Option<StoreKind>| match kind {
            Some(StoreKind::Dir) => Err(LabError::option(
                "store",
                format!(
                    "dir requires a directory of pages, and {} is not a directory",
                    options.data
                ),
            )),
            kind => Ok(Self {
                path: None,
                of_directory: false,
                kind: kind.unwrap_or(StoreKind::File),
            }),
        };
        let Source::Path(path) = &options.data else {
            return loaded(options.store);
        };
        let failed = |e: io::Error| LabError::data(path.display().to_string(), plain(&e));
        if path.metadata().map_err(failed)?.is_dir() {
            return match options.store {
                Some(StoreKind::File) => loaded(options.store),
                kind => Ok(Self {
                    path: Some(path.clone()),
                    of_directory: true,
                    kind: kind.unwrap_or(StoreKind::Dir),
                }),
            };
        }
        check_regular(path).map_err(|reason| LabError::data(path.display().to_string(), reason))?;
        let mut head = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(MAGIC_BYTES).read_to_end(&mut head).map_err(failed)?;
        let packing = Packing::opened(&head).map_err(|reason| LabError::data(path.display().to_string(), reason));
        let is_packed = !options.raw && packing?.is_some();
        match options.store {
            None | Some(StoreKind::File) if !is_packed => Ok(Self {
                path: Some(path.clone()),
                of_directory: false,
                kind: StoreKind::File,
            }),
            kind => loaded(kind),
        }
    }

    /// Opens the file or directory itself; nothing is written to what this returns.
    fn open_in_place(&self, options: &Options) -> Result<Arc<dyn PageStore>, LabError> {
        let failed = |e: io::Error| LabError::data(options.data.to_string(), e.to_string());
        match &self.path {
            Some(path) if self.of_directory => Ok(Arc::new(open_directory(path, options).map_err(failed)?)),
            Some(path) => {
                let file = FileStore::options().read_only(true).open(path, options.page_bytes);
                Ok(Arc::new(file.map_err(failed)?))
            }
            None => Err(LabError::data(
                options.data.to_string(),
                "it must be opened and cut first",
            )),
        }
    }

    /// The pages that are to be taken of a file. Of a directory it is the first ones in the order of their names: the
    /// lengths of all its files would have to be looked up to know how many there are.
    fn sample(&self, options: &Options, origin: Arc<dyn PageStore>) -> Arc<dyn PageStore> {
        if self.path.is_none() || self.of_directory {
            return origin;
        }
        let last = origin.len().checked_sub(1);
        let has_rest = last.is_some_and(|last| origin.page_bytes(last).is_ok_and(|bytes| bytes < options.page_bytes));
        let all = origin.len() - u64::from(has_rest);
        let of_bytes = options
            .max_bytes
            .map_or(u64::MAX, |bytes| bytes / options.page_bytes as u64);
        let pages = all.min(options.max_pages.unwrap_or(u64::MAX)).min(of_bytes);
        if pages == all || pages == 0 {
            return origin;
        }
        Arc::new(Spread::new(origin, all, pages))
    }

    /// Opens the pages in place; nothing is written to the returned store.
    fn open(&self, options: &Options, scratch: &mut Scratch) -> Result<Arc<dyn PageStore>, LabError> {
        let failed = |e: io::Error| LabError::data(options.data.to_string(), e.to_string());
        if self.path.is_some() {
            let store = self.open_in_place(options)?;
            if self.kind != StoreKind::Memory {
                return Ok(store);
            }
            let pages = (0..store.len()).map(|page| {
                let mut bytes = vec![0; store.page_bytes(page)?];
                store.read(page, &mut bytes).map(|()| bytes)
            });
            let pages = pages.collect::<io::Result<Vec<_>>>().map_err(failed)?;
            return Ok(Arc::new(MemoryStore::from_pages(pages).map_err(failed)?));
        }
        let corpus = Corpus::whole(&options.data, Cut::Fixed(options.page_bytes), options.raw, options.seed)?;
        let most = options
            .max_bytes
            .map_or(u64::MAX, |bytes| bytes / options.page_bytes as u64);
        let count = corpus
            .count()
            .min(options.max_pages.unwrap_or(u64::MAX))
            .min(most.max(1));
        let assignment = corpus.assignment(count, Pairing::InOrder);
        let pages = (0..count).map(|page| corpus.get(assignment.value(page, 0)));
        if self.kind == StoreKind::Memory {
            return Ok(Arc::new(MemoryStore::from_pages(pages).map_err(failed)?));
        }
        scratch.file_of(pages, options.page_bytes)
    }
}

fn open_directory(path: &Path, options: &Options) -> io::Result<DirectoryStore> {
    let mut directory = DirectoryStore::options().read_only(true);
    if let Some(pages) = options.max_pages {
        directory = directory.max_pages(pages);
    }
    if let Some(bytes) = options.max_bytes {
        directory = directory.max_bytes(bytes);
    }
    directory.open(path)
}

/// A directory for scratch files, made when it is first needed.
struct Scratch {
    parent: PathBuf,
    directory: Option<TempDir>,
}

impl Scratch {
    fn new(options: &Options) -> Self {
        Self {
            parent: options.scratch.clone().unwrap_or_else(std::env::temp_dir),
            directory: None,
        }
    }

    fn path(&mut self) -> Result<&Path, LabError> {
        if self.directory.is_none() {
            let made = tempfile::Builder::new()
                .prefix("leafpress-pool-")
                .tempdir_in(&self.parent);
            self.directory = Some(made.map_err(|e| LabError::io(&self.parent, e))?);
        }
        // It was made above.
        Ok(self
            .directory
            .as_ref()
            .map_or(&self.parent, |directory| directory.path()))
    }

    /// A file of these pages, which can only be read.
    fn file_of<'p>(
        &mut self,
        pages: impl Iterator<Item = &'p [u8]>,
        page_bytes: usize,
    ) -> Result<Arc<dyn PageStore>, LabError> {
        let path = self.path()?.join("pages");
        let failed = |e| LabError::io(&path, e);
        let mut file = BufWriter::new(File::create_new(&path).map_err(failed)?);
        for page in pages {
            file.write_all(page).map_err(failed)?;
        }
        // Pending writes to the device would disturb the measurement.
        let file = file.into_inner().map_err(|e| failed(e.into_error()))?;
        file.sync_all().map_err(failed)?;
        let store = FileStore::options().read_only(true).open(&path, page_bytes);
        Ok(Arc::new(store.map_err(failed)?))
    }

    /// An empty store of the same kind as the pages', for changed pages.
    fn store_of_changes(
        &mut self,
        kind: StoreKind,
        origin: &dyn PageStore,
        options: &Options,
    ) -> Result<Box<dyn PageStore>, LabError> {
        let longest = origin.max_page_bytes();
        let path = self.path()?.join("changes");
        let failed = |e| LabError::io(&path, e);
        Ok(match kind {
            StoreKind::Memory => Box::new(MemoryStore::new(longest).map_err(failed)?),
            StoreKind::File => Box::new(FileStore::create(&path, options.page_bytes).map_err(failed)?),
            StoreKind::Dir => {
                std::fs::create_dir(&path).map_err(failed)?;
                let directory = DirectoryStore::options().longest_page_bytes(longest);
                Box::new(directory.open(&path).map_err(failed)?)
            }
        })
    }
}
