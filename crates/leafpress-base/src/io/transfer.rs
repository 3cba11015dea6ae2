//! One read or write at an offset of a file, continued until all bytes are transferred.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The memory of a transfer.
pub enum Buffer<'a> {
    /// Memory that the file is read into.
    Read(&'a mut [u8]),
    /// Bytes that are written to the file.
    Write(&'a [u8]),
}

impl Buffer<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Read(bytes) => bytes.len(),
            Self::Write(bytes) => bytes.len(),
        }
    }
}

/// A read or a write and its progress.
pub struct Transfer<'a> {
    buffer: Buffer<'a>,
    offset: u64,
    needed: usize,
    /// Bytes transferred: a multiple of `granule` and less than `needed` while there is no outcome.
    done: usize,
    granule: usize,
    outcome: Option<io::Result<()>>,
}

impl<'a> Transfer<'a> {
    /// Creates a read of at least `needed` bytes into `into`, which may be longer: a direct read of a file's last bytes
    /// has to request whole blocks. After a short read the transfer continues at a multiple of `granule`.
    pub fn read(into: &'a mut [u8], offset: u64, needed: usize, granule: usize) -> Self {
        Self::new(Buffer::Read(into), offset, needed, granule)
    }

    /// Creates a write of all of `bytes`.
    pub fn write(bytes: &'a [u8], offset: u64, granule: usize) -> Self {
        Self::new(Buffer::Write(bytes), offset, bytes.len(), granule)
    }

    fn new(buffer: Buffer<'a>, offset: u64, needed: usize, granule: usize) -> Self {
        let needed = needed.min(buffer.len());
        Self {
            buffer,
            offset,
            needed,
            done: 0,
            granule: granule.max(1),
            outcome: (needed == 0).then_some(Ok(())),
        }
    }

    /// Returns whether all bytes were transferred or an error ended the transfer.
    pub fn is_finished(&self) -> bool {
        self.outcome.is_some()
    }

    /// Returns the file offset of the next piece.
    pub fn next_offset(&self) -> u64 {
        self.offset + self.done as u64
    }

    /// Returns the part of the buffer that is not yet transferred.
    pub fn rest(&mut self) -> Buffer<'_> {
        match &mut self.buffer {
            Buffer::Read(into) => Buffer::Read(&mut into[self.done..]),
            Buffer::Write(bytes) => Buffer::Write(&bytes[self.done..]),
        }
    }

    /// Processes the system's result for the last piece: the number of bytes, or an error.
    pub fn advance(&mut self, answer: io::Result<usize>) {
        match answer {
            Ok(bytes) => {
                let reached = (self.done + bytes).min(self.buffer.len());
                let usable = reached - reached % self.granule;
                if reached >= self.needed {
                    self.outcome = Some(Ok(()));
                } else if usable > self.done {
                    self.done = usable;
                } else {
                    // Zero bytes, or less than a block: the end of the file.
                    self.outcome = Some(Err(match self.buffer {
                        Buffer::Read(_) => io::ErrorKind::UnexpectedEof.into(),
                        Buffer::Write(_) => io::ErrorKind::WriteZero.into(),
                    }));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => self.outcome = Some(Err(e)),
        }
    }

    /// Completes the transfer with `pread` or `pwrite`.
    pub fn run(&mut self, file: &File) {
        while !self.is_finished() {
            let offset = self.next_offset();
            let answer = match self.rest() {
                Buffer::Read(into) => file.read_at(into, offset),
                Buffer::Write(bytes) => file.write_at(bytes, offset),
            };
            self.advance(answer);
        }
    }

    /// Returns the result of the transfer.
    pub fn into_outcome(self) -> io::Result<()> {
        self.outcome
            .unwrap_or_else(|| Err(io::Error::other("the transfer was never run")))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::Transfer;

    #[test]
    fn a_short_read_is_carried_on_at_a_whole_block() {
        let mut bytes = vec![0; 4096];
        let mut transfer = Transfer::read(&mut bytes, 8192, 4096, 512);
        transfer.advance(Ok(1300));
        assert_eq!(transfer.next_offset(), 8192 + 1024);
        transfer.advance(Err(io::ErrorKind::Interrupted.into()));
        assert!(!transfer.is_finished());
        transfer.advance(Ok(3072));
        assert!(transfer.into_outcome().is_ok());
    }

    #[test]
    fn a_read_past_the_end_stops_at_what_is_needed() {
        let mut bytes = vec![0; 4096];
        let mut transfer = Transfer::read(&mut bytes, 0, 700, 512);
        transfer.advance(Ok(700));
        assert!(transfer.into_outcome().is_ok());
    }

    #[test]
    fn an_end_before_what_is_needed_is_unexpected() {
        for pieces in [&[0_usize][..], &[100], &[512, 0], &[512, 100], &[600, 88]] {
            let mut bytes = vec![0; 4096];
            let mut transfer = Transfer::read(&mut bytes, 0, 4096, 512);
            for &piece in pieces {
                assert!(!transfer.is_finished(), "{pieces:?}");
                transfer.advance(Ok(piece));
            }
            assert_eq!(
                transfer.into_outcome().unwrap_err().kind(),
                io::ErrorKind::UnexpectedEof,
                "{pieces:?}"
            );
        }
    }

    #[test]
    fn a_short_write_is_carried_on() {
        let bytes = [7; 100];
        let mut transfer = Transfer::write(&bytes, 5, 1);
        transfer.advance(Ok(60));
        assert_eq!(transfer.next_offset(), 65);
        transfer.advance(Ok(0));
        assert_eq!(transfer.into_outcome().unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
