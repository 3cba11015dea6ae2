//! Detects contents of packed files that are also present unpacked, such as an archive next to its extracted files:
//! read twice, they would count twice.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::Crc;

use super::{MAGIC_BYTES, Packing};

/// Files that are not packed, by their lengths.
#[derive(Default)]
pub(crate) struct Unpacked(HashMap<u64, Vec<Candidate>>);

struct Candidate {
    path: PathBuf,
    /// Computed on first use; `None` inside for a file that cannot be read, or is packed.
    crc32: Option<Option<u32>>,
}

impl Unpacked {
    /// Those of `files`.
    pub(crate) fn among<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Self {
        let mut unpacked = Self::default();
        for file in files {
            let path = file.as_ref().to_owned();
            // A pipe can be read but once.
            if let Ok(metadata) = path.metadata()
                && metadata.is_file()
            {
                let candidate = Candidate { path, crc32: None };
                unpacked.0.entry(metadata.len()).or_default().push(candidate);
            }
        }
        unpacked
    }

    /// The file that holds the same as an archive's member, which has this length and checksum. `contents` reads the
    /// member, if there is such a file.
    pub(crate) fn of_member(
        &mut self,
        bytes: u64,
        crc32: u32,
        contents: impl FnOnce(&Path) -> bool,
    ) -> Option<PathBuf> {
        let candidates = self.0.get_mut(&bytes).filter(|_| bytes > 0)?;
        let found = candidates
            .iter_mut()
            .position(|candidate| candidate.crc32() == Some(crc32))?;
        let found = &candidates[found];
        contents(&found.path).then(|| found.path.clone())
    }

    /// The file that holds the same as a compressed one: it has its name without the ending, as `unzstd` and `gunzip`
    /// would name it.
    pub(crate) fn of_packed(&self, packed: &Path, contents: impl FnOnce(&Path) -> bool) -> Option<PathBuf> {
        let path = packed.with_extension(match packed.extension()?.to_str() {
            Some("tgz" | "tzst") => "tar",
            _ => "",
        });
        let mut all = self.0.values().flatten();
        let is_there = all.any(|candidate| candidate.path == path) && !is_packed(&path);
        (is_there && contents(&path)).then_some(path)
    }
}

impl Candidate {
    fn crc32(&mut self) -> Option<u32> {
        let path = &self.path;
        *self
            .crc32
            .get_or_insert_with(|| checksum(path).ok().filter(|_| !is_packed(path)))
    }
}

fn is_packed(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC_BYTES).read_to_end(&mut start));
    read.is_err() || Packing::of(&start).is_some()
}

fn checksum(path: &Path) -> io::Result<u32> {
    let (mut file, mut crc, mut buffer) = (File::open(path)?, Crc::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(crc.sum()),
            read => crc.update(&buffer[..read]),
        }
    }
}

/// Whether `contents` equal those of the file, from the first byte to the last.
pub(crate) fn is_same(file: &Path, contents: &mut dyn Read) -> bool {
    const CHUNK_BYTES: u64 = 64 << 10;

    let Ok(file) = File::open(file) else { return false };
    let mut file = BufReader::new(file);
    let (mut mine, mut others) = (Vec::new(), Vec::new());
    loop {
        mine.clear();
        others.clear();
        let read = |from: &mut dyn Read, into| from.take(CHUNK_BYTES).read_to_end(into);
        match (read(&mut file, &mut mine), read(contents, &mut others)) {
            (Ok(0), Ok(0)) => return true,
            (Ok(_), Ok(_)) if mine == others => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_bytes_are_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let long = b"some of these and some of those ".repeat(10_000);
        std::fs::write(path("a.tar"), &long).unwrap();
        std::fs::write(path("packed"), [b"PK\x03\x04", &long[4..]].concat()).unwrap();
        let mut crc = Crc::new();
        crc.update(&long);
        let mut unpacked = Unpacked::among([path("a.tar"), path("packed"), path("none")]);
        let bytes = long.len() as u64;
        let same = |mut contents: &[u8], file: &Path| is_same(file, &mut contents);
        assert_eq!(
            unpacked.of_member(bytes, crc.sum(), |file| same(&long, file)),
            Some(path("a.tar"))
        );
        let mut other = long.clone();
        *other.last_mut().unwrap() += 1;
        for contents in [&other, &long[1..], &[long.as_slice(), b"1"].concat()] {
            assert_eq!(unpacked.of_member(bytes, crc.sum(), |file| same(contents, file)), None);
        }
        // Without the checksum nothing is compared.
        assert_eq!(unpacked.of_member(bytes, 1, |_| true), None);
        assert_eq!(unpacked.of_packed(&path("a.tgz"), |_| true), Some(path("a.tar")));
        assert_eq!(unpacked.of_packed(&path("a.tar.zst"), |_| true), Some(path("a.tar")));
        assert_eq!(
            unpacked.of_packed(&path("packed.gz"), |_| true),
            None,
            "it is opened itself"
        );
        assert_eq!(unpacked.of_packed(&path("none.gz"), |_| true), None);
    }
}
