//! Which of PiBench's interfaces the running program calls.
//!
//! `create_tree` is the same in all of PiBench's branches, and nothing that it is passed names the branch. The newer
//! branches, whose `tree_api` has `bulk_load` before `find`, have a command-line option for it, whose help stands as
//! text in the program; the others do not contain it. `interface=` in `LEAFPRESS_TREE` overrides what is found here,
//! for programs of other origin.

use std::fs::File;
use std::io::{self, Read};
use std::sync::OnceLock;

/// What distinguishes the programs: the help of the option `--bulk_load`. Its name alone is also in programs that know
/// both interfaces, as the host in this repository does.
const HELP: &[u8] = b"Use bulk loading";

/// The order in which the program expects a tree's virtual methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// `find` is the first method.
    Original,
    /// `bulk_load` is the first method.
    BulkLoad,
}

/// Returns the running program's interface: the original one, unless the program contains [`HELP`].
pub(crate) fn interface() -> Interface {
    static FOUND: OnceLock<Interface> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let program = File::open("/proc/self/exe");
        match program.and_then(|program| contains(program, HELP)) {
            Ok(true) => Interface::BulkLoad,
            Ok(false) | Err(_) => Interface::Original,
        }
    })
}

/// Returns whether `reader` has `word` anywhere.
fn contains(mut reader: impl Read, word: &[u8]) -> io::Result<bool> {
    let mut buffer = vec![0; 1 << 16];
    let mut kept = 0;
    loop {
        let read = match reader.read(&mut buffer[kept..]) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let filled = &buffer[..kept + read];
        if filled.windows(word.len()).any(|window| window == word) {
            return Ok(true);
        }
        // A word may begin in one piece and end in the next.
        let end = filled.len();
        kept = end.min(word.len() - 1);
        buffer.copy_within(end - kept..end, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::contains;

    /// Hands out a few bytes at a time.
    struct Slow<'b>(&'b [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn a_word_is_found_wherever_pieces_end() {
        let mut text = vec![b'b'; 70_000];
        for at in [0, 1, 65_530, 65_536, text.len() - 4] {
            text[at..at + 4].copy_from_slice(b"word");
            for step in [1, 3, 1 << 20] {
                assert!(contains(Slow(&text, step), b"word").unwrap(), "{at} {step}");
            }
            text[at + 3] = b'b';
            assert!(!contains(Slow(&text, 5), b"word").unwrap(), "{at}");
        }
        assert!(!contains(Slow(b"", 1), b"word").unwrap());
        assert!(!contains(Slow(b"wor", 1), b"word").unwrap());
    }
}
