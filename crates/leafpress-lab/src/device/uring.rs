//! A job through io_uring, as fio's engine of that name does it: each request is handed over alone as soon as there is
//! room for it, one end is taken at a time. Latencies begin before the system call that hands a request over: a read
//! may be done within it.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::{IoUring, Probe, opcode, types};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::Operation;
use super::buffer::Buffer;
use super::job::{Broken, Job, Tally};

/// Time between two reports of progress.
const REPORT: Duration = Duration::from_millis(50);
/// Timeout for outstanding requests of a broken ring, after which their buffers are leaked.
const PATIENCE: Duration = Duration::from_secs(30);

/// A ring, tried.
pub(super) struct Ring(IoUring);

/// A request's memory and times.
struct Slot {
    buffer: Buffer,
    submitted: Instant,
    offset_bytes: u64,
    random: bool,
}

impl Ring {
    /// Creates a ring for this many requests in flight.
    ///
    /// # Errors
    /// The kernel's error: `ENOSYS` without io_uring, `EPERM` under a filter or `kernel.io_uring_disabled`,
    /// `Unsupported` before Linux 5.6.
    pub(super) fn open(queue_depth: u32) -> io::Result<Self> {
        // Cooperative task running (Linux 5.19) spares interrupting the thread for each completion; fio asks for it
        // too.
        let mut ring = IoUring::builder()
            .setup_coop_taskrun()
            .build(queue_depth)
            .or_else(|_| IoUring::new(queue_depth))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) || !probe.is_supported(opcode::Write::CODE) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "reads need Linux 5.6"));
        }
        // A filter may allow a ring's setup and not its use.
        // SAFETY: a no-op has no buffer.
        unsafe { ring.submission().push(&opcode::Nop::new().build()) }
            .map_err(|_| io::Error::other("a new ring is full"))?;
        while ring.completion().next().is_none() {
            match ring.submit_and_wait(1) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
        Ok(Self(ring))
    }

    /// Runs the job to its end, or until it is cancelled.
    pub(super) fn run(
        self,
        mut job: Job<'_>,
        mut tally: Tally,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Tally, Broken> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(job.seed);
        let mut slots = Vec::new();
        for _ in 0..job.queue_depth {
            let mut buffer = Buffer::new(job.block_bytes as usize).map_err(|source| Broken {
                offset_bytes: 0,
                source,
            })?;
            if job.operation == Operation::Write {
                buffer.fill(&mut random);
            }
            slots.push(Slot {
                buffer,
                submitted: Instant::now(),
                offset_bytes: 0,
                random: false,
            });
        }
        let mut flight = Flight {
            ring: self.0,
            free: (0..slots.len()).collect(),
            slots,
            in_flight: 0,
            submit: Duration::ZERO,
        };
        let begin = Instant::now();
        let (mut now, mut reported) = (begin, begin);
        let mut broken = None;
        loop {
            let ending = broken.is_some()
                || now.duration_since(begin) >= job.length
                || job.cancel.load(std::sync::atomic::Ordering::Relaxed);
            if !ending && !flight.free.is_empty() {
                if let Err(e) = flight.submit(&mut job, &mut random) {
                    broken = Some(e);
                }
                // fio fills its queue before it waits.
                if broken.is_none() && !flight.free.is_empty() {
                    continue;
                }
            }
            if flight.in_flight == 0 {
                break;
            }
            match flight.wait() {
                Ok((slot, answer)) => {
                    now = Instant::now();
                    let about = &flight.slots[slot];
                    match answer {
                        Ok(bytes) if bytes as u64 == job.block_bytes => tally.record(
                            now.duration_since(about.submitted),
                            about.random,
                            now.duration_since(begin),
                            job.length,
                        ),
                        Ok(_) => {
                            broken = broken.or(Some(Broken {
                                offset_bytes: about.offset_bytes,
                                source: io::ErrorKind::UnexpectedEof.into(),
                            }));
                        }
                        Err(source) => {
                            broken = broken.or(Some(Broken {
                                offset_bytes: about.offset_bytes,
                                source,
                            }));
                        }
                    }
                    flight.free.push(slot);
                    flight.in_flight -= 1;
                }
                Err(source) => {
                    flight.give_up();
                    return Err(broken.unwrap_or(Broken {
                        offset_bytes: 0,
                        source,
                    }));
                }
            }
            if now.duration_since(reported) >= REPORT {
                reported = now;
                progress(now.duration_since(begin).as_secs_f64() / job.length.as_secs_f64());
            }
        }
        tally.elapsed = begin.elapsed();
        tally.submit = Some(flight.submit);
        broken.map_or(Ok(tally), Err)
    }
}

