//! Batches of reads and writes through io_uring: all are submitted at once, with at most `ENTRIES` in flight.
//!
//! A ring that the kernel refuses, at setup or later, is not an error: the caller completes the remaining transfers
//! with `pread` and `pwrite`.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use crate::sync::plain::Mutex;
use io_uring::{IoUring, Probe, opcode, squeue, types};

use super::transfer::{Buffer, Transfer};
use crate::mem::room::{TryGrow, room_for};

/// Maximum number of requests that a ring has in flight.
const ENTRIES: usize = 64;
/// Rings kept for later batches; each holds about 8 KiB of kernel memory.
const MAX_IDLE: usize = 16;

/// The rings of a store: a batch takes one and puts it back.
pub struct Rings {
    idle: Mutex<Vec<Ring>>,
}

impl Rings {
    /// Creates a first ring and tests it with a no-op request.
    ///
    /// # Errors
    /// The kernel's error: `ENOSYS` without io_uring, `EPERM` under a seccomp filter or `kernel.io_uring_disabled`,
    /// `ENOMEM` where the limit of locked memory is too low.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            idle: Mutex::new(vec![Ring::open()?]),
        })
    }

    /// Runs the transfers; those that the kernel rejects stay unfinished.
    pub fn run(&self, file: &File, transfers: &mut [Transfer<'_>]) {
        let idle = self.idle.lock().pop();
        let Some(mut ring) = idle.or_else(|| Ring::open().ok()) else {
            return;
        };
        if ring.run(file, transfers).is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < MAX_IDLE {
                // If there is no memory to keep the ring, it is closed.
                let _ = idle.try_push(ring);
            }
        }
    }
}

struct Ring(IoUring);

impl Ring {
    fn open() -> io::Result<Self> {
        // Cooperative task running (Linux 5.19) avoids interrupting the thread for each completion.
        let ring = IoUring::builder()
            .setup_coop_taskrun()
            .build(ENTRIES as u32)
            .or_else(|_| IoUring::new(ENTRIES as u32))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "reads need Linux 5.6"));
        }
        let mut ring = Self(ring);
        ring.try_nothing()?;
        Ok(ring)
    }

    /// Submits a no-op: a seccomp filter may allow a ring's setup but not its use.
    fn try_nothing(&mut self) -> io::Result<()> {
        // SAFETY: a no-op has no buffer.
        unsafe { self.0.submission().push(&opcode::Nop::new().build()) }
            .map_err(|_| io::Error::other("a new ring is full"))?;
        loop {
            match self.0.submit_and_wait(1) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(_) => match self.0.completion().next() {
                    Some(done) if done.result() < 0 => return Err(io::Error::from_raw_os_error(-done.result())),
                    Some(_) => return Ok(()),
                    None => {}
                },
            }
        }
    }

    /// Runs the transfers that are not finished. After an error the ring is unusable and some transfers are unfinished,
    /// but no request is in flight.
    fn run(&mut self, file: &File, transfers: &mut [Transfer<'_>]) -> io::Result<()> {
        let fd = types::Fd(file.as_raw_fd());
        let mut next = 0;
        let Ok(mut again) = room_for(ENTRIES) else {
            // The caller completes the transfers with system calls.
            return Ok(());
        };
        // Requests submitted whose completion has not been reaped.
        let mut in_flight = 0;
        loop {
            while in_flight < ENTRIES {
                let index = match again.pop() {
                    Some(index) => index,
                    None if next < transfers.len() => {
                        next += 1;
                        next - 1
                    }
                    None => break,
                };
                let Some(transfer) = transfers.get_mut(index).filter(|t| !t.is_finished()) else {
                    continue;
                };
                let entry = request(fd, transfer).user_data(index as u64);
                // SAFETY: `transfers` borrows the buffer for as long as this function runs, nothing accesses the buffer
                // before its completion is reaped, and the function returns only when no request is in flight
                // (`in_flight` is 0, or `settle` has waited for what the kernel had accepted). The file is borrowed as
                // long.
                if unsafe { self.0.submission().push(&entry) }.is_err() {
                    // The queue is full, which cannot happen with fewer requests than entries: leave the transfer to
                    // the caller.
                    break;
                }
                in_flight += 1;
            }
            if in_flight == 0 {
                return Ok(());
            }
            // With more to come, half the ring is refilled while the device works on the other half.
            let wanted = if next < transfers.len() {
                in_flight.div_ceil(2)
            } else {
                in_flight
            };
            let entered = self.0.submit_and_wait(wanted);
            let reaped = self.reap(transfers, &mut again);
            in_flight -= reaped;
            match entered {
                Err(e) if e.kind() != io::ErrorKind::Interrupted && reaped == 0 => {
                    self.settle(in_flight, transfers, &mut again);
                    return Err(e);
                }
                _ => {}
            }
        }
    }

    /// Reaps the available completions. Transfers to continue go to `again`; returns how many requests ended.
    fn reap(&mut self, transfers: &mut [Transfer<'_>], again: &mut Vec<usize>) -> usize {
        let mut reaped = 0;
        for completion in self.0.completion() {
            reaped += 1;
            let index = completion.user_data() as usize;
            let Some(transfer) = transfers.get_mut(index) else {
                continue;
            };
            match usize::try_from(completion.result()) {
                Ok(bytes) => transfer.advance(Ok(bytes)),
                // The kernel lacked a resource, or its worker ended: the caller completes the transfer.
                Err(_) if [libc::EAGAIN, libc::ECANCELED].contains(&-completion.result()) => continue,
                Err(_) => transfer.advance(Err(io::Error::from_raw_os_error(-completion.result()))),
            }
            if !transfer.is_finished() {
                again.push(index);
            }
        }
        reaped
    }

    /// Waits, after an error, until the kernel has completed every request that it accepted. Reads and writes of files
    /// end by themselves; until then the kernel may access their buffers.
    fn settle(&mut self, mut in_flight: usize, transfers: &mut [Transfer<'_>], again: &mut Vec<usize>) {
        // Requests that the kernel did not accept are discarded with the ring.
        let untaken = self.0.submission().len();
        while in_flight > untaken {
            // Pending completions are posted when a system call returns; the sleep is one.
            std::thread::sleep(Duration::from_micros(200));
            in_flight -= self.reap(transfers, again);
        }
    }
}

/// Builds the request for the rest of a transfer.
fn request(fd: types::Fd, transfer: &mut Transfer<'_>) -> squeue::Entry {
    let offset = transfer.next_offset();
    // The length is at most that of a page, a few MiB, so it fits.
    match transfer.rest() {
        Buffer::Read(into) => opcode::Read::new(fd, into.as_mut_ptr(), into.len() as u32)
            .offset(offset)
            .build(),
        Buffer::Write(bytes) => opcode::Write::new(fd, bytes.as_ptr(), bytes.len() as u32)
            .offset(offset)
            .build(),
    }
}