/// Requests under way. Buffers of slots that are not free belong to the kernel.
struct Flight {
    ring: IoUring,
    slots: Vec<Slot>,
    free: Vec<usize>,
    in_flight: usize,
    /// Time spent handing requests over.
    submit: Duration,
}

impl Flight {
    /// Hands one request over.
    fn submit(&mut self, job: &mut Job<'_>, random: &mut Xoshiro256PlusPlus) -> Result<(), Broken> {
        let Some(index) = self.free.pop() else { return Ok(()) };
        let place = job.places.next();
        let slot = &mut self.slots[index];
        slot.offset_bytes = place.block * job.block_bytes;
        slot.random = place.random;
        let fd = types::Fd(job.file.as_raw_fd());
        // Blocks are at most 64 MiB long.
        let len = job.block_bytes as u32;
        let entry = match job.operation {
            Operation::Read => opcode::Read::new(fd, slot.buffer.bytes_mut().as_mut_ptr(), len)
                .offset(slot.offset_bytes)
                .build(),
            Operation::Write => {
                slot.buffer.stamp(random);
                opcode::Write::new(fd, slot.buffer.bytes().as_ptr(), len)
                    .offset(slot.offset_bytes)
                    .build()
            }
        };
        let offset_bytes = slot.offset_bytes;
        let broken = |source| Broken { offset_bytes, source };
        let started = Instant::now();
        // SAFETY: the slot is no longer free, so nothing touches its buffer until its completion was seen, and the
        // buffer lives until then: `run` returns only when nothing is in flight, and `give_up` leaks what the kernel
        // does not give back. The job borrows the file as long.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)) }
            .map_err(|_| broken(io::Error::other("the ring is full")))?;
        self.in_flight += 1;
        loop {
            match self.ring.submit() {
                // Nothing taken is tried again; it was not the kernel's yet.
                Ok(0) => {}
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if [libc::EAGAIN, libc::EBUSY].contains(&e.raw_os_error().unwrap_or(0)) => {
                    std::thread::yield_now()
                }
                Err(e) => return Err(broken(e)),
            }
        }
        self.slots[index].submitted = started;
        self.submit += started.elapsed();
        Ok(())
    }

    /// The next request that ended, and with what.
    fn wait(&mut self) -> io::Result<(usize, io::Result<u32>)> {
        loop {
            if let Some(done) = self.ring.completion().next() {
                let answer = u32::try_from(done.result()).map_err(|_| io::Error::from_raw_os_error(-done.result()));
                return Ok((done.user_data() as usize, answer));
            }
            match self.ring.submit_and_wait(1) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
    }

    /// Waits for outstanding requests of a broken ring. The buffers of those that do not complete are leaked.
    fn give_up(mut self) {
        let begin = Instant::now();
        while self.in_flight > self.ring.submission().len() && begin.elapsed() < PATIENCE {
            self.in_flight -= self.ring.completion().count().min(self.in_flight);
            // The sleep is a system call, at whose end pending completions are posted.
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.in_flight > self.ring.submission().len() {
            std::mem::forget(self);
        }
    }
}
